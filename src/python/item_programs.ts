/**
 * Machine code programs that read the values of many items: of a list, a tuple or an iterator. Read individually, each
 * item costs JavaScript two calls of C, for its type and for its value.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { layoutOf } from "../ffi/mod.ts";
import type { Operation } from "../native/mod.ts";
import { readKinds, tellKinds } from "./call_programs.ts";

/** Most items that a program reads per run. */
export const maxItems = 256;

/** The result for an item. */
const read_item = {
  status: "u64", // one of Status, from float to false
  value: "u64", // a double, or an integer
} as const satisfies StructDescription;

/** The block on which the programs operate. */
export const item_block = {
  // Interpreter functions.
  PyFloat_AsDouble: "ptr",
  PyLong_AsLongLongAndOverflow: "ptr",
  PyIter_Next: "ptr",
  Py_DecRef: "ptr",
  // Negated addresses, as in a block for calls.
  minusFloat: "u64",
  minusInt: "u64",
  minusNone: "u64",
  minusTrue: "u64",
  minusFalse: "u64",
  source: "ptr", // the iterator, or the place of the next item's address
  left: "u64", // how many items are still to be read
  // The item at `source` that is none of these values: a new reference if it comes from an iterator, where NULL means
  // exhausted, or an exception. Set only if items are left.
  result: "ptr",
  overflow: "u64",
  items: [read_item, maxItems],
  beyond: "u64", // writing a double also writes 8 unrelated bytes after it
} as const satisfies StructDescription;

export const { offsets: itemOffsets } = layoutOf(item_block);
const { size: readBytes, offsets: readOffsets } = layoutOf(read_item);

// `kept` is the block, `keptTo` the item, and `keptFrom` where its value goes.

// law python/itemProgram: python/item_programs
/**
 * Reads items up to the first that is not a float, a 64-bit int, None, True or False. The lock is held.
 *
 * @param typeAt offset of the type in an object
 * @param isIterator whether the items come from an iterator; else their addresses are contiguous
 */
export function itemProgram(typeAt: number, isIterator: boolean): readonly Operation[] {
  const next: Operation[] = isIterator
    ? [
      ["get", "first", "kept", itemOffsets.source],
      ["call", "kept", itemOffsets.PyIter_Next],
      ["result", "keptTo"],
      ["ifZero", "keptTo", "other"],
    ]
    : [
      ["get", "rows", "kept", itemOffsets.source],
      ["get", "keptTo", "rows", 0],
    ];
  // A list's items are borrowed, and not released.
  const over: Operation[] = isIterator ? [["copy", "first", "keptTo"], ["call", "kept", itemOffsets.Py_DecRef]] : [
    ["get", "rows", "kept", itemOffsets.source],
    ["point", "rows", "rows", 8],
    ["put", "rows", "kept", itemOffsets.source],
  ];
  return [
    ["enter"],
    ["copy", "kept", "first"],
    ["point", "keptFrom", "kept", itemOffsets.items],
    ["label", "next"],
    ["get", "left", "kept", itemOffsets.left],
    ["ifZero", "left", "all"],
    ...next,
    ...tellKinds(itemOffsets, typeAt),
    ["label", "other"],
    ["put", "keptTo", "kept", itemOffsets.result],
    ["label", "all"],
    ["leave"],
    ["return"],

    ...readKinds(itemOffsets, {
      base: "keptFrom",
      value: readOffsets.value,
      status: "rows",
      done: "read",
      other: "other",
    }),
    ["put", "rows", "keptFrom", readOffsets.status],
    ["point", "keptFrom", "keptFrom", readBytes],
    ...over,
    ["get", "left", "kept", itemOffsets.left],
    ["lower", "left"],
    ["put", "left", "kept", itemOffsets.left],
    ["go", "next"],
  ];
}
