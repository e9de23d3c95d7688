/** Memory that peers read and write directly: every byte is as a model predicts, and no byte beside it changes. */
import { assert, assertEquals, assertRejects, assertThrows } from "@std/assert";
import { Buffer } from "node:buffer";
import { once } from "node:events";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { libc as tables } from "../../bindings/libc.ts";
import { ucp } from "../../bindings/ucp.ts";
import { ffiPort, libc, littleEndian } from "../../src/ffi/mod.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { trailerBytes, withTrailer } from "../../src/ucx/address.ts";
import { ownIdentity } from "../../src/ucx/process_identity.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { openUcp } from "../../src/ucx/library.ts";
import type { AtomicOperation } from "../../src/ucx/remote_access.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { UcxRemoteKey } from "../../src/ucx/remote_memory.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { isBefore } from "../../src/ucx/version.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { patiently, startScript } from "../support/child.ts";
import { FailingCalls } from "../support/failing_calls.ts";
import { check, fc } from "../support/property.ts";
import { contentOf } from "../support/ucx_messages.ts";
import { openScripted } from "./scripted_endpoint.ts";
import { unwritten } from "./unwritten.ts";

const size = 70_000;
const border = 64;

const limit = { 4: 2n ** 32n, 8: 2n ** 64n } as const;

/** The meaning of the operations on unsigned numbers. */
const meaning: Readonly<Record<AtomicOperation, (old: bigint, operand: bigint, compare: bigint) => bigint>> = {
  add: (old, operand) => old + operand,
  swap: (_, operand) => operand,
  "compare-and-swap": (old, operand, compare) => old === compare ? operand : old,
  and: (old, operand) => old & operand,
  or: (old, operand) => old | operand,
  xor: (old, operand) => old ^ operand,
};

/** Accesses that begin in the first bytes of the memory. */
function accessesWithin(start: number) {
  return fc.array(
    fc.oneof(
      fc.record({
        do: fc.constantFrom("put" as const, "get" as const),
        offset: fc.nat(start - 1),
        length: fc.oneof(fc.nat(200), fc.nat(size)),
        content: fc.nat(1000),
      }),
      fc.record({
        do: fc.constant("atomic" as const),
        operation: fc.constantFrom(...Object.keys(meaning) as AtomicOperation[]), // its own keys
        bytes: fc.constantFrom(4 as const, 8 as const),
        at: fc.nat(Math.min(100, start / 8 - 1)),
        operand: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
        expects: fc.boolean(),
      }),
    ),
    { maxLength: 12 },
  );
}

type Access = ReturnType<typeof accessesWithin> extends fc.Arbitrary<(infer T)[]> ? T : never;

/** What an access returns: the bytes that it has read, or the previous number. */
type Result = Uint8Array | bigint | null;

/** An access to remote memory. */
interface Planned {
  readonly expected: Result;
  begin(endpoint: UcxEndpoint, remote: UcxRemoteKey): Promise<Result>;
}

/** Changes the model of the memory as an access changes the memory. */
function plan(access: Access, model: Uint8Array<ArrayBuffer>): Planned {
  if (access.do === "atomic") {
    const { operation, bytes, at } = access;
    const offset = at * bytes;
    const view = new DataView(model.buffer, model.byteOffset + offset, bytes);
    const old = bytes === 8 ? view.getBigUint64(0, true) : BigInt(view.getUint32(0, true));
    const operand = access.operand % limit[bytes];
    const compare = access.expects ? old : (old + 1n) % limit[bytes];
    const options = { bytes, ...(operation === "compare-and-swap" ? { compare } : {}) };
    const now = BigInt.asUintN(8 * bytes, meaning[operation](old, operand, compare));
    if (bytes === 8) view.setBigUint64(0, now, true);
    else view.setUint32(0, Number(now), true);
    return {
      expected: old,
      begin: (endpoint, remote) => endpoint.atomic(operation, remote, offset, operand, options),
    };
  }
  const { offset } = access;
  const length = Math.min(access.length, size - offset);
  const part = model.subarray(offset, offset + length);
  if (access.do === "get") {
    return {
      expected: part.slice(),
      async begin(endpoint, remote) {
        const into = new Uint8Array(length);
        await endpoint.get(into, remote, offset);
        return into;
      },
    };
  }
  const bytes = contentOf(access.content, length);
  part.set(bytes);
  return { expected: null, begin: (endpoint, remote) => endpoint.put(bytes, remote, offset).then(() => null) };
}

function assertResult(result: Result, expected: Result, what: string): void {
  if (!(result instanceof Uint8Array && expected instanceof Uint8Array)) assertEquals(result, expected, what);
  else assertEquals(Buffer.compare(result, expected), 0, what);
}

/** Another process with memory, and the worker that uses it. */
async function startOwner(tls: string) {
  const options = { args: [`${size}`, `${border}`], env: { UCX_TLS: tls } };
  const child = startScript(new URL("./memory_child.ts", import.meta.url), options, ["pipe", "pipe", "inherit"]);
  const { stdin, stdout, pid } = child;
  assert(stdin !== null && stdout !== null && pid !== undefined);
  const ended = once(child, "close");
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
  const next = async () => String((await lines.next()).value);
  const { address, key } = JSON.parse(await next());
  const ucx = Ucx.open({ config: { TLS: tls } });
  const user = ucx.createWorker();
  const endpoint = await user.connect(Uint8Array.fromHex(address), { errors: "none" });
  const remote = endpoint.remote(Uint8Array.fromHex(key));
  return {
    pid,
    user,
    endpoint,
    remote,
    /** All bytes there, in hexadecimal. */
    bytes(): Promise<string> {
      stdin.write("show\n");
      return next();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      remote.close();
      await user.close();
      ucx.close();
      stdin.end();
      assertEquals(await ended, [0, null]);
    },
  };
}

for (const tls of ["tcp", "sm"]) {
  test(`puts, gets and atomic operations change what a model predicts, and no byte beside it: ${tls}`, async () => {
    using ucx = Ucx.open({ config: { TLS: tls } });
    await using owner = ucx.createWorker();
    await using user = ucx.createWorker();
    // Not every UCX has atomic operations with error handling.
    const endpoint = await user.connect(owner.address, { errors: "none" });
    const memory = new Uint8Array(new ArrayBuffer(size + 2 * border));
    using region = owner.register(memory.subarray(border, border + size));
    using remote = endpoint.remote(region.key);
    assertEquals(remote.size, size);
    const model = new Uint8Array(memory.length);
    await check(
      fc.asyncProperty(accessesWithin(size), async (program) => {
        for (const [i, access] of program.entries()) {
          const { expected, begin } = plan(access, model.subarray(border, border + size));
          assertResult(await begin(endpoint, remote), expected, access.do);
          if (access.do === "put") await (i % 2 === 0 ? endpoint : user).flush();
        }
        assert(memory.every((byte, i) => byte === model[i]));
      }),
      20,
    );
  });

  test(`in another process, too, also when only fences order them: ${tls}`, patiently, async () => {
    await using other = await startOwner(tls);
    const { user, endpoint, remote } = other;
    const model = new Uint8Array(size + 2 * border);
    const inner = model.subarray(border, border + size);
    const content = contentOf(0, size);
    await check(
      fc.asyncProperty(accessesWithin(128), async (program) => {
        inner.set(content);
        await endpoint.put(content, remote);
        const results = program.map((access) => {
          const { expected, begin } = plan(access, inner);
          user.fence();
          return { access, expected, result: begin(endpoint, remote) };
        });
        for (const { access, expected, result } of results) assertResult(await result, expected, access.do);
        await endpoint.flush();
        assert(await other.bytes() === model.toHex());
      }),
      40,
    );
  });

  test(`fences order what a stopped process does once it is resumed, and do not block: ${tls}`, patiently, async () => {
    await using other = await startOwner(tls);
    const { user, endpoint, remote } = other;
    for (const waits of [false, true]) {
      await endpoint.put(new Uint8Array(size), remote);
      await endpoint.flush();
      process.kill(other.pid, "SIGSTOP");
      const begun = performance.now();
      const added = endpoint.atomic("add", remote, 0, 5n);
      user.fence();
      const all = Array.from({ length: 40 }, () => new Uint8Array(size)); // more than fits into UCX's buffers
      const got = all.map((into) => endpoint.get(into, remote));
      user.fence();
      const { buffer, finishWriting } = unwritten(size);
      const nines = buffer.bytes().fill(9);
      const put = endpoint.put(waits ? buffer : nines.slice(), remote);
      finishWriting();
      const took = performance.now() - begun;
      await pause(50);
      process.kill(other.pid, "SIGCONT");
      assertEquals(await added, 0n);
      await Promise.all([...got, put, endpoint.flush()]);
      for (const [i, [first, ...others]] of all.entries()) {
        assert(first === 5 && others.every((byte) => byte === 0), `get ${i} reads what was there before the put`);
      }
      assertEquals((await other.bytes()).slice(2 * border, 2 * (border + size)), "09".repeat(size));
      assert(took < 1000, `${took} ms`);
    }
  });
}

test("a range that does not fit, an invalid key or number is refused before any memory is touched", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  await using owner = ucx.createWorker();
  await using user = ucx.createWorker();
  const endpoint = await user.connect(owner.address, { errors: "none" }); // for atomic operations in software
  using region = owner.register(new Uint8Array(100));
  const remote = endpoint.remote(region.key);
  const bytes = new Uint8Array(10);
  for (const offset of [-1, 91, 0.5, NaN]) {
    await assertRejects(() => endpoint.put(bytes, remote, offset), RangeError, "it has 100 bytes");
    await assertRejects(() => endpoint.get(bytes, remote, offset), RangeError, "it has 100 bytes");
  }
  await assertRejects(() => endpoint.atomic("add", remote, 4, 1n), RangeError, "is a multiple of 8");
  // The offset alone was looked at: UCX refused memory at an odd address as an invalid parameter.
  using host = new HostMemoryResource().allocate(64);
  host.bytes().fill(0);
  using odd = owner.register(StridedMemoryView.fromBuffer(host, { offset: 1, shape: [32], dtype: "uint8" }));
  const oddRemote = endpoint.remote(odd.key);
  await assertRejects(() => endpoint.atomic("add", oddRemote, 0, 1n), RangeError, "is a multiple of 8");
  const adding = endpoint.atomic("add", oddRemote, 7, 1n);
  owner.poll();
  assertEquals(await adding, 0n);
  assertEquals(host.ptr % 8n, 0n);
  for (const key of [region.key, region, null] as unknown as UcxRemoteKey[]) {
    await assertRejects(() => endpoint.put(bytes, key), TypeError, "expected the result of endpoint.remote(key)");
    await assertRejects(() => endpoint.atomic("add", key, 0, 1n), TypeError, "expected the result of endpoint.remote");
  }
  await assertRejects(() => endpoint.atomic("add", remote, 0, 1n, { compare: 1n }), TypeError, "compare");
  await assertRejects(() => endpoint.atomic("compare-and-swap", remote, 0, 1n), TypeError, "compare");
  await assertRejects(() => endpoint.atomic("sub" as AtomicOperation, remote, 0, 1n), RangeError, 'Cannot do "sub"');
  const damaged = region.key.slice();
  damaged[20] = (damaged[20] ?? 0) ^ 1;
  // A worker's address, which has the same trailer, was taken for a key: a put ended the owner's process.
  const keys: readonly unknown[] = [damaged, region.key.subarray(1), new Uint8Array(0), owner.address, region];
  for (const key of keys) {
    assertThrows(() => endpoint.remote(key as Uint8Array), TypeError, "expected the key of a region");
  }
  await assertRejects(() => user.connect(region.key), TypeError, "got the key of a memory region");
  for (const name of ["toString", "constructor"]) {
    await assertRejects(() => endpoint.atomic(name as AtomicOperation, remote, 0, 1n), RangeError, `"${name}"`);
    await assertRejects(() => user.connect(owner.address, { errors: name as "peer" }), RangeError, `"${name}"`);
    assertThrows(() => ucx.createWorker({ protocol: name as "ucxx" }), RangeError, `"${name}"`);
  }
  const frozen = StridedMemoryView.fromBuffer(new HostMemoryResource().allocate(8), {
    shape: [8],
    dtype: "uint8",
    readonly: true,
  });
  assertThrows(() => owner.register(frozen), TypeError, "Cannot register a read-only view");
  frozen.buffer.close();
  remote.close();
  remote.close();
  await assertRejects(() => endpoint.get(bytes, remote), TypeError, "its key is closed");
  await endpoint.close();
  assertThrows(() => endpoint.remote(region.key), TypeError, "the endpoint is closed");
});

// UCX 1.21 gives a later endpoint the handle of one that is gone: its keys were accepted, and another process was
// written to, which ended one of the two.
test("a key of an endpoint that is gone is refused by a later one with the same handle", async () => {
  using ucx = Ucx.open();
  await using owner = ucx.createWorker();
  using region = owner.register(new Uint8Array(new ArrayBuffer(8)));
  const { ucp, endpoint, openNext, progress } = openScripted();
  const key = endpoint.remote(region.key);
  const next = openNext();
  const bytes = new Uint8Array(8);
  for (const use of [() => next.put(bytes, key), () => next.get(bytes, key), () => next.atomic("add", key, 0, 1n)]) {
    await assertRejects(use, TypeError, "the key was made by another");
  }
  assert(!ucp.log.some((call) => /put|get_nbx|atomic/.test(call)), ucp.log.join());
  progress.stop(new Error("over"), 0);
});

test("registered memory lives although its buffer is closed, until the region is closed, or its worker", async () => {
  using ucx = Ucx.open({ config: { TLS: "sm" } });
  const owner = ucx.createWorker();
  const user = ucx.createWorker();
  const endpoint = await user.connect(owner.address);
  const buffers = [0, 1].map(() => new HostMemoryResource().allocate(64));
  const [first, second] = buffers.map((buffer) => owner.register(buffer));
  assert(first !== undefined && second !== undefined);
  for (const buffer of buffers) buffer.close();
  const remote = endpoint.remote(second.key);
  await endpoint.put(new Uint8Array([1, 2, 3]), remote, 5);
  const into = new Uint8Array(3);
  await endpoint.get(into, remote, 5);
  assertEquals([...into], [1, 2, 3]);
  first.close();
  first.close();
  remote.close();
  await Promise.all([user.close(), owner.close()]); // which also closes the second
  second.close();
  assertThrows(() => owner.register(new Uint8Array(1)), TypeError, "the worker is closed");
});

test("memory that UCX refuses to unregister is not freed, nor is its context, and that is an error", () => {
  using calls = new FailingCalls(openUcp().functions, { memory: ucp.memory, opening: ucp.opening });
  using frees = new FailingCalls(libc(), { loading: tables.loading });
  for (const isByWorker of [false, true]) {
    const ucx = Ucx.open({ config: { TLS: "sm" } });
    const owner = ucx.createWorker();
    const [first, second] = [0, 1].map(() => {
      using buffer = new HostMemoryResource().allocate(64);
      return owner.register(buffer);
    });
    assert(first !== undefined && second !== undefined);
    calls.failNth("ucp_mem_unmap", 1, -3); // UCS_ERR_IO_ERROR
    frees.failNth("", 0, 0);
    const close = () => isByWorker ? owner.abort() : first.close();
    assertThrows(close, UcxError, "ucp_mem_unmap failed with UCS_ERR_IO_ERROR");
    if (!isByWorker) assertEquals(frees.counts.get("free"), undefined);
    assert(first.isClosed);
    first.close(); // once
    second.close();
    if (!isByWorker) assertEquals(frees.counts.get("free"), 1);
    ucx.close();
    assertEquals([calls.counts.get("ucp_mem_unmap"), calls.counts.get("ucp_cleanup")], [2, undefined]);
  }
});

test("a key that is closed after its worker is harmless, and so is one that is never closed", async () => {
  using ucx = Ucx.open(); // destroying a key read memory freed with its worker
  await using owner = ucx.createWorker();
  const user = ucx.createWorker();
  const endpoint = await user.connect(owner.address);
  using region = owner.register(new Uint8Array(64));
  const [closed, forgotten] = [endpoint.remote(region.key), endpoint.remote(region.key)];
  assertEquals(forgotten.size, 64);
  await user.close();
  closed.close();
});

test("without remote memory no peer reads or writes it, whatever key it forges, and no key is accepted", async () => {
  // With it any peer that reaches a worker over TCP can: a key holds an address, and nothing else.
  const config = { TLS: "tcp" };
  using careful = Ucx.open({ config, remoteMemory: false });
  const { version } = careful;
  // Since 1.14 a put over TCP is a message of that transport, which only its sender can turn off, since 1.17 by config.
  using ucx = Ucx.open({ config: isBefore(version, 17) ? config : { ...config, TCP_PUT_ENABLE: "n" } });
  const puts = isBefore(version, 14) || !isBefore(version, 17);
  await using owner = careful.createWorker();
  const user = ucx.createWorker();
  const theirs = new Uint8Array(new ArrayBuffer(5000)).fill(7);
  using region = user.register(new Uint8Array(new ArrayBuffer(5000)));
  const key = region.key.slice(0, -trailerBytes);
  new DataView(key.buffer).setBigUint64(8, ffiPort().addressOf(theirs.buffer), littleEndian);
  const endpoint = await user.connect(owner.address, { errors: "none" });
  await Promise.all([endpoint.send(new Uint8Array(1), { tag: 1n }), owner.recv(new Uint8Array(1), { tag: 1n })]);
  using remote = endpoint.remote(withTrailer(key, ownIdentity()));
  const into = new Uint8Array(5000).fill(9);
  const limits = { timeout: 300 };
  const forged = [endpoint.get(into, remote, 0, limits), ...(puts ? [endpoint.put(into, remote, 0, limits)] : [])];
  await Promise.allSettled(forged);
  await Promise.allSettled([endpoint.flush(limits)]);
  assertEquals([theirs.every((byte) => byte === 7), into.every((byte) => byte === 9)], [true, true]);
  await endpoint.send(new Uint8Array(1), { tag: 1n }); // everything else still works
  await owner.recv(new Uint8Array(1), { tag: 1n });
  const back = await owner.connect(user.address, { errors: "none" });
  assertThrows(() => owner.register(theirs), TypeError, "remoteMemory: false");
  assertThrows(() => back.remote(region.key), TypeError, "remoteMemory: false");
  user.abort(); // UCX waits for an answer to the get
  owner.abort(); // and for the peer that is gone
});

test("a fence orders later operations after earlier ones, also after one that waits for a stream", async () => {
  for (const tls of ["tcp", "sm"]) {
    using ucx = Ucx.open({ config: { TLS: tls } });
    await using owner = ucx.createWorker();
    await using user = ucx.createWorker();
    const endpoint = await user.connect(owner.address, { errors: "none" });
    const memory = new Uint8Array(new ArrayBuffer(100_008));
    using region = owner.register(memory);
    using remote = endpoint.remote(region.key);
    // A large put may be split and take another path than the number that announces it.
    const large = new Uint8Array(100_000);
    const flag = new DataView(memory.buffer, 100_000);
    for (let round = 1n; round <= 50n; round++) {
      large.fill(Number(round));
      const put = endpoint.put(large, remote);
      user.fence();
      const added = endpoint.atomic("add", remote, 100_000, 1n);
      while (flag.getBigUint64(0, true) !== round) await new Promise((again) => setImmediate(again));
      assert(memory.subarray(0, 100_000).every((byte) => byte === Number(round)), `round ${round}`);
      await Promise.all([put, added]);
    }
    const { buffer, finishWriting } = unwritten(8);
    buffer.bytes().fill(1);
    const waiting = endpoint.put(buffer, remote);
    user.fence();
    const later = endpoint.put(new Uint8Array(4).fill(2), remote);
    finishWriting();
    await waiting;
    assertThrows(() => endpoint.sendSync(new Uint8Array(1)), TypeError, "Await them first");
    await later;
    await endpoint.flush();
    assertEquals([...memory.subarray(0, 8)], [2, 2, 2, 2, 1, 1, 1, 1]);
  }
});
