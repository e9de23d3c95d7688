/**
 * Context managers: Python's `with` statement.
 *
 * @module
 */
import { Handle, handleOf } from "./handle.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { fromPython, type PyObject } from "./object.ts";

/** What a context manager has given, until it is left. */
export interface Entered extends Disposable {
  /** What `__enter__` has returned. */
  // deno-lint-ignore no-explicit-any -- only Python knows what it is
  readonly value: any;
}

// law python/withBody: python/generators
/**
 * Does work within a context manager, by Python's own `with`: its `__exit__` gets what the work throws, and may keep it.
 *
 * @returns what the work returns; undefined if the manager has kept what it threw
 */
// deno-lint-ignore no-explicit-any -- only Python knows what the manager gives
export function withBody<T>(manager: PyObject, body: (value: any) => T): T | undefined {
  const { python } = managed(manager);
  let result: T | undefined;
  let refused: TypeError | undefined;
  const work = (value: unknown) => {
    result = undefined;
    const made = body(value);
    if (made instanceof Promise) {
      made.catch(() => {}); // whoever made it is told below
      throw refused = new TypeError(
        "Cannot wait for a promise within Python's with: expected a function whose work is over when it returns. " +
          "Write `using entered = py.with(manager)` in an async function",
      );
    }
    result = made;
  };
  python.locked(() => {
    const run = python.javascript.give(work);
    python.releaseAndPoll(python.callHelper("run_with", [python.retain(managed(manager).object), run]));
  });
  if (refused !== undefined) throw refused; // a manager may have kept it
  return result;
}

// law python/enter: python/generators
/** Enters a context manager, and leaves it at the end of a block: as if nothing was thrown, for `using` cannot tell. */
export function enter(manager: PyObject, options: ImportOptions): Entered {
  const { python, object } = managed(manager);
  return python.locked(() => {
    const exit = new Handle(python, python.callHelper("exit_of", [python.retain(object)]));
    const entered = [python.retain(object), python.retain(python.name("__enter__"))];
    const value = fromPython(python, python.callHelper("call_special", entered), options);
    let isLeft = false;
    return {
      value,
      [Symbol.dispose]: () => {
        if (isLeft) return;
        isLeft = true;
        python.locked(() => {
          const nothing = Array.from({ length: 3 }, () => python.retain(python.singletons.none));
          try {
            python.releaseAndPoll(python.call(exit.object, nothing));
          } finally {
            exit.close();
          }
        });
      },
    };
  });
}

function managed(manager: PyObject): Handle {
  const handle = typeof manager === "function" ? handleOf(manager) : undefined;
  if (handle !== undefined) return handle;
  throw new TypeError("Cannot enter what is no object of Python: expected a context manager, such as open(path)");
}
