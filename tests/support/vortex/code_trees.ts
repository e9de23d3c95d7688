/**
 * Random arrays of strings as codes, and arrays stored by general compressors, with the rows that they stand for:
 * written from what the encodings mean.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import type { PType } from "../../../src/vortex/ptype.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { alignedTo, boolNode, joined, node, primitiveNode, proto, ptypeBits, ptypeCode } from "./nodes.ts";
import { Dice } from "./number_trees.ts";
import { type DeltaChoice, encodePco, floatBits, floatOf, type ModeChoice } from "./pco_encoder.ts";
import type { BuiltArray } from "./wheel.ts";
import { bytesOf } from "./words.ts";
import { type FrameForm, zstdFrame } from "./zstd_frames.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** An array, and the rows that it stands for, as the judge writes them. */
export interface CodeTree extends BuiltArray {
  readonly name: string;
  readonly rows: string;
}

/** A column of strings before it is encoded. */
interface Texts {
  readonly dtype: VortexDType;
  /** The bytes of each row, null rows included. */
  readonly values: readonly Bytes[];
  readonly validity: readonly boolean[] | null;
}

const encoder = new TextEncoder();
const pieces = ["a", "https://example.org/", "f\u00fcr", "\u6771\u4eac", "\u{1f30d}", " ", "0123456789", "e", "the"]
  .map((text) => encoder.encode(text));

function texts(dice: Dice, length: number): Texts {
  const nullable = dice.below(2) === 0;
  const kind = dice.pick("utf8", "utf8", "binary");
  const most = dice.pick(1, 3, 3, 8, 60);
  const some = pieces.slice(0, 1 + dice.below(pieces.length));
  const random = kind === "binary" && dice.below(2) === 0;
  const values = Array.from({ length }, () => {
    if (random) return bytesOf(dice.words(dice.below(most * 3), 8), 8);
    return joined(...Array.from({ length: dice.below(most + 1) }, () => dice.pick(...some)));
  });
  return { dtype: { kind, nullable }, values, validity: dice.validity(length, nullable) };
}

/** Rows as the judge writes them. */
function textRows({ values, validity }: Texts): string {
  return Buffer.concat(values.map((value, row) => {
    const isValid = validity?.[row] ?? true;
    const head = Buffer.alloc(5);
    head.writeUInt8(Number(isValid));
    head.writeUInt32LE(isValid ? value.length : 0, 1);
    return isValid ? Buffer.concat([head, value]) : head;
  })).toString("base64");
}

/** Some distinct parts of the values, of 1 to `most` bytes. */
function parts(dice: Dice, values: readonly Bytes[], count: number, most: number): Bytes[] {
  const found = new Map<string, Bytes>();
  const all = values.filter(({ length }) => length > 0);
  for (let i = 0; i < count && all.length > 0; i++) {
    const value = dice.pick(...all);
    const start = dice.below(value.length);
    const part = value.slice(start, start + 1 + dice.below(most));
    found.set(keyOf(part), part);
  }
  return [...found.values()];
}

/** The bytes as a string: its slices are the keys of their slices. */
const keyOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");

/** The codes of the parts that make up a value, with null for a byte that matches none. */
function split(dice: Dice, value: Bytes, codes: ReadonlyMap<string, number>, most: number): (number | null)[] {
  const out: (number | null)[] = [];
  const key = keyOf(value);
  for (let at = 0; at < value.length;) {
    const sizes: number[] = [];
    for (let size = 1; size <= most && at + size <= value.length; size++) {
      if (codes.has(key.slice(at, at + size))) sizes.push(size);
    }
    const size = sizes.length === 0 ? 1 : dice.below(3) === 0 ? dice.pick(...sizes) : sizes.at(-1) ?? 1;
    out.push(codes.get(key.slice(at, at + size)) ?? null);
    at += size;
  }
  return out;
}

/** Some unsigned ptype that can represent all of these numbers. */
function wholes(dice: Dice, numbers: readonly number[]): [ptype: PType, node: RawNode] {
  const most = numbers.reduce((a, b) => Math.max(a, b), 0);
  const able = (["u8", "u16", "u32", "u64"] as const).filter((ptype) => most < 2 ** ptypeBits(ptype));
  const ptype = dice.pick(...able);
  return [ptype, primitiveNode(numbers, ptype)];
}

/** Where each part begins, and where the last ends. */
function placesOf(sizes: readonly number[], first = 0): number[] {
  let end = first;
  return [first, ...sizes.map((size) => end += size)];
}

function fsst(dice: Dice, column: Texts, hasThreeBuffers: boolean): RawNode {
  const { values, validity } = column;
  // The order of the encoder's own tables: 2 to 8 bytes, then one.
  const symbols = parts(dice, values, dice.pick(0, 5, 60), 8).toSorted((one, two) =>
    (one.length === 1 ? 9 : one.length) - (two.length === 1 ? 9 : two.length)
  );
  const codes = new Map(symbols.map((symbol, code) => [keyOf(symbol), code]));
  const encoded = values.map((value) => {
    let at = 0;
    return Uint8Array.from(
      split(dice, value, codes, 8).flatMap((code) => {
        const from = at;
        at += code === null ? 1 : symbols[code]?.length ?? 0;
        return code ?? [255, value[from] ?? 0];
      }),
    );
  });
  const table = joined(...symbols.map((symbol) => joined(symbol, new Uint8Array(8 - symbol.length))));
  const [lengthType, lengths] = wholes(dice, values.map(({ length }) => length));
  const unused = hasThreeBuffers ? bytesOf(dice.words(dice.below(4), 8), 8) : new Uint8Array(0);
  const [offsetType, offsets] = wholes(dice, placesOf(encoded.map(({ length }) => length), unused.length));
  const sizes = Uint8Array.from(symbols, ({ length }) => length);
  const bytes = alignedTo(1, joined(unused, ...encoded));
  const valid = boolNode(validity);
  if (hasThreeBuffers) {
    const metadata = proto([1, ptypeCode(lengthType)], [2, ptypeCode(offsetType)]);
    return node("vortex.fsst", metadata, [table, sizes, bytes], lengths, offsets, valid);
  }
  const child = node("vortex.varbin", proto([1, ptypeCode(offsetType)]), [bytes], offsets, valid);
  return node("vortex.fsst", proto([1, ptypeCode(lengthType)]), [table, sizes], child, lengths);
}

function onPair(dice: Dice, { values, validity }: Texts): RawNode {
  const single = [...new Set(values.flatMap((value) => [...value]))].map((byte) => Uint8Array.of(byte));
  const all = [...single, ...parts(dice, values, dice.pick(0, 10, 400), 16).filter(({ length }) => length > 1)];
  const tokens = all.length === 0 ? [Uint8Array.of(1)] : all; // PyVortex requires at least one
  const codes = new Map(tokens.map((token, code) => [keyOf(token), code]));
  const encoded = values.map((value) => split(dice, value, codes, 16).map((code) => code ?? 0));
  const [lengthType, lengths] = wholes(dice, values.map(({ length }) => length));
  const [dictionaryType, dictionary] = wholes(dice, placesOf(tokens.map(({ length }) => length)));
  const [offsetType, offsets] = wholes(dice, placesOf(encoded.map(({ length }) => length)));
  const flat = encoded.flat();
  const codeType = "u16";
  const metadata = proto(
    [1, ptypeCode(lengthType)],
    [3, tokens.length],
    [4, flat.length],
    [5, ptypeCode(dictionaryType)],
    [6, ptypeCode(codeType)],
    [7, ptypeCode(offsetType)],
  );
  const spare = new Uint8Array(16);
  return node(
    "vortex.onpair",
    metadata,
    [joined(...tokens, spare)],
    dictionary,
    primitiveNode(flat, codeType),
    offsets,
    lengths,
    boolNode(validity),
  );
}

/** Contents of values that are not null, in frames that end where values do. */
function zstd(dice: Dice, values: readonly Bytes[], validity: readonly boolean[] | null): RawNode {
  const valid = values.filter((_, row) => validity?.[row] ?? true);
  const each = dice.pick(1 + dice.below(20), 500, 5000);
  const forms: FrameForm[] = [];
  const contents: Bytes[] = [];
  const counts: number[] = [];
  for (let at = 0; at < valid.length; at += each) {
    const some = valid.slice(at, at + each);
    contents.push(joined(...some));
    counts.push(some.length);
    forms.push({
      blocks: dice.pick("raw", "repeated", "compressed", "compressed"),
      sizeBytes: dice.pick(1, 2, 4, 8),
      isSingleSegment: dice.below(2) === 0,
    });
  }
  const frames = contents.map((content, i) => [2, proto([1, content.length], [2, counts[i] ?? 0])] as const);
  const buffers = contents.flatMap((content, i) => forms[i] === undefined ? [] : [zstdFrame(content, forms[i])]);
  return node("vortex.zstd", proto(...frames), buffers, boolNode(validity));
}

/** A column of numbers before it is encoded. */
interface Words {
  readonly ptype: PType;
  readonly words: readonly bigint[];
  readonly validity: readonly boolean[] | null;
}

function numberRows({ ptype, words, validity }: Words): string {
  const width = ptypeBits(ptype) / 8;
  return Buffer.concat(words.map((word, row) => {
    const isValid = validity?.[row] ?? true;
    return Buffer.from([Number(isValid), ...bytesOf([isValid ? word : 0n], width * 8)]);
  })).toString("base64");
}

/** Numbers close to each other, or arbitrary. */
function numbers(dice: Dice, length: number, bits: number): bigint[] {
  const middle = dice.words(1, bits)[0] ?? 0n;
  const spread = dice.pick(1, 3, 8, bits);
  return dice.words(length, spread).map((word) => BigInt.asUintN(bits, middle + word));
}

function pcoMode(dice: Dice, family: "u" | "i" | "f", bits: 16 | 32 | 64): ModeChoice {
  const kind = dice.below(3);
  if (kind === 0) return { kind: "classic" };
  if (kind === 1) return { kind: "dict" };
  if (family !== "f") return { kind: "intMult", base: BigInt(1 + dice.below(30)) };
  if (dice.below(2) === 0) return { kind: "floatQuant", bits: 1 + dice.below({ 16: 10, 32: 23, 64: 52 }[bits]) };
  return { kind: "floatMult", base: floatOf(floatBits(dice.pick(1, 0.01, 0.1, 3), bits), bits) };
}

function pcoDelta(dice: Dice, bits: number): DeltaChoice {
  switch (dice.below(bits === 64 ? 3 : 4)) { // PyVortex has no 64-bit convolution
    case 0:
      return { kind: "none" };
    case 1:
      return { kind: "consecutive", order: 1 + dice.below(7), both: dice.below(2) === 0 };
    case 2: {
      const windowLog = 3 + dice.below(4);
      return { kind: "lookback", windowLog, stateLog: dice.below(3), both: dice.below(2) === 0 };
    }
    default: {
      const weights = Array.from({ length: 1 + dice.below(8) }, () => dice.below(19) - 9);
      return { kind: "conv1", quantization: dice.below(5), bias: BigInt(dice.below(200) - 100), weights };
    }
  }
}

function pco(dice: Dice, { ptype, words, validity }: Words): RawNode {
  const family = ptype.startsWith("u") ? "u" : ptype.startsWith("i") ? "i" : "f";
  const bits = ptypeBits(ptype);
  if (bits === 8) throw new RangeError(`pco has no ${ptype}`);
  const valid = words.filter((_, row) => validity?.[row] ?? true);
  const each = dice.pick(100, 600, 5000);
  const [metas, pages, fields]: [Bytes[], Bytes[], (readonly [2, Bytes])[]] = [[], [], []];
  let header: Bytes = Uint8Array.of(4, 1);
  for (let at = 0; at < valid.length; at += each) {
    const some = valid.slice(at, at + each);
    const middle = dice.below(some.length + 1);
    const own = dice.below(2) === 0 || middle === 0 || middle === some.length
      ? [some]
      : [some.slice(0, middle), some.slice(middle)];
    const mode = pcoMode(dice, family, bits);
    // Where all differences of dictionary positions are in one bin, PyVortex takes that bin for positions.
    const delta: DeltaChoice = mode.kind === "dict" ? { kind: "none" } : pcoDelta(dice, bits);
    const encoded = encodePco({
      version: 4,
      family,
      bits,
      pages: own,
      mode,
      delta,
      sizeLog: 5 + dice.below(4),
      random: (below) => dice.below(below),
    });
    header = Uint8Array.from(encoded.header);
    metas.push(Uint8Array.from(encoded.meta));
    pages.push(...encoded.pages.map((page) => Uint8Array.from(page)));
    fields.push([2, proto(...own.map(({ length }) => [1, proto([1, length])] as const))]);
  }
  return node("vortex.pco", proto([1, header], ...fields), [...metas, ...pages], boolNode(validity));
}

/** A random array of at most 2500 rows. */
export function codeTree(seed: number): CodeTree {
  const dice = new Dice(seed);
  const kind = dice.pick("fsst", "old fsst", "onpair", "zstd", "zstd of numbers", "pco", "pco");
  const length = dice.pick(0, 1, 5, 300, dice.below(kind === "pco" ? 2500 : 800));
  const base = { name: `seed ${seed}: ${kind}`, length };
  if (kind === "pco" || kind === "zstd of numbers") {
    const nullable = dice.below(2) === 0;
    const all: readonly PType[] = ["u16", "u32", "u64", "i16", "i32", "i64", "f16", "f32", "f64"];
    const ptype = kind === "pco" ? dice.pick(...all) : dice.pick<PType>(...all, "u8", "i8");
    const words = numbers(dice, length, ptypeBits(ptype));
    const column: Words = { ptype, words, validity: dice.validity(length, nullable) };
    const tree = kind === "pco"
      ? pco(dice, column)
      : zstd(dice, words.map((word) => bytesOf([word], ptypeBits(ptype))), column.validity);
    return { ...base, dtype: { kind: "primitive", ptype, nullable }, tree, rows: numberRows(column) };
  }
  const column = texts(dice, length);
  const prefixed = column.values.map((value) => joined(bytesOf([BigInt(value.length)], 32), value));
  const tree = kind === "onpair"
    ? onPair(dice, column)
    : kind === "zstd"
    ? zstd(dice, prefixed, column.validity)
    : fsst(dice, column, kind === "fsst");
  return { ...base, dtype: column.dtype, tree, rows: textRows(column) };
}
