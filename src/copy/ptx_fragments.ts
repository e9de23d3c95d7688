/**
 * Code shared by copy kernels: words, addresses and indices.
 *
 * Every extent and step is a constant. The driver's assembler does not optimise divisions by constants, so they are
 * written as shifts and multiplications here.
 *
 * @module
 */
import type { WordSize } from "./coalesced_copy.ts";
import type { Access } from "./ptx_conversion.ts";
import type { PtxWriter, Register } from "./ptx_writer.ts";

/** A kernel and its launch configuration. */
export interface CopyKernel {
  /** The program; its kernel is named `copy` and takes the addresses of the first words: destination, source. */
  readonly ptx: string;
  readonly grid: number;
  readonly block: number;
}

/** How a word of each size in bytes is moved. */
export const moves: { readonly [word in WordSize]: Access } = {
  1: { type: "u8", kind: "h", count: 1 },
  2: { type: "u16", kind: "h", count: 1 },
  4: { type: "u32", kind: "r", count: 1 },
  8: { type: "u64", kind: "d", count: 1 },
  16: { type: "v2.u64", kind: "d", count: 2 },
};

// law copy/load: copy/kernel_registers
/**
 * Reads a word into registers, which hold zeros if the guard is false. They must be initialised: the driver's assembler
 * treats a register that might never be written as undefined. Without initialisation it merged several reads of the
 * same address, each with its own guard, into one under the first guard.
 */
export function load(
  ptx: PtxWriter,
  space: "global" | "shared",
  access: Access,
  address: string,
  guard = "",
): Register[] {
  const { type, kind, count } = access;
  const registers = Array.from({ length: count }, () => guard === "" ? ptx.register(kind) : ptx.zero(kind));
  ptx.line(`${guard}ld.${space}.${type} ${operand(registers)}, [${address}]`);
  return registers;
}

/** Writes a word from registers. */
export function store(
  ptx: PtxWriter,
  space: "global" | "shared",
  { type }: Access,
  address: string,
  from: readonly Register[],
  guard = "",
): void {
  ptx.line(`${guard}st.${space}.${type} [${address}], ${operand(from)}`);
}

function operand(registers: readonly Register[]): string {
  return registers.length === 1 ? `${registers[0]}` : `{${registers.join(", ")}}`;
}

/** Addresses of the first words. */
export function pointers(ptx: PtxWriter): { to: Register; from: Register } {
  const pointer = (name: string) =>
    ptx.make("d", `cvta.to.global.u64 $, ${ptx.make("d", `ld.param.u64 $, [${name}]`)}`);
  return { to: pointer("to"), from: pointer("from") };
}

/** `base + index * step`. */
export function advance(ptx: PtxWriter, base: Register, index: Register, step: number): Register {
  return step === 0 ? base : ptx.make("d", `mad.lo.s64 $, ${widened(ptx, index)}, ${step}, ${base}`);
}

/** `base + constant`, in 64 bits. */
export function plus(ptx: PtxWriter, base: Register, constant: number): Register {
  return constant === 0 ? base : ptx.make("d", `add.s64 $, ${base}, ${constant}`);
}

/** Zero-extends an unsigned number to 64 bits. */
export function widened(ptx: PtxWriter, register: Register): Register {
  return register.startsWith("%d") ? register : ptx.make("d", `cvt.u64.u32 $, ${register}`);
}

/** The index of a thread's first word, with `perBlock` words per block: `blockIdx * perBlock + threadIdx`. */
export function threadIndex(ptx: PtxWriter, kind: "r" | "d", perBlock: number): Register {
  const own = (name: string) => {
    const register = ptx.make("r", `mov.u32 $, ${name}`);
    return kind === "r" ? register : widened(ptx, register);
  };
  return ptx.make(kind, `mad.lo.${kind === "r" ? "u32" : "u64"} $, ${own("%ctaid.x")}, ${perBlock}, ${own("%tid.x")}`);
}

// law copy/indexKind: copy/large_copy
/** The kind of the registers for numbers below `end`. */
export function indexKind(end: number): "r" | "d" {
  return end <= 2 ** 32 ? "r" : "d";
}

/**
 * Splits an index into one for each extent, the last fastest.
 *
 * @param index in a register of the kind for numbers below `end`
 * @returns registers of that kind
 */
export function unravelIndex(ptx: PtxWriter, index: Register, extents: readonly number[], end: number): Register[] {
  const kind = indexKind(end);
  const type = kind === "r" ? "u32" : "u64";
  const parts: Register[] = [];
  let [rest, ends] = [index, end];
  for (const extent of extents.slice(1).toReversed()) {
    const whole = quotient(ptx, kind, rest, extent, ends);
    const product = ptx.make(kind, `mul.lo.${type} $, ${whole}, ${extent}`);
    parts.unshift(ptx.make(kind, `sub.${type} $, ${rest}, ${product}`));
    [rest, ends] = [whole, Math.ceil(ends / extent)];
  }
  return extents.length === 0 ? [] : [rest, ...parts];
}

// law copy/quotient: copy/device_copy
/** `number / divisor`, rounded down, for a number below `end`. */
export function quotient(ptx: PtxWriter, kind: "r" | "d", number: Register, divisor: number, end: number): Register {
  const [type, log] = [kind === "r" ? "u32" : "u64", Math.round(Math.log2(divisor))];
  if (2 ** log === divisor) return ptx.make(kind, `shr.${type} $, ${number}, ${log}`);
  const by = kind === "r" ? reciprocal(divisor, end) : null;
  if (by === null) return ptx.make(kind, `div.${type} $, ${number}, ${divisor}`);
  const high = ptx.make("r", `mul.hi.u32 $, ${number}, ${by.factor}`);
  return by.shift === 0 ? high : ptx.make("r", `shr.u32 $, ${high}, ${by.shift}`);
}

// law copy/reciprocal: copy/ptx_fragments
/**
 * The multiplication and shift that divide 32-bit numbers by a constant.
 *
 * @param end exclusive upper bound of the dividend
 * @returns values such that `n / divisor`, rounded down, is `n * factor >> (32 + shift)`; null if no 32-bit factor
 *   works
 */
export function reciprocal(divisor: number, end: number): { readonly factor: bigint; readonly shift: number } | null {
  for (let shift = 0; shift < 32; shift++) {
    const one = 1n << BigInt(32 + shift);
    const factor = one / BigInt(divisor) + 1n;
    if (factor >= 1n << 32n) return null;
    // The product is too large by n * excess / divisor, which must stay below the distance to the next quotient: 1 /
    // divisor of `one`.
    const excess = factor * BigInt(divisor) - one;
    if (BigInt(end) * excess <= one) return { factor, shift };
  }
  return null;
}
