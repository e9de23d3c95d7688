/**
 * The safety net for objects that are never closed: the garbage collector frees them, and nothing that is in use.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { patiently, runScript } from "../support/child.ts";

const script = new URL("./collection_child.ts", import.meta.url);

/** How many of 20 dropped objects of each kind the collector has freed. */
const expected = {
  "dropped": 20,
  "closed": 20,
  "closed in a later turn": 20,
  "kept": 0,
  "kept, then dropped": 20,
  "only the bytes kept": 0,
  "the bytes dropped too": 20,
  "allocated by resources that are dropped with their buffers": 20,
  "buffers of these resources that are left": 0,
  "only a view kept": 0,
  "the view dropped too": 20,
  "dropped while pinned": 0,
  "unpinned after that": 20,
  "borrowed": 0,
  "tensors dropped untaken": 20,
  "untaken tensors still exported": 0,
  "closed copies": 0, // freed by the close, not by the collector, which would be reported
  "tensors taken by a consumer": 0,
  "taken tensors still exported": 20,
  "taken tensors have an address": 20,
  "tensors released once more": 20,
  "tensors released twice": 20,
  "tensors taken in a later turn": 0,
  "all tensors still exported": 40,
  "imports dropped": 20,
  "only a view of an import kept": 0,
  "its elements": 16,
  "the view of the import dropped too": 20,
};

test(
  "garbage collection frees dropped buffers, imports and tensors, and nothing that can still be reached",
  patiently,
  async () => {
    const { code, stdout, stderr } = await runScript(script, { gc: true, env: { CAUSEWAY_LEAKS: undefined } });
    assertEquals(code, 0, stderr);
    assertEquals(JSON.parse(stdout), expected);
    assertEquals(stderr, "", "nothing is reported unless it is asked for");
  },
);

test(
  "CAUSEWAY_LEAKS=1 reports what was never closed, never released or released twice, and nothing else",
  patiently,
  async () => {
    const { code, stderr } = await runScript(script, { gc: true, env: { CAUSEWAY_LEAKS: "1" } });
    assertEquals(code, 0, stderr);
    const reports = stderr.trimEnd().split("\n");
    assertEquals(reports.pop(), "Causeway: exports never released by their consumers: 40");
    const sized = reports.map((line) => /a MemoryBuffer of (\d+) bytes was never closed/.exec(line)?.[1]);
    assertEquals(sized.filter((size) => size === "48").length, 20);
    assertEquals(sized.filter((size) => size === "56").length, 20);
    // 48 bytes are dropped once; 64 in eleven ways: kept, bytes, view, pinned, untaken, released twice, once more, and
    // twice each as exporter and import.
    assertEquals(sized.filter((size) => size === "64").length, 11 * 20);
    const twice = reports.filter((line) => line.endsWith("has called the deleter of a DLPack tensor more than once"));
    assertEquals(twice.length, 2 * 20);
    assertEquals(reports.length, 15 * 20);
  },
);
