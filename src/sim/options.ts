/**
 * What can be chosen about a simulated driver.
 *
 * @module
 */
import type { LoadPtx } from "./kernels.ts";
import type { Print } from "./output.ts";
import type { Schedule } from "./scheduler.ts";

/** Options of `Cuda.simulate` and of `simulateDriver`. */
export interface SimulateOptions {
  /** How many devices there are. Default 1. */
  readonly devices?: number;
  /** What determines every choice of the schedule: the same seed repeats a run. Default 0. */
  readonly seed?: number;
  /** How the order of work is chosen among all that CUDA allows. Default `random`. */
  readonly schedule?: Schedule;
  /** Bytes of memory of each device. Default 8 GiB; the host's memory is used only for what is written. */
  readonly memory?: number;
  /** Whether the devices have memory pools. Default true. */
  readonly poolsSupported?: boolean;
  /** The CUDA version that the driver claims, as 13000 for 13.0. Functions that came later are null. Default 13050: code
   * that NVRTC makes is PTX then, which can be run, and not machine code. */
  readonly driverVersion?: number;
  /** Whether a device can access the memory of another one directly. Default: every one can. */
  readonly canAccessPeer?: (device: number, peer: number) => boolean;
  /** What turns PTX into kernels. Default: the interpreter of this package. */
  readonly loadPtx?: LoadPtx;
  /** Takes what kernels say, `printf` for stdout and a failed `assert` for stderr, when the host synchronizes. Default:
   * the process's own stdout and stderr. */
  readonly print?: Print;
}
