/** `causeway send-recv` from end to end, and the programs that it is compared with. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import {
  differencesOf,
  perftestArguments,
  perftestEnvironment,
  readPerftest,
  readUcxx,
  ucxxArguments,
} from "../../../src/cli/send_recv/baseline.ts";
import { run } from "../../../src/cli/child_process.ts";
import { differenceOf, termsOf } from "../../../src/cli/send_recv/server.ts";
import { ProgressLine, progressLine } from "../../../src/cli/progress_line.ts";
import { patiently, startScript } from "../../support/child.ts";
import { needs } from "../../support/needs.ts";
import { testOnce } from "../../support/once.ts";
import { scaled } from "../../support/property.ts";
import { main, options, sendRecv, ucxLine } from "./command.ts";
import { masked, ofUcxx } from "./ucxx_report.ts";

test("synchronous waits move the same bytes, between two processes", patiently, async () => {
  const { code, stdout, stderr } = await sendRecv(["-n", "5000", "--n-iter", "20", "--sync", "--errors", "none"]);
  assertEquals([code, stderr], [0, ""]); // the command compares what came back
  assertMatch(stdout, /\nSync +\| True\nError handling +\| False\n/);
});

test("streams end before their endpoints: UCX without error handling survives nothing else", patiently, async () => {
  for (let run = 0; run < scaled(4); run++) {
    const args = ["-n", "1000", "--n-iter", "5", "--transfer-api", "stream", "--errors", "none"];
    const { code, stderr } = await sendRecv(args);
    assertEquals([code, stderr], [0, ""]);
  }
});

/** Kills a process that is still running after a test. */
async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

/** A listening server in its own process. */
async function startServer(args: readonly string[]) {
  const child = startScript(main, { args: ["send-recv", "--server-only", "--json", ...args] });
  let [stdout, stderr] = ["", ""];
  const listening = Promise.withResolvers<number>();
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    if (stdout.includes("\n")) listening.resolve(JSON.parse(stdout).server_port);
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => stderr += text);
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) => {
    child.once("close", (code) => {
      listening.reject(new Error(`The server ended with ${code}: ${stderr}`));
      resolve({ code, stderr: stderr.replace(ucxLine, "") });
    });
  });
  return { child, ended, port: await listening.promise, [Symbol.asyncDispose]: () => stop(child) };
}

test("server and client may be two commands", patiently, async () => {
  const same = ["-n", "2000", "--n-iter", "2"];
  await using server = await startServer(same);
  const { ended, port } = server;
  const client = await sendRecv([...same, "--client-only", "-p", `${port}`]);
  assertEquals([client.code, client.stderr], [0, ""]);
  assert(client.stdout.startsWith(`Client connecting to server at 127.0.0.1:${port}\nRoundtrip benchmark\n`));
  assertEquals(await ended, { code: 0, stderr: "" });
});

test("two commands with different options both say so", patiently, async () => {
  await using server = await startServer(["-n", "2000"]);
  const { ended, port } = server;
  const client = await sendRecv(["-n", "3000", "--client-only", "-p", `${port}`]);
  const difference = "causeway: The server has --n-bytes 2000, the client 3000: both sides need the same.\n";
  assertEquals([client.code, client.stderr], [2, difference]);
  assertEquals(await ended, { code: 2, stderr: difference });
  for (const args of [["--n-buffers", "3"], ["--n-iter", "3"], ["--n-warmup-iter", "3"], ["--transfer-api", "am"]]) {
    assertStringIncludes(differenceOf(termsOf(options()), termsOf(options(...args))) ?? "", `${args[0]} `);
  }
  assertEquals(differenceOf(termsOf(options()), termsOf(options("-o", "device", "--reuse-alloc"))), null);
});

test("a server that is killed while it serves ends the client with an error", patiently, async () => {
  const same = ["-n", "1000", "--n-iter", "100000000", "-v"];
  await using server = await startServer(same);
  const { child, ended, port } = server;
  const client = startScript(main, {
    args: ["send-recv", ...same, "--client-only", "-p", `${port}`],
  });
  await using _ = { [Symbol.asyncDispose]: () => stop(client) };
  let stderr = "";
  client.stdout?.resume();
  client.stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (stderr === "") child.kill("SIGKILL"); // it has reported a completed round trip
    stderr = (stderr + text).slice(-1000);
  });
  const code = await new Promise((resolve) => client.once("close", resolve));
  await ended;
  assertEquals(code, 1, stderr);
  assertMatch(stderr, /\ncauseway: .*(CONNECTION_RESET|ENDPOINT_TIMEOUT)/);
});

test("a port at which nothing listens is an error, and one that is taken", patiently, async () => {
  await using server = await startServer([]);
  const { child, ended, port } = server;
  const second = await sendRecv(["-p", `${port}`]);
  assertEquals(second.code, 1);
  assertMatch(
    second.stderr,
    /^causeway: Cannot listen at .*EADDRINUSE.*, or 0 for any free port.*\ncauseway: The server ended before it was done \(exit code 1\)\n$/s,
  );
  child.kill("SIGKILL");
  await ended;
  const { code, stderr } = await sendRecv(["--client-only", "-p", `${port}`]);
  assertEquals(code, 1);
  assertMatch(stderr, /^causeway: /);
});

test("every round trip is printed when it is over, if asked for", patiently, async () => {
  const { code, stderr } = await sendRecv(["-n", "10", "--n-iter", "2", "--n-warmup-iter", "1", "-v"]);
  assertEquals(code, 0);
  assertMatch(stderr, /^warm-up 0 +\| .*B\/s, \d+ns\n0 +\| .*ns\n1 +\| .*ns\n$/);
});

test("a progress line is written now and then, and erased", () => {
  const written: string[] = [];
  {
    using line = new ProgressLine(4000, (text) => written.push(text));
    for (let i = 0; i <= 4000; i++) line.update(i);
  }
  assertEquals(written[0], `\r[${".".repeat(40)}] 0/4000`);
  assertEquals(written.at(-1), "\r\x1b[K");
  assert(written.length < 20, `${written.length} writes`);
  assertEquals(progressLine(5, 10), `[${"#".repeat(20)}${".".repeat(20)}] 5/10`);
  assertEquals(progressLine(10, 10), `[${"#".repeat(40)}] 10/10`);
});

test("a GPU's memory without a GPU is refused", patiently, async () => {
  const { code, stderr } = await sendRecv(["-o", "device", "-n", "8"], { CUDA_VISIBLE_DEVICES: "-1" });
  assertEquals(code, 1);
  assertMatch(stderr, /^causeway: Cannot use /);
});

test("the other programs get the same options", () => {
  const asked = options(
    "-n",
    "64",
    "--n-iter",
    "7",
    "--n-warmup-iter",
    "3",
    "-c",
    "1",
    "--reuse-alloc",
    "--errors",
    "none",
  );
  assertEquals(perftestArguments(asked, 5).join(" "), "-p 5 -t tag_lat -s 64 -n 7 -w 3 -f -v");
  assertStringIncludes(perftestArguments(options("--transfer-api", "am", "-n", "1"), 5).join(" "), "-t ucp_am_lat");
  assertStringIncludes(perftestArguments(options("--transfer-api", "stream"), 5).join(" "), "-t stream_lat");
  // GPUs, detecting errors and sleeping were once left out, and all three were compared with something else.
  const all = options("-o", "device", "-d", "2", "-e", "3", "--progress-mode", "event", "--errors", "peer");
  assertStringIncludes(perftestArguments(all, 5).join(" "), " -m cuda -e -E sleep -f -v");
  const busy = perftestArguments(options("--progress-mode", "busy"), 5).join(" ");
  assertEquals([busy.includes(" -e "), busy.includes("-E")], [true, false]);
  const ucxx = ucxxArguments(asked).join(" ");
  for (
    const part of [
      "-n 64 -x 1 -s 127.0.0.1 --n-iter 7 --n-warmup-iter 3 --server-cpu-affinity=-1 --client-cpu-affinity=1",
      "-o numpy --progress-mode thread --reuse-alloc --no-error-handling --no-detailed-report",
    ]
  ) assertStringIncludes(ucxx, part);
  assertStringIncludes(ucxxArguments(options("-x", "5", "-n", "9")).join(" "), "-n 9 -x 5 ");
  assertStringIncludes(ucxxArguments(options("-o", "cupy", "-e", "1")).join(" "), "-o cupy -d 0 -e 1");
  assertEquals(readUcxx(ofUcxx), 44819);
  assertEquals(readUcxx("nothing"), NaN);
  assertEquals(readPerftest("header\n1000,0.681,0.70,0.70,1.0,1.0,2,2\n"), 681);
  assertEquals(readPerftest(""), NaN);
});

test("each side of ucx_perftest sees the GPU that it is given, and shared memory where Causeway uses it", () => {
  const gpuOf = (ordinal: number, visible?: string) =>
    perftestEnvironment(options("-o", "device"), ordinal, { CUDA_VISIBLE_DEVICES: visible })["CUDA_VISIBLE_DEVICES"];
  assertEquals([gpuOf(0), gpuOf(3)], ["0", "3"]);
  assertEquals([gpuOf(1, "4, 6"), gpuOf(0, "GPU-1a2b")], ["6", "GPU-1a2b"]);
  const ofHost = (...args: string[]) => perftestEnvironment(options(...args), 1, { CUDA_VISIBLE_DEVICES: "5" });
  assertEquals(ofHost(), { CUDA_VISIBLE_DEVICES: "5", UCX_MM_ERROR_HANDLING: "y" });
  assertEquals(ofHost("--errors", "none"), { CUDA_VISIBLE_DEVICES: "5" });
  const own = { UCX_MM_ERROR_HANDLING: "n" };
  assertEquals(perftestEnvironment(options(), 0, own), own);
});

test("what another program does otherwise than asked is said", () => {
  const same = ["--reuse-alloc", "--progress-mode", "busy"];
  const differ = (baseline: "ucxx" | "ucx_perftest", ...args: string[]) => differencesOf(baseline, options(...args));
  assertEquals([differ("ucx_perftest", ...same), differ("ucxx")], [[], []]);
  assertEquals(differ("ucxx", "--ndim", "3", "-n", "8", "--sync"), [
    "objects of shape (n,)",
    "awaited with asyncio, not in place",
  ]);
  assertEquals(differ("ucx_perftest", "--ndim", "3", "-n", "8"), [
    "bytes without a shape",
    "memory allocated once",
    "polling, never asleep",
  ]);
  assertEquals(differ("ucx_perftest", ...same, "-o", "device", "-s", "::1"), [
    "memory that is in no pool",
    "at 127.0.0.1, without a listener of UCX",
  ]);
  assertEquals(differ("ucxx", "-o", "device", "-s", "::1"), ["CuPy's memory", "at 127.0.0.1"]);
});

const hasPerftest = (await run("ucx_perftest", ["-h"])).code !== null;
const getPerftest = "ucx_perftest is missing: apt-get install ucx-utils";

test(...needs(hasPerftest ? null : getPerftest, "the ratio to ucx_perftest is that of the two medians"), async () => {
  const args = ["-n", "4096", "--n-iter", "200", "--reuse-alloc", "--json", "--against", "ucx_perftest", "--runs", "2"];
  const { code, stdout, stderr } = await sendRecv([...args, "--no-detailed-report"]);
  assertEquals([code, stderr], [0, ""]);
  const { against, latency_median_ns, round_trips } = JSON.parse(stdout);
  assertEquals([against.name, against.runs, round_trips], ["ucx_perftest", 2, undefined]);
  assert(against.latency_median_ns > 50, `${against.latency_median_ns} ns`);
  assertEquals(against.latency_ratio, latency_median_ns / against.latency_median_ns);
  assertEquals(against.differences, ["polling, never asleep"]);
});

test("a program that is not installed is an error that says how to get it", patiently, async () => {
  for (const [baseline, how] of [["ucx_perftest", "apt-get install ucx-utils"], ["ucxx", "CAUSEWAY_PYTHON"]] as const) {
    const { code, stdout, stderr } = await sendRecv(["--against", baseline], {
      PATH: "/nonexistent",
      CAUSEWAY_PYTHON: "/nonexistent",
    });
    assertEquals([code, stdout], [1, ""]);
    assertMatch(stderr, /^causeway: Cannot run /);
    assertStringIncludes(stderr, how);
  }
});

const python = process.env["CAUSEWAY_UCXX_PYTHON"] ?? "";
const getUcxx = "UCXX is not named: pip install ucxx-cu13 numpy, and CAUSEWAY_UCXX_PYTHON=its interpreter";

const ownFailure = "UCXX's benchmark has failed with exit code 1: AssertionError";

testOnce(
  ...needs(python === "" ? getUcxx : null, "the real UCXX runs for comparison, and its report has the same keys"),
  async () => {
    const args = ["-n", "1000", "-x", "2", "--n-iter", "3", "--against", "ucxx", "--runs", "2"];
    // UCXX's own benchmark fails an assertion now and then where the machine is busy: its server's exit code.
    let compared = await sendRecv(args, { CAUSEWAY_PYTHON: python });
    for (let retries = 4; retries > 0 && compared.stderr.includes(ownFailure); retries--) {
      compared = await sendRecv(args, { CAUSEWAY_PYTHON: python });
    }
    const { code, stdout, stderr } = compared;
    assertEquals([code, stderr], [0, ""]);
    assertMatch(stdout, /\nAgainst +\| ucxx, 2 runs of each in turns\nIts latency \(median\) +\| \d+(\.5)? ns\n/);
    const theirs = await run(python, [
      "-m",
      "ucxx.benchmarks.send_recv",
      "-n",
      "1000",
      "--n-iter",
      "3",
      "-s",
      "127.0.0.1",
    ]);
    assertEquals(masked(theirs.stdout), masked(ofUcxx));
  },
);

test("a server whose client's process has ended ends, too", patiently, async () => {
  const client = startScript(main, { args: ["send-recv", "--n-iter", "100000000", "-n", "10", "-v"] });
  await using _ = { [Symbol.asyncDispose]: () => stop(client) };
  client.stdout?.resume();
  await new Promise<void>((resolve) => client.stderr?.once("data", () => resolve()));
  const children = readFileSync(`/proc/${client.pid}/task/${client.pid}/children`, "utf8").trim().split(" ");
  assertEquals(children.length, 1);
  client.kill("SIGKILL");
  const isThere = () => {
    try {
      return !/^State:\s+Z/m.test(readFileSync(`/proc/${children[0]}/status`, "utf8"));
    } catch {
      return false;
    }
  };
  for (const end = performance.now() + 20_000; isThere() && performance.now() < end;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assertEquals(isThere(), false);
});
