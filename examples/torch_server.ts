/**
 * A server with torch in its process, which keeps answering while torch computes. It dreams of digits: noise becomes
 * one of the digits in `digits.npy`, in six steps, each streamed when it is done.
 *
 *     deno serve --allow-ffi --allow-read --allow-env=PORT --host 127.0.0.1 --port 3000 examples/torch_server.ts
 *     curl -N 'localhost:3000/dream?seed=1'   (and meanwhile: curl localhost:3000)
 *
 * (In Bun, `PORT=3000 bun examples/torch_server.ts`.) torch comes from the Python of CAUSEWAY_PYTHON, of an active
 * virtualenv, or on PATH. `/` returns the number of torch calls in progress; the answer to `/dream?seed=1` ends with
 *
 * ```text
 * noise 0.5
 *    -@=
 *   :@@=
 *  .%@@=
 *  :=#@-
 *    -@*
 *    -@#
 *    -@%.
 *    :%*.
 * ```
 */
import process from "node:process";
import { Python, readNpy } from "../mod.ts";

const py = Python.open();
py.run(`
import torch

class Dream:
    def __init__(self, digits, seed):
        self.known = torch.asarray(digits).reshape(len(digits), -1).float()
        self.random = torch.Generator().manual_seed(seed)
        self.images = self.noise(16)

    def noise(self, size):
        return size * torch.randn(300, 64, generator=self.random)

    def step(self, noise, remaining):
        """To the mean of all digits, each by how likely it looks like that under so much noise; and less noise."""
        likely = torch.softmax(-torch.cdist(self.images, self.known) ** 2 / (2 * noise ** 2), 1)
        self.images = likely @ self.known + self.noise(remaining)
        return self.images[0].reshape(8, 8).div(1.8).clamp(0, 9).round().int()
`);
const digits = await readNpy(new URL("digits.npy", import.meta.url)); // torch gets this memory
let running = 0;

/** The first of 300 pictures, after each step. */
async function* dream(seed: number): AsyncGenerator<string> {
  using dream = py.evaluate("Dream").$call(digits, seed);
  const step = py.async(dream.step);
  for (const noise of [16, 8, 4, 2, 1, 0.5]) {
    running++;
    using picture = await step(noise, noise > 0.5 ? noise / 2 : 0).finally(() => running--);
    const rows: number[][] = picture.toArray();
    const lines = rows.map((row) => row.map((ink) => " .:-=+*#%@"[ink]).join("").trimEnd());
    yield `noise ${noise}\n${lines.join("\n")}\n`;
  }
}

function fetch(request: Request): Response {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === "/") return new Response(`${running}\n`);
  if (pathname !== "/dream") return new Response("There are / and /dream?seed=1\n", { status: 404 });
  const seed = Number(searchParams.get("seed") ?? 0);
  if (!Number.isSafeInteger(seed)) return new Response("A seed is an integer\n", { status: 400 });
  const pieces = dream(seed);
  const body = new ReadableStream<string>({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => void pieces.return(undefined),
  });
  return new Response(body.pipeThrough(new TextEncoderStream()));
}

export default { hostname: "127.0.0.1", port: Number(process.env["PORT"] ?? 3000), fetch };
