/**
 * Mutations, and how each is found: it follows a marker in the source that names the tests which protect the line.
 *
 * ```
 * // law order/Loan.end: order/lease, memory/collection
 * ```
 *
 * A marker is a separate comment, `#` in Python, before the code that it covers, and extends to the next marker. It
 * moves with the code, also to another file: a mutation has the label, and a text that occurs exactly once after it.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** One way to break the code. */
export interface Mutation {
  /** The marker that precedes it. */
  readonly label: string;
  /** The file with the marker, relative to the repository's root; empty if there is no marker. */
  readonly file: string;
  /** The text to replace, which occurs exactly once after the marker. */
  readonly text: string;
  /** Its replacement; often empty. */
  readonly becomes: string;
  /** Test files; at least one must fail. */
  readonly tests: readonly string[];
  /** What goes wrong without the line. */
  readonly why: string;
}

/** A marker in a source. */
interface Marker {
  readonly label: string;
  readonly tests: readonly string[];
  /** Where the marker begins, and where it ends. */
  readonly start: number;
  readonly end: number;
}

const markerPattern = /^[ \t]*(?:\/\/|#) law (?<label>\S+):(?<tests>.*(?:\n[ \t]*(?:\/\/|#) {3}\S.*)*)\n/gm;

/** The markers of a source, in order. */
export function markersOf(source: string): Marker[] {
  return [...source.matchAll(markerPattern)].map(({ 0: text, index, groups }) => ({
    label: groups?.["label"] ?? "",
    tests: (groups?.["tests"] ?? "").replace(/\n[ \t]*(?:\/\/|#)/g, "").split(",").map((name) =>
      `tests/${name.trim()}_test.ts`
    ),
    start: index,
    end: index + text.length,
  }));
}

const root = fileURLToPath(new URL("../..", import.meta.url));

/** All markers of the sources, with their files; a label that occurs twice has two. */
export const markers: ReadonlyMap<string, readonly { readonly file: string; readonly tests: readonly string[] }[]> =
  (() => {
    const found = new Map<string, { file: string; tests: readonly string[] }[]>();
    for (const folder of ["src", "bindings"]) {
      for (const name of readdirSync(root + folder, { recursive: true, encoding: "utf8" })) {
        const file = `${folder}/${name}`;
        if (!/\.(ts|py)$/.test(name) || name.endsWith("guest_source.ts")) continue;
        for (const { label, tests } of markersOf(readFileSync(root + file, "utf8"))) {
          found.getOrInsertComputed(label, () => []).push({ file, tests });
        }
      }
    }
    return found;
  })();

/** The mutated source, or null if the text does not occur exactly once after the marker. */
export function mutate(
  source: string,
  { label, text, becomes }: Pick<Mutation, "label" | "text" | "becomes">,
): string | null {
  const all = markersOf(source);
  const at = all.findIndex((marker) => marker.label === label);
  const marker = all[at];
  if (marker === undefined) return null;
  const end = all[at + 1]?.start ?? source.length;
  const first = source.indexOf(text, marker.end);
  const isAlone = first >= 0 && first < end && !isBefore(source.indexOf(text, first + 1), end);
  return isAlone ? source.slice(0, first) + becomes + source.slice(first + text.length) : null;
}

function isBefore(at: number, end: number): boolean {
  return at >= 0 && at < end;
}

/** A mutation without the properties that come from its marker. */
type Entry = readonly [text: string, becomes: string, why: string];

/** The mutations of a marker. */
export function law(label: string, entries: readonly Entry[]): Mutation[] {
  const [{ file, tests } = { file: "", tests: [] }] = markers.get(label) ?? [];
  return entries.map(([text, becomes, why]) => ({ label, file, text, becomes, tests, why }));
}
