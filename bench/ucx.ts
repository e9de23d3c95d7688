/**
 * Messages between two processes of this machine, beside UCX's own benchmark in C, `ucx_perftest` (Debian's package
 * ucx-utils), in the same error mode: alternating, five times each, the median of each. A row counts only if C's own
 * runs are within 20% of each other. It never pauses, so processes that sleep between two messages are compared with
 * bare calls of libucp that sleep in `poll` (`ucx_bare.ts`), and so are the runtime's own sockets (`ucx_socket.ts`) and
 * pipes that are watched as a worker watches UCX (`ucx_watch.ts`).
 * What has no counterpart is in `ucx_alone.ts`, and printed first.
 *
 * Usage: `ucx.ts [--rounds=5] [--gpu | --gpus] [filter]`. `filter`: part of the name of a row; `--gpu`: a GPU's memory
 * alone, both processes on the first one; `--gpus`: each on one of its own.
 *
 * @module
 */
import { spawn, spawnSync } from "node:child_process";
import { cpus } from "node:os";
import process from "node:process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { alone } from "./ucx_alone.ts";
import type { Job } from "./ucx_peer.ts";

const isBun = process.versions["bun"] !== undefined;

/**
 * One comparison: at most `factor` times C's value plus `plus` microseconds; for a rate, at least `factor` times C's.
 */
interface Row extends Omit<Job, "role"> {
  readonly name: string;
  readonly tls: string;
  /** The memory that the client sends from, if it is of another kind. */
  readonly from?: Job["memory"];
  readonly factor: number;
  readonly plus: number;
}

const kib = 1024;
const mib = kib * kib;

function latency(tls: string, bytes: number, how: Job["how"], count: number, factor: number, plus = 0): Row {
  const size = bytes >= mib ? `${bytes / mib} MiB` : bytes >= kib ? `${bytes / kib} KiB` : `${bytes} B`;
  const withoutUcx = { socket: "the runtime's own Unix sockets", watch: "watched pipes" } as const;
  const name = how === "socket" || how === "watch"
    ? `${withoutUcx[how]} ${size}, awaited`
    : `${tls === "tcp" ? "tcp" : "shared memory"} ${size}, ${how}`;
  return {
    name,
    tls,
    bytes,
    how,
    count,
    factor,
    plus,
    test: "latency",
    progress: "adaptive",
    pending: 0,
    memory: "host",
    by: "address",
    errors: "peer",
  };
}

const sm = "self,sm";

function rate(how: "sync" | "awaited" | "bare"): Row {
  const ways = { sync: "one after the other", awaited: "64 at a time, awaited", bare: "64 at a time, bare calls" };
  const name = `message rate, shared memory, 8 B, ${ways[how]}`;
  return {
    name,
    tls: sm,
    bytes: 8,
    how,
    count: 3_000_000, // in the first half million the runtimes still compile
    factor: 0.5,
    plus: 0,
    test: "rate",
    progress: "adaptive",
    pending: 0,
    memory: "host",
    by: "address",
    errors: "peer",
  };
}

/** Milliseconds between two round trips in which both processes sleep. */
const gap = 5;

/** The same between processes that have slept until the message. */
function asleep(row: Row): Row {
  return {
    ...row,
    gap,
    progress: "event",
    count: 300,
    factor: 1,
    plus: 30,
    name: `${row.name}, asleep, beside bare calls`,
  };
}

/** The same through a listener, over the transports that UCX chooses: within `goal` microseconds. */
function listening(row: Row, goal: number): Row {
  return { ...row, by: "listener", tls: "all", factor: 0, plus: goal, name: `${row.name}, by a listener` };
}

/** The same where the peer's exit is not detected: large messages then take other paths. */
function withoutErrors(row: Row): Row {
  return { ...row, errors: "none", name: `${row.name}, errors none` };
}

const rows: readonly Row[] = [
  latency("tcp", 1, "sync", 20_000, 1.2),
  latency("tcp", 1, "awaited", 20_000, 1.4),
  latency("tcp", 8 * kib, "awaited", 15_000, 1.15),
  latency("tcp", mib, "awaited", 600, 1.05),
  withoutErrors(latency("tcp", mib, "awaited", 600, 1.05)),
  latency(sm, 1, "sync", 200_000, 1, isBun ? 0.2 : 0.6),
  latency(sm, 1, "awaited", 200_000, 1, isBun ? 1.0 : 1.8),
  latency(sm, 8 * kib, "sync", 50_000, 1.3),
  latency(sm, mib, "awaited", 1_000, 1.1),
  withoutErrors(latency(sm, mib, "awaited", 1_000, 1.1)),
  listening(latency(sm, 8 * kib, "sync", 50_000, 1), 1.5),
  asleep(latency("tcp", 1, "awaited", 300, 1)),
  asleep(latency(sm, 1, "awaited", 300, 1)),
  asleep(latency(sm, 1, "socket", 300, 1)), // the runtime's own floor
  asleep(latency(sm, 1, "watch", 300, 1)), // what a worker adds to it without UCX
  rate("sync"),
  rate("awaited"),
  rate("bare"),
  // The floors of the rows above.
  latency("tcp", 1, "bare", 20_000, 1.2),
  latency("tcp", 8 * kib, "bare", 15_000, 1.15),
  latency("tcp", mib, "bare", 600, 1.05),
  latency(sm, 1, "bare", 200_000, 1, isBun ? 0.2 : 0.6),
  latency(sm, mib, "bare", 1_000, 1.1),
  withoutErrors(latency("tcp", mib, "bare", 600, 1.05)),
  withoutErrors(latency(sm, mib, "bare", 1_000, 1.1)),
  latency(sm, 8 * kib, "bare", 50_000, 1.3),
  // UCX chooses the transports, as it does for a listener's connections.
  { ...latency(sm, 8 * kib, "bare", 50_000, 0, 1.5), tls: "all", name: "all transports 8 KiB, bare" },
];

/** Messages in GPU memory, both processes on the first GPU. */
function onGpu(memory: Job["memory"], bytes: number, how: Job["how"], count: number, share?: number): Row {
  const row = latency("all", bytes, how, count, share ?? 1, share === undefined ? 2 : 0);
  const size = row.name.slice("shared memory ".length);
  const test = share === undefined ? "latency" : "rate";
  return {
    ...row,
    test,
    memory,
    errors: "none",
    name: `${memory} ${size}${test === "rate" ? ", 64 at a time" : ""}`,
  };
}

/** The same where the peer's exit is detected, which is the default. */
function noticing(row: Row): Row {
  return { ...row, errors: "peer", name: `${row.name}, errors peer` };
}

/** The same, sent from another kind of memory than it is received into. */
function from(source: Job["memory"], row: Row): Row {
  return { ...row, from: source, name: `${source} to ${row.name}` };
}

const gpuRows: readonly Row[] = [
  onGpu("device", 8, "sync", 20_000),
  onGpu("device", 8, "awaited", 20_000),
  onGpu("device", 8, "bare", 20_000), // the floor
  onGpu("device", mib, "awaited", 100_000, 0.9),
  onGpu("device", mib, "bare", 100_000, 0.9), // the floor
  onGpu("device", 64 * mib, "awaited", 400, 0.97),
  noticing(onGpu("device", 64 * mib, "awaited", 400, 0.97)),
  onGpu("pool", 8, "awaited", 20_000),
  onGpu("pool", 8, "bare", 20_000), // what UCX does with it by itself
  onGpu("pool", mib, "awaited", 20_000, 0.8),
  onGpu("pool", 64 * mib, "awaited", 400, 0.8),
  noticing(onGpu("pool", 64 * mib, "awaited", 400, 0.8)),
  from("pinned", onGpu("device", 64 * mib, "awaited", 100, 0.97)), // as C registers its host memory with CUDA
  from("pinned", onGpu("pool", 64 * mib, "awaited", 100, 0.8)),
  onGpu("managed", 64 * mib, "awaited", 50, 0.97),
  onGpu("pinned", 64 * mib, "awaited", 50, 0.97),
];

/** ucx_perftest's names for the memory; it has no pool and no page-locked memory. */
const perftestMemory = { host: "host", pinned: "host", managed: "cuda-managed", pool: "cuda", device: "cuda" } as const;

/**
 * Pins a process to its half of the processors. Of two that is one, which C's thread needs and ours shares with the
 * runtime's compiler and collector; of many, both have what they need.
 */
function pinned(half: number, command: string, args: readonly string[]): [string, string[]] {
  const each = cpus().length >> 1;
  if (each === 0) return [command, [...args]];
  return ["taskset", ["-c", `${half * each}-${(half + 1) * each - 1}`, command, ...args]];
}

/** The GPUs visible to a process: with `--gpus`, each has its own. */
function visible(role: number): Record<string, string> {
  return values.gpus ? { CUDA_VISIBLE_DEVICES: String(role) } : {};
}

/** Milliseconds after which a process without news is killed: two minutes. */
const limit = 120_000;

const scripts = {
  sync: "ucx_peer.ts",
  awaited: "ucx_peer.ts",
  bare: "ucx_bare.ts",
  socket: "ucx_socket.ts",
  watch: "ucx_watch.ts",
} as const;

/** Runs the two processes of a job, and returns what the client measured. */
async function ours({ name: _, tls, factor: _factor, plus: _plus, from, ...job }: Row): Promise<number> {
  const script = fileURLToPath(new URL(scripts[job.how], import.meta.url));
  const runtime = isBun
    ? ["run", script]
    : ["run", "-A", "--no-check", "--quiet", "--no-lock", "--node-modules-dir=manual", script];
  const children = (["server", "client"] as const).map((role, cpu) => {
    const memory = role === "client" ? from ?? job.memory : job.memory;
    const [command, args] = pinned(cpu, process.execPath, [...runtime, JSON.stringify({ ...job, role, memory })]);
    const child = spawn(command, args, {
      stdio: ["pipe", "pipe", "inherit"],
      // UCX warns on the standard output, where the address is expected.
      env: { ...process.env, UCX_TLS: tls, UCX_MM_ERROR_HANDLING: "y", UCX_LOG_LEVEL: "error", ...visible(cpu) },
      timeout: limit,
    });
    return { child, lines: createInterface({ input: child.stdout })[Symbol.asyncIterator]() };
  });
  const addresses = await Promise.all(children.map(async ({ lines }) => (await lines.next()).value));
  children.forEach(({ child }, i) => child.stdin.end(`${addresses[1 - i]}\n`));
  const results = await Promise.all(children.map(async ({ lines }) => JSON.parse((await lines.next()).value ?? "{}")));
  return results[1].measured;
}

let port = 13_400 + process.pid % 1000;

/** What a row is compared with: C, or bare calls. */
function theirs(row: Row): Promise<number> {
  return row.gap === undefined ? perftest(row) : ours({ ...row, how: "bare" });
}

/** The same by ucx_perftest: microseconds, or messages a second. */
async function perftest({ tls, bytes, count, test, memory, from, errors }: Row): Promise<number> {
  const at = String(port++);
  const common = ["-p", at, "-t", test === "latency" ? "tag_lat" : "tag_bw", "-s", String(bytes), "-f", "-v"];
  const kind = [
    "-m",
    `${perftestMemory[from ?? memory]},${perftestMemory[memory]}`,
    ...(errors === "peer" ? ["-e"] : []),
  ];
  const args = [...common, ...kind, "-n", String(count), "-w", String(Math.ceil(count / 5)), "-O", "64"];
  const env = { ...process.env, UCX_TLS: tls, UCX_MM_ERROR_HANDLING: "y", UCX_WARN_UNUSED_ENV_VARS: "n" };
  const [serverCommand, serverArgs] = pinned(0, "ucx_perftest", args);
  const server = spawn(serverCommand, serverArgs, { stdio: "ignore", env: { ...env, ...visible(0) }, timeout: limit });
  const [command, clientArgs] = pinned(1, "ucx_perftest", ["127.0.0.1", ...args]);
  let printed = "";
  for (let attempt = 0; attempt < 50; attempt++) {
    await new Promise((resolve) => setTimeout(resolve, 100)); // until the server listens
    const { status, stdout } = spawnSync(command, clientArgs, {
      env: { ...env, ...visible(1) },
      encoding: "utf8",
      timeout: limit,
    });
    printed = stdout;
    if (status === 0) break;
  }
  server.kill();
  const values = printed.trim().split("\n").at(-1)?.split(",").map(Number) ?? [];
  // iterations, 50%ile, average, overall latency; average, overall bandwidth; average, overall message rate
  return (test === "latency" ? values[1] : values[7]) ?? NaN;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? NaN;
}

const { values, positionals: [filter = ""] } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    gpu: { type: "boolean", default: false },
    gpus: { type: "boolean", default: false },
  },
});
const onGpus = values.gpu || values.gpus;
const rounds = Number(values.rounds);
if (!(rounds >= 1)) throw new RangeError(`Expected --rounds=K with a positive K, got ${values.rounds}`);
for (
  const row of [
    ...(["sync", "awaited", "bare"] as const).map((how) => latency(sm, 8, how, 50_000, 1)),
    asleep(latency("tcp", 8, "awaited", 300, 1)),
    asleep(latency(sm, 8, "awaited", 300, 1)),
  ]
) {
  const name = `${row.name.replace(", beside bare calls", "")}, with 10,000 receives pending`;
  if (!name.includes(filter) || onGpus) continue;
  const [none, many]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    none.push(await ours(row));
    many.push(await ours({ ...row, pending: 10_000 }));
  }
  const [one, other] = [median(none), median(many)];
  console.log(`${name}: ${other.toFixed(2)} us, ${one.toFixed(2)} us without: ratio ${(other / one).toFixed(2)}`);
}
const chosen = alone.filter(({ name }) => name.includes(filter) && !onGpus);
for (const { name, measure } of chosen) console.log(`${name}: ${await measure()}`);
const compared = (onGpus ? gpuRows : rows).filter(({ name }) => name.includes(filter));
if (compared.length === 0) process.exit(0); // nothing to compare with C's
if (spawnSync("ucx_perftest", ["-h"]).error !== undefined) {
  console.error("ucx_perftest is missing: apt-get install ucx-utils");
  process.exit(2);
}
console.log(`${isBun ? "Bun" : "Deno"}, ${cpus().length} x ${cpus()[0]?.model}`);
console.log("| | ours | C, or bare | ratio | goal | their spread |\n|---|---|---|---|---|---|");
let failed = 0;
for (const row of compared) {
  const [mine, other]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    mine.push(await ours(row));
    other.push(await theirs(row));
  }
  const [ours_, c] = [median(mine), median(other)];
  const spread = (Math.max(...other) - Math.min(...other)) / c;
  const isRate = row.test === "rate";
  const goal = c * row.factor + row.plus;
  const passes = isRate ? ours_ >= goal : ours_ <= goal;
  const format = (value: number) => {
    if (!isRate) return `${value.toFixed(2)} us`;
    return onGpus ? `${(value * row.bytes / 1e9).toFixed(1)} GB/s` : `${(value / 1e6).toFixed(2)} M/s`;
  };
  const than = row.gap === undefined ? "C" : "bare";
  const share = row.factor === 1 && row.plus > 0 ? than : row.factor > 0 ? `${row.factor} x C` : "";
  const asked = [share, row.plus > 0 ? `${row.plus} us` : ""].filter((part) => part !== "").join(" + ");
  const verdict = spread > 0.2 ? `${than} too unsteady` : passes ? "met" : "MISSED";
  if (spread <= 0.2 && !passes) failed++;
  console.log(
    `| ${row.name} | ${format(ours_)} | ${format(c)} | ${(ours_ / c).toFixed(2)} | ${asked}: ${verdict} ` +
      `| ${(spread * 100).toFixed(0)}% |`,
  );
}
process.exit(failed === 0 ? 0 : 1);
