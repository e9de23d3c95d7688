/** Does one of the things for which docs/platforms.md says what Deno must permit. Prints `ok`, or the error. */
import { once } from "node:events";
import process from "node:process";
import { Worker } from "node:worker_threads";
import * as causeway from "../../mod.ts";
import { ArrowArray } from "../../src/public/arrow.ts";
import * as layout from "../../src/public/layout.ts";
import { openVortex } from "../../src/public/vortex.ts";
import "../../src/public/checker.ts";
import "../../src/public/cuda.ts";
import "../../src/public/dlpack.ts";
import "../../src/public/files.ts";
import "../../src/public/python.ts";
import "../../src/public/sharing.ts";
import "../../src/public/sim.ts";
import "../../src/public/testing.ts";
import "../../src/public/ucx.ts";
import "../../src/public/view.ts";

const { Cuda, LibraryNotFoundError, Python, StridedMemoryView, Ucx } = causeway;

/** Reads rows of a Vortex file. */
async function rows(source: string | URL | Blob): Promise<void> {
  using file = await openVortex(source);
  for await (const batch of file.scan({ columns: ["city", "fare"], rows: [0, 2] })) console.log(batch.length);
}

async function connect(host: string): Promise<void> {
  using ucx = Ucx.open();
  await using worker = ucx.createWorker();
  await using listener = worker.listen();
  const accepted = listener[Symbol.asyncIterator]().next();
  await using other = ucx.createWorker();
  await other.connect({ host, port: listener.port });
  await accepted;
}

const things: { readonly [name: string]: (at: string) => unknown } = {
  layouts: () => layout.StridedLayout.dense([3, 4], 4).permuted([1, 0]),
  vortexBytes: async () => {
    let text = "";
    for await (const piece of process.stdin) text += piece;
    await rows(new Blob([Uint8Array.fromBase64(text)]));
  },
  vortexPath: rows,
  vortexHttp: (url) => rows(new URL(url)),
  views: async () => {
    const view = StridedMemoryView.arange(3, "float32");
    using tensor = StridedMemoryView.fromDlpack(view.toDlpack());
    using array = ArrowArray.from(tensor.toArrowDevice());
    using cuda = Cuda.simulate({ check: true });
    using there = array.to(cuda.device(0));
    await there.values.toTypedArray();
  },
  cuda: () => {
    if (Cuda.probe().available) Cuda.open().close();
  },
  ucx: () => connect("127.0.0.1"),
  ucxByName: connect,
  python: () => Python.open().import("math")["sqrt"](2),
  openNpy: (path) => causeway.openNpy(path).close(),
  readNpy: async (path) => (await causeway.readNpy(path)).close(),
  writeNpy: (path) => causeway.writeNpy(path, StridedMemoryView.arange(3)),
  worker: async () => {
    const worker = new Worker(new URL("./permissions_worker.ts", import.meta.url));
    await once(worker, "message").finally(() => worker.terminate());
  },
};

const [, , name = "", at = ""] = process.argv;
try {
  await things[name]?.(at);
  console.log("ok");
} catch (error) {
  // Whoever lacks the library has all permissions that were needed to look for it.
  console.log(error instanceof LibraryNotFoundError ? "ok" : `${error}`);
}
