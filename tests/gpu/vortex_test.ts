/** Vortex numbers decoded by GPU kernels, and Vortex buffers on a GPU. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, Cuda, type PyObject, Python } from "../../mod.ts";
import { rootNode } from "../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../src/vortex/limits.ts";
import { openAll } from "../../src/vortex/open_nodes.ts";
import { VortexSession } from "../../src/vortex/session.ts";
import { VortexArray } from "../../src/vortex/vortex_array.ts";
import { patiently } from "../support/child.ts";
import { realRoot } from "../support/cuda_root.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";
import { node, proto } from "../support/vortex/nodes.ts";
import { vortexBehaviours } from "./vortex_behaviours.ts";
import { vortexBufferBehaviours } from "./vortex_buffer_behaviours.ts";

for (const { name, devices, run } of [...vortexBehaviours, ...vortexBufferBehaviours]) {
  test(...needs(missingGpus(devices), name), () => run(realRoot));
}

const noGpu = missingGpus();
const found = noGpu ?? findPython("cupy");
const [title, { skip }] = needs(
  typeof found === "string" ? found : null,
  "CuPy takes the buffers of arrays that a device has decoded, in place and after the kernels",
);

test(title, { skip, ...patiently }, () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run("import cupy");
  const look = python.evaluate("lambda view: (lambda array: (array.data.ptr, array.tolist()))(cupy.asarray(view))");
  using cuda = Cuda.open();
  using stream = cuda.device(0).createStream();
  const u8 = { kind: "primitive", ptype: "u8", nullable: false } as const;
  const i64 = { kind: "primitive", ptype: "i64", nullable: false } as const;
  const packed = node("fastlanes.bitpacked", proto([1, 8]), [Uint8Array.from({ length: 1024 }, () => 9)]);
  const term = (value: number) => proto([3, 2 * value]); // a signed number
  const sequence = node("vortex.sequence", proto([1, term(5)], [2, term(3)]), []);
  const dtype = { kind: "struct", names: ["nines", "steps"], fields: [u8, i64], nullable: false } as const;
  const root = rootNode(node("vortex.struct", proto(), [], packed, sequence), dtype, 100);
  const session = VortexSession.default();
  openAll(session, root);
  using array = VortexArray.ofNode(root, { session, limits: limitsOf() });
  using arrow = ArrowArray.from(array.toArrowDevice({ stream }), { stream });
  const expected = [Array.from({ length: 100 }, () => 9), Array.from({ length: 100 }, (_, i) => 5 + 3 * i)];
  for (const [index, values] of expected.entries()) {
    const view = arrow.child(index).values;
    using seen: PyObject = look.$call(view);
    const [address, elements] = seen.$value() as [number | bigint, unknown[]]; // as it is written above
    assertEquals([BigInt(address), elements.map(Number)], [view.ptr, values]);
  }
});
