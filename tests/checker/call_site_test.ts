/** A report names the program's call site of both calls, however deep in the package the driver is called. */
import { assert } from "@std/assert";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Cuda, type CudaStream, MemoryBuffer, PinnedMemoryResource, StridedMemoryView } from "../../mod.ts";

const here = fileURLToPath(import.meta.url);
const shape = [8, 16];

/** The arguments of a use of device memory while another stream still writes the memory. */
interface Given {
  readonly view: StridedMemoryView;
  readonly pinned: StridedMemoryView;
  readonly host: StridedMemoryView;
  readonly device: MemoryBuffer;
  readonly stream: CudaStream;
}

const uses: { readonly [name: string]: (given: Given) => unknown } = {
  "a fill": ({ device, stream }) => device.fill(2, { stream }),
  "a copy to a typed array": ({ device, stream }) => device.copyTo(new Uint8Array(device.size), { stream }),
  "a copy from a typed array": ({ device, stream }) => device.copyFrom(new Uint8Array(device.size), { stream }),
  "a copy of a view in its own layout": ({ view, pinned, stream }) => alone(view, stream).copyFrom(pinned, { stream }),
  "a copy of a view by a kernel": ({ view, pinned, stream }) =>
    alone(view, stream).permuted([1, 0]).copyFrom(pinned.reshaped([16, 8]), { stream }),
  "a copy that converts": ({ view, stream, pinned }) =>
    alone(view, stream).copyFrom(pinned.view("int32"), { stream, convert: true }),
  "a copy that is rearranged on the host": ({ view, host, stream }) =>
    host.permuted([1, 0]).copyFrom(alone(view, stream).reshaped([16, 8]), { stream }),
  "a fill of a view": ({ view, stream }) => alone(view, stream).permuted([1, 0]).fill(3, { stream }),
};

/** The same memory, as if from a library that states no order. */
function alone(view: StridedMemoryView, stream: CudaStream): StridedMemoryView {
  const { ptr, size } = view.buffer;
  const buffer = MemoryBuffer.fromPointer(ptr, size, { device: stream.device, stream, owner: view });
  return StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float32" });
}

for (const [name, use] of Object.entries(uses)) {
  test(`${name} that comes too early is reported with the place of both calls`, async () => {
    const messages: string[] = [];
    const cuda = Cuda.simulate({ check: { leaks: false, onReport: ({ message }) => messages.push(message) } });
    const device = cuda.device(0);
    const [home, stream] = [device.createStream(), device.createStream()];
    const [view, host] = [
      StridedMemoryView.fromBuffer(device.memory.allocate(512, { stream: home }), { shape, dtype: "float32" }),
      StridedMemoryView.zeros(shape, { dtype: "float32" }),
    ];
    const buffer = new PinnedMemoryResource(device).allocate(512);
    const pinned = StridedMemoryView.fromBuffer(buffer, { shape, dtype: "float32" });
    home.synchronize();
    view.buffer.fill(1, { stream: home });
    await use({ view, pinned, host, device: view.buffer, stream });
    const [message = ""] = messages;
    const places = message.split("\n").filter((line) => line.trim().startsWith("at "));
    assert(message.includes("Race"), message);
    // Each call's stack starts in this file: deeper frames are the package's own.
    assert(places.filter((line) => line.includes(here)).length >= 2 && !message.includes("unknown place"), message);
    device.synchronize();
    cuda.close();
  });
}
