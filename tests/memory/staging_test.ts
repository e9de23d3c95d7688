/** Copies of pageable host memory through pinned memory by native threads: bytes, order, and what is left behind. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CUresult } from "../../bindings/cuda_types.ts";
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, CudaError, DeviceMemoryResource, HostMemoryResource, PinnedMemoryResource } from "../../mod.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { libc } from "../../src/ffi/libc.ts";
import { canStartThreads, ThreadTeam } from "../../src/native/thread_team.ts";
import { copyRun, copyStaged, type Run, stagingOf } from "../../src/memory/staging.ts";
import { planStaging, type StagingPlan } from "../../src/memory/staging_plan.ts";
import { intercept } from "../support/intercept.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

const missing = canStartThreads() ? null : "machine code is forbidden here";
const size = 70_000;

/** Reports where bytes differ: printing all of them takes minutes. */
function assertSame(bytes: Uint8Array, expected: Uint8Array): void {
  assertEquals(bytes.length, expected.length);
  const at = bytes.findIndex((byte, i) => byte !== expected[i]);
  assertEquals([at, bytes[at]], [-1, undefined], `expected ${expected[at]}`);
}

interface Step {
  readonly kind: "up" | "down";
  readonly offset: number;
  readonly bytes: number;
  readonly stream: 0 | 1;
  readonly plan: StagingPlan;
  readonly isNew: boolean;
}

const steps: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("up" as const, "down" as const),
  offset: fc.nat(9000),
  bytes: fc.oneof(fc.integer({ min: 1, max: 60_000 }), fc.constantFrom(1, 4096, 8192, 3 * 4096)),
  stream: fc.constantFrom<0 | 1>(0, 1),
  plan: fc.record({
    threads: fc.integer({ min: 1, max: 4 }),
    slots: fc.integer({ min: 1, max: 8 }),
    chunk: fc.constantFrom(4096, 5000, 12_288),
    piece: fc.constantFrom(1000, 4096, 20_000),
  }),
  isNew: fc.boolean(),
});

const settings = fc.record({
  seed: fc.nat(),
  freesWait: fc.boolean(),
  schedule: fc.constantFrom("random" as const, "latest" as const, "round-robin" as const),
});

test(
  ...needs(
    missing,
    "staged copies move the bytes that are there when they are called, and only these, whatever shares the ring",
  ),
  () => {
    check(
      fc.property(fc.array(steps, { maxLength: 8 }), settings, (program, options) => {
        const reports: string[] = [];
        const cuda = Cuda.simulate({ ...options, check: { onReport: (report) => reports.push(report.message) } });
        {
          const device = cuda.device(0);
          using one = device.createStream();
          using other = device.createStream();
          const streams = [one, other];
          using buffer = new DeviceMemoryResource(device).allocate(size, { stream: one });
          using host = new HostMemoryResource().allocate(size);
          buffer.fill(0, { stream: one });
          const model = new Uint8Array(size);
          program.forEach(({ kind, offset, bytes, stream: index, plan, isNew }, i) => {
            const stream = streams[index] ?? one;
            for (const before of streams) if (before !== stream) stream.wait(before);
            const [here, there] = [host.ptr + BigInt(offset), buffer.ptr + BigInt(offset)];
            const memory = host.bytes();
            if (kind === "up") {
              memory.forEach((_, at) => memory[at] = at * 7 + i * 31);
              model.set(memory.subarray(offset, offset + bytes), offset);
              copyStaged(
                { to: there, from: here, bytes, direction: "HtoD", isPageable: true, peers: null },
                stream,
                plan,
              );
              memory.fill(0xee); // the source may change now
            } else {
              memory.fill(0xdd);
              copyStaged(
                { to: here, from: there, bytes, direction: "DtoH", isPageable: true, isNew, peers: null },
                stream,
                plan,
              );
              const expected = new Uint8Array(size).fill(0xdd);
              expected.set(model.subarray(offset, offset + bytes), offset);
              assertSame(memory, expected);
            }
          });
          for (const stream of streams) one.wait(stream);
          buffer.copyTo(host, { stream: one });
          one.synchronize();
          assertSame(host.bytes(), model);
        }
        cuda.close();
        assertEquals(reports, []);
      }),
      30,
    );
  },
);

test(
  ...needs(missing, "a Cuda that is closed frees the memory of staged copies when they are over, not before"),
  () => {
    for (let seed = 0; seed < 8; seed++) {
      const cuda = Cuda.simulate({ schedule: seed === 0 ? "latest" : "random", seed, freesWait: false });
      const simulated = SimulatedDriver.of(cuda.driver);
      const device = cuda.device(0);
      const stream = device.createStream();
      const buffer = new DeviceMemoryResource(device).allocate(size, { stream }); // retains the context
      using host = new HostMemoryResource().allocate(size);
      host.bytes().fill(5);
      const run = {
        to: buffer.ptr,
        from: host.ptr,
        bytes: size,
        direction: "HtoD",
        isPageable: true,
        peers: null,
      } as const;
      copyStaged(run, stream, { threads: 2, slots: 16, chunk: 8192, piece: 1500 });
      cuda.close();
      simulated?.runAll();
      assertSame(simulated?.peek(buffer.ptr, size) ?? new Uint8Array(), new Uint8Array(size).fill(5));
      buffer.close();
      stream.close();
    }
  },
);

test(...needs(missing, "work enqueued before a staged copy comes before it, and work enqueued later after it"), () => {
  for (const schedule of ["latest", "random", "round-robin"] as const) {
    using cuda = Cuda.simulate({ schedule });
    const device = cuda.device(0);
    using stream = device.createStream();
    using buffer = new DeviceMemoryResource(device).allocate(size, { stream });
    using host = new HostMemoryResource().allocate(size);
    const plan = { threads: 2, slots: 4, chunk: 8192, piece: 1500 };
    const [up, down] = [
      { to: buffer.ptr, from: host.ptr, direction: "HtoD" as const },
      { to: host.ptr, from: buffer.ptr, direction: "DtoH" as const },
    ].map((run) => ({ ...run, bytes: size, isPageable: true, peers: null }));
    if (up === undefined || down === undefined) throw new Error("two runs");
    host.bytes().fill(5);
    buffer.fill(1, { stream });
    copyStaged(up, stream, plan);
    copyStaged(down, stream, plan);
    assert(host.bytes().every((byte) => byte === 5), schedule);
    buffer.fill(2, { stream });
    copyStaged(down, stream, plan);
    assert(host.bytes().every((byte) => byte === 2), schedule);
  }
});

test(
  ...needs(missing, "bytes that wait for the bus in pinned memory are not overwritten by a copy on another stream"),
  () => {
    using cuda = Cuda.simulate({ schedule: "latest" });
    const device = cuda.device(0);
    using one = device.createStream();
    using other = device.createStream();
    using first = new DeviceMemoryResource(device).allocate(8192, { stream: one });
    using second = new DeviceMemoryResource(device).allocate(8192, { stream: other });
    using host = new HostMemoryResource().allocate(8192);
    second.fill(2, { stream: other });
    host.bytes().fill(1);
    const plan = { threads: 2, slots: 4, chunk: 4096, piece: 1500 };
    const run = { bytes: 8192, isPageable: true, peers: null };
    copyStaged({ ...run, to: first.ptr, from: host.ptr, direction: "HtoD" }, one, plan);
    copyStaged({ ...run, to: host.ptr, from: second.ptr, direction: "DtoH" }, other, plan);
    assert(host.bytes().every((byte) => byte === 2));
    host.copyFrom(first, { stream: one });
    one.synchronize();
    assert(host.bytes().every((byte) => byte === 1));
  },
);

test(...needs(missing, "many more chunks than there are slots arrive unchanged"), () => {
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  const bytes = 4096 * 515 + 77;
  using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(bytes, { stream });
  using host = new HostMemoryResource().allocate(bytes);
  const memory = host.bytes();
  memory.forEach((_, i) => memory[i] = i % 251);
  const plan = { threads: 2, slots: 4, chunk: 4096, piece: 1500 };
  const run = { bytes, isPageable: true, peers: null };
  copyStaged({ ...run, to: buffer.ptr, from: host.ptr, direction: "HtoD" }, stream, plan);
  memory.fill(0);
  copyStaged({ ...run, to: host.ptr, from: buffer.ptr, direction: "DtoH" }, stream, plan);
  assertEquals(memory.findIndex((byte, i) => byte !== i % 251), -1);
});

test(
  ...needs(missing, "new memory's pages are populated once each, before the threads write beyond the first chunk"),
  () => {
    const MiB = 2 ** 20;
    using cuda = Cuda.simulate();
    using stream = cuda.device(0).createStream();
    const began = ThreadTeam.prototype.begin;
    const [madvise, memory] = [libc().loading.dlsym(0n, cString("madvise")), new HostMemoryResource()];
    // A copy of each size that chunks have.
    for (const bytes of [5 * MiB + 77, 21 * MiB + 4099, 65 * MiB + 1]) {
      const plan = planStaging(bytes, 16);
      assert(plan !== null);
      using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(bytes, { stream });
      buffer.fill(7, { stream });
      using host = memory.allocate(bytes + 5000);
      const to = host.ptr + 5000n;
      const run = { bytes, isPageable: true, peers: null, to, from: buffer.ptr, direction: "DtoH" } as const;
      for (const isNew of [true, false]) {
        const made: bigint[] = [];
        ThreadTeam.prototype.begin = function (calls) {
          const pages = calls.flatMap(([code, address = 0n]) => code === madvise ? [address] : []);
          const ends = calls.flatMap(([code, at = 0n, _, size = 0n]) => code === madvise ? [] : [at + size]);
          assert(pages.every((page) => ends.every((end) => end <= page)), "a page is written before it is populated");
          made.push(...pages);
          began.call(this, calls);
        };
        try {
          copyStaged({ ...run, isNew }, stream, plan);
        } finally {
          ThreadTeam.prototype.begin = began;
        }
        const [size, first, end] = [2n * BigInt(MiB), to + BigInt(plan.chunk), to + BigInt(bytes)];
        const expected: bigint[] = [];
        for (let at = (first + size - 1n) / size * size; at + 65_536n <= end; at += size) expected.push(at);
        assertEquals(made, isNew ? expected : []);
        assert(host.bytes().subarray(5000).every((byte) => byte === 7));
      }
    }
  },
);

test(...needs(missing, "a copy that the driver refuses is its error, and the next copy is right"), () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(size, { stream });
  using host = new HostMemoryResource().allocate(2 * size);
  const plan = { threads: 2, slots: 4, chunk: 4096, piece: 1500 };
  const run = {
    to: buffer.ptr,
    from: host.ptr,
    bytes: size,
    direction: "HtoD" as const,
    isPageable: true,
    peers: null,
  };
  assertThrows(() => copyStaged({ ...run, bytes: 2 * size }, stream, plan), CudaError, "cuMemcpyHtoDAsync_v2");
  host.bytes().fill(9);
  copyStaged(run, stream, plan);
  host.bytes().fill(0);
  copyStaged({ ...run, to: host.ptr, from: buffer.ptr, direction: "DtoH" }, stream, plan);
  assert(host.bytes().subarray(0, size).every((byte) => byte === 9));
});

test("only large copies of ordinary memory are staged, and only with enough processors", () => {
  const MiB = 2 ** 20;
  assertEquals(planStaging(4 * MiB - 1, 16), null);
  assertEquals(planStaging(1024 * MiB, 2), null);
  const plan = planStaging(1024 * MiB, 16);
  assert(plan !== null && plan.threads > 1 && plan.threads <= 16);
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const stream = device.defaultStream;
  using pinned = new PinnedMemoryResource(device).allocate(64 * MiB);
  const run = { to: 1n, from: pinned.ptr, bytes: 64 * MiB, direction: "HtoD" as const, isPageable: true, peers: null };
  assertEquals(stagingOf(run, stream, 16), null, "memory that the driver knows");
  using host = new HostMemoryResource().allocate(64 * MiB);
  const pageable = { ...run, from: host.ptr };
  if (missing === null) assertEquals(stagingOf(pageable, stream, 16), planStaging(64 * MiB, 16));
  assertEquals(stagingOf({ ...pageable, isPageable: false }, stream, 16), null);
  assertEquals(stagingOf({ ...pageable, direction: "DtoD" }, stream, 16), null);
});

test(
  ...needs(missing, "copies below 64 MiB are staged once as many bytes were copied without, or the ring exists"),
  () => {
    const MiB = 2 ** 20;
    check(
      fc.property(fc.array(fc.constantFrom(1, 3, 4, 15, 16, 24, 40, 63, 64, 80), { maxLength: 10 }), (sizes) => {
        using cuda = Cuda.simulate();
        const device = cuda.device(0);
        const stream = device.defaultStream;
        let isThere = false;
        let before = 0;
        // Nothing is moved: the driver's copy does nothing, and neither do the plans requested.
        intercept(device.driver, "copy", () => ({ cuMemcpyHtoDAsync_v2: () => 0 }));
        for (const size of sizes) {
          const run: Run = {
            to: 1n << 40n,
            from: host.ptr,
            bytes: size * MiB,
            direction: "HtoD",
            isPageable: true,
            peers: null,
          };
          const plan = stagingOf(run, stream, 16);
          const isStaged = size >= 4 && (isThere || size >= 64 || before + size >= 64);
          assertEquals(plan !== null, isStaged, `${size} MiB after ${before}, ${isThere ? "with" : "without"} a ring`);
          copyRun(run, stream, plan === null ? null : { ...plan, threads: 1 });
          if (isStaged) isThere = true;
          else if (size >= 4) before += size;
        }
      }),
      20,
    );
  },
);

/** Large enough for all, and never written to, so it takes no memory. */
const host = new HostMemoryResource().allocate(80 * 2 ** 20);

/** What keeps a copy from being staged: no thread, or no pinned memory. Each returns the function that ends it. */
const shortages: { readonly [name: string]: (cuda: Cuda) => () => void } = {
  thread: () => {
    const { threads } = libc();
    const put = (value: typeof threads) => Object.defineProperty(libc(), "threads", { value, configurable: true });
    put({ ...threads, pthread_create: () => 11 });
    return () => put(threads);
  },
  "pinned memory": (cuda) => intercept(cuda.driver, "hostMemory", () => ({ cuMemHostAlloc: () => 2 })),
};

for (const [name, begin] of Object.entries(shortages)) {
  test(...needs(missing, `where there is no ${name} left the driver copies`), () => {
    using cuda = Cuda.simulate();
    using stream = cuda.device(0).createStream();
    using buffer = new DeviceMemoryResource(cuda.device(0)).allocate(size, { stream });
    using host = new HostMemoryResource().allocate(size);
    const run = { bytes: size, isPageable: true, peers: null };
    const plan = { threads: 3, slots: 4, chunk: 4096, piece: 1500 };
    const end = begin(cuda);
    try {
      host.bytes().fill(3);
      copyRun({ ...run, to: buffer.ptr, from: host.ptr, direction: "HtoD" }, stream, plan);
      stream.synchronize();
      host.bytes().fill(0);
      copyRun({ ...run, to: host.ptr, from: buffer.ptr, direction: "DtoH" }, stream, plan);
      stream.synchronize();
    } finally {
      end();
    }
    assert(host.bytes().every((byte) => byte === 3));
  });
}

test(
  ...needs(missing, "a slot is not used again before a transfer is done whose end the driver has refused to mark"),
  () => {
    for (const call of ["cuEventCreate", "cuEventRecord"] as const) {
      using cuda = Cuda.simulate({ schedule: "latest" });
      const device = cuda.device(0);
      using former = device.createStream();
      using stream = device.createStream();
      using source = new DeviceMemoryResource(device).allocate(4096, { stream: former });
      using target = new DeviceMemoryResource(device).allocate(4096, { stream });
      source.fill(1, { stream: former });
      using host = new HostMemoryResource().allocate(4096);
      const run = { bytes: 4096, isPageable: true, peers: null };
      const plan = { threads: 1, slots: 1, chunk: 4096, piece: 4096 };
      SimulatedDriver.of(cuda.driver)?.failNth(call, 1, CUresult.CUDA_ERROR_UNKNOWN);
      const download = { ...run, to: host.ptr, from: source.ptr, direction: "DtoH" } as const;
      assertThrows(() => copyStaged(download, former, plan), CudaError, call);
      host.bytes().fill(2);
      copyStaged({ ...run, to: target.ptr, from: host.ptr, direction: "HtoD" }, stream, plan);
      former.synchronize();
      target.copyTo(host, { stream });
      stream.synchronize();
      assertEquals(new Set(host.bytes()), new Set([2]), call);
    }
  },
);

test("a copy that is not staged is made by the driver", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  using buffer = new DeviceMemoryResource(device).allocate(4, { stream });
  using host = new HostMemoryResource().allocate(4);
  host.bytes().set([1, 2, 3, 4]);
  copyRun({ to: buffer.ptr, from: host.ptr, bytes: 4, direction: "HtoD", isPageable: true, peers: null }, stream);
  stream.synchronize();
  host.bytes().fill(0);
  copyRun({ to: host.ptr, from: buffer.ptr, bytes: 4, direction: "DtoH", isPageable: true, peers: null }, stream);
  stream.synchronize();
  assertEquals([...host.bytes()], [1, 2, 3, 4]);
});
