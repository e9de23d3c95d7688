/**
 * The command line: finds the command, runs it, and reports the outcome by the exit code.
 *
 * @module
 */
import process from "node:process";
import manifest from "../../deno.json" with { type: "json" }; // part of a compiled program, which has no other files
import { commands, partners } from "./commands.ts";
import { didYouMean } from "./did_you_mean.ts";
import { UsageError } from "./usage_error.ts";
import { print } from "./print.ts";

const width = Math.max(...commands.map(({ name, takes }) => `${name} ${takes}`.length)) + 2;

const usage = [
  "Usage: causeway <command> [options]",
  "",
  ...commands.map(({ name, takes, summary }) => `  ${`${name} ${takes}`.padEnd(width)}${summary}`),
  "",
  "  -h, --help     this text; after a command: its options, defaults, examples",
  "  -V, --version  the version",
  "",
  "Exit codes: 0 if all went well, 1 if the command failed, 2 for bad arguments.",
].join("\n");

const look = "causeway --help lists the commands.";

async function main([name, ...rest]: string[]): Promise<number> {
  if (name === undefined) throw new UsageError("expected a command", usage);
  if (name === "--help" || name === "-h" || (name === "help" && rest.length === 0)) return printed(usage);
  if (name === "--version" || name === "-V") return printed(manifest.version);
  if (name === "help") return await main([...rest, "--help"]);
  const known = [...commands, ...partners].find((one) => one.name === name);
  if (known !== undefined) return await known.run(rest);
  if (name === "-v") throw new UsageError("unknown option -v; did you mean -V (--version)?", look);
  if (name.startsWith("-")) {
    throw new UsageError(`unknown option ${name}${didYouMean(name, ["--help", "--version", "-h", "-V"])}`, look);
  }
  throw new UsageError(`unknown command ${name}${didYouMean(name, commands.map((one) => one.name))}`, look);
}

function printed(text: string): number {
  print(text);
  return 0;
}

/** Prints what went wrong, and returns the exit code: 2 for bad input, 1 for everything else. */
function fail(error: unknown): number {
  if (error instanceof UsageError) {
    console.error(`causeway: ${error.message}${error.usage === "" ? "" : `\n\n${error.usage}`}`);
    return 2;
  }
  console.error(`causeway: ${error instanceof Error ? error.message : error}`);
  return 1;
}

main(process.argv.slice(2)).catch(fail).then((code) => process.exit(code));
