/** What doctor reports is true of this machine. */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import "../../mod.ts";
import { type DoctorReport, examine, format } from "../../src/cli/doctor.ts";
import { patiently, runScript } from "../support/child.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const run = "deno" in process.versions ? ["run", "-A", main] : [main];

function doctor(args: string[], env: Record<string, string> = {}): string {
  return execFileSync(process.execPath, [...run, "doctor", ...args], {
    encoding: "utf8",
    env: { ...process.env, ...env },
  });
}

test("the report names this runtime, and every library is either open or explained", () => {
  const report = examine();
  assertEquals(report.runtime.version, process.versions["bun"] ?? process.versions["deno"]);
  assertEquals(report.libraries.map(({ name }) => name), ["libcuda", "libcudart", "libnvrtc", "libucp", "libpython"]);
  const mapped = readFileSync("/proc/self/maps", "utf8");
  for (const { name, path, version, problem, searched, cost, fix } of report.libraries) {
    if (problem === null) {
      assertMatch(version ?? "", /^\d+\.\d+/, name);
      assert(path?.startsWith("/"), `${name}: ${path}`);
      assertStringIncludes(mapped, (path ?? "").split("/").at(-1)?.split(".so")[0] ?? name);
    } else {
      assertEquals(path, null);
      assert(searched.length > 0 && cost !== "" && fix !== "", name);
    }
  }
});

test("the table and --json say the same", () => {
  const json: DoctorReport = JSON.parse(doctor(["--json"]));
  const text = doctor([]);
  for (const { name, version, path } of json.libraries) {
    assertStringIncludes(text, path === null ? `missing  ${name}` : `${version}  ${path}`);
  }
  assertStringIncludes(text, json.ucx === null ? "none" : json.ucx.transports.join(", "));
  const cuda = json.ucx?.hasCuda === true ? "with CUDA" : "without CUDA: GPU memory is refused";
  if (json.ucx !== null) assertStringIncludes(text, cuda);
});

test("UCX's complaints are not part of the JSON", () => {
  const json: DoctorReport = JSON.parse(doctor(["--json"], { UCX_TLS: "nonesuch" }));
  assertEquals(json.ucx, null);
});

test("a missing library is listed with what it costs and what gets it; the exit code stays 0", () => {
  const text = doctor([], { CAUSEWAY_LIBUCP: "/nonexistent/libucp.so.0" });
  assertMatch(text, /missing {2}libucp +no messages to other processes/);
  // To install another one would change nothing.
  assertStringIncludes(text, "get it: correct CAUSEWAY_LIBUCP, which is set, or unset it");
  const json: DoctorReport = JSON.parse(doctor(["--json"], { CAUSEWAY_LIBUCP: "/nonexistent/libucp.so.0" }));
  assertEquals(json.ucx, null);
  const ucp = json.libraries.find(({ name }) => name === "libucp");
  assertEquals(ucp?.searched.length, 1);
  assertStringIncludes(ucp?.searched[0] ?? "", "/nonexistent/libucp.so.0: cannot open shared object file");
});

test("a chosen interpreter that is not one is named, and not called missing from PATH", () => {
  const text = doctor([], { CAUSEWAY_PYTHON: "/nonexistent/python3" });
  assertStringIncludes(text, "none: CAUSEWAY_PYTHON names /nonexistent/python3, which is not an interpreter");
});

test("the checker that CAUSEWAY_CHECK requests is loaded with the command line", patiently, async () => {
  // doctor and the demo refused to open a GPU: the checker comes with the package, and they load only single rooms of
  // it.
  const { code, stdout, stderr } = await runScript(new URL("loaded.ts", import.meta.url));
  assertEquals(code, 0, stderr);
  assertStringIncludes(stdout, "1 checked");
});

// It said that the interpreter was none: to start it as a program, Deno would have needed more permissions.
test("the report is the same where Deno grants FFI alone", async () => {
  const main = new URL("../../src/cli/main.ts", import.meta.url);
  const ask = (permissions: string[]) => runScript(main, { args: ["doctor", "--json"], permissions });
  const [least, all] = await Promise.all([ask(["--allow-ffi"]), ask(["-A"])]);
  assertEquals(JSON.parse(least.stdout), JSON.parse(all.stdout), least.stderr);
});

test("two GPUs are shown as a table of which can read which", () => {
  const gpu = { name: "X", uuid: "GPU-0", pciBusId: "0000:00:06.0", computeCapability: "9.0", totalMemory: 8e9 };
  const report: DoctorReport = {
    ...examine(),
    cuda: { available: true, reason: "", driverVersion: "13.0" },
    gpus: [{ ...gpu, ordinal: 0, canAccess: [true, false] }, { ...gpu, ordinal: 1, canAccess: [true, true] }],
  };
  assertStringIncludes(format(report), "   0  yes  no\n   1  yes yes");
});
