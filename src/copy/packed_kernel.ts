/**
 * Copies of packed elements that share bytes with others: each thread composes one byte of the destination.
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
/** A kernel whose threads write one byte each: other bits in the byte keep their values. */
export function packedKernel({ bits, rows, width, axes, toBit, fromBit }: PackedRows): CopyKernel {
  const ptx = new PtxWriter();
  const { to, from } = pointers(ptx);
  const bytes = rows.reduce((product, { extent }) => product * extent, width);
  const grid = Math.ceil(bytes / threads);
  const end = (grid * threads + 1) * 8; // bits are counted, too
  const kind = indexKind(end);
  const type = kind === "r" ? "u32" : "u64";
  const index = threadIndex(ptx, kind, threads);
  const inside = ptx.make("p", `setp.lt.${type} $, ${index}, ${bytes}`);
  const parts = unravelIndex(ptx, index, [...rows.map(({ extent }) => extent), width], end);
  const byte = parts.pop() ?? index; // one part for each extent
  let target = advance(ptx, to, byte, 1);
  let rowBit = ptx.make("d", `mov.b64 $, ${fromBit}`);
  rows.forEach((axis, i) => {
    const part = parts[i] ?? index; // one for each extent here, too
    target = advance(ptx, target, part, axis.to);
    rowBit = advance(ptx, rowBit, part, axis.from);
  });

  // Element positions are numbered from one that begins in the row's first byte, or before it.
  const before = Math.ceil(toBit / bits);
  const start = ptx.make(kind, `mad.lo.${type} $, ${byte}, 8, ${before * bits - toBit}`);
  const first = quotient(ptx, kind, start, bits, end);
  // Bits from the byte's start to the element's, plus 7, because an element may begin before the byte.
  const product = ptx.make(kind, `mul.lo.${type} $, ${first}, ${bits}`);
  const late = ptx.make(kind, `sub.${type} $, ${start}, ${product}`);
  const shift = ptx.make("r", `sub.u32 $, 7, ${kind === "r" ? late : ptx.make("r", `cvt.u32.u64 $, ${late}`)}`);
  const ones = ptx.make("r", `mov.b32 $, ${2 ** bits - 1}`);
  const most = 8 % bits === 0 ? 8 / bits : Math.ceil((7 + bits) / bits);
  let [mask, value] = [ptx.zero("r"), ptx.zero("r")];
  for (let i = 0; i < most; i++) {
    const place = ptx.make(kind, `add.${type} $, ${first}, ${i}`);
    const by = ptx.make("r", `add.u32 $, ${shift}, ${i * bits}`);
    // The bits of this byte that belong to the element: none if there is no such element.
    let own = shiftedIntoByte(ptx, ones, by);
    const keepIf = (condition: Register) => own = ptx.make("r", `selp.b32 $, ${own}, 0, ${condition}`);
    keepIf(inside);
    keepIf(ptx.make("p", `setp.ge.${type} $, ${place}, ${before}`)); // if lower, the next number wraps around
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
    const placed = ptx.make("r", `and.b32 $, ${shiftedIntoByte(ptx, element, by)}, ${own}`);
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

/** Bits moved to their place in a byte; bits outside it are masked out. */
function shiftedIntoByte(ptx: PtxWriter, bits: Register, by: Register): Register {
  const moved = ptx.make("r", `shr.u32 $, ${ptx.make("r", `shl.b32 $, ${bits}, ${by}`)}, 7`);
  return ptx.make("r", `and.b32 $, ${moved}, 255`);
}

// law copy/readBits: copy/packed_copy
/** Reads `bits` bits of the source into the lowest bits of a register, whose other bits are arbitrary. */
function readBits(ptx: PtxWriter, from: Register, bit: Register, bits: number, guard: Register): Register {
  const at = (offset: Register) => ptx.make("d", `add.s64 $, ${from}, ${ptx.make("d", `shr.s64 $, ${offset}, 3`)}`);
  const skipped = ptx.make("r", `and.b32 $, ${ptx.make("r", `cvt.u32.u64 $, ${bit}`)}, 7`);
  let pair = loadByte(ptx, at(bit), guard);
  if (8 % bits !== 0) {
    // The byte of the last bit, which may be the same byte: the bits read twice are discarded.
    const upper = loadByte(ptx, at(plus(ptx, bit, bits - 1)), guard);
    pair = ptx.make("r", `or.b32 $, ${pair}, ${ptx.make("r", `shl.b32 $, ${upper}, 8`)}`);
  }
  return ptx.make("r", `shr.u32 $, ${pair}, ${skipped}`);
}

/** A byte of memory, or zero if the guard is false. */
function loadByte(ptx: PtxWriter, address: Register, guard: Register): Register {
  return ptx.make("r", `cvt.u32.u16 $, ${load(ptx, "global", moves[1], address, `@${guard} `)[0]}`);
}
