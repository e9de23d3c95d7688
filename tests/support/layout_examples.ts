/**
 * The examples of docs/layout.md and of the layout room's doc comments, as programs: `expression; // value` and
 * `expression; // throws Kind: part`.
 *
 * @module
 */
import { readdirSync, readFileSync } from "node:fs";

const room = new URL("../../src/layout/", import.meta.url);

/** A block of code, and its location. */
export interface LayoutExample {
  readonly where: string;
  readonly code: string;
}

function examplesIn(where: string, text: string): LayoutExample[] {
  return [...text.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, code = ""], index) => ({
    where: `${where}, example ${index + 1}`,
    code,
  }));
}

function docComments(source: string): string {
  return [...source.matchAll(/\/\*\*([^]*?)\*\//g)].map(([, comment = ""]) => comment.replaceAll(/^ *\* ?/gm, "")).join(
    "\n",
  );
}

/** All the examples. */
export function layoutExamples(): LayoutExample[] {
  return [
    ...examplesIn("docs/layout.md", readFileSync(new URL("../../docs/layout.md", import.meta.url), "utf8")),
    ...readdirSync(room).flatMap((file) =>
      examplesIn(`src/layout/${file}`, docComments(readFileSync(new URL(file, room), "utf8")))
    ),
  ];
}

/** Where a program finds its imports. */
export interface Places {
  /** The layout room. */
  readonly layout: string;
  /** A module whose default export is an `assert` with `deepStrictEqual` and `throws`. */
  readonly assert: string;
}

/** The example as a program that fails where a comment is wrong. */
export function toProgram(code: string, places: Places): string {
  const lines = code.split("\n").map((line) => {
    const [, expression, value] = /^(?!const |import |\/\/)(.*); \/\/ (.+)$/.exec(line) ?? [];
    if (expression === undefined || value === undefined) {
      return line.replace('"@causeway/causeway/layout"', JSON.stringify(places.layout));
    }
    const [, kind, part = ""] = /^throws (\w+): (.+)$/.exec(value) ?? [];
    if (kind === undefined) return `assert.deepStrictEqual(${expression}, ${value});`;
    return `assert.throws(() => ${expression}, (error) => error instanceof ${kind} && error.message.includes(${
      JSON.stringify(part)
    }));`;
  });
  return [`import assert from ${JSON.stringify(places.assert)};`, ...lines].join("\n");
}
