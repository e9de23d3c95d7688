/** Memory of the simulator: its bounds, copies of any size, and which operations the host waits for. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { CU_POINTER_ATTRIBUTE, CUDA_MEMCPY2D_v2, CUresult } from "../../bindings/cuda_types.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { IntervalMap } from "../../src/sim/interval_map.ts";
import { check, fc } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

test("a kernel reaches every byte of its memory and none behind it, however wide the access", () => {
  const widths = [1, 2, 4, 8] as const;
  const text = `.version 8.0\n.target sm_90\n.address_size 64\n` +
    widths.flatMap((bytes) => {
      const bits = 8 * bytes;
      const register = bytes === 8 ? "%d1" : "%r";
      return [["load", `ld.global.u${bits} ${register}, [%d0];`], ["store", `st.global.u${bits} [%d0], ${register};`]]
        .map(
          ([name, op]) =>
            `.visible .entry ${name}${bytes}(.param .u64 at) { .reg .b64 %d<2>; .reg .b32 %r;
             mov.u32 %r, 0; mov.u64 %d1, 0; ld.param.u64 %d0, [at]; ${op} ret; }\n`,
        );
    }).join("");
  check(
    fc.property(
      fc.constantFrom(...widths),
      fc.constantFrom("load" as const, "store" as const),
      fc.constantFrom("device" as const, "pool" as const, "pinned" as const, "managed" as const),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(40),
      (width, name, kind, size, place) => {
        const at = place - place % width;
        const { driver } = simulateDriver();
        const raw = new Raw(driver);
        raw.use(0);
        const bytes = BigInt(size);
        const memory = {
          device: () => raw.word((out) => driver.memory.cuMemAlloc_v2(out, bytes)),
          pool: () => raw.allocate(size, 0n),
          pinned: () => raw.pinned(size).address,
          managed: () => raw.word((out) => driver.managedMemory.cuMemAllocManaged(out, bytes, 1)),
        }[kind]();
        const { module, kernel, context } = driver;
        const loaded = raw.word((out) => module.cuModuleLoadData(out, raw.arena.cString(text)));
        const entry = raw.word((out) => module.cuModuleGetFunction(out, loaded, cString(`${name}${width}`)));
        const [value, list] = [raw.arena.out("ptr"), raw.arena.out("ptr")];
        value.value = memory + BigInt(at);
        list.value = value.$address;
        raw.ok(kernel.cuLaunchKernel(entry, 1, 1, 1, 1, 1, 1, 0, 0n, list.$address, 0n));
        const isInside = at + width <= size;
        const expected = isInside ? CUresult.CUDA_SUCCESS : CUresult.CUDA_ERROR_ILLEGAL_ADDRESS;
        assertEquals(context.cuCtxSynchronize(), expected);
      },
    ),
    300,
  );
});

test("a copy brings every byte to its place and touches no other, however large", () => {
  const room = 3 * 2 ** 20;
  const numbers = Uint8Array.from({ length: room }, (_, i) => i % 251);
  check(
    fc.property(fc.nat(100_000), fc.nat(100_000), fc.integer({ min: 1, max: room - 100_000 }), (from, to, bytes) => {
      const simulated = simulateDriver();
      const { driver } = simulated;
      using raw = new Raw(driver);
      raw.use(0);
      const [source, target] = [raw.pinned(room), raw.word((out) => driver.memory.cuMemAlloc_v2(out, BigInt(room)))];
      source.bytes.set(numbers);
      raw.ok(driver.copy.cuMemcpy(target + BigInt(to), source.address + BigInt(from), BigInt(bytes)));
      const expected = new Uint8Array(room).fill(0xdb);
      expected.set(numbers.subarray(from, from + bytes), to);
      const seen = simulated.peek(target, room);
      assertEquals(seen.findIndex((byte, i) => byte !== expected[i]), -1);
    }),
    12,
  );
});

test("an operation on memory whose operations are to be synchronous is done when the call returns", () => {
  const size = 4096;
  const bytes = BigInt(size);
  for (const op of ["fill", "fill rows", "from", "to", "rows from", "rows to", "from pinned", "to pinned"] as const) {
    for (const synchronous of [true, false]) {
      const simulated = simulateDriver({ schedule: "latest" });
      const { driver } = simulated;
      using raw = new Raw(driver);
      raw.use(0);
      const stream = raw.stream(1);
      const device = () => raw.word((out) => driver.memory.cuMemAlloc_v2(out, bytes));
      const [memory, other] = [device(), op.endsWith("pinned") ? raw.pinned(size).address : device()];
      for (const [one, value] of [[memory, 1], [other, 2]] as const) {
        raw.ok(driver.fill.cuMemsetD8_v2(one, value, bytes));
      }
      raw.ok(driver.context.cuCtxSynchronize());
      const flag = raw.arena.out("i32");
      flag.value = Number(synchronous);
      raw.ok(driver.pointer.cuPointerSetAttribute(flag.$address, CU_POINTER_ATTRIBUTE.SYNC_MEMOPS, memory));
      const isOut = op === "from" || op === "rows from" || op === "to pinned";
      const [to, from] = isOut ? [other, memory] : [memory, other];
      if (op === "fill") raw.ok(driver.fill.cuMemsetD8Async(to, 2, bytes, stream));
      else if (op === "fill rows") raw.ok(driver.fillPitched.cuMemsetD2D8Async(to, 64n, 2, 64n, bytes / 64n, stream));
      else if (op.startsWith("rows")) {
        const box = raw.arena.struct(CUDA_MEMCPY2D_v2);
        box.srcMemoryType = box.dstMemoryType = 4; // unified
        [box.srcDevice, box.dstDevice, box.WidthInBytes, box.Height] = [from, to, 64, size / 64];
        raw.ok(driver.copyPitched.cuMemcpy2DAsync_v2(box.$address, stream));
      } else raw.ok(driver.copy.cuMemcpyAsync(to, from, bytes, stream));
      const [before, after] = isOut ? [2, 1] : [1, 2];
      assertEquals([...new Set(simulated.peek(to, size))], [synchronous ? after : before], `${op} ${synchronous}`);
      raw.ok(driver.context.cuCtxSynchronize());
    }
  }
});

test("among ranges that do not overlap, the one that contains an address is found, and overlaps are detected", () => {
  const range = fc.record({
    start: fc.bigInt({ min: 0n, max: 60n }),
    bytes: fc.integer({ min: 1, max: 12 }),
    add: fc.boolean(),
  });
  check(
    fc.property(fc.array(range, { maxLength: 30 }), (steps) => {
      const ranges = new IntervalMap<string>();
      const model = new Map<bigint, number>();
      for (const { start, bytes, add } of steps) {
        const end = start + BigInt(bytes);
        const overlaps = [...model].some(([one, length]) => one < end && start < one + BigInt(length));
        assertEquals(ranges.overlaps(start, bytes), overlaps);
        if (add && !overlaps) {
          ranges.add(start, bytes, `${start}`);
          model.set(start, bytes);
        } else if (!add) {
          ranges.remove(start);
          model.delete(start);
        }
        assertEquals([...ranges.values()].length, model.size);
        for (let at = 0n; at < 75n; at++) {
          const [holder] = [...model].find(([one, length]) => one <= at && at < one + BigInt(length)) ?? [];
          assertEquals(ranges.find(at), holder === undefined ? undefined : `${holder}`);
        }
      }
    }),
    200,
  );
});

test("a queue holds no more than a real one: enqueueing without end makes the oldest work run", () => {
  const simulated = simulateDriver({ schedule: "latest" });
  const { driver } = simulated;
  using raw = new Raw(driver);
  raw.use(0);
  const stream = raw.stream(1);
  const memory = raw.pinned(8192);
  memory.bytes.fill(0);
  for (let i = 0n; i < 6000n; i++) raw.ok(driver.fill.cuMemsetD8Async(memory.address + i, 1, 1n, stream));
  assertEquals(simulated.live.queued, 4096);
  const done = memory.bytes.filter((byte) => byte === 1).length;
  assertEquals(done, 6000 - 4096);
  assert(memory.bytes.subarray(0, done).every((byte) => byte === 1), "the oldest");
});

test("memory is taken only by a call that has told the caller where it is", () => {
  const simulated = simulateDriver();
  const { driver } = simulated;
  using raw = new Raw(driver);
  raw.use(0);
  const { memory, hostMemory, managedMemory } = driver;
  const out = raw.arena.out("ptr");
  const calls = [
    () => memory.cuMemAlloc_v2(0n, 64n),
    () => memory.cuMemAllocPitch_v2(0n, out.$address, 64n, 4n, 4),
    () => memory.cuMemAllocPitch_v2(out.$address, 0n, 64n, 4n, 4),
    () => hostMemory.cuMemHostAlloc(0n, 64n, 0),
    () => hostMemory.cuMemAllocHost_v2(0n, 64n),
    () => managedMemory.cuMemAllocManaged(0n, 64n, 1),
  ];
  for (const call of calls) assertEquals(call(), CUresult.CUDA_ERROR_INVALID_VALUE);
  assertEquals(simulated.live.allocations, 0);
});

test("memory that is freed in stream order cannot be freed again, and is handed out once", () => {
  for (const schedule of ["latest", "random", "round-robin"] as const) {
    const { driver } = simulateDriver({ schedule });
    using raw = new Raw(driver);
    raw.use(0);
    const stream = raw.stream(1);
    const allocate = () => raw.word((out) => driver.memory.cuMemAlloc_v2(out, 1000n));
    const address = allocate();
    raw.ok(driver.pool.cuMemFreeAsync(address, stream));
    assertEquals(driver.pool.cuMemFreeAsync(address, stream), CUresult.CUDA_ERROR_INVALID_VALUE);
    assertEquals(driver.memory.cuMemFree_v2(address), CUresult.CUDA_ERROR_INVALID_VALUE);
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    const again = Array.from({ length: 3 }, allocate);
    assertEquals(new Set(again).size, 3);
    for (const one of again) raw.ok(driver.memory.cuMemFree_v2(one));
  }
});

/** Two variables of which the second takes more than two MiB. */
const variables = `.version 8.0
.target sm_90
.address_size 64
.visible .global .align 4 .b32 seven = 7;
.visible .global .align 4 .b8 many[5000000];`;

test("a variable of a module is freed with the module, not by the calls for memory, and not exported", () => {
  const simulated = simulateDriver();
  const { driver } = simulated;
  using raw = new Raw(driver);
  raw.use(0);
  const { module, memory, ipc, pool } = driver;
  const loaded = raw.word((out) => module.cuModuleLoadData(out, raw.arena.cString(variables)));
  const seven = raw.word((out) => module.cuModuleGetGlobal_v2(out, 0n, loaded, cString("seven")));
  for (
    const code of [
      memory.cuMemFree_v2(seven),
      pool.cuMemFreeAsync(seven, 0n),
      ipc.cuIpcGetMemHandle(raw.arena.bytes(64).address, seven),
    ]
  ) assertEquals(code, CUresult.CUDA_ERROR_INVALID_VALUE);
  assertEquals([...simulated.peek(seven, 4)], [7, 0, 0, 0]);
  raw.ok(module.cuModuleUnload(loaded));
  assertEquals(simulated.live.allocations, 0);
});

test("a module that does not fit into memory leaves nothing behind", () => {
  const simulated = simulateDriver({ memory: 2 ** 22 });
  const { driver } = simulated;
  using raw = new Raw(driver);
  raw.use(0);
  const out = raw.arena.out("ptr");
  const load = () => driver.module.cuModuleLoadData(out.$address, raw.arena.cString(variables));
  assertEquals(load(), CUresult.CUDA_ERROR_OUT_OF_MEMORY);
  assertEquals(simulated.live.allocations, 0);
  const whole = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 2n ** 22n)); // all of it is free
  raw.ok(driver.memory.cuMemFree_v2(whole));
});
