/**
 * Where a behaviour is tried: on the driver of a GPU, or on a simulated one.
 *
 * @module
 */
import { Cuda } from "../../mod.ts";

/** A way to CUDA, and how much work it can be given. */
export interface Root {
  /** Opens CUDA. */
  readonly open: () => Cuda;
  /** Bytes that take a while to copy. */
  readonly bytes: number;
  /** Whether work that was just enqueued cannot have been done when it is asked about. */
  readonly isSlow: boolean;
}

/** Something that must be so on every root. */
export interface Behaviour {
  readonly name: string;
  /** Devices that it needs. */
  readonly devices: number;
  readonly run: (root: Root) => void | Promise<void>;
}

/** The GPUs of this machine. */
export const realRoot: Root = { open: () => Cuda.open(), bytes: 256 * 2 ** 20, isSlow: true };
