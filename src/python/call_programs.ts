/**
 * A call of Python, and an attribute read, as machine code programs: take the lock, make the arguments, call, classify
 * the result, read its value if it is a number, and release the lock. Done individually, these are a dozen calls of C,
 * each of which costs JavaScript as much as a short Python function takes.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { layoutOf } from "../ffi/mod.ts";
import type { Operation, Register } from "../native/mod.ts";

/** Most arguments of a call by a program, including the dict of keyword arguments. */
export const maxArguments = 8;

/** Most entries of all dicts of a call in total. */
export const maxEntries = 16;

/** Bytes of memory for arguments that are text. */
export const textBytes = 512;

/** An argument: a C function that returns a new reference to it, and that function's arguments. */
export const made_argument = {
  make: "ptr", // PyObject *(*)(double), (void *, Py_ssize_t), or (void)
  first: "u64", // a double, or a pointer
  second: "u64",
} as const satisfies StructDescription;

/** An entry of a dict, which is one of the arguments; its value is made like an argument. */
export const made_entry = {
  value: made_argument,
  key: "ptr", // borrowed
  dict: "ptr", // to the slot that holds the dict
} as const satisfies StructDescription;

/** The block on which the programs operate. */
export const call_block = {
  // Interpreter functions.
  PyGILState_Ensure: "ptr",
  PyGILState_Release: "ptr",
  PyObject_VectorcallDict: "ptr",
  PyObject_GetAttr: "ptr",
  Py_DecRef: "ptr",
  PyFloat_AsDouble: "ptr",
  PyLong_AsLongLongAndOverflow: "ptr",
  PyTuple_New: "ptr",
  PyTuple_SetItem: "ptr",
  PyCell_Set: "ptr",
  PyObject_CallNoArgs: "ptr",
  PyDict_SetItem: "ptr",
  PyErr_Occurred: "ptr",
  // Negated addresses: adding one to another address yields 0 if they are equal.
  minusFloat: "u64", // types
  minusOtherFloat: "u64", // of a type derived from float, or a value that matches no type
  minusInt: "u64",
  minusNone: "u64", // objects
  minusTrue: "u64",
  minusFalse: "u64",
  // The object to call, or whose attribute to read; and the attribute's name.
  object: "ptr",
  name: "ptr",
  afterwards: "ptr", // a reference to release after the call, or NULL
  count: "u64", // of arguments, including the dict of keyword arguments, which is the last one
  positional: "u64", // of positional arguments
  countAndFlag: "u64", // the same, with the flag that the word before them may be overwritten
  byName: "ptr", // to the slot that holds the dict of keyword arguments, or NULL
  entryCount: "u64", // of all dicts
  // Where a Python function, which makes the call from its own frame, finds the callable and the arguments.
  functionCell: "ptr",
  argumentsCell: "ptr",
  keywordsCell: "ptr",
  frame: "ptr",
  asTuple: "u64", // nonzero: that function takes a tuple, else a single argument
  // The expected attribute: an object, or a method given by the object it is bound to and its function.
  minusObject: "u64",
  minusType: "u64",
  minusSelf: "u64",
  minusFunction: "u64",
  selfOf: "ptr",
  functionOf: "ptr",
  adopts: "u64", // nonzero: the reference to the unchanged object is not released
  // The outcome.
  status: "u64", // one of Status
  state: "u64", // of the lock, needed to release it
  keepsLock: "u64", // nonzero: the lock is not released
  left: "u64", // arguments not made
  entriesLeft: "u64",
  index: "u64", // of the next item of the tuple
  result: "ptr",
  value: ["u64", 2], // a double, or an integer
  overflow: "u64",
  beforeObjects: "ptr", // the word that may be overwritten
  objects: ["ptr", maxArguments],
  made: [made_argument, maxArguments],
  entries: [made_entry, maxEntries],
  text: ["u8", textBytes],
} as const satisfies StructDescription;

/** The outcome of a program. From `object` on, the lock is still held. */
export const Status = {
  float: 1,
  int: 2,
  none: 3,
  true: 4,
  false: 5,
  /** The attribute is the expected one. */
  same: 6,
  /** Anything else: a new reference in `result`. */
  object: 7,
  /** An exception is pending. */
  raised: 8,
  /** An exception is pending, and no call was made: `left` arguments, or a dict entry, could not be made. */
  notMade: 9,
} as const;

/** One of {@linkcode Status}. */
export type Status = typeof Status[keyof typeof Status];

export const { offsets } = layoutOf(call_block);
const { size: madeBytes, offsets: madeOffsets } = layoutOf(made_argument);
const { size: entryBytes, offsets: entryOffsets } = layoutOf(made_entry);

// `kept` is the block; `keptTo` the result, and before that where the next object goes; `keptFrom` the next one to make
// or release. Calls clobber all other registers.

const lock: readonly Operation[] = [
  ["call", "kept", offsets.PyGILState_Ensure],
  ["result", "first"],
  ["put", "first", "kept", offsets.state],
];

/** Jumps to a label if a register and a negated address add up to zero. */
function ifSame(register: Register, minus: number, label: string): Operation[] {
  return [["copy", "axis", register], ["addFrom", "axis", "kept", minus], ["ifZero", "axis", label]];
}

/** Block offsets of what is needed to classify objects and read their values. */
interface KindOffsets {
  readonly minusFloat: number;
  readonly minusInt: number;
  readonly minusNone: number;
  readonly minusTrue: number;
  readonly minusFalse: number;
  readonly PyFloat_AsDouble: number;
  readonly PyLong_AsLongLongAndOverflow: number;
  readonly overflow: number;
}

/** Where a value goes, the register that receives its {@linkcode Status}, and the labels that follow. */
interface ReadInto {
  readonly base: "kept" | "keptFrom";
  readonly value: number;
  readonly status: Register;
  readonly done: string;
  /** For an int that exceeds 64 bits. */
  readonly other: string;
}

// law python/tellKinds: python/call_programs, python/item_programs
/** Jumps to the part of {@linkcode readKinds} for the object in `keptTo`; falls through for all other objects. */
export function tellKinds(at: KindOffsets, typeAt: number, otherFloats: readonly Operation[] = []): Operation[] {
  return [
    ["get", "rows", "keptTo", typeAt],
    ...ifSame("rows", at.minusFloat, "float"),
    ...otherFloats,
    ...ifSame("rows", at.minusInt, "int"),
    ...ifSame("keptTo", at.minusNone, "none"),
    ...ifSame("keptTo", at.minusTrue, "true"),
    ...ifSame("keptTo", at.minusFalse, "false"),
  ];
}

// law python/readKinds: python/call_programs, python/item_programs
/** Reads the value of the object in `keptTo`, a part for each kind, and ends at the label `done`. */
export function readKinds(at: KindOffsets, { base, value, status, done, other }: ReadInto): Operation[] {
  const become = (kind: Status): Operation[] => [["set", status, kind], ["go", done]];
  return [
    ["label", "float"],
    ["copy", "first", "keptTo"],
    ["call", "kept", at.PyFloat_AsDouble],
    ["point", "first", base, value],
    ["store", 16, "first"],
    ...become(Status.float),

    ["label", "int"],
    ["copy", "first", "keptTo"],
    ["point", "second", "kept", at.overflow],
    ["call", "kept", at.PyLong_AsLongLongAndOverflow],
    ["result", "first"],
    ["put", "first", base, value],
    ["get", "rows", "kept", at.overflow],
    ["ifZero", "rows", "integer"],
    ["go", other],
    ["label", "integer"],
    ...become(Status.int),

    ["label", "none"],
    ...become(Status.none),
    ["label", "true"],
    ...become(Status.true),
    ["label", "false"],
    ["set", status, Status.false],
    ["label", done],
  ];
}

function finish(status: Status): Operation[] {
  return [["set", "first", status], ["put", "first", "kept", offsets.status], ["leave"], ["return"]];
}

/** How every program ends, given the result in `keptTo`. */
function ends(typeAt: number, locks: boolean): Operation[] {
  const unlock: Operation[] = [
    ["get", "rows", "kept", offsets.keepsLock],
    ["ifZero", "rows", "unlock"],
    ["go", "over"],
    ["label", "unlock"],
    ["get", "first", "kept", offsets.state],
    ["call", "kept", offsets.PyGILState_Release],
  ];
  return [
    ...tellKinds(offsets, typeAt, ifSame("rows", offsets.minusOtherFloat, "float")),
    ["label", "object"],
    ["put", "keptTo", "kept", offsets.result],
    ...finish(Status.object),
    ["label", "raised"],
    ...finish(Status.raised),

    ...readKinds(offsets, { base: "kept", value: offsets.value, status: "keptFrom", done: "simple", other: "object" }),
    ["copy", "first", "keptTo"],
    ["call", "kept", offsets.Py_DecRef],
    ["label", "done"],
    ["put", "keptFrom", "kept", offsets.status],
    ...locks ? unlock : [],
    ["label", "over"],
    ["leave"],
    ["return"],
  ];
}

/** Loops over items that the block counts: `each` runs once per item, and must advance the pointers. */
function forEach(
  name: string,
  [count, remaining]: readonly [count: number, left: number],
  first: readonly Operation[],
  each: readonly Operation[],
): Operation[] {
  return [
    ...first,
    ["get", "left", "kept", count],
    ["put", "left", "kept", remaining],
    ["label", `next ${name}`],
    ["get", "left", "kept", remaining],
    ["ifZero", "left", `no ${name}`],
    ...each,
    ["get", "left", "kept", remaining],
    ["lower", "left"],
    ["put", "left", "kept", remaining],
    ["go", `next ${name}`],
    ["label", `no ${name}`],
  ];
}

function forEachArgument(name: string, first: readonly Operation[], each: readonly Operation[]): Operation[] {
  return forEach(name, [offsets.count, offsets.left], first, each);
}

/** Makes the object of the `made_argument` at `keptFrom`; ends the program if that fails. */
function make(into: Register): Operation[] {
  return [
    ["get", "first", "keptFrom", madeOffsets.first],
    ["get", "second", "keptFrom", madeOffsets.second],
    ["point", "third", "keptFrom", madeOffsets.first],
    ["load", 16, "third"], // the first 8 bytes may be a double
    ["copy", "left", "keptFrom"],
    ["call", "left", madeOffsets.make],
    ["result", into],
    ["ifZero", into, "not made"],
  ];
}

// law python/makeArguments: python/call_programs
/** Makes the arguments and fills those that are dicts; ends the program if that fails. */
const makeArguments: readonly Operation[] = [
  ...forEachArgument("to make", [
    ["point", "keptTo", "kept", offsets.objects],
    ["point", "keptFrom", "kept", offsets.made],
  ], [
    ...make("first"),
    ["put", "first", "keptTo", 0],
    ["point", "keptTo", "keptTo", 8],
    ["point", "keptFrom", "keptFrom", madeBytes],
  ]),
  ["get", "left", "kept", offsets.entryCount],
  ["ifZero", "left", "made"],
  ...forEach("entry", [offsets.entryCount, offsets.entriesLeft], [
    ["point", "keptFrom", "kept", offsets.entries],
  ], [
    ...make("keptTo"),
    ["get", "rows", "keptFrom", entryOffsets.dict],
    ["get", "first", "rows", 0],
    ["get", "second", "keptFrom", entryOffsets.key],
    ["copy", "third", "keptTo"],
    ["call", "kept", offsets.PyDict_SetItem],
    ["copy", "first", "keptTo"],
    ["call", "kept", offsets.Py_DecRef],
    ["point", "keptFrom", "keptFrom", entryBytes],
  ]),
  ["call", "kept", offsets.PyErr_Occurred], // once for all entries: PyDict_SetItem returns 32 bits
  ["result", "first"],
  ["ifZero", "first", "made"],
  ["label", "not made"],
  ...finish(Status.notMade),
  ["label", "made"],
];

/** Calls with the arguments in memory, and releases them; the result is in `keptTo`. */
const callAtOnce: readonly Operation[] = [
  ["get", "first", "kept", offsets.object],
  ["point", "second", "kept", offsets.objects],
  ["get", "third", "kept", offsets.countAndFlag],
  ["get", "left", "kept", offsets.byName],
  ["ifZero", "left", "by position"],
  ["get", "left", "left", 0],
  ["label", "by position"],
  ["call", "kept", offsets.PyObject_VectorcallDict],
  ["result", "keptTo"],
  ...forEachArgument("to release", [["point", "keptFrom", "kept", offsets.objects]], [
    ["get", "first", "keptFrom", 0],
    ["call", "kept", offsets.Py_DecRef],
    ["point", "keptFrom", "keptFrom", 8],
  ]),
];

function setCell(cell: number, value: readonly Operation[]): Operation[] {
  return [["get", "first", "kept", cell], ...value, ["call", "kept", offsets.PyCell_Set]];
}

/** Runs operations only if there are keyword arguments; `rows` then points to the slot of their dict. */
function ifNamed(label: string, operations: readonly Operation[]): Operation[] {
  return [["get", "rows", "kept", offsets.byName], ["ifZero", "rows", label], ...operations, ["label", label]];
}

/** Makes the call from a Python frame; the result is in `keptTo`. */
const callFramed: readonly Operation[] = [
  ["get", "keptTo", "kept", offsets.objects],
  ["get", "rows", "kept", offsets.asTuple],
  ["ifZero", "rows", "given"],
  ["get", "first", "kept", offsets.positional],
  ["call", "kept", offsets.PyTuple_New],
  ["result", "keptTo"],
  ["ifZero", "keptTo", "not made"],
  ["set", "left", 0],
  ["put", "left", "kept", offsets.index],
  ...forEach("to put", [offsets.positional, offsets.left], [["point", "keptFrom", "kept", offsets.objects]], [
    ["copy", "first", "keptTo"],
    ["get", "second", "kept", offsets.index],
    ["get", "third", "keptFrom", 0],
    ["call", "kept", offsets.PyTuple_SetItem], // adopts the reference
    ["point", "keptFrom", "keptFrom", 8],
    ["get", "left", "kept", offsets.index],
    ["point", "left", "left", 1],
    ["put", "left", "kept", offsets.index],
  ]),
  ["label", "given"],
  ...ifNamed("none are named", [
    ["get", "keptFrom", "rows", 0],
    ...setCell(offsets.keywordsCell, [["copy", "second", "keptFrom"]]),
    ["copy", "first", "keptFrom"],
    ["call", "kept", offsets.Py_DecRef], // the cell holds a reference now
  ]),
  ...setCell(offsets.argumentsCell, [["copy", "second", "keptTo"]]),
  ...setCell(offsets.functionCell, [["get", "second", "kept", offsets.object]]),
  ["copy", "first", "keptTo"],
  ["call", "kept", offsets.Py_DecRef], // the cell holds a reference now
  ["get", "first", "kept", offsets.frame],
  ["call", "kept", offsets.PyObject_CallNoArgs],
  ["result", "keptTo"],
  ...setCell(offsets.functionCell, [["set", "second", 0]]),
  ...setCell(offsets.argumentsCell, [["set", "second", 0]]),
  ...ifNamed("none were named", setCell(offsets.keywordsCell, [["set", "second", 0]])),
];

// law python/callProgram: python/call_programs
/**
 * Makes the arguments, calls, and releases them.
 *
 * @param typeAt offset of the type in an object
 * @param locks whether the program takes and releases the lock; else it is already held
 * @param isFramed whether the call is made from a Python frame
 */
export function callProgram(typeAt: number, locks: boolean, isFramed: boolean): readonly Operation[] {
  return [
    ["enter"],
    ["copy", "kept", "first"],
    ...locks ? lock : [],
    ...makeArguments,
    ...isFramed ? callFramed : callAtOnce,
    ["get", "first", "kept", offsets.afterwards],
    ["call", "kept", offsets.Py_DecRef],
    ["ifZero", "keptTo", "raised"],
    ...ends(typeAt, locks),
  ];
}

// law python/attributeProgram: python/call_programs
/** Reads an attribute. Parameters as {@linkcode callProgram}'s. */
export function attributeProgram(typeAt: number, locks: boolean): readonly Operation[] {
  return [
    ["enter"],
    ["copy", "kept", "first"],
    ...locks ? lock : [],
    ["get", "first", "kept", offsets.object],
    ["get", "second", "kept", offsets.name],
    ["call", "kept", offsets.PyObject_GetAttr],
    ["result", "keptTo"],
    ["ifZero", "keptTo", "raised"],

    ...ifSame("keptTo", offsets.minusObject, "same"),
    ["get", "rows", "keptTo", typeAt],
    ...ifSame("rows", offsets.minusType, "of a method"),
    ["go", "another"],
    ["label", "of a method"],
    ["copy", "first", "keptTo"],
    ["call", "kept", offsets.selfOf],
    ["result", "rows"],
    ...ifSame("rows", offsets.minusSelf, "of this object"),
    ["go", "another"],
    ["label", "of this object"],
    ["copy", "first", "keptTo"],
    ["call", "kept", offsets.functionOf],
    ["result", "rows"],
    ...ifSame("rows", offsets.minusFunction, "same"),
    ["go", "another"],

    ["label", "same"],
    ["put", "keptTo", "kept", offsets.result],
    ["set", "keptFrom", Status.same],
    ["get", "rows", "kept", offsets.adopts],
    ["ifZero", "rows", "simple"],
    ["go", "done"],
    ["label", "another"],
    ...ends(typeAt, locks),
  ];
}
