/**
 * A command of the command line: its name, its description, and what it does.
 *
 * @module
 */
import { type Arguments, type OptionTable, readArguments } from "./arguments.ts";
import { UsageError } from "./usage_error.ts";
import { print } from "./print.ts";

/** A command. */
export interface Command {
  readonly name: string;
  /** What is typed after the name, in the list of all commands. */
  readonly takes: string;
  /** What it does, in one line. */
  readonly summary: string;
  /** What `--help` prints. */
  readonly help: string;
  /** Runs it. @returns the exit code @throws {UsageError} for bad arguments */
  run(args: readonly string[]): Promise<number> | number;
}

/** An option, for `parseArgs` and for the help. */
export interface DescribedOption {
  readonly type: "boolean" | "string";
  readonly short?: string;
  readonly multiple?: boolean;
  /** The placeholder for its value in the help: `N`, `FILE`. */
  readonly value?: string;
  /** What it does, and its default. */
  readonly says: string;
}

/** The parts of a command. */
export interface CommandParts<T extends { readonly [name: string]: DescribedOption }> {
  readonly name: string;
  readonly takes: string;
  readonly summary: string;
  /** More than the summary says; lines of at most 100 characters. */
  readonly about: string;
  readonly options: T;
  /** The fewest and the most arguments besides options. */
  readonly positionals?: readonly [fewest: number, most: number];
  /** What is typed after the name. */
  readonly examples: readonly string[];
  /** When the exit code is 1. */
  readonly failsIf: string;
  readonly run: (given: Arguments<T>) => Promise<number> | number;
}

const helpOption = { type: "boolean", short: "h", says: "this text" } as const;

/** Makes a command that describes itself: `--help`, and errors that say where to look. */
export function command<const T extends { readonly [name: string]: DescribedOption }>(
  parts: CommandParts<T>,
): Command {
  const { name, takes, summary, positionals: [fewest, most] = [0, 0] } = parts;
  const options: OptionTable & T = { ...parts.options, help: helpOption };
  const help = helpOf(parts);
  const hint = helpHint(name);
  const run = (args: readonly string[]) => {
    const given = readArguments(args, options, hint);
    // parseArgs knows `help`, which is not among the command's own options.
    if ((given.values as { readonly help?: boolean }).help === true) {
      print(help);
      return 0;
    }
    const { positionals } = given;
    if (positionals.length < fewest) throw new UsageError(`${name} needs ${takes.split(" ")[0]}`, hint);
    if (positionals.length > most) throw new UsageError(`${name} does not take ${positionals[most]}`, hint);
    return parts.run(given);
  };
  return { name, takes, summary, help, run };
}

/** What to say after bad arguments. */
export function helpHint(name: string): string {
  return `causeway ${name} --help lists the options.`;
}

/** What the exit codes mean. @param failsIf when it is 1 */
export function exitCodes(failsIf: string): string {
  return `Exit codes: 0 if all went well, 2 for bad arguments,\n1 if ${failsIf}.`;
}

function helpOf(parts: CommandParts<{ readonly [name: string]: DescribedOption }>): string {
  const { name, takes, about, options, examples, failsIf } = parts;
  const rows = Object.entries({ ...options, help: helpOption }).map(([option, one]: [string, DescribedOption]) => {
    const { short, value, says } = one;
    const flags = `  ${short === undefined ? "   " : ` -${short},`.slice(1)} --${option}`;
    return [`${flags}${value === undefined ? "" : ` ${value}`}`, says] as const;
  });
  const width = Math.max(...rows.map(([flags]) => flags.length)) + 2;
  const indented = (says: string) => says.replaceAll("\n", `\n${" ".repeat(width)}`);
  return [
    `Usage: causeway ${name}${takes === "" ? "" : ` ${takes}`}`,
    "",
    about,
    "",
    ...rows.map(([flags, says]) => `${flags.padEnd(width)}${indented(says)}`),
    "",
    `Example${examples.length > 1 ? "s" : ""}:`,
    ...examples.map((example) => `  causeway ${name}${example === "" ? "" : ` ${example}`}`),
    "",
    exitCodes(failsIf),
  ].join("\n");
}
