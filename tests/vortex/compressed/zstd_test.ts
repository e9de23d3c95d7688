/** Zstandard frames: what their headers say, and how the runtime decodes them. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { decompressZstd, hasDictionaries } from "../../../src/vortex/compressed/zstd.ts";
import { readZstdFrame } from "../../../src/vortex/compressed/zstd_frame.ts";
import { check, fc } from "../../support/property.ts";
import { type FrameForm, zstdFrame } from "../../support/vortex/zstd_frames.ts";

class Refused extends Error {}

function fail(problem: string): never {
  throw new Refused(problem);
}

const nothing = new Uint8Array(0);

const forms: fc.Arbitrary<FrameForm> = fc.record({
  blocks: fc.constantFrom("raw", "repeated", "compressed"),
  sizeBytes: fc.constantFrom(1, 2, 4, 8),
  isSingleSegment: fc.boolean(),
});

const contents = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.tuple(fc.nat(255), fc.nat(200_000)).map(([byte, size]) => new Uint8Array(size).fill(byte)),
  fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.nat(2000)).map(([part, times]) =>
    Uint8Array.from({ length: part.length * times }, (_, i) => part[i % part.length] ?? 0)
  ),
).map((bytes) => Uint8Array.from(bytes));

const frames = fc.record({ content: contents, form: forms });

test("frames of every form are decompressed one behind the other", () => {
  check(
    fc.property(fc.array(frames, { maxLength: 4 }), (all) => {
      const bytes = all.map(({ content, form }) => zstdFrame(content, form));
      const sizes = all.map(({ content }) => content.length);
      const out = new Uint8Array(sizes.reduce((sum, size) => sum + size, 0));
      decompressZstd(bytes, sizes, nothing, out, fail);
      let at = 0;
      for (const [i, { content }] of all.entries()) {
        assertEquals(readZstdFrame(bytes[i] ?? nothing, fail), { contentSize: content.length, dictionaryId: 0 });
        assertEquals(out.subarray(at, at += content.length), content);
      }
    }),
    200,
  );
});

test("a frame that is cut off, or has bytes behind it, is refused before it is decompressed", () => {
  check(
    fc.property(frames, fc.nat(), fc.uint8Array({ minLength: 1, maxLength: 9 }), ({ content, form }, cut, more) => {
      const frame = zstdFrame(content, form);
      assertThrows(() => readZstdFrame(frame.subarray(0, cut % frame.length), fail), Refused);
      assertThrows(() => readZstdFrame(Uint8Array.from([...frame, ...more]), fail), Refused);
    }),
    300,
  );
});

test("a size that is not the frame's own is refused", () => {
  check(
    fc.property(frames, fc.integer({ min: -3, max: 1000 }), ({ content, form }, more) => {
      fc.pre(more !== 0 && content.length + more >= 0);
      const out = new Uint8Array(content.length + more);
      const frame = zstdFrame(content, form);
      assertThrows(() => decompressZstd([frame], [out.length], nothing, out, fail), Refused, "expected");
    }),
    200,
  );
});

test("damaged blocks end in a refusal, or in as many bytes as were promised", () => {
  check(
    fc.property(frames, fc.nat(), fc.nat(255), ({ content, form }, at, byte) => {
      const frame = zstdFrame(content, form);
      frame[at % frame.length] = byte;
      const out = new Uint8Array(content.length);
      try {
        decompressZstd([frame], [content.length], nothing, out, fail);
      } catch (error) {
        assert(error instanceof Refused, `${error}`);
      }
    }),
    1000,
  );
});

test("a frame without the size of its content is refused", () => {
  // RFC 8878: a window, no size, one empty last block.
  const frame = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x01, 0x00, 0x00);
  assertThrows(() => readZstdFrame(frame, fail), Refused, "without the size of its content");
});

test("reserved bits and blocks are refused", () => {
  const frameWith = (descriptor: number, block: number) =>
    Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, descriptor, 0, block, 0, 0); // a single segment, empty
  assertEquals(readZstdFrame(frameWith(0x20, 1), fail).contentSize, 0);
  assertThrows(() => readZstdFrame(frameWith(0x28, 1), fail), Refused, "a zstd frame with a reserved bit set");
  assertThrows(() => readZstdFrame(frameWith(0x20, 7), fail), Refused, "a zstd frame with a block of a reserved type");
});

test("a dictionary is used where the runtime can, and refused where it cannot", () => {
  const dictionary = new TextEncoder().encode("https://example.org/a/page/of/many ".repeat(8));
  const content = new TextEncoder().encode("https://example.org/a/page/of/many others, https://example.org/");
  const form: FrameForm = { blocks: "compressed", sizeBytes: 4, isSingleSegment: false };
  const out = new Uint8Array(content.length);
  const decompress = (frame: Uint8Array) => decompressZstd([frame], [content.length], dictionary, out, fail);
  if (hasDictionaries()) {
    decompress(zstdFrame(content, form, dictionary));
    assertEquals(out, content);
  } else {
    assertThrows(() => decompress(zstdFrame(content, form)), Refused, "cannot use one: decode it in Bun");
  }
  // The runtime shows it: compressing with a dictionary makes a difference, or none.
  const plain = zstdCompressSync(content).length;
  assertEquals(hasDictionaries(), zstdCompressSync(content, { dictionary }).length < plain);
});
