/**
 * Makes calls of a native library fail, whichever of its functions they call.
 *
 * @module
 */
import type { SymbolTable } from "../../bindings/abi.ts";
import { littleEndian } from "../../src/ffi/endian.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";

type AnyFunction = (...args: never[]) => unknown;

/** Functions of a library as they are bound: in groups, and null where this version of the library lacks them. */
type Bound = Record<string, Record<string, AnyFunction | null>>;

/** Counts the calls of a library by this thread until it is disposed of, and makes one fail. */
export class FailingCalls implements Disposable {
  /** How often each function was called since the last {@linkcode failNth}. */
  readonly counts: Map<string, number> = new Map();
  readonly #restore = new DisposableStack();
  #failing: { call: string; nth: number; answer: () => unknown; isLasting: boolean } | null = null;

  /** @param functions the library's functions, which all users of it share @param table describes them */
  constructor(functions: object, table: SymbolTable) {
    const bound = functions as Bound; // as the table says
    for (const group of Object.keys(table)) {
      const own = bound[group];
      if (own === undefined) continue;
      const entries = Object.entries(own).map(([name, call]) => [name, call && this.#counted(name, call)]);
      const put = (value: unknown) => Object.defineProperty(bound, group, { value, configurable: true });
      put(Object.fromEntries(entries));
      this.#restore.defer(() => put(own));
    }
  }

  /** Whether the call that was to fail has failed. */
  get hasFailed(): boolean {
    const { call, nth } = this.#failing ?? { call: "", nth: 0 };
    return nth > 0 && (this.counts.get(call) ?? 0) >= nth;
  }

  /** Counts anew, and makes the `nth` call from now on return `answer`, and do nothing: 1 is the next one, 0 none. */
  failNth(call: string, nth: number, answer: unknown): void {
    this.#fail(call, nth, () => answer);
  }

  /** As {@linkcode failNth}, for all calls from now on. */
  failAll(call: string, answer: unknown): void {
    this.#fail(call, 1, () => answer, true);
  }

  /** As {@linkcode failNth}, for a function of the C library that sets `errno` and returns -1. */
  failNthWith(call: string, nth: number, code: number): void {
    const place = new DataView(ffiPort().memory(libc().sockets.__errno_location(), 4));
    this.#fail(call, nth, () => (place.setInt32(0, code, littleEndian), -1));
  }

  /** As {@linkcode failNth}, for what throws, as where there is no memory for the call's arguments. */
  throwNth(call: string, nth: number, error: Error): void {
    this.#fail(call, nth, () => {
      throw error;
    });
  }

  /** Lets all calls pass. */
  [Symbol.dispose](): void {
    this.#restore.dispose();
  }

  #fail(call: string, nth: number, answer: () => unknown, isLasting = false): void {
    this.counts.clear();
    this.#failing = { call, nth, answer, isLasting };
  }

  #counted(name: string, call: AnyFunction): AnyFunction {
    return (...args) => {
      const count = (this.counts.get(name) ?? 0) + 1;
      this.counts.set(name, count);
      const failing = this.#failing;
      const isNow = failing !== null && (failing.isLasting || failing.nth === count);
      return isNow && failing.call === name ? failing.answer() : call(...args);
    };
  }
}

/**
 * Runs a function, and returns its error, or undefined if there was none, and those that reached nobody meanwhile. It
 * is not waited for after one of these: it may never end.
 */
export async function errorsOf(act: () => Promise<void>): Promise<{ thrown: unknown; stray: unknown[] }> {
  const stray: unknown[] = [];
  const first = Promise.withResolvers<undefined>();
  const listen = (error: unknown) => {
    stray.push(error);
    first.resolve(undefined);
  };
  const events = ["unhandledRejection", "uncaughtException"] as const;
  const { default: process } = await import("node:process");
  for (const event of events) process.on(event, listen);
  try {
    const thrown = await Promise.race([act().then(() => undefined, (error: unknown) => error), first.promise]);
    await new Promise((resolve) => setTimeout(resolve, 5)); // the runtime reports them at a turn of its own
    return { thrown, stray };
  } finally {
    for (const event of events) process.off(event, listen);
  }
}
