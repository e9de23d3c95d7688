/** Reading NumPy's files: valid files are read, others are refused in one line. */
import { assert, assertEquals, assertFalse, assertRejects } from "@std/assert";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { Cuda, NpyError, readNpy } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { fileOf, headerOf, npy } from "../support/npy_files.ts";

const digits = fileURLToPath(new URL("../../examples/digits.npy", import.meta.url));
const types = ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"];

test("the digits that NumPy wrote are read as it wrote them", async () => {
  using view = await readNpy(digits);
  assertEquals(view.shape, [1797, 8, 8]);
  assertEquals(view.dtype.name, "uint8");
  assertEquals(Array.from(await view.sliced(0, 0).toTypedArray(), Number), [0, 0, 5, 13, 9, 1, 0, 0]);
});

test("every shape, order, type and version of the format is read back byte for byte", async () => {
  await check(
    fc.asyncProperty(
      fc.constantFrom(...types),
      fc.array(fc.nat(5), { maxLength: 5 }),
      fc.constantFrom("False", "True"),
      fc.constantFrom(1, 2, 3),
      fc.nat(255),
      async (descr, shape, fortran, version, seed) => {
        const size = Number(descr.slice(2)) * shape.reduce((all, extent) => all * extent, 1);
        const data = Uint8Array.from({ length: size }, (_, i) => (i * 31 + seed) & 255);
        const file = npy(headerOf(descr, shape, fortran), data, { version: version as 1 | 2 | 3 });
        using view = await readNpy(seed % 2 === 0 ? file : readFileSync(file));
        assertEquals(view.shape, shape);
        assertEquals(view.dtype.typestr, descr);
        assertEquals(new Uint8Array(view.buffer.bytes()), data);
        assert(fortran === "True" ? view.layout.isContiguousF : view.layout.isContiguousC);
      },
    ),
    200,
  );
});

test("a file that is cut anywhere is refused, never read short", async () => {
  const whole = readFileSync(npy(headerOf("<f8", [3, 1]), new Uint8Array(24)));
  (await readNpy(whole)).close();
  for (let length = 0; length < whole.length; length++) {
    await assertRejects(() => readNpy(whole.subarray(0, length)), NpyError, "", `cut at ${length}`);
  }
});

test("a header with changed bytes is read or an NpyError, and takes no more memory than the file", async () => {
  const whole = readFileSync(npy(headerOf("<f4", [2, 3]), new Uint8Array(24)));
  const change = fc.tuple(
    fc.nat(whole.length - 1),
    fc.oneof(fc.nat(255), fc.constantFrom(...Buffer.from("(),'9:{}[]OV>"))),
  );
  await check(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async (changes) => {
      const bytes = Uint8Array.from(whole);
      for (const [at, byte] of changes) bytes[at] = byte;
      try {
        using view = await readNpy(bytes);
        assert(view.buffer.size <= bytes.length);
      } catch (error) {
        assert(error instanceof NpyError, `${error}`);
      }
    }),
    1500,
  );
});

test("raw bytes are read as the given type, and only if one is given", async () => {
  const file = npy(headerOf("<V2", [2]), Uint8Array.of(0x80, 0x3f, 0x00, 0xc0)); // as NumPy writes bfloat16
  using view = await readNpy(file, { rawDtype: "bfloat16" });
  assertEquals([view.dtype.name, `${view}`], ["bfloat16", "[1 -2]"]);
  await assertRejects(() => readNpy(file), NpyError, 'rawDtype: "bfloat16"');
  await assertRejects(() => readNpy(file, { rawDtype: "float32" }), NpyError, "rawDtype float32 has 4 bytes");
});

test("contradictory and unknown options are refused before anything is opened", async () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const two = { device, memory: device.memory };
  await assertRejects(() => readNpy("/nonexistent", two), TypeError, "expected device or memory, got both");
  await assertRejects(() => readNpy("/nonexistent", { stream: device.defaultStream }), TypeError, "pass { device }");
  await assertRejects(() => readNpy("/nonexistent", { devise: device } as object), TypeError, "did you mean device?");
});

const bad: { readonly [what: string]: [path: () => string, message: string] } = {
  "an empty file": [() => fileOf(new Uint8Array(0)), "does not begin with"],
  "another format": [() => npy(headerOf("<f8", [1]), new Uint8Array(8), { magic: "\x93NUMPX" }), "does not begin with"],
  "missing data": [() => npy(headerOf("<f8", [3]), new Uint8Array(23)), "promises 24 bytes of data, it has 23"],
  objects: [() => npy(headerOf("|O", [3]), new Uint8Array(24)), "Python objects"],
  text: [() => npy(headerOf("<U3", [3]), new Uint8Array(36)), "text"],
  longdouble: [() => npy(headerOf("<f16", [3]), new Uint8Array(48)), "longdouble"],
  "an extent with a leading zero": [
    () => npy("{'descr': '<f8', 'fortran_order': False, 'shape': (03,), }", new Uint8Array(24)),
    "header",
  ],
  "an unknown type": [() => npy(headerOf("<f3", [3]), new Uint8Array(9)), "expected numbers of at most 64 bits"],
  times: [() => npy(headerOf("<M8[ns]", [3]), new Uint8Array(24)), "times"],
  structures: [
    () => npy("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (3,), }", new Uint8Array(24)),
    "structures",
  ],
  "a header that is not a dictionary": [() => npy("import os"), "not a Python dictionary"],
  "a header without a shape": [() => npy("{'descr': '<f8', 'fortran_order': False, }"), "not have exactly"],
  "a negative extent": [() => npy(headerOf("<f8", [-1])), "whole numbers"],
  "a fractional extent": [
    () => npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1.5,), }"),
    "not a Python dictionary",
  ],
  "more elements than numbers can count": [() => npy(headerOf("<f8", [2 ** 40, 2 ** 40])), "its shape is invalid"],
  "more bytes than the file has": [() => npy(headerOf("<f8", [2 ** 40])), "truncated"],
  "65 dimensions": [
    () => npy(headerOf("|u1", new Array<number>(65).fill(1)), new Uint8Array(1)),
    "its shape is invalid",
  ],
};

for (const [what, [path, message]] of Object.entries(bad)) {
  test(`${what}: refused in one line`, async () => {
    const error = await assertRejects(() => readNpy(path()), NpyError, message);
    assertFalse(error.message.includes("\n"), error.message);
  });
}

test("a header that claims an impossible length is refused before it is read", async () => {
  const bytes = new Uint8Array(100);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 2, 0, 0xff, 0xff, 0xff, 0x7f]);
  await assertRejects(() => readNpy(fileOf(bytes)), NpyError, "claims 2147483647 bytes");
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 9, 0]);
  await assertRejects(() => readNpy(fileOf(bytes)), NpyError, "version 9.0");
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 205]); // NumPy refuses it, too
  await assertRejects(() => readNpy(fileOf(bytes)), NpyError, "version 1.205");
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, 0xff, 0xff]);
  await assertRejects(() => readNpy(fileOf(bytes)), NpyError, "header alone ends at byte 65545");
});

test("headers of random bytes are refused, and none crashes the reader", async () => {
  await check(
    fc.asyncProperty(fc.string({ maxLength: 200 }), async (noise) => {
      await assertRejects(() => readNpy(npy(noise.replace(/[^\x20-\x7e]/g, "?"))), NpyError);
    }),
    300,
  );
});

// NumPy writes these types of ml_dtypes under names that it cannot read, and the error spoke of numbers of 64 bits.
test("types that NumPy writes but does not read are read as the given type", async () => {
  const file = npy(headerOf("<f1", [2]), Uint8Array.of(0x3c, 0xc0));
  using view = await readNpy(file, { rawDtype: "float8_e5m2" });
  assertEquals([view.dtype.name, `${view}`], ["float8_e5m2", "[1 -2]"]);
  using pairs = await readNpy(npy(headerOf("<W4", [1]), Uint8Array.of(0x00, 0x3c, 0x00, 0xc0)), {
    rawDtype: "complex32",
  });
  assertEquals([pairs.dtype.name, `${pairs}`], ["complex32", "[1.-2.j]"]);
  await assertRejects(() => readNpy(file), NpyError, "Name the type");
  await assertRejects(() => readNpy(file, { rawDtype: "complex32" }), NpyError, "rawDtype complex32 has 4 bytes");
  await assertRejects(() => readNpy(npy(headerOf(">W4", [1]), new Uint8Array(4)), { rawDtype: "complex32" }), NpyError);
});
