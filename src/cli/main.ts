/**
 * The command line: `doctor`, `demo`, `send-recv`, `vortex`.
 *
 * @module
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { runDemo } from "./demo.ts";
import { runPeer } from "./demo_peer.ts";
import { examine, format } from "./doctor.ts";
import { NpyError } from "./npy.ts";
import { sendRecv, sendRecvServer } from "./send_recv/mod.ts";
import { warnOnStandardError } from "./ucx_log.ts";
import { UsageError } from "./usage_error.ts";
import { describeVortex } from "./vortex.ts";

const usage = `Usage: causeway <command>

  doctor [--json]      what is installed here, what is missing, and how to get it
  demo [file]          carry an array (.npy, or a column of .vortex) through every room to a second process, and check
                       every byte
  send-recv [options]  measure round trips to a second process, as UCXX's benchmark does; --help lists the options
  vortex <file> [--json]
                       what is in a file of Vortex, on disk or at a URL: columns, layouts, encodings, first rows`;

async function main(args: string[]): Promise<number> {
  const [command, ...rest] = args;
  switch (command) {
    case "doctor": {
      const { values, positionals } = parse(rest, { json: { type: "boolean" } });
      if (values["help"] === true) return help();
      if (positionals.length > 0) throw new UsageError(`doctor does not take ${positionals[0]}`, usage);
      warnOnStandardError();
      const report = examine();
      console.log(values["json"] === true ? JSON.stringify(report, null, 2) : format(report));
      return 0;
    }
    case "demo": {
      const { values, positionals } = parse(rest, {});
      if (values["help"] === true) return help();
      if (positionals.length > 1) throw new UsageError("demo takes one file at most", usage);
      await runDemo(positionals[0] === undefined ? {} : { file: positionals[0] });
      return 0;
    }
    case "demo-peer":
      await runPeer();
      return 0;
    case "vortex": {
      const { values, positionals } = parse(rest, { json: { type: "boolean" } });
      if (values["help"] === true) return help();
      const [file, ...others] = positionals;
      if (file === undefined || others.length > 0) throw new UsageError("vortex takes one file", usage);
      const { report, text } = await describeVortex(file);
      console.log(values["json"] === true ? JSON.stringify(report, null, 2) : text);
      return 0;
    }
    case "send-recv":
      await sendRecv(rest);
      return 0;
    case "send-recv-server":
      await sendRecvServer(rest);
      return 0;
    case "help":
    case "--help":
    case "-h":
      return help();
    default:
      throw new UsageError(command === undefined ? "a command is needed" : `there is no command ${command}`, usage);
  }
}

function help(): number {
  console.log(usage);
  return 0;
}

/** Reads a command's arguments. Every command knows `--help`. */
function parse(args: string[], own: Record<string, { type: "boolean" }>): ReturnType<typeof parseArgs> {
  const options = { ...own, help: { type: "boolean", short: "h" } } as const;
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error), usage);
  }
}

/** Says what went wrong, and which exit code that is: 2 for bad input, 1 for a wrong result. */
function fail(error: unknown): number {
  if (error instanceof UsageError) {
    console.error(`causeway: ${error.message}${error.usage === "" ? "" : `\n\n${error.usage}`}`);
    return 2;
  }
  console.error(`causeway: ${error instanceof Error ? error.message : error}`);
  return error instanceof NpyError ? 2 : 1;
}

main(process.argv.slice(2)).catch(fail).then((code) => process.exit(code));
