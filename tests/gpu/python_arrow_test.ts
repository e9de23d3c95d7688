/**
 * Device memory in Python as Arrow device arrays: in place, with an event after the enqueued work, and back.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { exportArrowStream } from "../../src/public/arrow.ts";
import {
  ArrowArray,
  ArrowStream,
  Cuda,
  DeviceMemoryResource,
  HostMemoryResource,
  type PyObject,
  Python,
  StridedMemoryView,
} from "../../mod.ts";
import { patiently } from "../support/child.ts";
import { missingGpus } from "../support/gpu.ts";
import { needs } from "../support/needs.ts";
import { findPython } from "../support/python.ts";

const noGpu = missingGpus();
const found = noGpu ?? findPython();
const [title, { skip }] = needs(
  typeof found === "string" ? found : null,
  "views, Arrow arrays and streams of device memory cross Python in place, after what is enqueued on them",
);

test(title, { skip, ...patiently }, () => {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  const same = python.evaluate("lambda array: array");
  using cuda = Cuda.open();
  const device = cuda.device(0);
  using home = device.createStream();
  using consumer = device.createStream();
  const count = 2 ** 24;
  const resource = new DeviceMemoryResource(device);
  using buffer = resource.allocate(4 * count, { stream: home });
  using ballast = resource.allocate(2 ** 28, { stream: home });
  using host = new HostMemoryResource().allocate(4 * count);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [count / 4, 4], dtype: "int32" });
  for (const [round, way] of (["view", "array", "stream"] as const).entries()) {
    const value = 3 + round;
    for (let i = 0; i < 20; i++) ballast.fill(i, { stream: home }); // so that the next fill is late
    buffer.fill(value, { stream: home, width: 4 });
    using source = way === "view" ? null : ArrowArray.from(view, { stream: home });
    const given = source === null ? view : way === "array" ? source : exportArrowStream([source], { device: true });
    using there: PyObject = same.$call(given);
    using stream = way === "stream" ? ArrowStream.from(there, { stream: consumer }) : null;
    using back = stream === null ? ArrowArray.from(there, { stream: consumer }) : stream.next();
    assertEquals(
      [back?.values.ptr, back?.values.shape.join(), back?.device],
      [view.ptr, `${count / 4},4`, device],
      way,
    );
    back?.values.buffer.copyTo(host, { stream: consumer });
    consumer.synchronize();
    assertEquals([...new Set(new Int32Array(host.bytes().buffer))], [value], `${way}: the consumer has read too early`);
  }
  python.run("import gc; gc.collect()");
  assertEquals(liveExports(), 0);
});
