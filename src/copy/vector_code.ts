/**
 * Code generation for vector loops: an expression is a list of instructions that leaves a vector on the stack, and a
 * value used more than once is kept in a local.
 *
 * @module
 */
import type { VectorLoopCode } from "../native/mod.ts";
import type { Instruction, WasmFunction } from "../wasm/mod.ts";

/** Instructions that leave a vector. One used more than once must be kept first. */
export type Vector = readonly Instruction[];

/** Bits of a lane. */
export type LaneBits = 8 | 16 | 32 | 64;

/** An instruction that pops vectors from the stack, and pushes one. */
type Operation = Extract<Instruction, readonly [string]>[0];

// Parameters of every loop.
const INPUT = 0;
const OUTPUT = 1;
const TURNS = 2;
const PARAMETERS = 3;

const integers = { 8: "i8x16", 16: "i16x8", 32: "i32x4", 64: "i64x2" } as const;

/** A loop that reads from one address and writes to another, for a number of iterations, at least one. */
export class VectorLoop {
  readonly #constants = new Map<bigint, { readonly local: number; readonly bits: bigint }>();
  readonly #temporaries: number[] = [];
  readonly #body: Instruction[] = [];
  #locals = 0;
  #used = 0;

  /** The vector `offset` bytes after this iteration's input address. It is read where it is used. */
  load(offset: number): Vector {
    return [["local.get", INPUT], ["v128.load", offset]];
  }

  /** Writes a vector `offset` bytes after this iteration's output address. */
  store(vector: Vector, offset: number): void {
    this.#body.push(["local.get", OUTPUT], ...vector, ["v128.store", offset]);
  }

  /** Computes a vector here, once, and keeps it in a local. */
  keep(vector: Vector): Vector {
    const local = this.#temporaries[this.#used] ?? this.#newLocal();
    this.#temporaries[this.#used++] = local;
    this.#body.push(...vector, ["local.set", local]);
    return [["local.get", local]];
  }

  /** Branches: one way if all lanes of a vector of 64-bit lanes are set, the other way if not. */
  either(lanes: Vector, one: () => void, other: () => void): void {
    this.#body.push(...lanes, ["i64x2.all_true"], ["if"]);
    one();
    this.#body.push(["else"]);
    other();
    this.#body.push(["end"]);
  }

  /** Declares that no kept vector is used again. */
  forget(): void {
    this.#used = 0;
  }

  /** The same number in each lane. It is made once, before the loop: engines materialise constants at each use. */
  constant(bits: LaneBits, value: bigint): Vector {
    let word = BigInt.asUintN(bits, value);
    for (let size = BigInt(bits); size < 64n; size *= 2n) word |= word << size;
    const { local } = this.#constants.getOrInsertComputed(word, () => ({ local: this.#newLocal(), bits: word }));
    return [["local.get", local]];
  }

  /** The same double in each lane. */
  double(value: number): Vector {
    return this.constant(64, new BigUint64Array(Float64Array.of(value).buffer)[0] ?? 0n);
  }

  /** The code from which machine code is generated; parameters as for `finished`. */
  code(inputBytes: number, outputBytes: number): VectorLoopCode {
    const constants = new Map([...this.#constants.values()].map(({ local, bits }) => [local, bits]));
    return { constants, body: this.#body, inputBytes, outputBytes };
  }

  /** The WebAssembly function, given by how many bytes input and output advance per iteration. */
  finished(inputBytes: number, outputBytes: number): WasmFunction {
    const before = [...this.#constants.values()].flatMap(({ local, bits }): Instruction[] => [
      ["v128.const", bits, bits],
      ["local.set", local],
    ]);
    return {
      parameters: PARAMETERS,
      locals: Array.from({ length: this.#locals }, () => "v128" as const),
      body: [
        ...before,
        ["loop"],
        ...this.#body,
        ...added(INPUT, inputBytes),
        ["local.set", INPUT],
        ...added(OUTPUT, outputBytes),
        ["local.set", OUTPUT],
        ...added(TURNS, -1),
        ["local.tee", TURNS],
        ["br_if", 0],
        ["end"],
      ],
    };
  }

  #newLocal(): number {
    return PARAMETERS + this.#locals++;
  }
}

function added(local: number, value: number): Instruction[] {
  return [["local.get", local], ["i32.const", value], ["i32.add"]];
}

/** Applies an operation to vectors. */
export function apply(operation: Operation, ...vectors: readonly Vector[]): Vector {
  return [...vectors.flat(), [operation]];
}

/** Shifts each lane. */
export function shifted(bits: 16 | 32 | 64, direction: "shl" | "shr_u", vector: Vector, count: number): Vector {
  return [...vector, ["i32.const", count], [`${integers[bits]}.${direction}`]];
}

/** Lanes that are all ones where those of two vectors differ. */
export function differs(bits: LaneBits, one: Vector, other: Vector): Vector {
  return apply(`${integers[bits]}.ne`, one, other);
}

/** A vector of selected bytes of two vectors. */
function shuffled(one: Vector, other: Vector, lanes: readonly number[]): Vector {
  return [...one, ...other, ["i8x16.shuffle", ...lanes]];
}

/** Moves the upper eight bytes of a kept vector to the lower half. */
export function upperHalf(vector: Vector): Vector {
  return shuffled(vector, vector, [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7]);
}

/** The lower eight bytes of two vectors. */
export function besides(one: Vector, other: Vector): Vector {
  return shuffled(one, other, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]);
}

/** Every other group of `bytes` bytes, the first of each pair, packed into half as many vectors. */
export function evens(vectors: readonly Vector[], bytes: number): Vector[] {
  const lanes = Array.from({ length: 16 }, (_, at) => 2 * at - at % bytes);
  return paired(vectors, (one, other) => shuffled(one, other, lanes));
}

/** Joins each pair of vectors into one. */
export function paired(vectors: readonly Vector[], join: (one: Vector, other: Vector) => Vector): Vector[] {
  return vectors.flatMap((one, at) => {
    const other = vectors[at + 1];
    return at % 2 === 0 && other !== undefined ? [join(one, other)] : [];
  });
}
