/** A program that `deno run --watch` loads again listens on the same port again. */
import { assertEquals } from "@std/assert";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isBun, patiently } from "../support/child.ts";
import { freePort } from "../support/free_port.ts";
import { needs } from "../support/needs.ts";
import { scratchFolder } from "../support/scratch.ts";

const ucx = new URL("../../src/ucx/mod.ts", import.meta.url).href;

const [title, { skip }] = needs(
  isBun ? "Bun starts another process" : null,
  "a program that is loaded again gets its port",
);
test(title, { skip, ...patiently }, async () => {
  for (const secret of ["", 'secret: "a secret that is long enough", ']) {
    const port = await freePort();
    const file = join(scratchFolder(), "watched.ts");
    const write = (version: number) =>
      writeFileSync(
        file,
        `import { Ucx } from "${ucx}";
const worker = Ucx.open({ config: { TLS: "tcp" } }).createWorker();
try {
  const listener = worker.listen({ ${secret}port: ${port} });
  console.log(${version}, listener.port);
} catch (error) {
  console.log(${version}, String(error));
}
`,
      );
    write(0);
    const flags = ["run", "-A", "--no-check", "--no-lock", "--quiet", "--watch", file];
    const child = spawn(process.execPath, flags, { stdio: ["ignore", "pipe", "ignore"] });
    try {
      const printed: string[] = [];
      const lines = createInterface({ input: child.stdout }).on("line", (line) => printed.push(line));
      // A change is lost if it is made before the watch begins: again, until there is an answer.
      for (let wait = 0; wait < 100 && printed.at(-1)?.startsWith("2 ") !== true; wait++) {
        await pause(200);
        if (printed.length > 0) write(Math.min(2, Number(printed.at(-1)?.split(" ")[0]) + 1));
      }
      lines.close();
      assertEquals([...new Set(printed)], [`0 ${port}`, `1 ${port}`, `2 ${port}`]);
    } finally {
      child.kill("SIGKILL");
    }
  }
});
