/** Strings in several data buffers: their views, and codecs that write exactly the right bytes to each. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { isUtf8 } from "node:buffer";
import { test } from "node:test";
import { decodeCodes } from "../../../src/vortex/strings/codes.ts";
import { fsstTable } from "../../../src/vortex/strings/fsst.ts";
import { onPairTable } from "../../../src/vortex/strings/on_pair.ts";
import { INLINE_BYTES } from "../../../src/vortex/canonical.ts";
import { decodeStrings, partsOf, type StringViews } from "../../../src/vortex/strings/string_views.ts";
import { textArray } from "../../../src/vortex/strings/text_array.ts";
import { check, fc, scaled } from "../../support/property.ts";

class Refused extends Error {}

function fail(problem: string): never {
  throw new Refused(problem);
}

const allocate = (bytes: number) => new Uint8Array(Math.ceil(bytes / 8) * 8).subarray(0, bytes);

/** The strings that views denote, by Arrow's specification; unused bytes of a view must be zero. */
function stringsOf({ views, buffers }: StringViews): Uint8Array[] {
  return Array.from({ length: views.length / 16 }, (_, row) => {
    const view = new DataView(views.buffer, views.byteOffset + 16 * row, 16);
    const size = view.getInt32(0, true);
    if (size <= INLINE_BYTES) {
      const own = views.slice(16 * row + 4, 16 * row + 16);
      assert(own.subarray(size).every((byte) => byte === 0), `the view of row ${row} has more than its bytes`);
      return own.slice(0, size);
    }
    const start = view.getInt32(12, true);
    const buffer = buffers[view.getInt32(8, true)];
    assert(buffer !== undefined && start + size <= buffer.length, `the view of row ${row} leads outside`);
    const bytes = buffer.slice(start, start + size);
    assertEquals([...bytes.subarray(0, 4)], [...views.subarray(16 * row + 4, 16 * row + 8)], `prefix of row ${row}`);
    return bytes;
  });
}

/** Strings of all lengths around the one at which a view changes its form. */
const strings = fc.array(
  fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.uint8Array({ minLength: 12, maxLength: 90 })),
  { maxLength: 40, size: "max" },
);
const limits = fc.constantFrom(90, 100, 200, 1000, undefined);

test("strings are viewed in as many buffers as they need, and read back", () => {
  let most = 0;
  check(
    fc.property(strings, limits, (rows, limit) => {
      const lengths = Uint32Array.from(rows, ({ length }) => length);
      const views = decodeStrings(
        lengths,
        lengths.reduce((sum, length) => sum + length, 0),
        (start, end, { bytes, words }, at) => {
          for (const row of rows.slice(start, end)) {
            bytes.set(row, at);
            at += row.length;
          }
          // Bytes after the rows may hold anything that is not part of a row.
          for (let i = at; i < words.byteLength; i++) words.setUint8(i, 0xaa);
        },
        allocate,
        fail,
        limit,
      );
      assertEquals(stringsOf(views), rows);
      assert(views.buffers.every(({ length }) => length <= (limit ?? Infinity)));
      most = Math.max(most, views.buffers.length);
    }),
    500,
  );
  assert(most > 3, `at most ${most} buffers`);
});

test("a string that no data buffer can hold is refused", () => {
  const lengths = Uint32Array.of(5, 101);
  assertThrows(() => partsOf(lengths, 106, fail, 100), Refused, "row 1 has 101 bytes, a string view holds at most 100");
});

test("FSST's codes give their strings in any number of buffers", () => {
  const symbol = fc.uint8Array({ minLength: 1, maxLength: 8 });
  const rowOf = (count: number) =>
    fc.array(fc.oneof(fc.nat(count - 1), fc.nat(255).map((byte) => [255, byte] as const)), { maxLength: 10 });
  const cases = fc.array(symbol, { minLength: 1, maxLength: 255, size: "max" }).chain((symbols) =>
    fc.record({ symbols: fc.constant(symbols), rows: fc.array(rowOf(symbols.length), { maxLength: 30 }) })
  );
  check(
    fc.property(cases, limits, fc.nat(255), ({ symbols, rows }, limit, padding) => {
      const table = Uint8Array.from(
        symbols.flatMap((one) => [...one, ...new Uint8Array(8 - one.length).fill(padding)]),
      );
      const sizes = Uint8Array.from(symbols, ({ length }) => length);
      const expected = rows.map((row) =>
        Uint8Array.from(row.flatMap((code) => typeof code === "number" ? [...symbols[code] ?? []] : [code[1]]))
      );
      const codes = rows.map((row) => row.flat());
      let end = 0;
      const decoded = decodeCodes(
        {
          table: fsstTable(table, sizes, fail),
          codes: Uint8Array.from(codes.flat()),
          offsets: Uint32Array.from([0, ...codes.map(({ length }) => end += length)]),
          lengths: Uint32Array.from(expected, ({ length }) => length),
        },
        allocate,
        fail,
        limit,
      );
      assertEquals(stringsOf(decoded), expected);
      assert(!decoded.isAscii || expected.every((row) => row.every((byte) => byte < 0x80)));
    }),
    500,
  );
});

test("text is refused exactly where a non-null row is not text, in any number of buffers", () => {
  const text = fc.string({ unit: "binary", maxLength: 30 }).map((one) => new TextEncoder().encode(one));
  const row = fc.record({
    bytes: fc.oneof({ weight: 9, arbitrary: text }, fc.uint8Array({ maxLength: 20 })),
    isValid: fc.boolean(),
  });
  let [texts, refusals] = [0, 0];
  check(
    fc.property(fc.array(row, { maxLength: 12, size: "max" }), limits, fc.boolean(), (rows, limit, isNullable) => {
      const isThere = ({ isValid }: { readonly isValid: boolean }) => isValid || !isNullable;
      const validity = new Uint8Array(Math.ceil(rows.length / 8));
      rows.forEach((one, i) => validity[i >> 3] = (validity[i >> 3] ?? 0) | Number(isThere(one)) << (i & 7));
      const lengths = Uint32Array.from(rows, ({ bytes }) => bytes.length);
      let end = 0;
      const strings = decodeCodes(
        {
          table: fsstTable(new Uint8Array(0), new Uint8Array(0), fail),
          codes: Uint8Array.from(rows.flatMap(({ bytes }) => [...bytes].flatMap((byte) => [255, byte]))),
          offsets: Uint32Array.from([0, ...rows.map(({ bytes }) => end += 2 * bytes.length)]),
          lengths,
        },
        allocate,
        fail,
        limit,
      );
      const make = () =>
        textArray({ kind: "utf8", nullable: isNullable }, strings, lengths, isNullable ? validity : null, fail);
      const wrong = rows.findIndex((one) => isThere(one) && !isUtf8(one.bytes));
      if (wrong >= 0) assertThrows(make, Refused, `Element ${wrong} is not UTF-8`);
      else assertEquals(stringsOf({ views: make().views, buffers: make().data }), rows.map(({ bytes }) => bytes));
      if (wrong >= 0) refusals++;
      else texts++;
    }),
    500,
  );
  assert(Math.min(texts, refusals) > scaled(50), `${texts} texts, ${refusals} refusals`);
});

test("rows of more codes than a block has, and more rows, are decoded as all others are", () => {
  const sizes = fc.array(fc.constantFrom(0, 1, 5, 200, 16_383, 16_384, 16_385, 300_000), {
    minLength: 1,
    maxLength: 6,
  });
  check(
    fc.property(sizes, fc.nat(9000), fc.boolean(), (counts, more, isWide) => {
      const symbols = isWide ? ["a", "bc", "0123456789abcdef"] : ["a", "bc", "01234567"];
      const rows = [...counts, ...Array.from({ length: more }, (_, i) => i % 4)];
      let end = 0;
      const offsets = Uint32Array.from([0, ...rows.map((count) => end += count)]);
      const codes = Array.from({ length: end }, (_, i) => i * 7 % 11 % 3);
      const expected = rows.map((count, row) =>
        codes.slice(offsets[row], (offsets[row] ?? 0) + count).map((code) => symbols[code]).join("")
      );
      const places = Uint32Array.of(0, 1, 3, 19);
      const padded = new TextEncoder().encode(symbols.map((symbol) => symbol.padEnd(8, "\0")).join(""));
      const decoded = decodeCodes(
        {
          table: isWide
            ? onPairTable(new TextEncoder().encode(symbols.join("")), places, fail)
            : fsstTable(padded, Uint8Array.of(1, 2, 8), fail),
          codes: isWide ? Uint16Array.from(codes) : Uint8Array.from(codes),
          offsets,
          lengths: Uint32Array.from(expected, ({ length }) => length),
        },
        allocate,
        fail,
      );
      assertEquals(stringsOf(decoded).map((bytes) => new TextDecoder().decode(bytes)), expected);
    }),
    20,
  );
});

test("OnPair's codes give their strings in any number of buffers", () => {
  const token = fc.uint8Array({ minLength: 1, maxLength: 16 });
  const cases = fc.array(token, { minLength: 1, maxLength: 300, size: "max" }).chain((tokens) =>
    fc.record({
      tokens: fc.constant(tokens),
      rows: fc.array(fc.array(fc.nat(tokens.length - 1), { maxLength: 5 }), { maxLength: 30 }),
    })
  );
  check(
    fc.property(cases, limits, ({ tokens, rows }, limit) => {
      let end = 0;
      const places = Uint32Array.from([0, ...tokens.map(({ length }) => end += length)]);
      const expected = rows.map((row) => Uint8Array.from(row.flatMap((code) => [...tokens[code] ?? []])));
      end = 0;
      const decoded = decodeCodes(
        {
          table: onPairTable(Uint8Array.from(tokens.flatMap((one) => [...one])), places, fail),
          codes: Uint16Array.from(rows.flat()),
          offsets: Uint32Array.from([0, ...rows.map(({ length }) => end += length)]),
          lengths: Uint32Array.from(expected, ({ length }) => length),
        },
        allocate,
        fail,
        limit,
      );
      assertEquals(stringsOf(decoded), expected);
      assert(!decoded.isAscii || expected.every((row) => row.every((byte) => byte < 0x80)));
    }),
    500,
  );
});
