/**
 * Questions about the calls that the examples of `error_codes.ts` leave out. Their answers are not recorded: the
 * differential test asks the simulator and libcuda, and compares.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import {
  CU_MEM_ALLOCATION_TYPE,
  CU_MEM_LOCATION_TYPE,
  CU_POINTER_ATTRIBUTE,
  CU_STREAM,
  CUmemLocation,
} from "../../bindings/cuda_types.ts";
import { cString, readCString } from "../../src/ffi/c_string.ts";
import { type Example, example, type Notes } from "./error_codes.ts";
import type { Raw } from "./raw_driver.ts";

/** PTX as an older compiler would have written it, for drivers older than the compiler that did. */
const older = (name: string) =>
  readFileSync(new URL(`../data/ptx/${name}.sm_80.ptx`, import.meta.url), "utf8")
    .replace(/^\.version .*$/m, ".version 8.0");
const [arrays, printing] = [older("arrays"), older("printing")];

/** A graph captured from a stream: a fill, then a copy. */
function captured(raw: Raw): { readonly graph: bigint; readonly stream: bigint } {
  const { driver } = raw;
  const stream = raw.stream(CU_STREAM.NON_BLOCKING);
  const [one, other] = [raw.pinned(64), raw.pinned(64)];
  raw.ok(driver.capture.cuStreamBeginCapture_v2(stream, 1));
  raw.ok(driver.fill.cuMemsetD8Async(one.address, 1, 64n, stream));
  raw.ok(driver.copy.cuMemcpyAsync(other.address, one.address, 64n, stream));
  const graph = raw.word((out) => driver.capture.cuStreamEndCapture(stream, out));
  raw.onClose(() => driver.graph.cuGraphDestroy(graph));
  return { graph, stream };
}

/** What a call returns for several device ordinals, valid and invalid. */
function ordinals(notes: Notes, question: string, ask: (device: number) => number): void {
  for (const device of [0, -1, 1000]) notes.result(`${question} of device ${device}`, ask(device));
}

/** The questions. */
export const questions: readonly Example[] = [
  example("what a driver and its devices are called", 1, ({ driver, arena }, notes) => {
    const [int, out, text] = [arena.out("i32"), arena.out("ptr"), arena.bytes(64, 16)];
    notes.result("version", driver.opening.cuDriverGetVersion(int.$address));
    notes.value("a version is above 11000", Number(int.value > 11000));
    notes.result("count", driver.opening.cuDeviceGetCount(int.$address));
    for (const code of [0, 1, 2, 700, 12345]) {
      notes.result(`name of ${code}`, driver.opening.cuGetErrorName(code, out.$address));
      if (code < 10000) notes.answers[`the name of ${code} is`] = readCString(out.value);
      notes.result(`words of ${code}`, driver.opening.cuGetErrorString(code, out.$address));
    }
    ordinals(notes, "name", (device) => driver.device.cuDeviceGetName(text.address, 64, device));
    ordinals(notes, "uuid", (device) => driver.device.cuDeviceGetUuid_v2(text.address, device));
    ordinals(notes, "memory", (device) => driver.device.cuDeviceTotalMem_v2(out.$address, device));
    ordinals(notes, "bus id", (device) => driver.device.cuDeviceGetPCIBusId(text.address, 64, device));
    notes.result("a bus id again", driver.device.cuDeviceGetPCIBusId(text.address, 64, 0));
    const id = cString(readCString(text.address));
    notes.result("device by its bus id", driver.device.cuDeviceGetByPCIBusId(int.$address, id));
    notes.value("which is device", int.value);
    notes.result("device by no bus id", driver.device.cuDeviceGetByPCIBusId(int.$address, cString("nowhere")));
    notes.result(
      "device by the bus id of none",
      driver.device.cuDeviceGetByPCIBusId(int.$address, cString("FFFF:FF:1F.0")),
    );
  }),

  example("two devices side by side", 2, ({ driver, arena }, notes) => {
    const int = arena.out("i32");
    for (const [from, to] of [[0, 1], [1, 0], [0, 0], [0, 1000]] as const) {
      const ask = (attribute: number) => driver.device.cuDeviceGetP2PAttribute(int.$address, attribute, from, to);
      notes.result(`access supported from ${from} to ${to}`, ask(2));
      if (from !== to && to < 2) notes.value(`it is, from ${from} to ${to}`, int.value);
      notes.result(`attribute 0 from ${from} to ${to}`, ask(0));
    }
  }),

  example("contexts of one's own", 1, (raw, notes) => {
    const { driver, arena } = raw;
    const [flags, int, id, again] = [arena.out("u32"), arena.out("i32"), arena.out("u64"), arena.out("u64")];
    const [least, greatest] = [arena.out("i32"), arena.out("i32")];
    raw.use(0);
    notes.result("flags", driver.context.cuCtxGetFlags(flags.$address));
    notes.result("priorities", driver.context.cuCtxGetStreamPriorityRange(least.$address, greatest.$address));
    notes.value("the least priority", least.value);
    notes.value("the greatest priority", greatest.value);
    notes.result("create with flags 4096", driver.context.cuCtxCreate_v2(arena.out("ptr").$address, 4096, 0));
    notes.result("create on device 1000", driver.context.cuCtxCreate_v2(arena.out("ptr").$address, 0, 1000));
    const mine = raw.word((out) => driver.context.cuCtxCreate_v2(out, 4, 0));
    notes.result("flags of one's own", driver.context.cuCtxGetFlags(flags.$address));
    notes.value("scheduling flags of one's own", flags.value & 7);
    notes.result("id", driver.context.cuCtxGetId?.(mine, id.$address) ?? -1);
    notes.result("id of the current one", driver.context.cuCtxGetId?.(0n, again.$address) ?? -1);
    notes.value("they are the same", Number(id.value === again.value));
    notes.result("push the primary one", driver.context.cuCtxPushCurrent_v2(raw.context(0)));
    notes.result("memory is asked there", driver.context.cuCtxGetDevice(int.$address));
    notes.result("pop", driver.context.cuCtxPopCurrent_v2(arena.out("ptr").$address));
    notes.result("destroy", driver.context.cuCtxDestroy_v2(mine));
    notes.result("flags of a primary one", driver.context.cuDevicePrimaryCtxSetFlags_v2(0, 4096));
    notes.result("flags of no device", driver.context.cuDevicePrimaryCtxSetFlags_v2(1000, 0));
    raw.use(0);
    const event = raw.event();
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    raw.ok(driver.event.cuEventRecord(event, stream));
    notes.result("context waits for an event", driver.context.cuCtxWaitEvent?.(raw.context(0), event) ?? -1);
    notes.result(
      "context waits for an event never recorded",
      driver.context.cuCtxWaitEvent?.(raw.context(0), raw.event()) ?? -1,
    );
    raw.ok(driver.context.cuCtxSynchronize());
  }),

  example("what a stream says of itself", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const [int, out] = [arena.out("i32"), arena.out("ptr")];
    const { cuStreamCreateWithPriority, cuStreamGetPriority, cuStreamGetCtx, cuStreamGetId, cuStreamGetDevice } =
      driver.stream;
    for (const priority of [0, -1, -3, 7, -1000]) {
      const stream = raw.word((at) => cuStreamCreateWithPriority(at, CU_STREAM.NON_BLOCKING, priority));
      raw.ok(cuStreamGetPriority(stream, int.$address));
      notes.value(`priority ${priority} becomes`, int.value);
      raw.ok(driver.stream.cuStreamDestroy_v2(stream));
    }
    notes.result("priority with flags 8", cuStreamCreateWithPriority(out.$address, 8, 0));
    for (const [name, stream] of [["own", raw.stream(1)], ["legacy", 1n], ["per-thread", 2n], ["null", 0n]] as const) {
      notes.result(`context of the ${name} one`, cuStreamGetCtx(stream, out.$address));
      notes.value(`it is the current one of the ${name} one`, Number(out.value === raw.context(0)));
      notes.result(`id of the ${name} one`, cuStreamGetId?.(stream, out.$address) ?? -1);
      notes.result(`device of the ${name} one`, cuStreamGetDevice?.(stream, int.$address) ?? -1);
    }
    notes.result("priority of the legacy one", cuStreamGetPriority(1n, int.$address));
    notes.value("which is", int.value);
  }),

  example("memory that is asked about and marked", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const [free, total, out, yes] = [arena.out("size"), arena.out("size"), arena.out("ptr"), arena.out("i32")];
    notes.result("free", driver.memory.cuMemGetInfo_v2(free.$address, total.$address));
    notes.value("less is free than there is", Number(free.value <= total.value && free.value > 0));
    notes.result("host memory of the older call", driver.hostMemory.cuMemAllocHost_v2(out.$address, 64n));
    notes.result("its end", driver.hostMemory.cuMemFreeHost(out.value));
    const memory = raw.word((at) => driver.memory.cuMemAlloc_v2(at, 64n));
    yes.value = 1;
    const set = (attribute: number, at: bigint) => driver.pointer.cuPointerSetAttribute(yes.$address, attribute, at);
    notes.result("mark memory as synchronous", set(CU_POINTER_ATTRIBUTE.SYNC_MEMOPS, memory));
    notes.result("set what cannot be set", set(CU_POINTER_ATTRIBUTE.MEMORY_TYPE, memory));
    notes.result("mark memory of the host", set(CU_POINTER_ATTRIBUTE.SYNC_MEMOPS, raw.pageable(64).address));
    notes.result("free it", driver.memory.cuMemFree_v2(memory));
  }),

  example("the pools of a device, by the newer calls and the older ones", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const location = arena.struct(CUmemLocation);
    location.type = CU_MEM_LOCATION_TYPE.DEVICE;
    const out = arena.out("ptr");
    const { cuMemGetDefaultMemPool, cuMemGetMemPool, cuMemSetMemPool, cuDeviceSetMemPool } = driver.pool;
    const pinned = CU_MEM_ALLOCATION_TYPE.PINNED;
    const pool = raw.pool(0);
    notes.result("default", cuMemGetDefaultMemPool?.(out.$address, location.$address, pinned) ?? -1);
    notes.result("current", cuMemGetMemPool?.(out.$address, location.$address, pinned) ?? -1);
    notes.value("it is the one of the older call", Number(cuMemGetMemPool === null || out.value === pool));
    notes.result("set it again", cuMemSetMemPool?.(location.$address, pinned, pool) ?? -1);
    notes.result("set it again, the older way", cuDeviceSetMemPool(0, pool));
    ordinals(notes, "set it for a device", (device) => cuDeviceSetMemPool(device, pool));
    location.id = 1000;
    notes.result("of a device that is not there", cuMemGetMemPool?.(out.$address, location.$address, pinned) ?? -1);
  }),

  example("what a graph says of itself", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const { graph, stream } = captured(raw);
    const [count, type, id, status] = [arena.out("size"), arena.out("i32"), arena.out("u64"), arena.out("i32")];
    const nodes = arena.bytes(8 * 8, 8);
    count.value = 0;
    notes.result("how many nodes", driver.graph.cuGraphGetNodes(graph, 0n, count.$address));
    notes.value("nodes", count.value);
    notes.result(
      "nodes into 8 places",
      (count.value = 8, driver.graph.cuGraphGetNodes(graph, nodes.address, count.$address)),
    );
    notes.value("nodes of 8 places", count.value);
    const view = new DataView(nodes.bytes.buffer, nodes.bytes.byteOffset);
    for (let i = 0; i < 2; i++) {
      notes.result(`type of node ${i}`, driver.graph.cuGraphNodeGetType(view.getBigUint64(8 * i, true), type.$address));
      notes.value(`node ${i} is a`, type.value);
    }
    notes.result("how many edges", (count.value = 0, driver.graph.cuGraphGetEdges(graph, 0n, 0n, count.$address)));
    notes.value("edges", count.value);
    const empty = raw.word((out) => driver.graph.cuGraphCreate(out, 0));
    notes.result("a graph with flags", driver.graph.cuGraphCreate(arena.out("ptr").$address, 1));
    const exec = raw.word((out) => driver.graph.cuGraphInstantiateWithFlags(out, graph, 0n));
    const result = arena.bytes(64, 16);
    notes.result("update to itself", driver.graph.cuGraphExecUpdate(exec, graph, result.address, result.address));
    notes.result("update to another", driver.graph.cuGraphExecUpdate(exec, empty, result.address, result.address));
    notes.result("draw it nowhere", driver.graph.cuGraphDebugDotPrint(graph, cString("/nowhere/at/all.dot"), 0));
    const info = () => driver.capture.cuStreamGetCaptureInfo_v2(stream, status.$address, id.$address, 0n, 0n, 0n);
    notes.result("capture of a stream that is not captured", info());
    notes.value("its status", status.value);
    raw.ok(driver.capture.cuStreamBeginCapture_v2(stream, 2));
    notes.result("capture of a stream that is", info());
    notes.value("its status then", status.value);
    raw.ok(driver.capture.cuStreamEndCapture(stream, arena.out("ptr").$address));
    for (const mode of [1, 0, 3]) {
      type.value = mode;
      notes.result(`exchange the mode for ${mode}`, driver.capture.cuThreadExchangeStreamCaptureMode(type.$address));
      notes.value(`the mode before ${mode}`, type.value);
    }
    for (const end of [driver.graph.cuGraphExecDestroy(exec), driver.graph.cuGraphDestroy(empty)]) raw.ok(end);
  }),

  example("memory that a graph allocates", 1, (raw, notes) => {
    const { driver, arena } = raw;
    const { capture, graph, pool, pointer } = driver;
    raw.use(0);
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    const [out, made, int, size] = [arena.out("ptr"), arena.out("ptr"), arena.out("i32"), arena.out("u64")];
    /** The graph captured while `body` runs, or 0. */
    const captured = (what: string, body: () => void): bigint => {
      raw.ok(capture.cuStreamBeginCapture_v2(stream, 1));
      body();
      notes.result(`${what}: is it captured`, capture.cuStreamIsCapturing(stream, int.$address));
      notes.value(`${what}: status`, int.value);
      const code = capture.cuStreamEndCapture(stream, out.$address);
      notes.result(`${what}: end`, code);
      return code === 0 ? out.value : 0n;
    };
    const allocate = (what: string, bytes = 64n): bigint => {
      notes.result(what, pool.cuMemAllocAsync(made.$address, bytes, stream));
      return made.value;
    };
    const free = (what: string, address: bigint) => notes.result(what, pool.cuMemFreeAsync(address, stream));
    const instantiate = (what: string, handle: bigint, flags = 0n): bigint => {
      out.value = 0n;
      notes.result(what, graph.cuGraphInstantiateWithFlags(out.$address, handle, flags));
      return out.value;
    };
    const launch = (what: string, exec: bigint) => notes.result(what, graph.cuGraphLaunch(exec, stream));
    const destroy = (exec: bigint, handle: bigint) => {
      raw.ok(graph.cuGraphExecDestroy(exec));
      raw.ok(graph.cuGraphDestroy(handle));
    };
    const ask = (what: string, address: bigint) => {
      const { MEMORY_TYPE, RANGE_SIZE, MEMPOOL_HANDLE, CONTEXT } = CU_POINTER_ATTRIBUTE;
      notes.result(`${what}: kind of memory`, pointer.cuPointerGetAttribute(int.$address, MEMORY_TYPE, address));
      notes.result(`${what}: size`, pointer.cuPointerGetAttribute(size.$address, RANGE_SIZE, address));
      for (const [name, attribute] of [["pool", MEMPOOL_HANDLE], ["context", CONTEXT]] as const) {
        const code = pointer.cuPointerGetAttribute(size.$address, attribute, address);
        notes.result(`${what}: ${name}`, code);
        if (code === 0) notes.value(`${what}: it has a ${name}`, Number(size.value !== 0n));
      }
    };

    const ordinary = raw.allocate(64, stream);
    // A call that is refused may end its capture: each has a capture of its own.
    for (
      const [what, address] of [["ordinary memory", ordinary], ["no memory", 64n], ["nothing", 0n]] as const
    ) {
      const wrong = captured(`free of ${what}`, () => free(`capture a free of ${what}`, address));
      if (wrong !== 0n) raw.ok(graph.cuGraphDestroy(wrong));
    }
    const none = captured("allocation of nothing", () => void allocate("capture an allocation of nothing", 0n));
    if (none !== 0n) raw.ok(graph.cuGraphDestroy(none));
    raw.ok(pool.cuMemFreeAsync(ordinary, stream));

    let address = 0n;
    const whole = captured("a life", () => {
      address = allocate("capture an allocation");
      ask("while it is captured", address);
      raw.ok(driver.fill.cuMemsetD8Async(address, 1, 64n, stream));
      free("capture its free", address);
    });
    const twice = captured("freed by another", () => free("capture a free of what its graph frees", address));
    if (twice !== 0n) raw.ok(graph.cuGraphDestroy(twice));
    let exec = instantiate("instantiate", whole);
    const again = instantiate("instantiate again", whole);
    if (again !== 0n) raw.ok(graph.cuGraphExecDestroy(again));
    for (const time of ["first", "second"]) launch(`${time} launch`, exec);
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    free("free what the graph has freed", address);
    notes.result("free it at once", driver.memory.cuMemFree_v2(address));
    raw.ok(graph.cuGraphExecDestroy(exec));
    exec = instantiate("instantiate when the other is gone", whole);
    destroy(exec, whole);
    ask("when its graph is gone", address);

    const open = captured("half a life", () => void (address = allocate("capture another allocation")));
    const closing = captured("a free alone", () => {
      free("capture a free of it elsewhere", address);
      free("capture a second free of it there", address);
    });
    exec = instantiate("instantiate half a life", open);
    free("free it before a launch", address);
    const closer = closing === 0n ? 0n : instantiate("instantiate the free", closing);
    const closeIt = (what: string) => closer === 0n ? free(what, address) : launch(what, closer);
    launch("launch it", exec);
    ask("after a launch", address);
    launch("launch it again", exec);
    closeIt("free it by a graph");
    launch("launch it after that", exec);
    free("free it in order", address);
    free("free it twice", address);
    launch("launch it once more", exec);
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    notes.result("free it at once, then", driver.memory.cuMemFree_v2(address));
    raw.ok(graph.cuGraphExecDestroy(exec));
    exec = instantiate("instantiate so that it frees", open, 1n);
    for (const time of ["first", "second"]) launch(`${time} launch that frees`, exec);
    destroy(exec, open);
    ask("allocated, without a graph", address);
    free("free it without a graph", address);
    raw.ok(driver.stream.cuStreamSynchronize(stream));
    ask("freed, without a graph", address);
    if (closing !== 0n) destroy(closer, closing);

    for (const attribute of [0, 1, 2, 3, 4, -1]) {
      const { cuDeviceGetGraphMemAttribute: get, cuDeviceSetGraphMemAttribute: set } = graph;
      notes.result(`memory of graphs, attribute ${attribute}`, get(0, attribute, size.$address));
      // The amount counted once everything is freed is not compared: an H100's driver (580) still counts some.
      size.value = 0n;
      notes.result(`reset it, attribute ${attribute}`, set(0, attribute, size.$address));
      size.value = 1n;
      notes.result(`set it, attribute ${attribute}`, set(0, attribute, size.$address));
    }
    ordinals(notes, "memory of graphs", (device) => graph.cuDeviceGetGraphMemAttribute(device, 0, size.$address));
    ordinals(notes, "give it back", (device) => graph.cuDeviceGraphMemTrim(device));
  }),

  example("a graph that frees what no graph has allocated", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    const out = arena.out("ptr");
    const captured = (body: () => void): bigint => {
      raw.ok(driver.capture.cuStreamBeginCapture_v2(stream, 1));
      body();
      return raw.word((made) => driver.capture.cuStreamEndCapture(stream, made));
    };
    const allocating = captured(() => raw.ok(driver.pool.cuMemAllocAsync(out.$address, 64n, stream)));
    const freeing = captured(() => raw.ok(driver.pool.cuMemFreeAsync(out.value, stream)));
    const exec = raw.word((made) => driver.graph.cuGraphInstantiateWithFlags(made, freeing, 0n));
    notes.result("launch", driver.graph.cuGraphLaunch(exec, stream));
    notes.result("wait", driver.stream.cuStreamSynchronize(stream));
    notes.result("end", driver.graph.cuGraphExecDestroy(exec));
    for (const graph of [freeing, allocating]) notes.result("destroy", driver.graph.cuGraphDestroy(graph));
  }),

  example("what printf returns", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const image = arena.bytes(printing.length + 1, 16);
    image.bytes.set(new TextEncoder().encode(printing));
    const module = raw.word((at) => driver.module.cuModuleLoadData(at, image.address));
    const wide = raw.word((at) => driver.module.cuModuleGetFunction(at, module, cString("wide"))); // it prints nothing
    const out = raw.pinned(12);
    const [value, list] = [arena.out("ptr"), arena.out("ptr")];
    value.value = out.address;
    list.value = value.$address;
    notes.result("launch", driver.kernel.cuLaunchKernel(wide, 1, 1, 1, 1, 1, 1, 0, 2n, list.$address, 0n));
    notes.result("wait", driver.context.cuCtxSynchronize());
    const returned = new Int32Array(out.bytes.buffer, out.bytes.byteOffset, 3);
    notes.value("for an empty text", returned[0] ?? NaN);
    notes.value("for no text", returned[1] ?? NaN);
    notes.value("for two strings, with a width and a precision that are arguments", returned[2] ?? NaN);
    raw.ok(driver.module.cuModuleUnload(module));
  }),

  example("modules, functions and launches", 1, (raw, notes) => {
    const { driver, arena } = raw;
    raw.use(0);
    const [out, bytes, int, offset] = [arena.out("ptr"), arena.out("size"), arena.out("i32"), arena.out("size")];
    const image = (text: string) => {
      const memory = arena.bytes(text.length + 1, 16);
      memory.bytes.set(new TextEncoder().encode(text));
      return memory.address;
    };
    notes.result("load nonsense", driver.module.cuModuleLoadData(out.$address, image("no PTX at all")));
    const module = raw.word((at) => driver.module.cuModuleLoadData(at, image(arrays)));
    notes.result("load with options", driver.module.cuModuleLoadDataEx(out.$address, image(arrays), 0, 0n, 0n));
    notes.result("unload", driver.module.cuModuleUnload(out.value));
    notes.result("no function", driver.module.cuModuleGetFunction(out.$address, module, cString("nothing")));
    notes.result(
      "no global",
      driver.module.cuModuleGetGlobal_v2(out.$address, bytes.$address, module, cString("nothing")),
    );
    const saxpy = raw.word((at) => driver.module.cuModuleGetFunction(at, module, cString("saxpy")));
    notes.result("most threads", driver.kernel.cuFuncGetAttribute(int.$address, 0, saxpy));
    notes.value("which are", int.value);
    notes.result("no attribute", driver.kernel.cuFuncGetAttribute(int.$address, 1000, saxpy));
    notes.result("shared memory", driver.kernel.cuFuncSetAttribute(saxpy, 8, 16384));
    notes.result("too much shared memory", driver.kernel.cuFuncSetAttribute(saxpy, 8, 2 ** 30));
    for (let i = 0; i < 5; i++) {
      const code = driver.kernel.cuFuncGetParamInfo?.(saxpy, BigInt(i), offset.$address, bytes.$address) ?? -1;
      notes.result(`parameter ${i}`, code);
      if (code === 0) notes.value(`parameter ${i} lies at`, offset.value * 100 + bytes.value);
    }
    const busy = driver.kernel.cuOccupancyMaxActiveBlocksPerMultiprocessor(int.$address, saxpy, 128, 0n);
    notes.result("occupancy", busy);
    notes.result(
      "best block",
      driver.kernel.cuOccupancyMaxPotentialBlockSize(int.$address, offset.$address, saxpy, 0n, 0n, 0),
    );
    const stream = raw.stream(CU_STREAM.NON_BLOCKING);
    const launch = (x: number, threads: number, shared = 0) =>
      driver.kernel.cuLaunchKernel(saxpy, x, 1, 1, threads, 1, 1, shared, stream, 0n, 0n);
    notes.result("launch no blocks", launch(0, 1));
    notes.result("launch no threads", launch(1, 0));
    notes.result("launch too many threads", launch(1, 2048));
    notes.result("launch with too much shared memory", launch(1, 1, 2 ** 30));
    notes.result("end", driver.module.cuModuleUnload(module));
  }),
];
