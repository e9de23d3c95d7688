/** Errors, reports and timelines use the names that programs give their streams, buffers and devices. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type CausalityError, Cuda, HostMemoryResource, MemoryBuffer, PinnedMemoryResource } from "../../mod.ts";

test("a race and a leak name the streams, the memory and the device, in text, timeline and picture", () => {
  const cuda = Cuda.simulate({ check: { onReport: () => {} } });
  const device = cuda.device(0, { name: "prefill" });
  const copies = device.createStream({ name: "copies" });
  const compute = device.createStream({ name: "compute" });
  const weights = device.memory.allocate(64, { stream: copies, name: "weights" });
  weights.fill(1, { stream: copies });
  weights.fill(2, { stream: compute });
  const [race] = cuda.reports;
  assert(race !== undefined);
  for (const name of ['"copies"', '"compute"', '"weights"', 'device 0 "prefill"']) {
    assert(race.message.includes(name), `${name} is not in ${race.message}`);
  }
  assert(race.message.endsWith("compute.wait(copies)."), race.message); // to be copied into the program
  const lanes = new Set(race.timeline.map(({ stream }) => stream));
  assert(lanes.has('stream "copies" of device 0 "prefill"'), [...lanes].join());
  assert(lanes.has('stream "compute" of device 0 "prefill"'), [...lanes].join());
  assert(race.toSvg().includes("compute"), "the picture names the stream");
  cuda.close();
  const leak = cuda.reports.find(({ kind }) => kind === "leak");
  const what = leak?.leaks.map((one) => one.what) ?? [];
  assertEquals(what.toSorted(), ['64 bytes of pool memory "weights"', 'stream "compute"', 'stream "copies"']);
});

test("errors name the closed object, and its device", () => {
  using cuda = Cuda.simulate({ devices: 2 });
  const device = cuda.device(1, { name: "decode" });
  const stream = device.createStream({ name: "copies" });
  using pinned = new PinnedMemoryResource(device).allocate(8, { name: "staging" });
  const host = new HostMemoryResource().allocate(8, { name: "input" });
  const foreign = MemoryBuffer.fromPointer(64n, 8, { name: "theirs" });
  assertEquals([stream.name, pinned.name, host.name, foreign.name], ["copies", "staging", "input", "theirs"]);
  assertEquals([device.label, cuda.device(0).label, `${device}`], ["decode", null, 'device 1 "decode"']);
  stream.close();
  host.close();
  assertThrows(() => stream.synchronize(), TypeError, 'Cannot synchronize a closed CudaStream "copies"');
  assertThrows(() => host.ptr, TypeError, 'Cannot use a closed MemoryBuffer of 8 bytes "input"');
  using event = cuda.device(0).createEvent();
  using other = device.createStream();
  assertThrows(() => other.record(event), TypeError, 'of device 0: expected one of device 1 "decode"');
  const used = device.memory.pool.use.used;
  for (const name of ["", 5 as unknown as string]) {
    const calls: (() => unknown)[] = [
      () => cuda.device(0, { name }),
      () => device.createStream({ name }),
      () => device.memory.allocate(8, { name }),
      () => new HostMemoryResource().allocate(8, { name }),
      () => new PinnedMemoryResource(device).allocate(8, { name }),
    ];
    for (const call of calls) assertThrows(call, TypeError, "Expected a name to be a non-empty string");
  }
  device.synchronize();
  assertEquals(device.memory.pool.use.used, used);
});

test("a thrown report has the names, too", () => {
  using cuda = Cuda.simulate({ check: true });
  const device = cuda.device(0);
  using one = device.createStream({ name: "one" });
  using other = device.createStream({ name: "other" });
  using buffer = device.memory.allocate(8, { stream: one });
  buffer.name = "late";
  buffer.fill(1, { stream: one });
  const error = assertThrows(() => buffer.fill(1, { stream: other })) as CausalityError;
  assertEquals(error.kind, "race");
  for (const name of ['"one"', '"other"', '"late"']) assert(error.message.includes(name), error.message);
  one.wait(other);
});
