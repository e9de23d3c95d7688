/**
 * DLPack's table of C functions, which a Python type may have beside `__dlpack__`: an array is handed over without a call of
 * Python, and the producer says on which stream it works. All functions here need the interpreter's lock.
 *
 * @module
 */
import {
  DLDeviceType,
  DLPACK_CAPSULE,
  DLPACK_MAJOR_VERSION,
  DLPackExchangeAPI,
  DLPackExchangeAPIHeader,
} from "../../bindings/dlpack.ts";
import { NativeArena, type Out } from "../ffi/arena.ts";
import { libc } from "../ffi/libc.ts";
import { mapExecutable } from "../native/machine_code.ts";
import { ffiPort } from "../ffi/port.ts";
import { struct } from "../ffi/struct.ts";
import { cString } from "../ffi/c_string.ts";
import type { NativeFunction } from "../ffi/types.ts";
import { DType } from "../layout/mod.ts";
import { StridedMemoryView } from "../view/strided_memory_view.ts";
import { callReturnsZero } from "../native/call_pointer.ts";
import { callDeleter, type ImportOptions } from "../dlpack/tensor.ts";
import { ExchangeError } from "../order/exchange_error.ts";
import { consumerStream } from "../order/order.ts";
import { aarch64Call, currentStreamCode, x8664Call } from "./current_stream_thunk.ts";
import type { Interpreter } from "./interpreter.ts";
import { exchangeApiSource } from "./guest_source.ts";
import { mostDevices, workStreamsAddress } from "./current_work_streams.ts";

const attribute = cString("__dlpack_c_exchange_api__");

/** What types of masked arrays have, as NumPy's: neither DLPack nor the array interface of these tells of the mask. */
const membersOfMasked = ["filled", "mask"].map(cString);

/** `int current_work_stream(DLDeviceType, int32_t device_id, void **out)`. */
const currentStream = { args: ["i32", "i32", "ptr"], returns: "i32" } as const;

/** The address of our own `managed_tensor_from_py_object_no_sync`; 0n as long as there is none. */
let ownFromObject = 0n;

const offered = new WeakSet<Interpreter>();

/** Offers arrays of ours by a table. Where the system refuses machine code they are handed over by `__dlpack__` alone. */
export function offerExchangeApi(python: Interpreter): void {
  const { arch } = ffiPort().platform;
  if (arch === "other" || offered.has(python)) return;
  offered.add(python);
  const at = (name: string) => libc().loading.dlsym(python.library, cString(name));
  python.release(python.executeGuest(exchangeApiSource));
  const encode = arch === "aarch64" ? aarch64Call : x8664Call;
  const call = (callable: "tensor_from_object" | "object_from_tensor") =>
    encode({
      PyLong_FromVoidPtr: at("PyLong_FromVoidPtr"),
      PyObject_CallFunctionObjArgs: at("PyObject_CallFunctionObjArgs"),
      PyLong_AsVoidPtr: at("PyLong_AsVoidPtr"),
      Py_DecRef: at("Py_DecRef"),
      callable: python.helper(callable),
    });
  const words = workStreamsAddress();
  const current = currentStreamCode[arch](words, mostDevices);
  const [fromObject, toObject, stream] =
    mapExecutable([call("tensor_from_object"), call("object_from_tensor"), current]) ?? [];
  if (fromObject === undefined || toObject === undefined || stream === undefined) return;
  const text = (value: string | null) => value === null ? python.retain(python.singletons.none) : python.text(value);
  const types = DType.all().map(({ name, dlpack: { code, bits, padded }, typestr, arrowFormat }) =>
    python.tuple([
      python.text(name),
      python.integer(BigInt(code)),
      python.integer(BigInt(bits)),
      python.retain(padded ? python.singletons.true : python.singletons.false),
      text(typestr),
      text(arrowFormat),
    ])
  );
  const numbers = [fromObject, toObject, stream, words, BigInt(mostDevices)].map((number) => python.integer(number));
  python.release(python.callHelper("offer_exchange_api", [python.tuple(types), ...numbers]));
  ownFromObject = fromObject;
}

/** What is used of a table. */
interface ExchangeApi {
  /** Whether the type is one of tensors that have more to them than DLPack can say, as torch's: its table does not ask. */
  readonly mustAsk: boolean;
  /** Address of `managed_tensor_from_py_object_no_sync`. */
  readonly fromObject: bigint;
  readonly currentStream: NativeFunction<typeof currentStream>;
}

/** The tables of types that arrays have had, null for types without one. Masked arrays have none to give. */
class ExchangeApis {
  readonly out: Out<"ptr"> = new NativeArena().out("ptr"); // there is one interpreter in a process
  readonly #byType = new Map<bigint, ExchangeApi | null>();

  /** The table of an object's type. A type that is known is held for ever, so that no other gets its address. */
  of(python: Interpreter, object: bigint): ExchangeApi | null {
    const type = python.api.objects.PyObject_Type(object);
    const known = this.#byType.get(type);
    if (known !== undefined) {
      python.release(type);
      return known;
    }
    let isKept = false;
    try {
      const found = findExchangeApi(python, type);
      isKept = this.#byType.size < mostTypes;
      if (isKept) this.#byType.set(type, found);
      return found;
    } finally {
      if (!isKept) python.release(type);
    }
  }
}

/** A program that makes types without end is asked for each again. */
const mostTypes = 256;

const exchangeApis = new WeakMap<Interpreter, ExchangeApis>();

function findExchangeApi(python: Interpreter, type: bigint): ExchangeApi | null {
  const { objects, capsules } = python.api;
  const has = (name: Uint8Array<ArrayBuffer>) => objects.PyObject_HasAttrString(type, name) === 1;
  if (membersOfMasked.every(has)) {
    throw new ExchangeError(
      "Cannot import a masked array: a view has no place for its mask. Fill the masked elements in first, with " +
        "array.filled(0), or take array.data and array.mask as two arrays",
    );
  }
  if (!has(attribute)) return null;
  const capsule = python.check(objects.PyObject_GetAttrString(type, attribute));
  try {
    if (capsules.PyCapsule_IsValid(capsule, cString(DLPACK_CAPSULE.EXCHANGE_API)) !== 1) return null;
    const mustAsk = has(cString("is_conj"));
    return readExchangeApi(capsules.PyCapsule_GetPointer(capsule, cString(DLPACK_CAPSULE.EXCHANGE_API)), mustAsk);
  } finally {
    python.release(capsule);
  }
}

/** The newest table of our major version, of those that a type has one after the other. They live as long as the process. */
function readExchangeApi(newest: bigint, mustAsk: boolean): ExchangeApi | null {
  for (let address = newest; address !== 0n;) {
    const { version, prev_api } = struct(DLPackExchangeAPIHeader).at(address);
    if (version.major === DLPACK_MAJOR_VERSION) {
      const { managed_tensor_from_py_object_no_sync, current_work_stream } = struct(DLPackExchangeAPI).at(address);
      if (managed_tensor_from_py_object_no_sync === 0n || current_work_stream === 0n) return null;
      // An array of ours comes back by __dlpack__, which orders our stream after its home without another between them.
      if (managed_tensor_from_py_object_no_sync === ownFromObject) return null;
      return {
        mustAsk,
        fromObject: managed_tensor_from_py_object_no_sync,
        currentStream: ffiPort().functionAt(current_work_stream, currentStream),
      };
    }
    address = prev_api;
  }
  return null;
}

/**
 * Takes an array by its type's table, as a view that owns it.
 *
 * @param object borrowed
 * @returns null if the type has no table that we can read, or the array is more than its table would say
 * @throws {PythonError} if its owner refuses to hand it over
 * @throws {ExchangeError} if it cannot be taken as it is
 */
export function importByExchangeApi(
  python: Interpreter,
  object: bigint,
  options: ImportOptions,
): StridedMemoryView | null {
  let known = exchangeApis.get(python);
  if (known === undefined) exchangeApis.set(python, known = new ExchangeApis());
  const table = known.of(python, object);
  if (table === null || (table.mustAsk && !isPlain(python, object))) return null;
  const { out } = known;
  if (!callReturnsZero(table.fromObject, object, out.$address)) python.check(0n);
  const view = importTensor(out.value, options);
  try {
    orderAfterProducer(python, table, out, view, options);
    return view;
  } catch (error) {
    view.close();
    throw error;
  }
}

function importTensor(managedTensorVersioned: bigint, options: ImportOptions): StridedMemoryView {
  try {
    return StridedMemoryView.fromDlpack({ managedTensorVersioned }, options);
  } catch (error) {
    callDeleter(managedTensorVersioned, true); // made for this import alone
    throw error;
  }
}

/** Whether a tensor has no gradient, and is what its memory says. `__dlpack__` refuses the others, in words. */
function isPlain(python: Interpreter, object: bigint): boolean {
  const answer = python.callHelper("is_plain", [python.retain(object)]);
  python.release(answer); // True and False live for ever
  return answer === python.singletons.true;
}

/** Nobody has ordered anything yet: our stream waits for the one that the producer works on. */
function orderAfterProducer(
  python: Interpreter,
  table: ExchangeApi,
  out: Out<"ptr">,
  { device }: StridedMemoryView,
  { stream }: ImportOptions,
): void {
  if (device === null || stream === null) return;
  python.checkInt(table.currentStream(DLDeviceType.kDLCUDA, device.ordinal, out.$address));
  (stream ?? device.defaultStream).wait(consumerStream(device, out.value || 1n));
}
