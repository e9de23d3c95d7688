/**
 * PTX kernels that decode columns of words. All parameters have 64 bits; each program's kernel is named `decode`.
 *
 * @module
 */
import { PtxWriter, type Register } from "../../copy/mod.ts";
import { firstOfRow } from "../numeric/fastlanes.ts";
import type { Step } from "../numeric/kernel.ts";
import type { Bits } from "../numeric/words.ts";

/** Threads per block. */
export const THREADS = 128;

/** A program for the driver to compile, and the key that identifies it. */
export interface NumberKernel {
  readonly key: string;
  readonly ptx: () => string;
}

/** The kind of register for a word; words of fewer than 32 bits are in the low bits of a 32-bit register. */
type Kind = "r" | "d";

const kindOf = (bits: Bits): Kind => bits === 64 ? "d" : "r";
const size = (kind: Kind) => kind === "d" ? 64 : 32;

/** Loads a parameter. */
function parameter(ptx: PtxWriter, name: string): Register {
  return ptx.make("d", `ld.param.u64 $, [${name}]`);
}

/** Loads a parameter that is an address. */
function pointer(ptx: PtxWriter, name: string): Register {
  return ptx.make("d", `cvta.to.global.u64 $, ${parameter(ptx, name)}`);
}

/** Loads a parameter that is less than 2^32. */
function small(ptx: PtxWriter, name: string): Register {
  return ptx.make("r", `cvt.u32.u64 $, ${parameter(ptx, name)}`);
}

/** The global index of the thread. */
function threadNumber(ptx: PtxWriter): Register {
  const [block, thread] = [ptx.make("r", "mov.u32 $, %ctaid.x"), ptx.make("r", "mov.u32 $, %tid.x")];
  return ptx.make("r", `mad.lo.u32 $, ${block}, ${THREADS}, ${thread}`);
}

/** `base + index * step`, for an unsigned index. */
function at(ptx: PtxWriter, base: Register, index: Register, step: number): Register {
  return ptx.make("d", `mad.lo.s64 $, ${ptx.make("d", `cvt.u64.u32 $, ${index}`)}, ${step}, ${base}`);
}

/** Reads a word; 0 where the guard is false. */
function loadWord(ptx: PtxWriter, bits: Bits, address: string, guard = ""): Register {
  if (bits > 16) {
    const kind = kindOf(bits);
    const word = guard === "" ? ptx.register(kind) : ptx.zero(kind);
    ptx.line(`${guard}ld.global.u${bits} ${word}, [${address}]`);
    return word;
  }
  const half = guard === "" ? ptx.register("h") : ptx.zero("h");
  ptx.line(`${guard}ld.global.u${bits} ${half}, [${address}]`);
  return ptx.make("r", `cvt.u32.u16 $, ${half}`);
}

function storeWord(ptx: PtxWriter, bits: Bits, address: string, word: Register, guard = ""): void {
  const stored = bits > 16 ? word : ptx.make("h", `cvt.u16.u32 $, ${word}`);
  ptx.line(`${guard}st.global.u${bits} [${address}], ${stored}`);
}

/** Exits the threads that have nothing to do. */
function endUnless(ptx: PtxWriter, index: Register, count: Register): void {
  const isOver = ptx.make("p", `setp.ge.u32 $, ${index}, ${count}`);
  ptx.line(`@${isOver} ret`);
}

/** A mask of the low bits. */
const ones = (bits: number) => `0x${((1n << BigInt(bits)) - 1n).toString(16)}`;

/** The names of the steps' parameters: `s0`, and also `t0` for steps that have two. */
function stepParameters(steps: readonly Step[]): string[] {
  return steps.flatMap(({ kind }, index) =>
    kind === "add" ? [`s${index}`] : kind === "alp" ? [`s${index}`, `t${index}`] : []
  );
}

/** The arguments for the steps' parameters. */
export function stepArguments(bits: Bits, steps: readonly Step[]): bigint[] {
  const view = new DataView(new ArrayBuffer(8));
  return steps.flatMap((step) => {
    if (step.kind === "add") return [BigInt.asUintN(64, step.reference)];
    if (step.kind === "zigzag") return [];
    return step.factors.map((factor) => {
      if (bits === 64) view.setFloat64(0, factor);
      else view.setFloat32(4, factor);
      return view.getBigUint64(0) & (bits === 64 ? 0xffff_ffff_ffff_ffffn : 0xffff_ffffn);
    });
  });
}

/** Reads the steps' parameters, and returns a function that applies the steps to a word. */
function stepper(ptx: PtxWriter, bits: Bits, steps: readonly Step[]): (word: Register) => Register {
  const kind = kindOf(bits);
  const own = (name: string) => kind === "d" ? parameter(ptx, name) : small(ptx, name);
  const parameters = steps.map((step, index) =>
    step.kind === "add" ? [own(`s${index}`)] : step.kind === "alp" ? [own(`s${index}`), own(`t${index}`)] : []
  );
  const narrowed = (word: Register) => bits < 32 ? ptx.make("r", `and.b32 $, ${word}, ${ones(bits)}`) : word;
  const [b, u] = [`b${size(kind)}`, `u${size(kind)}`];
  return (word) =>
    steps.reduce((one, step, index) => {
      const [first, second] = parameters[index] ?? [];
      switch (step.kind) {
        case "add":
          return narrowed(ptx.make(kind, `add.${u} $, ${one}, ${first}`));
        case "zigzag": {
          const half = ptx.make(kind, `shr.${u} $, ${one}, 1`);
          const sign = ptx.make(kind, `neg.s${size(kind)} $, ${ptx.make(kind, `and.${b} $, ${one}, 1`)}`);
          return narrowed(ptx.make(kind, `xor.${b} $, ${half}, ${sign}`));
        }
        case "alp": {
          const float = ptx.make(kind, `cvt.rn.f${size(kind)}.s${size(kind)} $, ${one}`);
          const up = ptx.make(kind, `mul.rn.f${size(kind)} $, ${float}, ${first}`);
          return ptx.make(kind, `mul.rn.f${size(kind)} $, ${up}, ${second}`);
        }
      }
    }, word);
}

const chainKey = (bits: Bits, steps: readonly Step[]) => `${bits} ${steps.map(({ kind }) => kind)}`;

// law vortex/device.unpackKernel: vortex/device/decode
/**
 * Unpacks blocks of 1024 words, one thread per lane, so that adjacent threads read and write adjacent words.
 *
 * Parameters: `to`, `from`, `skip` (unwanted words at the start of the first block), `count`, and those of the steps.
 */
export function unpackKernel(bits: Bits, width: number, steps: readonly Step[]): NumberKernel {
  return { key: `unpack ${width} ${chainKey(bits, steps)}`, ptx: () => unpackProgram(bits, width, steps) };
}

/** The number of threads needed to unpack `words` words. */
export function unpackThreads(bits: Bits, words: number): number {
  return Math.ceil(words / 1024) * (1024 / bits);
}

function unpackProgram(bits: Bits, width: number, steps: readonly Step[]): string {
  const ptx = new PtxWriter();
  const [kind, bytes, lanes] = [kindOf(bits), bits / 8, 1024 / bits];
  const [b, u] = [`b${size(kind)}`, `u${size(kind)}`];
  const [to, from, skip, count] = [pointer(ptx, "to"), pointer(ptx, "from"), small(ptx, "skip"), small(ptx, "count")];
  const thread = threadNumber(ptx);
  const block = ptx.make("r", `shr.u32 $, ${thread}, ${Math.log2(lanes)}`);
  const lane = ptx.make("r", `and.b32 $, ${thread}, ${lanes - 1}`);
  const end = ptx.make("r", `add.u32 $, ${ptx.make("r", `add.u32 $, ${skip}, ${count}`)}, 1023`);
  endUnless(ptx, block, ptx.make("r", `shr.u32 $, ${end}, 10`));
  const source = at(ptx, at(ptx, from, block, 128 * width), lane, bytes);
  // The index of row 0. In the first block it may precede the first word: then it wraps around to beyond the count.
  const place = ptx.make("r", `sub.u32 $, ${ptx.make("r", `mad.lo.u32 $, ${block}, 1024, ${lane}`)}, ${skip}`);
  const signed = ptx.make("d", `cvt.s64.s32 $, ${place}`);
  const target = ptx.make("d", `mad.lo.s64 $, ${signed}, ${bytes}, ${to}`);
  const apply = stepper(ptx, bits, steps);
  const words: Register[] = [];
  const word = (index: number) => words[index] ??= loadWord(ptx, bits, `${source}+${128 * index}`);
  for (let row = 0; row < bits; row++) {
    const [first, shift] = [Math.floor(row * width / bits), row * width % bits];
    let value: Register;
    if (width === 0) value = ptx.zero(kind);
    else {
      value = shift === 0 ? word(first) : ptx.make(kind, `shr.${u} $, ${word(first)}, ${shift}`);
      if (shift + width > bits) {
        const next = ptx.make(kind, `shl.${b} $, ${word(first + 1)}, ${bits - shift}`);
        value = ptx.make(kind, `or.${b} $, ${value}, ${next}`);
      }
      if (width < bits) value = ptx.make(kind, `and.${b} $, ${value}, ${ones(width)}`);
    }
    const offset = firstOfRow(row);
    const isWanted = ptx.make("p", `setp.lt.u32 $, ${ptx.make("r", `add.u32 $, ${place}, ${offset}`)}, ${count}`);
    storeWord(ptx, bits, `${target}+${offset * bytes}`, apply(value), `@${isWanted} `);
  }
  return ptx.program("decode", 0, ["to", "from", "skip", "count", ...stepParameters(steps)]);
}

// law vortex/device.stepKernel: vortex/device/decode
/** Applies steps to words in place. Parameters: `to`, `count`, and those of the steps. */
export function stepKernel(bits: Bits, steps: readonly Step[]): NumberKernel {
  const ptx = () => {
    const ptx = new PtxWriter();
    const [to, count, thread] = [pointer(ptx, "to"), small(ptx, "count"), threadNumber(ptx)];
    endUnless(ptx, thread, count);
    const address = at(ptx, to, thread, bits / 8);
    storeWord(ptx, bits, address, stepper(ptx, bits, steps)(loadWord(ptx, bits, address)));
    return ptx.program("decode", 0, ["to", "count", ...stepParameters(steps)]);
  };
  return { key: `step ${chainKey(bits, steps)}`, ptx };
}

// law vortex/device.takeKernel: vortex/device/decode
/**
 * Looks words up. An out-of-range code yields 0, and sets the word at `wrong` to 1 if its row is valid.
 *
 * Parameters: `to`, `codes`, `values`, `count`, `entries`, `wrong`, and `valid` if rows are masked.
 */
export function takeKernel(bits: Bits, codeBits: 8 | 16 | 32, hasMask: boolean): NumberKernel {
  const ptx = () => {
    const ptx = new PtxWriter();
    const [to, codes, values] = [pointer(ptx, "to"), pointer(ptx, "codes"), pointer(ptx, "values")];
    const [count, entries, thread] = [small(ptx, "count"), small(ptx, "entries"), threadNumber(ptx)];
    endUnless(ptx, thread, count);
    const code = loadWord(ptx, codeBits, at(ptx, codes, thread, codeBits / 8));
    const isThere = ptx.make("p", `setp.lt.u32 $, ${code}, ${entries}`);
    const word = loadWord(ptx, bits, at(ptx, values, code, bits / 8), `@${isThere} `);
    storeWord(ptx, bits, at(ptx, to, thread, bits / 8), word);
    ptx.line(`@${isThere} ret`);
    if (hasMask) {
      const byte = loadWord(ptx, 8, at(ptx, pointer(ptx, "valid"), ptx.make("r", `shr.u32 $, ${thread}, 3`), 1));
      const place = ptx.make("r", `and.b32 $, ${thread}, 7`);
      const bit = ptx.make("r", `and.b32 $, ${ptx.make("r", `shr.u32 $, ${byte}, ${place}`)}, 1`);
      ptx.line(`@${ptx.make("p", `setp.eq.u32 $, ${bit}, 0`)} ret`);
    }
    ptx.line(`st.global.u32 [${pointer(ptx, "wrong")}], ${ptx.make("r", "mov.u32 $, 1")}`);
    const mask = hasMask ? ["valid"] : [];
    return ptx.program("decode", 0, ["to", "codes", "values", "count", "entries", "wrong", ...mask]);
  };
  return { key: `take ${bits} ${codeBits} ${hasMask}`, ptx };
}

/** Rows per thread when repeating runs: a block searches once for the runs of its first and last rows. */
const RUN_ROWS = 8;

/** The number of threads needed to repeat runs over `rows` rows. */
export function runThreads(rows: number): number {
  return Math.ceil(rows / (RUN_ROWS * THREADS)) * THREADS;
}

// law vortex/device.runKernel: vortex/device/decode
/**
 * Repeats words up to the ends of their runs: each row searches for the first run that ends after it, between the runs
 * of its block's first and last rows.
 *
 * Parameters: `to`, `ends` (32-bit, ascending, the last one after the last row), `values`, `count`, `runs`, `offset`.
 */
export function runKernel(bits: Bits): NumberKernel {
  const ptx = () => {
    const ptx = new PtxWriter();
    const [to, ends, values] = [pointer(ptx, "to"), pointer(ptx, "ends"), pointer(ptx, "values")];
    const [count, offset] = [small(ptx, "count"), small(ptx, "offset")];
    // `endsKernel` detects invalid ends; until the host reads its result, they must not index past the values.
    const last = ptx.make("r", `sub.u32 $, ${small(ptx, "runs")}, 1`);
    const [block, thread] = [ptx.make("r", "mov.u32 $, %ctaid.x"), ptx.make("r", "mov.u32 $, %tid.x")];
    const first = ptx.make("r", `mul.lo.u32 $, ${block}, ${RUN_ROWS * THREADS}`);
    const seek = (row: Register, low: Register, high: Register): void => {
      const [again, found] = [ptx.label(), ptx.label()];
      const wanted = ptx.make("r", `add.u32 $, ${row}, ${offset}`);
      ptx.place(again);
      ptx.line(`@${ptx.make("p", `setp.ge.u32 $, ${low}, ${high}`)} bra ${found}`);
      const middle = ptx.make("r", `shr.u32 $, ${ptx.make("r", `add.u32 $, ${low}, ${high}`)}, 1`);
      const isBehind = ptx.make("p", `setp.gt.u32 $, ${loadWord(ptx, 32, at(ptx, ends, middle, 4))}, ${wanted}`);
      ptx.line(`@${isBehind} mov.u32 ${high}, ${middle}`);
      ptx.line(`@!${isBehind} add.u32 ${low}, ${middle}, 1`);
      ptx.line(`bra ${again}`);
      ptx.place(found);
    };
    const copy = (of: Register) => ptx.make("r", `mov.u32 $, ${of}`);
    // Threads 0 and 32, in different warps, search at the same time.
    const tile = ptx.make("r", "mov.u32 $, tile");
    const isSeeker = ptx.make("p", `setp.eq.u32 $, ${ptx.make("r", `and.b32 $, ${thread}, ${~32 >>> 0}`)}, 0`);
    const known = ptx.label();
    ptx.line(`@!${isSeeker} bra ${known}`);
    const far = ptx.make("r", `mul.lo.u32 $, ${ptx.make("r", `shr.u32 $, ${thread}, 5`)}, ${RUN_ROWS * THREADS - 1}`);
    const sought = ptx.make("r", `add.u32 $, ${first}, ${far}`);
    const [low, high] = [ptx.zero("r"), copy(last)];
    seek(ptx.make("r", `min.u32 $, ${sought}, ${ptx.make("r", `sub.u32 $, ${count}, 1`)}`), low, high);
    const place = ptx.make("r", `add.u32 $, ${tile}, ${ptx.make("r", `shr.u32 $, ${thread}, 3`)}`);
    ptx.line(`st.shared.u32 [${place}], ${low}`);
    ptx.place(known);
    ptx.line("bar.sync 0");
    const from = ptx.make("r", `ld.shared.u32 $, [${tile}]`);
    const until = ptx.make("r", `ld.shared.u32 $, [${tile}+4]`);
    let row = ptx.make("r", `add.u32 $, ${first}, ${thread}`);
    for (let k = 0; k < RUN_ROWS; k++) {
      endUnless(ptx, row, count);
      const [run, end] = [copy(from), copy(until)];
      seek(row, run, end);
      const word = loadWord(ptx, bits, at(ptx, values, run, bits / 8));
      storeWord(ptx, bits, at(ptx, to, row, bits / 8), word);
      row = ptx.make("r", `add.u32 $, ${row}, ${THREADS}`);
    }
    return ptx.program("decode", 8, ["to", "ends", "values", "count", "runs", "offset"]);
  };
  return { key: `runs ${bits}`, ptx };
}

// law vortex/device.endsKernel: vortex/device/decode
/**
 * Widens the ends of runs to 32 bits. Sets the word at `wrong` to 1 if an end is not greater than the one before it, if
 * the first is less than `offset`, or if the last is less than `least`, where the rows end.
 *
 * Parameters: `to`, `ends`, `count`, `offset`, `least`, `wrong`.
 */
export function endsKernel(endBits: 8 | 16 | 32): NumberKernel {
  const ptx = () => {
    const ptx = new PtxWriter();
    const [to, ends] = [pointer(ptx, "to"), pointer(ptx, "ends")];
    const [count, thread] = [small(ptx, "count"), threadNumber(ptx)];
    endUnless(ptx, thread, count);
    const end = loadWord(ptx, endBits, at(ptx, ends, thread, endBits / 8));
    storeWord(ptx, 32, at(ptx, to, thread, 4), end);
    const index = ptx.make("r", `sub.u32 $, ${ptx.make("r", `max.u32 $, ${thread}, 1`)}, 1`);
    const before = loadWord(ptx, endBits, at(ptx, ends, index, endBits / 8));
    const truth = (predicate: Register) => ptx.make("r", `selp.u32 $, 1, 0, ${predicate}`);
    const rises = truth(ptx.make("p", `setp.gt.u32 $, ${end}, ${before}`));
    const begins = truth(ptx.make("p", `setp.ge.u32 $, ${end}, ${small(ptx, "offset")}`));
    const reaches = truth(ptx.make("p", `setp.ge.u32 $, ${end}, ${small(ptx, "least")}`));
    const isFirst = ptx.make("p", `setp.eq.u32 $, ${thread}, 0`);
    const next = ptx.make("r", `add.u32 $, ${thread}, 1`);
    const isLast = ptx.make("p", `setp.eq.u32 $, ${next}, ${count}`);
    const fits = ptx.make("r", `selp.u32 $, ${begins}, ${rises}, ${isFirst}`);
    const isRight = ptx.make("r", `and.b32 $, ${fits}, ${ptx.make("r", `selp.u32 $, ${reaches}, 1, ${isLast}`)}`);
    ptx.line(`@${ptx.make("p", `setp.ne.u32 $, ${isRight}, 0`)} ret`);
    ptx.line(`st.global.u32 [${pointer(ptx, "wrong")}], ${ptx.make("r", "mov.u32 $, 1")}`);
    return ptx.program("decode", 0, ["to", "ends", "count", "offset", "least", "wrong"]);
  };
  return { key: `ends ${endBits}`, ptx };
}

// law vortex/device.sequenceKernel: vortex/device/decode
/** Writes words in constant steps; a step of 0 repeats one word. Parameters: `to`, `count`, `base`, `step`. */
export function sequenceKernel(bits: Bits): NumberKernel {
  const ptx = () => {
    const ptx = new PtxWriter();
    const [to, count, thread] = [pointer(ptx, "to"), small(ptx, "count"), threadNumber(ptx)];
    endUnless(ptx, thread, count);
    const number = ptx.make("d", `cvt.u64.u32 $, ${thread}`);
    const word = ptx.make("d", `mad.lo.s64 $, ${number}, ${parameter(ptx, "step")}, ${parameter(ptx, "base")}`);
    const stored = bits === 64 ? word : ptx.make("r", `cvt.u32.u64 $, ${word}`);
    storeWord(ptx, bits, at(ptx, to, thread, bits / 8), stored);
    return ptx.program("decode", 0, ["to", "count", "base", "step"]);
  };
  return { key: `sequence ${bits}`, ptx };
}

// law vortex/device.patchKernel: vortex/device/decode
/** Overwrites words at given rows. Parameters: `to`, `rows` (32-bit, all distinct), `values`, `count`. */
export function patchKernel(bits: Bits): NumberKernel {
  const ptx = () => {
    const ptx = new PtxWriter();
    const [to, rows, values] = [pointer(ptx, "to"), pointer(ptx, "rows"), pointer(ptx, "values")];
    const [count, thread] = [small(ptx, "count"), threadNumber(ptx)];
    endUnless(ptx, thread, count);
    const row = loadWord(ptx, 32, at(ptx, rows, thread, 4));
    storeWord(ptx, bits, at(ptx, to, row, bits / 8), loadWord(ptx, bits, at(ptx, values, thread, bits / 8)));
    return ptx.program("decode", 0, ["to", "rows", "values", "count"]);
  };
  return { key: `patch ${bits}`, ptx };
}
