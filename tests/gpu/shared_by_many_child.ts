/**
 * One of the processes of `shared_by_many_test.ts`: reads each received buffer on the GPU that its second argument
 * names, reports its contents, and releases it on request.
 */
import process from "node:process";
import { MemoryChannel } from "../../src/public/sharing.ts";
import { Cuda, HostMemoryResource, type MemoryBuffer } from "../../mod.ts";

const [path = "", ordinal = "0"] = process.argv.slice(2);
using cuda = Cuda.open();
const device = cuda.device(Number(ordinal));
using channel = await MemoryChannel.connect(path, cuda, { timeout: 30_000 });
using owner = cuda.device(0).createStream();
using own = device.createStream();
using copy = device.memory.allocate(2 ** 16, { stream: own });
using sink = new HostMemoryResource().allocate(2 ** 16);
for (;;) {
  const buffer = await channel.receive({ stream: owner }) as MemoryBuffer | undefined;
  if (buffer === undefined) break;
  own.wait(owner); // the received buffer's home, which waits for the other process
  copy.copyFrom(buffer, { stream: own }); // between the devices, if they differ
  owner.wait(own); // where it is released
  copy.copyTo(sink, { stream: own });
  await own.completed();
  await channel.send([...new Set(sink.bytes())]);
  if (await channel.receive() !== "let go") break;
  buffer.close();
  await channel.send("gone");
}
