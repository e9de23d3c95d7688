/**
 * All commands, in the order in which they are listed. What a command needs is loaded when it runs: a program that only
 * prints its help starts in a quarter of the time.
 *
 * @module
 */
import { bandwidth } from "./bandwidth/mod.ts";
import { type Command, command } from "./command.ts";
import { sendRecv, sendRecvServer, sendRecvUsage } from "./send_recv/mod.ts";
import { topology } from "./topology/mod.ts";
import { warnOnStandardError } from "./ucx_log.ts";
import { print } from "./print.ts";

const json = { type: "boolean", says: "the report as JSON" } as const;

const doctor = command({
  name: "doctor",
  takes: "[--json]",
  summary: "what is installed here, what is missing, and how to get it",
  about: "Looks for every library that Causeway can use, and says where it is and what version, or what does not\n" +
    "work without it and how to get it. Nothing that is missing is a failure.",
  options: { json },
  examples: ["", "--json"],
  failsIf: "the report itself could not be made",
  run: async ({ values }) => {
    warnOnStandardError();
    const { examine, format } = await import("./doctor.ts");
    const report = examine();
    print(values.json === true ? JSON.stringify(report, null, 2) : format(report));
    return 0;
  },
});

const demo = command({
  name: "demo",
  takes: "[file]",
  summary: "carry an array through every room to a second process, and check every byte",
  about:
    "Reads an array (.npy, or the first column of numbers of a .vortex file), puts it on a GPU if there is one,\n" +
    "hands a part of it over by DLPack, sends that to a second process over UCX, and compares what arrived with\n" +
    "the file. Without a file: handwritten digits, which are bundled.",
  options: {},
  positionals: [0, 1],
  examples: ["", "array.npy", "table.vortex"],
  failsIf: "a byte, a sum or an address is wrong, or UCX is missing",
  run: async ({ positionals: [file] }) => {
    warnOnStandardError();
    const { runDemo } = await import("./demo.ts");
    await runDemo(file === undefined ? {} : { file });
    return 0;
  },
});

const sendReceive: Command = {
  name: "send-recv",
  takes: "[options]",
  summary: "measure round trips to a second process, as UCXX's benchmark does",
  help: sendRecvUsage,
  run: async (args) => {
    await sendRecv(args);
    return 0;
  },
};

const vortex = command({
  name: "vortex",
  takes: "<file> [--json]",
  summary: "what is in a Vortex file: columns, layouts, encodings, first rows",
  about: "Describes a Vortex file on disk or at an HTTP URL. Reads only the parts that it shows.",
  options: { json },
  positionals: [1, 1],
  examples: ["examples/trips.vortex", "https://example.org/table.vortex --json"],
  failsIf: "the report could not be made; a file that cannot be read is a bad argument",
  run: async ({ values, positionals: [file = ""] }) => {
    const { describeVortex } = await import("./vortex.ts");
    const { report, text } = await describeVortex(file);
    print(values.json === true ? JSON.stringify(report, null, 2) : text);
    return 0;
  },
});

/** The commands that a user can type. */
export const commands: readonly Command[] = [doctor, demo, topology, bandwidth, sendReceive, vortex];

/** The second processes of commands, which start them themselves. */
export const partners: readonly Pick<Command, "name" | "run">[] = [
  {
    name: "demo-peer",
    run: async () => {
      warnOnStandardError(); // standard output is for the first process
      const { runPeer } = await import("./demo_peer.ts");
      await runPeer();
      return 0;
    },
  },
  {
    name: "send-recv-server",
    run: async (args) => {
      await sendRecvServer(args);
      return 0;
    },
  },
];
