/**
 * Exports of ArrowSchema: a field as a struct for any library.
 *
 * @module
 */
import { ARROW_FLAG, ArrowSchema } from "../../bindings/arrow.ts";
import { releaseThunks } from "../native/mod.ts";
import { cString } from "../ffi/mod.ts";
import { formatOf } from "./format.ts";
import { encodeMetadata } from "./metadata.ts";
import { ExportedTree, noOwner, type PlannedTree, StructBlock, type TreeNode } from "./exported_tree.ts";
import { type ArrowField, childrenOf } from "./type.ts";

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
