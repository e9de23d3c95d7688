/**
 * Operations on decoded arrays: slices, picks, concatenations and repetitions have the values that the same operations
 * on JavaScript's own arrays give.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import type { PyObject } from "../../../mod.ts";
import { toArrowArray } from "../../../src/vortex/arrow/to_arrow.ts";
import type { CanonicalArray, PrimitiveArray } from "../../../src/vortex/canonical.ts";
import { concatOf } from "../../../src/vortex/ops/concat.ts";
import { flatten } from "../../../src/vortex/ops/flatten.ts";
import { sliceOf } from "../../../src/vortex/ops/slice.ts";
import { takeOf } from "../../../src/vortex/ops/take.ts";
import {
  decodeVortexIpc,
  fromVortexMetadata,
  readVortexIpc,
  VortexError,
  VortexSession,
} from "../../../src/vortex/mod.ts";
import { protoOf } from "../../../src/vortex/wire/proto_writer.ts";
import { writeDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { models, type Quirks, valueOf } from "../../support/arrow_model.ts";
import { patiently } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { check, fc } from "../../support/property.ts";
import {
  arrayOfValues,
  bytesOfList,
  isVortexType,
  missingPyVortex,
  openPyVortex,
} from "../../support/vortex/python_arrays.ts";

const plain: Quirks = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };
const session = VortexSession.default();

/** Memory whose start and size are multiples of 8, as allocators provide it. */
function allocate(bytes: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new ArrayBuffer(Math.ceil(bytes / 8) * 8), 0, bytes);
}

function valuesOf(array: CanonicalArray): unknown {
  return toArrowArray(array, "", session, allocate).toArray();
}

const [title, options] = needs(missingPyVortex, "slices, picks and concatenations have the values that lists have");

test(title, { ...options, ...patiently }, () => {
  const python = openPyVortex();
  const [toVortex, toMessages] = ["to_vortex", "to_messages"].map((one) => python.evaluate(one));
  const cases = models.filter(isVortexType).chain((model) =>
    fc.record({
      model: fc.constant(model),
      values: fc.array(valueOf(model), { minLength: 1, maxLength: 40 }),
      cuts: fc.array(fc.nat(40), { minLength: 2, maxLength: 6 }),
      picks: fc.array(fc.nat(40), { maxLength: 20 }),
      keep: fc.boolean(),
    })
  );
  check(
    fc.property(cases, ({ model, values, cuts, picks, keep }) => {
      using made = arrayOfValues(model, values, plain);
      using encoded: PyObject = toVortex?.$call(made.own, true);
      using messages: PyObject = toMessages?.$call(encoded);
      const [message = new Uint8Array(), dtype = new Uint8Array()] = bytesOfList(messages);
      const vortex = decodeVortexIpc(message, { dtype });
      const array = vortex.decoded();
      const length = values.length;

      const slices = cuts.slice(1).map((cut, i) => {
        const [start = 0, end = 0] = [cuts[i] ?? 0, cut].map((one) => one % (length + 1)).sort((a, b) => a - b);
        const slice = sliceOf(array, start, end, allocate);
        assertEquals(valuesOf(slice), values.slice(start, end) as unknown, `from ${start} to ${end}`);
        return { slice, values: values.slice(start, end) };
      });
      for (const { slice, values } of slices) {
        const [start, end] = [values.length >> 2, values.length - (values.length >> 2)];
        assertEquals(valuesOf(sliceOf(slice, start, end, allocate)), values.slice(start, end) as unknown);
      }
      const together = concatOf(array.dtype, slices.map(({ slice }) => slice), allocate);
      assertEquals(valuesOf(together), slices.flatMap((one) => one.values) as unknown);

      const indices = Uint32Array.from(picks, (pick) => pick % length);
      assertEquals(valuesOf(takeOf(array, indices, null, allocate)), Array.from(indices, (i) => values[i]) as unknown);

      if (!keep) return;
      const kept = vortex.toArrow({ keep: ["dictionary", "runEnd"] });
      assertEquals(kept.toArray() as unknown, values);
    }),
    200,
  );
});

const view = (text: string, buffer: number, start: number) => {
  const words = Uint32Array.of(text.length, 0, buffer, start);
  const bytes = new Uint8Array(words.buffer);
  bytes.set(new TextEncoder().encode(text.slice(0, text.length > 12 ? 4 : 12)), 4);
  return bytes;
};

/** Texts, each in its own buffer. */
function texts(...all: readonly string[]): CanonicalArray {
  const views = new Uint8Array(all.flatMap((text, i) => [...view(text, i, 0)]));
  const data = all.map((text) => new TextEncoder().encode(text));
  return {
    kind: "varbinview",
    dtype: { kind: "utf8", nullable: false },
    length: all.length,
    validity: null,
    views,
    data,
  };
}

test("texts of several arrays stay their own in one, whether their buffers do or are packed", () => {
  const all = Array.from({ length: 20 }, (_, i) => `the text with the number ${i}`);
  for (const sizes of [[1, 2], [3, 17]]) {
    let at = 0;
    const parts = sizes.map((size) => texts(...all.slice(at, at += size)));
    const together = concatOf({ kind: "utf8", nullable: false }, parts, allocate);
    assertEquals(valuesOf(together), all.slice(0, at) as unknown);
  }
});

test("a dictionary's nulls are null, whatever stands in their codes", () => {
  const codes = primitive("u8", Uint8Array.of(1, 0, 1));
  const values = primitive("u16", Uint16Array.of(500, 600));
  const dtype = { kind: "primitive", ptype: "u16", nullable: true } as const;
  const dictionary: CanonicalArray = {
    kind: "dictionary",
    dtype,
    length: 3,
    validity: Uint8Array.of(0b101),
    codes,
    values,
  };
  assertEquals(valuesOf(flatten(dictionary, allocate)), [600, null, 600] as unknown);
});

function primitive(ptype: "u8" | "u16", values: Uint8Array<ArrayBuffer> | Uint16Array<ArrayBuffer>): PrimitiveArray {
  const dtype = { kind: "primitive", ptype, nullable: false } as const;
  return { kind: "primitive", dtype, length: values.length, validity: null, values };
}

const [pieces, piecesOptions] = needs(missingPyVortex, "arrays are read from a message stream in pieces of any size");

test(pieces, { ...piecesOptions, ...patiently }, async () => {
  const python = openPyVortex();
  python.run(`
def stream(counts):
    made = [to_messages(vx.array(pa.array(range(count), pa.int32()))) for count in counts]
    return [made[0][1] + b"".join(array for array, _ in made)]
`);
  const stream = python.evaluate("stream");
  await check(
    fc.asyncProperty(
      fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 }),
      fc.nat(1000),
      async (counts, sizes, cut) => {
        using made: PyObject = stream.$call(python.builtins["list"].$call(counts));
        const [bytes = new Uint8Array()] = bytesOfList(made);
        async function* piecesOf(whole: Uint8Array) {
          let piece = 0;
          for (let at = 0; at < whole.length; piece++) {
            const size = sizes[piece % sizes.length] ?? 1;
            yield await Promise.resolve(whole.subarray(at, at + size));
            at += size;
          }
        }
        const expected = counts.map((count) => Array.from({ length: count }, (_, i) => i));
        for (const source of [piecesOf(bytes), bytes]) {
          const got = await Array.fromAsync(readVortexIpc(source), (array) => array.toArrow().toArray());
          assertEquals(got as unknown, expected);
        }
        const part = bytes.subarray(0, bytes.length - 1 - cut % (bytes.length - 1));
        const first = await Array.fromAsync(readVortexIpc(piecesOf(part)), (array) => array.length).catch((error) => {
          if (!(error instanceof VortexError)) throw error;
          return null;
        });
        // A stream cut between two messages only ends early.
        if (first !== null) assertEquals(first, counts.slice(0, first.length));
      },
    ),
    50,
  );
});

test("a few bytes that stand for more than the limit are refused before anything is allocated", () => {
  const dtype = writeDType({ kind: "primitive", ptype: "u64", nullable: false });
  const constant = fromVortexMetadata(["vortex.constant", dtype, 2 ** 40, new Uint8Array(), [protoOf([[4, 7]])], []]);
  assertThrows(() => constant.toArrow(), VortexError, "of the limit of 4294967296");
  const term = protoOf([[4, 1]]);
  const sequence = fromVortexMetadata(["vortex.sequence", dtype, 1000, protoOf([[1, term], [2, term]]), [], []], {
    limits: { bytes: 7999 },
  });
  assertThrows(() => sequence.toArrow(), VortexError, "raise limits.bytes");
  const enough = fromVortexMetadata(["vortex.sequence", dtype, 3, protoOf([[1, term], [2, term]]), [], []], {
    limits: { bytes: 24 },
  });
  assertEquals(enough.toArrow().toArray(), [1n, 2n, 3n]);
});
