/**
 * Context managers: Python's `with` statement.
 *
 * @module
 */
import { show, showAs } from "../layout/mod.ts";
import { Handle, handleOf } from "./handle.ts";
import type { ImportOptions } from "../dlpack/mod.ts";
import { fromPython, type PyObject } from "./object.ts";

/** An entered context manager and its value, until it exits. */
export interface Entered extends Disposable {
  /** The value that `__enter__` returned. */
  // deno-lint-ignore no-explicit-any -- only Python knows what it is
  readonly value: any;
}

// law python/withBody: python/generators
/**
 * Runs work within a context manager, by Python's own `with`: its `__exit__` receives what the work throws, and may
 * suppress it.
 *
 * @returns what the work returns; undefined if the manager suppressed its exception
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
      made.catch(() => {}); // the error below is reported instead
      throw refused = new TypeError(
        "Cannot wait for a promise within Python's with: expected a synchronous function. " +
          "Write `using entered = py.with(manager)` in an async function",
      );
    }
    result = made;
  };
  python.locked(() => {
    const run = python.javascript.exportFunction(work);
    python.releaseAndPoll(python.callHelper("run_with", [python.retain(managed(manager).object), run]));
  });
  if (refused !== undefined) throw refused; // the manager may have suppressed it
  return result;
}

/** Enters a context manager that exits at the end of a block: as if nothing was thrown, which `using` cannot tell. */
export function enter(manager: PyObject, options: ImportOptions): Entered {
  const { python, object } = managed(manager);
  return python.locked(() => {
    const exit = new Handle(python, python.callHelper("exit_of", [python.retain(object)]));
    const entered = [python.retain(object), python.retain(python.name("__enter__"))];
    const value = fromPython(python, python.callHelper("call_special", entered), options);
    return new EnteredManager(value, exit);
  });
}

// law python/EnteredManager: python/generators, public/inspect
/** A context manager that exits at the end of a block. */
const EnteredManager = class Entered {
  readonly value: unknown;
  readonly #exit: Handle;
  #isLeft = false;

  constructor(value: unknown, exit: Handle) {
    this.value = value;
    this.#exit = exit;
  }

  [Symbol.dispose](): void {
    if (this.#isLeft) return;
    this.#isLeft = true;
    const { python } = this.#exit;
    python.locked(() => {
      const nothing = Array.from({ length: 3 }, () => python.retain(python.singletons.none));
      try {
        python.releaseAndPoll(python.call(this.#exit.object, nothing));
      } finally {
        this.#exit.close();
      }
    });
  }

  static {
    showAs(Entered, (entered) => `(${entered.#isLeft ? "left" : inspected(entered.value)})`);
  }
};

/** A value as a console shows it on its own. */
function inspected(value: unknown): string {
  const inspect: unknown = typeof value === "function" ? Reflect.get(value, consoleSymbol) : undefined;
  return typeof inspect === "function" ? String(inspect.call(value)) : show(value);
}

const consoleSymbol = Symbol.for("nodejs.util.inspect.custom");

function managed(manager: PyObject): Handle {
  const handle = typeof manager === "function" ? handleOf(manager) : undefined;
  if (handle !== undefined) return handle;
  throw new TypeError(
    "Cannot enter a value that is not a Python object: expected a context manager, such as open(path), " +
      `got ${show(manager)}`,
  );
}
