import { assert, assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { ReadAhead } from "../../../src/vortex/file/read_ahead.ts";
import { type FileReader, openReader } from "../../../src/vortex/file/reader.ts";
import { check, fc } from "../../support/property.ts";

const bytes = Uint8Array.from({ length: 4000 }, (_, at) => (at * 31) % 251);
const rangesOf = fc.array(fc.record({ offset: fc.nat(3800), length: fc.nat(200) }), { maxLength: 40 });
const options = fc.record({ bytes: fc.integer({ min: 1, max: 2000 }), requests: fc.integer({ min: 1, max: 4 }) });

/** A reader that answers after a given number of turns and counts its reads. */
async function counted(gap: number, turns: (read: number) => number) {
  const seen = { underWay: 0, most: 0, reads: [] as { offset: number; length: number }[] };
  const reader: FileReader = await openReader({
    size: bytes.length,
    gap,
    async read(offset, length) {
      seen.reads.push({ offset, length });
      seen.most = Math.max(seen.most, ++seen.underWay);
      for (let turn = turns(seen.reads.length); turn > 0; turn--) await Promise.resolve();
      seen.underWay--;
      return bytes.subarray(offset, offset + length);
    },
  });
  return { reader, seen };
}

test("every range that is taken is right, in whatever order and however late reads answer", async () => {
  const cases = rangesOf.chain((ranges) =>
    fc.record({
      ranges: fc.constant(ranges),
      order: fc.shuffledSubarray([...ranges.keys()], { minLength: ranges.length }),
    })
  );
  await check(
    fc.asyncProperty(cases, options, fc.nat(60), fc.infiniteStream(fc.nat(9)), async (one, options, gap, turns) => {
      const { ranges, order } = one;
      const { reader, seen } = await counted(gap, () => turns.next().value ?? 0);
      const ahead = new ReadAhead(reader, ranges, options);
      for (const at of order) {
        const { offset = 0, length = 0 } = ranges[at] ?? {};
        assertEquals(await ahead.take(at), bytes.subarray(offset, offset + length));
      }
      assertEquals(ahead.held, 0);
      assert(seen.most <= options.requests + 1); // a read that the caller awaits is started in any case
    }),
    300,
  );
});

test("no more is held than allowed, but for one read that the caller awaits", async () => {
  await check(
    fc.asyncProperty(rangesOf, options, fc.nat(30), async (ranges, options, gap) => {
      const { reader, seen } = await counted(gap, () => 3);
      const ahead = new ReadAhead(reader, ranges, options);
      for (const at of ranges.keys()) {
        await ahead.take(at);
        const longest = Math.max(...seen.reads.map(({ length }) => length), 0);
        assert(ahead.held <= Math.max(options.bytes, longest) + longest, `${ahead.held} of ${options.bytes} are held`);
      }
    }),
    300,
  );
});

test("with room for everything, nothing is read twice and neighbours are read together", async () => {
  await check(
    fc.asyncProperty(rangesOf, async (ranges) => {
      const { reader, seen } = await counted(0, () => 1);
      const ahead = new ReadAhead(reader, ranges, { bytes: 1e6, requests: 100 });
      for (const at of ranges.keys()) await ahead.take(at);
      const wanted = new Uint8Array(bytes.length);
      for (const { offset, length } of ranges) wanted.fill(1, offset, offset + length);
      const total = seen.reads.reduce((sum, { length }) => sum + length, 0);
      assertEquals(total, wanted.reduce((sum, one) => sum + one, 0));
    }),
    200,
  );
});

test("a range cannot be taken twice, nor one that was not added", async () => {
  const { reader } = await counted(0, () => 1);
  const ahead = new ReadAhead(reader, [{ offset: 0, length: 100 }, { offset: 0, length: 0 }], {
    bytes: 100,
    requests: 1,
  });
  for (const at of [0, 1]) {
    await ahead.take(at);
    await assertRejects(() => ahead.take(at), RangeError, `Cannot take range ${at}: it is gone`);
  }
  await assertRejects(() => ahead.take(2), RangeError, "Cannot take range 2: it is gone");
});

test("an error of the source reaches the caller that takes the range, and the next ones can be taken", async () => {
  let reads = 0;
  const reader = await openReader({
    size: 1000,
    gap: 0,
    read: (_, length) =>
      ++reads === 2 ? Promise.reject(new Error("the cable is out")) : Promise.resolve(new Uint8Array(length)),
  });
  const ranges = [0, 100, 200].map((at) => ({ offset: at * 3, length: 10 }));
  const ahead = new ReadAhead(reader, ranges, { bytes: 1000, requests: 8 });
  await ahead.take(0);
  await assertRejects(() => ahead.take(1), Error, "the cable is out");
  assertEquals((await ahead.take(2)).length, 10);
});

test("columns that lie apart are read side by side, not each as far as a read may go", async () => {
  const [columns, rows, size] = [10, 40, 10];
  const { reader } = await counted(0, () => 1);
  const ranges = Array.from({ length: columns * rows }, (_, at) => ({
    offset: at % columns * 400 + Math.floor(at / columns) * size,
    length: size,
  }));
  const ahead = new ReadAhead(reader, ranges.slice(0, columns), { bytes: 200, requests: 4 });
  for (const [at, range] of ranges.entries()) {
    if (at >= columns) assertEquals(ahead.add(range), at);
  }
  assertEquals(ahead.wanted, columns * rows * size);
  let most = 0;
  for (const [at, { offset, length }] of ranges.entries()) {
    assertEquals(await ahead.take(at), bytes.subarray(offset, offset + length));
    most = Math.max(most, ahead.held);
  }
  assert(most <= 200, `${most} bytes were held`);
  assertEquals([ahead.held, ahead.wanted], [0, 0]);
});
