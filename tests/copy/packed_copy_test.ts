/** Copies of packed elements between any two layouts, anywhere, against moving one bit of one element at a time. */
import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  DeviceMemoryResource,
  HostMemoryResource,
  PinnedMemoryResource,
  slice,
  StridedMemoryView,
} from "../../mod.ts";
import { packedProblem } from "../../src/copy/coalesced_copy.ts";
import { planPacked } from "../../src/copy/packed_plan.ts";
import { check, fc } from "../support/property.ts";
import { pattern, type Placed } from "../support/arrays.ts";
import { laidOut } from "../support/laid_out.ts";
import { assertMoved, movedByHand, packedCopies, pairs } from "../support/packed_copies.ts";

test("the host moves each packed element to its place, and leaves the other bits of its byte as they are", () => {
  check(
    fc.property(pairs, fc.nat(), ({ dtype, source, destination }, seed) => {
      const [from, to] = [pattern(source.size, seed), pattern(destination.size, seed + 1)];
      const expected = movedByHand(source, from, destination, to);
      const before = from.slice();
      const seen = (bytes: Uint8Array<ArrayBuffer>, placed: Placed) =>
        laidOut(StridedMemoryView.fromTypedArray(bytes).buffer, { ...placed, dtype });
      seen(to, destination).copyFrom(seen(from, source));
      assertEquals(to, expected);
      assertEquals(from, before);
    }),
    2000,
  );
});

test("packed elements copied within one memory are the original ones, on the host and on a device", () => {
  check(
    fc.property(pairs, fc.boolean(), fc.nat(), ({ dtype, source, destination }, isOnHost, seed) => {
      using cuda = Cuda.simulate({ schedule: "latest", seed });
      using stream = cuda.device(0).createStream();
      const size = Math.max(source.size, destination.size);
      const before = pattern(size, seed);
      using buffer = isOnHost
        ? new HostMemoryResource().allocate(size)
        : new DeviceMemoryResource(cuda.device(0)).allocate(size, { stream });
      using staging = new PinnedMemoryResource(cuda.device(0)).allocate(size, { stream });
      staging.bytes().set(before);
      buffer.copyFrom(staging, { stream });
      if (isOnHost) stream.synchronize();
      const [here, there] = [source, destination].map((placed) => laidOut(buffer, { ...placed, dtype }));
      if (here !== undefined) there?.copyFrom(here);
      staging.copyFrom(buffer, { stream });
      stream.synchronize();
      assertEquals(staging.bytes().slice(), movedByHand(source, before, destination, before));
    }),
    100,
  );
});

test("packed elements are copied from anywhere to anywhere, in both homes' order, and no other bit changes", () => {
  const copies = packedCopies("device", "device", "other device", "pinned", "host");
  const word = fc.constantFrom(true, false, undefined); // undefined: the user has set no access
  const access = fc.oneof(fc.constant([false, false] as const), fc.tuple(word, word));
  check(
    fc.property(copies, access, (copy, allowed) => {
      const reports: string[] = [];
      const onReport = ({ message }: { readonly message: string }) => reports.push(message);
      const cuda = Cuda.simulate({ devices: 2, schedule: "latest", seed: copy.seed, check: { onReport } });
      allowed.forEach((isAllowed, i) => {
        if (isAllowed === undefined) return;
        new DeviceMemoryResource(cuda.device(i)).peerAccessibleBy = isAllowed ? [1 - i] : [];
      });
      assertMoved(cuda, copy);
      cuda.close();
      assertEquals(reports, []);
    }),
    100,
  );
});

test("each byte of the destination is written by one thread, and only if it lies in the destination", () => {
  check(
    fc.property(pairs, ({ source: { layout: source }, destination: { layout: destination } }) => {
      const problem = packedProblem(source, destination);
      if (problem === null) return;
      const [min, max] = destination.offsetBounds;
      for (const { toOffset, problem: { rows, width } } of planPacked(problem)) {
        const starts = rows.reduce<number[]>(
          (all, { extent, to }) => all.flatMap((at) => Array.from({ length: extent }, (_, i) => at + i * to)),
          [destination.sliceOffsetInBytes + toOffset],
        );
        const bytes = starts.flatMap((at) => Array.from({ length: width }, (_, i) => at + i));
        assertEquals(new Set(bytes).size, bytes.length);
        assert(Math.min(...bytes) >= Math.floor(min * destination.itemsize));
        assert(Math.max(...bytes) < Math.ceil((max + 1) * destination.itemsize));
      }
    }),
    1000,
  );
});

test("copies of packed elements are explained: by the bytes that they fill, or byte by byte of the destination", () => {
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  const on = (resource: DeviceMemoryResource | HostMemoryResource, shape: readonly number[], strides?: number[]) =>
    StridedMemoryView.fromBuffer(resource.allocate(64, { stream }), {
      shape,
      strides: strides ?? null,
      dtype: "uint4_packed",
    });
  const device = new DeviceMemoryResource(cuda.device(0));
  const host = new HostMemoryResource();
  const [here, there] = [on(device, [4, 4]), on(device, [4, 4])];
  assertEquals(there.explainCopyFrom(here), "one copy of 8 bytes by the driver");
  const turned = [here, there].map((view) => view.permuted([1, 0]));
  assertEquals(turned[0]?.explainCopyFrom(turned[1] ?? here), "one copy of 8 bytes by the driver");
  assertEquals(
    there.explainCopyFrom(here.permuted([1, 0])),
    "a kernel over 16 elements of 4 bits as 4 x 4, byte by byte of the destination",
  );
  // Enough to fill two bytes, but spread over three.
  const [back, forth] = [here, there].map((view) => view.reshaped([16]).sliced(slice(4, 0, -1)));
  assertEquals(
    back?.explainCopyFrom(forth ?? back),
    "a kernel over 4 elements of 4 bits as 4, byte by byte of the destination",
  );
  assertEquals(
    on(device, []).explainCopyFrom(on(device, [])),
    "a kernel over 1 elements of 4 bits, byte by byte of the destination",
  );
  assertEquals(
    on(device, [3, 2], [2, 3]).explainCopyFrom(on(device, [3, 2])),
    "2 kernels over 6 elements of 4 bits as 2 x 3, byte by byte of the destination",
  );
  assertEquals(on(device, [0, 3]).explainCopyFrom(on(device, [0, 3])), "nothing to copy");
  assertEquals(
    there.explainCopyFrom(on(host, [4, 4]).permuted([1, 0])),
    "arranged by the host in pinned memory, copied to the device in one piece, and spread there",
  );
  const [odd, dense] = [on(host, [5, 5]), on(host, [5, 5])];
  assertEquals(dense.explainCopyFrom(odd), "one copy of 12.5 bytes by the host");
  assertEquals(dense.explainCopyFrom(odd.permuted([1, 0])), "element by element by the host");
});
