/**
 * The simulator and libcuda: the same bytes from the same random programs, the same answers to the same questions.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { libcuda } from "../../src/cuda/driver.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { examples, expected } from "../sim/error_codes.ts";
import { programs, reference } from "../sim/programs.ts";
import { run } from "../sim/run_raw.ts";
import { Raw } from "../sim/raw.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

/** The programs of one device, and of two where there are two. */
const counts = missingGpus() === null && missingGpus(2) === null ? [1, 2] : [1];

for (const devices of counts) {
  test(
    ...needs(missingGpus(devices), `random programs give the same bytes on ${devices} devices and simulated ones`),
    () => {
      const { functions: driver } = openLibrary(libcuda);
      check(
        fc.property(programs(devices), fc.nat(), fc.boolean(), (program, seed, pinned) => {
          using simulated = simulateDriver({ devices, seed });
          const expected = reference(program);
          assertEquals(run(simulated.driver, program, { pinned }), expected, "simulated");
          assertEquals(run(driver, program, { pinned }), expected, "on the device");
        }),
        100,
      );
    },
  );
}

for (const { name, devices, ask } of examples) {
  test(...needs(missingGpus(devices), `the driver answers as the simulator does: ${name}`), () => {
    using raw = new Raw(openLibrary(libcuda).functions, devices);
    assertEquals(ask(raw), expected[name]);
  });
}
