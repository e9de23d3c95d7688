/**
 * 10,000 opens and closes of every native resource that is owned here leave the memory of the process flat: 2,500 of
 * contexts of UCX, which take UCX 2.5 ms each. Each resource runs in its own process, so that no other test's memory is
 * mistaken for its own.
 */
import { assert } from "@std/assert";
import { test } from "node:test";
import { patiently, runScriptForJson } from "./support/child.ts";
import { needs } from "./support/needs.ts";
import { scaled } from "./support/property.ts";
import { findPython } from "./support/python.ts";
import { type Growth, leak } from "./resources_growth.ts";

const script = new URL("./resources_child.ts", import.meta.url);

/**
 * Cycles of each resource: more of the quick ones, whose windows would otherwise be too short to tell a leak from
 * noise. A pair is an export and its import, both released.
 */
const resources: Readonly<Record<string, number>> = {
  "arena": 50_000,
  "host buffer": 50_000,
  "view of a typed array": 50_000,
  "DLPack tensor": 30_000,
  "Arrow array": 10_000,
  "pair by DLPack": 100_000,
  "pair by CUDA array interface": 100_000,
  "pair by Arrow": 15_000,
  "refused Arrow import": 10_000,
  "refused DLPack export": 15_000,
  "callback": 50_000,
  "library": 15_000,
  "text of an endpoint": 15_000,
  "UCX message": 15_000,
  "UCX endpoint": 10_000,
  "UCX worker": 10_000,
  "UCX context": 2_500,
  "refused UCX context": 2_500,
};

/** The same, for resources that need Python with NumPy. */
const pythonResources: Readonly<Record<string, number>> = {
  "value through Python": 15_000,
  "array through Python": 25_000,
  "capsule that Python does not use": 15_000,
  "Arrow array in Python": 10_000,
  "exception of Python": 15_000,
};

const found = findPython("numpy");

for (const [name, cycles] of Object.entries({ ...resources, ...pythonResources })) {
  const missing = name in pythonResources && typeof found === "string" ? found : null;
  const [title, { skip }] = needs(missing, `${cycles} opens and closes leave memory flat: ${name}`);
  test(title, { skip, ...patiently }, async () => {
    const args = [name, `${Math.max(Math.min(cycles, 10_000), scaled(cycles))}`];
    const growth = await runScriptForJson(script, { args, timeout: 300_000 }) as Growth; // as the script prints it
    const lost = leak(growth);
    assert(lost === null, `${lost}; bytes per cycle in each window: ${JSON.stringify(growth)}`);
  });
}
