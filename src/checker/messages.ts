/**
 * The texts of reports.
 *
 * @module
 */
import type { Access } from "./access_history.ts";
import { framesOf, shortFrame } from "./call_site.ts";
import type { CausalityCall, LeakedObject } from "./report.ts";

/** An access as it appears in a report. */
export function callOf({ kind, writes, call, stream, start, end, site, seq }: Access): CausalityCall {
  const does = kind === "free" ? "frees" : kind === "allocation" ? "allocates" : writes === null ? "uses" : null;
  return {
    does: does ?? (writes === true ? "writes" : "reads"),
    call,
    stream: stream.name,
    address: BigInt(start),
    bytes: end - start,
    stack: framesOf(site),
    isEarlier: site.isEarlier === true,
    seq,
  };
}

/** Where a call was made, as short as possible. */
export function placeOf({ stack }: CausalityCall): string {
  const [frame] = stack;
  return frame === undefined ? "an unknown place" : shortFrame(frame);
}

/** An address, as it is written everywhere. */
export function hex(address: bigint | number): string {
  return `0x${address.toString(16)}`;
}

/** A number of bytes in words. */
function bytes(count: number): string {
  return count === 1 ? "1 byte" : `${count} bytes`;
}

/** The innermost frames of a call, a line each. */
function framesIn({ stack }: CausalityCall, most: number): string {
  return stack.slice(0, most).map((frame) => `\n      at ${frame}`).join("");
}

function sentence(one: CausalityCall): string {
  const where = one.address === null ? "" : ` ${bytes(one.bytes)} at ${hex(one.address)}`;
  const earlier = one.isEarlier === true ? ", here or where an earlier call like it was made" : "";
  return `  ${one.call} on ${one.stream} ${one.does}${where}${earlier}${framesIn(one, 4)}`;
}

/** A stream's name, if it could be a variable's: that is probably what the program calls it. */
function variableOf(stream: string): string | undefined {
  return /^stream "([A-Za-z_$][\w$]*)"/.exec(stream)?.[1];
}

/** Two calls with no order between them. */
export function raceMessage(
  first: CausalityCall,
  second: CausalityCall,
  count: number,
  memory: string,
  how: "made" | "captured",
): string {
  const remedy = second.stream === "host"
    ? `Let the host wait for ${first.stream} first, with synchronize() or completed().`
    : `${how === "made" ? "Let" : "In the capture, let"} ${second.stream} wait for ${first.stream} after the first: ` +
      `${variableOf(second.stream) ?? "stream"}.wait(${variableOf(first.stream) ?? "other"}).`;
  return `Race: nothing orders ${second.call} (${placeOf(second)}) after ${first.call} (${placeOf(first)}), ` +
    `and both touch ${bytes(count)} of ${memory}.\n${sentence(first)}\n${sentence(second)}\n${remedy}`;
}

/** A copy whose source and destination overlap. */
export function overlapMessage(reads: CausalityCall, writes: CausalityCall, count: number, memory: string): string {
  return `Overlap: ${writes.call} (${placeOf(writes)}) reads and writes ${bytes(count)} of ${memory}, ` +
    `so what it reads there is undefined.\n${sentence(reads)}\n${sentence(writes)}\n` +
    "Copy through separate memory.";
}

/** A call that uses freed memory. */
export function freedMessage(freed: CausalityCall, use: CausalityCall, memory: string): string {
  const again = use.does === "frees";
  const what = again ? "Double free" : "Use after free";
  const remedy = again ? "Free it once." : "Free it after its last use, or allocate it anew.";
  return `${what}: ${use.call} (${placeOf(use)}) ${use.does} ${bytes(use.bytes)} of ${memory}, ` +
    `which ${freed.call} freed earlier ` +
    `(${placeOf(freed)}).\n${sentence(freed)}\n${sentence(use)}\n${remedy}`;
}

/** A call that uses a destroyed stream or event. */
export function destroyedMessage(what: string, gone: CausalityCall, use: CausalityCall): string {
  return `Use after destroy: ${use.call} (${placeOf(use)}) is passed ${what}, which ${gone.call} destroyed earlier ` +
    `(${placeOf(gone)}).\n${sentence(gone)}\n${sentence(use)}\nDestroy it after its last use.`;
}

/** Objects that still exist. */
export function leakMessage(leaks: readonly LeakedObject[]): string {
  const most = 10;
  const lines = leaks.slice(0, most).map(({ what, handle, made }) =>
    `  ${what} ${hex(handle)}, made by ${made.call}${framesIn(made, 3)}`
  );
  const more = leaks.length > most ? `\n  and ${leaks.length - most} more` : "";
  const count = leaks.length === 1 ? "1 object is" : `${leaks.length} objects are`;
  return `Leak: ${count} still there at the end.\n${lines.join("\n")}${more}\nClose what you make: \`using\` does it.`;
}
