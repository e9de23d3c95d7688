/**
 * The memory into which machine code programs read the values of many items.
 *
 * @module
 */
import { ffiPort, type HandleArgument, layoutOf, NativeArena } from "../ffi/mod.ts";
import { assembleHere, runCode } from "../native/mod.ts";
import { blockConstants } from "./block_constants.ts";
import { Status } from "./call_programs.ts";
import type { Interpreter } from "./interpreter.ts";
import { item_block, itemOffsets, itemProgram } from "./item_programs.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

const leftWord = itemOffsets.left / 8;
const itemsWord = itemOffsets.items / 8;

/** Reads items by machine code. Needs the interpreter's lock, and runs no Python code except an iterator's. */
export class ItemReader {
  readonly #memory: HandleArgument;
  readonly #listed: HandleArgument;
  readonly #iterated: HandleArgument;
  /** For bigints: in Bun, accessing a bigint array takes 11 to 17 ns. */
  readonly #view: DataView<ArrayBuffer>;
  readonly #doubles: Float64Array<ArrayBuffer>;
  readonly #ints: Int32Array<ArrayBuffer>;

  private constructor(python: Interpreter, listed: bigint, iterated: bigint) {
    const port = ffiPort();
    const { size } = layoutOf(item_block);
    const { address, bytes } = new NativeArena().bytes(size); // never freed: a process has one interpreter
    const { buffer, byteOffset } = bytes;
    this.#memory = port.handle(address);
    this.#listed = port.handle(listed);
    this.#iterated = port.handle(iterated);
    this.#view = new DataView(buffer, byteOffset, size);
    this.#doubles = new Float64Array(buffer, byteOffset, size / 8);
    this.#ints = new Int32Array(buffer, byteOffset, size / 4);
    for (const [field, value] of Object.entries(blockConstants(python, item_block))) {
      this.#view.setBigInt64(itemOffsets[field as keyof typeof itemOffsets], value, littleEndian); // a field, as above
    }
  }

  /** @returns null where the system refuses executable memory */
  static make(python: Interpreter): ItemReader | null {
    const { typeAt } = python;
    const code = assembleHere([itemProgram(typeAt, false), itemProgram(typeAt, true)]);
    return code === null ? null : new ItemReader(python, code[0] ?? 0n, code[1] ?? 0n);
  }

  /**
   * Appends the values of items whose addresses are contiguous, up to the first that the program cannot read.
   *
   * @param count at most 256
   */
  readListed(addresses: bigint, count: number, values: unknown[]): void {
    this.#run(this.#listed, addresses, count, values);
  }

  /**
   * Appends the next items of an iterator, up to the first that the program cannot read, which it returns: a new
   * reference.
   *
   * @param count at most 256
   * @returns 0n also if the iterator is exhausted, or an exception is pending
   */
  readIterated(iterator: bigint, count: number, values: unknown[]): bigint {
    const read = this.#run(this.#iterated, iterator, count, values);
    return read === count ? 0n : this.#view.getBigUint64(itemOffsets.result, littleEndian);
  }

  // law python/ItemReader.run: python/sequences
  #run(code: HandleArgument, source: bigint, count: number, values: unknown[]): number {
    const [ints, doubles] = [this.#ints, this.#doubles];
    this.#view.setBigUint64(itemOffsets.source, source, littleEndian);
    ints[2 * leftWord] = count;
    runCode(code, this.#memory);
    const read = count - (ints[2 * leftWord] ?? 0);
    for (let at = itemsWord; at < itemsWord + 2 * read; at += 2) {
      switch (ints[2 * at]) {
        case Status.float:
          values.push(doubles[at + 1]);
          break;
        case Status.int: {
          const number = (ints[2 * at + 3] ?? 0) * 2 ** 32 + ((ints[2 * at + 2] ?? 0) >>> 0);
          values.push(Number.isSafeInteger(number) ? number : this.#view.getBigInt64(8 * at + 8, littleEndian));
          break;
        }
        case Status.none:
          values.push(null);
          break;
        default:
          values.push(ints[2 * at] === Status.true);
      }
    }
    return read;
  }
}
