/** Reading NumPy's files: what is right is read, what is not is refused in one line. */
import { assert, assertEquals, assertFalse, assertThrows } from "@std/assert";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import "../../mod.ts";
import { NpyError, readNpy } from "../../src/cli/npy.ts";
import { check, fc } from "../support/property.ts";
import { fileOf, headerOf, npy } from "../support/npy_files.ts";

const digits = fileURLToPath(new URL("../../examples/digits.npy", import.meta.url));
const types = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"];

test("the digits that NumPy wrote are read as it wrote them", async () => {
  const { view, buffer } = readNpy(digits);
  assertEquals(view.shape, [1797, 8, 8]);
  assertEquals(view.dtype.name, "uint8");
  assertEquals(Array.from(await view.sliced(0, 0).toTypedArray(), Number), [0, 0, 5, 13, 9, 1, 0, 0]);
  buffer.close();
});

test("every shape, order, type and version of the format is read back byte for byte", () => {
  check(
    fc.property(
      fc.constantFrom(...types),
      fc.array(fc.nat(5), { maxLength: 5 }),
      fc.constantFrom("False", "True"),
      fc.constantFrom(1, 2, 3),
      fc.nat(255),
      (descr, shape, fortran, version, seed) => {
        const size = Number(descr.slice(2)) * shape.reduce((all, extent) => all * extent, 1);
        const data = Uint8Array.from({ length: size }, (_, i) => (i * 31 + seed) & 255);
        const { view, buffer } = readNpy(npy(headerOf(descr, shape, fortran), data, { version: version as 1 | 2 | 3 }));
        assertEquals(view.shape, shape);
        assertEquals(view.dtype.typestr, descr);
        assertEquals(new Uint8Array(buffer.bytes()), data);
        assert(fortran === "True" ? view.layout.isContiguousF : view.layout.isContiguousC);
        buffer.close();
      },
    ),
    200,
  );
});

test("a file that is cut anywhere is refused, never read short", () => {
  const whole = Uint8Array.from({ length: 64 + 64 + 24 }, () => 0);
  check(
    fc.property(fc.nat(whole.length), (length) => {
      const path = npy(headerOf("<f8", [3, 1]), new Uint8Array(24));
      const { buffer, dataOffset } = readNpy(path);
      buffer.close();
      const bytes = new Uint8Array(dataOffset + 24).fill(0).subarray(0, Math.min(length, dataOffset + 23));
      assertThrows(() => readNpy(fileOf(bytes)), NpyError);
    }),
    100,
  );
});

const bad: { readonly [what: string]: [path: () => string, message: string] } = {
  "a missing file": [() => "/nonexistent.npy", "Cannot open"],
  "a folder": [() => "/tmp", "not a file"],
  "an empty file": [() => fileOf(new Uint8Array(0)), "does not begin with"],
  "another format": [() => npy(headerOf("<f8", [1]), new Uint8Array(8), { magic: "\x93NUMPX" }), "does not begin with"],
  "missing data": [() => npy(headerOf("<f8", [3]), new Uint8Array(23)), "promises 24 bytes of data, it has 23"],
  objects: [() => npy(headerOf("|O", [3]), new Uint8Array(24)), "Python objects"],
  "big-endian numbers": [() => npy(headerOf(">f8", [3]), new Uint8Array(24)), "big-endian"],
  text: [() => npy(headerOf("<U3", [3]), new Uint8Array(36)), "text"],
  times: [() => npy(headerOf("<M8[ns]", [3]), new Uint8Array(24)), "times"],
  structures: [
    () => npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }", new Uint8Array(24)),
    "structures",
  ],
  "a header that is no dictionary": [() => npy("import os"), "not a dictionary"],
  "a header without a shape": [() => npy("{'descr': '<f8', 'fortran_order': False, }"), "not a dictionary"],
  "a negative extent": [() => npy(headerOf("<f8", [-1])), "whole numbers"],
  "a fractional extent": [() => npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1.5,), }"), "whole numbers"],
  "more elements than numbers can count": [() => npy(headerOf("<f8", [2 ** 40, 2 ** 40])), "makes no sense"],
  "more bytes than the file has": [() => npy(headerOf("<f8", [2 ** 40])), "truncated"],
  "65 dimensions": [() => npy(headerOf("|u1", new Array<number>(65).fill(1)), new Uint8Array(1)), "makes no sense"],
};

for (const [what, [path, message]] of Object.entries(bad)) {
  test(`${what}: refused in one line`, () => {
    const error = assertThrows(() => readNpy(path()), NpyError, message);
    assertFalse(error.message.includes("\n"), error.message);
  });
}

test("a header that claims to be longer than any is refused before it is read", () => {
  const bytes = new Uint8Array(100);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 2, 0, 0xff, 0xff, 0xff, 0x7f]);
  assertThrows(() => readNpy(fileOf(bytes)), NpyError, "claims 2147483647 bytes");
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 9, 0]);
  assertThrows(() => readNpy(fileOf(bytes)), NpyError, "version 9");
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 0xff, 0xff]);
  assertThrows(() => readNpy(fileOf(bytes)), NpyError, "header alone ends at byte 65545");
});

test("no header made of noise is read, and none brings the reader down", () => {
  check(
    fc.property(fc.string({ maxLength: 200 }), (noise) => {
      assertThrows(() => readNpy(npy(noise.replace(/[^\x20-\x7e]/g, "?"))), NpyError);
    }),
    300,
  );
});
