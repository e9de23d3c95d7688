/**
 * Where a behaviour is tested: on the driver of a GPU, or on a simulated one.
 *
 * @module
 */
import { Cuda } from "../../mod.ts";

/** A way to open CUDA, and how much work suits it. */
export interface Root {
  /** Opens CUDA. */
  readonly open: () => Cuda;
  /** Bytes that take a while to copy. */
  readonly bytes: number;
  /** Whether work that was just enqueued cannot have completed by the time it is queried. */
  readonly isSlow: boolean;
}

/** A behaviour that must hold on every root. */
export interface Behaviour {
  readonly name: string;
  /** Number of devices that it needs. */
  readonly devices: number;
  readonly run: (root: Root) => void | Promise<void>;
}

/** The GPUs of this machine. */
export const realRoot: Root = { open: () => Cuda.open(), bytes: 256 * 2 ** 20, isSlow: true };
