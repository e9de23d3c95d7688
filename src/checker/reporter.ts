/**
 * Making reports, and passing them to the program.
 *
 * @module
 */
import type { Access } from "./access_history.ts";
import { type CausalityCall, CausalityError, CausalityReport, type LeakedObject, type ReportParts } from "./report.ts";
import type { Timeline } from "./timeline.ts";
import { placeKey } from "./call_site.ts";
import { callOf, destroyedMessage, freedMessage, leakMessage, overlapMessage, raceMessage } from "./messages.ts";

/** The most reports that are kept. */
const maxReports = 1000;

/** Makes reports, each once, and throws them or passes them on. */
export class Reporter {
  /** The reports so far. */
  readonly reports: CausalityReport[] = [];
  readonly #timeline: Timeline;
  readonly #onReport: ((report: CausalityReport) => void) | undefined;
  readonly #reported = new Set<string>();
  #thrown: CausalityError | null = null;

  /** @param onReport receives reports; if it is undefined the first one is thrown */
  constructor(timeline: Timeline, onReport: ((report: CausalityReport) => void) | undefined) {
    this.#timeline = timeline;
    this.#onReport = onReport;
  }

  /** Reports two accesses with no order between them, by calls that were made or captured. */
  race(earlier: Access, later: Access, memory: string, how: "made" | "captured" = "made"): void {
    const start = Math.max(earlier.start, later.start);
    const count = Math.min(earlier.end, later.end) - start;
    this.#race(callOf(earlier), callOf(later), start, count, memory, how);
  }

  /** Reports an access, and one by the host that does not wait for it. */
  raceWithHost(earlier: Access, host: CausalityCall, memory: string): void {
    const start = Math.max(earlier.start, Number(host.address));
    const count = Math.min(earlier.end, Number(host.address) + host.bytes) - start;
    this.#race(callOf(earlier), host, start, count, memory, "made");
  }

  /** Reports a copy that reads what it writes. */
  overlap(reads: CausalityCall, writes: CausalityCall, start: number, count: number, memory: string): void {
    const message = overlapMessage(reads, writes, count, memory);
    this.#report({ kind: "overlap", message, first: reads, second: writes, address: BigInt(start), bytes: count });
  }

  /** Reports a use or a free of freed memory. */
  freed(first: CausalityCall, second: CausalityCall, memory: string): void {
    const kind = second.does === "frees" ? "double-free" : "use-after-free";
    const { address, bytes } = second;
    this.#report({ kind, message: freedMessage(first, second, memory), first, second, address, bytes });
  }

  /** Reports a use of a destroyed object. */
  destroyed(what: string, first: CausalityCall, second: CausalityCall): void {
    const message = destroyedMessage(what, first, second);
    this.#report({ kind: "destroyed", message, first, second, address: null, bytes: 0 });
  }

  /** Reports objects or memory that still exist. */
  leaks(leaks: readonly LeakedObject[]): void {
    const parts = { first: null, second: null, address: null, bytes: 0 } as const;
    this.#report({ kind: "leak", message: leakMessage(leaks), ...parts, leaks });
  }

  #race(
    first: CausalityCall,
    second: CausalityCall,
    start: number,
    count: number,
    memory: string,
    how: "made" | "captured",
  ): void {
    const message = raceMessage(first, second, count, memory, how);
    this.#report({ kind: "race", message, first, second, address: BigInt(start), bytes: count });
  }

  // law checker/Reporter.report: checker/thrown
  #report(parts: Omit<ReportParts, "timeline" | "leaks"> & { readonly leaks?: readonly LeakedObject[] }): void {
    const { kind, first, second } = parts;
    const key = [
      kind,
      ...[first, second].map((one) => one === null ? "" : `${one.call} ${placeKey(one.stack)} ${one.stream}`),
    ];
    if (this.#reported.has(key.join("|"))) return;
    const report = new CausalityReport({ leaks: [], ...parts, timeline: this.#timeline.marks() });
    if (this.reports.length < maxReports) {
      this.#reported.add(key.join("|"));
      this.reports.push(report);
    }
    if (this.#onReport !== undefined) return this.#onReport(report);
    // Only the first: errors found while the enclosing blocks unwind mostly follow from it, and would hide it.
    if (this.#thrown === null) throw this.#thrown = new CausalityError(report);
  }

  // law checker/Reporter.printUninspected: checker/thrown
  /** Prints the report that was thrown, unless its parts were read: an error during disposal may have hidden it. */
  printUninspected(): void {
    if (this.#thrown?.isInspected !== false) return;
    const { message } = this.#thrown;
    const more = this.reports.length - 1;
    const found = more === 0
      ? ""
      : `\n${more} more found after it: \`cuda.reports\` has them, or pass { check: { onReport } }.`;
    console.error(
      `Causeway: the causality checker has thrown an error, which may be hidden by others.\n${message}${found}`,
    );
  }
}
