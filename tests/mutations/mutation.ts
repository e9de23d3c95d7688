/**
 * What a mutation is.
 *
 * @module
 */

/** One way to break the code. */
export interface Mutation {
  /** Where, from the repository's root. */
  readonly file: string;
  /** What stands there, exactly once. */
  readonly text: string;
  /** What stands there instead; often nothing. */
  readonly becomes: string;
  /** Test files, one of which must fail. */
  readonly tests: readonly string[];
  /** What goes wrong without the line. */
  readonly why: string;
}

/** The source with the mutation in it, or null if its text is not there exactly once. */
export function mutate(source: string, { text, becomes }: Mutation): string | null {
  const [before, after, ...more] = source.split(text);
  return before === undefined || after === undefined || more.length > 0 ? null : before + becomes + after;
}

/** A mutation without what all of a file have in common. */
type Entry = readonly [text: string, becomes: string, why: string];

/** The mutations of a file, each of which one of the same tests must notice. */
export function inFile(file: string, tests: readonly string[], entries: readonly Entry[]): Mutation[] {
  return entries.map(([text, becomes, why]) => ({ file, text, becomes, tests, why }));
}
