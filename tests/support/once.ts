/**
 * Tests that run in one runtime alone.
 *
 * @module
 */
import { test } from "node:test";
import { isBun } from "./child.ts";

/**
 * A test of what the runtime that starts it has no part in: a third program (a browser, a compiler, `deno check`),
 * machine code on an emulated processor, programs that the test itself runs in both runtimes. Under Bun there is no
 * such test.
 */
export const testOnce: typeof test = isBun ? (() => Promise.resolve()) as unknown as typeof test : test;
