/**
 * Creates streams of a device.
 *
 * @module
 */
import { internals } from "./stream_internals.ts";
import { CU_STREAM } from "../../bindings/cuda_types.ts";
import { checkCuda, observerOf } from "../driver/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import { checkBoolean, checkName, checkOptions, type OptionNames, show } from "../layout/mod.ts";
import type { CudaDevice } from "./device.ts";
import { CudaStream } from "./stream.ts";

/** Options of {@linkcode CudaDevice.createStream}. */
export interface StreamOptions {
  /** Whether the stream ignores the legacy default stream. Default true. */
  readonly nonBlocking?: boolean;
  /**
   * Which streams' pending work the GPU schedules first: lower numbers first, within `device.priorityRange`. Default 0,
   * the last.
   */
  readonly priority?: number;
  /** Its name in errors, reports and the console. Default: none. */
  readonly name?: string;
}

const streamOptionNames: OptionNames<StreamOptions> = { nonBlocking: true, priority: true, name: true };

// law device/createStream: device/device, memory/memory_programs, gpu/implied_order
/** See {@linkcode CudaDevice.createStream}. */
export function createStream(device: CudaDevice, options: StreamOptions): CudaStream {
  checkOptions(options, streamOptionNames);
  const { nonBlocking = true, priority, name } = options;
  checkBoolean("nonBlocking", nonBlocking);
  const flags = nonBlocking ? CU_STREAM.NON_BLOCKING : CU_STREAM.DEFAULT;
  if (name !== undefined) checkName(name);
  if (priority !== undefined) checkPriority(device, priority);
  const { driver } = device;
  const { cuStreamCreate, cuStreamCreateWithPriority } = driver.stream;
  const make = (retained: Disposable) => {
    const out = device.outParameter;
    if (priority === undefined) checkCuda(driver, "cuStreamCreate", cuStreamCreate(out.$address, flags));
    else {
      const code = cuStreamCreateWithPriority(out.$address, flags, priority);
      checkCuda(driver, "cuStreamCreateWithPriority", code);
    }
    const stream = CudaStream.adopt(device, out.value, (flags & CU_STREAM.NON_BLOCKING) !== 0, retained);
    if (name !== undefined) {
      stream[internals].name = name;
      observerOf(driver)?.nameStream(out.value, name);
    }
    return stream;
  };
  return device.retainFor((retained) => device.withContext(() => make(retained)));
}

/** See {@linkcode CudaDevice.priorityRange}. */
export function priorityRange(device: CudaDevice): [first: number, last: number] {
  using arena = new NativeArena();
  const [last, first] = [arena.out("i32"), arena.out("i32")];
  const { driver } = device;
  const ask = () => driver.context.cuCtxGetStreamPriorityRange(last.$address, first.$address);
  checkCuda(driver, "cuCtxGetStreamPriorityRange", device.withContext(ask));
  return [first.value, last.value];
}

function checkPriority(device: CudaDevice, priority: number): void {
  const [first, last] = priorityRange(device);
  if (Number.isInteger(priority) && priority >= first && priority <= last) return;
  const message =
    `Cannot create a stream of priority ${show(priority)}: expected an integer from ${first} (highest) to ` +
    last;
  throw typeof priority === "number" ? new RangeError(message) : new TypeError(message);
}
