/**
 * Consumers that release from their own threads, where no JavaScript may run.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { callRelease } from "../../src/native/call_pointer.ts";
import type { DlpackTensor } from "../../src/dlpack/tensor.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { libc } from "../../src/ffi/libc.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";
import { check, fc, scaled } from "../support/property.ts";
import { join, start } from "../support/foreign_thread.ts";
import { type Kind, readRaw } from "../support/raw_dlpack.ts";

/** Starts a thread that calls the deleter of a tensor with the tensor. */
function releaseOnThread(ptr: bigint, kind: Kind): bigint {
  return start(readRaw(ptr, kind).deleter, ptr);
}

test("a deleter may be called from any thread, before or after the buffer is closed, and the memory is freed at the next poll", () => {
  const rounds = scaled(10);
  const each = 20;
  let freed = 0;
  const free = (ptr: bigint) => {
    freed++;
    libc().loading.free(ptr);
  };
  for (let round = 0; round < rounds; round++) {
    const isClosedFirst = round % 2 === 0;
    const kind = round % 4 < 2 ? "versioned" : "legacy";
    const buffers: MemoryBuffer[] = [];
    const tensors: DlpackTensor[] = [];
    for (let i = 0; i < each; i++) {
      const ptr = libc().loading.calloc(1n, 64n);
      const buffer = MemoryBuffer.fromAllocation({ ptr, size: 64, device: null, stream: null, free });
      buffers.push(buffer);
      const view = StridedMemoryView.fromBuffer(buffer, { shape: [4, 4], dtype: "float32" });
      tensors.push(view.toDlpack({ maxVersion: kind === "versioned" ? [1, 3] : [0, 8] }));
    }
    const pointers = tensors.map((tensor) => tensor.take());
    if (isClosedFirst) { for (const buffer of buffers) buffer.close(); }
    assertEquals([liveExports(), freed], [each, round * each]);
    const running = pointers.map((ptr) => releaseOnThread(ptr, kind));
    for (const thread of running) join(thread);
    assertEquals(freed, round * each, "nothing is freed on a foreign thread");
    assertEquals(tensors.map(({ released }) => released), tensors.map(() => true));
    if (!isClosedFirst) { for (const buffer of buffers) buffer.close(); }
    assertEquals([liveExports(), freed], [0, (round + 1) * each]);
  }
});

test("many threads release tensors of one buffer at once, and it is freed when all have released", () => {
  let freed = 0;
  const ptr = libc().loading.calloc(1n, 64n);
  const free = (at: bigint) => {
    freed++;
    libc().loading.free(at);
  };
  const buffer = MemoryBuffer.fromAllocation({ ptr, size: 64, device: null, stream: null, free });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "float32" });
  const count = scaled(200);
  const pointers = Array.from({ length: count }, () => view.toDlpack().take());
  buffer.close();
  const [last = 0n, ...rest] = pointers;
  const running = rest.map((one) => releaseOnThread(one, "versioned"));
  for (const thread of running) join(thread);
  assertEquals([liveExports(), freed], [1, 0]);
  join(releaseOnThread(last, "versioned"));
  assertEquals([liveExports(), freed], [0, 1]);
});

test("a deleter that is called twice frees once, and does not free what another consumer received since", () => {
  // A released tensor's struct was reused by the very next export, which the second call then released too.
  let freed: number[] = [];
  let made = 0;
  const exported = (kind: Kind) => {
    const name = made++;
    const ptr = libc().loading.calloc(1n, 64n);
    const free = (at: bigint) => {
      freed.push(name);
      libc().loading.free(at);
    };
    using buffer = MemoryBuffer.fromAllocation({ ptr, size: 64, device: null, stream: null, free });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "float32" });
    const tensor = view.toDlpack({ maxVersion: kind === "versioned" ? [1, 3] : [0, 8] });
    return { name, tensor, ptr: tensor.take() };
  };
  check(
    fc.property(
      fc.constantFrom<Kind>("versioned", "legacy"),
      fc.nat(200),
      fc.nat(64),
      fc.boolean(),
      (kind, before, after, isSeen) => {
        freed = [];
        const others = Array.from({ length: before }, () => exported(kind));
        const { name, tensor, ptr } = exported(kind);
        const { deleter } = readRaw(ptr, kind);
        callRelease(deleter, ptr);
        if (isSeen) assertEquals(tensor.released, true);
        others.push(...Array.from({ length: after }, () => exported(kind)));
        callRelease(deleter, ptr);
        assertEquals([tensor.released, liveExports(), freed], [true, others.length, [name]]);
        for (const other of others) {
          assertEquals(other.tensor.released, false);
          callRelease(deleter, other.ptr);
          assertEquals(other.tensor.released, true);
        }
        assertEquals(freed, [name, ...others.map((other) => other.name)]);
      },
    ),
    100,
  );
});
