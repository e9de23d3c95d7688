/**
 * The input and output of `children/open.ts`.
 *
 * @module
 */
import type { LoadAttempt } from "../../src/ffi/errors.ts";
import type { LibraryDescription } from "../../src/ffi/library.ts";
import { runScriptForJson } from "../support/child.ts";

/** One library to open. */
export interface OpenStep {
  /** Environment variables to set first, or to unset. */
  readonly env?: { readonly [name: string]: string | null };
  /** A folder to change to after the library is opened and before its functions are bound. */
  readonly chdir?: string;
  /** The library, without symbols: the child adds its own. */
  readonly description: Omit<LibraryDescription<Record<never, never>>, "symbols">;
}

/** The result. */
export type OpenOutcome = {
  readonly path: string;
  readonly handle: string;
  /** Whether /proc/self/maps contains the path. */
  readonly mapped: boolean;
  /** The first step that returned the same library object. */
  readonly sameAs: number | null;
  /** The result of the library's `cos`, null if it has none. */
  readonly cosOf0: number | null;
  /** Whether one of its symbols is visible to libraries loaded later. */
  readonly isGlobal: boolean;
} | {
  readonly error: {
    readonly name: string;
    readonly message: string;
    readonly library: string;
    readonly attempts: readonly LoadAttempt[];
    readonly remedy: string;
  };
};

const script = new URL("./children/open.ts", import.meta.url);

/** Opens libraries in one child process. */
export async function openInChild(
  steps: readonly OpenStep[],
  options: { readonly env?: { readonly [name: string]: string }; readonly cwd?: string } = {},
): Promise<OpenOutcome[]> {
  const input = JSON.stringify(steps);
  return await runScriptForJson(script, { isBare: true, ...options, input }) as OpenOutcome[];
}
