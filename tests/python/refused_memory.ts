/** Python where executable memory is refused. */
import "../support/refuse_memory.ts";
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { libc } from "../../src/ffi/libc.ts";
import { Python } from "../../src/python/mod.ts";
import { findPython } from "../support/python.ts";
import { needs } from "../support/needs.ts";
import "./calls_test.ts";
import "./sequences_test.ts";
import "./values_test.ts";

const found = findPython();

// Each call used to assemble all programs anew, and to map memory for them: 0.5 ms in Bun, 2 ms in Deno.
test(...needs(typeof found === "string" ? found : null, "machine code is asked for once, not at every call"), () => {
  const { memory } = libc();
  const { mmap } = memory;
  let count = 0;
  Object.defineProperty(memory, "mmap", {
    value: (...args: Parameters<typeof mmap>) => {
      count++;
      return mmap(...args);
    },
    configurable: true,
  });
  const python = Python.open();
  const { sqrt } = python.import("math");
  assertEquals(sqrt(4), 2);
  const first = count;
  for (let i = 0; i < 20; i++) assertEquals(sqrt(4), 2);
  Object.defineProperty(memory, "mmap", { value: mmap, configurable: true });
  assertEquals(count, first);
});
