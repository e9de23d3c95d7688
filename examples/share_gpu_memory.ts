/**
 * Two processes work on the same GPU memory, in order, without a copy. In two terminals:
 *
 *     deno run -A examples/share_gpu_memory.ts owner
 *     deno run -A examples/share_gpu_memory.ts user
 *
 * or the same with `bun` instead of `deno run -A`, or one of each.
 */
import process from "node:process";
import { MemoryChannel, UnixListener } from "../src/public/sharing.ts";
import { Cuda, DeviceMemoryResource, HostMemoryResource, type MemoryBuffer } from "../mod.ts";

const [role, path = "@causeway-share-gpu-memory"] = process.argv.slice(2);
const size = 64 * 2 ** 20;

async function owner(): Promise<void> {
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  using pool = new DeviceMemoryResource(device, { shareable: true });
  using listener = UnixListener.listen(path);
  using channel = new MemoryChannel(await listener.accept(), cuda);

  using weights = pool.allocate(size, { stream });
  for (let i = 0; i <= 7; i++) weights.fill(i, { stream }); // still running when the other process is told
  await channel.send({ weights, name: "weights" });

  console.log(`owner: the user says ${await channel.receive()}`);
}

async function user(): Promise<void> {
  using cuda = Cuda.open();
  using stream = cuda.device(0).createStream();
  using channel = await MemoryChannel.connect(path, cuda, { timeout: 30_000 });
  const { weights, name } = await channel.receive({ stream }) as { weights: MemoryBuffer; name: string };

  using sink = new HostMemoryResource().allocate(weights.size);
  weights.copyTo(sink, { stream }); // after what the owner has enqueued
  weights.close(); // the owner's memory stays allocated until this copy is done
  await stream.completed();
  const right = sink.bytes().every((byte) => byte === 7);
  console.log(`user: ${name} has ${sink.size} bytes, ${right ? "all" : "not all"} of them 7`);
  await channel.send(right ? "thank you" : "that was too early");
}

if (role === "owner") await owner();
else if (role === "user") await user();
else console.error("Say what this process is: owner or user");
