/**
 * The simulated driver: every function in the symbol table, simulated or refused.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { cuda } from "../../bindings/cuda.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import {
  cause,
  type CudaDriver,
  type DriverGroups,
  innermost,
  type KernelObserver,
  observeKernels,
} from "../driver/mod.ts";
import { checkOptions, type OptionNames, showAs, showBytes } from "../layout/mod.ts";
import { captureCalls, graphCalls } from "./calls/capture.ts";
import { contextCalls } from "./calls/context.ts";
import { copyCalls, copyPitchedCalls } from "./calls/copy.ts";
import { deviceCalls } from "./calls/device.ts";
import { eventCalls } from "./calls/event.ts";
import { fillCalls, fillPitchedCalls } from "./calls/fill.ts";
import { hostMemoryCalls, managedMemoryCalls, memoryCalls } from "./calls/memory.ts";
import { kernelCalls } from "./calls/launch.ts";
import { moduleCalls } from "./calls/module.ts";
import { openingCalls } from "./calls/init.ts";
import { pointerCalls } from "./calls/pointer.ts";
import { poolCalls } from "./calls/pool.ts";
import { ipcCalls, poolSharingCalls } from "./calls/sharing.ts";
import { streamCalls } from "./calls/stream.ts";
import type { LoadPtx } from "./kernel_faults.ts";
import type { Print } from "./output.ts";
import type { Schedule } from "./scheduler.ts";
import { Simulator } from "./simulator.ts";
import { CallError, UnsimulatedError } from "./call.ts";

/** Options of `Cuda.simulate` and of `simulateDriver`. */
export interface SimulateOptions {
  /** Number of devices, at most 4864. Default 1. */
  readonly devices?: number;
  /** Determines every choice of the schedule: the same seed repeats a run. Default 0. */
  readonly seed?: number;
  /** How the order of work is chosen among all orders that CUDA allows. Default `random`. */
  readonly schedule?: Schedule;
  /** Bytes of memory per device. Default 8 GiB; host memory is used only for what is written. */
  readonly memory?: number;
  /** Whether the devices have memory pools. Default true. */
  readonly poolsSupported?: boolean;
  /**
   * The CUDA version that the driver reports, such as 13000 for 13.0. Functions introduced later are null. Default
   * 13050: NVRTC then generates PTX, which can be run, and not machine code.
   */
  readonly driverVersion?: number;
  /**
   * Whether calls that free or unmap memory immediately (cuMemFree, cuMemFreeHost, cuMemHostUnregister,
   * cuIpcCloseMemHandle, cuModuleUnload) wait for all work first, as drivers mostly do although CUDA does not guarantee
   * it. If not, the memory is freed during the call, poisoned, and handed out again first: work that still uses it
   * finds whatever is there then. Default true.
   */
  readonly freesWait?: boolean;
  /**
   * Instructions that a launch may execute, all threads together. A kernel that has not completed by then is stopped as
   * if by a watchdog, with CUDA_ERROR_LAUNCH_TIMEOUT. Default 1e9; Infinity: no kernel is stopped.
   */
  readonly maxInstructions?: number;
  /** Whether a device can access the memory of a peer directly. Default: every device can. */
  readonly canAccessPeer?: (device: number, peer: number) => boolean;
  /**
   * Compiles PTX to kernels. Default: this package's interpreter. For tests.
   *
   * @internal
   */
  readonly loadPtx?: LoadPtx;
  /**
   * Receives what kernels print, `printf` to stdout and a failed `assert` to stderr, when the host synchronizes.
   * Default: the process's own stdout and stderr.
   */
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

/** Any function of the table, whatever its parameters. */
type AnyCall = (...args: never[]) => number | void;

/** The CUDA version that introduced each function that is optional in the symbol table. */
const since: Readonly<Record<string, number>> = {
  cuLaunchKernelEx: 11060,
  cuCtxGetId: 12000,
  cuStreamGetId: 12000,
  cuLibraryLoadData: 12000,
  cuLibraryUnload: 12000,
  cuLibraryGetKernel: 12000,
  cuKernelGetFunction: 12000,
  cuFuncGetParamInfo: 12040,
  cuCtxRecordEvent: 12050,
  cuCtxWaitEvent: 12050,
  cuStreamGetDevice: 12080,
  cuMemGetDefaultMemPool: 13000,
  cuMemGetMemPool: 13000,
  cuMemSetMemPool: 13000,
};

/** Calls that work before cuInit(). */
const beforeInit: ReadonlySet<string> = new Set(["cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"]);

/** Live objects: a program that cleans up leaves every count at 0. */
export interface LiveObjects {
  /** Streams created and not destroyed. */
  readonly streams: number;
  /** Events created and not destroyed. */
  readonly events: number;
  /** Allocations of every kind that were not freed. */
  readonly allocations: number;
  /** Bytes in these allocations. */
  readonly bytes: number;
  /** Pools created and not destroyed. */
  readonly pools: number;
  /** Graphs and executable graphs. */
  readonly graphs: number;
  /** Live contexts, primary ones included. */
  readonly contexts: number;
  /** Work that has not run. */
  readonly queued: number;
}

const simulated = new WeakMap<CudaDriver, SimulatedDriver>();

/** A simulated driver, with controls and queries for tests. */
export class SimulatedDriver {
  /** The driver: an object with the functions of libcuda. */
  readonly driver: CudaDriver;
  readonly #simulator: Simulator;
  readonly #simulates: ReadonlySet<string>;
  readonly #unsupported = new Set<string>();
  readonly #calls = new Map<string, number>();
  /** Injected failures: the number of calls until each, and the code that it returns. */
  readonly #failures = new Map<string, { remaining: number; readonly code: number }[]>();

  /** Use {@linkcode simulateDriver}. */
  constructor(options: SimulateOptions) {
    checkOptions(options, simulateOptionNames);
    this.#simulator = new Simulator(options);
    const tables = callTables(this.#simulator);
    this.#simulates = new Set(Object.values(tables).flatMap((group) => Object.keys(group)));
    const groups = Object.entries<SymbolTable[string]>(cuda).map(([group, table]) => {
      const calls: Readonly<Record<string, AnyCall>> = tables[group] ?? {};
      return [group, Object.fromEntries(Object.keys(table).map((name) => [name, this.#bind(name, calls[name])]))];
    });
    // One function per symbol of the table, made from implementations that the table types.
    const functions = Object.fromEntries(groups) as unknown as DriverGroups;
    this.driver = {
      ...functions,
      [cause]: (code) => this.#causeOf(code),
      [observeKernels]: (observer, call) => this.#observe(observer, call),
    };
    simulated.set(this.driver, this);
  }

  /** The simulated driver behind a driver, checked or not; null if the driver is not simulated. */
  static of(driver: CudaDriver): SimulatedDriver | null {
    return simulated.get(innermost(driver)) ?? null;
  }

  /**
   * What was refused with CUDA_ERROR_NOT_SUPPORTED because it is not simulated, each once: names of calls, alone or
   * with the unsupported request, as in `cuMemPoolCreate: pools of host memory`.
   */
  get unsupported(): readonly string[] {
    return [...this.#unsupported];
  }

  /** Why loading PTX last failed, usually a {@linkcode PtxError}; null if it never did. */
  get lastPtxError(): unknown {
    return this.#simulator.lastPtxError;
  }

  /** Why a kernel last failed; null if none has. */
  get lastKernelError(): unknown {
    return this.#simulator.lastKernelError;
  }

  // law sim/SimulatedDriver.live: sim/graph_memory
  /** The objects that are still alive. */
  get live(): LiveObjects {
    const { streams, events, pools, graphs, graphExecs, graphMemory, contexts, space, scheduler } = this.#simulator;
    // Addresses of graph memory are known as long as the graph exists, and allocated only from a launch on.
    const allocated = [...space.allocations.values()].filter(({ address }) =>
      graphMemory.get(address)?.isLive !== false
    );
    return {
      streams: streams.size,
      events: events.size,
      allocations: allocated.length,
      bytes: allocated.reduce((sum, { bytes }) => sum + bytes, 0),
      pools: [...pools.values()].filter(({ isDefault }) => !isDefault).length + this.#simulator.lostPools,
      graphs: graphs.size + graphExecs.size,
      contexts: contexts.size,
      queued: scheduler.queued,
    };
  }

  /** Whether a function is simulated; if not, it returns CUDA_ERROR_NOT_SUPPORTED. */
  simulates(call: string): boolean {
    return this.#simulates.has(call);
  }

  /** How often a function has been called. */
  calls(call: string): number {
    return this.#calls.get(call) ?? 0;
  }

  /**
   * Makes a call fail: it does nothing and returns a code.
   *
   * @param call the function's name
   * @param nth which call from now on fails: 1 is the next one
   * @param code the `CUresult` that it returns
   * @throws {RangeError} for a call that the driver does not have, or a number less than 1
   */
  failNth(call: string, nth: number, code: number): void {
    if (!Object.values<SymbolTable[string]>(cuda).some((group) => Object.hasOwn(group, call))) {
      throw new RangeError(`Cannot make ${call} fail: the driver has no such function`);
    }
    if (!Number.isSafeInteger(nth) || nth < 1) throw new RangeError(`Cannot make call ${nth} fail: expected 1 or more`);
    this.#failures.getOrInsertComputed(call, () => []).push({ remaining: nth, code });
  }

  /** Runs all queued work. */
  runAll(): void {
    this.#simulator.scheduler.forceAll();
  }

  /**
   * Reads device memory as it is at this moment, regardless of queued work: no program could see this.
   *
   * @param address of the first byte
   * @param bytes number of bytes
   */
  peek(address: bigint, bytes: number): Uint8Array<ArrayBuffer> {
    const into = new Uint8Array(bytes);
    this.#simulator.space.read(address, into);
    return into;
  }

  /** Frees what the program did not: pinned and managed host memory. The driver must not be used afterwards. */
  close(): void {
    for (const context of [...this.#simulator.contexts.values()]) this.#simulator.destroy(context);
  }

  /** Frees what the program did not. */
  [Symbol.dispose](): void {
    this.close();
  }

  /** The cause of an error code that a call returned. */
  #causeOf(code: number): unknown {
    const isLoading = code === CUresult.CUDA_ERROR_INVALID_PTX || code === CUresult.CUDA_ERROR_INVALID_IMAGE;
    return (isLoading ? this.lastPtxError : this.lastKernelError) ?? undefined;
  }

  #bind(name: string, call: AnyCall | undefined): ((...args: never[]) => number) | null {
    if ((since[name] ?? 0) > this.#simulator.options.driverVersion) return null;
    return (...args) => {
      this.#calls.set(name, this.calls(name) + 1);
      const injected = this.#injected(name);
      if (injected !== null) return injected;
      if (call === undefined) {
        this.#unsupported.add(name);
        return CUresult.CUDA_ERROR_NOT_SUPPORTED;
      }
      return this.#perform(name, call, args);
    };
  }

  #perform(name: string, call: AnyCall, args: never[]): number {
    const simulator = this.#simulator;
    if (!simulator.initialized && !beforeInit.has(name)) return CUresult.CUDA_ERROR_NOT_INITIALIZED;
    if (simulator.inHostFunction) return CUresult.CUDA_ERROR_NOT_PERMITTED;
    try {
      simulator.scheduler.progress();
      return call(...args) ?? CUresult.CUDA_SUCCESS;
    } catch (error) {
      if (error instanceof UnsimulatedError) this.#unsupported.add(`${name}: ${error.what}`);
      if (error instanceof CallError) return error.code;
      throw error;
    }
  }

  #observe(observer: KernelObserver, call: () => number): number {
    this.#simulator.observer = observer;
    try {
      return call();
    } finally {
      this.#simulator.observer = null;
    }
  }

  #injected(name: string): number | null {
    const failures = this.#failures.get(name);
    if (failures === undefined) return null;
    for (const failure of failures) failure.remaining--;
    const at = failures.findIndex(({ remaining }) => remaining === 0);
    const [due] = at < 0 ? [] : failures.splice(at, 1);
    return due?.code ?? null;
  }

  static {
    showAs(SimulatedDriver, ({ live: { allocations, bytes, streams } }) => {
      const count = (number: number, what: string) => `${number} ${what}${number === 1 ? "" : "s"}`;
      return `with ${count(allocations, "allocation")} (${showBytes(bytes)}) and ${count(streams, "stream")}`;
    });
  }
}

/**
 * A CUDA driver without a GPU: streams hold back their work and run it in any order that CUDA allows, chosen by a seed.
 *
 * @example
 * ```ts ignore
 * const simulated = simulateDriver({ devices: 2, seed: 7, schedule: "latest" });
 * simulated.failNth("cuMemAllocAsync", 3, CUresult.CUDA_ERROR_OUT_OF_MEMORY);
 * ```
 *
 * @throws {RangeError} for a number of devices or bytes that is not an integer of at least 0, more than 4864 devices, a
 *   number of instructions that is not an integer of at least 1, or a seed that is not an integer
 * @throws {TypeError} for an option of another kind, and an unknown schedule
 */
export function simulateDriver(options: SimulateOptions = {}): SimulatedDriver {
  return new SimulatedDriver(options);
}

function callTables(simulator: Simulator): Readonly<Record<string, Readonly<Record<string, AnyCall>>>> {
  return {
    opening: openingCalls(simulator),
    device: deviceCalls(simulator),
    context: contextCalls(simulator),
    stream: streamCalls(simulator),
    event: eventCalls(simulator),
    memory: memoryCalls(simulator),
    hostMemory: hostMemoryCalls(simulator),
    managedMemory: managedMemoryCalls(simulator),
    pointer: pointerCalls(simulator),
    copy: copyCalls(simulator),
    copyPitched: copyPitchedCalls(simulator),
    fill: fillCalls(simulator),
    fillPitched: fillPitchedCalls(simulator),
    pool: poolCalls(simulator),
    poolSharing: poolSharingCalls(simulator),
    ipc: ipcCalls(simulator),
    capture: captureCalls(simulator),
    graph: graphCalls(simulator),
    module: moduleCalls(simulator),
    kernel: kernelCalls(simulator),
  };
}
