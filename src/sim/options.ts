/**
 * What can be chosen about a simulated driver.
 *
 * @module
 */
import type { OptionNames } from "../layout/options.ts";
import type { LoadPtx } from "./kernel_faults.ts";
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
  /**
   * Whether what frees or unmaps memory at once (cuMemFree, cuMemFreeHost, cuMemHostUnregister, cuIpcCloseMemHandle,
   * cuModuleUnload) waits for all work first, as drivers mostly do though CUDA does not promise it. If not, the memory is
   * gone during the call, poisoned, and handed out again first: work that still uses it finds whatever is there then.
   * Default true.
   */
  readonly freesWait?: boolean;
  /**
   * Instructions that a launch may do, all threads together. A kernel that has not ended then is stopped as by a watchdog,
   * with CUDA_ERROR_LAUNCH_TIMEOUT. Default 1e9; Infinity: none is stopped.
   */
  readonly maxInstructions?: number;
  /** Whether a device can access the memory of another one directly. Default: every one can. */
  readonly canAccessPeer?: (device: number, peer: number) => boolean;
  /** What turns PTX into kernels. Default: the interpreter of this package. */
  readonly loadPtx?: LoadPtx;
  /** Takes what kernels say, `printf` for stdout and a failed `assert` for stderr, when the host synchronizes. Default:
   * the process's own stdout and stderr. */
  readonly print?: Print;
}

/** The names of {@linkcode SimulateOptions}. */
export const simulateOptionNames: OptionNames<SimulateOptions> = {
  devices: true,
  seed: true,
  schedule: true,
  memory: true,
  poolsSupported: true,
  driverVersion: true,
  canAccessPeer: true,
  loadPtx: true,
  freesWait: true,
  maxInstructions: true,
  print: true,
};
