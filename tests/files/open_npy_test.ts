/** Mapped files. */
import { assertEquals, assertRejects, assertThrows } from "@std/assert";
import { copyFileSync, linkSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { NpyError, openNpy, StridedMemoryView, writeNpy, writeNpz } from "../../mod.ts";
import { headerOf, npy } from "../support/npy_files.ts";
import { openFiles } from "../support/open_files.ts";

const file = () => npy(headerOf("<i4", [2, 3], "True"), new Uint8Array(Int32Array.of(1, 2, 3, 4, 5, 6).buffer));

test("a mapped file is read where it is, and closing the view unmaps it", () => {
  const path = file();
  const mapped = () => readFileSync("/proc/self/maps", "utf8").includes(path);
  const view = openNpy(path);
  assertEquals([view.shape, view.strides, view.readonly], [[2, 3], [1, 2], true]);
  assertEquals(`${view}`.replace(/\s+/g, " "), "[[1 3 5] [2 4 6]]");
  assertEquals(mapped(), true);
  view.close();
  view.close();
  assertEquals(mapped(), false);
  assertThrows(() => view.ptr, TypeError, "closed");
});

test("a file: URL is a path", () => {
  using view = openNpy(pathToFileURL(file()));
  assertEquals(view.shape, [2, 3]);
  assertThrows(() => openNpy(new URL("https://example.org/a.npy")), TypeError);
});

test("a writable mapping writes to the file, any other never does", () => {
  const path = file();
  const seven = StridedMemoryView.fromTypedArray(Int32Array.of(7, 7, 7));
  {
    using view = openNpy(path);
    assertThrows(() => view.sliced(0).copyFrom(seven), TypeError, "read-only");
    view.buffer.bytes().fill(9); // bypasses `readonly`
  }
  {
    using view = openNpy(path);
    assertEquals(`${view.sliced(0)}`, "[1 3 5]");
    using writable = openNpy(path, { writable: true });
    writable.sliced(0).copyFrom(seven);
  }
  using view = openNpy(path);
  assertEquals(`${view}`.replace(/\s+/g, " "), "[[7 7 7] [2 4 6]]");
});

// The file was truncated before its array was read: both were lost.
test("a file is not written over while a view of it is open, and nothing is lost", async () => {
  const path = file();
  const view = openNpy(path);
  const before = readFileSync(path);
  const [link, other] = [`${path}-link`, `${path}-\n`];
  linkSync(path, link); // the list of mappings has the first name alone, and escapes newlines
  copyFileSync(path, other);
  using second = openNpy(other);
  const open = openFiles();
  for (const to of [path, link, other]) {
    for (const write of [() => writeNpy(to, view), () => writeNpz(to, { view })]) {
      await assertRejects(write, NpyError, "a view of it is open");
    }
  }
  assertEquals(openFiles(), open);
  assertEquals(second.sliced(0).toArray(), [1, 3, 5]);
  assertEquals([readFileSync(path), view.sliced(0).toArray()], [before, [1, 3, 5]]);
  const copy = view.copy();
  view.close();
  await writeNpy(path, copy);
  using again = openNpy(path);
  assertEquals(again.toArray(), copy.toArray());
});

test("a file that cannot be mapped is refused, and the error says what to do", () => {
  const values = new Uint8Array(16);
  assertThrows(() => openNpy("/nonexistent.npy"), Error, "Cannot open /nonexistent.npy: fopen failed with ENOENT");
  assertThrows(() => openNpy(values as never), TypeError, "readNpy reads Blobs and bytes");
  assertThrows(() => openNpy(npy(headerOf(">f8", [2]), values)), NpyError, "Use readNpy");
  assertThrows(() => openNpy(npy(headerOf("<f8", [3]), values)), NpyError, "truncated");
  assertThrows(() => openNpy(npy(headerOf("|O", [2]), values)), NpyError, "pickled");
  assertThrows(() => openNpy(file(), { writeable: true } as object), TypeError, "did you mean writable?");
});
