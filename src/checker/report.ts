/**
 * What the checker reports.
 *
 * @module
 */
import { checkMade, showAs } from "../layout/mod.ts";
import { drawReport } from "./draw_report.ts";
import { hex } from "./messages.ts";
import type { Mark } from "./timeline.ts";

/** What is wrong. */
export type CausalityKind = "race" | "overlap" | "use-after-free" | "double-free" | "destroyed" | "leak";

/** One side of a report: a call that touches memory, or creates or destroys something. */
export interface CausalityCall {
  /** What it does: `reads`, `writes`, `frees`, `allocates`, `uses` (a kernel about which no more is known). */
  readonly does: "reads" | "writes" | "frees" | "allocates" | "uses" | "creates" | "destroys";
  /** The driver's function, or the function of this package that used memory on the host: `toDlpack()`. */
  readonly call: string;
  /** The stream's name, or `host`. */
  readonly stream: string;
  /** The address of the first byte that it concerns; null if it concerns none. */
  readonly address: bigint | null;
  /** The number of bytes that it concerns. */
  readonly bytes: number;
  /** Where it was called: the frames outside this package, the innermost first. */
  readonly stack: readonly string[];
  /**
   * Whether `stack` is that of an earlier call of the same function on the same stream with the same bytes. Deno
   * captures stacks so slowly that only some of the repeating calls are captured.
   */
  readonly isEarlier?: boolean;
  /** Its number in the timeline; 0 if it is not there. */
  readonly seq: number;
}

/** An object or memory that was created and still exists. */
export interface LeakedObject {
  /** What it is: `1024 bytes of pool memory`, `stream`, `event`, `pool`, `graph`. */
  readonly what: string;
  /** Its address or handle. */
  readonly handle: bigint;
  /** The call that made it, and where. */
  readonly made: CausalityCall;
}

/** The parts of a report. */
export type ReportParts = Omit<CausalityReport, "toSvg" | "toJSON">;

/**
 * A mistake in the order of a program's calls: accesses whose order is left to chance, a use after free, or a leak.
 *
 * @example
 * ```ts
 * import { Cuda, DeviceMemoryResource } from "@causeway/causeway";
 *
 * using cuda = Cuda.simulate({ check: { onReport: () => {} } }); // collected, not thrown
 * const device = cuda.device(0);
 * using one = device.createStream();
 * using other = device.createStream();
 * using buffer = new DeviceMemoryResource(device).allocate(64, { stream: one });
 * buffer.fill(1, { stream: one });
 * buffer.fill(2, { stream: other }); // nothing says which of the two comes last
 * one.wait(other);
 * console.log(cuda.reports[0]?.kind); // race
 * ```
 */
export class CausalityReport {
  /** What is wrong. */
  readonly kind: CausalityKind;
  /** The report as text: which calls, where, which bytes, and what to do. */
  readonly message: string;
  /** The earlier call; null for leaks. */
  readonly first: CausalityCall | null;
  /** The later call, at which the mistake was found; null for leaks. */
  readonly second: CausalityCall | null;
  /** The address of the first byte that both touch; null if it is not about bytes. */
  readonly address: bigint | null;
  /** The number of bytes that both touch. */
  readonly bytes: number;
  /** The objects that still exist; empty unless it is a report of leaks. */
  readonly leaks: readonly LeakedObject[];
  /** The last calls of the driver before the report. */
  readonly timeline: readonly Mark[];

  /** Made by the checker. */
  constructor(parts: ReportParts) {
    checkMade(parts, "CausalityReport", "cuda.reports");
    this.kind = parts.kind;
    this.message = parts.message;
    this.first = parts.first;
    this.second = parts.second;
    this.address = parts.address;
    this.bytes = parts.bytes;
    this.leaks = parts.leaks;
    this.timeline = parts.timeline;
  }

  /**
   * Draws the streams, the order between them, the two calls and the order that is missing.
   *
   * @returns a self-contained SVG document, which can be written to a file as it is
   */
  toSvg(): string {
    return drawReport(this);
  }

  /** For `JSON.stringify`: its parts. Addresses and handles are text, as in the message. */
  toJSON(): unknown {
    return withTexts({ ...this });
  }

  static {
    showAs(CausalityReport, ({ kind, message }) => `${kind}\n${message}`, "fields");
  }
}

/** A value of the report for JSON, which has no bigints. */
function withTexts(value: unknown): unknown {
  if (typeof value === "bigint") return hex(value);
  if (Array.isArray(value)) return value.map(withTexts);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withTexts(part)]));
}

/**
 * Thrown by the first call that shows a program to be wrong, unless reports are only collected. Later reports are
 * collected, not thrown: at the end of `using` blocks they would hide this one.
 */
export class CausalityError extends Error {
  /** `CausalityError`. */
  override readonly name: string = "CausalityError";
  readonly #report: CausalityReport;
  #isInspected = false;

  /** Made by the checker. */
  constructor(report: CausalityReport) {
    super(report.message);
    this.#report = report;
  }

  /** What is wrong, in parts. */
  get report(): CausalityReport {
    this.#isInspected = true;
    return this.#report;
  }

  /** Whether its parts have been read. If not, closing the Cuda prints the report to the console. */
  get isInspected(): boolean {
    return this.#isInspected;
  }

  /** What is wrong. */
  get kind(): CausalityKind {
    return this.report.kind;
  }
}
