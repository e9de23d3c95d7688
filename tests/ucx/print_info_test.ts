import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { cString } from "../../src/ffi/c_string.ts";
import { printInfo } from "../../src/ucx/print_info.ts";
import { put } from "../support/c_file.ts";
import { runScriptForJson } from "../support/child.ts";
import { check, fc } from "../support/property.ts";

test("what is printed comes back, whatever its length, printed at once or in pieces", () => {
  const length = fc.oneof(fc.nat(300), fc.integer({ min: 2 ** 15 - 3, max: 2 ** 15 + 3 }), fc.nat(2 ** 18));
  const pieces = fc.array(fc.tuple(fc.stringMatching(/^[^\0]$/u), length), { maxLength: 4 })
    .map((pieces) => pieces.map(([character, length]) => character.repeat(length)));
  const atEdges = [-2, -1, 0, 1].map((more): [string[]] => [["a".repeat(2 ** 15 + more)]]);
  check(
    fc.property(pieces, (pieces) => {
      assertEquals(printInfo((file) => pieces.forEach((piece) => put(cString(piece), file))), pieces.join(""));
    }),
    100,
    { examples: atEdges },
  );
});

// Deno ended with SIGABRT under a preloaded jemalloc, tcmalloc or mimalloc: the C library had allocated the text there,
// and glibc's free got it. glibc's own debugging allocator does the same, and is wherever glibc is.
test("texts are read under another allocator, too", async () => {
  const allocator = "libc_malloc_debug.so.0";
  const script = new URL("./print_info_child.ts", import.meta.url);
  const env = { LD_PRELOAD: allocator, GLIBC_TUNABLES: "glibc.malloc.check=3" };
  const got = await runScriptForJson(script, { args: [allocator], env });
  assertEquals(got, { answers: 1, isThere: true });
});
