import { assert, assertEquals, assertRejects } from "@std/assert";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { HttpReader, openVortex } from "../../../src/vortex/mod.ts";
import { openReader, type VortexSource } from "../../../src/vortex/file/reader.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import { collectGarbage } from "../../support/collect.ts";
import { check, fc } from "../../support/property.ts";
import { scratchFolder } from "../../support/scratch.ts";
import { until } from "../../support/until.ts";

const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => (at * 7) % 253);
const path = join(scratchFolder(), "some bytes");
writeFileSync(path, bytes);

const sources: Record<string, () => VortexSource> = {
  "bytes": () => bytes,
  "an ArrayBuffer": () => bytes.slice().buffer,
  "a part of an ArrayBuffer": () => new Uint8Array([...bytes.subarray(0, 3), ...bytes]).subarray(3),
  "a Blob": () => new Blob([bytes]),
  "a File": () => new File([bytes], "some.vortex"),
  "a path": () => path,
  "a file: URL": () => pathToFileURL(path),
  "a reader whose size is a promise": () => ({
    size: Promise.resolve(bytes.length),
    read: (offset, length) => Promise.resolve(bytes.slice(offset, offset + length)),
  }),
};

for (const [name, source] of Object.entries(sources)) {
  test(`${name}: every range is read as it is, several at once`, async () => {
    const reader = await openReader(source());
    assertEquals(reader.size, bytes.length);
    const place = fc.nat(bytes.length);
    await check(
      fc.asyncProperty(fc.array(fc.tuple(place, place), { minLength: 1, maxLength: 4 }), async (places) => {
        const ranges = places.map(([one, other]) => [Math.min(one, other), Math.abs(one - other)] as const);
        const read = await Promise.all(ranges.map(([offset, length]) => reader.read(offset, length)));
        read.forEach((got, at) => {
          const [offset, length] = ranges[at] ?? [0, 0];
          assert(Buffer.compare(got, bytes.subarray(offset, offset + length)) === 0);
        });
      }),
      50,
    );
    await assertRejects(() => reader.read(bytes.length, 1), VortexError, "Cannot read 1 bytes at offset 100000");
    reader.close();
    reader.close();
    await assertRejects(() => reader.read(0, 1), TypeError, "closed");
  });
}

// In Deno each file that was opened and closed was kept: 0.85 MiB for one of 500 columns.
test("a file is collected once it is closed, also during a read, and whatever it is read from", async () => {
  const file = fileURLToPath(new URL("../../../examples/trips.vortex", import.meta.url));
  const bytes = readFileSync(file);
  const served = (_: URL, { headers }: RequestInit) => {
    const [, from = "", to = ""] = /(\d+)-(\d+)/.exec(new Headers(headers).get("range") ?? "") ?? [];
    const range = { "content-range": `bytes ${from}-${to}/${bytes.length}` };
    return Promise.resolve(new Response(bytes.subarray(Number(from), Number(to) + 1), { status: 206, headers: range }));
  };
  const all: (() => VortexSource)[] = [
    () => file,
    () => ({
      size: bytes.length,
      read: (at, length) => Promise.resolve(bytes.slice(at, at + length)),
      close: () => {},
    }),
    () => new HttpReader("http://example.org/trips.vortex", { fetch: served }),
  ];
  const use = async (source: VortexSource, isReading: boolean): Promise<WeakRef<object>> => {
    const opened = await openVortex(source);
    const first = isReading ? Array.fromAsync(opened.scan()).catch(() => {}) : null;
    opened.close();
    await first;
    return new WeakRef(opened);
  };
  const files: WeakRef<object>[] = [];
  for (const source of all) for (const isReading of [true, false]) files.push(await use(source(), isReading));
  const left = () => files.filter((one) => one.deref() !== undefined).length;
  for (let i = 0; i < 20 && left() > 1; i++) await collectGarbage();
  assert(left() <= 1, `${left()} of ${files.length} files are kept`); // one may still be on the stack
});

test("the error for anything but a source says what a source is", async () => {
  await assertRejects(() => openReader(17 as never), TypeError, "Cannot open 17 as a Vortex file: expected bytes");
  await assertRejects(() => openReader({ size: 3 } as never), TypeError, "as a Vortex file");
  await assertRejects(() => openReader(new URL("ftp://example.org/a")), TypeError, "expected a URL that begins with");
});

test("a reader that returns too much, too little or something else is an error that says so", async () => {
  for (const size of [-1, 1.5, NaN, 2 ** 60]) {
    await assertRejects(
      () => openReader({ size, read: () => Promise.reject() }),
      VortexError,
      "expected a non-negative integer",
    );
  }
  for (const answer of [new Uint8Array(3), new Uint8Array(5), "four" as never]) {
    const reader = await openReader({ size: 100, read: () => Promise.resolve(answer) });
    await assertRejects(() => reader.read(10, 4), VortexError, "instead of 4 bytes at offset 10");
  }
});

test("a file that was cut off since it was opened is detected", async () => {
  const short = join(scratchFolder(), "short");
  writeFileSync(short, bytes);
  const reader = await openReader(short);
  truncateSync(short, 1000);
  await assertRejects(() => reader.read(900, 200), VortexError, "returned 100 instead of 200 bytes");
  reader.close();
});

// A read that never ends kept its scan waiting for ever: closing waited for it, too.
test("closing rejects the reads in flight at once; the source is closed once, and not during a read", async () => {
  let closed = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const reader = await openReader({
    size: 10,
    async read(_, length) {
      await promise;
      assertEquals(closed, 0);
      return new Uint8Array(length);
    },
    close: () => void closed++,
  });
  const reads = [reader.read(0, 1), reader.read(0, 2)];
  reader.close();
  reader.close();
  for (const read of reads) await assertRejects(() => read, TypeError, "was closed while it was read");
  assertEquals(closed, 0);
  resolve();
  await until(() => closed > 0);
  assertEquals(closed, 1);
});

test("bytes and reads are counted", async () => {
  const reader = await openReader(bytes);
  await reader.read(0, 10);
  await reader.read(5, 20);
  assertEquals(reader.statistics, { bytes: 30, reads: 2 });
});
