/** The other process, with its own simulated CUDA: reports what each value is, or why it cannot be opened. */
import process from "node:process";
import { FileDescriptor, MemoryChannel } from "../../../src/public/sharing.ts";
import { Cuda, CudaError } from "../../../mod.ts";
import { contentOf } from "../../support/open_files.ts";

const [path = ""] = process.argv.slice(2);
using cuda = Cuda.simulate();
using channel = await MemoryChannel.connect(path, cuda, { timeout: 20_000 });
for (;;) {
  try {
    const value = await channel.receive();
    if (value === undefined) break;
    if (!(value instanceof FileDescriptor)) await channel.send({ value: JSON.stringify(value) });
    else {
      await channel.send({ file: new TextDecoder().decode(contentOf(value)), back: value });
      value.close();
    }
  } catch (error) {
    if (!(error instanceof CudaError)) throw error;
    await channel.send({ refused: error.codeName, call: error.call });
  }
}
