/** How the simulator answers invalid calls about other processes, and what it counts. */
import { assertEquals, assertNotEquals } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../mod.ts";
import { resultName } from "../../src/driver/driver.ts";
import { libc } from "../../src/ffi/libc.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { Raw } from "../support/raw_driver.ts";

const fileDescriptor = 1;
const fabric = 8;

function refused(code: number, name: string): void {
  assertEquals(resultName(code), `CUDA_ERROR_${name}`);
}

test("pools are exported only as the kind of handle that they were created for, and imported from nothing else", () => {
  const simulated = simulateDriver();
  using raw = new Raw(simulated.driver);
  raw.use(0);
  const { poolSharing } = raw.driver;
  const [shared, plain] = [raw.createPool({ handleTypes: fileDescriptor }), raw.createPool()];
  const out = raw.arena.out("ptr");
  const export_ = poolSharing.cuMemPoolExportToShareableHandle;
  refused(export_(out.$address, plain, fileDescriptor, 0n), "INVALID_VALUE");
  refused(export_(out.$address, shared, 2, 0n), "INVALID_VALUE");
  refused(export_(out.$address, shared, fileDescriptor, 1n), "INVALID_VALUE");
  refused(export_(out.$address, 99n, fileDescriptor, 0n), "INVALID_VALUE");
  refused(export_(0n, shared, fileDescriptor, 0n), "INVALID_VALUE");
  refused(export_(out.$address, shared, fabric, 0n), "NOT_SUPPORTED");
  assertEquals(simulated.unsupported, ["cuMemPoolExportToShareableHandle: pools for other machines"]);
  const fd = raw.int((to) => export_(to, shared, fileDescriptor, 0n));
  const import_ = poolSharing.cuMemPoolImportFromShareableHandle;
  refused(import_(out.$address, 1n, fileDescriptor, 0n), "INVALID_VALUE");
  refused(import_(0n, BigInt(fd), fileDescriptor, 0n), "INVALID_VALUE");
  const imported = raw.word((to) => import_(to, BigInt(fd), fileDescriptor, 0n));
  libc().files.close(fd);
  refused(import_(out.$address, BigInt(fd), fileDescriptor, 0n), "INVALID_VALUE");
  assertNotEquals(imported, shared);
  const { cuMemAllocFromPoolAsync, cuDeviceSetMemPool, cuMemPoolDestroy } = raw.driver.pool;
  const stream = raw.stream(1);
  refused(cuMemAllocFromPoolAsync(out.$address, 8n, imported, stream), "INVALID_VALUE");
  refused(cuDeviceSetMemPool(0, imported), "INVALID_VALUE");

  const data = raw.arena.bytes(64);
  const [mine, other] = [shared, plain].map((from) =>
    raw.word((to) => cuMemAllocFromPoolAsync(to, 8n, from, stream))
  ) as [bigint, bigint];
  refused(poolSharing.cuMemPoolExportPointer(data.address, other), "INVALID_VALUE");
  refused(poolSharing.cuMemPoolExportPointer(data.address, mine + 1n), "INVALID_VALUE");
  raw.ok(poolSharing.cuMemPoolExportPointer(data.address, mine));
  const import2 = poolSharing.cuMemPoolImportPointer;
  refused(import2(out.$address, shared, data.address), "INVALID_VALUE");
  const first = raw.word((to) => import2(to, imported, data.address));
  assertEquals(raw.word((to) => import2(to, imported, data.address)), first, "the same address again");
  raw.ok(raw.driver.pool.cuMemFreeAsync(first, stream));
  refused(raw.driver.pool.cuMemFreeAsync(first, stream), "INVALID_VALUE"); // one free ends both, as on a GPU
  const again = raw.word((to) => import2(to, imported, data.address));
  // A process has one import of a pool, however often it imports it, and must destroy it as often; not while it holds
  // memory of the pool.
  const file = raw.int((to) => export_(to, shared, fileDescriptor, 0n));
  assertEquals(raw.word((to) => import_(to, BigInt(file), fileDescriptor, 0n)), imported);
  libc().files.close(file);
  refused(cuMemPoolDestroy(imported), "INVALID_VALUE");
  raw.ok(raw.driver.pool.cuMemFreeAsync(again, stream));
  raw.ok(raw.driver.pool.cuMemFreeAsync(mine, stream));
  refused(import2(out.$address, imported, data.address), "INVALID_VALUE");
  raw.ok(cuMemPoolDestroy(imported));
  for (const one of [imported, shared, plain]) raw.ok(cuMemPoolDestroy(one));
  refused(cuMemPoolDestroy(imported), "INVALID_VALUE");
});

test("handles of memory are counted for each process that opens them, and refused where they do not belong", () => {
  using owner = new Raw(simulateDriver().driver);
  using user = new Raw(simulateDriver().driver);
  owner.use(0);
  user.use(0);
  const { ipc } = owner.driver;
  const handle = owner.arena.bytes(64);
  const memory = owner.word((out) => owner.driver.memory.cuMemAlloc_v2(out, 100n));
  const stream = owner.stream(1);
  refused(ipc.cuIpcGetMemHandle(handle.address, owner.allocate(8, stream)), "INVALID_VALUE");
  refused(ipc.cuIpcGetMemHandle(handle.address, owner.pinned(8).address), "INVALID_VALUE");
  owner.ok(ipc.cuIpcGetMemHandle(handle.address, memory));
  const bytes = handle.bytes.slice();
  const [there, out] = [user.driver.ipc, user.arena.out("ptr")];
  refused(ipc.cuIpcOpenMemHandle_v2(out.$address, bytes, 1), "INVALID_CONTEXT");
  refused(there.cuIpcOpenMemHandle_v2(out.$address, bytes, 0), "INVALID_VALUE");
  refused(there.cuIpcOpenMemHandle_v2(out.$address, new Uint8Array(64), 1), "INVALID_VALUE");
  const first = user.word((to) => there.cuIpcOpenMemHandle_v2(to, bytes, 1));
  assertEquals(user.word((to) => there.cuIpcOpenMemHandle_v2(to, bytes, 1)), first);
  refused(user.driver.memory.cuMemFree_v2(first), "INVALID_VALUE");
  user.word((to) => user.driver.context.cuCtxCreate_v2(to, 0, 0));
  refused(there.cuIpcOpenMemHandle_v2(out.$address, bytes, 1), "ALREADY_MAPPED");
  user.use(0);
  user.ok(there.cuIpcCloseMemHandle(first));
  user.ok(there.cuIpcCloseMemHandle(first));
  refused(there.cuIpcCloseMemHandle(first), "INVALID_VALUE");
  owner.ok(owner.driver.memory.cuMemFree_v2(memory));
  refused(there.cuIpcOpenMemHandle_v2(out.$address, bytes, 1), "INVALID_VALUE");
});

test("memory of another process that was open in a context is closed with that context", () => {
  using owner = new Raw(simulateDriver().driver);
  owner.use(0);
  const simulated = simulateDriver();
  const user = new Raw(simulated.driver);
  user.use(0);
  const handle = owner.arena.bytes(64);
  const memory = owner.word((out) => owner.driver.memory.cuMemAlloc_v2(out, 100n));
  owner.ok(owner.driver.ipc.cuIpcGetMemHandle(handle.address, memory));
  const { ipc, context } = user.driver;
  const open = () => user.word((out) => ipc.cuIpcOpenMemHandle_v2(out, handle.bytes.slice(), 1));
  const first = open();
  user.ok(context.cuDevicePrimaryCtxRelease_v2(0));
  user.word((out) => context.cuDevicePrimaryCtxRetain(out, 0));
  user.use(0);
  refused(ipc.cuIpcCloseMemHandle(first), "INVALID_VALUE");
  const second = open();
  refused(ipc.cuIpcCloseMemHandle(first), "INVALID_VALUE");
  assertEquals(simulated.live.allocations, 1);
  user.ok(ipc.cuIpcCloseMemHandle(second));
  owner.ok(owner.driver.memory.cuMemFree_v2(memory));
});

test("handles of events exist only for events that were created for sharing", () => {
  using owner = new Raw(simulateDriver().driver);
  using user = new Raw(simulateDriver().driver);
  owner.use(0);
  user.use(0);
  const { ipc } = owner.driver;
  const handle = owner.arena.bytes(64);
  refused(ipc.cuIpcGetEventHandle(handle.address, owner.event(2)), "INVALID_VALUE");
  const event = owner.event(6);
  owner.ok(ipc.cuIpcGetEventHandle(handle.address, event));
  const bytes = handle.bytes.slice();
  const out = user.arena.out("ptr");
  refused(ipc.cuIpcOpenEventHandle(out.$address, bytes), "INVALID_CONTEXT");
  refused(user.driver.ipc.cuIpcOpenEventHandle(out.$address, new Uint8Array(64)), "INVALID_VALUE");
  const opened = user.word((to) => user.driver.ipc.cuIpcOpenEventHandle(to, bytes));
  user.onClose(() => user.driver.event.cuEventDestroy_v2(opened));
  const stream = owner.stream(1);
  user.ok(user.driver.event.cuEventQuery(opened));
  owner.ok(owner.driver.event.cuEventRecord(event, stream));
  user.ok(user.driver.event.cuEventSynchronize(opened));
  user.ok(user.driver.event.cuEventQuery(opened));
  owner.ok(owner.driver.event.cuEventQuery(event));
});

test("devices say that what they can share can be shared", () => {
  for (const poolsSupported of [true, false]) {
    using cuda = Cuda.simulate({ poolsSupported });
    const device = cuda.device(0);
    assertEquals(device.attribute("MEMPOOL_SUPPORTED_HANDLE_TYPES"), poolsSupported ? fileDescriptor : 0);
    assertEquals(device.attribute("IPC_EVENT_SUPPORTED"), 1);
  }
});
