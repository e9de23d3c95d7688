/** pco numbers of every type, mode and delta encoding, against an encoder written from the format. */
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bitsOf, type PcoType } from "../../../src/vortex/compressed/pco/chunk_meta.ts";
import { decodePco, numberWords } from "../../../src/vortex/compressed/pco/decode.ts";
import { check, fc } from "../../support/property.ts";
import {
  type DeltaChoice,
  encodePco,
  floatBits,
  floatOf,
  type ModeChoice,
  type PcoBytes,
  type PcoChoice,
} from "../../support/vortex/pco_encoder.ts";

class Refused extends Error {}

function fail(problem: string): never {
  throw new Refused(problem);
}

function decode(type: PcoType, { header, meta, pages }: PcoBytes, lengths: readonly number[]): bigint[] {
  const count = lengths.reduce((sum, length) => sum + length, 0);
  const bytes = new Uint8Array(count * bitsOf(type) / 8);
  const chunk = { meta, pages: pages.map((bytes, i) => ({ bytes, length: lengths[i] ?? 0 })) };
  decodePco(header, [chunk], type, numberWords(bytes, type, count), () => {}, fail);
  const numbers = bitsOf(type) === 16
    ? new Uint16Array(bytes.buffer)
    : bitsOf(type) === 32
    ? new Uint32Array(bytes.buffer)
    : new BigUint64Array(bytes.buffer);
  return Array.from(numbers, BigInt);
}

const widths = fc.constantFrom<16 | 32 | 64>(16, 32, 64);

/** A mode that suits numbers of a type. */
function modes(family: string, bits: 16 | 32 | 64): fc.Arbitrary<ModeChoice> {
  const top = 2n ** BigInt(bits) - 1n;
  const always = [fc.constant<ModeChoice>({ kind: "classic" }), fc.constant<ModeChoice>({ kind: "dict" })];
  const bases = fc.oneof(
    fc.constantFrom(1, 0.01, 0.1, 3, -1.5, 1e-3).map((base) => floatOf(floatBits(base, bits), bits)),
    fc.bigInt(0n, top).map((base) => floatOf(base, bits)).filter((base) => Number.isFinite(base) && base !== 0),
  );
  return family === "f"
    ? fc.oneof(
      ...always,
      bases.map((base): ModeChoice => ({ kind: "floatMult", base })),
      fc.integer({ min: 1, max: { 16: 10, 32: 23, 64: 52 }[bits] }).map((bits): ModeChoice => ({
        kind: "floatQuant",
        bits,
      })),
    )
    : fc.oneof(
      ...always,
      fc.oneof(fc.bigInt(1n, 20n), fc.bigInt(1n, top)).map((base): ModeChoice => ({ kind: "intMult", base })),
    );
}

const deltas: fc.Arbitrary<DeltaChoice> = fc.oneof(
  fc.constant<DeltaChoice>({ kind: "none" }),
  fc.record({ kind: fc.constant("consecutive" as const), order: fc.integer({ min: 1, max: 7 }), both: fc.boolean() }),
  fc.record({
    kind: fc.constant("lookback" as const),
    windowLog: fc.integer({ min: 3, max: 9 }),
    stateLog: fc.integer({ min: 0, max: 3 }),
    both: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("conv1" as const),
    quantization: fc.integer({ min: 0, max: 31 }),
    bias: fc.oneof(fc.bigInt(-100n, 100n), fc.bigInt(-(2n ** 62n), 2n ** 62n)),
    weights: fc.array(fc.oneof(fc.integer({ min: -9, max: 9 }), fc.integer()), { minLength: 1, maxLength: 32 }),
  }),
);

/** Pages of numbers, similar or unrelated. */
function pages(bits: number): fc.Arbitrary<bigint[][]> {
  const top = 2n ** BigInt(bits) - 1n;
  const near = fc.bigInt(0n, top).chain((middle) =>
    fc.array(fc.bigInt(-300n, 300n).map((step) => BigInt.asUintN(bits, middle + step)), { maxLength: 600 })
  );
  const few = fc.uniqueArray(fc.bigInt(0n, top), { minLength: 1, maxLength: 4 }).chain((values) =>
    fc.array(fc.constantFrom(...values), { maxLength: 600, size: "max" })
  );
  return fc.array(fc.oneof(near, few, fc.array(fc.bigInt(0n, top), { maxLength: 50 })), { minLength: 1, maxLength: 3 });
}

const choices: fc.Arbitrary<PcoChoice> = fc.record({
  family: fc.constantFrom<"u" | "i" | "f">("u", "i", "f"),
  bits: widths,
  version: fc.constantFrom(1, 2, 3, 4),
  delta: deltas,
  sizeLog: fc.integer({ min: 5, max: 9 }),
  seed: fc.nat(),
}).chain(({ seed, ...rest }) =>
  fc.record({ mode: modes(rest.family, rest.bits), pages: pages(rest.bits) }).map((more) => {
    let state = seed >>> 0;
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor(state / 2 ** 32 * below);
    };
    // Before version 3 only the first variable had deltas, and only consecutive ones.
    const isOld = rest.version < 3;
    const delta: DeltaChoice = !isOld
      ? rest.delta
      : rest.delta.kind === "consecutive"
      ? { ...rest.delta, both: false }
      : { kind: "none" };
    return { ...rest, ...more, delta, random };
  })
);

/** The type of a choice. */
const typeOf = ({ family, bits }: PcoChoice) => `${family}${bits}` as PcoType;

test("numbers encoded in any way that the format knows are decoded bit for bit", () => {
  const seen = new Set<string>();
  check(
    fc.property(choices, (choice) => {
      seen.add(`${choice.mode.kind} ${choice.delta.kind}`);
      const decoded = decode(typeOf(choice), encodePco(choice), choice.pages.map(({ length }) => length));
      assertEquals(decoded, choice.pages.flat());
    }),
    1600,
    { endOnFailure: true }, // shrinking a chunk of hundreds of numbers takes minutes
  );
  assert(seen.size >= 15, `only ${[...seen]}`);
});

/** A chunk of tests/data/vortex/pco_chunks.json. */
interface WrittenChunk {
  readonly type: PcoType;
  readonly mode: string;
  readonly delta: string;
  readonly header: string;
  readonly meta: string;
  readonly pages: readonly string[];
  readonly lengths: readonly number[];
  readonly sha256: string;
}

const chunks: readonly WrittenChunk[] = JSON.parse(
  readFileSync(new URL("../../data/vortex/pco_chunks.json", import.meta.url), "utf8"),
);

test("chunks that pco's own library has written are decoded bit for bit", () => {
  const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, "base64"));
  for (const { type, mode, delta, header, meta, pages, lengths, sha256 } of chunks) {
    const count = lengths.reduce((sum, length) => sum + length, 0);
    const bytes = new Uint8Array(count * bitsOf(type) / 8);
    const chunk = {
      meta: bytesOf(meta),
      pages: pages.map((page, i) => ({ bytes: bytesOf(page), length: lengths[i] ?? 0 })),
    };
    decodePco(bytesOf(header), [chunk], type, numberWords(bytes, type, count), () => {}, fail);
    assertEquals(createHash("sha256").update(bytes).digest("hex"), sha256, `${type} ${mode} ${delta}`);
  }
});
