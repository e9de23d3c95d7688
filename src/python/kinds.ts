/**
 * What Python objects become in JavaScript, determined by their types.
 *
 * @module
 */
import { Py_TPFLAGS } from "../../bindings/cpython.ts";
import type { Interpreter } from "./interpreter.ts";

/** What an object is to JavaScript. */
export const Kind = {
  /** Not determined by its type alone. */
  unknown: 0,
  none: 1,
  bool: 2,
  int: 3,
  float: 4,
  text: 5,
  /** A NumPy scalar that is exactly a float, an integer or a boolean. */
  floatScalar: 6,
  intScalar: 7,
  boolScalar: 8,
  list: 9,
  tuple: 10,
  dict: 11,
  bytes: 12,
  /** Implements an array protocol. */
  array: 13,
  /** A NumPy array, not of a derived class. */
  numpyArray: 14,
  /** A JavaScript function that was passed to Python. */
  javascript: 15,
  /** Not determined by its type alone, except that the type is derived from dict. */
  derivedDict: 16,
  /** Implements no array protocol, and no object of its type ever will. All kinds from here on are such objects. */
  object: 17,
  /** As an object: a Python method, bound to its object. */
  method: 18,
  /** As an object: a function or a bound method written in C. */
  builtin: 19,
  /** As an object: a module. */
  module: 20,
  /** As an object: a set or a frozenset. */
  set: 21,
  /** As an object: a datetime of the module datetime. */
  datetime: 22,
} as const;

/** One of {@linkcode Kind}. */
export type Kind = typeof Kind[keyof typeof Kind];

/** Denotes an object that is not a number, a string, a boolean or None. */
export const notSimple: unique symbol = Symbol("not simple");

/** NumPy scalar types by name: those whose values a Python float, int or bool represents exactly. */
const scalars: Readonly<Record<string, Kind>> = {
  ...Object.fromEntries(["float16", "float32"].map((name) => [name, Kind.floatScalar])),
  ...Object.fromEntries(
    ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "longlong", "ulonglong", "intc", "uintc"]
      .map((name) => [name, Kind.intScalar]),
  ),
  bool: Kind.boolScalar,
  bool_: Kind.boolScalar, // before NumPy 2
};

/** How many types are found without the map, by bits of their addresses, which are multiples of 16. A power of 2. */
const recentTypes = 256;

/** How many types are remembered. In a program that keeps making types, the rest are looked up each time. */
const maxTypes = 1024;

/**
 * The kinds of the types seen so far. A known type is kept forever, so that its address is never reused.
 */
export class Kinds {
  readonly #python: Interpreter;
  readonly #known = new Map<number, Kind>();
  /** Direct-mapped cache of known types and kinds: for large numbers a map lookup takes as long as two calls. */
  readonly #recent = new Float64Array(recentTypes);
  readonly #recentKinds = new Uint8Array(recentTypes);
  /** Built-in types, matched exactly (no subclasses), by address. */
  readonly #exact: ReadonlyMap<bigint, Kind>;
  readonly #float: bigint;

  /** @param type evaluates an expression; its value lives forever */
  constructor(python: Interpreter, type: (expression: string) => bigint) {
    this.#python = python;
    this.#float = type("float");
    this.#exact = new Map<bigint, Kind>([
      [type("type(None)"), Kind.none],
      [type("bool"), Kind.bool],
      [type("list"), Kind.list],
      [type("tuple"), Kind.tuple],
      [type("dict"), Kind.dict],
      [type("bytes"), Kind.bytes],
      [type("set"), Kind.set],
      [type("frozenset"), Kind.set],
      [type("JavaScriptFunction"), Kind.javascript],
      [type("bound_method"), Kind.method],
      [type("builtin_function"), Kind.builtin],
      [type("module_type"), Kind.module],
    ]);
  }

  // law python/Kinds.of: python/kinds
  /** The kind of a type. */
  of(type: number): Kind {
    const place = (type >>> 4) & (recentTypes - 1);
    if (this.#recent[place] === type) return this.#recentKinds[place] as Kind; // nothing else is put there
    const known = this.#known.get(type);
    if (known === undefined) return this.#find(type);
    this.#recent[place] = type;
    this.#recentKinds[place] = known;
    return known;
  }

  /** Whether a type is retained forever. */
  retains(type: number): boolean {
    return this.#known.has(type);
  }

  #find(address: number): Kind {
    const type = BigInt(address);
    const kind = this.#look(type);
    if (this.#known.size < maxTypes) this.#known.set(address, kind);
    if (this.#known.has(address)) this.#python.retain(type);
    return kind;
  }

  // law python/Kinds.look: python/kinds, python/numpy
  #look(type: bigint): Kind {
    const python = this.#python;
    const exact = this.#exact.get(type);
    if (exact !== undefined) return exact;
    const flags = python.api.objects.PyType_GetFlags(type);
    if (flags & Py_TPFLAGS.LONG_SUBCLASS) return Kind.int;
    if (flags & Py_TPFLAGS.UNICODE_SUBCLASS) return Kind.text;
    if (python.api.objects.PyType_IsSubtype(type, this.#float) === 1) return Kind.float;
    if (flags & Py_TPFLAGS.DICT_SUBCLASS) return Kind.derivedDict;
    // A class may gain members at any time, which may change what its objects are.
    if ((flags & Py_TPFLAGS.HEAPTYPE) && !(flags & Py_TPFLAGS.IMMUTABLETYPE)) return Kind.unknown;
    if (python.isScalarType(type)) return this.#scalar(type);
    // Instances of a subclass are copied as instances of its base.
    if (flags & containers) return Kind.unknown;
    if (!python.isArrayType(type)) return python.isDatetimeType(type) ? Kind.datetime : Kind.object;
    return this.#isOfNumpy(type) && python.textOf(type, "__name__") === "ndarray" ? Kind.numpyArray : Kind.array;
  }

  #isOfNumpy(type: bigint): boolean {
    return this.#python.textOf(type, "__module__") === "numpy";
  }

  #scalar(type: bigint): Kind {
    return this.#isOfNumpy(type) ? scalars[this.#python.textOf(type, "__name__")] ?? Kind.unknown : Kind.unknown;
  }
}

const containers = Py_TPFLAGS.LIST_SUBCLASS | Py_TPFLAGS.TUPLE_SUBCLASS | Py_TPFLAGS.BYTES_SUBCLASS;
