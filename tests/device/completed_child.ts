/** Waits for a stream and ends: nothing may keep the process alive after that. */
import { Cuda } from "../../mod.ts";

using cuda = Cuda.simulate();
using stream = cuda.device(0).createStream();
await stream.completed();
console.log("done");
