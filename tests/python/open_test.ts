/** Which Python is opened: by option, by environment, by PATH; and the error where none can be. */
import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { type CudaStream, FfiError, Python } from "../../mod.ts";
import { patiently, runScript } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { scratchFolder } from "../support/scratch.ts";

const script = new URL("./open_child.ts", import.meta.url);
const found = findPython();
const missing = typeof found === "string" ? found : null;
const executable = typeof found === "string" ? "" : found.executable;
const library = typeof found === "string" ? "" : found.library;
const prefix = executable.replace(/\/bin\/[^/]*$/, "");
const cleared = { CAUSEWAY_PYTHON: undefined, VIRTUAL_ENV: undefined, CONDA_PREFIX: undefined };

async function open(
  env: Record<string, string | undefined>,
  options: { readonly library?: string; readonly home?: string } = {},
  before: readonly string[] = [],
): Promise<{ readonly answer: Record<string, string>; readonly printed: string }> {
  const { stdout, stderr, code, signal } = await runScript(script, {
    args: [JSON.stringify(options), ...before],
    env: { ...cleared, ...env },
  });
  const lines = stdout.trimEnd().split("\n");
  assertEquals([code, signal], [0, null], stderr);
  return { answer: JSON.parse(lines.at(-1) ?? "{}"), printed: lines.slice(0, -1).join("\n") };
}

const [title, { skip }] = needs(missing, "the interpreter is found by option, by environment and on PATH");
const options = { skip, ...patiently };

test(title, options, async () => {
  const ways = [
    open({ LC_ALL: "C" }, { home: prefix }),
    open({}, { home: executable }),
    open({ CAUSEWAY_PYTHON: executable, VIRTUAL_ENV: "/nonexistent" }),
    open({ VIRTUAL_ENV: prefix, PATH: "/nonexistent" }),
    open({ CONDA_PREFIX: prefix }),
    open({ VIRTUAL_ENV: "/nonexistent", PATH: `${prefix}/bin:${process.env["PATH"]}` }),
  ];
  for (const { answer, printed } of await Promise.all(ways)) {
    assertEquals([answer["error"], answer["prefix"], answer["library"]], [undefined, prefix, library]);
    assertMatch(answer["executable"] ?? "", /\/bin\/python[\d.]*$/);
    assertEquals(answer["encoding"], "utf-8");
    assertEquals(printed, "caf\u00e9");
    const [before, after] = (answer["signals"] ?? "").split(" ");
    assertEquals(after, before, "signal handlers are the runtime's");
    assertEquals(
      String(answer["ended"]),
      `15,${7 << 8}`,
      "a process that is forked ends by signals, or as Python has said",
    );
  }
});

const always = typeof found !== "string" && Number(found.version.split(".")[1]) >= 15;
const inUtf8 = always ? "Python 3.15 and newer are in UTF-8 in any case" : null;
const [heeded, { skip: isAlways }] = needs(missing ?? inUtf8, "PYTHONUTF8=0 is heeded");

test(heeded, { ...options, skip: isAlways }, async () => {
  const { answer } = await open({ LC_ALL: "C", PYTHONUTF8: "0" }, { home: prefix });
  assertStringIncludes(answer["error"] ?? "", "'ascii' codec can't encode");
});

const threaded = typeof found !== "string" && found.isFreeThreaded;
const [withLock, { skip: hasLock }] = needs(
  missing ?? (threaded ? null : "this Python always has its lock: CAUSEWAY_PYTHON=python3.14t"),
  "a free-threaded Python starts with its lock, of which the environment says nothing afterwards",
);

test(withLock, { ...options, skip: hasLock }, async () => {
  const { answer } = await open({ PYTHON_GIL: undefined }, { home: prefix });
  assertEquals([answer["lock"], answer["demand"]], ["true", "undefined"]);
  const { answer: demanded } = await open({ PYTHON_GIL: "1" }, { home: prefix });
  assertEquals([demanded["lock"], demanded["demand"]], ["true", "1"]);
  assertStringIncludes((await open({ PYTHON_GIL: "0" }, { home: prefix })).answer["error"] ?? "", "Unset PYTHON_GIL");
});

// The bytes of such characters were taken for undecodable: JavaScript read another path from sys.executable.
test(needs(missing, "Python may be in a folder whose name is not ASCII")[0], options, async () => {
  const home = join(scratchFolder(), "caf\u00e9 \u{1f40d}");
  symlinkSync(prefix, home);
  const { answer } = await open({ LC_ALL: "C" }, { home });
  assertEquals(dirname(answer["executable"] ?? ""), `${home}/bin`, answer["error"]);
});

// An interpreter that was asked there "is no interpreter".
test(needs(missing, "a program may be in a folder with a json.py or a platform.py")[0], options, async () => {
  const cwd = scratchFolder();
  for (const name of ["json", "platform", "sysconfig"]) writeFileSync(join(cwd, `${name}.py`), "raise SystemExit(1)\n");
  const env = { ...cleared, CAUSEWAY_PYTHON: executable };
  const { stdout, stderr } = await runScript(script, { args: ["{}"], env, cwd });
  assertEquals(JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "{}").executable, executable, stderr);
  const main = new URL("../../src/cli/main.ts", import.meta.url);
  const report = JSON.parse((await runScript(main, { args: ["doctor", "--json"], env, cwd })).stdout);
  assertEquals(report.python?.path, executable);
});

test("an option that is no path, or no stream, is refused, also when Python runs already", () => {
  for (const value of [5, null, {}, true] as unknown[] as string[]) {
    assertThrows(
      () => Python.open({ home: value }),
      TypeError,
      "Expected home to be a string, the path of a virtualenv",
    );
    assertThrows(() => Python.open({ library: value }), TypeError, "Expected library to be a string");
    assertThrows(() => Python.open({ stream: value as unknown as CudaStream }), TypeError, "to be a CudaStream, got");
  }
});

// The running interpreter was returned for any home.
test(
  ...needs(missing, "another home than that of the running Python is refused, the same one by any name is not"),
  () => {
    if (typeof found === "string") return;
    Python.open({ home: found.executable });
    const folder = dirname(dirname(found.executable));
    assertEquals(Python.open({ home: folder }).version, Python.open().version);
    const other = scratchFolder();
    mkdirSync(join(other, "bin"));
    const said = JSON.stringify({ executable: "/other/bin/python3", version: "3.12", libraries: [] });
    writeFileSync(join(other, "bin/python3"), `#!/bin/sh\necho '${said}'\n`, { mode: 0o755 });
    for (const home of ["/nonexistent", tmpdir(), other]) {
      assertThrows(() => Python.open({ home }), FfiError, `Cannot open Python in ${home}: this process runs`);
    }
  },
);

test(...needs(missing, "code to run must be a string"), () => {
  const python = Python.open({ home: executable });
  for (const value of [5, null, {}, undefined] as unknown[] as string[]) {
    assertThrows(() => python.run(value), TypeError, "Expected Python statements as a string, got");
    assertThrows(() => python.evaluate(value), TypeError, "Expected a Python expression as a string, got");
    assertThrows(() => python.import(value), TypeError, "Expected a module's name as a string, got");
  }
});

test(needs(missing, "an error of opening says what was expected and what to do")[0], options, async () => {
  const no = await open({}, { home: "/nonexistent" });
  assertStringIncludes(no.answer["error"] ?? "", "expected a folder with bin/python3");
  const wrong = await open({ CAUSEWAY_PYTHON: "/nonexistent/python" });
  assertStringIncludes(wrong.answer["error"] ?? "", "Cannot open the Python of CAUSEWAY_PYTHON, /nonexistent/python");
  const lost = await open({ CAUSEWAY_PYTHON: executable }, { library: "/nonexistent/libpython.so" });
  assertStringIncludes(lost.answer["error"] ?? "", "/nonexistent/libpython.so");
  const set = await open({ CAUSEWAY_PYTHON: executable, CAUSEWAY_LIBPYTHON: "/nonexistent/libpython.so" });
  assertStringIncludes(set.answer["error"] ?? "", "CAUSEWAY_LIBPYTHON is set");
});

test(needs(missing, "a library of another version than its interpreter is not started")[0], options, async () => {
  const home = mkdtempSync(join(tmpdir(), "causeway-python-"));
  try {
    const said = JSON.stringify({ executable, version: "3.1", libraries: [library] });
    mkdirSync(join(home, "bin"));
    writeFileSync(join(home, "bin/python3"), `#!/bin/sh\ncat <<'END'\n${said}\nEND\n`, { mode: 0o755 });
    const { answer } = await open({}, { home });
    assertStringIncludes(answer["error"] ?? "", "an interpreter and its library must have the same version");
  } finally {
    rmSync(home, { recursive: true });
  }
});

const others = [11, 12, 13].map((minor) => `/usr/lib/x86_64-linux-gnu/libpython3.${minor}.so.1.0`)
  .filter((path) => existsSync(path) && path !== library);
const noOther = missing ?? (others.length > 0 ? null : "no second libpython: apt-get install libpython3.11");

test(needs(noOther, "a second libpython in one process is refused, before it can confuse the first")[0], {
  skip: noOther !== null,
  ...patiently,
}, async () => {
  const { answer } = await open({ CAUSEWAY_PYTHON: executable }, {}, others.slice(0, 1));
  assertStringIncludes(answer["error"] ?? "", "another libpython");
});

// With none left the error was that there is no interpreter, and with two Python ended the process.
const [fewFiles, few] = needs(missing, "too few descriptors are an error that says so, and Python can be opened later");

test(fewFiles, { ...few, ...patiently }, async () => {
  const { code, stdout, stderr } = await runScript(new URL("./few_files_child.ts", import.meta.url));
  const error = "SystemError: Cannot open Python: eventfd failed with EMFILE";
  assertEquals([code, stdout.trim().split("\n")], [0, [error, error, error, "42"]], stderr);
});
