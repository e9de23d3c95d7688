/**
 * The memory for calls of Python by machine code: their arguments and their results.
 *
 * @module
 */
import { ffiPort, type HandleArgument, layoutOf, NativeArena } from "../ffi/mod.ts";
import { assembleHere, runCode } from "../native/mod.ts";
import { blockConstants } from "./block_constants.ts";
import {
  attributeProgram,
  call_block,
  callProgram,
  made_argument,
  made_entry,
  maxArguments,
  maxEntries,
  offsets,
  Status,
  textBytes,
} from "./call_programs.ts";
import { type ExpectedAttribute, nothingExpected } from "./expected_attribute.ts";
import { handleOf } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import { becomesDict } from "./to_python.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/** The code of a program, for callers without the lock and for callers that hold it. */
export interface NativeProgram {
  readonly locking: HandleArgument;
  readonly locked: HandleArgument;
}

/** The programs, and the contents common to all blocks. */
export interface NativePrograms {
  readonly call: NativeProgram;
  readonly framedCall: NativeProgram;
  readonly attribute: NativeProgram;
  /** The initial words of every block. */
  readonly words: BigUint64Array<ArrayBuffer>;
  /** Functions that make arguments. */
  readonly makers: Makers;
  /** Python functions that make a call from their own frame. */
  readonly frames: Readonly<Record<"one" | "several" | "named", Halves>>;
}

type Makers = Readonly<Record<"float" | "int" | "text" | "again" | "dict", Halves>>;

/** An address in two halves, which typed arrays store without conversion. */
interface Halves {
  readonly low: number;
  readonly high: number;
}

function halves(address: bigint): Halves {
  return { low: Number(address & 0xffff_ffffn), high: Number(address >> 32n) };
}

const nowhere = halves(0n);

/**
 * Assembles the programs.
 *
 * @param typeAt offset of the type in an object
 * @returns null if the system refuses executable memory, or a function is missing: before Python 3.10
 */
export function nativePrograms(python: Interpreter, typeAt: number): NativePrograms | null {
  const again = python.functionAt("Py_NewRef");
  if (again === 0n) return null;
  const programs = [true, false].flatMap((locks) => [
    callProgram(typeAt, locks, false),
    callProgram(typeAt, locks, true),
    attributeProgram(typeAt, locks),
  ]);
  const code = assembleHere(programs)?.map((address) => ffiPort().handle(address));
  if (code === undefined) return null;
  const program = (i: number): NativeProgram => ({ locking: code[i] ?? 0n, locked: code[3 + i] ?? 0n });
  const known = {
    ...blockConstants(python, call_block),
    functionCell: python.helper("function_cell"),
    argumentsCell: python.helper("arguments_cell"),
    keywordsCell: python.helper("keywords_cell"),
  };
  const words = new BigUint64Array(layoutOf(call_block).size / 8);
  for (const [field, value] of Object.entries(known)) {
    words[offsets[field as keyof typeof offsets] / 8] = BigInt.asUintN(64, value); // a field, as above
  }
  return {
    call: program(0),
    framedCall: program(1),
    attribute: program(2),
    words,
    makers: {
      float: halves(python.functionAt("PyFloat_FromDouble")),
      int: halves(python.functionAt("PyLong_FromDouble")),
      text: halves(python.functionAt("PyUnicode_FromStringAndSize")),
      again: halves(again),
      dict: halves(python.functionAt("PyDict_New")),
    },
    frames: {
      one: halves(python.helper("call_framed_with_one")),
      several: halves(python.helper("call_framed")),
      named: halves(python.helper("call_framed_by_name")),
    },
  };
}

/** Offset of a field in 64-bit words; twice that in 32-bit words. */
function wordOf(field: keyof typeof offsets): number {
  return offsets[field] / 8;
}

const countWord = wordOf("count");
const positionalWord = wordOf("positional");
const flagWord = wordOf("countAndFlag");
const frameWord = wordOf("frame");
const asTupleWord = wordOf("asTuple");
const expectedWord = wordOf("minusObject");
const adoptsWord = wordOf("adopts");
const statusWord = wordOf("status");
const stateWord = wordOf("state");
const keepsLockWord = wordOf("keepsLock");
const leftWord = wordOf("left");
const valueWord = wordOf("value");
const objectsWord = wordOf("objects");
const madeWord = wordOf("made");
const madeWords = layoutOf(made_argument).size / 8;
const byNameWord = wordOf("byName");
const entryCountWord = wordOf("entryCount");
const entriesWord = wordOf("entries");
const entryWords = layoutOf(made_entry).size / 8;
const keyWord = layoutOf(made_entry).offsets.key / 8;
const dictWord = layoutOf(made_entry).offsets.dict / 8;

/** Whether a program can make the arguments of a call, and how it must call. */
export const Taken = {
  no: 0,
  yes: 1,
  /** From a Python frame: a Python object is among them, which may be called and inspect its caller's frame. */
  framed: 2,
} as const;

/** One of {@linkcode Taken}. */
export type Taken = typeof Taken[keyof typeof Taken];

/** Memory for one call at a time. */
export class NativeCalls {
  readonly #programs: NativePrograms;
  readonly #memory: HandleArgument;
  readonly #words: BigUint64Array<ArrayBuffer>;
  /** For single bigints: in Bun, accessing a bigint array takes 11 to 17 ns. */
  readonly #view: DataView<ArrayBuffer>;
  readonly #doubles: Float64Array<ArrayBuffer>;
  readonly #ints: Int32Array<ArrayBuffer>;
  readonly #text: Uint8Array<ArrayBuffer>;
  readonly #textAt: number;
  /** Where each argument is stored once made. In halves: splitting a large number takes 10 ns in Bun. */
  readonly #places: readonly Halves[];
  readonly #singletons: Readonly<Record<"none" | "true" | "false", Halves>>;
  readonly #python: Interpreter;
  #expected: ExpectedAttribute = nothingExpected;
  /** Bytes of text memory, and dict entries, that the arguments taken so far have used. */
  #usedText = 0;
  #entries = 0;
  /** Whether a Python object is among them. */
  #hasObjects = false;

  constructor(python: Interpreter, programs: NativePrograms) {
    const { size } = layoutOf(call_block);
    const { address, bytes } = new NativeArena().bytes(size); // never freed: a process has one interpreter
    const { buffer, byteOffset } = bytes;
    this.#python = python;
    this.#programs = programs;
    this.#memory = ffiPort().handle(address);
    this.#words = new BigUint64Array(buffer, byteOffset, size / 8);
    this.#view = new DataView(buffer, byteOffset, size);
    this.#doubles = new Float64Array(buffer, byteOffset, size / 8);
    this.#ints = new Int32Array(buffer, byteOffset, size / 4);
    this.#text = new Uint8Array(buffer, byteOffset + offsets.text, textBytes);
    this.#textAt = Number(address) + offsets.text;
    this.#places = Array.from({ length: maxArguments }, (_, i) => halves(address + BigInt(offsets.objects + 8 * i)));
    this.#words.set(programs.words);
    this.#ints[2 * flagWord + 1] = 1 << 31; // PY_VECTORCALL_ARGUMENTS_OFFSET
    const { none, true: yes, false: no } = python.singletons;
    this.#singletons = { none: halves(none), true: halves(yes), false: halves(no) };
  }

  // law python/NativeCalls.take: python/native_calls
  /**
   * Writes the arguments of a call.
   *
   * @returns false unless all are numbers, short texts, booleans, null or undefined
   */
  take(values: readonly unknown[]): boolean {
    const count = values.length;
    if (count > maxArguments) return false;
    this.#usedText = 0;
    if (this.#takeSimple(values, 0, madeWord, madeWords) < count) return false;
    this.#setCounts(count, count, 0);
    return true;
  }

  // law python/NativeCalls.takeObjects: python/native_calls, python/closed_in_use
  /**
   * Writes arguments some of which are Python objects, or plain objects of values that programs can make.
   *
   * @param named the keyword arguments, or null
   */
  takeObjects(values: readonly unknown[], named: Readonly<Record<string, unknown>> | null): Taken {
    const { turn } = this.#python;
    const count = values.length;
    const made = named === null ? count : count + 1;
    if (made > maxArguments) return Taken.no;
    this.#usedText = 0;
    this.#entries = 0;
    this.#hasObjects = false;
    for (let i = 0; (i = this.#takeSimple(values, i, madeWord, madeWords)) < count; i++) {
      const value = values[i];
      if (!this.#takeObject(madeWord + i * madeWords, value) && !this.#takeDict(i, value)) return Taken.no;
    }
    if (named !== null && !this.#takeEntries(count, named)) return Taken.no;
    if (this.#python.turn !== turn) return Taken.no; // a getter called Python, with arguments in this memory
    this.#setCounts(made, count, this.#entries);
    return this.#hasObjects ? Taken.framed : Taken.yes;
  }

  #setCounts(made: number, positional: number, entries: number): void {
    const ints = this.#ints;
    ints[2 * countWord] = made;
    ints[2 * positionalWord] = positional;
    ints[2 * flagWord] = positional; // the flag is already set
    ints[2 * entryCountWord] = entries;
    this.#put(byNameWord, made === positional ? nowhere : this.#places[positional] ?? nowhere);
  }

  // law python/NativeCalls.takeSimple: python/native_calls
  /**
   * Writes values that are not JavaScript objects.
   *
   * @param i index at which to begin
   * @param first where the first of all values goes; `step` is the stride between values
   * @returns index of the first value of another type; the number of values if there is none
   */
  #takeSimple(values: readonly unknown[], i: number, first: number, step: number): number {
    const { makers } = this.#programs;
    for (; i < values.length; i++) {
      const at = first + i * step;
      const value = values[i];
      switch (typeof value) {
        case "number":
          this.#put(at, Number.isSafeInteger(value) && !Object.is(value, -0) ? makers.int : makers.float);
          this.#doubles[at + 1] = value;
          break;
        case "string": {
          const used = this.#usedText;
          if (!this.#copyAscii(value, used)) return i;
          this.#put(at, makers.text);
          this.#putAddress(at + 1, this.#textAt + used);
          this.#ints[2 * at + 4] = value.length;
          this.#ints[2 * at + 5] = 0;
          this.#usedText = used + value.length;
          break;
        }
        case "boolean":
          this.#again(at, value ? this.#singletons.true : this.#singletons.false);
          break;
        case "undefined":
          this.#again(at, this.#singletons.none);
          break;
        default:
          if (value !== null) return i;
          this.#again(at, this.#singletons.none);
      }
    }
    return i;
  }

  /** Writes a Python object to which a reference is held. */
  #takeObject(at: number, value: unknown): boolean {
    if (typeof value !== "function") return false; // every PyObject is a function
    const object = handleOf(value)?.reference ?? 0n;
    if (object === 0n) return false;
    this.#put(at, this.#programs.makers.again);
    this.#view.setBigUint64(8 * (at + 1), object, littleEndian);
    this.#hasObjects = true;
    return true;
  }

  #takeDict(index: number, value: unknown): boolean {
    return typeof value === "object" && value !== null && becomesDict(value) && this.#takeEntries(index, value);
  }

  // law python/NativeCalls.takeEntries: python/native_calls, python/closed_in_use
  /** Writes an argument that is a dict, and its entries, none of which may be another dict. */
  #takeEntries(index: number, container: Readonly<Record<string, unknown>>): boolean {
    const python = this.#python;
    const names = Object.keys(container);
    const values = Object.values(container);
    if (values.length !== names.length) return false; // a getter has deleted others, or a Proxy tells different ones
    if (names.length > maxEntries - this.#entries) return false;
    this.#put(madeWord + index * madeWords, this.#programs.makers.dict);
    const first = entriesWord + this.#entries * entryWords;
    for (let i = 0; (i = this.#takeSimple(values, i, first, entryWords)) < values.length; i++) {
      if (!this.#takeObject(first + i * entryWords, values[i])) return false;
    }
    const dict = this.#places[index] ?? nowhere;
    for (let i = 0; i < names.length; i++) {
      const key = python.texts.knownKey(names[i] ?? "");
      if (key === undefined) return false;
      const at = first + i * entryWords;
      this.#view.setBigUint64(8 * (at + keyWord), key, littleEndian);
      this.#put(at + dictWord, dict);
    }
    this.#entries += names.length;
    return true;
  }

  #put(at: number, { low, high }: Halves): void {
    this.#ints[2 * at] = low;
    this.#ints[2 * at + 1] = high;
  }

  /** Writes an address, which a double holds exactly: user space addresses have 47 bits. */
  #putAddress(at: number, address: number): void {
    this.#ints[2 * at] = address;
    this.#ints[2 * at + 1] = address / 2 ** 32;
  }

  #again(at: number, object: Halves): void {
    this.#put(at, this.#programs.makers.again);
    this.#put(at + 1, object);
  }

  // law python/NativeCalls.copyAscii: python/native_calls
  #copyAscii(value: string, used: number): boolean {
    if (value.length > textBytes - used) return false;
    const text = this.#text;
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit >= 0x80) return false;
      text[used + i] = unit;
    }
    return true;
  }

  /**
   * Prepares a call with the arguments taken.
   *
   * @param afterwards a reference to release after the call, or 0n
   */
  prepareCall(object: bigint, afterwards: bigint): NativeProgram {
    this.#view.setBigUint64(offsets.object, object, littleEndian);
    this.#view.setBigUint64(offsets.afterwards, afterwards, littleEndian);
    return this.#programs.call;
  }

  /** As {@linkcode prepareCall}, from a Python frame. */
  prepareFramedCall(object: bigint, afterwards: bigint): NativeProgram {
    this.#view.setBigUint64(offsets.object, object, littleEndian);
    this.#view.setBigUint64(offsets.afterwards, afterwards, littleEndian);
    const { frames } = this.#programs;
    const isNamed = this.#ints[2 * countWord] !== this.#ints[2 * positionalWord];
    const isOne = !isNamed && this.#ints[2 * countWord] === 1;
    this.#put(frameWord, isNamed ? frames.named : isOne ? frames.one : frames.several);
    this.#ints[2 * asTupleWord] = isOne ? 0 : 1;
    return this.#programs.framedCall;
  }

  /**
   * Prepares an attribute read.
   *
   * @param expected what the attribute may be: `Status.same` reports that it is
   * @param adopts whether to keep the reference in that case
   */
  prepareAttribute(object: bigint, name: bigint, expected: ExpectedAttribute | null, adopts: boolean): NativeProgram {
    this.#view.setBigUint64(offsets.object, object, littleEndian);
    this.#view.setBigUint64(offsets.name, name, littleEndian);
    const words = expected ?? nothingExpected;
    if (this.#expected !== words) {
      this.#words.set(words, expectedWord); // first: without room on the stack it throws
      this.#expected = words;
    }
    this.#ints[2 * adoptsWord] = adopts ? 1 : 0;
    return this.#programs.attribute;
  }

  /** Runs a program. Its code takes and releases the lock, or relies on the caller's. */
  run(code: HandleArgument): Status {
    this.#ints[2 * keepsLockWord] = 0;
    runCode(code, this.#memory);
    return this.#ints[2 * statusWord] as Status; // nothing else is written there
  }

  /** Makes the running program keep the lock. */
  keepLock(): void {
    this.#ints[2 * keepsLockWord] = 1;
  }

  /** Whether the last program kept the lock at its end. */
  get hasKeptLock(): boolean {
    return this.#ints[2 * keepsLockWord] !== 0;
  }

  /** The state with which to release the lock. */
  get state(): number {
    return this.#ints[2 * stateWord] ?? 0;
  }

  /** The resulting object. */
  get result(): bigint {
    return this.#view.getBigUint64(offsets.result, littleEndian);
  }

  /** The arguments made before one failed. */
  get made(): readonly bigint[] {
    const count = (this.#ints[2 * countWord] ?? 0) - (this.#ints[2 * leftWord] ?? 0);
    return [...this.#words.subarray(objectsWord, objectsWord + count)];
  }

  /**
   * Makes the programs read objects of a type as floats from now on, such as the NumPy scalars that its sums return.
   *
   * @param type derived from float, and kept forever
   */
  readAsFloat(type: number): void {
    this.#view.setBigInt64(offsets.minusOtherFloat, -BigInt(type), littleEndian);
  }

  // law python/NativeCalls.value: python/native_calls
  /** The resulting value. */
  valueOf(status: Status): number | bigint | boolean | null {
    switch (status) {
      case Status.float:
        return this.#doubles[valueWord] ?? NaN;
      case Status.int: {
        const number = (this.#ints[2 * valueWord + 1] ?? 0) * 2 ** 32 + ((this.#ints[2 * valueWord] ?? 0) >>> 0);
        return Number.isSafeInteger(number) ? number : BigInt.asIntN(64, this.#words[valueWord] ?? 0n);
      }
      case Status.true:
        return true;
      case Status.false:
        return false;
      default:
        return null;
    }
  }
}
