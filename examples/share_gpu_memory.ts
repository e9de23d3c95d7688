/**
 * A pipeline over two processes that share the memory of a GPU: the owner writes frames, the other process squares them
 * in place, the owner reads them. In two terminals, with Deno, Bun (`bun examples/...`), or one of each:
 *
 *     deno run --allow-ffi --allow-read examples/share_gpu_memory.ts owner
 *     deno run --allow-ffi --allow-read examples/share_gpu_memory.ts user
 *
 * Three places take turns, ordered by events. Without a GPU pass `simulate`, for both in one process. It prints:
 *
 * ```text
 * owner: 0 1 4 9 16 25 36 49, by way of 3 places
 * user: squared 8 frames where they were
 * ```
 */
import { readFile } from "node:fs/promises";
import process from "node:process";
import { MemoryChannel, UnixListener, UnixSocket } from "../src/public/sharing.ts";
import { Cuda, type CudaEvent, DeviceMemoryResource, type MemoryBuffer, StridedMemoryView } from "../mod.ts";

const [role, path = "@causeway-share-gpu-memory"] = process.argv.slice(2);
const open = () => role === "simulate" ? Cuda.simulate() : Cuda.open();
const [frames, places, n] = [8, 3, role === "simulate" ? 2 ** 10 : 2 ** 20];
const rowsOf = (memory: MemoryBuffer) =>
  StridedMemoryView.fromBuffer(memory, { shape: [memory.size / n / 4, n], dtype: "uint32" });

async function owner(connect: () => UnixSocket | Promise<UnixSocket>): Promise<void> {
  using cuda = open(); // before either process waits: there may be no GPU
  using channel = new MemoryChannel(await connect(), cuda);
  using stack = new DisposableStack();
  const device = cuda.device(0);
  const stream = stack.use(device.createStream());
  const pool = stack.use(new DeviceMemoryResource(device, { shareable: true }));
  const shared = stack.use(pool.allocate(places * n * 4, { stream }));
  const results = StridedMemoryView.zeros([frames, n], "uint32");
  await channel.send(shared);
  for (let frame = 0; frame < frames + places; frame++) {
    const place = rowsOf(shared).sliced(frame % places);
    if (frame >= places) { // read the frame that is there
      using squared = await channel.receive() as CudaEvent;
      stream.wait(squared);
      results.sliced(frame - places).copyFrom(place, { stream });
    }
    if (frame < frames) { // and write the next one
      place.fill(frame, { stream });
      await channel.send(stream.record(stack.use(device.createEvent({ interprocess: true }))));
    }
  }
  await stream.completed();
  const values = Array.from(results, (result) => [...new Set(result.asTypedArray())].join(" or "));
  console.log(`owner: ${values.join(" ")}, by way of ${places} places`);
}

async function user(connect: () => UnixSocket | Promise<UnixSocket>): Promise<void> {
  using cuda = open();
  using channel = new MemoryChannel(await connect(), cuda);
  using stack = new DisposableStack();
  const device = cuda.device(0);
  const stream = stack.use(device.createStream());
  const program = stack.use(device.loadPtx(await readFile(new URL("square.ptx", import.meta.url), "utf8")));
  const shared = rowsOf(stack.use(await channel.receive({ stream }) as MemoryBuffer));
  let frame = 0;
  for (let written; (written = await channel.receive() as CudaEvent | undefined) !== undefined; frame++) {
    stream.wait(written);
    written.close(); // before its owner closes it, at the end
    program.kernel("square").launch(stream, n / 256, 256, [shared.sliced(frame % places)]);
    await channel.send(stream.record(stack.use(device.createEvent({ interprocess: true }))));
  }
  console.log(`user: squared ${frame} frames where they were`);
}

if (role === "simulate") {
  const [one, other] = UnixSocket.pair();
  await Promise.all([owner(() => one), user(() => other)]);
} else if (role === "owner") {
  using listener = UnixListener.listen(path);
  await owner(() => (console.error(`waiting at ${path} for the user`), listener.accept()));
} else if (role === "user") {
  await user(() => (console.error(`waiting at ${path} for the owner`), UnixSocket.connect(path, { timeout: 30_000 })));
} else console.error("Say what this process is: owner, user, or simulate for both");
