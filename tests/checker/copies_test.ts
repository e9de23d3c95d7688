/**
 * Copies that read what they write, other processes' memory used after it is gone, and premature host accesses.
 */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CU_MEMORYTYPE, CU_STREAM_LEGACY, CUDA_MEMCPY2D_v2 } from "../../bindings/cuda_types.ts";
import { type CausalityReport, checkDriver } from "../../src/checker/mod.ts";
import {
  ArrowArray,
  arrowField,
  CausalityError,
  Cuda,
  type CudaStream,
  HostMemoryResource,
  MemoryBuffer,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
  SynchronousMemoryResource,
} from "../../mod.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { maxSpans, takeSpans } from "../../src/sim/device_memory.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

const size = 96;

/** A checked simulator, and the reports on its use. */
function checkedRaw(): { raw: Raw; reports: CausalityReport[] } {
  const reports: CausalityReport[] = [];
  const raw = new Raw(checkDriver(simulateDriver().driver, { onReport: (report) => void reports.push(report) }).driver);
  raw.use(0);
  return { raw, reports };
}

test("a copy is reported exactly if it reads bytes that it writes, unless they stay where they are", () => {
  const counts = { apart: 0, meeting: 0 };
  const rows = fc.record({
    from: fc.nat(47),
    to: fc.nat(47),
    fromPitch: fc.integer({ min: 8, max: 12 }),
    toPitch: fc.integer({ min: 8, max: 12 }),
    width: fc.integer({ min: 1, max: 8 }),
    height: fc.integer({ min: 1, max: 4 }),
    isAlike: fc.boolean(),
    isFlat: fc.boolean(),
    isNow: fc.boolean(),
  });
  check(
    fc.property(rows, ({ from, to: elsewhere, isAlike, fromPitch, toPitch, width, height, isFlat, isNow }) => {
      const { raw, reports } = checkedRaw();
      const { copy, copyPitched, memory } = raw.driver;
      const to = isAlike ? from : elsewhere;
      const at = raw.word((out) => memory.cuMemAlloc_v2(out, BigInt(size)));
      const bytes = (start: number, pitch: number) =>
        Array.from(
          { length: width * height },
          (_, i) => start + (isFlat ? i : Math.floor(i / width) * pitch + i % width),
        );
      if (isFlat) {
        const [target, source, count] = [at + BigInt(to), at + BigInt(from), BigInt(width * height)];
        if (isNow) raw.ok(copy.cuMemcpyDtoD_v2(target, source, count));
        else raw.ok(copy.cuMemcpyDtoDAsync_v2(target, source, count, CU_STREAM_LEGACY));
      } else {
        const c = raw.arena.struct(CUDA_MEMCPY2D_v2);
        Object.assign(c, { srcMemoryType: CU_MEMORYTYPE.DEVICE, dstMemoryType: CU_MEMORYTYPE.DEVICE });
        Object.assign(c, { srcDevice: at + BigInt(from), dstDevice: at + BigInt(to) });
        Object.assign(c, { srcPitch: fromPitch, dstPitch: toPitch, WidthInBytes: width, Height: height });
        if (isNow) raw.ok(copyPitched.cuMemcpy2D_v2(c.$address));
        else raw.ok(copyPitched.cuMemcpy2DAsync_v2(c.$address, CU_STREAM_LEGACY));
      }
      const [read, written] = [bytes(from, fromPitch), bytes(to, toPitch)];
      const common = read.filter((one) => written.includes(one));
      const isReported = common.length > 0 && read.some((one, i) => one !== written[i]);
      counts[isReported ? "meeting" : "apart"]++;
      assertEquals(reports.map(({ kind }) => kind), isReported ? ["overlap"] : []);
      const [report] = reports;
      if (report !== undefined) {
        assert(common.includes(Number((report.address ?? 0n) - at)), report.message);
        assertEquals([report.first?.does, report.second?.does], ["reads", "writes"]);
        for (const call of [report.first, report.second]) assert(call?.stack[0]?.includes("copies_test.ts"));
        assert(report.toSvg().startsWith("<svg "));
      }
      raw.close();
    }),
    1000,
  );
  assert(
    Math.min(counts.apart, counts.meeting) > scaled(100),
    `${counts.apart} and ${counts.meeting}: too few to tell`,
  );
});

test("memory of another process is gone once it is closed as often as it was opened, or its owner has freed it", () => {
  const steps = fc.array(fc.constantFrom("open", "close", "use", "free"), { maxLength: 10 });
  check(
    fc.property(steps, (program) => {
      const [ours, theirs] = [1, 2].map(() => {
        takeSpans(maxSpans); // so that both have the first addresses
        return checkedRaw();
      });
      assert(ours !== undefined && theirs !== undefined);
      const memory = theirs.raw.word((out) => theirs.raw.driver.memory.cuMemAlloc_v2(out, 64n));
      const handle = theirs.raw.arena.bytes(64);
      // At the address that their memory has in their process: our memory there says nothing about theirs.
      assertEquals(ours.raw.word((out) => ours.raw.driver.memory.cuMemAlloc_v2(out, 64n)), memory);
      theirs.raw.ok(theirs.raw.driver.ipc.cuIpcGetMemHandle(handle.address, memory));
      let [opened, isThere, wrong] = [0, true, 0];
      let address: bigint | null = null;
      const wrongCalls = new Set<string>();
      ours.raw.use(0);
      for (const step of program) {
        switch (step) {
          case "open":
            if (!isThere) break;
            address = ours.raw.word((out) => ours.raw.driver.ipc.cuIpcOpenMemHandle_v2(out, handle.bytes, 1));
            opened++;
            break;
          case "close":
            if (opened === 0 || address === null) break;
            ours.raw.ok(ours.raw.driver.ipc.cuIpcCloseMemHandle(address));
            opened--;
            break;
          case "use":
            if (address === null) break;
            ours.raw.driver.fill.cuMemsetD8Async(address, 1, 8n, CU_STREAM_LEGACY);
            if (opened > 0 && isThere) break;
            wrongCalls.add(opened === 0 ? "cuIpcCloseMemHandle" : "cuMemFree_v2");
            wrong++;
            break;
          case "free":
            if (!isThere) break;
            theirs.raw.use(0);
            theirs.raw.ok(theirs.raw.driver.memory.cuMemFree_v2(memory));
            ours.raw.use(0);
            isThere = false;
        }
      }
      assertEquals(theirs.reports, []);
      assertEquals(new Set(ours.reports.map(({ kind }) => kind)), new Set(wrong > 0 ? ["use-after-free"] : []));
      assertEquals(new Set(ours.reports.map(({ first }) => first?.call)), wrongCalls);
      for (const { first, second } of ours.reports) {
        for (const call of [first, second]) assert(call?.stack[0]?.includes("copies_test.ts"));
      }
      if (isThere) {
        while (opened-- > 0 && address !== null) ours.raw.ok(ours.raw.driver.ipc.cuIpcCloseMemHandle(address));
      }
    }),
    300,
  );
});

/** The reports when the host accesses memory that is written by a stream other than the memory's home. */
async function takenEarly(
  isOrdered: boolean,
  take: (view: StridedMemoryView, buffer: MemoryBuffer) => unknown,
): Promise<CausalityReport[]> {
  const reports: CausalityReport[] = [];
  const cuda = Cuda.simulate({
    schedule: "latest",
    check: { leaks: false, onReport: (one) => void reports.push(one) },
  });
  const device = cuda.device(0);
  const [home, other] = [device.createStream(), device.createStream()];
  const source = new SynchronousMemoryResource(device).allocate(size);
  const buffer = new PinnedMemoryResource(device).allocate(size, { stream: home });
  buffer.copyFrom(source, { stream: other });
  if (isOrdered) home.wait(other);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [size], dtype: "uint8" });
  await take(view, buffer);
  const found = [...reports];
  home.wait(other);
  for (const one of [buffer, source, home, other]) one.close();
  cuda.close();
  return found;
}

const takes: Readonly<Record<string, (view: StridedMemoryView, buffer: MemoryBuffer) => unknown>> = {
  "view.toString()": (view) => view.toString(),
  "view.copyFrom()": (view) => view.copyTo(new Uint8Array(size)),
  "a copy to it": (view) => view.copyFrom(new Uint8Array(size)),
  "toDlpack()": (view) => view.toDlpack().close(),
  "__array_interface__": (view) => view.__array_interface__,
  "__arrow_c_array__()": (view) => view.__arrow_c_array__().close(), // only waited for, and not noted
  "array.get()": (view, { stream }) => {
    using array = ArrowArray.from(view, stream === null ? {} : { stream });
    return array.get(3);
  },
  "fill()": (_, buffer) => buffer.fill(1),
  "copyTo()": (_, buffer) => buffer.copyTo(new Uint8Array(size)),
};

for (const [name, take] of Object.entries(takes)) {
  test(`a host access that is too early is reported with both calls, an ordered one is not: ${name}`, async () => {
    const reports = await takenEarly(false, take);
    assertEquals(reports.map(({ kind, first, second }) => [kind, first?.call, second?.stream]), [
      ["race", "cuMemcpyDtoHAsync_v2", "host"],
    ]);
    for (const { first, second } of reports) {
      for (const call of [first, second]) {
        assert(call?.stack[0]?.includes("copies_test.ts"), String(call?.stack));
      }
    }
    const synchronizes = !name.startsWith("fill") && !name.startsWith("copyTo()"); // these wait for the given stream
    if (synchronizes) assertEquals((await takenEarly(true, take)).map(({ message }) => message), []);
  });
}

// An export without an event says that the memory is ready, as DLPack does for the host; only DLPack's was noted.
test("host memory is handed to Arrow too early if a copy to it is in flight that no event stands for", () => {
  const ways: Readonly<Record<string, (view: StridedMemoryView, stream: CudaStream) => Disposable>> = {
    toArrowDevice: (view) => view.toArrowDevice(),
    "with a requested schema": (view) => view.toArrowDevice({ requestedSchema: arrowField("C") }),
    fromArrowDevice: (view, stream) => StridedMemoryView.fromArrowDevice(view, { stream }),
    "an array": (view, stream) => ArrowArray.from(view, { stream }),
  };
  const memories = ["host", "pinned", "pinned, with a home"] as const;
  for (const [way, hand] of Object.entries(ways)) {
    for (const memory of memories) {
      for (const waits of [false, true]) {
        const reports: CausalityReport[] = [];
        const cuda = Cuda.simulate({ schedule: "latest", check: { onReport: (one) => void reports.push(one) } });
        const device = cuda.device(0);
        const stream = device.createStream();
        const source = new SynchronousMemoryResource(device).allocate(size);
        const target = memory === "host"
          ? new HostMemoryResource().allocate(size)
          : new PinnedMemoryResource(device).allocate(size, memory === "pinned" ? {} : { stream });
        source.copyTo(target, { stream });
        if (waits) stream.synchronize();
        const view = StridedMemoryView.fromBuffer(target, { shape: [size], dtype: "uint8" });
        hand(view, stream)[Symbol.dispose]();
        const expected = waits || memory === "pinned, with a home" ? [] : [["race", "toArrowDevice()"]];
        assertEquals(reports.map(({ kind, second }) => [kind, second?.call]), expected, `${way} ${memory}`);
        stream.synchronize();
        for (const one of [target, source, stream, cuda]) one.close();
      }
    }
  }
});

// The export had been made when the report was thrown, and nothing returned its memory.
test("an Arrow export that is reported, and so thrown, holds no memory", () => {
  const cuda = Cuda.simulate({ schedule: "latest", check: true });
  const stream = cuda.device(0).createStream();
  const source = new SynchronousMemoryResource(cuda.device(0)).allocate(size);
  const target = new HostMemoryResource().allocate(size);
  source.copyTo(target, { stream });
  const view = StridedMemoryView.fromBuffer(target, { shape: [size], dtype: "uint8" });
  const before = liveExports();
  const { report } = assertThrows(() => view.toArrowDevice(), CausalityError); // read, so that it is not printed
  assertEquals(report.second?.call, "toArrowDevice()");
  assertEquals(liveExports(), before);
  stream.synchronize();
  for (const one of [target, source, stream, cuda]) one.close();
});

test("the destination of a copy in flight is read when its stream has been waited for, in whatever way", async () => {
  const ways: readonly ((stream: CudaStream) => unknown)[] = [
    () => {},
    (stream) => stream.synchronize(),
    (stream) => stream.completed(),
    (stream) => stream.device.synchronize(),
    (stream) => stream.recordNew().synchronize(),
  ];
  for (const [i, wait] of ways.entries()) {
    const reports: string[] = [];
    const cuda = Cuda.simulate({
      schedule: "latest",
      check: { leaks: false, onReport: ({ kind }) => void reports.push(kind) },
    });
    const device = cuda.device(0);
    using stream = device.createStream();
    using source = new SynchronousMemoryResource(device).allocate(size);
    const bytes = new Uint8Array(size);
    source.copyTo(bytes, { stream });
    await wait(stream);
    await StridedMemoryView.fromTypedArray(bytes).toTypedArray();
    assertEquals(reports, i === 0 ? ["race"] : []);
    stream.synchronize();
    cuda.close();
  }
});

test("a closed Cuda reports nothing more about memory that its work used", async () => {
  const reports: string[] = [];
  const cuda = Cuda.simulate({
    schedule: "latest",
    check: { leaks: false, onReport: ({ kind }) => void reports.push(kind) },
  });
  const device = cuda.device(0);
  const stream = device.createStream();
  const source = new SynchronousMemoryResource(device).allocate(size);
  const bytes = new Uint8Array(size);
  source.copyTo(bytes, { stream });
  cuda.close();
  await StridedMemoryView.fromTypedArray(bytes).toTypedArray();
  assertEquals(reports, []);
  for (const one of [source, stream]) one.close();
});

test("the host is reported for the elements that it reads, not for bytes between them", () => {
  for (const column of [0, 2]) {
    const { raw, reports } = checkedRaw();
    const { copyPitched, memory, hostMemory } = raw.driver;
    const [at, there] = [
      raw.word((out) => memory.cuMemAlloc_v2(out, 16n)),
      raw.word((out) => hostMemory.cuMemHostAlloc(out, 16n, 0)),
    ];
    const c = raw.arena.struct(CUDA_MEMCPY2D_v2);
    Object.assign(c, { srcMemoryType: CU_MEMORYTYPE.DEVICE, dstMemoryType: CU_MEMORYTYPE.HOST });
    Object.assign(c, { srcDevice: at, dstHost: there + 1n, srcPitch: 4, dstPitch: 4, WidthInBytes: 1, Height: 4 });
    raw.ok(copyPitched.cuMemcpy2DAsync_v2(c.$address, CU_STREAM_LEGACY));
    const buffer = MemoryBuffer.fromPointer(there, 16);
    const whole = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
    whole.sliced(slice(column, null, 4)).copyTo(new Uint8Array(4));
    assertEquals(reports, []);
    whole.copyTo(new Uint8Array(16));
    assertEquals(reports.map(({ kind }) => kind), ["race"]);
    raw.ok(raw.driver.context.cuCtxSynchronize());
    raw.close();
  }
});

test("host memory that is rearranged for a copy is reported if another copy to or from it is in flight", () => {
  for (const isUpload of [true, false]) {
    const reports: CausalityReport[] = [];
    const cuda = Cuda.simulate({
      schedule: "latest",
      check: { leaks: false, onReport: (one) => void reports.push(one) },
    });
    const device = cuda.device(0);
    const [one, other] = [device.createStream(), device.createStream()];
    const memory = new SynchronousMemoryResource(device);
    const [source, target] = [memory.allocate(64), memory.allocate(64)];
    const bytes = new Uint8Array(64);
    if (isUpload) source.copyTo(bytes, { stream: other });
    else source.copyFrom(bytes, { stream: other });
    const there = StridedMemoryView.fromBuffer(target, { shape: [8, 8], dtype: "uint8" });
    const here = StridedMemoryView.fromTypedArray(bytes, { shape: [8, 8] }).permuted([1, 0]);
    if (isUpload) there.copyFrom(here, { stream: one });
    else there.copyTo(here, { stream: one });
    assertEquals(reports.map(({ kind, first, second }) => [kind, first?.stream === "host", second?.call]), [
      ["race", false, "view.copyFrom()"],
    ]);
    device.synchronize();
    for (const each of [source, target, one, other, cuda]) each.close();
  }
});
