/**
 * A call of Python, and the reading of an attribute, as programs of machine code: the lock, the arguments, the call, what
 * its result is, its value if that is a number, and the lock again. One by one these are a dozen calls of C, each of
 * which costs JavaScript as much as a short function of Python takes.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { layoutOf } from "../ffi/mod.ts";
import type { Operation, Register } from "../native/mod.ts";

/** Most arguments of a call that a program makes, a dict of those by name among them. */
export const mostArguments = 8;

/** Most entries of all dicts of a call together. */
export const mostEntries = 16;

/** Bytes of memory for arguments that are text. */
export const textBytes = 512;

/** An argument: a function of C that returns a new reference to it, and what that is called with. */
export const made_argument = {
  make: "ptr", // PyObject *(*)(double), (void *, Py_ssize_t), or (void)
  first: "u64", // a double, or a pointer
  second: "u64",
} as const satisfies StructDescription;

/** An entry of a dict, which is one of the arguments; the value is made as they are. */
export const made_entry = {
  value: made_argument,
  key: "ptr", // borrowed
  dict: "ptr", // to where the dict is
} as const satisfies StructDescription;

/** What the programs work on. */
export const call_block = {
  // Functions of the interpreter.
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
  // Addresses with the sign changed, so that adding one tells whether another is the same.
  minusFloat: "u64", // types
  minusOtherFloat: "u64", // of a type that is derived from float, or what no object has
  minusInt: "u64",
  minusNone: "u64", // objects
  minusTrue: "u64",
  minusFalse: "u64",
  // What to call, or whose attribute to read; and its name.
  object: "ptr",
  name: "ptr",
  afterwards: "ptr", // a reference that is released after the call, or NULL
  count: "u64", // of arguments, with the dict of those by name, which is the last one
  positional: "u64", // of arguments by position
  countAndFlag: "u64", // the same, and that the word before them may be written to
  byName: "ptr", // to where the dict of arguments by name is, or NULL
  entryCount: "u64", // of all dicts
  // Where a function of Python with a frame of its own, which makes the call, finds what to call and the arguments.
  functionCell: "ptr",
  argumentsCell: "ptr",
  keywordsCell: "ptr",
  frame: "ptr",
  asTuple: "u64", // not 0: that function takes a tuple, else a single argument
  // The attribute that is expected: an object, or a method by what it is bound to and its function.
  minusObject: "u64",
  minusType: "u64",
  minusSelf: "u64",
  minusFunction: "u64",
  selfOf: "ptr",
  functionOf: "ptr",
  adopts: "u64", // not 0: the reference to the object that is the same is not released
  // What came of it.
  status: "u64", // one of Status
  state: "u64", // of the lock, for who is to release it
  keepsLock: "u64", // not 0: the lock is not released
  left: "u64", // arguments that were not made
  entriesLeft: "u64",
  index: "u64", // of the next item of the tuple
  result: "ptr",
  value: ["u64", 2], // a double, or an integer
  overflow: "u64",
  beforeObjects: "ptr", // the word that may be written to
  objects: ["ptr", mostArguments],
  made: [made_argument, mostArguments],
  entries: [made_entry, mostEntries],
  text: ["u8", textBytes],
} as const satisfies StructDescription;

/** What came of a program. After those from `object` on the lock is held. */
export const Status = {
  float: 1,
  int: 2,
  none: 3,
  true: 4,
  false: 5,
  /** The attribute is what was expected. */
  same: 6,
  /** Anything else: a new reference in `result`. */
  object: 7,
  /** An exception is pending. */
  raised: 8,
  /** An exception is pending, and the call was not made: some arguments, as `left` says, or an entry could not be. */
  notMade: 9,
} as const;

/** One of {@linkcode Status}. */
export type Status = typeof Status[keyof typeof Status];

export const { offsets } = layoutOf(call_block);
const { size: madeBytes, offsets: madeOffsets } = layoutOf(made_argument);
const { size: entryBytes, offsets: entryOffsets } = layoutOf(made_entry);

// `kept` is the block; `keptTo` the result, and before that where the next object goes; `keptFrom` what is next made or
// released. All other registers are anybody's after a call.

const lock: readonly Operation[] = [
  ["call", "kept", offsets.PyGILState_Ensure],
  ["result", "first"],
  ["put", "first", "kept", offsets.state],
];

/** Goes to a label if a register and an address with the sign changed add up to nothing. */
export function ifSame(register: Register, minus: number, label: string): Operation[] {
  return [["copy", "axis", register], ["addFrom", "axis", "kept", minus], ["ifZero", "axis", label]];
}

/** Where in a block is what the values of objects are told and read by. */
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

/** Where a value goes, in which register its {@linkcode Status} is left, and which labels come next. */
interface ReadInto {
  readonly base: "kept" | "keptFrom";
  readonly value: number;
  readonly status: Register;
  readonly done: string;
  /** For an int that has more than 64 bits. */
  readonly other: string;
}

// law python/tellKinds: python/call_programs, python/item_programs
/** Goes to the part of {@linkcode readKinds} for the object in `keptTo`; on, if it is none of these values. */
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

/** What every program does with what has come, in `keptTo`. */
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

/** Goes through what the block has a number of: what is done for each, and is to move the pointers on. */
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

/** Makes what `keptFrom` points to a `made_argument` of, and ends where it cannot be made. */
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
/** Makes the arguments, fills those that are dicts, and ends where that fails. */
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
  ["call", "kept", offsets.PyErr_Occurred], // once for all: what PyDict_SetItem returns has 32 bits
  ["result", "first"],
  ["ifZero", "first", "made"],
  ["label", "not made"],
  ...finish(Status.notMade),
  ["label", "made"],
];

/** Calls by what is in memory, and releases the arguments; the result is in `keptTo`. */
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

/** What is done if there are arguments by name; `rows` is then where their dict is. */
function ifNamed(label: string, operations: readonly Operation[]): Operation[] {
  return [["get", "rows", "kept", offsets.byName], ["ifZero", "rows", label], ...operations, ["label", label]];
}

/** Has the call made from a frame of Python's; the result is in `keptTo`. */
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
    ["call", "kept", offsets.PyTuple_SetItem], // takes the reference over
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
    ["call", "kept", offsets.Py_DecRef], // the cell has it now
  ]),
  ...setCell(offsets.argumentsCell, [["copy", "second", "keptTo"]]),
  ...setCell(offsets.functionCell, [["get", "second", "kept", offsets.object]]),
  ["copy", "first", "keptTo"],
  ["call", "kept", offsets.Py_DecRef], // the cell has it now
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
 * @param typeAt where in an object its type is
 * @param locks whether the lock is taken and released; else it is held already
 * @param isFramed whether the call is made from a frame of Python's
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
