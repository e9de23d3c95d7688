/** A descriptor is closed once, by its owner, or once it is unreachable. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { readlinkSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { FileDescriptor } from "../../src/unix/file_descriptor.ts";
import { collectGarbage } from "../support/collect.ts";
import { fileWith, openFiles } from "../support/open_files.ts";

/** Whether a descriptor number is open and refers to a file of these tests. */
function isOurs(fd: number): boolean {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`).includes("causeway-test");
  } catch {
    return false;
  }
}

test("a descriptor is closed once, and one that was taken is not closed", () => {
  const before = openFiles();
  const file = fileWith(new Uint8Array(1));
  const { number } = file;
  file.close();
  assertEquals([file.isClosed, isOurs(number)], [true, false]);
  const next = fileWith(new Uint8Array(1)); // usually has the same number by now
  file.close();
  assertEquals(isOurs(next.number), true, "a second close does not close another file of that number");
  assertThrows(() => file.number, TypeError, "Cannot use a closed FileDescriptor");
  const given = next.take();
  next.close();
  assertEquals([next.isClosed, isOurs(given)], [true, true]);
  {
    using _ = FileDescriptor.adopt(given);
  }
  assert(openFiles() <= before, "no file is left open"); // the collector may have closed others
});

test("a dropped descriptor is closed by the garbage collector, a taken one is not", async () => {
  const dropped = () => Array.from({ length: 50 }, () => fileWith(new Uint8Array(1)).number);
  const given = () => fileWith(new Uint8Array(1)).take();
  const numbers = dropped();
  const kept = given();
  for (let i = 0; i < 50 && numbers.filter(isOurs).length > 5; i++) {
    await collectGarbage();
    await delay(5);
  }
  // A conservative collector may see a few of them on its stack.
  assert(numbers.filter(isOurs).length <= 5, `${numbers.filter(isOurs).length} of 50 are open`);
  assertEquals(isOurs(kept), true);
  FileDescriptor.adopt(kept).close();
});
