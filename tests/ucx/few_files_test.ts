/** UCX is not called where it would end the process for want of files; workers do without those of their sleep. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScript } from "../support/child.ts";

test("too few files are an error, and a worker that cannot sleep goes on receiving", patiently, async () => {
  const { code, stdout, stderr } = await runScript(new URL("./few_files_child.ts", import.meta.url));
  assertEquals(stdout.trim().split("\n"), [
    "SystemError: Cannot open UCX: eventfd failed with EMFILE",
    "SystemError: Cannot open UCX: eventfd failed with EMFILE",
    "SystemError: Cannot create a worker: eventfd failed with EMFILE",
    "SystemError: Cannot create a worker: eventfd failed with EMFILE",
    "SystemError: Cannot connect: eventfd failed with EMFILE",
    "SystemError: Cannot connect: eventfd failed with EMFILE",
    "SystemError: Cannot listen at 127.0.0.1:0: eventfd failed with EMFILE",
    "moved 0: Expected memory that stays where it is",
    "received 7",
    "received 8",
  ], stderr);
  assertEquals(code, 0, stderr);
});
