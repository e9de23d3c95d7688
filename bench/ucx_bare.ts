/**
 * The floor of bench/ucx.ts: the same two processes call libucp in a loop, with nothing of ours around the calls but
 * the records that completions are written to. With a gap between the messages they block in `poll`, through
 * ucp_worker_wait, wherever there is nothing to do. Prints and reads as `ucx_peer.ts` does.
 *
 * @module
 */
import process from "node:process";
import { createInterface } from "node:readline";
import {
  UCP_EP_PARAMS_FIELD,
  ucp_ep_params_t,
  UCP_ERR_HANDLING_MODE,
  UCP_FEATURE,
  UCP_PARAMS_FIELD,
  ucp_params_t,
  ucp_worker_params_t,
  UCS_MEMORY_TYPE,
} from "../bindings/ucp_types.ts";
import { UCP_API } from "../bindings/ucp.ts";
import { MemoryBuffer } from "../mod.ts";
import { ffiPort, NativeArena } from "../src/ffi/mod.ts";
import { openUcp } from "../src/ucx/library.ts";
import { type Operation, OperationPool } from "../src/ucx/operation.ts";
import { writeFields } from "../src/ucx/struct_fields.ts";
import { allocator } from "./ucx_memory.ts";
import type { Job } from "./ucx_peer.ts";

const job: Job = JSON.parse(process.argv[2] ?? "{}");
const { role, bytes, count, errors, memory, test, gap } = job;
const memoryType = {
  host: "HOST",
  pinned: "HOST",
  managed: "CUDA_MANAGED",
  pool: "CUDA_MANAGED",
  device: "CUDA",
} as const;
const { functions: ucp } = openUcp();
const arena = new NativeArena();

function check(status: number): void {
  if (status !== 0) throw new Error(`libucp answers ${status}`);
}

const [config, context, worker, endpoint] = [arena.out("ptr"), arena.out("ptr"), arena.out("ptr"), arena.out("ptr")];
check(ucp.opening.ucp_config_read(0n, 0n, config.$address));
const parameters = arena.struct(ucp_params_t);
writeFields(parameters, UCP_PARAMS_FIELD, {
  features: gap === undefined ? UCP_FEATURE.TAG : UCP_FEATURE.TAG | UCP_FEATURE.WAKEUP,
});
const { major, minor } = UCP_API;
check(ucp.opening.ucp_init_version(major, minor, parameters.$address, config.value, context.$address));
check(ucp.opening.ucp_worker_create(context.value, arena.struct(ucp_worker_params_t).$address, worker.$address));
const [at, length] = [arena.out("ptr"), arena.out("size")];
check(ucp.worker.ucp_worker_get_address(worker.value, at.$address, length.$address));
console.log(new Uint8Array(ffiPort().memory(at.value, length.value).slice(0)).toHex());
const line = await createInterface({ input: process.stdin })[Symbol.asyncIterator]().next();
const other = Uint8Array.fromHex(line.value ?? "");
const address = arena.bytes(other.length);
address.bytes.set(other);
const endpointParameters = arena.struct(ucp_ep_params_t);
const err_mode = errors === "peer" ? UCP_ERR_HANDLING_MODE.PEER : UCP_ERR_HANDLING_MODE.NONE;
writeFields(endpointParameters, UCP_EP_PARAMS_FIELD, { address: address.address, err_mode });
check(ucp.endpoint.ucp_ep_create(worker.value, endpointParameters.$address, endpoint.$address));

const operations = new OperationPool(1024); // more than any UCX needs for a request
/** Round trips with a gap that are not counted. */
const warmUp = 50;
const { ucp_tag_send_nbx, ucp_tag_recv_nbx } = ucp.tag;
const { ucp_worker_progress } = ucp.worker;
const [handle, ep, size] = [worker.value, endpoint.value, BigInt(bytes)];

const one = allocator(job)(); // the same for all messages, as in C
if (one instanceof MemoryBuffer) one.device?.ensureCurrent();

/** Host memory that has been written to. Unwritten pages all map to one: faster to read than any other. */
function written(): bigint {
  const { bytes: memory, address } = arena.bytes(bytes);
  memory.fill(1);
  return address;
}

function take(kind: "plain" | "tagged"): Operation {
  const operation = operations.take();
  operation.address = one instanceof MemoryBuffer ? one.ptr : written();
  operation.prepare(kind, UCS_MEMORY_TYPE[memoryType[memory]]);
  return operation;
}

/** Sends `messages` messages, with a window's worth in flight. */
function send(window: readonly Operation[], messages: number, tag: bigint): void {
  const free = [...window];
  for (let sent = 0; sent < messages || free.length < window.length;) {
    const operation = sent < messages ? free.pop() : undefined;
    if (operation === undefined) {
      ucp_worker_progress(handle);
      for (let done = operations.next(); done !== undefined; done = operations.next()) free.push(done);
      continue;
    }
    sent++;
    if (ucp_tag_send_nbx(ep, operation.address, size, tag, operation.parameters) === 0) free.push(operation);
  }
}

/** Receives `messages` messages. */
function receive(window: readonly Operation[], messages: number, tag: bigint): void {
  const every = 2n ** 64n - 1n;
  let posted = 0;
  const post = (operation: Operation) => {
    if (posted++ < messages) ucp_tag_recv_nbx(handle, operation.address, size, tag, every, operation.parameters);
  };
  window.forEach(post);
  for (let received = 0; received < messages;) {
    ucp_worker_progress(handle);
    for (let done = operations.next(); done !== undefined; done = operations.next()) {
      received++;
      post(done);
    }
  }
}

const [sends, oneSend] = [64, 1].map((window) => Array.from({ length: window }, () => take("plain")));
const [receives, oneReceive] = [64, 1].map((window) => Array.from({ length: window }, () => take("tagged")));

/** Messages a second. */
function rate(): number {
  let start = 0;
  for (const messages of [count / 5, count]) {
    start = performance.now();
    if (role === "client") {
      send(sends ?? [], messages, 0n);
      receive(oneReceive ?? [], 1, 1n); // until everything has arrived
    } else {
      receive(receives ?? [], messages, 0n);
      send(oneSend ?? [], 1, 1n);
    }
  }
  return count / (performance.now() - start) * 1000;
}

/** Half a round trip in microseconds: the median of 100. Like C it posts the receive while its send is in flight. */
function latency(): number {
  const each = count / 100;
  const [out, into] = [take("plain"), take("tagged")];
  const every = 2n ** 64n - 1n;
  let isSending = false;
  let isReceiving = false;
  const drive = () => {
    ucp_worker_progress(handle);
    for (let done = operations.next(); done !== undefined; done = operations.next()) {
      if (done === out) isSending = false;
      else isReceiving = false;
    }
  };
  const send = () => {
    while (isSending) drive();
    isSending = ucp_tag_send_nbx(ep, out.address, size, 0n, out.parameters) !== 0;
  };
  const times = Array.from({ length: 120 }, () => {
    const start = performance.now();
    for (let i = 0; i < each; i++) {
      if (role === "client") send();
      isReceiving = true;
      ucp_tag_recv_nbx(handle, into.address, size, 0n, every, into.parameters);
      while (isReceiving) drive();
      if (role === "server") send();
    }
    return (performance.now() - start) / each / 2 * 1000;
  }).slice(20); // the first ones warm up
  while (isSending) drive();
  return times.toSorted((a, b) => a - b)[50] ?? NaN;
}

/** Runs the worker until an operation has completed, and sleeps while it has nothing to do. */
function next(): Operation {
  for (;;) {
    while (ucp_worker_progress(handle) !== 0);
    const done = operations.next();
    if (done !== undefined) return done;
    check(ucp.wakeup.ucp_worker_wait(handle));
  }
}

/** Half round trips between processes that sleep, in microseconds: the median. */
function asleep(gap: number): number {
  const [out, into] = [take("plain"), take("tagged")];
  const nobody = new Int32Array(new SharedArrayBuffer(4));
  const send = () => {
    if (ucp_tag_send_nbx(ep, out.address, size, 0n, out.parameters) !== 0) next();
  };
  const times: number[] = [];
  for (let i = 0; i < warmUp + count; i++) {
    if (role === "client") Atomics.wait(nobody, 0, 0, gap);
    const start = performance.now();
    if (role === "client") send();
    ucp_tag_recv_nbx(handle, into.address, size, 0n, 2n ** 64n - 1n, into.parameters);
    next();
    if (role === "server") send();
    if (i >= warmUp) times.push((performance.now() - start) / 2 * 1000);
  }
  return times.toSorted((a, b) => a - b)[count >> 1] ?? NaN;
}

for (let i = 0; i < job.pending; i++) {
  const { address, parameters } = take("tagged");
  ucp_tag_recv_nbx(handle, address, size, BigInt(100 + i), 2n ** 64n - 1n, parameters);
}
const measured = gap !== undefined ? asleep(gap) : test === "rate" ? rate() : latency();
console.log(JSON.stringify({ measured }));
const end = performance.now() + 200; // for the other side to be notified of the end
while (performance.now() < end) ucp_worker_progress(handle);
process.exit(0);
