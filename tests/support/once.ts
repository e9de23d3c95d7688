/**
 * Tests that run in one runtime alone.
 *
 * @module
 */
import { test } from "node:test";
import { isBun } from "./child.ts";

/**
 * A test of a third program, such as a browser or `deno check`, which runs the same whichever runtime starts it: under
 * Bun there is no such test.
 */
export const testOnce: typeof test = isBun ? (() => Promise.resolve()) as unknown as typeof test : test;
