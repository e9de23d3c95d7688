/** Where the system refuses executable memory, calls of Python do the same without machine code. */
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { passWhereRefused } from "../support/refused_tests.ts";

test("where executable memory is refused the laws of calls and values hold", patiently, () => {
  passWhereRefused(new URL("./refused_memory.ts", import.meta.url));
});
