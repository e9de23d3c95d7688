/**
 * Reads what is typed after a command: the runtime's `parseArgs`, with helpful errors.
 *
 * @module
 */
import { parseArgs, type ParseArgsConfig } from "node:util";
import { didYouMean } from "./did_you_mean.ts";
import { UsageError } from "./usage_error.ts";

/** Options as `parseArgs` takes them. */
export type OptionTable = NonNullable<ParseArgsConfig["options"]>;

/** The given arguments, by option name. */
export type Arguments<T extends OptionTable> = ReturnType<
  typeof parseArgs<{ options: T; allowPositionals: true; strict: true }>
>;

/**
 * Reads arguments.
 *
 * @param usage where to look for help, for the end of the error
 * @throws {UsageError} for an unknown option, with the nearest known one, and for an option without its value
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
 * The number given for an option.
 *
 * @throws {UsageError} unless it is a whole number from `from` to `to`
 */
export function wholeNumber(option: string, given: string, from: number, to: number, usage: string): number {
  const number = /^\d+$/.test(given) ? Number(given) : NaN;
  if (number >= from && number <= to) return number;
  throw new UsageError(`--${option}: expected a whole number from ${from} to ${to}, got ${given}`, usage);
}
