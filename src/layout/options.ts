/**
 * Checks of options. All rooms use this.
 *
 * @module
 */
import { show } from "./shape.ts";

/** The names of options: a table that does not compile if one of them is missing, or is none. */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: true };

/** No options: what a parameter is by default where a call is so frequent that looking at nothing would show. */
export const none: Readonly<Record<never, never>> = Object.freeze({});

// law layout/checkOptions: options
/**
 * Throws unless all options are known: what is spelled wrong would be left aside in silence.
 *
 * @throws {TypeError} that names the nearest known one
 */
export function checkOptions<Options extends object>(options: Options, known: OptionNames<Options>): void {
  if (options === none) return;
  if (typeof options !== "object") throw noOptions(options, known);
  for (const name in options) if (known[name] !== true) throw unknownOption(name, known);
}

function noOptions(value: unknown, known: object): TypeError {
  return new TypeError(`Expected an object of options (${Object.keys(known).join(", ")}), got ${show(value)}`);
}

/** The error for an option that is not known. */
export function unknownOption(name: string, known: object): TypeError {
  const names = Object.keys(known);
  return new TypeError(
    `Unknown option ${show(name)}: did you mean ${nearestOf(name, names).name}? ` +
      (names.length === 1 ? "There is no other." : `There are ${names.join(", ")}.`),
  );
}

// law layout/nearestOf: options, layout/dtype_names
/** The name that is nearest to one that was meant, and how many letters are different. */
export function nearestOf(
  given: string,
  names: readonly string[],
): { readonly name: string; readonly letters: number } {
  let nearest = { name: "", letters: Infinity };
  for (const name of names) {
    const letters = distance(given.toLowerCase(), name.toLowerCase());
    if (letters < nearest.letters) nearest = { name, letters };
  }
  return nearest;
}

// law layout/distance: options
/** How many letters must be put in, taken out or changed to make one word of another. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, length) => length);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [place, letterThere] of [...other].entries()) {
      const changed = (row[place] ?? 0) + Number(letter !== letterThere);
      next.push(Math.min(changed, (row[place + 1] ?? 0) + 1, (next[place] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
