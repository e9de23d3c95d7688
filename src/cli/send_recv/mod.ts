/**
 * `causeway send-recv`: UCXX's benchmark of round trips, with its options and its report.
 *
 * `options.ts` parses the options. `server.ts` and `client.ts` are the two processes, which agree on the terms;
 * `transfer.ts` makes the round trips, with memory from `objects.ts`, and `report.ts` formats the result. `baseline.ts`
 * runs another program alternately with this one.
 *
 * @module
 */
import process from "node:process";
import { ffiPort } from "../../ffi/mod.ts";
import { medianOf } from "../median.ts";
import { ProgressLine } from "../progress_line.ts";
import { warnOnStandardError } from "../ucx_log.ts";
import { parseOptions, type SendRecvOptions, sendRecvUsage } from "./options.ts";
import { bytesOf, type Comparison, formatReport, formatRoundTrip, jsonReport, statisticsOf } from "./report.ts";
import { print } from "../print.ts";

export { sendRecvUsage } from "./options.ts";

/** Runs the command. @throws {UsageError} for bad options */
export async function sendRecv(args: readonly string[]): Promise<void> {
  using _ = staying();
  const options = parseOptions(args);
  if (options === null) return print(sendRecvUsage);
  warnOnStandardError();
  const say = (text: string) => options.json || print(text);
  if (options.role === "server") {
    const { runServer } = await import("./server.ts");
    return await runServer(options, (port) => {
      if (options.json) print(JSON.stringify({ server_address: options.address, server_port: port }));
      else print(`Server Running at ${options.address}:${port}`);
    });
  }
  const connecting = (port: number) => say(`Client connecting to server at ${options.address}:${port}`);
  if (options.role === "client") {
    connecting(options.port);
    return report(options, await measured(options, options.port), null);
  }
  const { startServer } = await import("./server_process.ts");
  const once = async () => {
    await using server = await startServer(args);
    say(`Server Running at ${options.address}:${server.port}`);
    connecting(server.port);
    return await Promise.race([measured(options, server.port), server.failed]);
  };
  if (options.against === null) return report(options, await once(), null);
  const { differencesOf, findBaseline } = await import("./baseline.ts");
  const baseline = await findBaseline(options.against, options);
  const runs: { readonly times: readonly number[]; readonly latency: number }[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < options.runs; round++) {
    const times = await once();
    runs.push({ times, latency: statisticsOf(times, bytesOf(options)).latencyMedian });
    theirs.push(await baseline.measure());
  }
  runs.sort((a, b) => a.latency - b.latency);
  const middle = runs[options.runs >> 1] ?? { times: [], latency: NaN };
  const latencyMedian = medianOf(theirs);
  report(options, middle.times, {
    baseline: baseline.name,
    rounds: options.runs,
    latencyMedian,
    ratio: middle.latency / latencyMedian,
    spread: (Math.max(...theirs) - Math.min(...theirs)) / latencyMedian,
    differences: differencesOf(options.against, options),
  });
}

/**
 * Runs the server that {@linkcode sendRecv} starts: it prints only its port, and exits when its standard input ends.
 */
export async function sendRecvServer(args: readonly string[]): Promise<void> {
  using _ = staying();
  process.stdin.once("end", () => process.exit(1)).resume();
  const options = parseOptions(args);
  warnOnStandardError();
  if (options === null) return;
  const { runServer } = await import("./server.ts");
  await runServer(options, (port) => print(`${port}`));
}

/** Keeps the process alive: while it waits for a client or an active message, nothing in flight would. */
function staying(): Disposable {
  const timer = setInterval(() => {}, 2 ** 30);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Runs the client's round trips, and shows their progress. */
async function measured(options: SendRecvOptions, port: number): Promise<number[]> {
  const { warmup, iterations, verbose } = options;
  const bytes = bytesOf(options);
  const { runClient } = await import("./client.ts");
  using progress = new ProgressLine(warmup + iterations, ...(verbose ? [null] : []));
  return await runClient(options, port, (index, time) => {
    if (verbose) console.error(formatRoundTrip(index < warmup ? `warm-up ${index}` : index - warmup, time, bytes));
    else progress.update(index + 1);
  });
}

function report(options: SendRecvOptions, times: readonly number[], comparison: Comparison | null): void {
  const setting = (name: string) => ffiPort().env(name) ?? "all"; // UCX's own default
  const all = { options, tls: setting("UCX_TLS"), netDevices: setting("UCX_NET_DEVICES"), times, comparison };
  print(options.json ? JSON.stringify(jsonReport(all), null, 2) : formatReport(all).join("\n"));
}
