/**
 * Python generators, iterated like JavaScript's own: leaving the loop early closes the generator, the argument of
 * `next` is the result of its `yield`, and `throw` raises at that point. Async generators run on the asyncio event loop
 * of `py.async`.
 *
 * @module
 */
import { Handle } from "./handle.ts";
import type { Interpreter } from "./interpreter.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { toPython } from "./to_python.ts";

/** Converts a Python object; adopts the reference. */
export type Convert = (python: Interpreter, object: bigint, options: ImportOptions) => unknown;

/** The value of a step after the last one. */
const over = Symbol("over");

// law python/iterateGenerator: python/generators
/** Iterates over a generator, which is closed when the loop is left early; an error that closing raises is thrown. */
export function* iterateGenerator(generator: Handle, convert: Convert): Generator<unknown, void, unknown> {
  let value: unknown;
  try {
    value = step(generator, "next", undefined, convert);
    while (value !== over) {
      let given: unknown;
      try {
        given = yield value;
      } catch (error) {
        value = step(generator, "throw", error, convert);
        continue;
      }
      value = step(generator, given === undefined ? "next" : "send", given, convert);
    }
  } finally {
    if (value !== over) closeGenerator(generator);
    generator.close();
  }
}

/** Resumes a generator. @returns what it yields, or that it is over */
function step(generator: Handle, method: "next" | "send" | "throw", given: unknown, convert: Convert): unknown {
  const { python, options } = generator;
  python.enter();
  try {
    const found = method === "next"
      ? python.api.iteration.PyIter_Next(generator.object)
      : sent(generator, method, given);
    if (found !== 0n) return convert(python, found, options);
    if (python.api.errors.PyErr_Occurred() !== 0n) python.check(0n);
    return over;
  } finally {
    python.leave();
  }
}

/** Resumes a generator with a value or an exception. @returns what it yields; 0n at its end */
function sent({ python, object }: Handle, method: "send" | "throw", given: unknown): bigint {
  const [value = 0n] = method === "throw" ? [python.javascript.exceptionFor(given)] : toPython(python, [given]);
  const pair = python.callHelper("step_of", [python.retain(object), python.retain(python.name(method)), value]);
  const { PyTuple_GetItem, PyTuple_Size } = python.api.tuples;
  const found = PyTuple_Size(pair) === 0n ? 0n : python.retain(PyTuple_GetItem(pair, 0n));
  python.release(pair);
  return found;
}

function closeGenerator(generator: Handle): void {
  const { python } = generator;
  const call = () => [python.retain(generator.object), python.retain(python.name("close"))];
  python.locked(() => python.releaseAndPoll(python.callHelper("call_method", call())));
}

// law python/iterateAsync: python/async, python/generators
/**
 * Iterates over a Python async iterable. A generator is closed when the loop is left early, and its `next(value)` and
 * `throw` are as those of JavaScript's own.
 */
export async function* iterateAsync(handle: Handle, options: ImportOptions): AsyncGenerator<unknown, void, unknown> {
  const { python } = handle;
  const [iterator, isGenerator] = python.locked(() => {
    const name = python.retain(python.name("__aiter__"));
    const found = new Handle(python, python.callHelper("call_method", [python.retain(handle.object), name]));
    return [found, ["asend", "athrow"].every((one) => python.typeHas(found.object, one))] as const;
  });
  let isOver = false;
  const next = async (method: "__anext__" | "asend" | "athrow", ...given: (() => bigint)[]) => {
    const found = await begin(iterator, options, "next_of", () => {
      const values = given.map((one) => one()); // first: what cannot be converted ends nothing
      isOver = true; // unless there is an item
      return [python.retain(python.name(method)), ...values];
    });
    isOver = found === null;
    return found;
  };
  try {
    let found = await next("__anext__");
    while (found !== null) {
      let given: unknown;
      try {
        given = yield found[0];
      } catch (error) {
        if (!isGenerator) throw error;
        found = await next("athrow", () => python.javascript.exceptionFor(error));
        continue;
      }
      const hasGiven = isGenerator && given !== undefined;
      found = hasGiven ? await next("asend", () => toPython(python, [given])[0] ?? 0n) : await next("__anext__");
    }
  } finally {
    if (!isOver) await begin(iterator, options, "close_iterator", () => []);
    iterator.close();
  }
}

/** Begins a helper that is a coroutine. Its result is null, or a tuple whose only item is converted. */
async function begin(
  iterator: Handle,
  options: ImportOptions,
  helper: "next_of" | "close_iterator",
  more: () => bigint[],
): Promise<readonly [unknown] | null> {
  const { python } = iterator;
  const calledAt = new Error();
  const over: unknown = await python.locked(() => {
    const others = more();
    const args = [python.retain(iterator.object), ...others];
    return python.javascript.begin(python.helper(helper), args, 0n, { options, calledAt });
  });
  if (over === null) return null;
  using pair = over as PairOfPython;
  return [pair[0]];
}

/** A Python tuple. */
type PairOfPython = Disposable & { readonly 0: unknown };
