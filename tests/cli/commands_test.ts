/** Common to all commands: help, exit codes, and suggestions for a mistyped word. */
import { assert, assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { commands } from "../../src/cli/commands.ts";
import { print } from "../../src/cli/print.ts";
import { findBun } from "../../tools/bun.ts";
import { patiently } from "../support/child.ts";
import { testOnce } from "../support/once.ts";
import { scratchFolder } from "../support/scratch.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

/** The files that a source loads by its static imports, itself among them. */
function loadedBy(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (
    const [, target = ""] of readFileSync(file, "utf8").matchAll(/^(?:im|ex)port (?!type)[^;]*?from "(\.[^"]+)"/gm)
  ) {
    loadedBy(join(dirname(file), target), found);
  }
  return found;
}

test("help and errors load no room that a command needs for its work", () => {
  const rooms = new Set([...loadedBy(main)].map((file) => /src\/(\w+)\//.exec(file)?.[1] ?? "bindings"));
  assertEquals([...rooms].toSorted(), ["bindings", "cli", "ffi", "layout"]);
});
const runtime = "deno" in process.versions ? ["run", "-A", main] : [main];

function causeway(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [...runtime, ...args], { encoding: "utf8" });
  return { status, stdout, stderr };
}

test("--help lists every command, and every command explains itself", patiently, () => {
  const all = causeway("--help");
  assertEquals([all.status, all.stderr], [0, ""]);
  assertEquals(causeway("help").stdout, all.stdout);
  for (const { name, summary, help } of commands) {
    assertStringIncludes(all.stdout, summary);
    const own = causeway(name, "--help");
    assertEquals([own.status, own.stdout, own.stderr], [0, `${help}\n`, ""], name);
    for (const part of [`Usage: causeway ${name}`, "Example", "Exit codes: 0", "-h, --help"]) {
      assertStringIncludes(help, part);
    }
    assert(help.split("\n").every((line) => line.length <= 120), name);
  }
  assertEquals(causeway("help", "topology").stdout, causeway("topology", "-h").stdout);
});

test("--version is the package's", patiently, () => {
  const file = fileURLToPath(new URL("../../package.json", import.meta.url));
  const { version } = JSON.parse(readFileSync(file, "utf8"));
  for (const flag of ["--version", "-V"]) {
    assertEquals(causeway(flag), { status: 0, stdout: `${version}\n`, stderr: "" });
  }
});

testOnce("so is that of the program compiled into one file, where there is nothing else", patiently, () => {
  const folder = scratchFolder();
  const alone = join(folder, "causeway");
  const { status, stderr } = spawnSync(findBun(), ["build", "--compile", main, `--outfile=${alone}`], {
    encoding: "utf8",
  });
  assertEquals(status, 0, stderr);
  const { stdout } = spawnSync(alone, ["--version"], { cwd: folder, encoding: "utf8" });
  assertEquals(stdout, causeway("--version").stdout);
});

const wrong: { readonly [args: string]: RegExp } = {
  "": /expected a command[^]*Usage: causeway/,
  "topolgy": /unknown command topolgy; did you mean topology\?/,
  "banwidth --json": /did you mean bandwidth\?/,
  "xyz": /unknown command xyz\n/,
  "-q": /unknown option -q(?!; did)/,
  "-v": /unknown option -v; did you mean -V \(--version\)\?/,
  "--hepl": /unknown option --hepl; did you mean --help\?/,
  "doctor --jsn": /unknown option --jsn; did you mean --json\?/,
  "doctor x": /doctor does not take x/,
  "demo a b": /demo does not take b/,
  "vortex": /vortex needs <file>/,
  "vortex --jso x": /did you mean --json\?/,
  "send-recv --n-byte 3": /unknown option --n-byte; did you mean --n-bytes\?/,
  "send-recv 3": /send-recv does not take 3/,
  "topology --svg": /svg/,
  "topology --simulate 0": /--simulate: expected a whole number from 1 to 16, got 0/,
  "bandwidth --size 100": /--size: expected .* a multiple of 16, got 100/,
  "bandwidth --iterations 0": /--iterations: expected/,
  "bandwidth -t device_local_cpy": /unknown test device_local_cpy; did you mean device_local_copy\?/,
};

for (const [args, message] of Object.entries(wrong)) {
  test(`causeway ${args}: exit code 2, and a suggestion`, patiently, () => {
    const { status, stdout, stderr } = causeway(...args.split(" ").filter((arg) => arg !== ""));
    assertEquals([status, stdout], [2, ""]);
    assertMatch(stderr, /^causeway: /);
    assertMatch(stderr, message);
    assertMatch(stderr, /--help|Usage/);
  });
}

// In Bun it was success, and nothing was printed: `console.log` ignores what cannot be written.
test("a report that cannot be written is a failure, unless its reader has seen enough", patiently, () => {
  const shell = (script: string) => {
    const command = ["-c", `set -o pipefail; ${script}`, "bash", process.execPath, ...runtime];
    const { status, stderr } = spawnSync("bash", command, { encoding: "utf8" });
    return { status, stderr };
  };
  for (const what of ["--help", "topology --simulate 2 --json", "doctor"]) {
    const { status, stderr } = shell(`"$@" ${what} > /dev/full`);
    assertEquals(status, 1, stderr);
    assertMatch(stderr, /^causeway: .*(No space|ENOSPC)/im);
  }
  assertEquals(shell('"$@" --help | head -1').status, 0);
  // Longer than a pipe is, which is read later.
  assertEquals(
    shell('for i in 1 2 3; do "$@" topology --simulate 2 --json; done | (sleep 0.5; cat) > /dev/null').status,
    0,
  );
});

test("a line is written whole, in parts where the pipe takes no more, until the reader has seen enough", () => {
  const system = (code: string) => Object.assign(new Error(code), { code });
  let written = "";
  let calls = 0;
  const slowly = (bytes: Uint8Array, from: number) => {
    if (++calls % 2 === 0) throw system("EAGAIN");
    const part = bytes.subarray(from, from + 7);
    written += new TextDecoder().decode(part);
    return part.length;
  };
  print("a line of many parts", slowly);
  assertEquals([written, calls], ["a line of many parts\n", 5]);
  print("a reader has gone", () => {
    throw system("EPIPE");
  });
  assertThrows(
    () =>
      print("no space", () => {
        throw system("ENOSPC");
      }),
    Error,
    "ENOSPC",
  );
});
