import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import process from "node:process";
const job: any = {
  progress: "adaptive",
  memory: "host",
  by: "address",
  errors: "peer",
  pending: 0,
  test: "rate",
  how: process.argv[2] ?? "awaited",
  bytes: 8,
  count: Number(process.argv[3] ?? 1e6),
};
const prof = process.argv[4] !== "no";
const isBun = process.versions["bun"] !== undefined;
const kids = ["server", "client"].map((role, i) => {
  const script = job.how === "bare" ? "bench/ucx_bare.ts" : "bench/ucx_peer.ts";
  const rt = isBun
    ? [
      ...(prof
        ? ["--cpu-prof-md", "--cpu-prof-interval=300", "--cpu-prof-dir=/tmp/h/prof", `--cpu-prof-name=${role}.md`]
        : []),
      script,
    ]
    : ["run", "-A", "--no-check", script];
  const c = spawn("taskset", ["-c", String(i), process.execPath, ...rt, JSON.stringify({ ...job, role })], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, UCX_TLS: "self,sm", UCX_MM_ERROR_HANDLING: "y", UCX_LOG_LEVEL: "error" },
  });
  return { c, lines: createInterface({ input: c.stdout })[Symbol.asyncIterator]() };
});
const next = async (k: any) => (await k.lines.next()).value;
const a = await Promise.all(kids.map(next));
kids.forEach((k, i) => k.c.stdin.end(a[1 - i] + "\n"));
const r = await Promise.all(kids.map(next));
const m = JSON.parse(r[1]).measured;
console.log((m / 1e6).toFixed(3), "M/s", (1e6 / m).toFixed(2), "us each");
await Promise.all(kids.map((k) => new Promise((r) => k.c.once("close", r))));
process.exit(0);
