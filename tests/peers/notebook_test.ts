/** Deno's Jupyter kernel runs the cells of docs/notebooks.md: the output that a user sees, also after a restart. */
import { assert, assertEquals } from "@std/assert";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { patiently } from "../support/child.ts";
import { examplesOf } from "../support/examples.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { runtimes } from "../support/runtimes.ts";
import { scratchFolder } from "../support/scratch.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const python = process.env["CAUSEWAY_JUPYTER_PYTHON"] ?? process.env["CAUSEWAY_PYTHON"] ?? "python3";
const deno = runtimes.find(({ name }) => name === "deno");
const numpy = findPython("numpy");
const hasClient = spawnSync(python, ["-c", "import jupyter_client"]).status === 0;
const missing = deno?.missing ??
  (typeof numpy === "string" ? numpy : null) ??
  (hasClient
    ? null
    : `${python} has no jupyter_client: pip install jupyter, or set CAUSEWAY_JUPYTER_PYTHON to an interpreter that has it`);

/**
 * Runs cells, restarts the kernel before each that is null, and prints the result of each. Deno's kernel sometimes
 * reports a cell as done before it has sent all output, so a cell that only marks the end follows each.
 */
const driver = `
import json, sys, time
from jupyter_client.manager import start_new_kernel
manager, client = start_new_kernel(kernel_name="causeway-deno")
def run(code):
    seen = []
    for text in (code, 'await new Promise((done) => setTimeout(done, 100)); console.log("the end of the cell")'):
        client.execute(text)
        while True:
            message = client.get_iopub_msg(timeout=60)
            kind, content = message["msg_type"], message["content"]
            if kind == "stream":
                seen.append(content["text"])
            elif kind == "execute_result":
                seen.append(content["data"]["text/plain"])
            elif kind == "error":
                seen.append(content["ename"] + ": " + content["evalue"])
            if kind == "status" and content["execution_state"] == "idle" and text == code:
                break
            if "the end of the cell" in "".join(seen):
                break
    return "".join(seen).replace("the end of the cell\\n", "")
def restart():
    global client
    client.stop_channels()
    manager.restart_kernel(now=True)
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
try:
    print(json.dumps([restart() if code is None else run(code) for code in json.load(sys.stdin)]))
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
`;

/** What a notebook shows below each cell, in a folder with a link to the sources. */
function shown(cells: readonly (string | null)[]): unknown[] {
  const [folder, data] = [scratchFolder(), scratchFolder()];
  const kernel = join(data, "kernels/causeway-deno");
  mkdirSync(kernel, { recursive: true });
  const argv = [deno?.command[0], "jupyter", "--kernel", "--conn", "{connection_file}"];
  writeFileSync(join(kernel, "kernel.json"), JSON.stringify({ argv, display_name: "Deno", language: "typescript" }));
  writeFileSync(join(folder, "deno.json"), JSON.stringify({ links: [root] }));
  const chosen = typeof numpy === "string" ? {} : { CAUSEWAY_PYTHON: numpy.executable };
  const printed = execFileSync(python, ["-c", driver], {
    cwd: folder,
    input: JSON.stringify(cells),
    encoding: "utf8",
    env: { ...process.env, ...chosen, JUPYTER_PATH: data, NO_COLOR: "1" },
    stdio: ["pipe", "pipe", "ignore"],
    timeout: 200_000,
  });
  // Whatever Python and Deno print to the process's own output comes first.
  const all: unknown = JSON.parse(printed.trimEnd().split("\n").at(-1) ?? "");
  assert(Array.isArray(all) && all.length === cells.length, printed);
  return all;
}

const [title, { skip }] = needs(missing, "a notebook shows arrays, devices and errors, and what Python prints");
test(title, { skip, ...patiently }, () => {
  const page = readFileSync(join(root, "docs/notebooks.md"), "utf8");
  const cells = examplesOf("docs/notebooks.md", page, "cell").map(({ code }) => code);
  assertEquals(cells.length, 3);
  const [numbers, sum, print, array, there, device, error, again, after] = shown([
    ...cells,
    "table",
    "table.to(cuda.device(0))",
    "cuda.device(0)",
    'py.import("no_such_module_here")',
    null,
    'import { StridedMemoryView } from "@causeway/causeway"; StridedMemoryView.arange(2)',
  ]);
  assertEquals(String(numbers).replaceAll(/\s+/g, " "), "Float64Array(6) [ 0, 1, 2, 3, 4, 5 ]");
  assertEquals(sum, "StridedMemoryView float64 (2, 3) on the host\n[[1. 2. 3.]\n [4. 5. 6.]]");
  assert(String(print).includes("from Python\n"), String(print));
  assertEquals(array, "StridedMemoryView float64 (2, 3) on the host\n[[0. 1. 2.]\n [3. 4. 5.]]");
  assertEquals(there, "StridedMemoryView float64 (2, 3) on device 0");
  assert(String(device).startsWith("CudaDevice 0: Simulated GPU 0"), String(device));
  assert(String(error).startsWith("PythonError: ModuleNotFoundError"), String(error));
  assertEquals(again, null);
  assertEquals(after, "StridedMemoryView float64 (2,) on the host\n[0. 1.]");
});
