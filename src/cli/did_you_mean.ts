/**
 * Suggestions: the known word that is nearest to a mistyped one.
 *
 * @module
 */
import { nearestOf } from "../layout/mod.ts";

/** "; did you mean --json?", or nothing if no known word is near: at most a third of the letters may differ. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const length = word.replace(/^-+/, "").length;
  if (length < 2) return ""; // every other letter is as near
  const { name, letters } = nearestOf(word, [...known]);
  return letters <= Math.max(1, Math.floor(length / 3)) ? `; did you mean ${name}?` : "";
}
