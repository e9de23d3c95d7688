/**
 * Imports of ArrowSchema: a foreign struct as a field.
 *
 * @module
 */
import { ARROW_FLAG, ArrowSchema } from "../../bindings/arrow.ts";
import { readCString, struct, type StructView } from "../ffi/mod.ts";
import { parseArrowFormat } from "./format.ts";
import { readMetadata } from "./metadata.ts";
import type { ArrowField, ArrowType } from "./type.ts";
import { Walk } from "./walk.ts";

/**
 * Reads a schema, which its producer still owns.
 *
 * @throws {ExchangeError} if it was released, or is invalid in the C data interface
 */
export function readSchema(address: bigint): ArrowField {
  return readField(address, 0, new Walk("ArrowSchema"));
}

// law cdata/readField: arrow/array, cdata/fuzz
function readField(address: bigint, depth: number, walk: Walk): ArrowField {
  walk.enter(address, depth);
  const schema = struct(ArrowSchema).at(address);
  if (schema.release === 0n) throw walk.refusal("is released or was moved: its release callback is NULL");
  if (schema.format === 0n) throw walk.refusal("has no format");
  const { flags } = schema;
  return {
    name: readCString(schema.name),
    nullable: (flags & ARROW_FLAG.NULLABLE) !== 0n,
    metadata: readMetadata(schema.metadata),
    type: readType(schema, flags, depth, walk),
  };
}

// law cdata/readType: arrow/array, cdata/fuzz
function readType(schema: StructView<typeof ArrowSchema>, flags: bigint, depth: number, walk: Walk): ArrowType {
  const count = walk.count(schema.n_children, "number of children");
  const children = walk.pointers(schema.children, count, "children").map((child) => readField(child, depth + 1, walk));
  const keysSorted = (flags & ARROW_FLAG.MAP_KEYS_SORTED) !== 0n;
  const type = parseArrowFormat(readCString(schema.format), children, keysSorted);
  if (schema.dictionary === 0n) return type;
  if (type.kind !== "int" && type.kind !== "uint") {
    throw walk.refusal(`has a dictionary and indices of ${type.kind}: expected integers`);
  }
  const values = readField(schema.dictionary, depth + 1, walk);
  return { kind: "dictionary", index: type, values, ordered: (flags & ARROW_FLAG.DICTIONARY_ORDERED) !== 0n };
}
