/**
 * The subset of Python syntax that `.npy` headers use. Nothing is evaluated.
 *
 * @module
 */
import { excerpt, NpyError } from "./error.ts";

/** A literal's value: text, a boolean, an integer, a tuple, a list (`null`: its items are not kept). */
export type Literal = string | boolean | number | readonly Literal[] | null;

/** Maximum nesting. Headers have three levels: NumPy does not write deeper ones. */
const deepest = 8;

/**
 * Reads a dictionary whose keys are text.
 *
 * @throws {NpyError} for anything else, and for trailing text
 */
export function readDictionary(text: string): ReadonlyMap<string, Literal> {
  const reader = new Reader(text);
  const entries = new Map<string, Literal>();
  reader.expect("{");
  while (!reader.accept("}")) {
    const key = reader.value(0);
    if (typeof key !== "string") throw reader.error("a string as key");
    reader.expect(":");
    if (entries.has(key)) throw new NpyError(`its header has ${excerpt(key)} twice`);
    entries.set(key, reader.value(0));
    if (!reader.accept(",")) {
      reader.expect("}");
      break;
    }
  }
  reader.end();
  return entries;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  error(expected: string): NpyError {
    const found = this.#at < this.#text.length ? excerpt(this.#text.slice(this.#at)) : "its end";
    return new NpyError(`its header is not a Python dictionary: expected ${expected}, got ${found}`);
  }

  accept(token: string): boolean {
    this.#skip();
    if (!this.#text.startsWith(token, this.#at)) return false;
    this.#at += token.length;
    return true;
  }

  expect(token: string): void {
    if (!this.accept(token)) throw this.error(token);
  }

  end(): void {
    this.#skip();
    if (this.#at < this.#text.length) throw this.error("nothing more");
  }

  value(depth: number): Literal {
    if (depth > deepest) throw this.error("fewer brackets");
    this.#skip();
    const word = this.#match(/(True|False)\b/y);
    if (word !== undefined) return word === "True";
    const number = this.#match(/-?(?:0|[1-9]\d*)L?/y); // Python 2 wrote an L after large numbers
    if (number !== undefined) return Number.parseInt(number);
    // NumPy writes no escapes; text that contains one is refused, because it would be misread.
    const quoted = this.#match(/'[^'\\\n]*'|"[^"\\\n]*"/y);
    if (quoted !== undefined) return quoted.slice(1, -1);
    if (this.accept("(")) return this.#items(")", depth);
    if (this.accept("[")) {
      this.#items("]", depth);
      return null; // a list describes structures, which are refused whatever it contains
    }
    throw this.error("a value");
  }

  #items(end: string, depth: number): Literal[] {
    const items: Literal[] = [];
    while (!this.accept(end)) {
      items.push(this.value(depth + 1));
      if (!this.accept(",")) {
        // Parentheses around one value, without a comma, are not a tuple.
        if (end === ")" && items.length === 1) throw this.error("a comma");
        this.expect(end);
        break;
      }
    }
    return items;
  }

  #skip(): void {
    this.#match(/\s+/y);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }
}
