/**
 * The scalar types of PTX.
 *
 * @module
 */

/** How the bits of a type are interpreted. */
export type TypeKind = "bits" | "unsigned" | "signed" | "float" | "packed" | "predicate";

/** A type of a register, a variable or an instruction. */
export interface ScalarType {
  /** Without the dot: `u32`. */
  readonly name: string;
  readonly kind: TypeKind;
  /** Width in bits; 1 for a predicate. */
  readonly bits: number;
  /** Size in memory. */
  readonly bytes: number;
}

function scalar(name: string, kind: TypeKind, bits: number): [string, ScalarType] {
  return [name, { name, kind, bits, bytes: Math.ceil(bits / 8) }];
}

/** Every supported type, by its name without the dot. */
export const scalarTypes: ReadonlyMap<string, ScalarType> = new Map([
  scalar("pred", "predicate", 1),
  ...[8, 16, 32, 64, 128].map((bits) => scalar(`b${bits}`, "bits", bits)),
  ...[8, 16, 32, 64].map((bits) => scalar(`u${bits}`, "unsigned", bits)),
  ...[8, 16, 32, 64].map((bits) => scalar(`s${bits}`, "signed", bits)),
  ...[16, 32, 64].map((bits) => scalar(`f${bits}`, "float", bits)),
  scalar("bf16", "float", 16),
  scalar("f16x2", "packed", 32),
  scalar("bf16x2", "packed", 32),
  scalar("u16x2", "packed", 32),
  scalar("s16x2", "packed", 32),
]);

/** Bytes that a register takes in a frame: one word for any type up to 32 bits. */
export function registerBytes(type: ScalarType): number {
  return Math.max(4, type.bytes);
}

/** Whether the type is read as a signed integer. */
export function isSigned(type: ScalarType): boolean {
  return type.kind === "signed";
}

/** The type of a name known to be valid. */
export function scalarType(name: string): ScalarType {
  const type = scalarTypes.get(name);
  if (type === undefined) throw new Error(`${name} is not a type`);
  return type;
}

/** The type of counts, lanes and shift amounts. */
export const u32: ScalarType = scalarType("u32");

/** The type of predicates. */
export const pred: ScalarType = scalarType("pred");
