/**
 * Two copies of the package in one program: views cross by DLPack, and everything else is refused with the reason.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import * as here from "../../mod.ts";
import { isOfOtherCopy } from "../../src/layout/mod.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { scratchFolder } from "../support/scratch.ts";

const folder = scratchFolder();
for (const part of ["mod.ts", "src", "bindings"]) {
  cpSync(fileURLToPath(new URL(`../../${part}`, import.meta.url)), join(folder, part), { recursive: true });
}
const there: typeof here = await import(pathToFileURL(join(folder, "mod.ts")).href);
const reason = "of another copy of this package: this program has loaded two";
/** An object of the other copy, as the compiler sees it: as if it were of this one. */
const view = there.StridedMemoryView.fromArray([1, 2, 3]);

test("a view of another copy is viewed, and its memory is returned", () => {
  {
    using seen = here.StridedMemoryView.from(view);
    assertEquals([seen.toArray(), seen.ptr], [[1, 2, 3], view.ptr]);
    const copied = here.StridedMemoryView.zeros([3]);
    copied.copyFrom(view);
    assertEquals(copied.toArray(), [1, 2, 3]);
    assertEquals(there.liveExports(), 1);
  }
  assertEquals(there.liveExports(), 0); // of this one there may be some that earlier tests of the process have left
});

test("an Arrow array of another copy is imported, whether a view or an array is wanted, and its memory is returned", () => {
  const before = there.liveExports();
  const array = there.ArrowArray.from(view.toArrowDevice());
  {
    using arrow = here.ArrowArray.from(array);
    using numbers = here.StridedMemoryView.from(array);
    assertEquals([[...arrow], numbers.toArray()], [[1, 2, 3], [1, 2, 3]]);
    // What is refused is released, too.
    assertThrows(() => here.StridedMemoryView.fromArrowDevice(array, { stream: 1 as never }));
    assert(there.liveExports() > before);
  }
  array.close();
  assertEquals(there.liveExports(), before);
});

test("objects of another copy are refused with the reason, wherever they are no views", () => {
  const mine = here.StridedMemoryView.fromArray([1, 2, 3]);
  const ways: (() => unknown)[] = [
    () => mine.equals(view),
    () => mine.sliced(there.slice(1)),
    () => here.StridedMemoryView.zeros([2], there.DType.from("int32")),
    () => mine.dtype.equals(view.dtype),
    () => mine.layout.equals(view.layout),
    () => here.StridedMemoryView.from(view.toDlpack()),
    () => here.StridedMemoryView.from(view.buffer),
    () =>
      here.StridedMemoryView.fromBuffer(there.MemoryBuffer.fromArrayBuffer(new ArrayBuffer(8)), {
        shape: [8],
        dtype: "uint8",
      }),
  ];
  for (const way of ways) assertThrows(way, TypeError, reason);
  for (const source of [view.toArrowDevice(), view.buffer]) {
    assertThrows(() => here.ArrowArray.from(source as never), here.ExchangeError, reason);
  }
  assertThrows(() => here.StridedMemoryView.fromDlpack(view.toDlpack() as never), here.ExchangeError, reason);
  assertEquals([mine, view, 5, null, () => {}, {}].map(isOfOtherCopy), [false, true, false, false, false, false]);
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  assert(!isOfOtherCopy(proxy));
});

const found = findPython();
const missing = typeof found === "string" ? found : null;
test(...needs(missing, "Python is passed nothing of another copy, which would be a function or a mystery"), () => {
  const home = typeof found === "string" ? "" : found.executable;
  const mine = here.Python.open({ home });
  const calls = mine.evaluate("lambda function: function(1)");
  assertEquals(calls((x: number) => x + 1), 2);
  const other = there.Python.open({ home });
  assertEquals(calls((x: number) => x + 2), 3); // the other one has ended nothing of it
  for (const what of [view, other.evaluate("[1, 2]"), there.kwargs({ a: 1 }), there.slice(1)]) {
    assertThrows(() => mine.builtins["len"](what), TypeError, reason);
  }
  assertEquals(mine.builtins["sum"](here.StridedMemoryView.from(view)), 6);
  const bytes = other.evaluate("bytearray(3)");
  for (const what of [bytes, other.builtins["len"]]) {
    assertThrows(() => here.StridedMemoryView.from(what), TypeError, reason);
    assertThrows(() => here.StridedMemoryView.zeros([3], "uint8").copyFrom(what as never), TypeError, reason);
    assertThrows(() => here.ArrowArray.from(what), here.ExchangeError, reason);
    assertThrows(() => mine.async(what), TypeError, reason);
    assertThrows(() => mine.with(what), TypeError, reason);
  }
});
