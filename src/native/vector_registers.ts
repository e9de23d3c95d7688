/**
 * Translates vector code written for WebAssembly to CPU registers: operands on its stack are put into registers.
 *
 * 16-byte vectors are alike everywhere, and so are most operations on them: `x8664_vectors.ts` and `aarch64_vectors.ts`
 * have one or a few instructions for each computation listed here. Code that needs any other computation, or more
 * registers, stays in WebAssembly.
 *
 * @module
 */

/** An instruction by its name in the WebAssembly specification, with its immediates. */
export type VectorInstruction = readonly [name: string, ...values: readonly (number | bigint)[]];

/** The code of each turn of a loop, with a stack that is empty before and after it, and before each store. */
export interface VectorTurn {
  /** By local: the 64-bit word that it holds twice, before the first turn and in each turn. */
  readonly constants: ReadonlyMap<number, bigint>;
  /** Local 0 is the address to read from, 1 the address to write to, and all others hold vectors. */
  readonly body: readonly VectorInstruction[];
}

/** Computations with one result, by name, and how many vectors they take. Shuffles are named for what they do. */
export const computations = {
  "v128.and": 2,
  "v128.or": 2,
  "v128.xor": 2,
  "v128.bitselect": 3,
  "upper half": 1,
  "lower halves": 2,
  "evens of 4": 2,
  "evens of 2": 2,
  "evens of 1": 2,
  "i8x16.min_u": 2,
  "i8x16.ne": 2,
  "i8x16.narrow_i16x8_s": 2,
  "i8x16.narrow_i16x8_u": 2,
  "i16x8.ne": 2,
  "i16x8.narrow_i32x4_s": 2,
  "i16x8.narrow_i32x4_u": 2,
  "i16x8.extend_low_i8x16_s": 1,
  "i16x8.extend_high_i8x16_s": 1,
  "i16x8.extend_low_i8x16_u": 1,
  "i16x8.extend_high_i8x16_u": 1,
  "i16x8.shl": 1,
  "i32x4.add": 2,
  "i32x4.eq": 2,
  "i32x4.ne": 2,
  "i32x4.gt_s": 2,
  "i32x4.min_s": 2,
  "i32x4.extend_low_i16x8_s": 1,
  "i32x4.extend_high_i16x8_s": 1,
  "i32x4.extend_low_i16x8_u": 1,
  "i32x4.extend_high_i16x8_u": 1,
  "i32x4.shl": 1,
  "i32x4.shr_u": 1,
  "i32x4.trunc_sat_f32x4_s": 1,
  "i32x4.trunc_sat_f32x4_u": 1,
  "i32x4.trunc_sat_f64x2_s_zero": 1,
  "i32x4.trunc_sat_f64x2_u_zero": 1,
  "i64x2.extend_low_i32x4_s": 1,
  "i64x2.extend_high_i32x4_s": 1,
  "i64x2.extend_low_i32x4_u": 1,
  "i64x2.extend_high_i32x4_u": 1,
  "i64x2.shl": 1,
  "i64x2.shr_u": 1,
  "i64x2.add": 2,
  "i64x2.sub": 2,
  "i64x2.eq": 2,
  "i64x2.ne": 2,
  "f32x4.ne": 2,
  "f32x4.add": 2,
  "f32x4.sub": 2,
  "f32x4.convert_i32x4_s": 1,
  "f32x4.convert_i32x4_u": 1,
  "f32x4.demote_f64x2_zero": 1,
  "f64x2.eq": 2,
  "f64x2.ne": 2,
  "f64x2.lt": 2,
  "f64x2.gt": 2,
  "f64x2.ge": 2,
  "f64x2.abs": 1,
  "f64x2.floor": 1,
  "f64x2.trunc": 1,
  "f64x2.add": 2,
  "f64x2.sub": 2,
  "f64x2.mul": 2,
  "f64x2.pmax": 2,
  "f64x2.convert_low_i32x4_s": 1,
  "f64x2.convert_low_i32x4_u": 1,
  "f64x2.promote_low_f32x4": 1,
} as const;

export type Computation = keyof typeof computations;

/** Shuffles by their lanes. */
const shuffles: ReadonlyMap<string, Computation> = new Map([
  ["8,9,10,11,12,13,14,15,0,1,2,3,4,5,6,7", "upper half"],
  ["0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23", "lower halves"],
  ["0,1,2,3,8,9,10,11,16,17,18,19,24,25,26,27", "evens of 4"],
  ["0,1,4,5,8,9,12,13,16,17,20,21,24,25,28,29", "evens of 2"],
  ["0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30", "evens of 1"],
]);

/** The number of vector registers, which are numbered from 0. */
export const VECTOR_REGISTERS = 14;

/** The base that an offset is relative to. */
export type VectorSide = "input" | "output" | "constants";

/** An operation on vectors in registers. Offsets are multiples of 16. */
export type VectorOperation =
  | readonly ["readVector", into: number, side: VectorSide, offset: number]
  | readonly ["writeVector", value: number, side: VectorSide, offset: number]
  /** `into` may be one of the operands; no other operand changes. `count` is the shift of the lanes. */
  | readonly ["compute", name: Computation, into: number, operands: readonly number[], count: number]
  /** Notes whether a 64-bit lane is 0, in the same flag in which `lower` notes whether 0 is left. */
  | readonly ["anyZero", value: number];

/** An operation of a turn; from `ifAllSet`, which follows `anyZero`, to `otherwise` it runs if no lane was 0. */
export type TurnOperation = VectorOperation | readonly ["ifAllSet"] | readonly ["otherwise"] | readonly ["end"];

/** Code with its registers: what comes before the first turn, and each turn. */
export interface TurnInRegisters {
  readonly before: readonly VectorOperation[];
  readonly turn: readonly TurnOperation[];
}

// law native/inRegisters: native/vector_code, copy/native_conversion
/**
 * Assigns registers to code. Constants, which are in memory one after the other, get the first ones, in order, as long
 * as enough are left; others are read wherever they are used.
 *
 * @returns null if the code needs an unlisted computation, or more registers
 */
export function inRegisters({ constants, body }: VectorTurn): TurnInRegisters | null {
  const places = new Map([...constants.keys()].map((local, place) => [local, place]));
  for (let kept = Math.min(places.size, VECTOR_REGISTERS); kept >= 0; kept--) {
    const turn = assigned(body, places, kept);
    if (turn !== null) return { before: Array.from({ length: kept }, (_, i) => readConstant(i, i)), turn };
  }
  return null;
}

function readConstant(into: number, place: number): VectorOperation {
  return ["readVector", into, "constants", 16 * place];
}

/** Assigns registers to a turn, of which the first `kept` hold constants. @param places of constants, by local */
function assigned(
  body: readonly VectorInstruction[],
  places: ReadonlyMap<number, number>,
  kept: number,
): readonly TurnOperation[] | null {
  const registers = new Map([...places].filter(([, place]) => place < kept));
  const free = Array.from({ length: VECTOR_REGISTERS - registers.size }, (_, i) => registers.size + i);
  const uses = usesOf(body);
  /** By register: how often its contents will still be used. */
  const left = Array.from(free, () => 0);
  for (const register of registers.values()) left[register] = Infinity;
  const operations: TurnOperation[] = [];
  const sides: VectorSide[] = [];
  const stack: number[] = [];
  let count = 0;
  /** Counts a use of a register popped from the stack; after the last use, it is the next register to be reused. */
  const taken = (register: number): number => {
    left[register] = (left[register] ?? 0) - 1;
    if (left[register] === 0) free.unshift(register);
    return register;
  };
  const placed = (): number | null => {
    const register = free.shift();
    if (register === undefined) return null;
    left[register] = 1;
    stack.push(register);
    return register;
  };
  for (const [at, [name, ...values]] of body.entries()) {
    const value = Number(values[0]);
    switch (name) {
      case "local.get": {
        const place = places.get(value);
        if (value < 2) sides.push(value === 0 ? "input" : "output");
        else if (place === undefined || place < kept) stack.push(registers.get(value) ?? NaN);
        else {
          const into = placed();
          if (into === null) return null;
          operations.push(readConstant(into, place));
        }
        break;
      }
      case "local.set": {
        const register = taken(stack.pop() ?? NaN);
        if (left[register] !== 0) return null; // in two locals, one of which may outlive the other
        free.shift();
        registers.set(value, register);
        left[register] = uses.get(at) ?? 0;
        break;
      }
      case "i32.const":
        count = value;
        break;
      case "v128.load": {
        const into = placed();
        if (into === null) return null;
        operations.push(["readVector", into, sides.pop() ?? "input", value]);
        break;
      }
      case "i64x2.all_true":
        operations.push(["anyZero", taken(stack.pop() ?? NaN)]);
        break;
      // Registers that both branches need are free after the second; what a branch sets is not used outside it.
      case "if":
        if (operations.some(([kind]) => kind === "ifAllSet")) return null; // one branch is enough
        operations.push(["ifAllSet"]);
        break;
      case "else":
        operations.push(["otherwise"]);
        break;
      case "end":
        operations.push(["end"]);
        break;
      case "v128.store":
        operations.push(["writeVector", taken(stack.pop() ?? NaN), sides.pop() ?? "output", value]);
        break;
      default: {
        const computation = name === "i8x16.shuffle" ? shuffles.get(values.join()) : name as Computation;
        if (computation === undefined || !Object.hasOwn(computations, computation)) return null;
        const operands = stack.splice(-computations[computation]);
        // Swapping the halves of a vector took it from the stack twice.
        if (computation === "upper half") taken(stack.pop() ?? NaN);
        operands.slice(0, 1).forEach(taken);
        const into = placed();
        if (into === null) return null;
        operands.slice(1).forEach(taken);
        operations.push(["compute", computation, into, operands, count]);
      }
    }
  }
  return operations;
}

/** By index of each `local.set`: how often its value is read before the local is set again. */
function usesOf(body: readonly VectorInstruction[]): Map<number, number> {
  const [uses, last] = [new Map<number, number>(), new Map<number, number>()];
  for (const [at, [name, value]] of body.entries()) {
    const local = Number(value);
    if (name === "local.set") last.set(local, at);
    const set = name === "local.get" ? last.get(local) : undefined;
    if (set !== undefined) uses.set(set, (uses.get(set) ?? 0) + 1);
  }
  return uses;
}
