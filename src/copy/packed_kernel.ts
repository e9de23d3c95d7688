/**
 * Copies of packed elements that share bytes with others: each thread puts one byte of the destination together.
 *
 * @module
 */
import {
  advance,
  type CopyKernel,
  indexKind,
  load,
  moves,
  plus,
  pointers,
  quotient,
  store,
  threadIndex,
  unravelIndex,
} from "./ptx_fragments.ts";
import type { PackedRows } from "./packed_plan.ts";
import { PtxWriter, type Register } from "./ptx_writer.ts";

const threads = 256;

// law copy/packedKernel: copy/packed_copy
/** One byte at a time: of a byte in which there are other bits too, these stay what they are. */
export function packedKernel({ bits, rows, width, axes, toBit, fromBit }: PackedRows): CopyKernel {
  const ptx = new PtxWriter();
  const { to, from } = pointers(ptx);
  const bytes = rows.reduce((product, { extent }) => product * extent, width);
  const grid = Math.ceil(bytes / threads);
  const end = (grid * threads + 1) * 8; // bits are counted as well
  const kind = indexKind(end);
  const type = kind === "r" ? "u32" : "u64";
  const index = threadIndex(ptx, kind, threads);
  const inside = ptx.make("p", `setp.lt.${type} $, ${index}, ${bytes}`);
  const parts = unravelIndex(ptx, index, [...rows.map(({ extent }) => extent), width], end);
  const byte = parts.pop() ?? index; // one part for each extent
  let target = advance(ptx, to, byte, 1);
  let rowBit = ptx.make("d", `mov.b64 $, ${fromBit}`);
  rows.forEach((axis, i) => {
    const part = parts[i] ?? index; // the same
    target = advance(ptx, target, part, axis.to);
    rowBit = advance(ptx, rowBit, part, axis.from);
  });

  // Places for elements are numbered from one on that begins in the row's first byte, or before it.
  const before = Math.ceil(toBit / bits);
  const start = ptx.make(kind, `mad.lo.${type} $, ${byte}, 8, ${before * bits - toBit}`);
  const first = quotient(ptx, kind, start, bits, end);
  // From the byte's first bit to the element's, and 7 more, as an element may begin before the byte.
  const product = ptx.make(kind, `mul.lo.${type} $, ${first}, ${bits}`);
  const late = ptx.make(kind, `sub.${type} $, ${start}, ${product}`);
  const shift = ptx.make("r", `sub.u32 $, 7, ${kind === "r" ? late : ptx.make("r", `cvt.u32.u64 $, ${late}`)}`);
  const ones = ptx.make("r", `mov.b32 $, ${2 ** bits - 1}`);
  const most = 8 % bits === 0 ? 8 / bits : Math.ceil((7 + bits) / bits);
  let [mask, value] = [ptx.zero("r"), ptx.zero("r")];
  for (let i = 0; i < most; i++) {
    const place = ptx.make(kind, `add.${type} $, ${first}, ${i}`);
    const by = ptx.make("r", `add.u32 $, ${shift}, ${i * bits}`);
    // The bits of this byte that are the element's: none if there is no such element.
    let own = inByte(ptx, ones, by);
    const keepIf = (condition: Register) => own = ptx.make("r", `selp.b32 $, ${own}, 0, ${condition}`);
    keepIf(inside);
    keepIf(ptx.make("p", `setp.ge.${type} $, ${place}, ${before}`)); // below, the next number wraps around
    let rest = ptx.make(kind, `sub.${type} $, ${place}, ${before}`);
    let bit = rowBit;
    for (const axis of axes) {
      const part = axis.to === 1 ? rest : quotient(ptx, kind, rest, axis.to, end);
      keepIf(ptx.make("p", `setp.lt.${type} $, ${part}, ${axis.extent}`));
      bit = advance(ptx, bit, part, axis.from);
      const whole = ptx.make(kind, `mul.lo.${type} $, ${part}, ${axis.to}`);
      rest = ptx.make(kind, `sub.${type} $, ${rest}, ${whole}`);
    }
    keepIf(ptx.make("p", `setp.eq.${type} $, ${rest}, 0`));
    const element = readBits(ptx, from, bit, bits, ptx.make("p", `setp.ne.u32 $, ${own}, 0`));
    const placed = ptx.make("r", `and.b32 $, ${inByte(ptx, element, by)}, ${own}`);
    mask = ptx.make("r", `or.b32 $, ${mask}, ${own}`);
    value = ptx.make("r", `or.b32 $, ${value}, ${placed}`);
  }

  const hasAny = ptx.make("p", `setp.ne.u32 $, ${mask}, 0`);
  const kept = ptx.make("r", `xor.b32 $, ${mask}, 255`);
  const isShared = ptx.make("p", `setp.ne.and.u32 $, ${kept}, 0, ${hasAny}`);
  const others = ptx.make("r", `and.b32 $, ${loadByte(ptx, target, isShared)}, ${kept}`);
  const result = ptx.make("r", `or.b32 $, ${value}, ${others}`);
  store(ptx, "global", moves[1], target, [ptx.make("h", `cvt.u16.u32 $, ${result}`)], `@${hasAny} `);
  return { ptx: ptx.program("copy"), grid, block: threads };
}

/** Bits moved to their place in a byte; what does not belong there is cut off. */
function inByte(ptx: PtxWriter, bits: Register, by: Register): Register {
  const moved = ptx.make("r", `shr.u32 $, ${ptx.make("r", `shl.b32 $, ${bits}, ${by}`)}, 7`);
  return ptx.make("r", `and.b32 $, ${moved}, 255`);
}

// law copy/readBits: copy/packed_copy
/** So many bits of the source as the lowest ones of a register, in which there may be more. */
function readBits(ptx: PtxWriter, from: Register, bit: Register, bits: number, guard: Register): Register {
  const at = (offset: Register) => ptx.make("d", `add.s64 $, ${from}, ${ptx.make("d", `shr.s64 $, ${offset}, 3`)}`);
  const skipped = ptx.make("r", `and.b32 $, ${ptx.make("r", `cvt.u32.u64 $, ${bit}`)}, 7`);
  let pair = loadByte(ptx, at(bit), guard);
  if (8 % bits !== 0) {
    // The byte of its last bit, which may be the same: then what is read twice is cut off.
    const upper = loadByte(ptx, at(plus(ptx, bit, bits - 1)), guard);
    pair = ptx.make("r", `or.b32 $, ${pair}, ${ptx.make("r", `shl.b32 $, ${upper}, 8`)}`);
  }
  return ptx.make("r", `shr.u32 $, ${pair}, ${skipped}`);
}

/** A byte of memory, or zero if the guard says no. */
function loadByte(ptx: PtxWriter, address: Register, guard: Register): Register {
  return ptx.make("r", `cvt.u32.u16 $, ${load(ptx, "global", moves[1], address, `@${guard} `)[0]}`);
}
