/**
 * The library polls streams and events for its own purposes. What such a poll finds done is chance, and orders nothing
 * for the program: the same mistake is reported whether or not one of them came in between.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  type CudaDevice,
  type CudaStream,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";

/** The memory whose fill on `stream` the program does not wait for. */
interface Scene {
  readonly device: CudaDevice;
  readonly stream: CudaStream;
  readonly memory: MemoryBuffer;
}

/** Each returns what to do after the fill. None of it waits for the fill. */
const polls: Readonly<Record<string, (scene: Scene) => () => unknown>> = {
  "nothing": () => () => {},
  "page-locked memory is closed": ({ device, stream }) => closed(new PinnedMemoryResource(device), stream),
  "managed memory is closed": ({ device, stream }) => closed(new ManagedMemoryResource(device), stream),
  "synchronous memory is closed": ({ device, stream }) => closed(new SynchronousMemoryResource(device), stream),
  "earlier work of the stream was awaited": ({ stream }) => {
    const before = stream.completed();
    return () => before;
  },
  "other memory is read": ({ device, stream }) => {
    const view = StridedMemoryView.zeros([4], { device, stream });
    const before = view.toTypedArray();
    return async () => {
      await before;
      view.close();
    };
  },
  "memory is allocated, which frees what it can": ({ device, stream }) => {
    closed(new PinnedMemoryResource(device), stream)();
    return () => device.memory.allocate(8, { stream }).close();
  },
};

function closed(
  resource: { allocate(size: number, options: { stream: CudaStream }): MemoryBuffer },
  stream: CudaStream,
): () => void {
  return () => {
    const memory = resource.allocate(64, { stream });
    memory.fill(1, { stream });
    memory.close();
  };
}

const cases = fc.record({
  poll: fc.constantFrom(...Object.keys(polls)),
  schedule: fc.constantFrom("random" as const, "round-robin" as const, "latest" as const),
  seed: fc.nat(100),
  isOrdered: fc.boolean(),
});

test("a poll of the library orders nothing", async () => {
  await check(
    fc.asyncProperty(cases, async ({ poll, schedule, seed, isOrdered }) => {
      const cuda = Cuda.simulate({ schedule, seed, check: { onReport: () => {} } });
      const device = cuda.device(0);
      {
        using stream = device.createStream();
        using other = device.createStream();
        using memory = device.memory.allocate(64, { stream });
        const afterFill = polls[poll]?.({ device, stream, memory });
        memory.fill(1, { stream });
        await afterFill?.();
        if (isOrdered) other.wait(stream);
        memory.fill(2, { stream: other });
        stream.wait(other);
        await stream.completed();
      }
      cuda.close();
      assertEquals(cuda.reports.map(({ kind }) => kind), isOrdered ? [] : ["race"]);
    }),
    60,
  );
});
