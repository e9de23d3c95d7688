/** Launches kernels that print, to the process's own output. */
import process from "node:process";
import { Cuda, DeviceMemoryResource } from "../../mod.ts";
import { committedPtx } from "../support/ptx/nvrtc.ts";

const [fails] = process.argv.slice(2);
const cuda = Cuda.simulate();
const device = cuda.device(0);
const stream = device.defaultStream;
const program = device.loadPtx(committedPtx("printing", "sm_90"));
console.log("before");
if (fails === "yes") {
  const x = new DeviceMemoryResource(device).allocate(4, { stream });
  stream.synchronize();
  program.kernel("positive").launch(stream, 1, 1, [x]); // unwritten memory is less than 0
  try {
    stream.synchronize();
  } catch {
    // as expected
  }
} else {
  program.kernel("hello").launch(stream, 1, 1, []);
  stream.synchronize();
  console.log("after");
}
