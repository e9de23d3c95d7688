/**
 * Creates events of a device, and opens events of other processes.
 *
 * @module
 */
import { CU_EVENT } from "../../bindings/cuda_types.ts";
import { checkCuda } from "../driver/mod.ts";
import { checkBoolean, checkOptions, type OptionNames } from "../layout/mod.ts";
import type { CudaDevice } from "./device.ts";
import { CudaEvent } from "./event.ts";
import { registerFinalizer } from "./finalizer.ts";
import { type IpcHandle, readHandle } from "./ipc_handle.ts";

/** Options of {@linkcode CudaDevice.createEvent}. */
export interface EventOptions {
  /** Whether the event measures time. Default false: ordering is cheaper without timing. */
  readonly timing?: boolean;
  /** Whether the event can be shared with other processes; it then measures no time. Default false. */
  readonly interprocess?: boolean;
}

const eventOptionNames: OptionNames<EventOptions> = { timing: true, interprocess: true };

// law device/createEvent: device/device, memory/memory_programs
/**
 * An event that the caller always closes, or registers to be closed when dropped: see {@linkcode CudaDevice.makeEvent}.
 */
export function createEvent(device: CudaDevice, options: EventOptions): CudaEvent {
  checkOptions(options, eventOptionNames);
  const { timing = false, interprocess = false } = options;
  checkBoolean("timing", timing);
  checkBoolean("interprocess", interprocess);
  if (timing && interprocess) {
    throw new TypeError("Cannot create an event with both timing and interprocess: choose one of the two");
  }
  const flags = (timing ? CU_EVENT.DEFAULT : CU_EVENT.DISABLE_TIMING) | (interprocess ? CU_EVENT.INTERPROCESS : 0);
  const { driver } = device;
  return device.withContext(() => {
    const out = device.outParameter;
    checkCuda(driver, "cuEventCreate", driver.event.cuEventCreate(out.$address, flags));
    return new CudaEvent(device, out.value, interprocess, !timing);
  });
}

const onlyElsewhere = "A handle is opened by another process than the one that made it, while the event is open there";

/** See {@linkcode CudaDevice.importEvent}. */
export function importEvent(device: CudaDevice, handle: IpcHandle): CudaEvent {
  const bytes = readHandle(handle, ["event"], device);
  const { driver } = device;
  return device.withContext(() => {
    const out = device.outParameter;
    const code = driver.ipc.cuIpcOpenEventHandle(out.$address, bytes);
    checkCuda(driver, "cuIpcOpenEventHandle", code, onlyElsewhere);
    const event = new CudaEvent(device, out.value, true, true);
    event[registerFinalizer]();
    return event;
  });
}
