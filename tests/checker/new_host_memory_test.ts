/**
 * Ordinary host memory comes and goes without the driver. What is new at an address is in use by no stream, though the
 * program has not waited for the streams that used what was there before: it was freed when they had passed.
 */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda, type CudaStream, HostMemoryResource, MemoryBuffer, StridedMemoryView } from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { reclaim } from "../../src/order/reclaim.ts";
import { check, fc, scaled } from "../support/property.ts";

const size = 256;

/** Two streams of a checked device, with memory of each. */
function checked(schedule: "latest" | "round-robin" | "random", seed = 0) {
  const cuda = Cuda.simulate({ schedule, seed, check: { leaks: false, onReport: () => {} } });
  const device = cuda.device(0);
  const lanes = [1, 2].map(() => {
    const stream = device.createStream();
    return { stream, memory: device.memory.allocate(size, { stream }) };
  });
  return { cuda, lanes };
}

/** How a buffer's memory is used on a stream. */
const uses = {
  up: (host: MemoryBuffer, memory: MemoryBuffer, stream: CudaStream) => memory.copyFrom(host, { stream }),
  down: (host: MemoryBuffer, memory: MemoryBuffer, stream: CudaStream) => memory.copyTo(host, { stream }),
} as const;

const steps = fc.array(
  fc.record({ lane: fc.nat(1), use: fc.constantFrom("up", "down"), isFilled: fc.boolean() }),
  { minLength: 20, maxLength: 40 },
);

test("memory that is freed after its use, and allocated again, is not reported", () => {
  let again = 0;
  check(
    fc.property(steps, fc.constantFrom("latest", "round-robin", "random"), fc.nat(99), (program, schedule, seed) => {
      const { cuda, lanes } = checked(schedule, seed);
      using backing = new HostMemoryResource().allocate(size * program.length);
      const unused = program.map((_, i) => backing.ptr + BigInt(i * size));
      const used = new Set<bigint>();
      for (const { lane, use, isFilled } of program) {
        const { stream, memory } = lanes[lane] ?? {};
        assert(stream !== undefined && memory !== undefined);
        reclaim(); // as resources do
        const ptr = unused.pop() ?? 0n;
        if (used.has(ptr)) again++;
        used.add(ptr);
        const free = () => void unused.push(ptr); // the next one to be used
        const host = MemoryBuffer.fromAllocation({ ptr, size, device: null, stream: null, free });
        if (isFilled) host.fill(7);
        uses[use](host, memory, stream);
        host.close();
      }
      assertEquals(cuda.reports.map(({ message }) => message), []);
      for (const { stream } of lanes) stream.synchronize();
      reclaim();
      assertEquals(unused.length, program.length);
      cuda.close();
    }),
    60,
  );
  assert(again > scaled(200), `only ${again} times the same address`);
});

/** What the program does next at the address of memory that a stream still reads. */
const next: Readonly<Record<string, (view: StridedMemoryView) => StridedMemoryView>> = {
  "the same view": (view) => view,
  "another view of its ArrayBuffer": ({ buffer: { owner } }) =>
    StridedMemoryView.fromTypedArray(new Uint8Array(owner as ArrayBuffer)),
  "the bytes of its buffer": ({ buffer }) => StridedMemoryView.fromTypedArray(buffer.bytes()),
  "an ArrayBuffer that took its place": ({ ptr }) =>
    StridedMemoryView.fromTypedArray(new Uint8Array(ffiPort().memory(ptr, size))),
};

for (const [name, take] of Object.entries(next)) {
  test(`a write to an array that a stream reads is reported unless it is another array: ${name}`, () => {
    using backing = new HostMemoryResource().allocate(size); // the collector would not put an array there on demand
    const { cuda, lanes: [lane] } = checked("latest");
    assert(lane !== undefined);
    const { stream, memory } = lane;
    const view = StridedMemoryView.fromTypedArray(new Uint8Array(ffiPort().memory(backing.ptr, size)));
    memory.copyFrom(view.buffer, { stream });
    take(view).fill(3);
    assertEquals(cuda.reports.map(({ kind }) => kind), name.startsWith("an ArrayBuffer") ? [] : ["race"]);
    stream.synchronize();
    cuda.close();
  });
}

test("only the bytes of new memory are new", () => {
  const { cuda, lanes: [lane] } = checked("latest");
  assert(lane !== undefined);
  const { stream, memory } = lane;
  using host = new HostMemoryResource().allocate(size);
  memory.copyFrom(host, { stream });
  using part = MemoryBuffer.fromAllocation({
    ptr: host.ptr + 64n,
    size: 64,
    device: null,
    stream: null,
    free: () => {},
  });
  part.fill(1);
  assertEquals(cuda.reports.length, 0);
  MemoryBuffer.fromPointer(host.ptr + 128n, 64).fill(1);
  assertEquals(cuda.reports.map(({ kind, address }) => [kind, address]), [["race", host.ptr + 128n]]);
  stream.synchronize();
  cuda.close();
});
