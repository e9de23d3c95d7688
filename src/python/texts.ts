/**
 * Strings between JavaScript and Python, through a persistent buffer: passing a typed array to a call, or creating an
 * ArrayBuffer over an address, costs more than the rest of the conversion.
 *
 * @module
 */
import { cString, ffiPort, libc, NativeArena, readString } from "../ffi/mod.ts";
import type { Interpreter } from "./interpreter.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/** Size of the persistent buffer, in bytes of UTF-8. */
const keptBytes = 4096;
/** Most characters that are copied one by one: for this many, the runtime's own encoder takes as long. */
const fewCharacters = 48;
/** How many attribute names are cached as Python strings. */
const maxNames = 1024;

const encoder = new TextEncoder();
// law python/decoder: python/object, python/sequences
const decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // "ignore" means: treat it as an ordinary character
const utf16 = cString("utf-16-le");
const surrogatePass = cString("surrogatepass");

/** Makes and reads Python strings. Needs the interpreter's lock. */
export class Texts {
  readonly #python: Interpreter;
  /** Byte counts as bigints. Made here, so that no import pays 1 ms for them. */
  readonly #lengths = Array.from({ length: keptBytes + 1 }, (_, i) => BigInt(i));
  readonly #arena = new NativeArena();
  readonly #size = this.#arena.out("i64");
  readonly #int = this.#arena.out("i32");
  readonly #pointer = this.#arena.out("ptr");
  readonly #address: bigint;
  readonly #bytes: Uint8Array<ArrayBuffer>;
  readonly #names = new Map<string, bigint>();
  readonly #keys = new Map<string, bigint>();

  constructor(python: Interpreter) {
    this.#python = python;
    const { address, bytes } = this.#arena.bytes(keptBytes);
    this.#address = address;
    this.#bytes = bytes;
  }

  // law python/Texts.make: python/object, python/frame, python/leaks
  /** A string. A lone surrogate, which JavaScript strings may contain, stays one in Python. */
  make(value: string): bigint {
    const python = this.#python;
    const { PyUnicode_FromStringAndSize, PyUnicode_DecodeUTF16 } = python.api.text;
    if (value.length <= fewCharacters && this.#copyAscii(value)) {
      return python.check(PyUnicode_FromStringAndSize(this.#address, this.#lengths[value.length] ?? 0n));
    }
    if (value.isWellFormed()) {
      if (3 * value.length <= keptBytes) {
        const { written } = encoder.encodeInto(value, this.#bytes);
        return python.check(PyUnicode_FromStringAndSize(this.#address, this.#lengths[written] ?? 0n));
      }
      using arena = new NativeArena();
      const encoded = encoder.encode(value);
      const { address, bytes } = arena.bytes(encoded.length);
      bytes.set(encoded);
      return python.check(PyUnicode_FromStringAndSize(address, BigInt(encoded.length)));
    }
    const units = new DataView(new ArrayBuffer(2 * value.length));
    for (let i = 0; i < value.length; i++) units.setUint16(2 * i, value.charCodeAt(i), littleEndian);
    this.#int.value = -1; // little-endian, and U+FEFF is an ordinary character
    const bytes = new Uint8Array(units.buffer);
    return python.check(PyUnicode_DecodeUTF16(bytes, BigInt(bytes.length), surrogatePass, this.#int.$address));
  }

  /** Copies a short text to the persistent buffer, if it is ASCII. */
  #copyAscii(value: string): boolean {
    const bytes = this.#bytes;
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit >= 0x80) return false;
      bytes[i] = unit;
    }
    return true;
  }

  /** An attribute name as an interned string; borrowed until the next call. */
  name(value: string): bigint {
    return this.#names.get(value) ?? this.#cache(this.#names, value, this.#intern(this.make(value)));
  }

  /** As {@linkcode Texts.name}, if the string is cached; needs no lock. */
  knownName(value: string): bigint | undefined {
    return this.#names.get(value);
  }

  /** A dict key; borrowed until the next call. Not interned: some versions never free interned strings. */
  key(value: string): bigint {
    return this.#keys.get(value) ?? this.#cache(this.#keys, value, this.make(value));
  }

  /** As {@linkcode Texts.key}, if the string is cached; needs no lock. */
  knownKey(value: string): bigint | undefined {
    return this.#keys.get(value);
  }

  /** The interned string of this value: lookups compare addresses. Adopts a reference, and returns one. */
  #intern(text: bigint): bigint {
    this.#pointer.value = text;
    this.#python.api.text.PyUnicode_InternInPlace(this.#pointer.$address);
    return this.#pointer.value;
  }

  // law python/Texts.cache: python/calls, python/leaks
  #cache(known: Map<string, bigint>, value: string, text: bigint): bigint {
    if (known.size === maxNames) {
      // Later: a call that encloses a JavaScript function called by Python may still use one of them.
      for (const one of known.values()) this.#python.releaseLater(one);
      known.clear();
    }
    known.set(value, text);
    return text;
  }

  // law python/Texts.read: python/object, python/frame, python/leaks
  /** The value of a str. Python writes a file name that is not UTF-8 with lone surrogates. */
  read(object: bigint): string {
    const known = this.readAtOnce(object);
    if (known !== undefined) return known;
    const python = this.#python;
    const encoded = python.check(python.api.text.PyUnicode_AsEncodedString(object, utf16, surrogatePass));
    const units = new DataView(this.readBytes(encoded).buffer);
    python.release(encoded);
    let text = "";
    for (let at = 0; at < units.byteLength; at += 2) text += String.fromCharCode(units.getUint16(at, littleEndian));
    return text;
  }

  /** The value of a str, without running Python code; undefined if it contains a lone surrogate. */
  readAtOnce(object: bigint): string | undefined {
    const start = this.#python.api.text.PyUnicode_AsUTF8AndSize(object, this.#size.$address);
    if (start !== 0n) return this.#readUtf8(start, this.#size.value);
    this.#python.api.errors.PyErr_Clear();
    return undefined;
  }

  // law python/Texts.readUtf8: python/object, python/values
  #readUtf8(start: bigint, size: bigint): string {
    const length = Number(size);
    if (length > keptBytes) return readString(start, length);
    const bytes = this.#bytes;
    libc().memory.bcopy(start, this.#address, size);
    if (length <= fewCharacters) {
      let text = "";
      for (let i = 0; i < length; i++) {
        const byte = bytes[i] ?? 0;
        if (byte >= 0x80) return decoder.decode(bytes.subarray(0, length));
        text += String.fromCharCode(byte);
      }
      return text;
    }
    return decoder.decode(bytes.subarray(0, length));
  }

  /** A copy of the bytes of a bytes object. */
  readBytes(object: bigint): Uint8Array<ArrayBuffer> {
    const python = this.#python;
    python.checkInt(python.api.text.PyBytes_AsStringAndSize(object, this.#pointer.$address, this.#size.$address));
    const length = Number(this.#size.value);
    return new Uint8Array(ffiPort().memory(this.#pointer.value, length)).slice();
  }
}
