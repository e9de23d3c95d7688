/**
 * Where in the program a call was made: the frames of the stack outside this package, formatted only when they are
 * read.
 *
 * @module
 */
import { ffiPort } from "../ffi/mod.ts";

/** A place in the program. */
export interface CallSite {
  readonly stack?: string;
  /** Whether it is the site of an earlier call like the one that it stands for. */
  readonly isEarlier?: boolean;
}

// law checker/currentSite: checker/call_site
/** Frames to capture: those of this package come first, and some calls have more than 20 of them. */
const frames = 48;

/** The current call site. The engine captures the frames eagerly, at 0.3 us in Bun and up to 2.5 us in Deno. */
export function currentSite(): CallSite {
  const { stackTraceLimit } = Error;
  if (stackTraceLimit >= frames) return new Error();
  Error.stackTraceLimit = frames;
  const site = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  return site;
}

/** The files of the npm package that have code, wherever it is installed. */
const packageFile = /\/dist\/(?:bun\/causeway_compiled\/)?room_\w+\.js\b/;

const isSource = import.meta.url.endsWith("/src/checker/call_site.ts");

/** Where the sources are, as the two runtimes write it: a URL or a path. */
const sources = ["../../src/", "../../mod.ts"]
  .map((name) => new URL(name, import.meta.url))
  .flatMap(({ href, pathname }) => [href, pathname]);

// law checker/isOwn: package/package
/**
 * Whether a frame is this package's own. A program that bundles it into its own file sees its frames, unless a source
 * map says which file they are from.
 */
function isOwn(frame: string): boolean {
  return isSource ? sources.some((place) => frame.includes(place)) : packageFile.test(frame);
}

const isBundled = !isSource && !packageFile.test(import.meta.url);

/**
 * What tells the place of a call from other places: its innermost frame. In a bundle that may be one of this package,
 * whatever the place: there only all frames together tell.
 */
export function placeKey(stack: readonly string[]): string {
  return isBundled ? stack.join() : shortFrame(stack[0] ?? "");
}

/** Of a repeating call, how many occurrences are all captured, and one in how many of those that follow. */
const [alwaysNoted, notedOneIn] = [64, 32];
/** The most distinct calls that are counted: beyond this, counting starts over. */
const maxKinds = 4096;

interface Seen {
  readonly bytes: number;
  count: number;
  earlier: CallSite;
}

const noStarts = () => new Map<number, Seen>();

/**
 * The sites of repeating calls. Deno captures a stack so slowly that a hot loop would spend most of its time on it:
 * there, a call seen often, on the same stream with the same bytes, mostly reuses the site of an earlier one.
 */
export class CallSites {
  readonly #seen = new Map<string, Map<number, Seen>>();
  readonly #isSlow = ffiPort().runtime.name === "deno";
  #count = 0;

  /** The current call site, or that of an earlier call of the same function with the same bytes. */
  of(call: string, start: number, bytes: number): CallSite {
    if (!this.#isSlow) return currentSite();
    const starts = this.#seen.getOrInsertComputed(call, noStarts);
    const seen = starts.get(start);
    if (seen === undefined || seen.bytes !== bytes) {
      const site = currentSite();
      starts.set(start, { bytes, count: 1, earlier: site });
      if (++this.#count > maxKinds) {
        this.#seen.clear();
        this.#count = 0;
      }
      return site;
    }
    seen.count++;
    if (seen.count > alwaysNoted && seen.count % notedOneIn !== 0) return seen.earlier;
    const site = currentSite();
    seen.earlier = {
      isEarlier: true,
      get stack() {
        return site.stack ?? "";
      },
    };
    return site;
  }
}

/** The frames of a site outside this package, the innermost first: `work (file:///app.ts:12:3)`. */
export function framesOf(site: CallSite): readonly string[] {
  const lines = (site.stack ?? "").split("\n").map((line) => line.trim()).filter((line) => line.startsWith("at "));
  return lines.map((line) => line.slice(3)).filter((line) => !isOwn(line));
}

/** A frame without the folders of its file: `app.ts:12:3`. */
export function shortFrame(frame: string): string {
  const place = /\(?([^()\s]+)\)?$/.exec(frame)?.[1] ?? frame;
  return place.slice(place.lastIndexOf("/") + 1);
}
