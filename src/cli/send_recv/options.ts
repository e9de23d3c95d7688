/**
 * The options of `causeway send-recv`: those of UCXX's benchmark, and its own.
 *
 * @module
 */
import type { ProgressMode } from "../../ucx/mod.ts";
import { readArguments } from "../arguments.ts";
import { exitCodes, helpHint } from "../command.ts";
import { UsageError } from "../usage_error.ts";
import { parseBytes } from "./byte_counts.ts";

/** The kinds of memory that objects are in. */
export type ObjectMemory = "host" | "pinned" | "device";

/** The UCX interface by which objects travel. */
export type TransferApi = "tag" | "am" | "stream" | "rma";

/** A program that is measured alternately with this one. */
export type Baseline = "ucx_perftest" | "ucxx";

/** Which of the two processes this is. */
export type Role = "both" | "server" | "client";

/** The parsed options. */
export interface SendRecvOptions {
  /** Size of each object. */
  readonly bytes: number;
  /** Objects that travel in one message. */
  readonly buffers: number;
  readonly iterations: number;
  readonly warmup: number;
  /** The processor of each side; null to leave that to the system. */
  readonly serverCpu: number | null;
  readonly clientCpu: number | null;
  /** As given: the report uses the same word. */
  readonly objectType: string;
  readonly memory: ObjectMemory;
  readonly serverDevice: number;
  readonly clientDevice: number;
  readonly ndim: 1 | 3;
  readonly reuse: boolean;
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly role: Role;
  readonly api: TransferApi;
  readonly progress: ProgressMode;
  readonly errors: "peer" | "none";
  readonly sync: boolean;
  readonly verbose: boolean;
  readonly detailed: boolean;
  readonly json: boolean;
  readonly against: Baseline | null;
  /** How often each of the two is run. */
  readonly runs: number;
}

/** What `causeway send-recv --help` prints. */
export const sendRecvUsage = `Usage: causeway send-recv [options]

Measures how long it takes to send an object to a second process and receive it back, with the options and
the report of UCXX's benchmark (python -m ucxx.benchmarks.send_recv).

  -n, --n-bytes N              size of an object: 4096, 10 Mb, 1KiB (default 10 Mb)
  -x, --n-buffers N            objects in a message, received into new memory if more than 1; with --transfer-api tag
                               (default 1)
      --n-iter N               measured round trips (default 10)
      --n-warmup-iter N        warm-up round trips (default 10)
  -o, --object-type TYPE       numpy or host: memory of the C allocator (default numpy)
                               pinned: the host's, for a GPU; cupy or device: a GPU's
  -d, --server-dev N           the server's GPU (default 0)
  -e, --client-dev N           the client's GPU (default 0)
      --ndim 1|3               objects of shape (n,) or (n/4, 2, 2) (default 1)
      --reuse-alloc            allocate once; otherwise allocating and freeing is part of what is measured
  -b, --server-cpu-affinity N  the processor that the server runs on (default: any)
  -c, --client-cpu-affinity N  the processor that the client runs on (default: any)

      --transfer-api API       tag: tagged messages (default); am: active messages (also --enable-am)
                               stream: the endpoint's streams, which carry JavaScript's own memory, or, for other
                               memory (-o pinned, -o device), UCX's stream itself
                               rma: put into the server's memory, flush, and get it back
      --progress-mode MODE     how to wait: adaptive (default), busy (also polling), event (also blocking)
      --sync                   wait in place instead of awaiting; with --transfer-api tag
      --errors peer|none       whether the loss of the other side is detected (default peer);
                               the same on both sides; also --error-handling, --no-error-handling

      --server-only            run only the server, for a client on another machine
      --client-only            run only the client; needs --port
  -s, --server-address HOST    where the server listens and the client connects (default 127.0.0.1)
  -p, --port PORT              its port (default: any free port)

      --against PROGRAM        ucx_perftest or ucxx: also runs it, in turns, and adds the ratio
      --runs N                 with --against: how many times each of the two runs; the medians count (default 5)
  -v, --verbose                print every round trip as it completes, to standard error
      --no-detailed-report     leave the individual round trips out of the report
      --json                   the report as JSON
  -h, --help                   this text

Examples:
  causeway send-recv --n-bytes 1MiB --n-iter 100
  causeway send-recv --server-only --port 13337        on one machine, and on another one
  causeway send-recv --client-only -s HOST -p 13337

${exitCodes("a transfer failed or a program to compare with is missing")}`;

const text = { type: "string" } as const;
const flag = { type: "boolean" } as const;

const known = {
  "n-bytes": { ...text, short: "n" },
  "n-buffers": { ...text, short: "x" },
  "n-iter": text,
  "n-warmup-iter": text,
  "object-type": { ...text, short: "o" },
  object_type: text, // as UCXX spells it
  "server-dev": { ...text, short: "d" },
  "client-dev": { ...text, short: "e" },
  ndim: text,
  "reuse-alloc": flag,
  "server-cpu-affinity": { ...text, short: "b" },
  "client-cpu-affinity": { ...text, short: "c" },
  "transfer-api": text,
  "enable-am": flag,
  "progress-mode": text,
  sync: flag,
  errors: text,
  "error-handling": flag,
  "no-error-handling": flag,
  "server-only": flag,
  "client-only": flag,
  "server-address": { ...text, short: "s" },
  port: { ...text, short: "p" },
  backend: { ...text, short: "l" },
  against: text,
  runs: text,
  verbose: { ...flag, short: "v" },
  "no-detailed-report": flag,
  json: flag,
  help: { ...flag, short: "h" },
  "asyncio-wait": flag,
  "delay-progress": flag,
  "max-outstanding": text,
  "report-gil-contention": flag,
  "cuda-profile": flag,
  "rmm-init-pool-size": text,
  "rmm-managed-memory": flag,
} as const;

const inOneThread = "all of UCX runs in the thread that runs JavaScript";
const noRmm = "RMM is an allocator of RAPIDS. A GPU's memory comes from the driver's own pool here: -o device";
const noDelay = "a round trip has one operation in flight at a time, and waits for it";

/** UCXX's options that are not supported here, and why. */
const refused: { readonly [name: string]: string } = {
  "asyncio-wait": "asyncio is Python's. Every transfer is awaited here, unless --sync waits in place",
  "delay-progress": noDelay,
  "max-outstanding": noDelay,
  "report-gil-contention": "JavaScript has no global interpreter lock",
  "cuda-profile": "profilers are not started from here. `nsys profile` without --capture-range records all of it",
  "rmm-init-pool-size": noRmm,
  "rmm-managed-memory": noRmm,
};

const memories: { readonly [objectType: string]: ObjectMemory } = {
  numpy: "host",
  host: "host",
  pinned: "pinned",
  cupy: "device",
  device: "device",
};

const progressModes: { readonly [name: string]: ProgressMode } = {
  adaptive: "adaptive",
  busy: "busy",
  polling: "busy",
  event: "event",
  blocking: "event",
};

/** The most buffers that a receiver takes in one message. */
const maxBuffers = 1_000_000;

/** Reads the arguments. @returns null if help is requested @throws {UsageError} */
export function parseOptions(args: readonly string[]): SendRecvOptions | null {
  const values = parse(args);
  if (values.help === true) return null;
  for (const [name, reason] of Object.entries(refused)) {
    if (name in values) throw refuse(`--${name} is not supported: ${reason}.`);
  }
  const { backend = "causeway" } = values;
  if (backend !== "causeway") {
    throw refuse(`--backend ${backend} is not supported: this measures Causeway. --against ucxx runs UCXX beside it.`);
  }
  const options: SendRecvOptions = {
    bytes: bytesOf(values["n-bytes"]),
    buffers: count("n-buffers", values["n-buffers"], 1, 1, maxBuffers),
    iterations: count("n-iter", values["n-iter"], 10, 1),
    warmup: count("n-warmup-iter", values["n-warmup-iter"], 10, 0),
    serverCpu: processor("server-cpu-affinity", values["server-cpu-affinity"]),
    clientCpu: processor("client-cpu-affinity", values["client-cpu-affinity"]),
    ...objectsOf(once("object-type", values["object-type"], values.object_type) ?? "numpy"),
    serverDevice: count("server-dev", values["server-dev"], 0, 0),
    clientDevice: count("client-dev", values["client-dev"], 0, 0),
    ndim: oneOf("ndim", values.ndim ?? "1", { 1: 1, 3: 3 }),
    reuse: values["reuse-alloc"] === true,
    address: values["server-address"] ?? "127.0.0.1",
    port: count("port", values.port, 0, 1, 65535),
    role: roleOf(values["server-only"] === true, values["client-only"] === true),
    api: apiOf(values["transfer-api"], values["enable-am"] === true),
    progress: progressOf(values["progress-mode"] ?? "adaptive"),
    errors: errorsOf(values.errors, values["error-handling"] === true, values["no-error-handling"] === true),
    sync: values.sync === true,
    verbose: values.verbose === true,
    detailed: values["no-detailed-report"] !== true,
    json: values.json === true,
    against: values.against === undefined
      ? null
      : oneOf("against", values.against, { ucx_perftest: "ucx_perftest", ucxx: "ucxx" }),
    runs: count("runs", values.runs, 5, 1, 1000),
  };
  if (values.runs !== undefined && options.against === null) throw refuse("--runs needs --against PROGRAM.");
  checkTogether(options);
  return options;
}

function refuse(message: string): UsageError {
  return new UsageError(message, helpHint("send-recv"));
}

function parse(args: readonly string[]) {
  const { values, positionals } = readArguments(args, known, helpHint("send-recv"));
  if (positionals.length > 0) throw refuse(`send-recv does not take ${positionals[0]}`);
  return values;
}

/** Rejects combinations of options that are not supported. */
function checkTogether(options: SendRecvOptions): void {
  const { bytes, buffers, ndim, sync, api, memory, role, port, against } = options;
  if (ndim === 3 && bytes % 4 !== 0) {
    throw refuse(`--ndim 3 makes objects of shape (n/4, 2, 2): expected a multiple of 4 bytes, got ${bytes}.`);
  }
  if (sync && api !== "tag") throw refuse("--sync needs --transfer-api tag: nothing else waits in place.");
  if (buffers > 1 && (sync || api !== "tag")) {
    throw refuse(
      `--n-buffers ${buffers} is not supported with ${sync ? "--sync" : `--transfer-api ${api}`}: ` +
        "messages of several buffers are tagged, and awaited.",
    );
  }
  if (api === "stream") checkStream(options);
  if (api === "rma" && bytes === 0) throw refuse("--transfer-api rma needs at least one byte of memory to put into.");
  if (role === "client" && port === 0) throw refuse("--client-only needs the server's --port.");
  if (against === null) return;
  if (role !== "both") {
    throw refuse("--against runs both sides here: expected neither --server-only nor --client-only.");
  }
  if (memory === "pinned") throw refuse(`--against ${against} is not supported with pinned memory: it has none.`);
  if (against === "ucxx" && api !== "tag") {
    throw refuse(`--against ucxx is not supported with --transfer-api ${api}: UCXX's benchmark supports only tag.`);
  }
  if (against === "ucx_perftest" && buffers > 1) {
    throw refuse(
      `--against ucx_perftest is not supported with --n-buffers ${buffers}: it receives into preallocated memory. ` +
        "Use --against ucxx.",
    );
  }
  if (against === "ucx_perftest" && api === "rma") {
    throw refuse(
      "--against ucx_perftest is not supported with --transfer-api rma: its put test neither flushes nor gets.",
    );
  }
}

/** Rejects what a stream cannot carry. */
function checkStream({ bytes, ndim }: SendRecvOptions): void {
  if (bytes === 0) throw refuse("--transfer-api stream needs at least one byte: a stream has no empty messages.");
  if (ndim !== 1) throw refuse(`--ndim ${ndim} is not supported with --transfer-api stream: its bytes have no shape.`);
}

function oneOf<T>(name: string, given: string, choices: { readonly [name: string]: T }): T {
  const chosen = Object.hasOwn(choices, given) ? choices[given] : undefined;
  if (chosen === undefined) throw refuse(`--${name}: expected ${Object.keys(choices).join(" or ")}, got ${given}.`);
  return chosen;
}

/** Two spellings of one option: at most one may be given. */
function once(name: string, first: string | undefined, second: string | undefined): string | undefined {
  if (first !== undefined && second !== undefined) throw refuse(`--${name} is given twice, in two spellings.`);
  return first ?? second;
}

function count(name: string, given: string | undefined, otherwise: number, from: number, to = 1e9): number {
  if (given === undefined) return otherwise;
  const number = /^\d+$/.test(given) ? Number(given) : NaN;
  if (!(number >= from && number <= to)) {
    throw refuse(`--${name}: expected a whole number from ${from} to ${to}, got ${given}.`);
  }
  return number;
}

/** The number of a processor; -1 is UCXX's value for none. */
function processor(name: string, given: string | undefined): number | null {
  return given === undefined || given === "-1" ? null : count(name, given, 0, 0, 65535);
}

function bytesOf(given = "10 Mb"): number {
  const bytes = parseBytes(given);
  if (bytes === undefined) throw refuse(`--n-bytes: expected a number of bytes such as 4096 or 10 Mb, got ${given}.`);
  return bytes;
}

function objectsOf(objectType: string): Pick<SendRecvOptions, "objectType" | "memory"> {
  if (objectType === "rmm") throw refuse(`--object-type rmm is not supported: ${noRmm}.`);
  return { objectType, memory: oneOf("object-type", objectType, memories) };
}

function roleOf(isServer: boolean, isClient: boolean): Role {
  if (isServer && isClient) throw refuse("--server-only and --client-only: expected one of them.");
  return isServer ? "server" : isClient ? "client" : "both";
}

function apiOf(given: string | undefined, isAm: boolean): TransferApi {
  const api: TransferApi | undefined = given === undefined
    ? undefined
    : oneOf("transfer-api", given, { tag: "tag", am: "am", stream: "stream", rma: "rma" });
  if (isAm && (api ?? "am") !== "am") throw refuse(`--enable-am and --transfer-api ${api}: expected one of them.`);
  return api ?? (isAm ? "am" : "tag");
}

function progressOf(given: string): ProgressMode {
  if (given.startsWith("thread")) {
    throw refuse(`--progress-mode ${given} is not supported: ${inOneThread}. Expected adaptive, busy or event.`);
  }
  return oneOf("progress-mode", given, progressModes);
}

function errorsOf(given: string | undefined, on: boolean, off: boolean): "peer" | "none" {
  const named = given === undefined ? [] : [oneOf("errors", given, { peer: "peer", none: "none" } as const)];
  const all = new Set([...named, ...(on ? ["peer"] as const : []), ...(off ? ["none"] as const : [])]);
  if (all.size > 1) throw refuse("--errors, --error-handling and --no-error-handling contradict each other.");
  return [...all][0] ?? "peer";
}
