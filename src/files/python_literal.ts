/**
 * The little of Python's syntax that the headers of `.npy` files are written in. Nothing is evaluated.
 *
 * @module
 */
import { excerpt, NpyError } from "./error.ts";

/** A value that was written: text, a truth value, a whole number, a tuple, a list (`null`: its items are not kept). */
export type Literal = string | boolean | number | readonly Literal[] | null;

/** Headers have three levels: deeper ones are not made by NumPy. */
const deepest = 8;

/**
 * Reads a dictionary whose keys are text.
 *
 * @throws {NpyError} for anything else, and for what comes behind it
 */
export function readDictionary(text: string): ReadonlyMap<string, Literal> {
  const reader = new Reader(text);
  const entries = new Map<string, Literal>();
  reader.expect("{");
  while (!reader.accept("}")) {
    const key = reader.value(0);
    if (typeof key !== "string") throw reader.error("a key that is text");
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
    return new NpyError(`its header is no dictionary of Python's: expected ${expected}, got ${found}`);
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
    const number = this.#match(/-?\d+L?/y); // Python 2 wrote an L behind large numbers
    if (number !== undefined) return Number.parseInt(number);
    // What NumPy writes has no escapes; a text with one is refused, for it would be read otherwise than it is meant.
    const quoted = this.#match(/'[^'\\\n]*'|"[^"\\\n]*"/y);
    if (quoted !== undefined) return quoted.slice(1, -1);
    if (this.accept("(")) return this.#items(")", depth);
    if (this.accept("[")) {
      this.#items("]", depth);
      return null; // a list describes structures, which are refused whatever is in it
    }
    throw this.error("a value");
  }

  #items(end: string, depth: number): Literal[] {
    const items: Literal[] = [];
    while (!this.accept(end)) {
      items.push(this.value(depth + 1));
      if (!this.accept(",")) {
        // Brackets around one value, without a comma, are no tuple.
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
