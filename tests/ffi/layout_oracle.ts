/**
 * The layout of C structs, computed differently from `src/ffi/struct.ts`: scalar by scalar, each moved up one byte at a
 * time until it is aligned.
 *
 * @module
 */
import type { CScalar, Field, StructDescription } from "../../bindings/abi.ts";
import { fc } from "../support/property.ts";
import { scalars } from "./scalars.ts";

/** One field: its property path, and its offset. */
export interface Place {
  readonly path: readonly string[];
  readonly field: Field;
  readonly offset: number;
}

const widths: { readonly [S in CScalar]: number } = {
  i8: 1,
  u8: 1,
  i16: 2,
  u16: 2,
  i32: 4,
  u32: 4,
  i64: 8,
  u64: 8,
  f32: 4,
  f64: 8,
  size: 8,
  ptr: 8,
};

function isArray(field: Field): field is readonly [CScalar | StructDescription, number] {
  return Array.isArray(field);
}

/** The width of the widest scalar in a field, which is the field's alignment. */
export function alignmentOf(field: Field): number {
  if (typeof field === "string") return widths[field];
  if (isArray(field)) return alignmentOf(field[0]);
  return Math.max(1, ...Object.values(field).map(alignmentOf));
}

/** Size of a field in bytes. */
export function sizeOf(field: Field): number {
  if (typeof field === "string") return widths[field];
  if (isArray(field)) return sizeOf(field[0]) * field[1];
  let end = placesOf(field).filter(({ path }) => path.length === 1)
    .reduce((end, { field, offset }) => Math.max(end, offset + sizeOf(field)), 0);
  while (end % alignmentOf(field) !== 0) end++;
  return end;
}

/** Every field of a struct and its nested structs, arrays as a whole. */
export function placesOf(description: StructDescription): Place[] {
  let end = 0;
  return Object.entries(description).flatMap(([name, field]) => {
    while (end % alignmentOf(field) !== 0) end++;
    const offset = end;
    end += sizeOf(field);
    const inner = typeof field === "string" || isArray(field) ? [] : placesOf(field);
    return [
      { path: [name], field, offset },
      ...inner.map((place) => ({ ...place, path: [name, ...place.path], offset: offset + place.offset })),
    ];
  });
}

function structOf(fields: readonly Field[]): StructDescription {
  return Object.fromEntries(fields.map((field, index) => [`f${index}`, field]));
}

/** Structs of scalars, arrays and structs, up to three deep. */
export const descriptions: fc.Arbitrary<StructDescription> = fc.letrec<{ struct: StructDescription }>((tie) => {
  const scalar = fc.constantFrom(...scalars);
  const count = fc.integer({ min: 1, max: 5 });
  const array = fc.tuple(fc.oneof({ maxDepth: 2 }, scalar, tie("struct")), count);
  const field: fc.Arbitrary<Field> = fc.oneof(
    { maxDepth: 2 },
    { arbitrary: scalar, weight: 6 },
    { arbitrary: array, weight: 1 },
    { arbitrary: tie("struct"), weight: 2 },
  );
  return { struct: fc.array(field, { minLength: 1, maxLength: 7 }).map(structOf) };
}).struct;
