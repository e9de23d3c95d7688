/**
 * The GPUs that a command works on: the machine's, or simulated ones for a demonstration.
 *
 * @module
 */
import type { Cuda } from "../cuda/mod.ts";
import { wholeNumber } from "./arguments.ts";

/** A job cannot be done here: the command line says why, and exits with code 1. */
export class CannotError extends Error {
  override readonly name: string = "CannotError";
}

/** The option for commands that can be tried without a GPU. */
export const simulateOption = {
  type: "string",
  value: "N",
  says: "a demonstration on N simulated GPUs (1 to 16), which says nothing about hardware",
} as const;

/** The first line of a report on simulated GPUs. */
export const simulatedNotice = "SIMULATED GPUs: a demonstration. None of this says anything about hardware.";

/**
 * Opens CUDA. The cards' settings stay unchanged.
 *
 * @param simulate the value of {@linkcode simulateOption}, if it is given
 * @throws {CannotError} without a GPU, with the reason
 */
export async function openCuda(
  simulate: string | undefined,
  usage: string,
): Promise<{ readonly cuda: Cuda; readonly isSimulated: boolean }> {
  const devices = simulate === undefined ? null : wholeNumber("simulate", simulate, 1, 16, usage);
  const { Cuda } = await import("../cuda/mod.ts");
  if (devices !== null) {
    return { cuda: Cuda.simulate({ devices }), isSimulated: true };
  }
  const { available, reason } = Cuda.probe();
  if (available) return { cuda: Cuda.open(), isSimulated: false };
  throw new CannotError(
    `No GPU here: ${reason.replace(/\.$/, "")}. causeway doctor says more; --simulate N shows what it would look like.`,
  );
}
