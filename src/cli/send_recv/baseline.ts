/**
 * Other programs that measure the same: UCX's own benchmark in C, and UCXX's in Python.
 *
 * @module
 */
import { spawn } from "node:child_process";
import process from "node:process";
import { setTimeout as delay } from "node:timers/promises";
import { findInterpreters } from "../../python/mod.ts";
import { run } from "../child_process.ts";
import type { Baseline, SendRecvOptions } from "./options.ts";

/** A program that measures half round trips. */
export interface Measuring {
  /** For the report. */
  readonly name: string;
  /** @returns the median of one run, in nanoseconds */
  measure(): Promise<number>;
}

/** Another program is missing, or has failed. */
export class BaselineError extends Error {
  override readonly name: string = "BaselineError";
}

/** @throws {BaselineError} if the program is not installed, saying how to get it */
export async function findBaseline(baseline: Baseline, options: SendRecvOptions): Promise<Measuring> {
  if (baseline === "ucxx") {
    const python = await findUcxx();
    return { name: "ucxx", measure: () => runUcxx(python, options) };
  }
  // This is its only option that just prints something.
  const { code, stderr } = await run("ucx_perftest", ["-h"]);
  if (code === null) {
    throw new BaselineError(`Cannot run ucx_perftest: ${stderr}. Get it: apt-get install ucx-utils`);
  }
  return { name: "ucx_perftest", measure: () => runPerftest(options) };
}

const perftests = { tag: "tag_lat", am: "ucp_am_lat", stream: "stream_lat", rma: null } as const;

/** The arguments for both sides of ucx_perftest. */
export function perftestArguments(options: SendRecvOptions, port: number): string[] {
  const { bytes, iterations, warmup, api, memory, errors, progress } = options;
  return [
    ...["-p", `${port}`, "-t", perftests[api] ?? "", "-s", `${bytes}`, "-n", `${iterations}`, "-w", `${warmup}`],
    ...(memory === "device" ? ["-m", "cuda"] : []),
    ...(errors === "peer" ? ["-e"] : []),
    ...(progress === "event" ? ["-E", "sleep"] : []),
    "-f",
    "-v",
  ];
}

/**
 * The environment of one side of ucx_perftest, so that it uses what this program uses. It has no option for a GPU, and
 * takes the first that it sees for its server and the second, if there is one, for its client: so each sees only one.
 *
 * @param ordinal of its GPU, among those that this process sees
 */
export function perftestEnvironment(
  { memory, errors }: Pick<SendRecvOptions, "memory" | "errors">,
  ordinal: number,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const gpu = own["CUDA_VISIBLE_DEVICES"]?.split(",")[ordinal]?.trim() ?? `${ordinal}`;
  return {
    // Causeway's default, too. UCX's rules out shared memory where the peer's end is detected.
    ...(errors === "peer" ? { UCX_MM_ERROR_HANDLING: "y" } : {}),
    ...own,
    ...(memory === "device" ? { CUDA_VISIBLE_DEVICES: gpu } : {}),
  };
}

/** What another program does otherwise than these options say, because it has no such option. */
export function differencesOf(baseline: Baseline, options: SendRecvOptions): string[] {
  const { ndim, sync, reuse, memory, progress, address } = options;
  const differences: readonly (readonly [boolean, string])[] = baseline === "ucxx"
    ? [
      [ndim !== 1, "objects of shape (n,)"],
      [sync, "awaited with asyncio, not in place"],
      [memory === "device", "CuPy's memory"],
      [address !== "127.0.0.1", "at 127.0.0.1"],
    ]
    : [
      [ndim !== 1, "bytes without a shape"],
      [!reuse, "memory allocated once"],
      [memory === "device", "memory that is in no pool"],
      [progress === "adaptive", "polling, never asleep"],
      [address !== "127.0.0.1", "at 127.0.0.1, without a listener of UCX"],
    ];
  return differences.filter(([is]) => is).map(([, what]) => what);
}

/** Reads the median, the second number of the last line, in microseconds. @returns nanoseconds, or NaN */
export function readPerftest(printed: string): number {
  const [, median = "NaN"] = printed.trim().split("\n").at(-1)?.split(",") ?? [];
  return Number(median) * 1000;
}

async function runPerftest(options: SendRecvOptions): Promise<number> {
  const port = 20_000 + Math.floor(Math.random() * 12_000); // below the system's ephemeral ports
  const args = perftestArguments(options, port);
  const on = (cpu: number | null) => cpu === null ? [] : ["-c", `${cpu}`];
  const env = perftestEnvironment(options, options.serverDevice, process.env);
  const clientEnv = perftestEnvironment(options, options.clientDevice, process.env);
  const server = spawn("ucx_perftest", [...args, ...on(options.serverCpu)], { stdio: "ignore", env });
  try {
    for (let attempt = 0;; attempt++) {
      await delay(50); // until the server listens
      const client = await run("ucx_perftest", ["127.0.0.1", ...args, ...on(options.clientCpu)], clientEnv);
      const median = readPerftest(client.stdout);
      if (client.code === 0 && median > 0) return median;
      if (attempt === 100 || server.exitCode !== null) {
        throw new BaselineError(`ucx_perftest has failed with exit code ${client.code}: ${client.stderr.trim()}`);
      }
    }
  } finally {
    server.kill("SIGKILL");
  }
}

/** The first interpreter that has UCXX. */
async function findUcxx(): Promise<string> {
  const searched: string[] = [];
  for (const { executable } of findInterpreters()) {
    const { code } = await run(executable, ["-c", "import ucxx.benchmarks.send_recv"]);
    if (code === 0) return executable;
    searched.push(executable);
  }
  throw new BaselineError(
    `Cannot run UCXX: no Python has it (${searched.join(", ") || "none found"}). ` +
      "Get it: pip install ucxx-cu13, and name its interpreter in CAUSEWAY_PYTHON",
  );
}

const ucxxModes = { adaptive: "thread", busy: "polling", event: "blocking" } as const;

/** The arguments of UCXX's benchmark for the same round trips. */
export function ucxxArguments(options: SendRecvOptions): string[] {
  const { bytes, buffers, iterations, warmup, serverCpu, clientCpu, memory, serverDevice, clientDevice } = options;
  return [
    ...["-n", `${bytes}`, "-x", `${buffers}`, "-s", "127.0.0.1"],
    ...["--n-iter", `${iterations}`, "--n-warmup-iter", `${warmup}`],
    ...[`--server-cpu-affinity=${serverCpu ?? -1}`, `--client-cpu-affinity=${clientCpu ?? -1}`],
    ...(memory === "device" ? ["-o", "cupy", "-d", `${serverDevice}`, "-e", `${clientDevice}`] : ["-o", "numpy"]),
    ...["--progress-mode", ucxxModes[options.progress]],
    ...(options.reuse ? ["--reuse-alloc"] : []),
    ...(options.errors === "none" ? ["--no-error-handling"] : []),
    "--no-detailed-report",
  ];
}

/** @returns the median that UCXX's benchmark has printed, in nanoseconds, or NaN */
export function readUcxx(printed: string): number {
  return Number(/^Latency \(median\) +\| (\d+) ns$/m.exec(printed)?.[1] ?? NaN);
}

async function runUcxx(python: string, options: SendRecvOptions): Promise<number> {
  const { code, stdout, stderr } = await run(python, ["-m", "ucxx.benchmarks.send_recv", ...ucxxArguments(options)]);
  const median = readUcxx(stdout);
  if (code !== 0 || !(median > 0)) {
    throw new BaselineError(`UCXX's benchmark has failed with exit code ${code}: ${stderr.trim().split("\n").at(-1)}`);
  }
  return median;
}
