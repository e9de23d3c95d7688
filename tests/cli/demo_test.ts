/** The main job as a user runs it: as a command, in this runtime. */
import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import "../../mod.ts";
import { controlSummary } from "../../src/cli/control.ts";
import { DemoError, runDemo } from "../../src/cli/demo.ts";
import { primitiveDType } from "../../src/vortex/dtype.ts";
import { fileOf, headerOf, npy } from "../support/npy_files.ts";
import { FileWriter } from "../support/vortex/file_writer.ts";
import { primitiveNode } from "../support/vortex/nodes.ts";

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const run = "deno" in process.versions ? ["run", "-A"] : [];
const command = (script: string) => [process.execPath, ...run, path(script)] as const;

interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the command line program. `started` receives the process as soon as it runs. */
function causeway(
  args: string[],
  env?: Record<string, string>,
  started?: (pid: number) => void,
): Promise<Finished> {
  const [executable, ...parameters] = [...command("../../src/cli/main.ts"), ...args];
  const { promise, resolve, reject } = Promise.withResolvers<Finished>();
  const child = spawn(executable ?? "", parameters, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (text) => out += text);
  child.stderr.on("data", (text) => err += text);
  child.once("error", reject);
  child.once("close", (code) => resolve({ code, out, err }));
  if (child.pid !== undefined) started?.(child.pid);
  return promise;
}

test("the digits arrive, and the table says how", async () => {
  const { code, out, err } = await causeway(["demo"]);
  assertEquals([code, err], [0, ""]);
  for (const step of ["read digits.npy", "look at [::2, ..., ::-1]", "same address 0x", "send, until it has arrived"]) {
    assertStringIncludes(out, step);
  }
  assertStringIncludes(out, "Every byte and every sum is right.");
});

for (const transports of ["tcp", "sm", "self,sm,tcp", "all"]) {
  test(`the digits arrive with UCX_TLS=${transports}`, async () => {
    const { code, out, err } = await causeway(["demo"], { UCX_TLS: transports });
    assertEquals([code, err], [0, ""]);
    assertMatch(out, transports === "tcp" ? /host -> tcp\/\S+ -> host/ : /host -> \w+\/\S+.* -> host/);
  });
}

// UCX warned on standard output, where the first process expected an address.
test("UCX's warnings disturb nothing", async () => {
  const { code, out } = await causeway(["demo"], { UCX_CAUSEWAY_UNUSED: "1", UCX_WARN_UNUSED_ENV_VARS: "y" });
  assertEquals([code, out.includes("Every byte and every sum is right."), out.includes("UCX_CAUSEWAY")], [
    0,
    true,
    false,
  ]);
});

const arrays: { readonly [what: string]: () => string } = {
  "a scalar": () => npy(headerOf("<f8", []), new Uint8Array(Float64Array.of(-2.5).buffer)),
  "no elements": () => npy(headerOf("<i4", [3, 0, 2])),
  "one axis": () =>
    npy(headerOf("<i8", [5]), new Uint8Array(BigInt64Array.of(1n, -2n, 2n ** 62n, 4n, 2n ** 62n).buffer)),
  "Fortran order": () =>
    npy(headerOf("<f4", [3, 4, 2], "True"), new Uint8Array(Float32Array.from({ length: 24 }, (_, i) => i / 3).buffer)),
  "complex numbers": () =>
    npy(headerOf("<c16", [4, 3]), new Uint8Array(Float64Array.from({ length: 24 }, (_, i) => i - 0.5).buffer)),
  "halves, infinite and not a number": () =>
    npy(headerOf("<f2", [2, 3]), new Uint8Array(Uint16Array.of(0x3c00, 0x7c00, 0x7e00, 1, 0x8001, 0xfbff).buffer)),
};

for (const [what, make] of Object.entries(arrays)) {
  test(`${what}: carried and checked`, async () => {
    const lines: string[] = [];
    await runDemo({ file: make(), print: (line) => lines.push(line) });
    assertEquals(lines.at(-1), "\nEvery byte and every sum is right.");
  });
}

for (const version of ["0.40", "0.93"]) {
  test(`a column of a file that PyVortex ${version} wrote: carried and checked`, async () => {
    const lines: string[] = [];
    await runDemo({ file: path(`../data/vortex/written_by_${version}.vortex`), print: (line) => lines.push(line) });
    assertEquals(lines[1], `written_by_${version}.vortex: column row, int64 (9000)\n`);
    assertEquals(lines.at(-1), "\nEvery byte and every sum is right.");
  });
}

test("a bad file of Vortex is one line and exit code 2", async () => {
  const bytes = readFileSync(path("../data/vortex/written_by_0.93.vortex"));
  const writer = new FileWriter();
  const text = writer.flat(primitiveNode([1, 2], "i64", [true, false]), 2);
  const dtype = { kind: "struct", names: ["n"], fields: [primitiveDType("i64", true)], nullable: false } as const;
  const nulls = writer.finish({ dtype, layout: { id: "struct", rows: 2, children: [text] } });
  for (const [content, why] of [[bytes.subarray(0, 9999), "VTXF"], [nulls, "no column of numbers"]] as const) {
    const file = fileOf(content, ".vortex");
    const { code, out, err } = await causeway(["demo", file]);
    assertEquals([code, out], [2, ""]);
    assertMatch(err, new RegExp(`^causeway: .*${why}.*\n$`));
  }
});

test("a bad file is one line and exit code 2", async () => {
  for (const file of [fileOf(new Uint8Array(50)), npy(headerOf("|O", [3]), new Uint8Array(24)), "/nonexistent.npy"]) {
    const { code, out, err } = await causeway(["demo", file]);
    assertEquals([code, out], [2, ""]);
    assertMatch(err, /^causeway: Cannot (read|open) .*\n$/);
  }
});

test("big-endian numbers are carried as any others", async () => {
  const numbers = new DataView(new ArrayBuffer(96));
  for (let i = 0; i < 12; i++) numbers.setFloat64(8 * i, i * 1.25);
  const lines: string[] = [];
  const file = npy(headerOf(">f8", [4, 3]), new Uint8Array(numbers.buffer));
  await runDemo({ file, print: (line) => void lines.push(line) });
  assertStringIncludes(lines.at(-1) ?? "", "Every byte and every sum is right.");
});

test("bad arguments are exit code 2, and where to look", async () => {
  for (const args of [[], ["dance"], ["demo", "a", "b"], ["demo", "--loud"], ["doctor", "--jso"], ["doctor", "x"]]) {
    const { code, err } = await causeway(args);
    assertEquals(code, 2, args.join(" "));
    assertMatch(err, /Usage: causeway <command>|causeway( \w+)? --help lists the/);
  }
});

test("every command prints its help when asked to", async () => {
  for (const args of [["--help"], ["help"], ["demo", "--help"], ["doctor", "-h"], ["doctor", "--json", "--help"]]) {
    const { code, out, err } = await causeway(args);
    assertEquals([code, err], [0, ""], args.join(" "));
    assertMatch(out, /^Usage: causeway (<command>|demo|doctor)/);
  }
  const { code } = await causeway(["demo", "--", "--help"]); // a file
  assertEquals(code, 2);
});

test("one wrong byte on the other side is found", async () => {
  const peer = command("peer_corrupt.ts");
  await assertRejects(() => runDemo({ peer, print: () => {} }), DemoError, "Wrong bytes");
});

test("a second process that is killed before it answers ends the demo within 5 s", async () => {
  const start = performance.now();
  const peer = command("peer_dies.ts");
  await assertRejects(() => runDemo({ peer, print: () => {} }), DemoError, "second process");
  assert(performance.now() - start < 5000, `${performance.now() - start} ms`);
});

test("a failure because the second process is ending is reported as its end", async () => {
  const peer = command("peer_garbles.ts");
  await assertRejects(() => runDemo({ peer, print: () => {} }), DemoError, "second process ended");
});

test("a second process that cannot be started ends the demo", async () => {
  await assertRejects(() => runDemo({ peer: ["/nonexistent"], print: () => {} }), DemoError, "could not be started");
});

test("killing the second process half-way ends the command with a clear error and exit code 1 within 5 s", async () => {
  const large = npy(headerOf("|u1", [30000, 5000]), new Uint8Array(150_000_000));
  let killed = 0;
  const { code, err } = await causeway(["demo", large], { UCX_TLS: "tcp" }, (parent) => {
    const watch = setInterval(() => {
      const peer = readdirSync("/proc").find((pid) => /^\d+$/.test(pid) && isPeerOf(pid, parent));
      if (peer === undefined || killed > 0) return;
      clearInterval(watch);
      // Long enough for it to have connected to its peer and to be receiving, or about to.
      setTimeout(() => {
        killed = performance.now();
        process.kill(Number(peer), "SIGKILL");
      }, 150);
    }, 5);
  });
  const took = performance.now() - killed;
  assertEquals(code, 1, err);
  // UCX may say before that it could not connect.
  assertMatch(
    err,
    /^causeway: The (second process ended before it was done \(signal SIGKILL\)|connection .* broke)/m,
  );
  assert(killed > 0 && took < 5000, `${took} ms`);
});

function isPeerOf(pid: string, parent: number): boolean {
  try {
    const [, , , ppid] = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/\(.*\)/, "x").split(" ");
    return Number(ppid) === parent;
  } catch {
    return false; // it exited while we looked
  }
}

test("the control agrees with arithmetic done by hand", () => {
  const file = npy(headerOf("|u1", [3, 2]), Uint8Array.of(1, 2, 3, 4, 5, 6));
  const { sha256, sums } = controlSummary(readFileSync(file).subarray(128), {
    shape: [3, 2],
    isFortran: false,
    typestr: "|u1",
  });
  assertEquals(sums, ["8", "6"]); // rows 0 and 2, mirrored: (2, 1) and (6, 5)
  assertEquals(sha256, createHash("sha256").update(Uint8Array.of(2, 1, 6, 5)).digest("hex"));
});
