/**
 * Python arrays that support only the buffer protocol: `bytes`, `bytearray`, `memoryview`, `array.array`, `mmap`. All
 * functions here need the interpreter's lock.
 *
 * @module
 */
import { Py_buffer, PyBUF } from "../../bindings/cpython.ts";
import { ffiPort, littleEndian, NativeArena, readCString } from "../ffi/mod.ts";
import { ExchangeError } from "../order/mod.ts";
import { fromArrayInterface } from "../dlpack/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";
import { Handle } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";

/** Whether an object has the buffer protocol. */
export function hasBuffer(python: Interpreter, object: bigint): boolean {
  return python.api.buffers.PyObject_CheckBuffer(object) === 1;
}

// law python/importBuffer: python/import_buffer
/**
 * Imports a buffer as a view of the same memory. A memoryview holds it until the view is closed or collected: a
 * bytearray cannot be resized meanwhile.
 *
 * @param object borrowed
 * @throws {ExchangeError} if no dtype matches its elements, or its axes are indirect
 * @throws {PythonError} if its owner refuses to export it
 */
export function importBuffer(python: Interpreter, object: bigint): StridedMemoryView {
  const owner = new Handle(python, python.callHelper("memoryview", [python.retain(object)]));
  try {
    const source = { owner, __array_interface__: describeBuffer(python, owner.object) };
    return fromArrayInterface(source, StridedMemoryView[makeView], () => owner.close());
  } catch (error) {
    owner.close();
    throw error;
  }
}

/** A buffer, as NumPy's array interface describes it. */
export interface BufferDescription {
  readonly version: 3;
  readonly data: readonly [address: bigint, readonly: boolean];
  readonly typestr: string;
  readonly shape: readonly number[];
  /** In bytes; null if there are no gaps. */
  readonly strides: readonly number[] | null;
}

/** Describes a buffer. */
export function describeBuffer(python: Interpreter, object: bigint): BufferDescription {
  const { PyObject_GetBuffer, PyBuffer_Release } = python.api.buffers;
  using arena = new NativeArena();
  const buffer = arena.struct(Py_buffer);
  if (PyObject_GetBuffer(object, buffer.$address, PyBUF.FULL_RO) !== 0) python.check(0n);
  try {
    const { buf, ndim, itemsize, readonly, format, shape, strides, suboffsets } = buffer;
    if (suboffsets !== 0n && numbersAt(suboffsets, ndim).some((offset) => offset >= 0)) {
      throw new ExchangeError(`Cannot import ${python.show(object)}: its axes are indirect. Copy it first.`);
    }
    return {
      version: 3,
      data: [buf, readonly !== 0],
      typestr: typestrOf(format === 0n ? "B" : readCString(format), Number(itemsize)),
      shape: numbersAt(shape, ndim),
      strides: strides === 0n ? null : numbersAt(strides, ndim),
    };
  } finally {
    PyBuffer_Release(buffer.$address);
  }
}

/** An array of Py_ssize_t. */
function numbersAt(address: bigint, count: number): number[] {
  if (count === 0) return [];
  const view = new DataView(ffiPort().memory(address, 8 * count));
  return Array.from({ length: count }, (_, i) => Number(view.getBigInt64(8 * i, littleEndian)));
}

/** NumPy's kind letters for the format letters of the module struct. */
const kinds: Readonly<Record<string, string>> = {
  "?": "b",
  ...Object.fromEntries(Array.from("bhilqn", (letter) => [letter, "i"])),
  ...Object.fromEntries(Array.from("BHILQNPc", (letter) => [letter, "u"])), // a `c` is a byte
  ...Object.fromEntries(Array.from("efd", (letter) => [letter, "f"])),
  Zf: "c",
  Zd: "c",
};

// law python/typestrOf: python/import_buffer
/**
 * The type string for a format of the module struct: one element, whose size the buffer states.
 *
 * @throws {ExchangeError} for structs, strings, pairs and anything else that is not a number
 */
export function typestrOf(format: string, itemsize: number): string {
  const { order = "", letter = "" } = /^(?<order>[@=<>!]?)(?<letter>.*)$/s.exec(format)?.groups ?? {};
  const kind = kinds[letter];
  if (kind === undefined) {
    throw new ExchangeError(
      `Cannot import elements of the format ${JSON.stringify(format)}: expected one number, such as "f"`,
    );
  }
  const isBig = order === ">" || order === "!";
  return `${itemsize === 1 ? "|" : isBig ? ">" : "<"}${kind}${itemsize}`;
}
