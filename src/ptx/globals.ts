/**
 * Module variables in device memory: their size and initial contents.
 *
 * @module
 */
import { PtxError } from "./error.ts";
import type { Variable } from "./syntax.ts";

/** A variable in .global or .const. */
export interface PtxGlobal {
  /** Size in bytes. */
  readonly size: number;
  /** Alignment of the address, in bytes. */
  readonly align: number;
  /** Initial contents, `size` bytes. */
  readonly init: Uint8Array<ArrayBuffer>;
  /** Pointers to variables that it contains. */
  readonly relocations: readonly Relocation[];
}

/** A pointer: 8 bytes at `offset` get `address of symbol + addend`. */
interface Relocation {
  readonly offset: number;
  readonly symbol: string;
  readonly addend: bigint;
  /** If only one byte of the address is there: which, from the lowest. A packed structure has its pointers so. */
  readonly byte?: number;
}

// law ptx/initialBytes: ptx/threads, ptx/faults
/** The initial contents of a variable, once all variables have addresses. */
export function initialBytes(
  { init, relocations }: PtxGlobal,
  addressOf: (symbol: string) => bigint,
): Uint8Array<ArrayBuffer> {
  const bytes = init.slice();
  const view = new DataView(bytes.buffer);
  for (const { offset, symbol, addend, byte } of relocations) {
    const address = addressOf(symbol) + addend;
    if (byte === undefined) view.setBigUint64(offset, address, true);
    else view.setUint8(offset, Number((address >> BigInt(8 * byte)) & 0xffn));
  }
  return bytes;
}

/** The byte that a mask selects. */
function maskedByte(mask: bigint, line: number): number {
  for (let byte = 0; byte < 8; byte++) if (mask === 0xffn << BigInt(8 * byte)) return byte;
  throw new PtxError(line, `0x${mask.toString(16)} does not select a byte of an address`);
}

/**
 * Lays out a variable and its initialiser.
 *
 * @throws {PtxError} if the variable has no size, or if the initialiser does not fit
 */
export function globalBytes(variable: Variable): PtxGlobal {
  const { name, line, size, align, type, initial } = variable;
  if (size === null) throw new PtxError(line, `the variable ${name} has no size`);
  const init = new Uint8Array(size);
  const view = new DataView(init.buffer);
  const relocations: Relocation[] = [];
  if (initial.length * type.bytes > size) throw new PtxError(line, `${initial.length} values do not fit in ${name}`);
  initial.forEach((value, i) => {
    const offset = i * type.bytes;
    if (value.kind === "symbol") {
      const { name: symbol, offset: addend, mask } = value;
      if (type.bytes !== (mask === null ? 8 : 1)) {
        throw new PtxError(line, `${mask === null ? "" : "a byte of "}the address of ${symbol} is no .${type.name}`);
      }
      relocations.push({ offset, symbol, addend, ...mask === null ? {} : { byte: maskedByte(mask, line) } });
    } else if (value.kind === "integer") {
      for (let byte = 0; byte < type.bytes; byte++) {
        init[offset + byte] = Number((value.value >> BigInt(8 * byte)) & 0xffn);
      }
    } else if (type.bits === 64) {
      if (value.double === null) view.setFloat64(offset, value.value, true);
      else view.setBigUint64(offset, value.double, true);
    } else if (type.bits === 32) {
      if (value.single === null) view.setFloat32(offset, value.value, true);
      else view.setUint32(offset, value.single, true);
    } else {
      throw new PtxError(line, `a float does not fit in .${type.name}`);
    }
  });
  return { size, align, init, relocations };
}
