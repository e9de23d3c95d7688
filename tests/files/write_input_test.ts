/** What an untyped program passes to be written: found by typing what NumPy's `save` takes. */
import { assertEquals, assertRejects } from "@std/assert";
import { existsSync, readFileSync } from "node:fs";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { Writable } from "node:stream";
import { test } from "node:test";
import { NpyError, readNpy, StridedMemoryView, writeNpy, writeNpz } from "../../mod.ts";
import { scratchFolder } from "../support/scratch.ts";

const view = StridedMemoryView.arange(3);
const wrong: readonly (readonly [unknown, string])[] = [
  [[1, 2], "an array"],
  [2, "2"],
  [new Float32Array(2), "an instance of Float32Array"],
  ["x.npy", '"x.npy"'],
  [undefined, "undefined"],
  [null, "null"],
];

test("anything but a view is refused by its kind, the error names what makes one, and no file is made", async () => {
  for (const [value, kind] of wrong) {
    const path = join(scratchFolder(), "x.npy");
    const message = (where: string) => `expected a StridedMemoryView, ${where}, got ${kind}. StridedMemoryView.from`;
    const alone = message("behind the path in writeNpy(path, view)");
    const member = message('as "wrong" in writeNpz(path, { name: view })');
    await assertRejects(() => writeNpy(path, value as StridedMemoryView), TypeError, alone);
    for (const arrays of [{ view, wrong: value }, new Map([["view", view], ["wrong", value]])]) {
      await assertRejects(() => writeNpz(path, arrays as Record<string, StridedMemoryView>), TypeError, member);
    }
    assertEquals(existsSync(path), false);
  }
  await assertRejects(() => writeNpy(view as never, "x.npy" as never), TypeError, 'got "x.npy"');
});

test("a stream of Node's is refused, and the web's stream that the error names gets the file", async () => {
  const chunks: Uint8Array[] = [];
  const stream = new Writable({
    write(chunk, _, done) {
      chunks.push(new Uint8Array(chunk)); // a copy
      done();
    },
  });
  const message = 'Writable.toWeb(stream) of "node:stream"';
  await assertRejects(() => writeNpy(stream as never, view), TypeError, message);
  await assertRejects(() => writeNpz(stream as never, { view }), TypeError, message);
  await writeNpy(Writable.toWeb(stream) as WritableStream<Uint8Array<ArrayBuffer>>, view);
  assertEquals((await readNpy(Buffer.concat(chunks))).toArray(), view.toArray());
});

test("a name that cannot be encoded makes no file: two of them would be the same", async () => {
  const path = join(scratchFolder(), "x.npz");
  for (const name of ["\ud800", "a\udc00"]) {
    await assertRejects(() => writeNpz(path, { [name]: view }), NpyError, "a name that UTF-8 can encode");
  }
  assertEquals(existsSync(path), false);
});

test("views without names make no file", async () => {
  for (const [value, kind] of [[view, "an instance of StridedMemoryView"], [[view], "an array"], ...wrong.slice(3)]) {
    const path = join(scratchFolder(), "x.npz");
    const message = `expected views by name, { weights: view } or a Map, got ${kind}`;
    await assertRejects(() => writeNpz(path, value as Record<string, StridedMemoryView>), TypeError, message);
    assertEquals(existsSync(path), false);
  }
});

// The file was emptied before the view was looked at.
test("a closed view is refused, and what a file has stays there", async () => {
  const closed = StridedMemoryView.zeros([4]);
  closed.close();
  const [one, many] = ["x.npy", "x.npz"].map((name) => join(scratchFolder(), name));
  await writeNpy(one ?? "", view);
  await writeNpz(many ?? "", { view });
  const before = [one, many].map((path) => readFileSync(path ?? ""));
  await assertRejects(() => writeNpy(one ?? "", closed), TypeError, "closed");
  await assertRejects(() => writeNpz(many ?? "", { view, closed }), TypeError, "closed");
  assertEquals([one, many].map((path) => readFileSync(path ?? "")), before);
});
