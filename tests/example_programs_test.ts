/** Every program in `examples/` runs, and prints what its header says. Those of UCX: tests/ucx/examples_test.ts. */
import { assert, assertEquals } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { isBun, patiently } from "./support/child.ts";
import { assertOutput, flagsOf, outputsOf, runProgram, startProgram } from "./support/example_programs.ts";
import { needs } from "./support/needs.ts";
import { readPng } from "./support/png.ts";
import { findPython, findPythonOrSystem } from "./support/python.ts";
import { scratchFolder } from "./support/scratch.ts";

const examples = new URL("../examples/", import.meta.url);

/** Arguments of a test with requirements, and with time to start processes. */
function patient(missing: string | null, name: string): [name: string, options: { skip: boolean; timeout: number }] {
  const [title, options] = needs(missing, name);
  return [title, { ...options, ...patiently }];
}

const programs = readdirSync(examples).filter((file) => file.endsWith(".ts"));

test("every program is in the index with its command, says what it prints, and has less than 80 lines", () => {
  const index = readFileSync(new URL("README.md", examples), "utf8");
  for (const program of programs) {
    assert(index.includes(`(${program})`), `examples/README.md has no link to ${program}`);
    const flags = flagsOf(program).join(" "); // those with which it is run
    assert(
      new RegExp(`deno (?:run|serve) ${flags} .*${program}`).test(index),
      `examples/README.md permits not ${flags}`,
    );
    assert(outputsOf(program)[0], `${program} does not say what it prints, in a block marked text`);
    const lines = readFileSync(new URL(program, examples), "utf8").trimEnd().split("\n").length;
    assert(lines < 80, `${program} has ${lines} lines`);
  }
});

/** Histogram of the ink in the digits' images, in bins 16 wide: computed here from the file itself. */
function inkCounts(): number[] {
  const file = readFileSync(new URL("digits.npy", examples));
  const pixels = file.subarray(file.length - 1797 * 64); // after the header
  const counts = Array.from({ length: 32 }, () => 0);
  for (let at = 0; at < pixels.length; at += 64) {
    const ink = pixels.subarray(at, at + 64).reduce((sum, pixel) => sum + pixel, 0);
    counts[ink >> 4] = (counts[ink >> 4] ?? 0) + 1;
  }
  return counts;
}

test("plot_digits counts the file's pixels by a kernel, and plots a bar for each count", patiently, async () => {
  const cwd = scratchFolder();
  const printed = await runProgram("plot_digits.ts", ["ink.png"], { cwd });
  const [promised] = outputsOf("plot_digits.ts");
  // A GPU has another name.
  assertOutput(printed, promised?.replace("Simulated GPU 0", "..."));
  const counts = inkCounts();
  assertEquals(printed.match(/\[([^\]]*)\]/)?.[1]?.trim().split(/\s+/).map(Number), counts);

  const { width, height, pixels } = readPng(readFileSync(join(cwd, "ink.png")));
  assertEquals([width, height], [480, 300]);
  const isBar = (x: number, y: number) => {
    const [red = 0, green = 0, blue = 0] = pixels.subarray((y * width + x) * 4);
    return blue > 200 && red < 150 && green < 150;
  };
  const columns = Array.from({ length: width }, (_, x) => {
    let filled = 0;
    for (let y = 0; y < height; y++) if (isBar(x, y)) filled++;
    return filled;
  });
  const heights: number[] = []; // one per bar: adjacent columns with blue in them
  columns.forEach((filled, x) => {
    if (filled > 0 && columns[x - 1] === 0) heights.push(filled);
    else if (filled > 0) heights.push(Math.max(filled, heights.pop() ?? 0));
  });
  const tall = counts.filter((count) => count >= 10); // lower ones are a pixel or none
  const scale = Math.max(...heights) / Math.max(...counts);
  const wanted = tall.map((count) => Math.round(count * scale));
  const seen = heights.filter((one) => one >= Math.min(...wanted) - 1);
  assertEquals(seen.length, wanted.length);
  seen.forEach((one, i) => assert(Math.abs(one - (wanted[i] ?? 0)) <= 1.5, `bar ${i}: ${one}, not ${wanted[i]}`));
});

const withFrames = findPython("polars", "duckdb", "pyarrow");
const framesMissing = typeof withFrames === "string" ? withFrames : null;
test(...patient(framesMissing, "query_trips gets its answers from Polars and from DuckDB"), async () => {
  const env = typeof withFrames === "string" ? {} : { CAUSEWAY_PYTHON: withFrames.executable };
  assertOutput(await runProgram("query_trips.ts", [], { env }), outputsOf("query_trips.ts")[0]);
});

// In two processes, on GPUs: tests/gpu/ipc_test.ts.
test("share_gpu_memory is a pipeline, in whose simulation every frame comes back squared", patiently, async () => {
  const printed = await runProgram("share_gpu_memory.ts", ["simulate"]);
  assertOutput(printed, outputsOf("share_gpu_memory.ts")[0]);
});

const withTorch = findPythonOrSystem("torch");
const torchMissing = typeof withTorch === "string" ? withTorch : null;
test(...patient(torchMissing, "torch_server answers while torch computes, and streams a digit"), async () => {
  const env = { CAUSEWAY_PYTHON: typeof withTorch === "string" ? "" : withTorch.executable, VIRTUAL_ENV: undefined };
  const permitted = ["--no-prompt", ...flagsOf("torch_server.ts")];
  // Port 0 is any free port; both runtimes print which.
  using server = startProgram("torch_server.ts", [], {
    env: { ...env, PORT: "0" },
    ...(isBun ? {} : { runtimeArguments: ["serve", ...permitted, "--no-check", "--host", "127.0.0.1", "--port", "0"] }),
  });
  const [, port] = await server.until(/http:\/\/[\w.]+:(\d+)/);
  const url = `http://127.0.0.1:${port}`;
  const answer = await fetch(`${url}/dream?seed=1`);
  let isOver = false;
  const pieces: string[] = [];
  const streamed = (async () => {
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? []) pieces.push(decoder.decode(piece));
  })().finally(() => isOver = true);
  const seen: string[] = [];
  while (!isOver) seen.push(await (await fetch(url)).text());
  await streamed;
  assert(seen.includes("1\n"), `no request was answered while torch computed: ${JSON.stringify(seen)}`);
  assertEquals(await (await fetch(url)).text(), "0\n");
  assert(pieces.length > 1, "everything came at once");
  const dream = pieces.join("");
  assertEquals(dream.match(/^noise/gm)?.length, 6);
  assert(dream.endsWith(outputsOf("torch_server.ts")[0] ?? "nothing"), dream);
  assert(digitsAsShades().has(dream.slice(dream.indexOf("noise 0.5\n") + 10)), "no digit of the file");
  for (const [path, status] of [["/nothing", 404], ["/dream?seed=x", 400]] as const) {
    const response = await fetch(url + path);
    await response.text();
    assertEquals(response.status, status);
  }
});

/** Every digit of the file, drawn as the server draws. */
function digitsAsShades(): Set<string> {
  const file = readFileSync(new URL("digits.npy", examples));
  const pixels = file.subarray(file.length - 1797 * 64);
  const row = (at: number) =>
    [...pixels.subarray(at, at + 8)].map((ink) => " .:-=+*#%@"[Math.round(ink / 1.8)]).join("");
  return new Set(
    Array.from(
      { length: 1797 },
      (_, i) => Array.from({ length: 8 }, (_, y) => `${row(i * 64 + y * 8).trimEnd()}\n`).join(""),
    ),
  );
}
