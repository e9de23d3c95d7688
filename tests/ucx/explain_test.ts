/** Reports how memory would be sent, and sends nothing. */
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { test } from "node:test";
import { explain } from "../../src/ucx/explain.ts";
import { PoolStaging } from "../../src/ucx/pool_staging.ts";
import {
  Cuda,
  HostMemoryResource,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
  SynchronousMemoryResource,
  Ucx,
} from "../../mod.ts";

test("an endpoint explains how it sends memory: copied or not, after which work, by which transports", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  await Promise.all([endpoint.send(new Uint8Array(1)), worker.recv(new Uint8Array(1))]);
  const [tcp = ""] = endpoint.transports();
  assertStringIncludes(tcp, "tcp");
  assertEquals(
    endpoint.explain(new Float64Array(3)),
    `24 contiguous bytes, sent from where they are\nthe host's memory: ${endpoint.transports().join(", ")}`,
  );
  using buffer = new HostMemoryResource().allocate(12);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype: "float32" });
  const [first = ""] = endpoint.explain(view.sliced(slice(null, null, -1))).split("\n");
  assertEquals(
    first,
    "12 bytes that are not contiguous: copied on the host first, in C order ({ copy: false } refuses that)",
  );

  const cuda = Cuda.simulate({ schedule: "latest" });
  const device = cuda.device(0);
  const stream = device.createStream();
  using pinned = new PinnedMemoryResource(device).allocate(4, { stream });
  pinned.fill(1, { stream });
  assertStringIncludes(endpoint.explain(pinned), "waits for the buffer's home stream");
  assertStringIncludes(endpoint.explain(pinned), "page-locked memory");
  stream.synchronize();
  assertStringIncludes(endpoint.explain(pinned), "all work on them is done");
  if (!ucx.hasCuda) {
    using onDevice = device.memory.allocate(4, { stream });
    assertStringIncludes(endpoint.explain(onDevice), "refused, UCX knows no CUDA");
    await assertRejects(() => endpoint.send(onDevice), TypeError, "Cannot send GPU memory");
  }
  assertThrows(() => endpoint.explain({}), TypeError, "Cannot view");
  stream.close();
  pinned.close();
  cuda.close();
});

test("another library's array is explained like a view of it: contiguous or not", () => {
  using buffer = new HostMemoryResource().allocate(12);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [3], dtype: "float32" });
  const way = { transports: ["tcp/lo"], cuda: new PoolStaging(), handlesErrors: true };
  for (const one of [view, view.sliced(slice(null, null, -1)), view.sliced(slice(null, null, 2))]) {
    assertEquals(explain({ __dlpack__: (options: object) => one.__dlpack__(options) }, way), explain(one, way));
  }
  const cuda = Cuda.simulate();
  using memory = new SynchronousMemoryResource(cuda.device(0)).allocate(12);
  const onDevice = StridedMemoryView.fromBuffer(memory, { shape: [3], dtype: "float32" });
  // As in `send`: only a view can say which device the memory belongs to.
  const array = { __dlpack__: (options: object) => onDevice.__dlpack__(options) };
  assertThrows(() => explain(array, way), Error, "Cannot import memory of CUDA device 0");
  assertStringIncludes(explain(onDevice, way), "a GPU's memory");
});

test("the reason why memory is sent no faster is given where it is known", () => {
  const shared = { transports: ["sysv/memory", "tcp/lo"], cuda: null, handlesErrors: true };
  const reason = "large messages are copied twice";
  assertStringIncludes(explain(new Uint8Array(1), shared), reason);
  for (const way of [{ ...shared, handlesErrors: false }, { ...shared, transports: ["tcp/lo"] }]) {
    assertEquals(explain(new Uint8Array(1), way).includes(reason), false);
  }
  const cuda = Cuda.simulate();
  const device = cuda.device(0);
  using alone = new SynchronousMemoryResource(device).allocate(4);
  using pool = device.memory.allocate(4);
  const staged = { transports: ["sysv/memory", "tcp/lo"], cuda: new PoolStaging(), handlesErrors: true };
  assertStringIncludes(explain(alone, staged), "cuda_ipc is not among the transports");
  const direct = explain(alone, { ...staged, transports: ["sysv/memory", "cuda_ipc/cuda"] });
  assertEquals([direct.includes("from GPU to GPU: "), direct.includes("is not among")], [true, false]);
  assertStringIncludes(explain(pool, staged), "other processes cannot map a pool's memory");
  const stream = device.createStream();
  using large = device.memory.allocate(1 << 20, { stream });
  assertStringIncludes(explain(large, staged), "1048576 contiguous bytes, copied on the GPU first, to memory that");
  assertStringIncludes(explain(large, staged), "(stagingBytes)");
  assertEquals(explain(large, staged).includes("cannot map a pool's memory:"), false);
  const unstaged = explain(large, { ...staged, cuda: new PoolStaging(0) });
  assertStringIncludes(unstaged, "sent from where they are");
  assertStringIncludes(unstaged, "other processes cannot map a pool's memory:");
  const turned = StridedMemoryView.fromBuffer(large, { shape: [1024, 1024], strides: [1, 1024], dtype: "uint8" });
  assertStringIncludes(explain(turned, staged), "that are not contiguous: copied on the GPU first");
  stream.close();
});
