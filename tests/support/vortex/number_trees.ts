/**
 * Random arrays of numbers, in every encoding, nested: written from what the encodings mean, with garbage wherever no
 * reader may look.
 *
 * @module
 */
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { encodeRle } from "./encoders.ts";
import { pack } from "./fastlanes.ts";
import { boolNode, joined, node, primitiveNode, proto, ptypeBits, ptypeCode, scalarOf } from "./nodes.ts";
import type { BuiltArray } from "./wheel.ts";
import { bytesOf, randomWords } from "./words.ts";

/** A source of random choices, from one seed. */
export class Dice {
  #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
  }

  /** An integer from 0 to below `count`. */
  below(count: number): number {
    return Number((randomWords(++this.#seed * 2_654_435, 1, 53)[0] ?? 0n) % BigInt(count));
  }

  pick<T>(...of: readonly T[]): T {
    const chosen = of[this.below(of.length)];
    if (chosen === undefined) throw new RangeError("Nothing to choose from");
    return chosen;
  }

  words(length: number, bits: number): bigint[] {
    return randomWords(++this.#seed * 31_415_927, length, bits);
  }

  /** Which rows are valid; null if all are. */
  validity(length: number, nullable: boolean): boolean[] | null {
    const kind = nullable ? this.below(4) : 0;
    if (kind === 0) return null;
    return this.words(length, 2).map((word) => kind === 1 ? word > 0n : kind === 2 ? false : word === 0n);
  }

  /** Distinct numbers below `most`, ascending. */
  rising(count: number, most: number): number[] {
    return [...new Set(this.words(count, 32).map((word) => Number(word) % most))].toSorted((one, two) => one - two);
  }
}

const unsigned: readonly PType[] = ["u8", "u16", "u32", "u64"];
const integers: readonly PType[] = [...unsigned, "i8", "i16", "i32", "i64"];

/** An unsigned ptype that can represent a number. */
function indexType(dice: Dice, most: number): PType {
  return dice.pick(...unsigned.filter((ptype) => most < 2 ** ptypeBits(ptype)));
}

/** Patches of `length` rows: their metadata, and the children. */
function patches(
  dice: Dice,
  length: number,
  mayHaveBlocks: boolean,
  values: (count: number) => RawNode,
): { readonly message: Uint8Array<ArrayBuffer>; readonly children: readonly RawNode[] } | null {
  if (length === 0 || dice.below(2) === 0) return null;
  const rows = dice.rising(1 + dice.below(30), length);
  const offset = dice.pick(0, 3, 1000);
  const ptype = indexType(dice, offset + length);
  const blocks = mayHaveBlocks && offset === 0 && dice.below(2) === 0;
  const starts = Array.from(
    { length: Math.ceil(length / 1024) },
    (_, block) => rows.filter((row) => row < 1024 * block).length,
  );
  const message = proto([1, rows.length], [2, offset], [3, ptypeCode(ptype)]);
  return {
    message: blocks ? joined(message, proto([4, starts.length], [5, 0], [6, 0])) : message,
    children: [
      primitiveNode(rows.map((row) => row + offset), ptype),
      values(rows.length),
      ...blocks ? [primitiveNode(starts, "u8")] : [],
    ],
  };
}

/** A column of a ptype: its words are random; what matters is how they are encoded. */
function column(dice: Dice, ptype: PType, nullable: boolean, length: number, depth: number): RawNode {
  const isFloat = ptype.startsWith("f");
  const own = isFloat ? floatColumns : integerColumns;
  const all = depth === 0 ? [plain] : [plain, runEnd, sparse, rle, patched, constant, dict, ...own, ...own];
  const tree = dice.pick(...all)(dice, ptype, nullable, length, depth);
  return tree ?? plain(dice, ptype, nullable, length);
}

/** A way to write a column; null if it cannot be written that way. */
type Writer = (dice: Dice, ptype: PType, nullable: boolean, length: number, depth: number) => RawNode | null;

function plain(dice: Dice, ptype: PType, nullable: boolean, length: number): RawNode {
  const bits = ptypeBits(ptype);
  return primitiveNode(dice.words(length, 1 + dice.below(bits)), ptype, dice.validity(length, nullable));
}

const bitPacked: Writer = (dice, ptype, nullable, length) => {
  const bits = ptypeBits(ptype);
  const [width, offset] = [dice.below(bits + 1), dice.pick(0, 0, 1, 1023, dice.below(1024))];
  const packed = pack(dice.words(offset + length, bits), bits, width, 5n);
  // What patches stand for is not null where they stand, whatever their own validity is.
  const put = patches(dice, length, offset === 0, (count) => plain(dice, ptype, false, count));
  const message = joined(proto([1, width], [2, offset]), put === null ? proto() : proto([3, put.message]));
  const validity = boolNode(dice.validity(length, nullable));
  return node("fastlanes.bitpacked", message, [packed], ...put?.children ?? [], validity);
};

const bitPackedV2: Writer = (dice, ptype, nullable, length) => {
  const bits = ptypeBits(ptype);
  const offset = dice.pick(0, 1, 1023, dice.below(1024));
  const blocks = Math.ceil((offset + length) / 1024);
  const [ends, parts]: [number[], Uint8Array<ArrayBuffer>[]] = [[0], []];
  let width = dice.below(bits + 1);
  for (let block = 0; block < blocks; block++) {
    if (dice.below(3) > 0) width = dice.below(bits + 1);
    parts.push(pack(dice.words(1024, bits), bits, width));
    ends.push((ends.at(-1) ?? 0) + 128 * width);
  }
  const put = patches(dice, length, offset === 0, (count) => plain(dice, ptype, false, count));
  const boundary = indexType(dice, ends.at(-1) ?? 0);
  const message = joined(
    proto([1, offset], [2, ptypeCode(boundary)]),
    put === null ? proto() : proto([3, put.message]),
  );
  const validity = boolNode(dice.validity(length, nullable));
  const boundaries = primitiveNode(ends, boundary);
  return node("fastlanes.bitpacked.v2", message, [joined(...parts)], ...put?.children ?? [], validity, boundaries);
};

const frameOfReference: Writer = (dice, ptype, nullable, length, depth) => {
  const reference = dice.words(1, ptypeBits(ptype))[0] ?? 0n;
  return node("fastlanes.for", scalarOf(reference, ptype), [], column(dice, ptype, nullable, length, depth - 1));
};

const frameOfReferenceV2: Writer = (dice, ptype, nullable, length, depth) => {
  const offset = dice.pick(0, 1, 1023, dice.below(1024));
  const references = plain(dice, ptype, false, Math.ceil((offset + length) / 1024));
  return node("fastlanes.for.v2", proto([1, offset]), [], column(dice, ptype, nullable, length, depth - 1), references);
};

const zigzag: Writer = (dice, ptype, nullable, length, depth) => {
  const twin = unsigned.find((one) => ptype.startsWith("i") && ptypeBits(one) === ptypeBits(ptype));
  if (twin === undefined) return null;
  return node("vortex.zigzag", proto(), [], column(dice, twin, nullable, length, depth - 1));
};

const delta: Writer = (dice, ptype, nullable, length) => {
  const offset = dice.pick(0, 1, 1023, dice.below(1024));
  const blocks = Math.ceil((offset + length) / 1024) + dice.below(2);
  const bases = plain(dice, ptype, false, blocks * 1024 / ptypeBits(ptype));
  const deltas = column(dice, ptype, false, blocks * 1024, 1);
  const validity = boolNode(dice.validity(length, nullable));
  return node("fastlanes.delta", proto([1, blocks * 1024], [2, offset]), [], bases, deltas, validity);
};

const rle: Writer = (dice, ptype, nullable, length) => {
  if (length === 0) return null;
  const [offset, bits] = [dice.pick(0, 1, 1023, dice.below(1024)), ptypeBits(ptype)];
  const known = dice.words(1 + dice.below(20), bits);
  const words = dice.words(offset + length, 32).map((one) => known[Number(one) % known.length] ?? 0n);
  const { values, indices, starts } = encodeRle(words, dice.pick(0, 9));
  const validity = dice.validity(indices.length, nullable);
  const [code, start] = [dice.pick<PType>("u8", "u16"), indexType(dice, 9 + values.length)];
  const garbled = indices.map((one, row) => validity === null || validity[row] === true ? one : 99);
  const message = proto(
    ...[[1, values.length], [2, indices.length], [3, ptypeCode(code)]] as const,
    ...[[4, starts.length], [5, ptypeCode(start)], [6, offset]] as const,
  );
  const children = [primitiveNode(values, ptype), primitiveNode(garbled, code, validity), primitiveNode(starts, start)];
  return node("fastlanes.rle", message, [], ...children);
};

/** Runs of elements that `values` writes. */
function runs(dice: Dice, length: number, values: (count: number) => RawNode): RawNode | null {
  if (length === 0) return null;
  const offset = dice.pick(0, 0, 7, 500);
  const inner = dice.rising(dice.below(60), offset + length).filter((end) => end > offset);
  const cut = offset > 0 && dice.below(3) === 0 ? [offset] : []; // a run that ends where the first row begins
  const ends = [...cut, ...inner, offset + length + dice.pick(0, 0, 5)];
  const ptype = indexType(dice, ends.at(-1) ?? 0);
  const message = proto([1, ptypeCode(ptype)], [2, ends.length], [3, offset]);
  return node("vortex.runend", message, [], primitiveNode(ends, ptype), values(ends.length));
}

const runEnd: Writer = (dice, ptype, nullable, length, depth) =>
  runs(dice, length, (count) => column(dice, ptype, nullable, count, depth - 1));

/** Elements that mostly equal `fill`. */
function mostly(
  dice: Dice,
  length: number,
  fill: Uint8Array<ArrayBuffer>,
  values: (count: number) => RawNode,
): RawNode | null {
  const put = patches(dice, length, false, values);
  return put === null ? null : node("vortex.sparse", proto([1, put.message]), [fill], ...put.children);
}

const sparse: Writer = (dice, ptype, nullable, length, depth) => {
  const fill = nullable && dice.below(2) === 0 ? null : dice.words(1, ptypeBits(ptype))[0] ?? 0n;
  return mostly(dice, length, scalarOf(fill, ptype), (count) => column(dice, ptype, nullable, count, depth - 1));
};

const patched: Writer = (dice, ptype, nullable, length, depth) => {
  const offset = dice.pick(0, 1, 1023, dice.below(1024));
  const [blocks, lanes] = [Math.ceil((offset + length) / 1024), dice.pick(16, 32)];
  const rows = blocks === 0 ? [] : dice.rising(dice.below(60), blocks * 1024);
  const laneOf = (row: number) => Math.floor(row / 1024) * lanes + row % lanes;
  const sorted = rows.toSorted((one, two) => laneOf(one) - laneOf(two));
  const starts = Array.from(
    { length: blocks * lanes + 1 },
    (_, lane) => sorted.filter((row) => laneOf(row) < lane).length,
  );
  return node(
    "vortex.patched",
    proto([1, sorted.length], [2, lanes], [3, offset]),
    [],
    column(dice, ptype, nullable, length, depth - 1),
    primitiveNode(starts, "u32"),
    primitiveNode(sorted.map((row) => row % 1024), "u16"),
    primitiveNode(dice.words(sorted.length, ptypeBits(ptype)), ptype),
  );
};

const alp: Writer = (dice, ptype, nullable, length, depth) => {
  const most = ptype === "f32" ? 10 : 18;
  const [e, f] = [dice.below(most + 1), dice.below(most + 1)];
  const encoded = column(dice, ptype === "f32" ? "i32" : "i64", nullable, length, depth - 1);
  const put = patches(dice, length, true, (count) => plain(dice, ptype, false, count));
  const message = joined(proto([1, e], [2, f]), put === null ? proto() : proto([3, put.message]));
  return node("vortex.alp", message, [], encoded, ...put?.children ?? []);
};

const alpRd: Writer = (dice, ptype, nullable, length, depth) => {
  const bits = ptypeBits(ptype);
  const upper = 1 + dice.below(16);
  const width = bits - upper;
  const dictionary = dice.words(1 + dice.below(8), upper);
  const codes = dice.words(length, 16).map((word) => word % BigInt(dictionary.length));
  const left = primitiveNode(codes, "u16", dice.validity(length, nullable));
  const lower: PType = ptype === "f32" ? "u32" : "u64";
  const right = depth > 1 && width === bits - 1
    ? column(dice, lower, false, length, depth - 1)
    : primitiveNode(dice.words(length, width), lower);
  const put = patches(dice, length, false, (count) => primitiveNode(dice.words(count, upper), "u16"));
  const entries = joined(...dictionary.map((entry) => proto([3, entry])));
  const message = joined(proto([1, width], [2, dictionary.length]), entries, proto([4, ptypeCode("u16")]));
  const whole = put === null ? message : joined(message, proto([5, put.message]));
  return node("vortex.alprd", whole, [], left, right, ...put?.children ?? []);
};

const sequence: Writer = (dice, ptype, _nullable, length) => {
  if (length === 0) return null;
  const bits = ptypeBits(ptype);
  const [isSigned, most] = [ptype.startsWith("i"), 1n << BigInt(bits - 1)];
  const steps = BigInt(Math.max(1, length - 1));
  const step = dice.pick(0n, 1n, (most - 1n) / steps, isSigned ? -(most / steps) : 1n);
  if (step * steps >= most) return null;
  const term = (value: bigint) => proto([3, value < 0n ? -2n * value - 1n : 2n * value]);
  return node("vortex.sequence", proto([1, term(0n)], [2, term(step)]), []);
};

const constant: Writer = (dice, ptype, nullable) => {
  const word = nullable && dice.below(3) === 0 ? null : dice.words(1, ptypeBits(ptype))[0] ?? 0n;
  return node("vortex.constant", proto(), [scalarOf(word, ptype)]);
};

const dict: Writer = (dice, ptype, nullable, length, depth) => {
  const width = dice.below(6);
  const entries = 2 ** width + dice.below(3);
  const code = dice.pick<PType>("u8", "u16", "u32");
  const isNullable = nullable && dice.below(2) === 0;
  const validity = dice.validity(length, isNullable);
  // The code of a null row is meaningless.
  const codes = dice.words(length, 30).map((word, row) =>
    validity?.[row] === false ? 99n : dice.below(2) === 0 ? word % BigInt(entries) : 0n
  );
  const packed = pack(dice.words(length, width), ptypeBits(code), width);
  const tree = dice.below(2) === 0
    ? primitiveNode(codes, code, validity)
    : node("fastlanes.bitpacked", proto([1, width], [2, 0]), [packed], boolNode(validity));
  const values = column(dice, ptype, nullable, entries, depth - 1);
  const message = proto([1, entries], [2, ptypeCode(code)], [3, isNullable]);
  return node("vortex.dict", message, [], tree, values);
};

const integerColumns: readonly Writer[] = [
  sequence,
  bitPacked,
  bitPackedV2,
  frameOfReference,
  frameOfReferenceV2,
  zigzag,
  delta,
];
const floatColumns: readonly Writer[] = [alp, alpRd];

// --- arrays other than columns of numbers

function bools(dice: Dice, nullable: boolean, length: number): RawNode {
  const offset = dice.below(8);
  const bits = bytesOf(dice.words(Math.ceil((offset + length) / 8), 8), 8);
  return node("vortex.bool", proto([1, offset]), [bits], boolNode(dice.validity(length, nullable)));
}

function texts(dice: Dice, nullable: boolean, length: number): RawNode {
  const parts = dice.words(length, 5).map((size) =>
    new TextEncoder().encode("wherever it begins, it ends".slice(0, Number(size)))
  );
  let end = 0;
  const offsets = [0, ...parts.map((part) => end += part.length)];
  return node(
    "vortex.varbin",
    proto([1, ptypeCode("u32")]),
    [joined(...parts)],
    primitiveNode(offsets, "u32"),
    boolNode(dice.validity(length, nullable)),
  );
}

/** Integers in a range. */
function between(dice: Dice, least: bigint, most: bigint, length: number): bigint[] {
  return dice.words(length, 63).map((word) => least + word % (most - least + 1n));
}

function instants(dice: Dice, nullable: boolean, length: number, unit: number): RawNode {
  const perSecond = [1_000_000_000n, 1_000_000n, 1000n, 1n][unit] ?? 1n;
  const holds = (ptype: PType, most: bigint) =>
    (1n << BigInt(ptypeBits(ptype) - (ptype.startsWith("i") ? 1 : 0))) > most;
  const [days, seconds, rest] = [
    dice.pick(...integers.filter((one) => one.startsWith("i"))),
    dice.pick(...integers.filter((one) => holds(one, 86_399n))),
    dice.pick(...integers.filter((one) => holds(one, perSecond - 1n))),
  ];
  const range = days === "i8" ? 127n : days === "i16" ? 32_767n : 90_000n;
  return node(
    "vortex.datetimeparts",
    proto([1, ptypeCode(days)], [2, ptypeCode(seconds)], [3, ptypeCode(rest)]),
    [],
    primitiveNode(between(dice, -range, range, length), days, dice.validity(length, nullable)),
    primitiveNode(between(dice, 0n, 86_399n, length), seconds),
    primitiveNode(between(dice, 0n, perSecond - 1n, length), rest),
  );
}

function decimals(dice: Dice, nullable: boolean, length: number): { readonly tree: RawNode; readonly digits: number } {
  const first = dice.pick<PType>("i8", "i16", "i32", "i64");
  const validity = dice.validity(length, nullable);
  const count = dice.pick(0, 0, 1, 2, 3);
  if (count === 0) {
    const digits = { 8: 3, 16: 5, 32: 10, 64: 19 }[ptypeBits(first)];
    const top = primitiveNode(dice.words(length, ptypeBits(first)), first, validity);
    return { tree: node("vortex.decimal_byte_parts", proto([1, ptypeCode(first)]), [], top), digits };
  }
  const top = primitiveNode(between(dice, -100n, 100n, length), first, validity);
  const lower = Array.from({ length: count }, () => dice.pick(...unsigned));
  const children = lower.map((ptype) => plain(dice, ptype, false, length));
  const packed = Uint8Array.from(lower, ptypeCode);
  const message = proto([1, ptypeCode(first)], [2, packed]);
  return { tree: node("vortex.decimal_byte_parts.v2", message, [], top, ...children), digits: count === 1 ? 38 : 76 };
}

/** An array, and its description. */
export interface NumberTree extends BuiltArray {
  readonly name: string;
}

/** A random array of at most 3100 rows. */
export function numberTree(seed: number): NumberTree {
  const dice = new Dice(seed);
  const nullable = dice.below(2) === 0;
  const length = dice.pick(0, 1, 5, 1000, 1024, 1025, 2048, dice.below(3100));
  const built = (dtype: VortexDType, tree: RawNode): NumberTree => ({ name: `seed ${seed}`, dtype, length, tree });
  const kind = dice.below(20);
  if (kind === 0) {
    return built(
      { kind: "bool", nullable },
      runs(dice, length, (n) => bools(dice, nullable, n)) ?? bools(dice, nullable, length),
    );
  }
  if (kind === 1) {
    const values = (count: number) => bools(dice, nullable, count);
    const fill = nullable ? proto([1, 0]) : proto([2, dice.below(2)]);
    return built({ kind: "bool", nullable }, mostly(dice, length, fill, values) ?? values(length));
  }
  if (kind === 2 || kind === 3) {
    const values = (count: number) => texts(dice, nullable, count);
    const fill = nullable ? proto([1, 0]) : proto([7, new TextEncoder().encode("more than twelve bytes")]);
    const tree = kind === 2 ? runs(dice, length, values) : mostly(dice, length, fill, values);
    return built({ kind: "utf8", nullable }, tree ?? values(length));
  }
  if (kind === 4) {
    const unit = dice.below(4);
    const metadata = Uint8Array.of(unit, 0, 0);
    const storage: VortexDType = { kind: "primitive", ptype: "i64", nullable };
    const dtype: VortexDType = { kind: "extension", id: "vortex.timestamp", storage, metadata, nullable };
    return built(dtype, instants(dice, nullable, length, unit));
  }
  if (kind === 5) {
    const { tree, digits } = decimals(dice, nullable, length);
    return built({ kind: "decimal", precision: digits, scale: 2, nullable }, tree);
  }
  const ptype = dice.pick<PType>(...integers, "f32", "f64");
  return built({ kind: "primitive", ptype, nullable }, column(dice, ptype, nullable, length, 4));
}

/**
 * The same array with some damage.
 *
 * @param where `data`: only bytes of buffers change, so that no metadata claims more rows than there are
 */
export function damaged(array: NumberTree, seed: number, where: "data" | "anywhere" = "anywhere"): NumberTree {
  const dice = new Dice(seed + 1_000_003);
  let { tree, length } = array;
  for (let times = 1 + dice.below(3); times > 0; times--) tree = damagedNode(dice, tree, where);
  if (where === "anywhere" && dice.below(8) === 0) length = dice.pick(0, length + 1, length * 2, 2 ** 31, 2 ** 50);
  return { ...array, tree, length };
}

function damagedNode(dice: Dice, tree: RawNode, where: "data" | "anywhere"): RawNode {
  const { buffers, metadata, children } = tree;
  if (children.length > 0 && dice.below(3) > 0) {
    const hit = dice.below(children.length);
    return {
      ...tree,
      children: children.map((child, index) => index === hit ? damagedNode(dice, child, where) : child),
    };
  }
  switch (where === "data" ? 4 : dice.below(6)) {
    case 0:
      return { ...tree, metadata: changed(dice, metadata) };
    case 1:
      return { ...tree, metadata: metadata.slice(0, dice.below(metadata.length + 1)) };
    case 2:
      return { ...tree, children: children.slice(0, -1) };
    case 3:
      return { ...tree, children: [...children, ...children.slice(0, 1)].toReversed() };
    default: {
      const [first] = buffers instanceof Array ? buffers : [];
      if (!(first instanceof Uint8Array)) return tree;
      const shorter = where === "anywhere" && dice.below(3) === 0;
      return { ...tree, buffers: [shorter ? first.slice(0, dice.below(first.length + 1)) : changed(dice, first)] };
    }
  }
}

/** Bytes with one of them replaced. */
function changed(dice: Dice, bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const copy = bytes.slice();
  if (copy.length > 0) copy[dice.below(Math.min(copy.length, 64))] = dice.pick(0, 1, 127, 128, 255, dice.below(256));
  return copy;
}
