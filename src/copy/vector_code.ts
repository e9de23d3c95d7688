/**
 * Code of a loop of vectors, as it is written: an expression is a list of instructions that leaves a vector, and what
 * is used more than once is kept in a local.
 *
 * @module
 */
import type { VectorLoopCode } from "../native/mod.ts";
import type { Instruction, WasmFunction } from "../wasm/mod.ts";

/** Instructions that leave a vector. One that is used more than once is to be kept first. */
export type Vector = readonly Instruction[];

/** Bits of a lane. */
export type LaneBits = 8 | 16 | 32 | 64;

/** An instruction that takes vectors from the stack, and leaves one. */
type Operation = Extract<Instruction, readonly [string]>[0];

// Parameters of every loop.
const INPUT = 0;
const OUTPUT = 1;
const TURNS = 2;
const PARAMETERS = 3;

const integers = { 8: "i8x16", 16: "i16x8", 32: "i32x4", 64: "i64x2" } as const;

/** A loop from an address to an address, so many turns, at least one. */
export class VectorLoop {
  readonly #constants = new Map<bigint, { readonly local: number; readonly bits: bigint }>();
  readonly #temporaries: number[] = [];
  readonly #body: Instruction[] = [];
  #locals = 0;
  #used = 0;

  /** The vector at so many bytes behind where this turn reads. */
  load(offset: number): Vector {
    return this.keep([["local.get", INPUT], ["v128.load", offset]]);
  }

  /** Writes a vector so many bytes behind where this turn writes. */
  store(vector: Vector, offset: number): void {
    this.#body.push(["local.get", OUTPUT], ...vector, ["v128.store", offset]);
  }

  /** Has a vector computed here, once. */
  keep(vector: Vector): Vector {
    const local = this.#temporaries[this.#used] ?? this.#newLocal();
    this.#temporaries[this.#used++] = local;
    this.#body.push(...vector, ["local.set", local]);
    return [["local.get", local]];
  }

  /** Goes one way where all lanes of a vector of 64-bit lanes are set, and another way where one is not. */
  either(lanes: Vector, one: () => void, other: () => void): void {
    this.#body.push(...lanes, ["i64x2.all_true"], ["if"]);
    one();
    this.#body.push(["else"]);
    other();
    this.#body.push(["end"]);
  }

  /** Says that nothing that was kept is used again. */
  forget(): void {
    this.#used = 0;
  }

  /** The same number in each lane. It is made once, before the loop: engines make constants where they are used. */
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

  /** What machine code can be made of, given the same. */
  code(inputBytes: number, outputBytes: number): VectorLoopCode {
    const constants = new Map([...this.#constants.values()].map(({ local, bits }) => [local, bits]));
    return { constants, body: this.#body, inputBytes, outputBytes };
  }

  /** The function, given by how much input and output go on with each turn. */
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

/** What an operation makes of vectors. */
export function apply(operation: Operation, ...vectors: readonly Vector[]): Vector {
  return [...vectors.flat(), [operation]];
}

/** Each lane shifted. */
export function shifted(bits: 16 | 32 | 64, direction: "shl" | "shr_u", vector: Vector, count: number): Vector {
  return [...vector, ["i32.const", count], [`${integers[bits]}.${direction}`]];
}

/** Lanes that are all ones where those of two vectors differ. */
export function differs(bits: LaneBits, one: Vector, other: Vector): Vector {
  return apply(`${integers[bits]}.ne`, one, other);
}

/** A vector of bytes of two. */
function shuffled(one: Vector, other: Vector, lanes: readonly number[]): Vector {
  return [...one, ...other, ["i8x16.shuffle", ...lanes]];
}

/** The upper eight bytes, as the lower ones; of a vector that is kept. */
export function upperHalf(vector: Vector): Vector {
  return shuffled(vector, vector, [8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7]);
}

/** The lower eight bytes of two vectors. */
export function besides(one: Vector, other: Vector): Vector {
  return shuffled(one, other, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]);
}

/** Every other group of so many bytes, the first of each two, of half as many vectors. */
export function evens(vectors: readonly Vector[], bytes: number): Vector[] {
  const lanes = Array.from({ length: 16 }, (_, at) => 2 * at - at % bytes);
  return paired(vectors, (one, other) => shuffled(one, other, lanes));
}

/** One vector of each two. */
export function paired(vectors: readonly Vector[], join: (one: Vector, other: Vector) => Vector): Vector[] {
  return vectors.flatMap((one, at) => {
    const other = vectors[at + 1];
    return at % 2 === 0 && other !== undefined ? [join(one, other)] : [];
  });
}
