/** A library that ends the process where it may open no file is not called there. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { SystemError } from "../../src/ffi/system_error.ts";
import { checkDescriptorsLeft } from "../../src/unix/descriptors_left.ts";
import { leaveFiles } from "../support/few_files.ts";
import { openFiles } from "../support/open_files.ts";

/** What is thrown while this process may open `count` more files. */
function thrownWith(count: number, act: () => void): unknown {
  const allowAll = leaveFiles(count);
  try {
    act();
    return null;
  } catch (error) {
    return error;
  } finally {
    allowAll();
  }
}

test("there are as many descriptors left as can be opened, and an error says how many that is", () => {
  const before = openFiles();
  assertEquals(thrownWith(5, () => checkDescriptorsLeft(5, "test")), null);
  const error = thrownWith(4, () => checkDescriptorsLeft(5, "test"));
  assert(error instanceof SystemError);
  assertEquals(error.code, "EMFILE");
  assertEquals(
    error.message,
    "Cannot test: eventfd failed with EMFILE. It takes 5 descriptors, and 4 are left: close some, or raise ulimit -n",
  );
  assertEquals(thrownWith(0, () => checkDescriptorsLeft(0, "test")), null);
  assertEquals(openFiles(), before); // those that were opened to count are closed
});
