/** Zips of arrays: limits, damage, and which parts are read. NumPy's own zips are in numpy_test. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { crc32, inflateRawSync } from "node:zlib";
import {
  HostMemoryResource,
  MemoryBuffer,
  MemoryResource,
  NpyError,
  readNpy,
  readNpz,
  StridedMemoryView,
  writeNpz,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { scratchFolder } from "../support/scratch.ts";

const path = `${scratchFolder()}/some.npz`;
const numbers = StridedMemoryView.fromTypedArray(Int32Array.from({ length: 1000 }, (_, i) => i * i % 1009), {
  shape: [10, 100],
});
const arrays = { numbers, "l\u00f6ss/1": StridedMemoryView.fromTypedArray(Float64Array.of(0.5)) };

async function zip(compressed: boolean): Promise<Uint8Array> {
  await writeNpz(path, arrays, { compressed });
  return Uint8Array.from(readFileSync(path));
}

/** The offset of the directory entry of `numbers`, the first entry. */
const entryAt = (bytes: Uint8Array) =>
  bytes.findLastIndex((_, i) =>
    new DataView(bytes.buffer).getUint32(Math.min(i, bytes.length - 4), true) === 0x02014b50 && bytes[i + 46] === 110
  );

test("arrays are read by name, all or some", async () => {
  for (const compressed of [false, true]) {
    const bytes = await zip(compressed);
    using all = await readNpz(bytes);
    assertEquals([...all.keys()], ["numbers", "l\u00f6ss/1"]);
    assertEquals(await all.get("numbers")?.toTypedArray(), await numbers.toTypedArray());
    using some = await readNpz(path, { names: ["l\u00f6ss/1"] });
    assertEquals([...some.keys()], ["l\u00f6ss/1"]);
    assertEquals(compressed, bytes.length < 4000);
    const [local, entry] = [0, entryAt(bytes)].map((at) => new DataView(bytes.buffer, at));
    const nameBytes = "numbers.npy".length;
    const [before, inEntry] = [30 + nameBytes, 46 + nameBytes]; // the sizes are in extra fields behind the names
    assertEquals(local?.getUint32(14, true), entry?.getUint32(16, true));
    for (const at of [4, 12]) {
      assertEquals(local?.getBigUint64(before + at, true), entry?.getBigUint64(inEntry + at, true));
    }
  }
  await assertRejects(() => readNpz(path, { names: ["x"] }), NpyError, "no array x: expected one of numbers");
});

test("all arrays are freed, also if that of one is an error", async () => {
  let freed = 0;
  class Failing extends MemoryResource {
    override readonly isDeviceAccessible = false;
    override readonly isHostAccessible = true;
    override allocate(bytes: number): MemoryBuffer {
      const memory = new HostMemoryResource().allocate(bytes);
      const free = () => {
        memory.close();
        throw new Error(`free ${++freed}`);
      };
      return MemoryBuffer.fromAllocation({ ptr: memory.ptr, size: bytes, device: null, stream: null, free });
    }
  }
  const all = await readNpz(await zip(false), { memory: new Failing() });
  assertThrows(() => all.close(), Error, "free 1");
  assertEquals(freed, 2);
});

// In a stream the sizes of a member are known once it has ended, so they follow it.
test("who reads a stream finds each compressed member's end, checksum and sizes, without the directory", async () => {
  const named = fc.dictionary(fc.string({ minLength: 1, maxLength: 5, unit: "grapheme" }), fc.nat(300), { maxKeys: 4 });
  await check(
    fc.asyncProperty(named, async (counts) => {
      const views = new Map(Object.entries(counts).map(([name, count]) => [name, StridedMemoryView.arange(count)]));
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const options = { compressed: true };
      const [chunks] = await Promise.all([Array.fromAsync(readable), writeNpz(writable, views, options)]);
      const bytes = Buffer.concat(chunks);
      let at = 0;
      for (const [name, view] of views) {
        assertEquals(bytes.readUInt32LE(at), 0x04034b50);
        assertEquals(bytes.readUInt16LE(at + 6) & 8, 8);
        const [nameBytes, extraBytes] = [bytes.readUInt16LE(at + 26), bytes.readUInt16LE(at + 28)];
        const from = at + 30 + nameBytes;
        assertEquals(bytes.toString("utf8", at + 30, from), `${name}.npy`);
        assertEquals([bytes.readUInt16LE(from), extraBytes], [1, 20]); // its sizes have 8 bytes
        const start = from + extraBytes;
        const { buffer: content, engine } = inflated(bytes.subarray(start));
        const end = start + engine.bytesWritten;
        using back = await readNpy(Uint8Array.from(content));
        assertEquals(await back.toTypedArray(), await view.toTypedArray());
        assertEquals(bytes.readUInt32LE(end), 0x08074b50);
        assertEquals(bytes.readUInt32LE(end + 4), crc32(content));
        assertEquals(bytes.readBigUInt64LE(end + 8), BigInt(engine.bytesWritten));
        assertEquals(bytes.readBigUInt64LE(end + 16), BigInt(content.length));
        at = end + 24;
        view.close();
      }
      assertEquals(bytes.readUInt32LE(at), views.size > 0 ? 0x02014b50 : 0x06054b50);
    }),
    100,
  );
});

/** Inflates what begins there, and says how many bytes that took. */
function inflated(bytes: Buffer): { readonly buffer: Buffer; readonly engine: { readonly bytesWritten: number } } {
  // The declared type of `{ info: true }` is that of a call without it.
  return inflateRawSync(bytes, { info: true }) as unknown as ReturnType<typeof inflated>;
}

test("limits hold, and one that nothing would exceed is refused", async () => {
  const bytes = await zip(true);
  await assertRejects(() => readNpz(bytes, { limits: { members: 1 } }), NpyError, "2 members: expected at most 1");
  await assertRejects(() => readNpz(bytes, { limits: { bytes: 4000 } }), NpyError, "more than 4000 bytes");
  using all = await readNpz(bytes, { limits: {} });
  assertEquals(all.size, 2);
  for (const limit of [NaN, -1, 0.5, "1MB", 2n, null] as number[]) {
    await assertRejects(() => readNpz(bytes, { limits: { bytes: limit } }), RangeError, "Cannot limit bytes to");
    await assertRejects(() => readNpz(bytes, { limits: { members: limit } }), RangeError, "Cannot limit members to");
  }
});

// Each of any number of entries could name the same member: 28 KB became 3 GB.
test("members that share bytes with others or the directory are refused", async () => {
  const bytes = await zip(true);
  const view = new DataView(bytes.buffer);
  const first = entryAt(bytes);
  const words = 46 + 11 + 4; // where the size, the packed size and the position are, behind both names of 11 bytes
  const second = first + words + 24;
  const changed = (at: number, word: bigint) => {
    const copy = Uint8Array.from(bytes);
    new DataView(copy.buffer).setBigUint64(at, word, true);
    return copy;
  };
  const position = view.getBigUint64(second + words + 16, true);
  const packed = view.getBigUint64(second + words + 8, true);
  for (const at of [0n, position - 40n]) {
    const shared = changed(second + words + 16, at);
    await assertRejects(() => readNpz(shared, { names: ["numbers"] }), NpyError, "share bytes");
  }
  const longer = changed(second + words + 8, packed + 100n);
  await assertRejects(() => readNpz(longer, { names: ["numbers"] }), NpyError, "reaches into the directory");
});

// Arrays were missing, and nothing said so.
test("a directory that counts fewer members than it has, or names one otherwise, is refused", async () => {
  const bytes = await zip(false);
  const end = bytes.length - 22 - 20 - 56; // the end record of zip64, before its locator and the old end record
  for (const count of [0n, 1n]) {
    const fewer = Uint8Array.from(bytes);
    new DataView(fewer.buffer).setBigUint64(end + 32, count, true);
    await assertRejects(() => readNpz(fewer), NpyError, "more than the");
  }
  const renamed = Uint8Array.from(bytes);
  renamed[entryAt(bytes) + 46] = "m".charCodeAt(0); // not "numbers.npy"
  await assertRejects(() => readNpz(renamed), NpyError, "is numbers.npy where it is promised");
});

test("one wrong byte of a member is found", async () => {
  for (const compressed of [false, true]) {
    const bytes = await zip(compressed);
    const packed = Number(new DataView(bytes.buffer).getBigUint64(entryAt(bytes) + 46 + 11 + 4 + 8, true));
    assert(packed > 500);
    const from = 30 + 11 + 20; // behind its own header; the last bits of the last byte may be unused
    await check(
      fc.asyncProperty(fc.integer({ min: from, max: from + packed - 2 }), async (at) => {
        const wrong = Uint8Array.from(bytes);
        wrong[at] = (wrong[at] ?? 0) ^ 0x10;
        await assertRejects(() => readNpz(wrong, { names: ["numbers"] }), NpyError);
      }),
      40,
    );
  }
});

test("encrypted members, other methods, and claims that no deflated bytes can keep are refused", async () => {
  const bytes = await zip(true);
  const at = entryAt(bytes);
  const changed = (offset: number, size: 2 | 8, value: number) => {
    const copy = Uint8Array.from(bytes);
    const view = new DataView(copy.buffer);
    if (size === 2) view.setUint16(at + offset, value, true);
    else view.setBigUint64(at + offset, BigInt(value), true);
    return copy;
  };
  await assertRejects(() => readNpz(changed(8, 2, 1)), NpyError, "encrypted");
  await assertRejects(() => readNpz(changed(10, 2, 14)), NpyError, "method 14");
  const sizeAt = 46 + "numbers.npy".length + 4;
  await assertRejects(() => readNpz(changed(sizeAt, 8, 2 ** 40)), NpyError, "claims 1099511627776 bytes");
  await assertRejects(() => readNpz(changed(sizeAt, 8, 4000)), NpyError); // the member has more
  await assertRejects(() => readNpz(changed(sizeAt, 8, 5000)), NpyError); // the member has fewer
});

test("damaged files are read or refused with an NpyError, and cut ones refused", async () => {
  const bytes = await zip(true);
  await assertRejects(() => readNpz(new Uint8Array(0)), NpyError, "not a .npz file");
  const change = fc.tuple(fc.nat(bytes.length - 1), fc.nat(255));
  await check(
    fc.asyncProperty(fc.array(change, { maxLength: 5 }), fc.nat(bytes.length - 1), async (changes, cut) => {
      const wrong = Uint8Array.from(changes.length === 0 ? bytes.subarray(0, cut) : bytes);
      for (const [at, byte] of changes) wrong[at] = byte;
      try {
        (await readNpz(wrong)).close();
        assert(changes.length > 0);
      } catch (error) {
        assert(error instanceof NpyError, `${error}`);
      }
    }),
    300,
  );
});
