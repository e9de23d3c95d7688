/** The programs of docs/ucx.md that talk to another program. tests/examples_test.ts runs the others. */
import { assert } from "@std/assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createConnection } from "node:net";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { patiently } from "../support/child.ts";
import { type Example, examplesOf, runExampleBeside } from "../support/examples.ts";
import { freePort } from "../support/free_port.ts";
import { needs } from "../support/needs.ts";

const guide = readFileSync(new URL("../../docs/ucx.md", import.meta.url), "utf8");

/** An example with another port in place of the common one. */
function at(port: number, need: string): Example {
  const [example] = examplesOf(`docs/ucx.md (${need})`, guide, need);
  assert(example !== undefined && example.code.includes("13337"));
  return { ...example, code: example.code.replaceAll("13337", `${port}`) };
}

/** Waits until a server listens. */
async function reachable(port: number): Promise<void> {
  for (let n = 0; n < 200; n++) {
    const socket = createConnection(port, "127.0.0.1");
    const isThere = await once(socket, "connect").then(() => true, () => false);
    socket.destroy();
    if (isThere) return;
    await pause(50);
  }
  throw new Error(`No server listens at ${port}`);
}

test("the guide's server and client talk to each other in two processes", patiently, async () => {
  const port = await freePort();
  const end = new AbortController();
  const serving = runExampleBeside(at(port, "server"), {}, [], end.signal);
  await Promise.race([reachable(port), serving]);
  try {
    await runExampleBeside(at(port, "client"));
  } finally {
    end.abort();
    await serving.catch(() => {}); // it fails when its client leaves, as the guide says
  }
});

const python = process.env["CAUSEWAY_UCXX_PYTHON"] ?? "";
const [title, options] = needs(
  python === "" ? "UCXX is not named: pip install ucxx-cu13 numpy, and CAUSEWAY_UCXX_PYTHON=its interpreter" : null,
  "the guide's program talks to UCXX's own package",
);

/** The Python that the guide shows beside the program, with the libucp that both must use. */
const server = `
import asyncio, sys
import numpy as np, ucxx
async def main():
    over = asyncio.Event()
    async def serve(ep):
        array = np.zeros(3, dtype="u1")
        await ep.recv(array, tag=5)
        await ep.send(array + 3)
        over.set()
    listener = ucxx.create_listener(serve)
    path = [line.split()[-1] for line in open("/proc/self/maps") if "/libucp" in line][0]
    print(listener.port, path, flush=True)
    await over.wait()
    await asyncio.sleep(1)
asyncio.run(main())
`;

test(title, { ...options, ...patiently }, async () => {
  const child = spawn(python, ["-c", server], { stdio: ["ignore", "pipe", "ignore"], timeout: 60_000 });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const [port = "", path = ""] = line.split(" ");
      if (!path.includes("libucp")) continue;
      await runExampleBeside(at(Number(port), "ucxx"), { CAUSEWAY_LIBUCP: path });
      break;
    }
  } finally {
    child.kill("SIGKILL");
  }
});
