/**
 * Calls that the driver permits a thread while another library captures a stream of the same context, and which of them
 * invalidate the capture: by the thread's mode (`cuThreadExchangeStreamCaptureMode`) and by the kind of captured
 * stream.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import {
  CU_EVENT,
  CU_MEM_ALLOCATION_TYPE,
  CU_MEM_LOCATION_TYPE,
  CU_MEMPOOL_ATTR,
  CU_POINTER_ATTRIBUTE,
  CU_STREAM,
  CU_STREAM_CAPTURE_MODE,
  CU_STREAM_LEGACY,
  CU_STREAM_PER_THREAD,
  CUmemPoolProps,
} from "../../bindings/cuda_types.ts";
import { resultName } from "../../src/driver/driver.ts";
import { type Example, example } from "./error_codes.ts";
import type { Raw } from "./raw_driver.ts";

/** As an older compiler would have written it, for drivers older than the compiler that did. */
const arrays = readFileSync(new URL("../data/ptx/arrays.sm_80.ptx", import.meta.url), "utf8")
  .replace(/^\.version .*$/m, ".version 8.0");

/** A call: its resources are created before the capture begins, and released after it has ended. */
type Call = (raw: Raw) => { readonly ask: () => number; readonly after?: (code: number) => void };

/** The calls, by what they do. */
function callsOf(raw: Raw): Readonly<Record<string, Call>> {
  const { driver, arena } = raw;
  const { context, stream, event, memory, hostMemory, managedMemory, pool, copy, fill, graph, module, pointer } =
    driver;
  const out = arena.out("ptr");
  const int = arena.out("i32");
  const other = raw.stream(CU_STREAM.NON_BLOCKING);
  const beside = raw.stream(CU_STREAM.DEFAULT);
  const [done, timed] = [raw.event(), raw.event(CU_EVENT.DEFAULT)];
  raw.ok(event.cuEventRecord(done, other));
  raw.ok(event.cuEventRecord(timed, other));
  const bytes = raw.word((at) => memory.cuMemAlloc_v2(at, 64n));
  raw.onClose(() => memory.cuMemFree_v2(bytes));
  const host = raw.pageable(1 << 20);
  const pinned = raw.pinned(64);
  raw.ok(context.cuCtxSynchronize());
  const current = raw.pool(0);
  const props = arena.struct(CUmemPoolProps);
  props.allocType = CU_MEM_ALLOCATION_TYPE.PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE.DEVICE;
  const threshold = arena.out("u64");
  const image = arena.cString(arrays);

  /** A call that needs no resources. */
  const plain = (ask: () => number): Call => () => ({ ask });
  /** A call that creates a resource, which is then released. */
  const making = (make: (at: bigint) => number, giveBack: (made: bigint) => number): Call => () => ({
    ask: () => make(out.$address),
    after: (code) => void (code === 0 && raw.ok(giveBack(out.value))),
  });
  /** A call that releases a resource, which is released afterwards if the call was refused. */
  const giving = (make: (at: bigint) => number, giveBack: (made: bigint) => number): Call => () => {
    const made = raw.word(make);
    return { ask: () => giveBack(made), after: (code) => void (code !== 0 && raw.ok(giveBack(made))) };
  };
  const executable = (at: bigint) => {
    raw.ok(driver.capture.cuStreamBeginCapture_v2(other, CU_STREAM_CAPTURE_MODE.RELAXED));
    const captured = raw.word((made) => driver.capture.cuStreamEndCapture(other, made));
    const code = graph.cuGraphInstantiateWithFlags(at, captured, 0n);
    raw.ok(graph.cuGraphDestroy(captured));
    return code;
  };
  const allocate = (on: bigint) => (at: bigint) => {
    const code = pool.cuMemAllocFromPoolAsync(at, 64n, current, on);
    return code;
  };
  const free = (on: bigint) => (made: bigint) => pool.cuMemFreeAsync(made, on);
  return {
    "query an event": plain(() => event.cuEventQuery(done)),
    "synchronize with an event": plain(() => event.cuEventSynchronize(done)),
    "time between events": plain(() => event.cuEventElapsedTime(int.$address, timed, timed)),
    "create an event": making((at) => event.cuEventCreate(at, 2), (made) => event.cuEventDestroy_v2(made)),
    "destroy an event": giving((at) => event.cuEventCreate(at, 2), (made) => event.cuEventDestroy_v2(made)),
    "record": plain(() => event.cuEventRecord(done, other)),
    "record on the legacy stream": plain(() => event.cuEventRecord(done, CU_STREAM_LEGACY)),
    "record on the thread's stream": plain(() => event.cuEventRecord(done, CU_STREAM_PER_THREAD)),
    "record a context": plain(() => context.cuCtxRecordEvent?.(raw.context(0), done) ?? -1),
    "wait for an event": plain(() => stream.cuStreamWaitEvent(other, done, 0)),
    "wait for an event on the legacy stream": plain(() => stream.cuStreamWaitEvent(CU_STREAM_LEGACY, done, 0)),
    "make a context wait": plain(() => context.cuCtxWaitEvent?.(raw.context(0), done) ?? -1),
    "query a stream": plain(() => stream.cuStreamQuery(other)),
    "query a blocking stream": plain(() => stream.cuStreamQuery(beside)),
    "query the legacy stream": plain(() => stream.cuStreamQuery(CU_STREAM_LEGACY)),
    "query the thread's stream": plain(() => stream.cuStreamQuery(CU_STREAM_PER_THREAD)),
    "synchronize a stream": plain(() => stream.cuStreamSynchronize(other)),
    "synchronize the legacy stream": plain(() => stream.cuStreamSynchronize(CU_STREAM_LEGACY)),
    "synchronize the thread's stream": plain(() => stream.cuStreamSynchronize(CU_STREAM_PER_THREAD)),
    "synchronize the context": plain(() => context.cuCtxSynchronize()),
    "is a stream captured": plain(() => driver.capture.cuStreamIsCapturing(other, int.$address)),
    "is the legacy stream captured": plain(() => driver.capture.cuStreamIsCapturing(CU_STREAM_LEGACY, int.$address)),
    "create a stream": making((at) => stream.cuStreamCreate(at, 1), (made) => stream.cuStreamDestroy_v2(made)),
    "create a blocking stream": making((at) => stream.cuStreamCreate(at, 0), (made) => stream.cuStreamDestroy_v2(made)),
    "destroy a stream": giving((at) => stream.cuStreamCreate(at, 1), (made) => stream.cuStreamDestroy_v2(made)),
    "allocate": making((at) => memory.cuMemAlloc_v2(at, 64n), (made) => memory.cuMemFree_v2(made)),
    "free": giving((at) => memory.cuMemAlloc_v2(at, 64n), (made) => memory.cuMemFree_v2(made)),
    "allocate on the host": making((at) => hostMemory.cuMemHostAlloc(at, 64n, 0), (at) => hostMemory.cuMemFreeHost(at)),
    "free of the host": giving((at) => hostMemory.cuMemHostAlloc(at, 64n, 0), (at) => hostMemory.cuMemFreeHost(at)),
    "register": () => ({
      ask: () => hostMemory.cuMemHostRegister_v2(host.address, 4096n, 0),
      after: (code) => void (code === 0 && raw.ok(hostMemory.cuMemHostUnregister(host.address))),
    }),
    "unregister": () => {
      raw.ok(hostMemory.cuMemHostRegister_v2(host.address, 4096n, 0));
      const ask = () => hostMemory.cuMemHostUnregister(host.address);
      return { ask, after: (code) => void (code !== 0 && raw.ok(ask())) };
    },
    "allocate managed memory": making(
      (at) => managedMemory.cuMemAllocManaged(at, 64n, 1),
      (at) => memory.cuMemFree_v2(at),
    ),
    "free managed memory": giving((at) => managedMemory.cuMemAllocManaged(at, 64n, 1), (at) => memory.cuMemFree_v2(at)),
    "allocate from a pool": making(allocate(other), free(other)),
    "allocate from a pool on the legacy stream": making(allocate(CU_STREAM_LEGACY), free(CU_STREAM_LEGACY)),
    "free to a pool": giving(allocate(other), free(other)),
    "free to a pool on the legacy stream": giving(allocate(CU_STREAM_LEGACY), free(CU_STREAM_LEGACY)),
    "free of a pool at once": giving(allocate(other), (made) => memory.cuMemFree_v2(made)),
    "create a pool": making((at) => pool.cuMemPoolCreate(at, props.$address), (made) => pool.cuMemPoolDestroy(made)),
    "destroy a pool": giving((at) => pool.cuMemPoolCreate(at, props.$address), (made) => pool.cuMemPoolDestroy(made)),
    "the current pool": plain(() => pool.cuDeviceGetMemPool(out.$address, 0)),
    "an attribute of a pool": plain(() =>
      pool.cuMemPoolGetAttribute(current, CU_MEMPOOL_ATTR.RELEASE_THRESHOLD, threshold.$address)
    ),
    "set an attribute of a pool": () => {
      raw.ok(pool.cuMemPoolGetAttribute(current, CU_MEMPOOL_ATTR.RELEASE_THRESHOLD, threshold.$address));
      return {
        ask: () => pool.cuMemPoolSetAttribute(current, CU_MEMPOOL_ATTR.RELEASE_THRESHOLD, threshold.$address),
      };
    },
    "trim a pool": plain(() => pool.cuMemPoolTrimTo(current, 1n << 40n)),
    "grant access to a pool": plain(() => raw.grant(current, 0)),
    "a pointer's memory": plain(() =>
      pointer.cuPointerGetAttribute(int.$address, CU_POINTER_ATTRIBUTE.MEMORY_TYPE, bytes)
    ),
    "free memory of the device": plain(() => memory.cuMemGetInfo_v2(threshold.$address, out.$address)),
    "upload at once": plain(() => copy.cuMemcpyHtoD_v2(bytes, host.address, 64n)),
    "download at once": plain(() => copy.cuMemcpyDtoH_v2(host.address, bytes, 64n)),
    "copy at once": plain(() => copy.cuMemcpyDtoD_v2(bytes, bytes + 32n, 32n)),
    "fill at once": plain(() => fill.cuMemsetD8_v2(bytes, 1, 64n)),
    "upload": plain(() => copy.cuMemcpyHtoDAsync_v2(bytes, pinned.address, 64n, other)),
    "upload of ordinary memory": plain(() => copy.cuMemcpyHtoDAsync_v2(bytes, host.address, 64n, other)),
    "download to ordinary memory": plain(() => copy.cuMemcpyDtoHAsync_v2(host.address, bytes, 64n, other)),
    "upload on the legacy stream": plain(() => copy.cuMemcpyHtoDAsync_v2(bytes, host.address, 64n, CU_STREAM_LEGACY)),
    "fill": plain(() => fill.cuMemsetD8Async(bytes, 1, 64n, other)),
    "fill on a blocking stream": plain(() => fill.cuMemsetD8Async(bytes, 1, 64n, beside)),
    "fill on the legacy stream": plain(() => fill.cuMemsetD8Async(bytes, 1, 64n, CU_STREAM_LEGACY)),
    "load code": making((at) => module.cuModuleLoadData(at, image), (made) => module.cuModuleUnload(made)),
    "unload code": giving((at) => module.cuModuleLoadData(at, image), (made) => module.cuModuleUnload(made)),
    "launch a graph": () => {
      const made = raw.word(executable);
      return { ask: () => graph.cuGraphLaunch(made, other), after: () => raw.ok(graph.cuGraphExecDestroy(made)) };
    },
    "destroy an executable graph": giving(executable, (made) => graph.cuGraphExecDestroy(made)),
    "a context more": () => ({
      ask: () => context.cuDevicePrimaryCtxRetain(out.$address, 0),
      after: (code) => void (code === 0 && context.cuDevicePrimaryCtxRelease_v2(0)),
    }),
  };
}

/** The result of each call, and how the capture ends. */
export const captureQuestions: Example = example("beside somebody else's capture", 1, (raw, notes) => {
  const { driver, arena } = raw;
  raw.use(0);
  const { cuStreamBeginCapture_v2: begin, cuStreamEndCapture: end } = driver.capture;
  const mode = arena.out("i32");
  const graph = arena.out("ptr");
  const calls = callsOf(raw);
  const captured = {
    "": raw.stream(CU_STREAM.NON_BLOCKING),
    "a blocking stream's capture: ": raw.stream(CU_STREAM.DEFAULT),
  };
  for (const [name, call] of Object.entries(calls)) {
    for (const [kind, stream] of Object.entries(captured)) {
      for (const how of ["", ", relaxed"]) {
        const { ask, after } = call(raw);
        raw.ok(driver.context.cuCtxSynchronize());
        raw.ok(begin(stream, CU_STREAM_CAPTURE_MODE.GLOBAL));
        mode.value = how === "" ? CU_STREAM_CAPTURE_MODE.GLOBAL : CU_STREAM_CAPTURE_MODE.RELAXED;
        raw.ok(driver.capture.cuThreadExchangeStreamCaptureMode(mode.$address));
        const code = ask();
        raw.ok(driver.capture.cuThreadExchangeStreamCaptureMode(mode.$address));
        graph.value = 0n;
        const ended = end(stream, graph.$address);
        if (graph.value !== 0n) raw.ok(driver.graph.cuGraphDestroy(graph.value));
        raw.ok(driver.context.cuCtxSynchronize());
        after?.(code);
        const answer = [code, ended].map((one) => resultName(one).replace(/^CUDA_(ERROR_)?(STREAM_CAPTURE_)?/, ""));
        notes.answers[`${kind}${name}${how}`] = answer.join(", the capture ");
      }
    }
  }
});
