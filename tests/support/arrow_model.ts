/**
 * A model of Arrow arrays: types as format strings and values as JavaScript values, with an encoder to the buffers of
 * the columnar format and a decoder from them. It shares no line with the code under test.
 *
 * @module
 */
import { fc } from "./property.ts";

/** A value of the model, as `ArrowArray.get` returns it. */
export type Value = null | boolean | number | bigint | string | Uint8Array | Value[] | { [name: string]: Value };

/** A type of the model: what an ArrowSchema says. */
export interface Model {
  readonly format: string;
  readonly name: string;
  readonly nullable: boolean;
  /** ARROW_FLAG bits other than NULLABLE. */
  readonly flags: number;
  readonly metadata: readonly (readonly [key: string, value: string])[];
  readonly children: readonly Model[];
  readonly dictionary: Model | null;
}

/** The buffers and children of an array. */
export interface Encoded {
  readonly length: number;
  readonly nullCount: number;
  readonly offset: number;
  readonly buffers: readonly (Uint8Array | null)[];
  readonly children: readonly Encoded[];
  readonly dictionary: Encoded | null;
}

/** Choices of a producer that do not affect the values. */
export interface Quirks {
  /** Elements before the first. */
  readonly offset: number;
  /** Elements after the last. */
  readonly tail: number;
  /** Whether counting the nulls is left to the consumer. */
  readonly countUnknown: boolean;
  /** Whether there is a bitmap although nothing is null. */
  readonly idleBitmap: boolean;
  /** Child elements that belong to a list's null slots and to no slot. */
  readonly gap: number;
}

const integers = new Map<string, [bits: number, isSigned: boolean]>([
  ["c", [8, true]],
  ["C", [8, false]],
  ["s", [16, true]],
  ["S", [16, false]],
  ["i", [32, true]],
  ["I", [32, false]],
  ["l", [64, true]],
  ["L", [64, false]],
  ["tdD", [32, true]],
  ["tdm", [64, true]],
  ["tts", [32, true]],
  ["ttm", [32, true]],
  ["ttu", [64, true]],
  ["ttn", [64, true]],
  ["tDs", [64, true]],
  ["tDm", [64, true]],
  ["tDu", [64, true]],
  ["tDn", [64, true]],
  ["tiM", [32, true]],
]);
const floats = new Map([["e", 16], ["f", 32], ["g", 64]]);

/** Width and sign of the integers that a type is stored as. */
export function integerOf(format: string): [bits: number, isSigned: boolean] | undefined {
  return integers.get(/^ts[smun]:/.test(format) ? "l" : format);
}

/** A decimal type. */
export function decimalOf(format: string): { precision: number; scale: number; bits: number } | null {
  const [, precision, scale, bits = "128"] = /^d:(\d+),(-?\d+)(?:,(\d+))?$/.exec(format) ?? [];
  return precision === undefined ? null : { precision: Number(precision), scale: Number(scale), bits: Number(bits) };
}

/** Formats of types without children. */
export const leafFormats: readonly string[] = [
  "n",
  "b",
  ...integers.keys(),
  ...floats.keys(),
  ..."smun".split("").map((unit) => `ts${unit}:`),
  "tsu:UTC",
  "tsn:Europe/Berlin",
  ...["z", "Z", "vz", "u", "U", "vu"],
  ...["w:0", "w:1", "w:5", "w:16"],
  ...["d:9,2", "d:38,0", "d:38,38", "d:10,-3", "d:76,10,256", "d:9,3,32", "d:18,4,64"],
  ...["tiD", "tin"],
];

const names = fc.constantFrom("", "a", "b c", "\u00e4\u{1f600}");
const pairs = fc.uniqueArray(fc.tuple(fc.string(), fc.string({ unit: "grapheme" })), {
  selector: ([key]) => key,
  maxLength: 2,
});

/** Properties of every field. */
const header = fc.record({ name: names, nullable: fc.boolean(), metadata: fc.oneof(fc.constant([]), pairs) });
const leaf: fc.Arbitrary<Model> = fc.tuple(header, fc.constantFrom(...leafFormats)).map(([head, format]) => ({
  ...head,
  format,
  flags: 0,
  children: [],
  dictionary: null,
}));

/** Types of any nesting. */
export const models: fc.Arbitrary<Model> = fc.letrec<{ model: Model }>((tie) => {
  const list = fc.tuple(header, fc.constantFrom("+l", "+L", "+vl", "+vL", "+w:0", "+w:1", "+w:3"), tie("model"))
    .map(([head, format, child]): Model => ({ ...head, format, flags: 0, children: [child], dictionary: null }));
  const struct = fc.tuple(header, fc.array(tie("model"), { maxLength: 3 }))
    .map(([head, children]): Model => ({
      ...head,
      format: "+s",
      flags: 0,
      children: children.map((child, i) => ({ ...child, name: `f${i}${child.name}` })),
      dictionary: null,
    }));
  const map = fc.tuple(header, fc.boolean(), leaf, tie("model")).map(([head, isSorted, key, value]): Model => ({
    ...head,
    format: "+m",
    flags: isSorted ? 4 : 0,
    children: [{
      format: "+s",
      name: "entries",
      nullable: false,
      metadata: [],
      flags: 0,
      children: [{ ...key, name: "key" }, { ...value, name: "value" }],
      dictionary: null,
    }],
    dictionary: null,
  }));
  const dictionary = fc.tuple(
    header,
    fc.constantFrom("c", "C", "s", "S", "i", "I", "l", "L"),
    fc.boolean(),
    tie("model"),
  )
    .map(([head, format, isOrdered, values]): Model => ({
      ...head,
      format,
      flags: isOrdered ? 1 : 0,
      children: [],
      dictionary: values,
    }));
  return { model: fc.oneof({ maxDepth: 3, depthSize: "small" }, leaf, list, struct, map, dictionary) };
}).model;

/** Non-null values of a type. */
function present(model: Model): fc.Arbitrary<Value> {
  const { format, children, dictionary } = model;
  if (dictionary !== null) return valueOf(dictionary);
  const integer = integerOf(format);
  if (integer !== undefined) return integerValues(...integer);
  const decimal = decimalOf(format);
  if (decimal !== null) return decimalValues(decimal.precision, decimal.scale);
  const [first] = children;
  switch (format) {
    case "n":
      return fc.constant(null);
    case "b":
      return fc.boolean();
    case "e":
      return fc.constantFrom(0, -0, 1, -2.5, 65504, 2 ** -24, Infinity, -Infinity, NaN);
    case "f":
      return fc.float();
    case "g":
      return fc.double();
    case "u":
    case "U":
    case "vu":
      return fc.oneof(fc.string({ unit: "grapheme", maxLength: 8 }), fc.string({ minLength: 10, maxLength: 16 }));
    case "z":
    case "Z":
    case "vz":
      return fc.uint8Array({ maxLength: 18 }).map((bytes) => Uint8Array.from(bytes));
    case "tiD":
      return fc.record({ days: fc.integer(), milliseconds: fc.integer() }).map(({ days, milliseconds }) => ({
        days,
        milliseconds,
      }));
    case "tin":
      return fc.tuple(fc.integer(), fc.integer(), fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n })).map((
        [months, days, nanoseconds],
      ) => ({ months, days, nanoseconds }));
    case "+s":
      return fc.tuple(...children.map(valueOf)).map((values) =>
        Object.fromEntries(children.map(({ name }, i) => [name, values[i] ?? null]))
      );
    case "+m":
      return fc.array(fc.tuple(...(first?.children ?? []).map(valueOf)), { maxLength: 3 });
    case "+l":
    case "+L":
    case "+vl":
    case "+vL":
      return first === undefined ? fc.constant([]) : fc.array(valueOf(first), { maxLength: 3 });
  }
  const [, nested, size = ""] = /^(\+?)w:(\d+)$/.exec(format) ?? [];
  const length = Number(size);
  if (nested === "" || first === undefined) {
    return fc.uint8Array({ minLength: length, maxLength: length }).map((bytes) => Uint8Array.from(bytes));
  }
  return fc.array(valueOf(first), { minLength: length, maxLength: length });
}

function integerValues(bits: number, isSigned: boolean): fc.Arbitrary<Value> {
  const min = isSigned ? -(2n ** BigInt(bits - 1)) : 0n;
  const values = fc.bigInt({ min, max: min + 2n ** BigInt(bits) - 1n });
  return bits === 64 ? values : values.map(Number);
}

function decimalValues(precision: number, scale: number): fc.Arbitrary<Value> {
  const limit = 10n ** BigInt(precision);
  return fc.bigInt({ min: 1n - limit, max: limit - 1n }).map((unscaled) => decimalText(unscaled, scale));
}

/** An exact decimal: the integer part and the fraction by division. */
function decimalText(unscaled: bigint, scale: number): string {
  if (scale <= 0) return String(unscaled * 10n ** BigInt(-scale));
  const unit = 10n ** BigInt(scale);
  const magnitude = unscaled < 0n ? -unscaled : unscaled;
  return `${unscaled < 0n ? "-" : ""}${magnitude / unit}.${String(unit + magnitude % unit).slice(1)}`;
}

/** Whether the keys of all maps in a type are never null, as the columnar format requires, and some libraries check. */
export function hasKeys({ format, children, dictionary }: Model): boolean {
  const keys = format === "+m" ? children.flatMap((entries) => entries.children.slice(0, 1)) : [];
  return keys.every((key) => !key.nullable && key.format !== "n") && children.every(hasKeys) &&
    (dictionary === null || hasKeys(dictionary));
}

/** Values of a type: null only where the type may be. A dictionary's values may be null too. */
export function valueOf(model: Model): fc.Arbitrary<Value> {
  const values = present(model);
  return model.nullable ? fc.option(values, { freq: 4 }) : values;
}

/** Quirks of a producer. */
export const quirks: fc.Arbitrary<Quirks> = fc.record({
  offset: fc.nat(9),
  tail: fc.nat(2),
  countUnknown: fc.boolean(),
  idleBitmap: fc.boolean(),
  gap: fc.nat(2),
});

/** A valid value to fill slots that must not be read. */
export function filler(model: Model): Value {
  const { format, children, dictionary } = model;
  if (dictionary !== null) return filler(dictionary);
  const integer = integerOf(format);
  if (integer !== undefined) return integer[0] === 64 ? 77n : 77;
  const decimal = decimalOf(format);
  if (decimal !== null) return decimalText(7n, decimal.scale);
  const size = Number(/^\+?w:(\d+)$/.exec(format)?.[1] ?? 0);
  const [child] = children;
  if (format.startsWith("+w")) return Array.from({ length: size }, () => child === undefined ? null : filler(child));
  if (format.startsWith("w")) return new Uint8Array(size).fill(7);
  if (format === "+s") return Object.fromEntries(children.map((one) => [one.name, filler(one)]));
  if (format.startsWith("+")) return [];
  if (format === "tiD") return { days: 7, milliseconds: 7 };
  if (format === "tin") return { months: 7, days: 7, nanoseconds: 7n };
  if (format === "n") return null;
  if (format === "b") return true;
  if (floats.has(format)) return 7;
  return /u$/i.test(format) ? "junk" : Uint8Array.of(7);
}

/** Encodes values. Where a type has buffers of its own they are filled by the columnar format's rules. */
export function encode(model: Model, values: readonly Value[], quirk: Quirks): Encoded {
  const { format } = model;
  const junk = filler(model);
  const slots = [
    ...Array.from({ length: quirk.offset }, () => junk),
    ...values,
    ...Array.from({ length: quirk.tail }, () => junk),
  ];
  const nulls = values.filter((value) => value === null).length;
  const head = { length: values.length, offset: quirk.offset };
  const { dictionary } = model;
  if (dictionary !== null) {
    const places = new Map(slots.map((slot) => [keyOf(slot), slot])); // each value once, or nested lists would have too many
    fc.pre(places.size <= maxIndex);
    const keys = [...places.keys()];
    const index = (slot: Value) => indexFor(model.format, keys.indexOf(keyOf(slot)));
    const indices = encode({ ...model, dictionary: null }, slots.map(index), plain);
    const entries = encode(dictionary, [...places.values()], { ...quirk, offset: quirk.gap });
    // The entries mark nulls themselves, so no index is null.
    return { ...indices, ...head, nullCount: 0, dictionary: entries };
  }
  if (format === "n") {
    return { ...head, nullCount: values.length, buffers: [], children: [], dictionary: null };
  }
  const hasBitmap = nulls > 0 || quirk.idleBitmap || slots.includes(null);
  const bitmap = hasBitmap ? bits(slots.map((slot) => slot !== null)) : null;
  const filled = slots.map((slot) => slot ?? junk);
  const { buffers, children } = body(model, filled, slots, quirk);
  const nullCount = quirk.countUnknown ? -1 : nulls;
  return { ...head, nullCount, buffers: [bitmap, ...buffers], children, dictionary: null };
}

const plain: Quirks = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };

/** Number of entries that an 8-bit index can address. */
const maxIndex = 100;

/** The same text for equal values, and for no others. */
export function keyOf(value: Value): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return { bigint: `${part}` };
    if (typeof part === "number") return { number: Object.is(part, -0) ? "-0" : `${part}` };
    return part instanceof Uint8Array ? { bytes: [...part].join() } : part;
  });
}

/** An index as a value of its type. */
export function indexFor(format: string, at: number): Value {
  return /l/i.test(format) ? BigInt(at) : at;
}

interface Body {
  readonly buffers: readonly (Uint8Array | null)[];
  readonly children: readonly Encoded[];
}

function body(model: Model, filled: readonly Value[], slots: readonly Value[], quirk: Quirks): Body {
  const { format, children } = model;
  const [child] = children;
  switch (format) {
    case "b":
      return { buffers: [bits(filled.map((value) => value === true))], children: [] };
    case "+s":
      return {
        buffers: [],
        children: children.map((one) => encode(one, filled.map((value) => fieldOf(value, one.name)), quirk)),
      };
    case "+m":
    case "+l":
    case "+L":
      return child === undefined ? never(format) : lists(model, child, slots, quirk);
    case "+vl":
    case "+vL":
      return child === undefined ? never(format) : listViews(model, child, slots, quirk);
    case "u":
    case "U":
    case "z":
    case "Z":
      return { buffers: texts(filled, /[UZ]/.test(format) ? 8 : 4), children: [] };
    case "vu":
    case "vz":
      return { buffers: viewBuffers(filled), children: [] };
  }
  if (format.startsWith("+w") && child !== undefined) {
    return { buffers: [], children: [encode(child, filled.flatMap((value) => value as Value[]), quirk)] };
  }
  return { buffers: [fixed(format, filled)], children: [] };
}

function never(format: string): never {
  throw new Error(`no encoding of ${format}`);
}

function fieldOf(value: Value, name: string): Value {
  return (value as { [name: string]: Value })[name] ?? null;
}

/** Lists: null slots span `gap` child elements that belong to no value. */
function lists(model: Model, child: Model, slots: readonly Value[], quirk: Quirks): Body {
  const elements: Value[] = Array.from({ length: quirk.gap }, () => filler(child));
  const offsets = [elements.length];
  for (const slot of slots) {
    if (slot === null) elements.push(...Array.from({ length: quirk.gap }, () => filler(child)));
    else if (model.format !== "+m") elements.push(...slot as Value[]);
    else {
      const [key, value] = child.children;
      for (const [k = null, v = null] of slot as Value[][]) {
        elements.push({ [key?.name ?? ""]: k, [value?.name ?? ""]: v });
      }
    }
    offsets.push(elements.length);
  }
  return {
    buffers: [offsetBuffer(offsets, model.format === "+L" ? 8 : 4)],
    children: [encode(child, elements, quirk)],
  };
}

/** Lists in arbitrary positions: the last one first, with `gap` unused elements between two. */
function listViews(model: Model, child: Model, slots: readonly Value[], quirk: Quirks): Body {
  const elements: Value[] = [];
  const places = slots.toReversed().map((slot) => {
    const list = (slot ?? []) as Value[];
    const offset = elements.length;
    elements.push(...list, ...Array.from({ length: quirk.gap }, () => filler(child)));
    return { offset, size: list.length };
  }).toReversed();
  const width = model.format === "+vL" ? 8 : 4;
  const [offsets, sizes] = [places.map(({ offset }) => offset), places.map(({ size }) => size)];
  return {
    buffers: [offsetBuffer(offsets, width), offsetBuffer(sizes, width)],
    children: [encode(child, elements, quirk)],
  };
}

function bytesOf(value: Value): Uint8Array {
  return typeof value === "string" ? new TextEncoder().encode(value) : value as Uint8Array;
}

function texts(values: readonly Value[], width: number): Uint8Array[] {
  const parts = values.map(bytesOf);
  let end = 0;
  const offsets = [0, ...parts.map(({ length }) => end += length)];
  return [offsetBuffer(offsets, width), Uint8Array.from(parts.flatMap((part) => [...part]))];
}

function offsetBuffer(offsets: readonly number[], width: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(offsets.length * width));
  offsets.forEach((offset, i) => {
    if (width === 8) view.setBigInt64(i * 8, BigInt(offset), true);
    else view.setInt32(i * 4, offset, true);
  });
  return new Uint8Array(view.buffer);
}

/** Two data buffers, in turn. */
function viewBuffers(values: readonly Value[]): Uint8Array[] {
  const view = new DataView(new ArrayBuffer(values.length * 16));
  const data: number[][] = [[], []];
  values.map(bytesOf).forEach((bytes, i) => {
    view.setInt32(i * 16, bytes.length, true);
    const target = data[i % 2] ?? [];
    const isLong = bytes.length > 12;
    bytes.slice(0, isLong ? 4 : 12).forEach((byte, at) => view.setUint8(i * 16 + 4 + at, byte));
    if (!isLong) return;
    view.setInt32(i * 16 + 8, i % 2, true);
    view.setInt32(i * 16 + 12, target.length, true);
    target.push(...bytes);
  });
  const sizes = new DataView(new ArrayBuffer(16));
  data.forEach((bytes, i) => sizes.setBigInt64(i * 8, BigInt(bytes.length), true));
  return [new Uint8Array(view.buffer), ...data.map((bytes) => Uint8Array.from(bytes)), new Uint8Array(sizes.buffer)];
}

function bits(values: readonly boolean[]): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(values.length / 8));
  values.forEach((value, i) => bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (value ? 1 << (i & 7) : 0));
  return bytes;
}

/** Elements of a fixed width. */
function fixed(format: string, values: readonly Value[]): Uint8Array {
  const write = fixedWriter(format);
  const view = new DataView(new ArrayBuffer(values.length * write.width));
  values.forEach((value, i) => write.at(view, i * write.width, value));
  return new Uint8Array(view.buffer);
}

interface FixedWriter {
  readonly width: number;
  readonly at: (view: DataView, at: number, value: Value) => void;
}

function fixedWriter(format: string): FixedWriter {
  const integer = integerOf(format);
  if (integer !== undefined) {
    const width = integer[0] / 8;
    return { width, at: (view, at, value) => writeInteger(view, at, width, BigInt(value as number | bigint)) };
  }
  const decimal = decimalOf(format);
  if (decimal !== null) {
    const width = decimal.bits / 8;
    return {
      width,
      at: (view, at, value) => writeInteger(view, at, width, unscaledOf(value as string, decimal.scale)),
    };
  }
  switch (format) {
    case "e":
      return { width: 2, at: (view, at, value) => view.setFloat16(at, value as number, true) };
    case "f":
      return { width: 4, at: (view, at, value) => view.setFloat32(at, value as number, true) };
    case "g":
      return { width: 8, at: (view, at, value) => view.setFloat64(at, value as number, true) };
    case "tiD":
      return {
        width: 8,
        at(view, at, value) {
          view.setInt32(at, fieldOf(value, "days") as number, true);
          view.setInt32(at + 4, fieldOf(value, "milliseconds") as number, true);
        },
      };
    case "tin":
      return {
        width: 16,
        at(view, at, value) {
          view.setInt32(at, fieldOf(value, "months") as number, true);
          view.setInt32(at + 4, fieldOf(value, "days") as number, true);
          view.setBigInt64(at + 8, fieldOf(value, "nanoseconds") as bigint, true);
        },
      };
  }
  const width = Number(/^w:(\d+)$/.exec(format)?.[1] ?? never(format));
  return {
    width,
    at: (view, at, value) => (value as Uint8Array).forEach((byte, i) => view.setUint8(at + i, byte)),
  };
}

function writeInteger(view: DataView, at: number, width: number, value: bigint): void {
  let rest = value;
  for (let i = 0; i < width; i++, rest >>= 8n) view.setUint8(at + i, Number(rest & 0xffn));
}

function unscaledOf(text: string, scale: number): bigint {
  return scale <= 0 ? BigInt(text) / 10n ** BigInt(-scale) : BigInt(text.replace(".", ""));
}
