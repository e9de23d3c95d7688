/**
 * A copy whose source and destination overlap is undefined in CUDA. A GPU may happen to do what memmove does; the
 * simulator never does, and leaves copies without overlap as they are.
 */
import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { test } from "node:test";
import { CUDA_MEMCPY2D_v2 } from "../../bindings/cuda_types.ts";
import { simulateDriver } from "../../src/sim/mod.ts";
import { check, fc, scaled } from "../support/property.ts";
import { Raw } from "../support/raw_driver.ts";

const size = 240; // so that every byte can have a distinct value

/** A rectangle of bytes that is copied within one allocation: rows of one byte or more, with one pitch. */
interface Copy {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly height: number;
  readonly pitch: number;
}

const copies: fc.Arbitrary<Copy> = fc.record({
  from: fc.nat(size - 1),
  to: fc.nat(size - 1),
  width: fc.integer({ min: 1, max: 80 }),
  height: fc.integer({ min: 1, max: 6 }),
  gap: fc.nat(40),
}).map(({ gap, ...copy }) => ({ ...copy, pitch: copy.width + gap }))
  .filter(({ from, to, width, height, pitch }) => Math.max(from, to) + (height - 1) * pitch + width <= size);

/** The offsets of a side, row after row. */
function offsets(start: number, { width, height, pitch }: Copy): number[] {
  return Array.from({ length: width * height }, (_, i) => start + Math.floor(i / width) * pitch + i % width);
}

/** What memmove would do. */
function moved(copy: Copy, before: Uint8Array): Uint8Array {
  const after = before.slice();
  const source = offsets(copy.from, copy);
  offsets(copy.to, copy).forEach((to, i) => after[to] = before[source[i] ?? 0] ?? 0);
  return after;
}

type Kind = "device" | "pinned" | "managed";

/** What the simulator does. */
function copied(copy: Copy, kind: Kind, seed: number, how: "stream" | "call" | "graph"): Uint8Array {
  const simulated = simulateDriver({ seed });
  const { driver } = simulated;
  using raw = new Raw(driver);
  raw.use(0);
  const memory = kind === "device"
    ? raw.word((out) => driver.memory.cuMemAlloc_v2(out, BigInt(size)))
    : kind === "managed"
    ? raw.word((out) => driver.managedMemory.cuMemAllocManaged(out, BigInt(size), 1))
    : raw.pinned(size).address;
  const start = raw.pageable(size);
  start.bytes.set(numbers);
  raw.ok(driver.copy.cuMemcpy(memory, start.address, BigInt(size)));
  raw.ok(driver.context.cuCtxSynchronize()); // cuMemcpy only guarantees that its source has been read
  const stream = raw.stream(1);
  const { capture, graph } = driver;
  if (how === "graph") raw.ok(capture.cuStreamBeginCapture_v2(stream, 0));
  if (copy.height === 1) {
    const args = [memory + BigInt(copy.to), memory + BigInt(copy.from), BigInt(copy.width)] as const;
    raw.ok(how === "call" ? driver.copy.cuMemcpy(...args) : driver.copy.cuMemcpyAsync(...args, stream));
  } else {
    const box = raw.arena.struct(CUDA_MEMCPY2D_v2);
    box.srcMemoryType = box.dstMemoryType = 4; // unified
    box.srcDevice = memory + BigInt(copy.from);
    box.dstDevice = memory + BigInt(copy.to);
    box.srcPitch = box.dstPitch = copy.pitch;
    box.WidthInBytes = copy.width;
    box.Height = copy.height;
    raw.ok(
      how === "call"
        ? driver.copyPitched.cuMemcpy2D_v2(box.$address)
        : driver.copyPitched.cuMemcpy2DAsync_v2(box.$address, stream),
    );
  }
  if (how === "graph") {
    const captured = raw.word((out) => capture.cuStreamEndCapture(stream, out));
    const exec = raw.word((out) => graph.cuGraphInstantiateWithFlags(out, captured, 0n));
    raw.ok(graph.cuGraphLaunch(exec, stream));
  }
  raw.ok(driver.context.cuCtxSynchronize());
  const after = simulated.peek(memory, size);
  if (kind !== "pinned") raw.ok(driver.memory.cuMemFree_v2(memory));
  return after;
}

const numbers = Uint8Array.from({ length: size }, (_, i) => i + 1);

test("a copy onto its own source differs from memmove's result, and touches nothing else; any other is exact", () => {
  let [overlapping, apart] = [0, 0];
  const kinds = fc.constantFrom<Kind>("device", "pinned", "managed");
  const hows = fc.constantFrom("stream" as const, "call" as const, "graph" as const);
  check(
    fc.property(copies, kinds, fc.nat(), hows, (copy, kind, seed, how) => {
      const after = copied(copy, kind, seed, how);
      const targets = new Set(offsets(copy.to, copy));
      const overlaps = copy.from !== copy.to && offsets(copy.from, copy).some((offset) => targets.has(offset));
      if (overlaps) {
        overlapping++;
        assertNotEquals(after, moved(copy, numbers));
        const sources = new Set(offsets(copy.from, copy).map((offset) => numbers[offset]));
        for (const [i, byte] of after.entries()) {
          if (targets.has(i)) assert(sources.has(byte), "a byte of the source, if not the right one");
          else assertEquals(byte, numbers[i]);
        }
      } else {
        apart++;
        assertEquals(after, moved(copy, numbers));
      }
    }),
    1500,
  );
  assert(overlapping > scaled(100) && apart > scaled(100), `${overlapping} overlap, ${apart} do not`);
});

test("the result of an overlapping copy depends on the seed", () => {
  const copy: Copy = { from: 0, to: 8, width: 200, height: 1, pitch: 200 };
  const seen = new Set(Array.from({ length: 16 }, (_, seed) => copied(copy, "device", seed, "stream").join()));
  assert(seen.size > 2, `${seen.size} outcomes`);
});
