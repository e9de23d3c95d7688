/**
 * The part of `@std/assert` that the tests use, with its signatures, on top of `node:assert/strict`.
 *
 * `@std/assert` is published on JSR only, and JSR is not reachable from every host. Where it is, change the one line
 * `"@std/assert"` under `imports` in deno.json to `jsr:@std/assert@1`: no test changes.
 */
import nodeAssert from "node:assert/strict";

/** What a failed assertion throws. */
export const AssertionError: typeof nodeAssert.AssertionError = nodeAssert.AssertionError;

// deno-lint-ignore no-explicit-any -- the same type parameter as @std/assert: any constructor, abstract ones too
type ErrorClass<E extends Error = Error> = abstract new (...args: any[]) => E;

function fail(message: string, msg: string | undefined, actual?: unknown, expected?: unknown): never {
  throw new AssertionError({ message: msg === undefined ? message : `${message}: ${msg}`, actual, expected });
}

/** Runs a check of node:assert, and prefixes its message with the caller's. */
function check(msg: string | undefined, compare: () => void): void {
  try {
    compare();
  } catch (error) {
    if (msg !== undefined && error instanceof AssertionError) error.message = `${msg}: ${error.message}`;
    throw error;
  }
}

/** Fails unless `expr` is truthy. */
export function assert(expr: unknown, msg = ""): asserts expr {
  if (!expr) fail("Expected a truthy value", msg === "" ? undefined : msg, expr);
}

/** Fails unless `expr` is `false`. */
export function assertFalse(expr: unknown, msg?: string): asserts expr is false {
  if (expr) fail("Expected a falsy value", msg, expr);
}

/** Fails unless both are deeply equal, types and prototypes included. */
export function assertEquals<T>(actual: T, expected: T, msg?: string): void {
  check(msg, () => nodeAssert.deepStrictEqual(actual, expected));
}

/** Fails if both are deeply equal. */
export function assertNotEquals<T>(actual: T, expected: T, msg?: string): void {
  check(msg, () => nodeAssert.notDeepStrictEqual(actual, expected));
}

/** Fails unless both are the same value by `Object.is`. */
export function assertStrictEquals<T>(actual: unknown, expected: T, msg?: string): asserts actual is T {
  check(msg, () => nodeAssert.strictEqual(actual, expected));
}

/** Fails if both are the same value by `Object.is`. */
export function assertNotStrictEquals<T>(actual: T, expected: T, msg?: string): void {
  check(msg, () => nodeAssert.notStrictEqual(actual, expected));
}

/** Fails unless `actual` is neither null nor undefined. */
export function assertExists<T>(actual: T, msg?: string): asserts actual is NonNullable<T> {
  if (actual === null || actual === undefined) fail(`Expected a value, got ${actual}`, msg, actual);
}

/** Fails unless `actual` is an instance of `expectedType`. */
export function assertInstanceOf<C extends ErrorClass<Error> | (abstract new (...args: never[]) => unknown)>(
  actual: unknown,
  expectedType: C,
  msg?: string,
): asserts actual is InstanceType<C> {
  if (!(actual instanceof expectedType)) {
    fail(`Expected an instance of ${expectedType.name}, got ${String(actual)}`, msg, actual, expectedType);
  }
}

/** Fails unless `actual` contains `expected`. */
export function assertStringIncludes(actual: string, expected: string, msg?: string): void {
  if (!actual.includes(expected)) fail(`Expected "${actual}" to contain "${expected}"`, msg, actual, expected);
}

/** Fails unless `expected` matches `actual`. */
export function assertMatch(actual: string, expected: RegExp, msg?: string): void {
  if (!expected.test(actual)) fail(`Expected "${actual}" to match ${expected}`, msg, actual, expected);
}

/** Fails unless every element of `expected` is found, by deep equality, in `actual`. */
export function assertArrayIncludes<T>(actual: ArrayLike<T>, expected: ArrayLike<T>, msg?: string): void {
  const missing = Array.from(expected).filter((wanted) => !Array.from(actual).some((one) => same(one, wanted)));
  if (missing.length > 0) {
    fail(`Expected the array to include ${missing.map(String).join(", ")}`, msg, actual, expected);
  }
}

/** Fails unless the numbers differ by at most `tolerance` (1e-7 of the expected value if not given). */
export function assertAlmostEquals(actual: number, expected: number, tolerance?: number, msg?: string): void {
  if (Object.is(actual, expected)) return;
  const allowed = tolerance ?? (Number.isFinite(expected) ? Math.abs(expected * 1e-7) : 1e-7);
  if (!(Math.abs(actual - expected) <= allowed)) {
    fail(`Expected ${actual} to be within ${allowed} of ${expected}`, msg, actual, expected);
  }
}

/** Fails unless `actual > expected`. */
export function assertGreater<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual > expected)) fail(`Expected ${String(actual)} > ${String(expected)}`, msg, actual, expected);
}

/** Fails unless `actual >= expected`. */
export function assertGreaterOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual >= expected)) fail(`Expected ${String(actual)} >= ${String(expected)}`, msg, actual, expected);
}

/** Fails unless `actual < expected`. */
export function assertLess<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual < expected)) fail(`Expected ${String(actual)} < ${String(expected)}`, msg, actual, expected);
}

/** Fails unless `actual <= expected`. */
export function assertLessOrEqual<T>(actual: T, expected: T, msg?: string): void {
  if (!(actual <= expected)) fail(`Expected ${String(actual)} <= ${String(expected)}`, msg, actual, expected);
}

/** Fails unless `error` is an `Error` of the given class whose message contains `msgIncludes`. */
export function assertIsError<E extends Error = Error>(
  error: unknown,
  errorClass?: ErrorClass<E>,
  msgMatches?: string | RegExp,
  msg?: string,
): asserts error is E {
  if (!(error instanceof Error)) fail(`Expected an Error, got ${String(error)}`, msg, error);
  if (errorClass !== undefined && !(error instanceof errorClass)) {
    fail(`Expected error to be an instance of ${errorClass.name}, got ${error.name}: ${error.message}`, msg, error);
  }
  const matches = typeof msgMatches === "string" ? error.message.includes(msgMatches) : msgMatches?.test(error.message);
  if (matches === false) fail(`Expected error message to match "${msgMatches}", got "${error.message}"`, msg, error);
}

/** Fails unless `fn` throws; returns what it threw. */
export function assertThrows(fn: () => unknown, msg?: string): unknown;
/** Fails unless `fn` throws an error of the class, whose message contains `msgIncludes`; returns the error. */
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  errorClass: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): E;
export function assertThrows<E extends Error = Error>(
  fn: () => unknown,
  errorClassOrMsg?: ErrorClass<E> | string,
  msgIncludes?: string,
  msg?: string,
): unknown {
  const errorClass = typeof errorClassOrMsg === "string" ? undefined : errorClassOrMsg;
  const note = typeof errorClassOrMsg === "string" ? errorClassOrMsg : msg;
  try {
    fn();
  } catch (error) {
    if (errorClass !== undefined) assertIsError(error, errorClass, msgIncludes, note);
    return error;
  }
  return fail("Expected function to throw", note);
}

/** Fails unless `fn` returns a promise that rejects; returns the reason. */
export function assertRejects(fn: () => PromiseLike<unknown>, msg?: string): Promise<unknown>;
/** Fails unless `fn` returns a promise that rejects with an error of the class; returns the error. */
export function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  errorClass: ErrorClass<E>,
  msgIncludes?: string,
  msg?: string,
): Promise<E>;
export async function assertRejects<E extends Error = Error>(
  fn: () => PromiseLike<unknown>,
  errorClassOrMsg?: ErrorClass<E> | string,
  msgIncludes?: string,
  msg?: string,
): Promise<unknown> {
  const errorClass = typeof errorClassOrMsg === "string" ? undefined : errorClassOrMsg;
  const note = typeof errorClassOrMsg === "string" ? errorClassOrMsg : msg;
  let promise: PromiseLike<unknown>;
  try {
    promise = fn();
  } catch (error) {
    return fail(`Function throws when expected to reject: ${String(error)}`, note);
  }
  try {
    await promise;
  } catch (error) {
    if (errorClass !== undefined) assertIsError(error, errorClass, msgIncludes, note);
    return error;
  }
  return fail("Expected function to reject", note);
}

/** Always fails. */
export function unreachable(msg?: string): never {
  return fail("Unreachable", msg);
}

function same(left: unknown, right: unknown): boolean {
  try {
    nodeAssert.deepStrictEqual(left, right);
    return true;
  } catch {
    return false;
  }
}
