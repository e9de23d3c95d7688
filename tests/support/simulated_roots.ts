/**
 * Simulated CUDA roots, with many schedules, for behaviours that are also tested on GPUs.
 *
 * @module
 */
import type { Schedule } from "../../src/public/sim.ts";
import { Cuda } from "../../mod.ts";
import type { Root } from "./cuda_root.ts";

/** A simulated CUDA of four devices. */
export function simulatedRoot(schedule: Schedule, seed: number): Root {
  return {
    open: () => Cuda.simulate({ devices: 4, schedule, seed }),
    bytes: 4096,
    isSlow: schedule === "latest",
  };
}

/** Every schedule, and several seeds where they matter. */
export const simulatedRoots: readonly Root[] = [
  simulatedRoot("latest", 0),
  simulatedRoot("round-robin", 0),
  ...Array.from({ length: 8 }, (_, seed) => simulatedRoot("random", seed)),
];
