/**
 * The examples of the guides and doc comments behave on a real GPU as documented for a simulated one: each example that
 * simulates a driver opens the real one instead, and prints the same.
 */
import { assert } from "@std/assert";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type LibraryDescription, openLibrary } from "../../src/ffi/library.ts";
import { comments, type Example, examplesOf, runExample } from "../support/examples.ts";
import { missingGpus } from "../support/gpu.ts";
import { missing } from "../support/missing_library.ts";
import { needs } from "../support/needs.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Examples about the simulator itself, or its own reports of a failing kernel. */
const simulated = ["docs/simulator.md", "docs/errors.md, example 2", "src/sim/", "src/testing/", "src/ptx/error.ts"];

function filesOf(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ending)).map((file) => join(folder, file));
}

const pages = ["README.md", ...filesOf("docs", ".md")].map((file) =>
  [file, readFileSync(join(root, file), "utf8")] as const
);
const sources = ["mod.ts", ...filesOf("src", ".ts")].map((file) =>
  [file, comments(readFileSync(join(root, file), "utf8"))] as const
);
const examples = [...pages, ...sources].flatMap(([file, text]) =>
  [undefined, "nvrtc"].flatMap((need) => examplesOf(relative(root, join(root, file)), text, need))
).filter(({ name, code }) => code.includes("Cuda.simulate(") && !simulated.some((one) => name.startsWith(one)));

/** The example with a real driver, and how many devices it needs. */
function onGpu({ name, code }: Example): { readonly example: Example; readonly devices: number } {
  const devices = Number(/devices: (\d+)/.exec(code)?.[1] ?? 1);
  const opened = code.replace(/Cuda\.simulate\((.*?)\);/g, (_, options: string) => {
    const rest = options.replace(/(devices|seed): \d+,? ?/g, "").replace(/^\{\s*\}$/, "");
    return `Cuda.open(${rest});`;
  });
  return { example: { name, code: opened }, devices };
}

test("there are examples that simulate a GPU", () => assert(examples.length >= 10, `${examples.length}`));

for (const one of examples) {
  const { example, devices } = onGpu(one);
  const [title, { skip }] = needs(missingGpus(devices), `${example.name}: prints on a GPU what it says`);
  const visible = Array.from({ length: devices }, (_, i) => i).join(",");
  test(title, { skip }, () => runExample(example, { CUDA_VISIBLE_DEVICES: visible }));
}

/** The library that the guide on C libraries calls. */
const libcublas: LibraryDescription<Record<never, never>> = {
  name: "libcublas",
  symbols: {},
  override: "CAUSEWAY_LIBCUBLAS",
  sonames: ["libcublas.so.13"],
  wheels: ["nvidia/*/lib"],
  folders: ["/usr/local/cuda/lib64", "/usr/local/cuda/targets/*/lib"],
  remedy: "Install cuBLAS: `pip install nvidia-cublas` in an active virtualenv, or the CUDA toolkit.",
};

if ("deno" in process.versions) { // its FFI is what the example calls
  const guide = readFileSync(join(root, "docs/c-libraries.md"), "utf8");
  for (const example of examplesOf("docs/c-libraries.md, cublas", guide, "cublas")) {
    const [title, { skip }] = needs(missingGpus(1) ?? missing(libcublas), `${example.name}: prints what it says`);
    test(title, { skip }, () => runExample(example, { LD_LIBRARY_PATH: dirname(openLibrary(libcublas).path) }));
  }
}
