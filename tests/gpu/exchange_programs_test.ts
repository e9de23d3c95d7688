/**
 * Random programs of producers and consumers of every convention, on GPUs: the expected bytes, no race that the checker
 * detects, nothing leaked. `tests/order/programs_test.ts` runs the same on simulated devices.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { Cuda } from "../../mod.ts";
import { libcuda } from "../../src/driver/driver.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { reference } from "../support/programs/mod.ts";
import { programs } from "../support/programs/plan.ts";
import { runProgram } from "../support/programs/run.ts";
import { Raw } from "../support/raw_driver.ts";
import { patiently } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

for (const devices of [1, 2, 4, 8]) {
  const name = `every holder of an array, by any convention, sees the expected bytes on ${devices} GPUs`;
  const [title, options] = needs(missingGpus(devices), name);
  test(title, { ...options, ...patiently }, () => {
    const { functions } = openLibrary(libcuda);
    using _contexts = new Raw(functions, devices); // recreating them for each program takes half a second
    using found = Cuda.open();
    const hasPeers = found.devices.slice(0, devices).every((one, _, all) =>
      all.every((other) => other === one || one.canAccessPeer(other))
    );
    const isOld = functions.context.cuCtxRecordEvent === null;
    let count = 0;
    check(
      fc.property(programs({ setting: { devices, hasPeers, isOld } }), (program) => {
        const live = liveExports();
        const cuda = Cuda.open({ check: { onReport: () => {} } });
        const bytes = runProgram(cuda, program);
        assertEquals(cuda.reports.map(({ message }) => message), []);
        assertEquals(bytes, reference(program));
        assertEquals(liveExports(), live);
        count++;
      }),
      400,
      { endOnFailure: true },
    );
    console.log(`${count} programs of producers and consumers on ${devices} devices`);
  });
}
