/**
 * Plans of DLPack exports: a pure function of the array and the consumer's request.
 *
 * @module
 */
import { DLDeviceType, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION } from "../../bindings/dlpack.ts";
import { type CudaDevice, CudaStream } from "../device/mod.ts";
import { checkOptions, type DType, show } from "../layout/mod.ts";
import type { MemoryBuffer } from "../memory/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { dlpackDevice, toDlpackOptionNames, type ToDlpackOptions } from "./tensor.ts";

/** The properties of an array on which a plan depends. */
interface PlannedArray {
  readonly buffer: Pick<MemoryBuffer, "device" | "stream" | "endsWithWorker">;
  readonly dtype: DType;
  readonly readonly: boolean;
}

/** How an array is exported. */
export interface ExportPlan {
  /** Which struct the consumer gets: the versioned one, with flags, or that of DLPack 0.x. */
  readonly isVersioned: boolean;
  /** Where the array is copied to; null: exported in place. */
  readonly copy: { readonly to: "host" } | { readonly to: CudaDevice; readonly home: CudaStream } | null;
  /** Whether the host waits for the home stream of page-locked memory. */
  readonly hostWaits: boolean;
  /**
   * The stream that waits for the producer's enqueued work; null: none waits, or the exported memory is on the host.
   */
  readonly consumer: CudaStream | bigint | null;
}

// law dlpack/planExport: dlpack/plan_export
/**
 * Plans the export of an array.
 *
 * @throws {ExchangeError} if the consumer wants the old struct, which cannot express that an array is read-only or its
 *   elements padded, if host memory is to be ordered on a stream, or if a required copy is not allowed
 * @throws {TypeError} for unknown options or options of the wrong type
 */
export function planExport(array: PlannedArray, options: ToDlpackOptions): ExportPlan {
  checkRequest(options);
  const { dtype, buffer } = array;
  const copy = options.copy ?? null;
  const isVersioned = (options.maxVersion ?? newest)[0] >= 1;
  if (!isVersioned && dtype.dlpack.padded) {
    throw new ExchangeError(
      `Cannot export ${dtype.name} to a consumer of DLPack 0.x: the old struct cannot say that each element has a ` +
        "byte of its own. Export the bytes as uint8, or let the consumer pass a version of at least [1, 0].",
    );
  }
  const isElsewhere = isWantedElsewhere(array, options.dlDevice);
  checkStream(array, options.stream, isElsewhere);
  if (isElsewhere && copy === false) {
    const [here, there] = [dlpackDevice(array), options.dlDevice].map((device) => `(${device?.join(", ")})`);
    throw new ExchangeError(
      `Cannot export from device ${here} to device ${there} without a copy: let the consumer allow it`,
    );
  }
  const { endsWithWorker } = buffer;
  if (endsWithWorker && copy === false) {
    throw new ExchangeError(
      "Cannot export the memory of a typed array from a Worker without a copy: it is freed when the Worker ends. Let " +
        "the consumer allow a copy, or allocate with HostMemoryResource.",
    );
  }
  const isCopied = isElsewhere || endsWithWorker || copy === true;
  if (array.readonly && !isVersioned && !isCopied) {
    throw new ExchangeError(
      "Cannot export a read-only view to a consumer of DLPack 0.x: the old struct cannot say that it is read-only. " +
        "Ask for a copy, or let the consumer pass a version of at least [1, 0].",
    );
  }
  const planned = isCopied ? planCopy(array, options) : null;
  const { stream } = options;
  const isOnHost = planned === null ? buffer.device === null : planned.to === "host";
  const hostWaits = buffer.device === null && stream === undefined;
  const consumer = isOnHost || stream === null || stream === -1n ? null : stream ?? DEFAULT_STREAM;
  if (planned !== null || consumer !== null || !isVersioned) return { isVersioned, copy: planned, hostWaits, consumer };
  return hostWaits ? afterTheHost : atOnce;
}

/** The plans of most exports, made once. */
const atOnce: ExportPlan = { isVersioned: true, copy: null, hostWaits: false, consumer: null };
const afterTheHost: ExportPlan = { isVersioned: true, copy: null, hostWaits: true, consumer: null };

/** DLPack's number for the legacy default stream, which a consumer uses if it names no stream. */
const DEFAULT_STREAM = 1n;

/** The version of the struct written, unless the consumer wants an older one. */
export const newest: readonly [major: number, minor: number] = [DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION];

function isPair(value: readonly number[]): boolean {
  return Array.isArray(value) && value.length === 2 && Number.isInteger(value[0]) && Number.isInteger(value[1]);
}

// law dlpack/checkRequest: dlpack/plan_export
/** Checks the options: untyped consumers pass invalid ones by mistake. */
function checkRequest(options: ToDlpackOptions): void {
  checkOptions(options, toDlpackOptionNames);
  const { maxVersion, copy, dlDevice } = options;
  if (maxVersion !== undefined && maxVersion !== null && !isPair(maxVersion)) {
    throw new TypeError(`Cannot export for version ${show(maxVersion)} of DLPack: expected [major, minor]`);
  }
  if (copy !== undefined && copy !== null && typeof copy !== "boolean") {
    throw new TypeError(`Cannot export with copy: ${show(copy)}: expected true, false or null`);
  }
  if (dlDevice !== undefined && dlDevice !== null && !isPair(dlDevice)) {
    throw new TypeError(`Cannot export to device ${show(dlDevice)}: expected [type, number], as [1, 0] for the host`);
  }
}

// law dlpack/isWantedElsewhere: dlpack/plan_export
/** Whether a consumer wants an array on another device. */
function isWantedElsewhere(array: PlannedArray, wanted: ToDlpackOptions["dlDevice"]): boolean {
  if (wanted === undefined || wanted === null) return false;
  const [type, id] = dlpackDevice(array);
  return wanted[0] !== type || wanted[1] !== id;
}

// law dlpack/checkStream: dlpack/plan_export
/** Host memory that stays on the host has no stream; otherwise any stream but 0 is allowed. */
function checkStream({ buffer }: PlannedArray, stream: ToDlpackOptions["stream"], isElsewhere: boolean): void {
  if (stream === undefined || stream === null || stream === -1n) return;
  if (typeof stream !== "bigint" && !(stream instanceof CudaStream)) {
    throw new TypeError(
      `Cannot order a consumer on the stream ${show(stream)}: expected a CudaStream, its handle as a bigint, or null`,
    );
  }
  if (buffer.device === null && !isElsewhere) {
    throw new ExchangeError("Cannot order host memory on a stream: pass no stream for a view of host memory");
  }
  if (stream === 0n) throw new ExchangeError("Cannot use stream 0: DLPack forbids it. Pass 1n for the default stream.");
}

// law dlpack/planCopy: dlpack/plan_export
/** @throws {ExchangeError} for an unreachable device */
function planCopy(array: PlannedArray, { dlDevice, stream }: ToDlpackOptions): ExportPlan["copy"] {
  const [type, id] = dlDevice ?? dlpackDevice(array);
  if (type === DLDeviceType.kDLCPU && id === 0) return { to: "host" };
  if (type === DLDeviceType.kDLCUDA) {
    const to = findDevice(array, id, stream);
    return { to, home: homeOn(to, array, stream) };
  }
  throw new ExchangeError(
    `Cannot export to device ${id} of DLPack type ${type}: expected the host (1, 0) or a CUDA device (2, n)`,
  );
}

// law dlpack/findDevice: dlpack/plan_export
function findDevice({ buffer: { device } }: PlannedArray, id: number, stream: ToDlpackOptions["stream"]): CudaDevice {
  const known = device ?? (stream instanceof CudaStream ? stream.device : null);
  if (known === null) {
    throw new ExchangeError(
      `Cannot export host memory to CUDA device ${id}: pass a CudaStream of that device as stream, or copy it ` +
        "there first",
    );
  }
  const found = known.ordinal === id ? known : known.siblings[id];
  if (found !== undefined) return found;
  throw new ExchangeError(`Cannot export to CUDA device ${id}: expected 0 to ${known.siblings.length - 1}`);
}

// law dlpack/homeOn: dlpack/plan_export
/** The home stream of a copy: one of ours, because a consumer may destroy its stream at any time. */
function homeOn(device: CudaDevice, { buffer }: PlannedArray, stream: ToDlpackOptions["stream"]): CudaStream {
  if (buffer.stream?.device === device) return buffer.stream;
  return stream instanceof CudaStream && stream.device === device ? stream : device.defaultStream;
}
