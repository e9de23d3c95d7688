/** Draws a graph of 300 consecutive nodes, and prints the drawing as JSON. */
import { Cuda } from "../../../mod.ts";

using cuda = Cuda.simulate();
const device = cuda.device(0);
using stream = device.createStream();
using memory = device.memory.allocate(64, { stream });
using graph = stream.capture(() => {
  for (let i = 0; i < 300; i++) memory.fill(i % 256, { stream });
});
console.log(JSON.stringify(graph.toDot()));
