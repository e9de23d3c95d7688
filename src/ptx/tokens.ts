/**
 * Splits PTX text into tokens.
 *
 * @module
 */
import { PtxError } from "./error.ts";

/** The kind of a token. */
export type TokenKind = "word" | "dot" | "integer" | "float" | "string" | "mark" | "end";

/** A token and its line. */
export interface Token {
  readonly kind: TokenKind;
  /** As written: a `dot` begins with its dot. */
  readonly text: string;
  readonly line: number;
}

/** The kinds in the order of the grammar's groups. */
const kinds = ["float", "integer", "string", "word", "dot", "mark"] as const;

/**
 * In this order: white space and comments, in no group; numbers (floats first, because they begin like an integer);
 * strings; words with the modifiers that follow them, `add.rn.f32` or `%tid.x`; words that begin with a dot; single
 * marks. The groups have no names, for an object of them for each token would take most of the time.
 */
const grammar = new RegExp(
  [
    "[ \\t\\r\\n]+|//[^\\n]*|/\\*[^]*?\\*/",
    "(0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|[0-9]+\\.[0-9]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)",
    "(0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|[0-9]+U?)",
    '("[^"\\n]*")',
    "((?:[a-zA-Z]|[_$%][a-zA-Z0-9_$]|_(?![a-zA-Z0-9_$]))[a-zA-Z0-9_$]*" +
    "(?:\\.[a-zA-Z0-9_]+(?:::[a-zA-Z0-9_]+)*)*)",
    "(\\.[a-zA-Z][a-zA-Z0-9_]*)",
    "([-+{}()<>\\[\\],;:=@!|*])",
  ].join("|"),
  "y",
);

/**
 * Tokenizes the text; the last token is of kind `end`.
 *
 * @throws {PtxError} for a character that begins no token
 */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let line = 1;
  let at = 0;
  while (at < text.length) {
    grammar.lastIndex = at;
    const match = grammar.exec(text);
    if (match === null) throw new PtxError(line, `${JSON.stringify(text[at])} does not begin a token`);
    const [written] = match;
    const kind = kinds.find((_, group) => match[group + 1] !== undefined);
    if (kind !== undefined) tokens.push({ kind, text: written, line });
    else for (let i = 0; i < written.length; i++) if (written[i] === "\n") line++; // no token has a line's end in it
    at += written.length;
  }
  tokens.push({ kind: "end", text: "the end of the text", line });
  return tokens;
}
