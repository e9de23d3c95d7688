/**
 * Settings, addresses, memory and tags that workers and endpoints accept, and how they refuse others.
 */
import { assert, assertEquals, assertInstanceOf, assertRejects, assertThrows } from "@std/assert";
import { test } from "node:test";
import { trailerBytes, withTrailer } from "../../src/ucx/address.ts";
import { FfiError, LibraryNotFoundError } from "../../src/ffi/errors.ts";
import { UcxError } from "../../src/ucx/error.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { slice } from "../../src/layout/mod.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { recordingDevice } from "../support/recording_driver.ts";
import { check, fc } from "../support/property.ts";
import { assertContent, contentOf } from "../support/ucx_messages.ts";
import { transports } from "./transports.ts";

test("UCX reports its version, its path, and what it can use", () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  assert(/^\d+\.\d+\.\d+/.test(ucx.version), ucx.version);
  assert(ucx.path.startsWith("/") && ucx.path.includes("libucp.so"), ucx.path);
  const usable = ucx.transports();
  assert(usable.length > 0 && usable.every((name) => name.startsWith("tcp/")), usable.join(" "));
  assert(usable.includes("tcp/lo"), usable.join(" "));
});

test("libucp is opened from the given file, one per process, and from nowhere else", () => {
  using ucx = Ucx.open();
  using again = Ucx.open({ library: ucx.path });
  assertEquals([again.path, again.version], [ucx.path, ucx.version]);
  assertThrows(() => Ucx.open({ library: "/no/libucp.so.0" }), LibraryNotFoundError, "nothing else was tried");
  assertThrows(() => Ucx.open({ library: "libm.so.6" }), FfiError, `this process has already opened ${ucx.path}`);
});

test("a setting wins with and without its prefix", () => {
  for (const name of ["TLS", "UCX_TLS"]) {
    using ucx = Ucx.open({ config: { [name]: "self" } });
    assertEquals(ucx.transports().map((path) => path.split("/")[0]), ["self"]);
  }
});

test("a setting that UCX does not know, or not with this value, is an error that names it", () => {
  for (const name of ["TSL", "UCX_TSL", "NO_SUCH_SETTING", ""]) {
    const error = assertThrows(() => Ucx.open({ config: { [name]: "1" } }), UcxError);
    assertEquals([error.statusName, error.call, error.status], ["UCS_ERR_NO_ELEM", "ucp_config_modify", -12]);
    assert(error.message.endsWith(`This UCX has no setting UCX_${name.replace("UCX_", "")}`), error.message);
  }
  const fine = { TLS: "tcp", RNDV_THRESH: "8k", KEEPALIVE_INTERVAL: "5s" };
  Ucx.open({ config: fine }).close();
  const error = assertThrows(() => Ucx.open({ config: { RNDV_THRESH: "plenty" } }), UcxError);
  assert(error.message.includes('Setting RNDV_THRESH does not accept "plenty"'), error.message);
  const nothing = assertThrows(() => Ucx.open({ config: { TLS: "no_such_transport" } }), UcxError);
  assertEquals(nothing.call, "ucp_init_version");
  assert(nothing.message.includes("UCX_TLS"), nothing.message);
  assertThrows(() => Ucx.open({ config: { TLS: "tcp\0" } }), TypeError, "it contains NUL");
  Ucx.open().close(); // none of the failures has left anything behind
});

test("an address ends in the checksum that zip and Ethernet use, which both runtimes compute alike", () => {
  const whole = withTrailer(new TextEncoder().encode("12345"), new TextEncoder().encode("6789"));
  // As computed by Python: zlib.crc32(b"123456789" + bytes(24)).
  assertEquals(new DataView(whole.buffer).getUint32(whole.length - 4), 0x15a33761);
});

test("a damaged, truncated or forged address is refused before UCX sees it, and an intact one connects", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const { address } = other;
  const refuse = (bytes: Uint8Array) =>
    assertRejects(() => worker.connect(bytes), TypeError, `got ${bytes.length} other or damaged bytes`);
  const damaged = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 600 }),
    fc.nat(address.length - 2).map((length) => address.slice(0, length + 1)),
    fc.nat(address.length - 2).map((start) => address.slice(start + 1)),
    fc.tuple(fc.nat(address.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, change]) => {
      const bytes = address.slice();
      bytes[at] = (bytes[at] ?? 0) ^ change;
      return bytes;
    }),
    fc.uint8Array({ minLength: 1, maxLength: 20 }).map((more) => new Uint8Array([...address, ...more])),
  );
  await check(fc.asyncProperty(damaged, async (bytes) => void await refuse(bytes)), 2000);
  await assertRejects(() => worker.connect(new Uint8Array(0)), TypeError, "got no bytes");
  // At any offset in memory.
  const inside = new Uint8Array([1, 2, 3, ...address, 4]).subarray(3, 3 + address.length);
  for (const good of [address, address.slice(), inside]) await (await worker.connect(good)).close();
});

test("the address of another library's worker is UCX's part of ours, and is accepted unchecked", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const raw = other.address.subarray(0, -trailerBytes);
  await assertRejects(() => worker.connect(raw), TypeError, "Pass { unchecked: true }");
  await assertRejects(() => worker.connect(new Uint8Array(0), { unchecked: true }), TypeError, "got no bytes");
  const endpoint = await worker.connect(raw, { unchecked: true });
  const into = new Uint8Array(100);
  await Promise.all([endpoint.send(contentOf(1, 100)), other.recv(into)]);
  assertContent(into, 1);
});

test("a worker that no transport reaches is refused with the settings to compare", async () => {
  using here = Ucx.open({ config: { TLS: "self" } });
  using there = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = here.createWorker();
  await using other = there.createWorker();
  const error = await assertRejects(() => worker.connect(other.address), UcxError, "compare UCX_TLS");
  assertEquals([error.statusName, error.call], ["UCS_ERR_UNREACHABLE", "ucp_ep_create"]);
});

test("two endpoints of the same workers that differ in errors are refused, with the cause", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const back = await other.connect(worker.address, { errors: "none" });
  const region = worker.register(new Uint8Array(8));
  using key = back.remote(region.key);
  await back.put(new Uint8Array(8), key, 0);
  await back.flush(); // until then UCX does not know
  const error = await assertRejects(() => worker.connect(other.address), UcxError, "take the same `errors`");
  assertEquals([error.statusName, error.call], ["UCS_ERR_UNSUPPORTED", "ucp_ep_create"]);
  region.close();
});

test("a worker's address is a copy, which outlives the worker", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  const worker = ucx.createWorker();
  const { address } = worker;
  const copy = address.slice();
  await worker.close();
  assertEquals(address, copy);
});

for (const { tls, name, within } of transports) {
  test(`an endpoint names its transports: ${name}`, async () => {
    using ucx = Ucx.open(tls === undefined ? {} : { config: { TLS: tls } });
    await using worker = ucx.createWorker();
    await using other = ucx.createWorker();
    const endpoint = await worker.connect(other.address);
    await Promise.all([endpoint.send(new Uint8Array(1)), other.recv(new Uint8Array(1))]);
    const paths = endpoint.transports();
    assertEquals(new Set(paths).size, paths.length);
    // Where none is given here, an environment variable UCX_TLS would decide.
    if (tls !== undefined) assert(paths.length > 0 && paths.every((path) => within.test(path)), paths.join(" "));
    else assert(paths.length > 0 && paths.every((path) => /^\w+\/[\w.-]+$/.test(path)), paths.join(" "));
    await endpoint.close();
  });
}

test("memory that UCX cannot use is refused, and nothing is sent or received", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  await using other = ucx.createWorker();
  const endpoint = await worker.connect(other.address);
  using buffer = new HostMemoryResource().allocate(64);
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 4], dtype: "float32" });
  const readonly = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "float32", readonly: true });
  const columns = view.sliced(slice(), slice(0, 2));
  const shared = new Uint8Array(new SharedArrayBuffer(8));
  const resizable = new Uint8Array(new ArrayBuffer(8, { maxByteLength: 16 }));
  const closed = new HostMemoryResource().allocate(8);
  closed.close();

  const gaps = "shape (4, 2) with strides (4, 1): expected contiguous memory in C order";
  await assertRejects(() => endpoint.send(columns, { copy: false }), TypeError, `Cannot send a view of ${gaps}`);
  await assertRejects(() => other.recv(columns), TypeError, `Cannot receive into a view of ${gaps}`);
  const turned = view.permuted([1, 0]);
  await assertRejects(() => endpoint.send(turned, { copy: false }), TypeError, "expected contiguous memory in C order");
  await assertRejects(() => other.recv(readonly), TypeError, "Cannot receive into a read-only view");
  const lent = StridedMemoryView.fromDlpack(readonly.toDlpack());
  await assertRejects(() => other.recv(lent.buffer), TypeError, "Cannot receive into read-only memory");
  assertThrows(() => other.register(lent.buffer), TypeError, "Cannot register read-only memory");
  await assertRejects(() => endpoint.send(shared), TypeError, "Cannot send shared memory");
  await assertRejects(() => other.recv(shared), TypeError, "Cannot receive into shared memory");
  await assertRejects(() => endpoint.send(resizable), TypeError, "resizable");
  await assertRejects(() => endpoint.send(closed), TypeError, "Cannot use a closed MemoryBuffer");
  await assertRejects(() => other.recv(closed), TypeError, "Cannot use a closed MemoryBuffer");
  if (!ucx.hasCuda) {
    const { device, log } = recordingDevice();
    const onDevice = MemoryBuffer.fromPointer(4096n, 8, { device });
    log.length = 0;
    await assertRejects(() => endpoint.send(onDevice), TypeError, "Cannot send GPU memory: this UCX was built without");
    await assertRejects(() => other.recv(onDevice), TypeError, "Cannot receive into GPU memory");
    assertEquals(log, []);
  }
  // Read-only memory may be sent, and a contiguous part, too. Nothing refused has arrived in between.
  const into = new Float32Array(16);
  new Float32Array(buffer.bytes().buffer).set(Array.from({ length: 16 }, (_, i) => i));
  await Promise.all([endpoint.send(readonly), other.recv(new Uint8Array(into.buffer), { mask: 0n })]);
  assertEquals([...into], Array.from({ length: 16 }, (_, i) => i));
  const [, received] = await Promise.all([endpoint.send(view.sliced(2)), other.recv(view.sliced(0), { mask: 0n })]);
  assertEquals(received.length, 16);
  assertEquals([...await view.sliced(0).toTypedArray()], [8, 9, 10, 11]);
});

test("a tag or a mask of more than 64 bits is refused: UCX would see others", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  for (const wrong of [-1n, 1n << 64n]) {
    const message = `Cannot use ${wrong} as a`;
    await assertRejects(() => endpoint.send(new Uint8Array(1), { tag: wrong }), RangeError, `${message} tag`);
    await assertRejects(() => worker.recv(new Uint8Array(1), { tag: wrong }), RangeError, `${message} tag`);
    await assertRejects(() => worker.recv(new Uint8Array(1), { mask: wrong }), RangeError, `${message} mask`);
  }
});

test("a message that is too long is an error with a reason, and is consumed", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  for (const size of [9, 100_000, 1 << 20]) {
    const send = endpoint.send(contentOf(1, size), { tag: 1n });
    const error = await worker.recv(new Uint8Array(8), { tag: 1n }).catch((error: unknown) => error);
    assertInstanceOf(error, UcxError);
    assertEquals(
      error.message,
      "ucp_tag_recv_nbx failed with UCS_ERR_MESSAGE_TRUNCATED (-9). The message is longer than the memory given to receive it",
    );
    await send;
  }
  await Promise.all([endpoint.send(new Uint8Array([5])), worker.recv(new Uint8Array(8), { mask: 0n })]);
});

test("a timeout that is too long for a timer never fires", async () => {
  using ucx = Ucx.open({ config: { TLS: "tcp" } });
  await using worker = ucx.createWorker();
  const endpoint = await worker.connect(worker.address);
  for (const timeout of [Infinity, 2 ** 31]) { // these ended after a millisecond
    const received = worker.recv(new Uint8Array(1), { timeout });
    await new Promise((resolve) => setTimeout(resolve, 30));
    await endpoint.send(new Uint8Array(1), { timeout });
    assertEquals((await received).length, 1);
  }
});
