/**
 * Invalid requests: closed objects, foreign ones, wrong devices, and numbers that are not sizes. Each is a typed error
 * that says what was expected, and the driver is never called.
 */
import { closedRows } from "./bad_input/closed.ts";
import { foreignRows } from "./bad_input/foreign.ts";
import { kindsRows } from "./bad_input/kinds.ts";
import { valuesRows } from "./bad_input/values.ts";
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { check, fc } from "../support/property.ts";
import { noSizes, sceneOf } from "./bad_input/scene.ts";

test("every bad input is a typed error that says what was expected, before the driver is called", () => {
  const { scene, calls, done } = sceneOf();
  const wrong: string[] = [];
  for (const [what, call, kind, says] of [...closedRows, ...foreignRows, ...kindsRows, ...valuesRows]) {
    const before = calls();
    let error: unknown;
    try {
      call(scene);
    } catch (thrown) {
      error = thrown;
    }
    const seen = `${what}: ${String(error)}`;
    if (!(error instanceof kind) || error.constructor !== kind) wrong.push(`${seen} is no ${kind.name}`);
    else if (!says.test(error.message)) wrong.push(`${seen} does not say ${says}`);
    else if (calls() !== before) wrong.push(`${seen}, after ${calls() - before} calls of the driver`);
  }
  assertEquals(wrong, []);
  done();
});

test("no number that is not a size ever reaches the driver", () => {
  const { scene: { own, pinned }, calls, done } = sceneOf();
  const any = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(...noSizes), fc.double({ min: 2 ** 53 }));
  check(
    fc.property(any, fc.nat(4), (size, at) => {
      const isSize = Number.isSafeInteger(size) && size >= 0;
      const acts: readonly (() => unknown)[] = [
        () => own.memory.allocate(size, { stream: own.stream }).close(),
        () => own.pool.trim(size),
        () => pinned.fill(size, { width: 4 }),
        () =>
          own.kernel.launch(own.stream, isSize ? Math.min(size, 4) : size, 1, [own.buffer, ["uint32", 1], [
            "uint32",
            1,
          ]]),
        () => own.cuda.device(size),
      ];
      const before = calls();
      try {
        acts[at]?.();
      } catch (error) {
        assert(error instanceof Error);
        if (error instanceof RangeError) assertEquals(calls(), before, error.message);
        else assert(isSize, `${error.name}: ${error.message}`); // out of memory, or too large a grid
        return;
      }
      assert(isSize, `${size} was accepted as a size`);
    }),
    2000,
  );
  done();
});
