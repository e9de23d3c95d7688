/** A program that `deno run --watch` loads again listens on the same port again. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { isBun, patiently } from "../support/child.ts";
import { freePort } from "../support/free_port.ts";
import { needs } from "../support/needs.ts";
import { reloaded } from "../support/reloads.ts";

const ucx = new URL("../../src/ucx/mod.ts", import.meta.url).href;

const [title, { skip }] = needs(
  isBun ? "Bun starts another process" : null,
  "a program that is loaded again gets its port",
);
test(title, { skip, ...patiently }, async () => {
  for (const secret of ["", 'secret: "a secret that is long enough", ']) {
    const port = await freePort();
    const { lines } = await reloaded((version) =>
      `import { Ucx } from "${ucx}";
const worker = Ucx.open({ config: { TLS: "tcp" } }).createWorker();
try {
  const listener = worker.listen({ ${secret}port: ${port} });
  console.log(${version}, listener.port);
} catch (error) {
  console.log(${version}, String(error));
}
`
    );
    assertEquals(lines, [`0 ${port}`, `1 ${port}`, `2 ${port}`]);
  }
});
