/**
 * ArrowSchema: a field as a struct for any library, and a foreign struct as a field.
 *
 * @module
 */
import { ARROW_FLAG, ArrowSchema } from "../../bindings/arrow.ts";
import { cString, readCString, struct, type StructView } from "../ffi/mod.ts";
import { releaseThunks } from "../native/mod.ts";
import { ExportedTree, noOwner, type PlannedTree, StructBlock, type TreeNode } from "./exported_tree.ts";
import { formatOf, parseArrowFormat } from "./format.ts";
import { encodeMetadata, readMetadata } from "./metadata.ts";
import { type ArrowField, type ArrowType, childrenOf } from "./type.ts";
import { Walk } from "./walk.ts";

/** Exports a field. */
export function exportSchema(field: ArrowField): ExportedTree {
  const block = new StructBlock();
  const root = plan(field, block);
  block.allocate();
  root.write();
  return new ExportedTree(block.address(root.node.struct), block.tree, root.node, noOwner);
}

/**
 * Reserves the memory of a field's struct, its strings and its children; `write` fills it once the block is allocated.
 */
function plan(field: ArrowField, block: StructBlock): PlannedTree {
  const { type } = field;
  const children = childrenOf(type).map((child) => plan(child, block));
  const dictionary = type.kind === "dictionary" ? plan(type.values, block) : null;
  const schema = block.struct(ArrowSchema);
  const counter = block.reserve(8);
  const pointers = block.reserve(8 * children.length);
  const format = block.bytes(cString(formatOf(type)));
  const name = block.bytes(cString(field.name));
  const encoded = encodeMetadata(field.metadata);
  const metadata = encoded === null ? null : block.bytes(encoded);
  const inner = dictionary === null ? children : [...children, dictionary];
  const node: TreeNode = { struct: schema, counter, kind: "ArrowSchema", inner: inner.map((one) => one.node) };
  return {
    node,
    write() {
      for (const one of inner) one.write();
      const out = block.at(ArrowSchema, schema);
      out.format = block.address(format);
      out.name = block.address(name);
      out.metadata = metadata === null ? 0n : block.address(metadata);
      out.flags = flagsOf(field);
      out.n_children = BigInt(children.length);
      out.children = children.length === 0 ? 0n : block.address(pointers);
      block.pointers(pointers, children.map((child) => block.address(child.node.struct)));
      out.dictionary = dictionary === null ? 0n : block.address(dictionary.node.struct);
      out.release = releaseThunks().address.ArrowSchema;
      out.private_data = block.address(counter);
    },
  };
}

function flagsOf({ nullable, type }: ArrowField): bigint {
  return (nullable ? ARROW_FLAG.NULLABLE : 0n) |
    (type.kind === "dictionary" && type.ordered ? ARROW_FLAG.DICTIONARY_ORDERED : 0n) |
    (type.kind === "map" && type.keysSorted ? ARROW_FLAG.MAP_KEYS_SORTED : 0n);
}

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
