/**
 * Random arrays of every dtype, in every encoding close to Arrow's own, nested: written from what the encodings mean,
 * with other values wherever no reader may look.
 *
 * @module
 */
import { entriesOf, type VortexDType, withNullable } from "../../../src/vortex/dtype.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { keyOf, type Value } from "../arrow_model.ts";
import { alignedTo, boolNode, type Field, joined, node, primitiveNode, proto, ptypeCode, scalarOf } from "./nodes.ts";
import { Dice } from "./number_trees.ts";
import type { BuiltArray } from "./wheel.ts";
import { bytesOf } from "./words.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** An array, and the values that it stands for, as `ArrowArray.toArray` returns them. */
export interface CanonicalTree extends BuiltArray {
  readonly values: readonly Value[];
}

const signed: readonly PType[] = ["i8", "i16", "i32", "i64"];
const unsigned: readonly PType[] = ["u8", "u16", "u32", "u64"];
const none = new Uint8Array(0);

// --- dtypes and values

/** A dtype nested at most `depth` levels deep. */
function anyDType(dice: Dice, depth: number): VortexDType {
  const nullable = dice.below(2) === 0;
  const inner = () => anyDType(dice, depth - 1);
  switch (dice.below(depth === 0 ? 8 : 13)) {
    case 0:
      return { kind: "bool", nullable };
    case 1:
    case 2:
      return {
        kind: "primitive",
        ptype: dice.pick<PType>(...signed, ...unsigned, "f16", "f32", "f64"),
        nullable,
      };
    case 3:
      return { kind: "utf8", nullable };
    case 4:
      return { kind: "binary", nullable };
    case 5: {
      const precision = 1 + dice.below(76);
      return { kind: "decimal", precision, scale: dice.below(Math.min(precision, 9) + 1), nullable };
    }
    case 6:
    case 7:
      return anyExtension(dice, nullable);
    case 8:
    case 9: {
      const fields = Array.from({ length: dice.below(4) }, inner);
      return { kind: "struct", names: fields.map((_, i) => `f${i}`), fields, nullable };
    }
    case 10:
      return { kind: "list", element: inner(), nullable };
    case 11:
      return { kind: "fixedSizeList", element: inner(), size: dice.below(4), nullable };
    default: {
      const key = withNullable(anyDType(dice, 0), false);
      return { kind: "map", key, value: inner(), keysSorted: false, nullable };
    }
  }
}

function anyExtension(dice: Dice, nullable: boolean): VortexDType {
  const stored = (id: string, ptype: PType, ...metadata: readonly number[]): VortexDType => ({
    kind: "extension",
    id,
    storage: { kind: "primitive", ptype, nullable },
    metadata: Uint8Array.from(metadata),
    nullable,
  });
  const unit = dice.below(4);
  const zone = [...new TextEncoder().encode(dice.pick("", "UTC", "Europe/Berlin"))];
  const element: VortexDType = { kind: "primitive", ptype: "u8", nullable: false };
  return dice.pick<VortexDType>(
    stored("vortex.timestamp", "i64", unit, zone.length, 0, ...zone),
    stored("vortex.time", unit < 2 ? "i64" : "i32", unit),
    stored("vortex.date", "i32", 4),
    stored("vortex.date", "i64", 2),
    {
      kind: "extension",
      id: "vortex.uuid",
      storage: { kind: "fixedSizeList", element, size: 16, nullable },
      metadata: none,
      nullable,
    },
  );
}

/** Values: drawn from few that repeat, or from many. */
function anyValues(dice: Dice, dtype: VortexDType, length: number): Value[] {
  const pool = Array.from({ length: dice.pick(1, 2, 5, length) }, () => anyValue(dice, dtype));
  const hasNulls = dtype.nullable && dice.below(4) > 0;
  return Array.from(
    { length },
    () => hasNulls && dice.below(4) === 0 ? null : dice.pick(...pool, anyValue(dice, dtype)),
  );
}

function anyValue(dice: Dice, dtype: VortexDType): Value {
  const inner = (one: VortexDType) => one.nullable && dice.below(4) === 0 ? null : anyValue(dice, one);
  const several = (one: VortexDType, length: number) => Array.from({ length }, () => inner(one));
  switch (dtype.kind) {
    case "bool":
      return dice.below(2) === 0;
    case "primitive":
      return anyNumber(dice, dtype.ptype);
    case "utf8":
      return Array.from({ length: dice.below(7) }, () => dice.pick("a", "bc", "\u00e4", "\u{1f600}", "long enough"))
        .join("");
    case "binary":
      return bytesOf(dice.words(dice.below(20), 8), 8);
    case "decimal":
      return decimalText(anyDecimal(dice, dtype.precision), dtype.scale);
    case "extension":
      if (dtype.id === "vortex.uuid") return bytesOf(dice.words(16, 8), 8);
      if (dtype.id !== "vortex.time") return inner(withNullable(dtype.storage, false));
      return timeOfDay(dice, dtype.metadata[0] ?? 0);
    case "struct":
      return Object.fromEntries(dtype.fields.map((field, i) => [`f${i}`, inner(field)]));
    case "list":
      return several(dtype.element, dice.below(4));
    case "fixedSizeList":
      return several(dtype.element, dtype.size);
    case "map":
      return Array.from({ length: dice.below(3) }, () => [inner(dtype.key), inner(dtype.value)]);
    default:
      return null;
  }
}

/** A time since midnight, within one day, in the unit given by its code. PyVortex refuses others. */
function timeOfDay(dice: Dice, unit: number): Value {
  const perSecond = [1_000_000_000n, 1_000_000n, 1000n, 1n][unit] ?? 1n;
  const time = (dice.words(1, 60)[0] ?? 0n) % (86_400n * perSecond);
  return unit < 2 ? time : Number(time);
}

function anyNumber(dice: Dice, ptype: PType): Value {
  const word = dice.words(1, dice.pick(1, 7, 64))[0] ?? 0n;
  switch (ptype) {
    case "f16":
      return dice.pick(0, -0, 1, -2.5, 65504, 2 ** -24, Infinity, -Infinity, NaN);
    case "f32":
      return dice.pick(0, -0, NaN, Infinity, Math.fround(Number(word) / 7));
    case "f64":
      return dice.pick(0, -0, NaN, -Infinity, Number(word) / 7);
  }
  const bits = Number(ptype.slice(1));
  const number = ptype.startsWith("i") ? BigInt.asIntN(bits, word) : BigInt.asUintN(bits, word);
  return bits === 64 ? number : Number(number);
}

function anyDecimal(dice: Dice, precision: number): bigint {
  const wide = dice.words(4, 64).reduce((sum, word) => sum << 64n | word, 0n);
  return (wide >> 1n) % 10n ** BigInt(1 + dice.below(precision)) * dice.pick(1n, -1n);
}

function decimalText(unscaled: bigint, scale: number): string {
  if (scale === 0) return String(unscaled);
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  return `${unscaled < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const unscaled = (text: Value): bigint => BigInt(String(text).replace(".", ""));

// --- values on their own

/** A scalar as a message. */
function scalar(dtype: VortexDType, value: Value): Bytes {
  if (value === null) return proto([1, 0]);
  const list = (parts: readonly Bytes[]) => proto([9, joined(...parts.map((part) => proto([1, part])))]);
  const each = (element: VortexDType) => list((value as Value[]).map((one) => scalar(element, one)));
  switch (dtype.kind) {
    case "bool":
      return proto([2, value === true]);
    case "primitive":
      return scalarOf(wordOf(value, dtype.ptype), dtype.ptype);
    case "utf8":
      return proto([7, textBytes(value)]);
    case "binary":
      return proto([8, textBytes(value)]);
    case "decimal":
      return proto([8, littleEndian(unscaled(value), decimalWidth(dtype.precision))]);
    case "extension":
      return scalar(dtype.storage, stored(dtype, value));
    case "list":
    case "fixedSizeList":
      return each(dtype.element);
    case "struct":
      return list(dtype.fields.map((field, i) => scalar(field, fieldOf(value, i))));
    case "map":
      return list((value as Value[]).map((entry) => scalar(entriesOf(dtype), entryOf(entry))));
    default:
      throw new TypeError(`No value of ${dtype.kind}`);
  }
}

/** The bits of a number. */
function wordOf(value: Value, ptype: PType): bigint {
  if (typeof value === "bigint") return value;
  const view = new DataView(new ArrayBuffer(8));
  const number = Number(value);
  switch (ptype) {
    case "f16":
      view.setUint16(0, halfBits(number), true);
      return BigInt(view.getUint16(0, true));
    case "f32":
      view.setFloat32(0, number, true);
      return BigInt(view.getUint32(0, true));
    case "f64":
      view.setFloat64(0, number, true);
      return view.getBigUint64(0, true);
  }
  return BigInt(number);
}

/** The bits of a half-precision float, for the few values in use. */
function halfBits(value: number): number {
  const known = [[0, 0], [1, 0x3c00], [-2.5, 0xc100], [65504, 0x7bff], [2 ** -24, 1], [Infinity, 0x7c00]] as const;
  if (Object.is(value, -0)) return 0x8000;
  if (Number.isNaN(value)) return 0x7e00;
  return value === -Infinity ? 0xfc00 : known.find(([one]) => one === value)?.[1] ?? 0;
}

function littleEndian(value: bigint, width: number): Bytes {
  return Uint8Array.from({ length: width }, (_, i) => Number(BigInt.asUintN(8, value >> BigInt(8 * i))));
}

const textBytes = (value: Value): Bytes =>
  value instanceof Uint8Array ? Uint8Array.from(value) : new TextEncoder().encode(String(value));

const fieldOf = (value: Value, i: number): Value => (value as { [name: string]: Value })[`f${i}`] ?? null;

/** An entry of a map as the struct that it is stored as. */
const entryOf = (entry: Value): Value => ({ f0: (entry as Value[])[0] ?? null, f1: (entry as Value[])[1] ?? null });

/** A value of an extension as its storage holds it. */
const stored = (dtype: VortexDType & { kind: "extension" }, value: Value): Value =>
  dtype.id === "vortex.uuid" && value instanceof Uint8Array ? [...value] : value;

const decimalWidth = (precision: number): number => precision <= 18 ? 8 : precision <= 38 ? 16 : 32;

// --- arrays

/** A way to write values; null if they cannot be written that way. */
type Writer = (dice: Dice, dtype: VortexDType, values: readonly Value[], depth: number) => RawNode | null;

function encode(dice: Dice, dtype: VortexDType, values: readonly Value[], depth: number): RawNode {
  const all = depth <= 0 ? [plain] : [plain, plain, chunked, dictionary, constant, masked, sequence];
  return dice.pick(...all)(dice, dtype, values, depth) ?? plain(dice, dtype, values, depth);
}

/** The validity child. */
function validity(dice: Dice, dtype: VortexDType, values: readonly Value[], depth: number): RawNode | null {
  const valid = values.map((value) => value !== null);
  if (!dtype.nullable || !valid.includes(false) && dice.below(2) === 0) return null;
  return dice.below(2) === 0 ? boolNode(valid) : encode(dice, { kind: "bool", nullable: false }, valid, depth - 1);
}

/** Integers in an encoding of their own. */
function wholes(
  dice: Dice,
  numbers: readonly number[],
  depth: number,
  ptypes: readonly PType[] = [...unsigned, ...signed],
): readonly [code: number, tree: RawNode] {
  const most = Math.max(0, ...numbers);
  const ptype = dice.pick(
    ...ptypes.filter((one) => most < 2 ** (Number(one.slice(1)) - (one.startsWith("i") ? 1 : 0))),
  );
  const values = numbers.map((one) => ptype.endsWith("64") ? BigInt(one) : one);
  return [ptypeCode(ptype), encode(dice, { kind: "primitive", ptype, nullable: false }, values, depth - 1)];
}

const chunked: Writer = (dice, dtype, values, depth) => {
  const cuts = dice.words(dice.below(4), 32).map((word) => Number(word) % (values.length + 1));
  const ends = [0, ...cuts.toSorted((one, two) => one - two), values.length];
  const chunks = ends.slice(1).map((end, i) => encode(dice, dtype, values.slice(ends[i], end), depth - 1));
  const [, offsets] = wholes(dice, ends, depth, ["u64"]);
  return node("vortex.chunked", none, [], offsets, ...chunks);
};

const dictionary: Writer = (dice, dtype, values, depth) => {
  const hasNullCodes = dtype.nullable && dice.below(2) === 0;
  // Where entries are offsets, PyVortex requires all of them to be in range, even those that no code refers to.
  const unused = dtype.kind === "primitive" ? [] : [anyValue(dice, dtype)];
  const entries = new Map<string, Value>([...unused, ...values].map((value) => [keyOf(value), value]));
  if (hasNullCodes) entries.delete(keyOf(null));
  const keys = [...entries.keys()].toSorted();
  if (keys.length === 0) return null;
  const codes = values.map((value) => hasNullCodes && value === null ? null : keys.indexOf(keyOf(value)));
  const ptype = dice.pick<PType>(...unsigned.filter((one) => keys.length <= 2 ** Number(one.slice(1)) - 1));
  const valid = codes.map((code) => code !== null);
  const tree = primitiveNode(
    codes.map((code) => code ?? dice.below(keys.length)),
    ptype,
    valid.includes(false) ? valid : null,
  );
  const all = keys.map((key) => entries.get(key) ?? null);
  const flags: Field[] = dtype.nullable === hasNullCodes && dice.below(2) === 0 ? [] : [[3, hasNullCodes]];
  const message = proto([1, keys.length], [2, ptypeCode(ptype)], ...flags);
  return node("vortex.dict", message, [], tree, encode(dice, dtype, all, depth - 1));
};

const constant: Writer = (dice, dtype, values) => {
  const [first = anyValue(dice, dtype)] = values;
  if (values.some((value) => keyOf(value) !== keyOf(first))) return null;
  return node("vortex.constant", none, [scalar(dtype, first)]);
};

const masked: Writer = (dice, dtype, values, depth) => {
  if (!dtype.nullable) return null;
  const child = encode(dice, withNullable(dtype, false), filled(dice, dtype, values), depth - 1);
  return node("vortex.masked", none, [], child, validity(dice, dtype, values, depth));
};

const sequence: Writer = (_, dtype, values) => {
  if (dtype.kind !== "primitive" || dtype.ptype.startsWith("f") || values.length === 0 || values.includes(null)) {
    return null;
  }
  const numbers = values.map((value) => BigInt(value as number | bigint));
  const [first = 0n, second = first] = numbers;
  const step = second - first;
  if (numbers.some((number, i) => number !== first + step * BigInt(i))) return null;
  const isWide = (value: bigint) => BigInt.asIntN(64, value) !== value;
  const term = (value: bigint) =>
    isWide(value) ? proto([4, value]) : proto([3, value < 0n ? -2n * value - 1n : 2n * value]);
  return isWide(step) ? null : node("vortex.sequence", proto([1, term(first)], [2, term(step)]), []);
};

/** Values with others in place of nulls: the contents of null slots are undefined. */
function filled(dice: Dice, dtype: VortexDType, values: readonly Value[]): Value[] {
  return values.map((value) => value ?? anyValue(dice, dtype));
}

function plain(dice: Dice, dtype: VortexDType, values: readonly Value[], depth: number): RawNode {
  const valid = () => validity(dice, dtype, values, depth);
  const whole = filled(dice, dtype, values);
  switch (dtype.kind) {
    case "bool": {
      if (dice.below(3) === 0) {
        const bytes = Uint8Array.from(whole, (one) => one === true ? dice.pick(1, 1, 255) : 0);
        return node("vortex.bytebool", none, [bytes], valid());
      }
      const offset = dice.below(8);
      const bits = boolNode([...Array.from({ length: offset }, () => true), ...whole.map((one) => one === true)]);
      return node("vortex.bool", proto([1, offset]), [...bits?.buffers as Bytes[]], valid());
    }
    case "primitive": {
      const { buffers } = primitiveNode(whole.map((one) => wordOf(one, dtype.ptype)), dtype.ptype);
      return node("vortex.primitive", none, [...buffers as Bytes[]], valid());
    }
    case "decimal": {
      const numbers = whole.map(unscaled);
      const widths = [1, 2, 4, 8, 16, 32];
      const least = numbers.reduce((width, number) => {
        while (BigInt.asIntN(8 * width, number) !== number) width *= 2;
        return width;
      }, 1);
      const width = dice.pick(...widths.filter((one) => one >= least));
      const bytes = alignedTo(Math.min(width, 16), joined(...numbers.map((number) => littleEndian(number, width))));
      return node("vortex.decimal", proto([1, widths.indexOf(width)]), [bytes], valid());
    }
    case "utf8":
    case "binary":
      return dice.below(2) === 0 ? byOffsets(dice, whole, valid(), depth) : byViews(dice, whole, valid());
    case "extension":
      return node(
        "vortex.ext",
        none,
        [],
        encode(dice, dtype.storage, values.map((value) => stored(dtype, value)), depth - 1),
      );
    case "struct": {
      const fields = dtype.fields.map((field, i) =>
        encode(dice, field, whole.map((value) => fieldOf(value, i)), depth - 1)
      );
      return node("vortex.struct", none, [], valid(), ...fields);
    }
    case "fixedSizeList": {
      const elements = encode(dice, dtype.element, whole.flatMap((value) => value as Value[]), depth - 1);
      return node("vortex.fixed_size_list", none, [], elements, valid());
    }
    case "map": {
      const list: VortexDType = { kind: "list", element: entriesOf(dtype), nullable: dtype.nullable };
      const lists = values.map((value) => value === null ? null : (value as Value[]).map(entryOf));
      return node("vortex.map", none, [], listViews(dice, list, lists, depth));
    }
    case "list":
      return dice.pick(lists, listViews)(dice, dtype, values, depth);
    default:
      throw new TypeError(`No array of ${dtype.kind}`);
  }
}

function byOffsets(dice: Dice, values: readonly Value[], valid: RawNode | null, depth: number): RawNode {
  const parts = [new TextEncoder().encode(dice.pick("", "before")), ...values.map(textBytes)];
  let end = 0;
  const offsets = parts.map((part) => end += part.length);
  const [code, tree] = wholes(dice, offsets, depth);
  const bytes = joined(...parts, new TextEncoder().encode(dice.pick("", "behind")));
  return node("vortex.varbin", proto([1, code]), [bytes], tree, valid);
}

function byViews(dice: Dice, values: readonly Value[], valid: RawNode | null): RawNode {
  const buffers: Bytes[] = Array.from({ length: dice.below(4) }, () => new TextEncoder().encode(dice.pick("", "junk")));
  const views = values.map((value) => {
    const bytes = textBytes(value);
    const view = new Uint8Array(16);
    new DataView(view.buffer).setUint32(0, bytes.length, true);
    view.set(bytes.subarray(0, bytes.length > 12 ? 4 : 12), 4);
    if (bytes.length <= 12) return view;
    if (buffers.length === 0) buffers.push(new Uint8Array(0));
    const at = dice.below(buffers.length);
    const buffer = buffers[at] ?? none;
    new DataView(view.buffer).setUint32(8, at, true);
    new DataView(view.buffer).setUint32(12, buffer.length, true);
    buffers[at] = joined(buffer, bytes);
    return view;
  });
  return node("vortex.varbinview", none, [...buffers, alignedTo(16, joined(...views))], valid);
}

function lists(
  dice: Dice,
  dtype: VortexDType & { kind: "list" },
  values: readonly Value[],
  depth: number,
): RawNode {
  const parts = [
    Array.from({ length: dice.below(3) }, () => anyValue(dice, dtype.element)),
    ...filled(dice, dtype, values) as Value[][],
  ];
  let end = 0;
  const offsets = parts.map((part) => end += part.length);
  const elements = [...parts.flat(), ...Array.from({ length: dice.below(3) }, () => anyValue(dice, dtype.element))];
  const [code, tree] = wholes(dice, offsets, depth);
  return node(
    "vortex.list",
    proto([1, elements.length], [2, code]),
    [],
    encode(dice, dtype.element, elements, depth - 1),
    tree,
    validity(dice, dtype, values, depth),
  );
}

/** Lists placed anywhere: in another order, with gaps, several of them at the same position. */
function listViews(
  dice: Dice,
  dtype: VortexDType & { kind: "list" },
  values: readonly Value[],
  depth: number,
): RawNode {
  const elements: Value[] = [];
  const places = new Map<string, number>();
  const isInOrder = dice.below(2) === 0;
  const order = values.map((_, i) => i);
  for (const i of isInOrder ? order : order.toReversed()) {
    const list = values[i] ?? null;
    if (list === null || places.has(keyOf(list)) && !isInOrder) continue;
    if (!isInOrder && dice.below(2) === 0) elements.push(anyValue(dice, dtype.element));
    places.set(isInOrder ? `${i}` : keyOf(list), elements.length);
    elements.push(...list as Value[]);
  }
  const sizes = values.map((value) => value === null ? 0 : (value as Value[]).length);
  const starts = values.map((value, i) => value === null ? 0 : places.get(isInOrder ? `${i}` : keyOf(value)) ?? 0);
  const [startCode, startTree] = wholes(dice, starts, depth);
  // PyVortex requires sizes no wider than offsets.
  const widest = Number(["8", "16", "32", "64"][startCode % 4] ?? 64);
  const narrow = unsigned.filter((one) => Number(one.slice(1)) <= widest);
  const [sizeCode, sizeTree] = wholes(dice, sizes, depth, narrow);
  return node(
    "vortex.listview",
    proto([1, elements.length], [2, startCode], [3, sizeCode]),
    [],
    encode(dice, dtype.element, elements, depth - 1),
    startTree,
    sizeTree,
    validity(dice, dtype, values, depth),
  );
}

/** A random array of at most 40 elements. */
export function canonicalTree(seed: number): CanonicalTree {
  const dice = new Dice(seed);
  const dtype = anyDType(dice, 3);
  const length = dice.pick(0, 1, 3, dice.below(40));
  const values = anyValues(dice, dtype, length);
  return { dtype, length, values, tree: encode(dice, dtype, values, 4) };
}
