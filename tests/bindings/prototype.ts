/** Reads C prototypes: those in the comments of `bindings/`, and those that the facts quote from headers. */

/** A C function, from its prototype. */
export interface Prototype {
  readonly name: string;
  readonly returns: string;
  /** Types of the parameters, without their names. */
  readonly parameters: readonly string[];
}

/** An entry of a symbol table, its line, and the comment above it. */
export interface CommentedEntry {
  readonly name: string;
  readonly line: number;
  /** The prototype of that name in the comment, on one line, or null if there is none. */
  readonly text: string | null;
}

/** Words that are all or part of a type: a parameter that ends in one of them has no name. */
const TYPE_WORDS = new Set(["void", "char", "short", "int", "long", "float", "double", "signed", "unsigned", "size_t"]);
const QUALIFIERS = new Set(["const", "struct", "enum", "union"]);

/** Finds the entries of the symbol tables in a file of `bindings/`. */
export function entriesOf(source: string): CommentedEntry[] {
  const entries: CommentedEntry[] = [];
  let comment: string[] = [];
  for (const [index, line] of source.split("\n").entries()) {
    const remark = /^ {4}\/\/ ?(.*)$/.exec(line);
    if (remark !== null) {
      comment.push(remark[1] ?? "");
      continue;
    }
    const name = /^ {4}(\w+): \{/.exec(line)?.[1];
    if (name !== undefined) entries.push({ name, line: index + 1, text: prototypeIn(comment, name) });
    comment = [];
  }
  return entries;
}

/** The prototype of a function in the lines of a comment: from the line that names it to the semicolon. */
function prototypeIn(comment: readonly string[], name: string): string | null {
  const first = comment.findIndex((line) => new RegExp(`^[\\w *]*\\b${name}\\(`).test(line));
  if (first < 0) return null;
  const text = comment.slice(first).map((line) => line.trim()).join(" ");
  return text.endsWith(";") ? text : null;
}

/** Parses a prototype. */
export function parsePrototype(text: string): Prototype {
  const tokens: readonly string[] = text.match(/\w+|\S/g) ?? [];
  const opening = tokens.indexOf("(");
  const name = tokens[opening - 1];
  if (name === undefined || tokens.slice(-2).join("") !== ");") throw new SyntaxError(`Not a prototype: ${text}`);
  const inside = tokens.slice(opening + 1, -2);
  const parameters = inside.join("") === "void" ? [] : split(inside).map(typeOf);
  return { name, returns: spell(tokens.slice(0, opening - 1)), parameters };
}

/** Splits at the commas outside inner parentheses. */
function split(tokens: readonly string[]): string[][] {
  const parts: string[][] = [[]];
  let depth = 0;
  for (const token of tokens) {
    if (token === "," && depth === 0) {
      parts.push([]);
      continue;
    }
    depth += Number(token === "(") - Number(token === ")");
    parts.at(-1)?.push(token);
  }
  return parts;
}

/** The type of a parameter. Function pointers are all one type: what they point to does not matter to the caller. */
function typeOf(parameter: readonly string[]): string {
  if (parameter.includes("(")) return "function *";
  const last = parameter.at(-1) ?? "";
  const nouns = parameter.filter((token) => token !== "*" && !QUALIFIERS.has(token));
  const named = /^\w+$/.test(last) && nouns.length > 1 && !TYPE_WORDS.has(last);
  return spell(named ? parameter.slice(0, -1) : parameter);
}

/** C text of a type; a `const` on the parameter itself is irrelevant to the caller. */
function spell(tokens: readonly string[]): string {
  return tokens.join(" ").replace(/(?<=\*) const$/, "");
}
