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
  /** Pointers to variables that it contains: 8 bytes at `offset` get `address of symbol + addend`. */
  readonly relocations: readonly { readonly offset: number; readonly symbol: string; readonly addend: bigint }[];
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
  const relocations: { offset: number; symbol: string; addend: bigint }[] = [];
  if (initial.length * type.bytes > size) throw new PtxError(line, `${initial.length} values do not fit in ${name}`);
  initial.forEach((value, i) => {
    const offset = i * type.bytes;
    if (value.kind === "symbol") {
      if (type.bytes !== 8) throw new PtxError(line, `the address of ${value.name} does not fit in .${type.name}`);
      relocations.push({ offset, symbol: value.name, addend: value.offset });
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
