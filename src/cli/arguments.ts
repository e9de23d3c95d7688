/**
 * Reads what is typed behind a command: `parseArgs` of the runtime, with errors that help.
 *
 * @module
 */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { didYouMean } from "./nearest.ts";
import { UsageError } from "./usage_error.ts";

/** Options as `parseArgs` takes them. */
export type OptionTable = NonNullable<ParseArgsConfig["options"]>;

/** What was given, by the names of the options. */
export type Arguments<T extends OptionTable> = ReturnType<
  typeof parseArgs<{ options: T; allowPositionals: true; strict: true }>
>;

/**
 * Reads arguments.
 *
 * @param usage where to look, for the error's end
 * @throws {UsageError} for an option that is not known, with the nearest known one, and for one without its value
 */
export function readArguments<const T extends OptionTable>(
  args: readonly string[],
  options: T,
  usage: string,
): Arguments<T> {
  const { tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: false, tokens: true });
  const long = Object.keys(options).map((name) => `--${name}`);
  const short = Object.values(options).flatMap(({ short }) => short === undefined ? [] : [`-${short}`]);
  for (const token of tokens) {
    if (token.kind !== "option" || Object.hasOwn(options, token.name)) continue;
    const isLong = token.rawName.startsWith("--");
    throw new UsageError(
      `unknown option ${token.rawName}${didYouMean(token.rawName, isLong ? long : [...short, ...long])}`,
      usage,
    );
  }
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), usage);
  }
}

/**
 * The number that an option has.
 *
 * @throws {UsageError} unless it is a whole one between two others
 */
export function wholeNumber(option: string, given: string, from: number, to: number, usage: string): number {
  const number = /^\d+$/.test(given) ? Number(given) : NaN;
  if (number >= from && number <= to) return number;
  throw new UsageError(`--${option}: expected a whole number from ${from} to ${to}, got ${given}`, usage);
}
