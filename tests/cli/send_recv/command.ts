/**
 * `causeway send-recv` in its own process.
 *
 * @module
 */
import { assert } from "@std/assert";
import { parseOptions, type SendRecvOptions } from "../../../src/cli/send_recv/options.ts";
import { runScript, type ScriptResult } from "../../support/child.ts";

/** The program. */
export const main = new URL("../../../src/cli/main.ts", import.meta.url);

/** UCX's own log lines, with a time and a process. */
export const ucxLine = /^\[\d+\.\d+\] \[.*?:(\d+) *:\d+\] .*\n/gm;

/** Runs the command; UCX's log lines are separated from the command's output. */
export async function sendRecv(
  args: readonly string[],
  env: Record<string, string | undefined> = {},
): Promise<ScriptResult & { readonly ucx: readonly RegExpMatchArray[] }> {
  const result = await runScript(main, {
    args: ["send-recv", ...args],
    env: { UCX_TLS: undefined, UCX_NET_DEVICES: undefined, UCX_LOG_FILE: undefined, ...env },
  });
  return { ...result, stderr: result.stderr.replace(ucxLine, ""), ucx: [...result.stderr.matchAll(ucxLine)] };
}

/** Parses arguments. */
export function options(...args: string[]): SendRecvOptions {
  const parsed = parseOptions(args);
  assert(parsed !== null);
  return parsed;
}
