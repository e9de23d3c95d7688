/** Where the system refuses executable memory, copies and conversions do the same without machine code. */
import { test } from "node:test";
import { patiently } from "../support/child.ts";
import { passWhereRefused } from "../support/refused_tests.ts";

test("where executable memory is refused the laws of copies and conversions hold", patiently, () => {
  passWhereRefused(new URL("./refused_memory.ts", import.meta.url));
});
