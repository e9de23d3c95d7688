/** Prints what several uses of native code say in a runtime that calls itself by each of the versions given. */
import process from "node:process";
import { FfiError, HostMemoryResource, StridedLayout } from "../../../mod.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { openVortex } from "../../../src/public/vortex.ts";

function pretend(version: string): void {
  const deno: unknown = Reflect.get(globalThis, "Deno");
  if (typeof deno === "object" && deno !== null) {
    Object.defineProperty(deno, "version", { value: { deno: version }, configurable: true });
  } else Object.defineProperty(process.versions, "bun", { value: version, configurable: true });
}

const uses = [
  () => ffiPort().runtime.version,
  () => new HostMemoryResource().allocate(8).size,
  () => openVortex(new Uint8Array(8)), // no file, as a runtime that is not too old says
];
const outcomes: unknown[][] = [];
for (const version of process.argv.slice(2)) {
  pretend(version);
  const said: unknown[] = [];
  for (const use of uses) {
    try {
      said.push(await use());
    } catch (error) {
      said.push(error instanceof FfiError ? error.message : (error as Error).name);
    }
  }
  outcomes.push(said);
}
console.log(JSON.stringify({ outcomes, strides: StridedLayout.dense([2, 3], 1).strides }));
