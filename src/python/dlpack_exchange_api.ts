/**
 * DLPack's exchange API: a table of C functions that a Python type may have beside `__dlpack__`. It exports an array
 * without a call of Python, and reports the producer's work stream. All functions here need the interpreter's lock.
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
import { cString, ffiPort, NativeArena, type NativeFunction, type Out, struct } from "../ffi/mod.ts";
import { callReturnsZero, mapExecutable } from "../native/mod.ts";
import { DType } from "../layout/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { consumerStream, ExchangeError, orderStreams } from "../order/mod.ts";
import { currentStreamCode } from "./current_stream_thunk.ts";
import type { Interpreter } from "./interpreter.ts";
import { importTensor } from "./import_tensor.ts";
import { aarch64Call, x8664Call } from "./python_call_thunk.ts";
import { exchangeApiSource } from "./guest_source.ts";
import { maxDevices, workStreamsAddress } from "./current_work_streams.ts";

const attribute = cString("__dlpack_c_exchange_api__");

/**
 * Members of masked array types, such as NumPy's: neither their DLPack nor their array interface mentions the mask.
 */
const membersOfMasked = ["filled", "mask"].map(cString);

/** `int current_work_stream(DLDeviceType, int32_t device_id, void **out)`. */
const currentStream = { args: ["i32", "i32", "ptr"], returns: "i32" } as const;

/** The address of our own `managed_tensor_from_py_object_no_sync`; 0n before it is made. */
let ownFromObject = 0n;

const offered = new WeakSet<Interpreter>();

/** Gives our array type an exchange API. Where the system refuses machine code, it has only `__dlpack__`. */
export function offerExchangeApi(python: Interpreter): void {
  const { arch } = ffiPort().platform;
  if (arch === "other" || offered.has(python)) return;
  offered.add(python);
  python.release(python.executeGuest(exchangeApiSource));
  const encode = arch === "aarch64" ? aarch64Call : x8664Call;
  const call = (callable: "tensor_from_object" | "object_from_tensor") =>
    encode({
      PyLong_FromVoidPtr: python.functionAt("PyLong_FromVoidPtr"),
      PyObject_CallFunctionObjArgs: python.functionAt("PyObject_CallFunctionObjArgs"),
      PyLong_AsVoidPtr: python.functionAt("PyLong_AsVoidPtr"),
      Py_DecRef: python.functionAt("Py_DecRef"),
      callable: python.helper(callable),
    });
  const words = workStreamsAddress();
  const current = currentStreamCode[arch](words, maxDevices);
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
  const numbers = [fromObject, toObject, stream, words, BigInt(maxDevices)].map((number) => python.integer(number));
  python.release(python.callHelper("offer_exchange_api", [python.tuple(types), ...numbers]));
  ownFromObject = fromObject;
}

/** The parts of a type's exchange API that are used. */
interface ExchangeApi {
  /**
   * Whether tensors of the type may have state that DLPack cannot express, as torch's do: their exchange API does not
   * check.
   */
  readonly mustAsk: boolean;
  /** Address of `managed_tensor_from_py_object_no_sync`. */
  readonly fromObject: bigint;
  readonly currentStream: NativeFunction<typeof currentStream>;
}

/** The exchange APIs of the array types seen so far; null for types without one. */
class ExchangeApis {
  readonly out: Out<"ptr"> = new NativeArena().out("ptr"); // never freed: a process has one interpreter
  readonly #byType = new Map<bigint, ExchangeApi | null>();

  /** The exchange API of an object's type. A known type is kept forever, so that its address is never reused. */
  of(python: Interpreter, object: bigint): ExchangeApi | null {
    const type = python.api.objects.PyObject_Type(object);
    const known = this.#byType.get(type);
    if (known !== undefined) {
      python.release(type);
      return known;
    }
    let isRetained = false;
    try {
      const found = findExchangeApi(python, type);
      isRetained = this.#byType.size < maxTypes;
      if (isRetained) this.#byType.set(type, found);
      return found;
    } finally {
      if (!isRetained) python.release(type);
    }
  }
}

/** How many types are remembered. In a program that keeps making types, the rest are looked up each time. */
const maxTypes = 256;

const exchangeApis = new WeakMap<Interpreter, ExchangeApis>();

// law python/findExchangeApi: python/dlpack_exchange_api, python/export_array
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
    return readExchangeApi(capsules.PyCapsule_GetPointer(capsule, capsules.PyCapsule_GetName(capsule)), mustAsk);
  } finally {
    python.release(capsule);
  }
}

// law python/readExchangeApi: python/dlpack_exchange_api
/** The newest API of our major version in a type's linked list. They live as long as the process. */
function readExchangeApi(newest: bigint, mustAsk: boolean): ExchangeApi | null {
  for (let address = newest; address !== 0n;) {
    const { version, prev_api } = struct(DLPackExchangeAPIHeader).at(address);
    if (version.major === DLPACK_MAJOR_VERSION) {
      const { managed_tensor_from_py_object_no_sync, current_work_stream } = struct(DLPackExchangeAPI).at(address);
      if (managed_tensor_from_py_object_no_sync === 0n || current_work_stream === 0n) return null;
      // Our own arrays come back through __dlpack__, which makes our stream wait for their home stream, with no third
      // stream in between.
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

// law python/importByExchangeApi: python/dlpack_exchange_api
/**
 * Imports an array by its type's exchange API, as a view that owns it.
 *
 * @param object borrowed
 * @returns null if the type has no exchange API that we can read, or the array has state that DLPack cannot express
 * @throws {PythonError} if its owner refuses to hand it over
 * @throws {ExchangeError} if it cannot be imported as it is
 */
export function importByExchangeApi(
  python: Interpreter,
  object: bigint,
  options: ImportOptions,
): StridedMemoryView | null {
  const known = exchangeApis.getOrInsertComputed(python, () => new ExchangeApis());
  const exchangeApi = known.of(python, object);
  if (exchangeApi === null || (exchangeApi.mustAsk && !isPlain(python, object))) return null;
  const { out } = known;
  if (!callReturnsZero(exchangeApi.fromObject, object, out.$address)) python.check(0n);
  const view = importTensor(out.value, options);
  try {
    orderAfterProducer(python, exchangeApi, out, view, options);
    return view;
  } catch (error) {
    view.close();
    throw error;
  }
}

/**
 * Whether a tensor has no gradient, and its memory holds its elements. `__dlpack__` refuses all others and reports why.
 */
function isPlain(python: Interpreter, object: bigint): boolean {
  const answer = python.callHelper("is_plain", [python.retain(object)]);
  python.release(answer); // True and False live forever
  return answer === python.singletons.true;
}

// law python/orderAfterProducer: python/dlpack_exchange_api
/** The C functions order nothing: our stream waits for the producer's work stream. */
function orderAfterProducer(
  python: Interpreter,
  exchangeApi: ExchangeApi,
  out: Out<"ptr">,
  { device }: StridedMemoryView,
  { stream }: ImportOptions,
): void {
  if (device === null || stream === null) return;
  python.checkInt(exchangeApi.currentStream(DLDeviceType.kDLCUDA, device.ordinal, out.$address));
  orderStreams(consumerStream(device, out.value || 1n), stream ?? device.defaultStream);
}
