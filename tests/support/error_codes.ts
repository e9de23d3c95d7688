/**
 * What the driver returns from invalid calls and edge cases: the same on the simulator and on libcuda.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import {
  CU_EVENT,
  CU_MEM_ACCESS_FLAGS_PROT,
  CU_MEM_ALLOCATION_TYPE,
  CU_MEM_LOCATION_TYPE,
  CU_MEMPOOL_ATTR,
  CU_POINTER_ATTRIBUTE,
  CU_STREAM,
  CU_STREAM_CAPTURE_MODE,
  CUmemLocation,
  CUmemPoolProps,
} from "../../bindings/cuda_types.ts";
import { resultName } from "../../src/driver/driver.ts";
import type { Raw } from "./raw_driver.ts";

/** Answers by question: the name of a result without `CUDA_`, or a value. */
export type Answers = Readonly<Record<string, string | number>>;

/** Questions to a driver that has just been initialised, and the answers. */
export interface Example {
  /** What it is about. */
  readonly name: string;
  /** How many devices it needs. */
  readonly devices: number;
  /** Asks. */
  readonly ask: (raw: Raw) => Answers;
}

/**
 * libcuda's answers, by example: observed on two H200 and an H100 with driver 580 (CUDA 13.0). The differential test
 * asks again wherever there are GPUs.
 */
export const expected: Readonly<Record<string, Answers>> = JSON.parse(
  readFileSync(new URL("../data/driver_answers.json", import.meta.url), "utf8"),
);

/** Collects answers. */
export class Notes {
  readonly answers: Record<string, string | number> = {};
  result(question: string, code: number): void {
    this.answers[question] = resultName(code).replace("CUDA_", "");
  }
  value(question: string, value: number | bigint): void {
    this.answers[question] = Number(value);
  }
}

/** An example whose answers are collected in notes. */
export function example(name: string, devices: number, ask: (raw: Raw, notes: Notes) => void): Example {
  return {
    name,
    devices,
    ask(raw) {
      const notes = new Notes();
      ask(raw, notes);
      return notes.answers;
    },
  };
}

/** The examples. */
export const examples: readonly Example[] = [
  example("no context is current", 1, ({ driver, arena }, notes) => {
    const out = arena.out("ptr");
    driver.context.cuCtxSetCurrent(0n);
    notes.result("stream", driver.stream.cuStreamCreate(out.$address, 0));
    notes.result("event", driver.event.cuEventCreate(out.$address, 0));
    notes.result("memory", driver.memory.cuMemAlloc_v2(out.$address, 16n));
    notes.result("synchronize", driver.context.cuCtxSynchronize());
    notes.result("device", driver.context.cuCtxGetDevice(out.$address));
    notes.result("pop", driver.context.cuCtxPopCurrent_v2(out.$address));
    notes.result("current", driver.context.cuCtxGetCurrent(out.$address));
    notes.value("current is", out.value);
    notes.result("default stream", driver.stream.cuStreamSynchronize(0n));
  }),

  example("devices", 1, ({ driver, arena }, notes) => {
    const out = arena.out("i32");
    notes.result("device -1", driver.opening.cuDeviceGet(out.$address, -1));
    notes.result("device 1000", driver.opening.cuDeviceGet(out.$address, 1000));
    notes.result("attribute 0", driver.device.cuDeviceGetAttribute(out.$address, 0, 0));
    notes.result("attribute 100000", driver.device.cuDeviceGetAttribute(out.$address, 100000, 0));
    notes.result("attribute of device 1000", driver.device.cuDeviceGetAttribute(out.$address, 1, 1000));
    notes.result("peer of itself", driver.device.cuDeviceCanAccessPeer(out.$address, 0, 0));
    notes.value("peer of itself is", out.value);
    // Over-releasing a primary context is not tested: in a real process the CUDA runtime may retain it too.
    const state = [arena.out("u32"), arena.out("i32")] as const;
    notes.result("state", driver.context.cuDevicePrimaryCtxGetState(0, state[0].$address, state[1].$address));
    notes.value("active", state[1].value);
  }),

  example("streams and events", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const out = arena.out("ptr");
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    const untimed = raw.event(CU_EVENT.DISABLE_TIMING);
    const timed = raw.event(CU_EVENT.DEFAULT);
    const other = raw.event(CU_EVENT.DEFAULT);
    const float = arena.out("f32");
    notes.result("stream with flags 4", driver.stream.cuStreamCreate(out.$address, 4));
    notes.result("event with flags 64", driver.event.cuEventCreate(out.$address, 64));
    notes.result("interprocess event with timing", driver.event.cuEventCreate(out.$address, CU_EVENT.INTERPROCESS));
    notes.result("query of an event never recorded", driver.event.cuEventQuery(timed));
    notes.result("synchronize on an event never recorded", driver.event.cuEventSynchronize(timed));
    notes.result("wait for an event never recorded", driver.stream.cuStreamWaitEvent(stream, timed, 0));
    notes.result("elapsed, never recorded", driver.event.cuEventElapsedTime(float.$address, timed, other));
    raw.ok(driver.event.cuEventRecord(timed, stream));
    raw.ok(driver.event.cuEventRecord(other, stream));
    raw.ok(driver.event.cuEventRecord(untimed, stream));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    notes.result("elapsed", driver.event.cuEventElapsedTime(float.$address, timed, other));
    notes.result("elapsed, without timing", driver.event.cuEventElapsedTime(float.$address, timed, untimed));
    notes.result("wait with flags 8", driver.stream.cuStreamWaitEvent(stream, timed, 8));
    notes.result("record with flags 8", driver.event.cuEventRecordWithFlags(timed, stream, 8));
    notes.result("query of a finished stream", driver.stream.cuStreamQuery(stream));
    notes.result("destroy the legacy stream", driver.stream.cuStreamDestroy_v2(1n));
    notes.result("destroy the thread's stream", driver.stream.cuStreamDestroy_v2(2n));
    notes.result("destroy stream 0", driver.stream.cuStreamDestroy_v2(0n));
    const flags = arena.out("u32");
    notes.result("flags", driver.stream.cuStreamGetFlags(stream, flags.$address));
    notes.value("flags are", flags.value);
    notes.result("flags of the legacy stream", driver.stream.cuStreamGetFlags(1n, flags.$address));
    notes.value("flags of the legacy stream are", flags.value);
    notes.result("host function NULL", driver.stream.cuLaunchHostFunc(stream, 0n, 0n));
    notes.result("out-parameter NULL", driver.event.cuEventCreate(0n, 0));
  }),

  example("device memory", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const out = arena.out("ptr");
    const size = arena.out("size");
    const host = raw.pageable(4096);
    const a = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 4096n));
    notes.result("0 bytes", driver.memory.cuMemAlloc_v2(out.$address, 0n));
    notes.result("2^50 bytes", driver.memory.cuMemAlloc_v2(out.$address, 1n << 50n));
    notes.result("free NULL", driver.memory.cuMemFree_v2(0n));
    notes.result("free in the middle", driver.memory.cuMemFree_v2(a + 256n));
    notes.result("free host memory", driver.memory.cuMemFree_v2(host.address));
    notes.result("fill", driver.fill.cuMemsetD8_v2(a, 1, 4096n));
    notes.result("fill of 0 bytes", driver.fill.cuMemsetD8_v2(a, 1, 0n));
    notes.result("fill of 0 bytes at NULL", driver.fill.cuMemsetD8_v2(0n, 1, 0n));
    notes.result("fill at NULL", driver.fill.cuMemsetD8_v2(0n, 1, 4n));
    notes.result("fill of host memory", driver.fill.cuMemsetD8_v2(host.address, 1, 4n));
    notes.result("fill of 2 bytes, misaligned", driver.fill.cuMemsetD16_v2(a + 1n, 1, 4n));
    notes.result("fill of 4 bytes, misaligned", driver.fill.cuMemsetD32_v2(a + 2n, 1, 4n));
    notes.result("fill of a rectangle", driver.fillPitched.cuMemsetD2D8_v2(a, 64n, 1, 32n, 64n));
    notes.result("fill of a rectangle wider than its pitch", driver.fillPitched.cuMemsetD2D8_v2(a, 16n, 1, 32n, 2n));
    notes.result("copy", driver.copy.cuMemcpyHtoD_v2(a, host.address, 4096n));
    notes.result("copy of 0 bytes", driver.copy.cuMemcpyHtoD_v2(a, host.address, 0n));
    notes.result("copy of 0 bytes at NULL", driver.copy.cuMemcpyHtoD_v2(0n, 0n, 0n));
    notes.result("copy to NULL", driver.copy.cuMemcpyHtoD_v2(0n, host.address, 16n));
    notes.result("copy from NULL", driver.copy.cuMemcpyHtoD_v2(a, 0n, 16n));
    notes.result("HtoD between hosts", driver.copy.cuMemcpyHtoD_v2(host.address + 64n, host.address, 16n));
    notes.result("HtoD between devices", driver.copy.cuMemcpyHtoD_v2(a + 64n, a, 16n));
    notes.result("DtoH between devices", driver.copy.cuMemcpyDtoH_v2(a + 64n, a, 16n));
    notes.result("DtoD to the host", driver.copy.cuMemcpyDtoD_v2(host.address, a, 16n));
    notes.result("any direction, to the host", driver.copy.cuMemcpy(host.address, a, 16n));
    notes.result("any direction, between hosts", driver.copy.cuMemcpy(host.address + 64n, host.address, 16n));
    notes.result("range", driver.pointer.cuMemGetAddressRange_v2(out.$address, size.$address, a + 100n));
    notes.value("range begins at", out.value - a);
    notes.value("range is", size.value);
    notes.result(
      "range of host memory",
      driver.pointer.cuMemGetAddressRange_v2(out.$address, size.$address, host.address),
    );
    notes.result("free", driver.memory.cuMemFree_v2(a));
    notes.result("free twice", driver.memory.cuMemFree_v2(a));
    notes.result("range of freed memory", driver.pointer.cuMemGetAddressRange_v2(out.$address, size.$address, a));
    notes.result("pitched, elements of 3", driver.memory.cuMemAllocPitch_v2(out.$address, size.$address, 4n, 4n, 3));
  }),

  example("page-locked and registered memory", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const out = arena.out("ptr");
    const flags = arena.out("u32");
    const pinned = raw.pinned(4096);
    const pageable = raw.pageable(16384);
    const pages = (pageable.address + 4095n) / 4096n * 4096n;
    notes.result("0 bytes", driver.hostMemory.cuMemHostAlloc(out.$address, 0n, 0));
    notes.result("flags 64", driver.hostMemory.cuMemHostAlloc(out.$address, 16n, 64));
    notes.result("free what is not page-locked", driver.hostMemory.cuMemFreeHost(pageable.address));
    notes.result("free in the middle", driver.hostMemory.cuMemFreeHost(pinned.address + 64n));
    notes.result("device pointer", driver.hostMemory.cuMemHostGetDevicePointer_v2(out.$address, pinned.address, 0));
    notes.value("device pointer differs by", out.value - pinned.address);
    notes.result(
      "device pointer of other memory",
      driver.hostMemory.cuMemHostGetDevicePointer_v2(out.$address, pageable.address, 0),
    );
    notes.result("flags of other memory", driver.hostMemory.cuMemHostGetFlags(flags.$address, pageable.address));
    notes.result("flags", driver.hostMemory.cuMemHostGetFlags(flags.$address, pinned.address));
    notes.value("flags are", flags.value);
    notes.result("register", driver.hostMemory.cuMemHostRegister_v2(pages, 4096n, 0));
    notes.result("register twice", driver.hostMemory.cuMemHostRegister_v2(pages, 4096n, 0));
    notes.result("register what is page-locked", driver.hostMemory.cuMemHostRegister_v2(pinned.address, 4096n, 0));
    notes.result("register 0 bytes", driver.hostMemory.cuMemHostRegister_v2(pages + 8192n, 0n, 0));
    notes.result("unregister in the middle", driver.hostMemory.cuMemHostUnregister(pages + 64n));
    notes.result("unregister", driver.hostMemory.cuMemHostUnregister(pages));
    notes.result("unregister twice", driver.hostMemory.cuMemHostUnregister(pages));
    notes.result("fill page-locked memory", driver.fill.cuMemsetD8_v2(pinned.address, 7, 16n));
    notes.value("filled with", pinned.bytes[0] ?? 0);
  }),

  example("memory in stream order", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const out = arena.out("ptr");
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    const a = raw.allocate(1000, stream);
    const size = arena.out("size");
    out.value = 5n;
    notes.result("0 bytes", driver.pool.cuMemAllocAsync(out.$address, 0n, stream));
    notes.value("0 bytes are at NULL", Number(out.value === 0n));
    notes.result("2^50 bytes", driver.pool.cuMemAllocAsync(out.$address, 1n << 50n, stream));
    notes.result("free NULL", driver.pool.cuMemFreeAsync(0n, stream));
    notes.result("free in the middle", driver.pool.cuMemFreeAsync(a + 256n, stream));
    notes.result("range", driver.pointer.cuMemGetAddressRange_v2(out.$address, size.$address, a));
    notes.value("range is", size.value);
    notes.result("fill to the end", driver.fill.cuMemsetD8Async(a, 1, 1000n, stream));
    notes.result("fill beyond 4 GiB", driver.fill.cuMemsetD8Async(a, 1, 1n << 36n, stream));
    notes.result("free", driver.pool.cuMemFreeAsync(a, stream));
    notes.result("free twice", driver.pool.cuMemFreeAsync(a, stream));
    notes.result("range after the free", driver.pointer.cuMemGetAddressRange_v2(out.$address, size.$address, a));
    const b = raw.allocate(1000, stream);
    notes.value("reused at once on the same stream", Number(a === b));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    notes.result("free without a stream", driver.memory.cuMemFree_v2(b));
    notes.result("free without a stream, twice", driver.memory.cuMemFree_v2(b));
    const c = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 64n));
    notes.result("free other memory in stream order", driver.pool.cuMemFreeAsync(c, stream));
    const d = raw.allocate(1 << 22, stream);
    raw.ok(driver.pool.cuMemFreeAsync(d, stream));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    notes.result("fill of freed memory", driver.fill.cuMemsetD8Async(d, 1, 16n, stream));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
  }),

  example("pools", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const out = arena.out("ptr");
    const int = arena.out("i32");
    const word = arena.out("u64");
    const props = arena.struct(CUmemPoolProps);
    props.allocType = CU_MEM_ALLOCATION_TYPE.PINNED;
    props.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    const create = () => driver.pool.cuMemPoolCreate(out.$address, props.$address);
    props.location.id = 1000;
    notes.result("on device 1000", create());
    props.location.id = 0;
    props.allocType = 0;
    notes.result("of type 0", create());
    props.allocType = CU_MEM_ALLOCATION_TYPE.PINNED;
    props.location.type = 0;
    notes.result("at location type 0", create());
    props.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    props.handleTypes = 64;
    notes.result("with handle type 64", create());
    props.handleTypes = 0;
    notes.result("create", create());
    const pool = out.value;
    const attribute = driver.pool.cuMemPoolGetAttribute;
    notes.result("attribute 0", attribute(pool, 0, word.$address));
    notes.result("attribute 1000", attribute(pool, 1000, word.$address));
    for (
      const [name, key] of Object.entries({
        REUSE_FOLLOW_EVENT_DEPENDENCIES: 1,
        REUSE_ALLOW_OPPORTUNISTIC: 2,
        REUSE_ALLOW_INTERNAL_DEPENDENCIES: 3,
      })
    ) {
      raw.ok(attribute(pool, key, int.$address));
      notes.value(name, int.value);
    }
    raw.ok(attribute(pool, CU_MEMPOOL_ATTR.RELEASE_THRESHOLD, word.$address));
    notes.value("release threshold", word.value);
    raw.ok(attribute(pool, CU_MEMPOOL_ATTR.USED_MEM_CURRENT, word.$address));
    notes.value("used at first", word.value);
    word.value = 5n;
    const set = driver.pool.cuMemPoolSetAttribute;
    notes.result("set a used high of 5", set(pool, CU_MEMPOOL_ATTR.USED_MEM_HIGH, word.$address));
    notes.result("set what is used", set(pool, CU_MEMPOOL_ATTR.USED_MEM_CURRENT, word.$address));
    notes.result("set the threshold", set(pool, CU_MEMPOOL_ATTR.RELEASE_THRESHOLD, word.$address));
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    raw.ok(driver.pool.cuMemAllocFromPoolAsync(out.$address, 1000n, pool, stream));
    const memory = out.value;
    raw.ok(attribute(pool, CU_MEMPOOL_ATTR.USED_MEM_CURRENT, word.$address));
    notes.value("used by 1000 bytes", word.value);
    notes.result("trim", driver.pool.cuMemPoolTrimTo(pool, 0n));
    const location = arena.struct(CUmemLocation);
    location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    notes.result("access of the owner", driver.pool.cuMemPoolGetAccess(int.$address, pool, location.$address));
    notes.value("access of the owner is", int.value);
    location.id = 1000;
    notes.result("access of device 1000", driver.pool.cuMemPoolGetAccess(int.$address, pool, location.$address));
    location.id = 0;
    location.type = 0;
    notes.result("access at location type 0", driver.pool.cuMemPoolGetAccess(int.$address, pool, location.$address));
    notes.result("grant to the owner", raw.grant(pool, 0));
    notes.result("read access to the owner", raw.grant(pool, 0, CU_MEM_ACCESS_FLAGS_PROT.READ));
    notes.result("no access to the owner", raw.grant(pool, 0, CU_MEM_ACCESS_FLAGS_PROT.NONE));
    notes.result("grant to device 1000", raw.grant(pool, 1000));
    notes.result("access 2 to the owner", raw.grant(pool, 0, 2));
    notes.result("change nothing", driver.pool.cuMemPoolSetAccess(pool, 0n, 0n));
    notes.result("destroy while in use", driver.pool.cuMemPoolDestroy(pool));
    notes.result("free after the pool is destroyed", driver.pool.cuMemFreeAsync(memory, stream));
    raw.ok(driver.pool.cuDeviceGetDefaultMemPool(out.$address, 0));
    notes.result("destroy the default pool", driver.pool.cuMemPoolDestroy(out.value));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
  }),

  example("pointers", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    const pinned = raw.pinned(64);
    const managed = raw.word((out) => driver.managedMemory.cuMemAllocManaged(out, 64n, 1));
    const places = {
      pageable: raw.pageable(64).address,
      pinned: pinned.address,
      device: raw.word((out) => driver.memory.cuMemAlloc_v2(out, 64n)) + 8n,
      pool: raw.allocate(64, stream) + 8n,
      managed: managed + 8n,
    };
    const attributes = [
      "CONTEXT",
      "MEMORY_TYPE",
      "DEVICE_POINTER",
      "HOST_POINTER",
      "SYNC_MEMOPS",
      "IS_MANAGED",
      "DEVICE_ORDINAL",
      "RANGE_START_ADDR",
      "RANGE_SIZE",
      "MAPPED",
      "ACCESS_FLAGS",
      "MEMPOOL_HANDLE",
    ] as const;
    const word = arena.out("i64");
    const list = arena.out("i32");
    const outs = arena.out("ptr");
    for (const [place, address] of Object.entries(places)) {
      for (const name of attributes) {
        const attribute = CU_POINTER_ATTRIBUTE[name];
        word.value = 0n;
        notes.result(`${place} ${name}`, driver.pointer.cuPointerGetAttribute(word.$address, attribute, address));
        list.value = attribute;
        outs.value = word.$address;
        const one = Number(BigInt.asIntN(32, word.value));
        const isSmall = !["CONTEXT", "DEVICE_POINTER", "HOST_POINTER", "RANGE_START_ADDR", "MEMPOOL_HANDLE"].includes(
          name,
        );
        notes.value(`${place} ${name} is`, isSmall ? one : Number(word.value !== 0n));
        word.value = 0n;
        notes.result(
          `${place} ${name}, listed`,
          driver.pointer.cuPointerGetAttributes(1, list.$address, outs.$address, address),
        );
        const listed = Number(BigInt.asIntN(32, word.value));
        notes.value(`${place} ${name}, listed, is`, isSmall ? listed : Number(word.value !== 0n));
      }
    }
    raw.ok(driver.pool.cuMemFreeAsync(places.pool - 8n, stream));
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    raw.ok(driver.memory.cuMemFree_v2(places.device - 8n));
    raw.ok(driver.memory.cuMemFree_v2(managed));
  }),

  example("managed memory", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const out = arena.out("ptr");
    const managed = raw.word((at) => driver.managedMemory.cuMemAllocManaged(at, 65536n, 1));
    const { cuMemAllocManaged, cuMemAdvise, cuMemPrefetchAsync } = driver.managedMemory;
    notes.result("0 bytes", cuMemAllocManaged(out.$address, 0n, 1));
    notes.result("flags 0", cuMemAllocManaged(out.$address, 64n, 0));
    notes.result("flags 4", cuMemAllocManaged(out.$address, 64n, 4));
    notes.result("advise", cuMemAdvise(managed, 65536n, 1, 0));
    notes.result("advise 0 bytes", cuMemAdvise(managed, 0n, 1, 0));
    notes.result("advise 100", cuMemAdvise(managed, 64n, 100, 0));
    notes.result("advise too much", cuMemAdvise(managed, 1n << 30n, 1, 0));
    notes.result("prefer device 1000", cuMemAdvise(managed, 65536n, 3, 1000));
    notes.result("prefer the host", cuMemAdvise(managed, 65536n, 3, -1));
    notes.result("prefetch", cuMemPrefetchAsync(managed, 65536n, 0, 0n));
    notes.result("prefetch to the host", cuMemPrefetchAsync(managed, 65536n, -1, 0n));
    notes.result("prefetch to device 1000", cuMemPrefetchAsync(managed, 65536n, 1000, 0n));
    notes.result("prefetch 0 bytes", cuMemPrefetchAsync(managed, 0n, 0, 0n));
    notes.result("attach", driver.stream.cuStreamAttachMemAsync(0n, managed, 0n, 1));
    notes.result("free in the middle", driver.memory.cuMemFree_v2(managed + 64n));
    raw.ok(driver.context.cuCtxSynchronize());
    notes.result("free", driver.memory.cuMemFree_v2(managed));
  }),

  example("captures", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const graph = arena.out("ptr");
    const out = arena.out("ptr");
    const status = arena.out("i32");
    const [one, two] = [raw.stream(CU_STREAM.NON_BLOCKING), raw.stream(CU_STREAM.NON_BLOCKING)];
    const blocking = raw.stream(CU_STREAM.DEFAULT);
    const event = raw.event();
    const early = raw.event();
    const host = raw.pageable(64);
    const memory = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 64n));
    raw.onClose(() => driver.memory.cuMemFree_v2(memory));
    const { GLOBAL, RELAXED, THREAD_LOCAL } = CU_STREAM_CAPTURE_MODE;
    const { cuStreamBeginCapture_v2: begin, cuStreamEndCapture: end, cuStreamIsCapturing } = driver.capture;
    const fill = (stream: bigint) => driver.fill.cuMemsetD8Async(memory, 1, 64n, stream);
    const isCapturing = (stream: bigint) => {
      cuStreamIsCapturing(stream, status.$address);
      return status.value;
    };
    raw.ok(driver.event.cuEventRecord(early, two));
    notes.result("end without a beginning", end(one, graph.$address));
    notes.result("begin on the legacy stream", begin(1n, GLOBAL));
    notes.result("begin with mode 5", begin(one, 5));
    notes.result("begin", begin(one, GLOBAL));
    notes.result("begin twice", begin(one, GLOBAL));
    notes.value("is capturing", isCapturing(one));
    notes.result("work", fill(one));
    notes.result("record", driver.event.cuEventRecord(event, one));
    notes.result("end", end(one, graph.$address));
    notes.value("is capturing at the end", isCapturing(one));

    const attempt = (question: string, mode: number, act: () => number): void => {
      raw.ok(begin(one, mode));
      notes.result(question, act());
      notes.value(`${question}: status`, isCapturing(one));
      notes.result(`${question}: end`, end(one, graph.$address));
      if (graph.value !== 0n) driver.graph.cuGraphDestroy(graph.value);
      graph.value = 0n;
    };
    attempt("synchronize the stream", GLOBAL, () => driver.stream.cuStreamSynchronize(one));
    attempt("query the stream", GLOBAL, () => driver.stream.cuStreamQuery(one));
    attempt("synchronize another stream", GLOBAL, () => driver.stream.cuStreamSynchronize(two));
    attempt("query another stream", GLOBAL, () => driver.stream.cuStreamQuery(two));
    const captured = (act: () => number) => {
      raw.ok(driver.event.cuEventRecord(event, one));
      return act();
    };
    attempt("query a captured event", GLOBAL, () => captured(() => driver.event.cuEventQuery(event)));
    attempt("query a captured event, relaxed", RELAXED, () => captured(() => driver.event.cuEventQuery(event)));
    attempt("synchronize with a captured event", GLOBAL, () => captured(() => driver.event.cuEventSynchronize(event)));
    attempt("synchronize another stream, relaxed", RELAXED, () => driver.stream.cuStreamSynchronize(two));
    attempt("upload at once", GLOBAL, () => driver.copy.cuMemcpyHtoD_v2(memory, host.address, 64n));
    attempt("query an event", GLOBAL, () => driver.event.cuEventQuery(early));
    attempt("synchronize with an event", GLOBAL, () => driver.event.cuEventSynchronize(early));
    attempt("synchronize the context", GLOBAL, () => driver.context.cuCtxSynchronize());
    attempt("synchronize the context, relaxed", RELAXED, () => driver.context.cuCtxSynchronize());
    attempt("query an event, relaxed", RELAXED, () => driver.event.cuEventQuery(early));
    const allocate = () => {
      const code = driver.memory.cuMemAlloc_v2(out.$address, 64n);
      if (code === 0) driver.memory.cuMemFree_v2(out.value);
      return code;
    };
    attempt("allocate", GLOBAL, allocate);
    attempt("allocate, relaxed", RELAXED, allocate);
    attempt("copy at once", GLOBAL, () => driver.copy.cuMemcpyDtoD_v2(memory, memory + 32n, 32n));
    attempt("copy at once, relaxed", RELAXED, () => driver.copy.cuMemcpyDtoD_v2(memory, memory + 32n, 32n));
    attempt("fill at once", GLOBAL, () => driver.fill.cuMemsetD8_v2(memory, 1, 64n));
    attempt("work on the legacy stream", GLOBAL, () => fill(0n));
    attempt("wait for an event from before", GLOBAL, () => driver.stream.cuStreamWaitEvent(one, early, 0));
    attempt("record by context", GLOBAL, () => driver.context.cuCtxRecordEvent?.(raw.context(0), early) ?? -1);
    attempt("unjoined work", GLOBAL, () => {
      raw.ok(fill(one));
      raw.ok(driver.event.cuEventRecord(event, one));
      raw.ok(driver.stream.cuStreamWaitEvent(two, event, 0));
      return fill(two);
    });
    attempt("joined work", GLOBAL, () => {
      raw.ok(driver.event.cuEventRecord(event, one));
      raw.ok(driver.stream.cuStreamWaitEvent(two, event, 0));
      raw.ok(fill(two));
      raw.ok(driver.event.cuEventRecord(event, two));
      return driver.stream.cuStreamWaitEvent(one, event, 0);
    });
    attempt("a stream that has joined is destroyed", GLOBAL, () => {
      const three = raw.word((at) => driver.stream.cuStreamCreate(at, CU_STREAM.NON_BLOCKING));
      raw.ok(driver.event.cuEventRecord(event, one));
      raw.ok(driver.stream.cuStreamWaitEvent(three, event, 0));
      return driver.stream.cuStreamDestroy_v2(three);
    });
    attempt("an event of the capture is destroyed", GLOBAL, () => {
      const late = raw.word((at) => driver.event.cuEventCreate(at, 2));
      raw.ok(driver.event.cuEventRecord(late, one));
      return driver.event.cuEventDestroy_v2(late);
    });
    raw.ok(begin(one, GLOBAL));
    raw.ok(fill(one));
    raw.ok(end(one, graph.$address));
    const made = graph.value;
    const exec = raw.word((at) => driver.graph.cuGraphInstantiateWithFlags(at, made, 0n));
    const pinned = raw.word((at) => driver.hostMemory.cuMemHostAlloc(at, 64n, 0));
    const pool = raw.pool(0);
    attempt("launch a graph", GLOBAL, () => driver.graph.cuGraphLaunch(exec, one));
    attempt("launch a graph on another stream", THREAD_LOCAL, () => driver.graph.cuGraphLaunch(exec, two));
    attempt("upload a graph", GLOBAL, () => driver.graph.cuGraphUpload(exec, one));
    attempt("destroy an executable graph", THREAD_LOCAL, () => driver.graph.cuGraphExecDestroy(exec));
    attempt("prefetch", GLOBAL, () => driver.managedMemory.cuMemPrefetchAsync(memory, 64n, 0, one));
    const { pool: pools } = driver;
    const fromPool = () => pools.cuMemAllocFromPoolAsync(out.$address, 64n, pool, two);
    attempt("allocate from a pool on another stream", THREAD_LOCAL, fromPool);
    attempt("free nothing on another stream", THREAD_LOCAL, () => pools.cuMemFreeAsync(0n, two));
    attempt("trim a pool", THREAD_LOCAL, () => pools.cuMemPoolTrimTo(pool, 0n));
    attempt("free", THREAD_LOCAL, () => driver.memory.cuMemFree_v2(memory));
    attempt("free of the host", THREAD_LOCAL, () => driver.hostMemory.cuMemFreeHost(pinned));
    attempt("allocate on the host", THREAD_LOCAL, () => driver.hostMemory.cuMemHostAlloc(out.$address, 64n, 0));
    raw.ok(driver.graph.cuGraphExecDestroy(exec));
    raw.ok(driver.graph.cuGraphDestroy(made));
    raw.ok(driver.hostMemory.cuMemFreeHost(pinned));
    graph.value = 0n;
    attempt("end on another stream", GLOBAL, () => {
      raw.ok(driver.event.cuEventRecord(event, one));
      raw.ok(driver.stream.cuStreamWaitEvent(two, event, 0));
      return end(two, out.$address);
    });
    raw.ok(begin(blocking, GLOBAL));
    notes.result("legacy stream while a blocking one is captured", fill(0n));
    notes.value("legacy stream while a blocking one is captured: status", isCapturing(blocking));
    notes.result("work after that", fill(blocking));
    notes.result("legacy stream while a blocking one is captured: end", end(blocking, graph.$address));
  }),

  example("contexts of other devices", 2, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(1);
    const there = raw.stream(CU_STREAM.NON_BLOCKING);
    const eventThere = raw.event(CU_EVENT.DEFAULT);
    const memoryThere = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 64n));
    raw.use(0);
    const here = raw.stream(CU_STREAM.NON_BLOCKING);
    const eventHere = raw.event(CU_EVENT.DEFAULT);
    const memoryHere = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 64n));
    const float = arena.out("f32");
    notes.result("record an event of another device", driver.event.cuEventRecord(eventThere, here));
    notes.result("record on a stream of another device", driver.event.cuEventRecord(eventThere, there));
    notes.result("wait for an event of another device", driver.stream.cuStreamWaitEvent(here, eventThere, 0));
    notes.result("synchronize a stream of another device", driver.stream.cuStreamSynchronize(there));
    raw.ok(driver.event.cuEventRecord(eventHere, here));
    raw.ok(driver.stream.cuStreamSynchronize(here));
    notes.result("elapsed between devices", driver.event.cuEventElapsedTime(float.$address, eventHere, eventThere));
    notes.result("fill on a stream of another device", driver.fill.cuMemsetD8Async(memoryHere, 1, 64n, there));
    notes.result("fill there", driver.fill.cuMemsetD8Async(memoryThere, 1, 64n, there));
    notes.result("copy between devices", driver.copy.cuMemcpyAsync(memoryHere, memoryThere, 64n, here));
    notes.result("DtoD between devices", driver.copy.cuMemcpyDtoDAsync_v2(memoryHere, memoryThere, 64n, here));
    notes.result(
      "peer copy",
      driver.copy.cuMemcpyPeerAsync(memoryHere, raw.context(0), memoryThere, raw.context(1), 64n, here),
    );
    notes.result(
      "peer copy with the contexts exchanged",
      driver.copy.cuMemcpyPeerAsync(memoryHere, raw.context(1), memoryThere, raw.context(0), 64n, here),
    );
    notes.result(
      "record by context, event of another",
      driver.context.cuCtxRecordEvent?.(raw.context(0), eventThere) ?? -1,
    );
    notes.result("enable access to itself", driver.context.cuCtxEnablePeerAccess(raw.context(0), 0));
    notes.result("disable access that is not enabled", driver.context.cuCtxDisablePeerAccess(raw.context(1)));
    notes.result("enable access", driver.context.cuCtxEnablePeerAccess(raw.context(1), 0));
    notes.result("enable access twice", driver.context.cuCtxEnablePeerAccess(raw.context(1), 0));
    notes.result("enable access with flags", driver.context.cuCtxEnablePeerAccess(raw.context(1), 1));
    notes.result("disable access", driver.context.cuCtxDisablePeerAccess(raw.context(1)));
    notes.result("free memory of another device", driver.memory.cuMemFree_v2(memoryThere));
    notes.result("free", driver.memory.cuMemFree_v2(memoryHere));
    raw.ok(driver.stream.cuStreamSynchronize(here));
    raw.ok(driver.stream.cuStreamSynchronize(there));
  }),

  example("pools and peers", 2, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(1);
    const there = raw.stream(CU_STREAM.NON_BLOCKING);
    const memoryThere = raw.allocate(64, there);
    raw.ok(driver.stream.cuStreamSynchronize(there));
    raw.use(0);
    const here = raw.stream(CU_STREAM.NON_BLOCKING);
    const memoryHere = raw.allocate(64, here);
    const host = raw.pinned(64);
    raw.ok(driver.stream.cuStreamSynchronize(here));
    const int = arena.out("i32");
    const ask = (prefix: string): void => {
      const location = arena.struct(CUmemLocation);
      location.type = CU_MEM_LOCATION_TYPE.DEVICE;
      notes.result(`${prefix}: access`, driver.pool.cuMemPoolGetAccess(int.$address, raw.pool(1), location.$address));
      notes.value(`${prefix}: access is`, int.value);
      const { cuMemcpyAsync, cuMemcpyDtoDAsync_v2, cuMemcpyPeerAsync, cuMemcpyDtoHAsync_v2 } = driver.copy;
      notes.result(`${prefix}: copy from there on a stream here`, cuMemcpyAsync(memoryHere, memoryThere, 64n, here));
      notes.result(`${prefix}: copy to there on a stream here`, cuMemcpyAsync(memoryThere, memoryHere, 64n, here));
      notes.result(`${prefix}: copy from there on a stream there`, cuMemcpyAsync(memoryHere, memoryThere, 64n, there));
      notes.result(`${prefix}: copy to there on a stream there`, cuMemcpyAsync(memoryThere, memoryHere, 64n, there));
      notes.result(`${prefix}: DtoD`, cuMemcpyDtoDAsync_v2(memoryHere, memoryThere, 64n, here));
      notes.result(
        `${prefix}: peer copy`,
        cuMemcpyPeerAsync(memoryHere, raw.context(0), memoryThere, raw.context(1), 64n, here),
      );
      notes.result(
        `${prefix}: to the host on a stream here`,
        cuMemcpyDtoHAsync_v2(host.address, memoryThere, 64n, here),
      );
      notes.result(
        `${prefix}: to the host on a stream there`,
        cuMemcpyDtoHAsync_v2(host.address, memoryThere, 64n, there),
      );
      notes.result(`${prefix}: fill on a stream here`, driver.fill.cuMemsetD8Async(memoryThere, 1, 64n, here));
      notes.result(`${prefix}: fill on a stream there`, driver.fill.cuMemsetD8Async(memoryThere, 1, 64n, there));
      raw.ok(driver.stream.cuStreamSynchronize(here));
      raw.ok(driver.stream.cuStreamSynchronize(there));
    };
    ask("without access");
    notes.result("grant reading", raw.grant(raw.pool(1), 0, CU_MEM_ACCESS_FLAGS_PROT.READ));
    notes.result("grant", raw.grant(raw.pool(1), 0));
    ask("device 0 may use the memory of 1");
    raw.ok(raw.grant(raw.pool(0), 1));
    ask("each may use the other's");
    raw.ok(raw.grant(raw.pool(0), 1, CU_MEM_ACCESS_FLAGS_PROT.NONE));
    raw.use(1);
    ask("device 0 may use the memory of 1, context of 1");
    raw.use(0);
    notes.result("revoke", raw.grant(raw.pool(1), 0, CU_MEM_ACCESS_FLAGS_PROT.NONE));
    ask("revoked");
    notes.result("free on a stream of another device", driver.pool.cuMemFreeAsync(memoryThere, here));
    raw.ok(driver.pool.cuMemFreeAsync(memoryHere, here));
    raw.ok(driver.stream.cuStreamSynchronize(here));
  }),
];
