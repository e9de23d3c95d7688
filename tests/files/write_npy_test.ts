/** Arrays written to streams: what a file would hold, in blocks that nobody else has. */
import { assert, assertEquals, assertRejects } from "@std/assert";
import { readFileSync, symlinkSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { readNpy, slice, StridedMemoryView, SystemError, writeNpy, writeNpz } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { scratchFolder } from "../support/scratch.ts";

test("a stream gets the bytes of the file, which stay the same when the array changes", async () => {
  const path = `${scratchFolder()}/array.npy`;
  await check(
    fc.asyncProperty(
      fc.array(fc.nat(4), { maxLength: 3 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 2 }),
      async (shape, isTurned, step) => {
        const whole = StridedMemoryView.arange(shape.reduce((product, extent) => product * extent, 1), "int32")
          .reshaped(shape);
        const turned = isTurned ? whole.transposed() : whole;
        const view = turned.ndim > 0 ? turned.sliced(slice(null, null, step)) : turned;
        await writeNpy(path, view);
        const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
        const [, kept] = await Promise.all([writeNpy(writable, view), Array.fromAsync(readable)]);
        whole.fill(-1);
        assertEquals(
          new Uint8Array(await new Blob(kept as Uint8Array<ArrayBuffer>[]).arrayBuffer()),
          new Uint8Array(readFileSync(path)),
        );
      },
    ),
    100,
  );
});

test("a stream may compress the file on its way, and takes bytes only to the compiler, too", async () => {
  const { readable, writable } = new CompressionStream("gzip");
  const view = StridedMemoryView.arange(1000, "int16");
  const [, bytes] = await Promise.all([writeNpy(writable, view), new Response(readable).blob()]);
  const unpacked = bytes.stream().pipeThrough(new DecompressionStream("gzip"));
  using back = await readNpy(await new Response(unpacked).arrayBuffer());
  assert(bytes.size < view.nbytes && back.equals(view));
  // @ts-expect-error -- a stream of text
  const texts: Parameters<typeof writeNpy>[0] = new TransformStream<string, string>().writable;
  assert(texts !== null);
});

test("a stream that fails, or that has a reader, is the error, and the array is free", async () => {
  const view = StridedMemoryView.arange(1000, "float64");
  const full = new RangeError("full");
  let aborted: unknown;
  const failing = new WritableStream<Uint8Array>({
    write: (chunk) => {
      if (chunk.length > 1000) throw full;
    },
  });
  assert(await writeNpy(failing, view).catch((error: unknown) => error) === full);
  const alsoFailing = new WritableStream<Uint8Array>({ write: () => Promise.reject(full) });
  for (const compressed of [false, true]) {
    const failed = await writeNpz(alsoFailing, { view }, { compressed }).catch((error: unknown) => error);
    assert(failed === full && !alsoFailing.locked);
  }
  const stopped = new WritableStream<Uint8Array>({ abort: (reason) => void (aborted = reason) });
  const onProgress = (done: number) => {
    if (done > 0) throw full;
  };
  assert(await writeNpy(stopped, view, { onProgress }).catch((error: unknown) => error) === full);
  assert(aborted === full && !stopped.locked);
  const packed = StridedMemoryView.zeros([8], "int4_packed");
  const closed = StridedMemoryView.zeros([8]);
  closed.close();
  for (const wrong of [packed, closed, [1] as unknown as StridedMemoryView]) { // who reads the stream does not wait
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const [written, read] = await Promise.allSettled([writeNpy(writable, wrong), Array.fromAsync(readable)]);
    assert(written.status === "rejected" && read.status === "rejected" && written.reason === read.reason);
    const zip = new TransformStream<Uint8Array, Uint8Array>();
    const [sent, got] = await Promise.allSettled([writeNpz(zip.writable, { wrong }), Array.fromAsync(zip.readable)]);
    assert(sent.status === "rejected" && got.status === "rejected" && sent.reason === got.reason);
  }
  const locked = new WritableStream<Uint8Array>();
  locked.getWriter();
  await assertRejects(() => writeNpy(locked, view), TypeError);
  await assertRejects(() => writeNpz(locked, { view }), TypeError);
  view.close();
});

test("a target that fails in the middle of compressed elements is the error", async () => {
  // With more than the deflater keeps, nothing took what it made, and the promise never settled.
  const view = StridedMemoryView.fromTypedArray(Float64Array.from({ length: 200_000 }, (_, i) => Math.sin(i)));
  const full = new RangeError("full");
  let chunks = 0;
  const failing = new WritableStream<Uint8Array>({
    write: () => {
      if (++chunks === 3) throw full;
    },
  });
  const ended = (write: Promise<void>) =>
    Promise.race([write.catch((error: unknown) => error), delay(20_000, "is pending", { ref: false })]);
  assert(await ended(writeNpz(failing, { view }, { compressed: true })) === full);
  assert(!failing.locked);
  const folder = scratchFolder();
  symlinkSync("/dev/full", `${folder}/full.npz`);
  const failed = await ended(writeNpz(`${folder}/full.npz`, { view }, { compressed: true }));
  assert(failed instanceof SystemError && failed.code === "ENOSPC", String(failed));
  view.close();
});
