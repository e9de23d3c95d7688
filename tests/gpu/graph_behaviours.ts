/**
 * What captures and graphs do, on a real GPU and on a simulated one.
 *
 * @module
 */
import { assert, assertEquals, assertMatch, assertRejects, assertThrows } from "@std/assert";
import {
  type Cuda,
  type CudaDevice,
  CudaError,
  type CudaStream,
  DeviceMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import type { Behaviour, Root } from "../support/cuda_root.ts";

/** `add(p, n, v)`: adds v to n words, one per thread. */
export const addPtx = `
.version 7.0
.target sm_52
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n, .param .u32 v)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  ld.param.u32 %r2, [v];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.u32 %r7, %r7, %r2;
  st.global.u32 [%rd4], %r7;
DONE:
  ret;
}
`;

interface Bench {
  readonly cuda: Cuda;
  readonly device: CudaDevice;
  readonly stream: CudaStream;
  readonly memory: DeviceMemoryResource;
  readonly host: MemoryBuffer;
  [Symbol.dispose](): void;
}

/** A device with a stream, memory and 64 pinned bytes. */
function bench(root: Root): Bench {
  const cuda = root.open();
  const device = cuda.device(0);
  const stream = device.createStream();
  const host = new PinnedMemoryResource(device).allocate(64);
  host.bytes().fill(0);
  const memory = new DeviceMemoryResource(device);
  return {
    cuda,
    device,
    stream,
    memory,
    host,
    [Symbol.dispose]() {
      host.close();
      stream.close();
      cuda.close();
    },
  };
}

/** The first byte of device memory, read on a stream. */
function first(buffer: MemoryBuffer, { device, stream }: Bench): number {
  using host = new PinnedMemoryResource(device).allocate(buffer.size);
  buffer.copyTo(host, { stream });
  stream.synchronize();
  return host.bytes()[0] ?? -1;
}

/** The driver's error code that a call fails with. */
function codeOf(call: () => unknown): string {
  return assertThrows(call, CudaError).codeName;
}

/** Closes buffers and a graph in use by a launch, and allocates on their home stream, which may have changed. */
async function closeUnderWay(root: Root, moves: boolean): Promise<void> {
  using all = bench(root);
  const { device, stream, memory } = all;
  const size = root.bytes;
  const first = device.createStream();
  const home = moves ? device.createStream() : first;
  const buffer = memory.allocate(size, { stream: first });
  const other = memory.allocate(size, { stream: first });
  buffer.fill(7, { stream: first });
  stream.wait(first);
  const graph = stream.capture(() => {
    for (let i = 0; i < 10; i++) {
      other.copyFrom(buffer, { stream });
      buffer.copyFrom(other, { stream });
    }
  });
  const exec = graph.instantiate();
  exec.launch(stream);
  if (moves) { for (const one of [buffer, other]) one.setHomeStream(home); }
  buffer.close();
  other.close();
  graph.close();
  exec.close(); // the memory is freed on its home stream, which now has to wait for the launch
  assertThrows(() => exec.launch(stream), TypeError, "closed");
  assertThrows(() => graph.nodes, TypeError, "closed");
  using next = memory.allocate(size, { stream: home });
  next.fill(9, { stream: home });
  home.synchronize(); // without the order this would overtake the launch
  stream.synchronize();
  using part = new PinnedMemoryResource(device).allocate(size);
  next.copyTo(part, { stream: home });
  home.synchronize();
  assert(part.bytes().every((byte) => byte === 9), "the launch wrote to memory of another allocation");
  first.close();
  home.close();
  await stream.completed();
}

/** The behaviours. */
export const graphBehaviours: readonly Behaviour[] = [
  {
    name: "captured work is done at each launch, and not before",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { stream, memory, host } = all;
      using buffer = memory.allocate(64, { stream });
      buffer.fill(1, { stream });
      assertEquals(stream.isCapturing, false);
      using graph = stream.capture(() => {
        assertEquals(stream.isCapturing, true);
        buffer.copyTo(host, { stream });
        buffer.fill(2, { stream });
      });
      assertEquals(stream.isCapturing, false);
      assertEquals(graph.nodes.map(({ kind }) => kind), ["MEMCPY", "MEMSET"]);
      assertEquals(graph.edges, [[0, 1]]);
      using exec = graph.instantiate();
      exec.upload(stream);
      stream.synchronize();
      assertEquals(host.bytes()[0], 0, "nothing is done while it is captured");
      exec.launch(stream);
      stream.synchronize();
      assertEquals(host.bytes()[0], 1);
      exec.launch(stream);
      stream.synchronize();
      assertEquals(host.bytes()[63], 2);
    },
  },

  {
    name: "a kernel in a graph is launched with the arguments of the capture, though its program and memory are closed",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { device, stream, memory, host } = all;
      const buffer = memory.allocate(64, { stream });
      buffer.fill(0, { stream });
      const program = device.loadPtx(addPtx);
      using graph = stream.capture(() => {
        program.kernel("add").launch(stream, 1, 32, [buffer, ["uint32", 16], ["uint32", 3]]);
        program.kernel("add").launch(stream, 1, 32, [buffer, ["uint32", 16], ["uint32", 4]]);
        buffer.copyTo(host, { stream });
      });
      program.close();
      buffer.close();
      assertThrows(() => program.kernel("add"), TypeError, "closed");
      using other = memory.allocate(64, { stream }); // must not get the memory that the graph uses
      other.fill(0xff, { stream });
      using exec = graph.instantiate();
      for (let i = 0; i < 5; i++) exec.launch(stream);
      stream.synchronize();
      assertEquals([...new Uint32Array(host.bytes().buffer, host.bytes().byteOffset, 16)], Array(16).fill(35));
    },
  },

  {
    name: "streams that wait for a captured one are captured with it",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { device, stream, memory, host } = all;
      using left = device.createStream();
      using right = device.createStream();
      using a = memory.allocate(64, { stream });
      using b = memory.allocate(64, { stream });
      using graph = stream.capture(() => {
        a.fill(1, { stream });
        left.wait(stream);
        right.wait(stream.record());
        assertEquals([left.isCapturing, right.isCapturing], [true, true]);
        a.fill(2, { stream: left });
        b.fill(3, { stream: right });
        left.wait(right);
        b.copyFrom(a, { stream: left });
        stream.wait(left);
        b.copyTo(host, { stream });
      });
      assertEquals([left.isCapturing, right.isCapturing], [false, false]);
      assertEquals(graph.nodes.map(({ kind }) => kind), ["MEMSET", "MEMSET", "MEMSET", "MEMCPY", "MEMCPY"]);
      const edges = graph.edges.map(([before, after]) => `${before}>${after}`);
      const sorted = edges.filter((edge) => edge !== "0>4").sort(); // implied by the others, and may be left out
      assertEquals(sorted, ["0>1", "0>2", "1>3", "2>3", "3>4"]);
      using exec = graph.instantiate();
      a.fill(9, { stream });
      exec.launch(stream);
      stream.synchronize();
      assertEquals(host.bytes()[7], 2);
      left.synchronize();
    },
  },

  {
    name: "a stream that has joined and was not waited for invalidates the capture, and is usable after it",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { device, stream, memory } = all;
      using side = device.createStream();
      using a = memory.allocate(64, { stream });
      const unjoined = () => {
        side.wait(stream);
        a.fill(1, { stream: side });
      };
      a.fill(5, { stream });
      stream.synchronize();
      const error = assertThrows(() => stream.capture(unjoined), CudaError, "stream.wait(other)");
      assertEquals(error.codeName, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
      assertEquals([stream.isCapturing, side.isCapturing], [false, false]);
      side.synchronize();
      assertEquals(first(a, all), 5);
    },
  },

  {
    name: "an error in the captured function is the one that is thrown, and the stream is usable after it",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { stream, memory } = all;
      using a = memory.allocate(64, { stream });
      a.fill(5, { stream });
      stream.synchronize();
      assertThrows(
        () =>
          stream.capture(() => {
            a.fill(1, { stream });
            throw new SyntaxError("of the caller");
          }),
        SyntaxError,
        "of the caller",
      );
      assertEquals(stream.isCapturing, false);
      assertEquals(first(a, all), 5, "captured work is not done");
      // @ts-expect-error -- a promise
      const error = assertThrows(() => stream.capture(async () => await Promise.resolve()), TypeError);
      assertMatch(error.message, /asynchronous/);
      assertEquals(stream.isCapturing, false);
      assertThrows(() => stream.capture(() => {}, { mode: "strict" as "global" }), TypeError, "expected");
    },
  },

  {
    name: "a call that cannot be captured is an error with the driver's code, and what to do",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { device, stream } = all;
      using other = device.createStream();
      using event = device.createEvent();
      const unsupported = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
      assertEquals(codeOf(() => stream.capture(() => stream.synchronize())), unsupported);
      assertEquals(codeOf(() => stream.capture(() => stream.isDone)), unsupported);
      assertEquals(codeOf(() => stream.capture(() => other.synchronize())), unsupported);
      const captured = () => {
        stream.record(event);
        return event.isDone;
      };
      assertEquals(codeOf(() => stream.capture(captured)), "CUDA_ERROR_CAPTURED_EVENT");
      other.record(event);
      const isolated = "CUDA_ERROR_STREAM_CAPTURE_ISOLATION";
      assertEquals(codeOf(() => stream.capture(() => stream.wait(event))), isolated);
      const swallowed = () => {
        assertThrows(() => stream.synchronize(), CudaError, "before or after the capture");
      };
      const invalidated = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
      assertEquals(codeOf(() => stream.capture(swallowed)), invalidated);
      stream.synchronize();
      using graph = stream.capture(() => other.synchronize(), { mode: "relaxed" });
      assertEquals(graph.nodes, []);
    },
  },

  {
    // The driver's codes came with the way out of another mistake, or with none.
    name: "the default stream, and a stream that takes part in a capture already, cannot be captured",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { device, stream, memory } = all;
      using other = device.createStream();
      using buffer = memory.allocate(64, { stream });
      for (const mode of ["thread-local", "relaxed"] as const) {
        assertThrows(() => device.defaultStream.capture(() => {}, { mode }), TypeError, "use one of createStream()");
        const already = "takes part in a capture already";
        using graph = stream.capture(() => {
          assertThrows(() => stream.capture(() => {}, { mode }), TypeError, already);
          other.wait(stream);
          assertThrows(() => other.beginCapture({ mode }), TypeError, already);
          buffer.fill(5, { stream: other });
          stream.wait(other);
        });
        assertEquals(graph.nodes.length, 1, "the capture went on");
      }
      other.capture(() => {}).close();
    },
  },

  {
    name: "allocating and waiting on a captured stream is refused before it invalidates the capture",
    devices: 1,
    async run(root) {
      using all = bench(root);
      const { stream, memory } = all;
      using buffer = memory.allocate(64, { stream });
      using capture = stream.beginCapture();
      assertThrows(() => memory.allocate(64, { stream }), TypeError, "allocate before the capture");
      const rows = StridedMemoryView.fromBuffer(buffer, { shape: [8, 8], dtype: "uint8" });
      const columns = StridedMemoryView.fromTypedArray(new Uint8Array(64), { shape: [8, 8] }).permuted([1, 0]);
      assertThrows(() => rows.copyFrom(columns, { stream }), TypeError, "the host has to arrange");
      assertThrows(() => rows.copyTo(columns, { stream }), TypeError, "the host has to arrange");
      assertThrows(() => rows.copyFrom(rows.permuted([1, 0]), { stream }), TypeError, "allocate before the capture");
      const error = await assertRejects(() => stream.completed(), CudaError);
      assertEquals(error.codeName, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
      buffer.fill(1, { stream });
      using graph = capture.end();
      assertEquals(graph.nodes.map(({ kind }) => kind), ["MEMSET"]);
      assertThrows(() => capture.end(), TypeError, "twice");
      using exec = graph.instantiate();
      assertThrows(() => stream.capture(() => exec.launch(stream)), TypeError, "being captured");
    },
  },

  {
    name: "memory that is closed during a capture is freed after it",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { device, stream, memory } = all;
      const before = memory.pool.use.used;
      const pooled = memory.allocate(64, { stream });
      const allocated = memory.pool.use.used;
      const pinned = new PinnedMemoryResource(device).allocate(64, { stream });
      using graph = stream.capture(() => {
        pooled.close();
        pinned.close();
      });
      assertEquals(graph.nodes, [], "freeing is no part of the graph");
      stream.synchronize();
      assert(memory.pool.use.used < allocated && memory.pool.use.used === before, `${memory.pool.use.used}`);
    },
  },

  {
    name:
      "a copy between views in a graph uses their memory though they are closed: in one piece, by rows, by a kernel",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { stream, memory } = all;
      const columns = (buffer: MemoryBuffer) => StridedMemoryView.fromBuffer(buffer, { shape: [8, 8], dtype: "uint8" });
      const parts = [
        columns,
        (buffer: MemoryBuffer) => columns(buffer).sliced(slice(null, null), slice(0, 4)),
        (buffer: MemoryBuffer) => columns(buffer).sliced(slice(null, null), slice(null, null, 2)),
      ];
      for (const part of parts) {
        const source = memory.allocate(64, { stream });
        using target = memory.allocate(64, { stream });
        source.fill(7, { stream });
        target.fill(0, { stream });
        using graph = stream.capture(() => part(target).copyFrom(part(source), { stream }));
        using exec = graph.instantiate();
        source.close();
        using next = memory.allocate(64, { stream }); // it would get the same address
        next.fill(9, { stream });
        exec.launch(stream);
        assertEquals(first(target, all), 7);
      }
    },
  },

  {
    name: "a graph can be closed while launches of it are under way: the memory they use stays until they are over",
    devices: 1,
    async run(root) {
      for (const moves of [false, true]) await closeUnderWay(root, moves);
    },
  },

  {
    name: "an executable graph can be updated to another graph of its shape, and to no other",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { stream, memory } = all;
      using a = memory.allocate(64, { stream });
      using b = memory.allocate(64, { stream });
      b.fill(0, { stream });
      using graph = stream.capture(() => a.fill(1, { stream }));
      using same = stream.capture(() => b.fill(2, { stream }));
      using longer = stream.capture(() => {
        a.fill(3, { stream });
        a.fill(4, { stream });
      });
      using different = stream.capture(() => a.copyFrom(b, { stream }));
      using exec = graph.instantiate();
      exec.launch(stream);
      assertEquals([first(a, all), first(b, all)], [1, 0]);
      exec.update(same);
      exec.launch(stream);
      assertEquals([first(a, all), first(b, all)], [1, 2]);
      const failure = "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE";
      // The driver has its own reasons for a mismatch: for one node more an H200 reports ERROR_NOT_SUPPORTED.
      assertEquals(assertThrows(() => exec.update(longer), CudaError, "ERROR_").codeName, failure);
      assertEquals(assertThrows(() => exec.update(different), CudaError, "ERROR_").codeName, failure);
      b.fill(0, { stream });
      exec.launch(stream);
      assertEquals([first(a, all), first(b, all)], [1, 2], "a refused update changes nothing");
    },
  },

  {
    name: "a graph draws itself",
    devices: 1,
    run(root) {
      using all = bench(root);
      const { stream, memory } = all;
      using a = memory.allocate(64, { stream });
      using graph = stream.capture(() => {
        a.fill(1, { stream });
        a.fill(2, { stream });
      });
      assertMatch(graph.toDot(), /^\s*digraph dot \{[^]*MEMSET[^]*->[^]*\}\s*$/i);
      assertMatch(graph.toDot({ verbose: true }), /^\s*digraph/);
    },
  },
];
