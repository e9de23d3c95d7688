/** Copies and conversions where executable memory is refused. */
import "../support/refuse_memory.ts";
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { canMoveNatively } from "../../src/native/mod.ts";
import "./conversion_test.ts";
import "./host_copy_test.ts";
import "./host_move_test.ts";

test("there is no machine code for moves", () => {
  assertEquals(canMoveNatively(), false);
});
