/**
 * Arrays whose parts have several home streams: a consumer is ordered after the work of every one of them, not only of
 * the first or the last. Each home stream has a slow backlog: the simulated driver works as late as allowed.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  ArrowArray,
  arrowField,
  Cuda,
  type CudaStream,
  ManagedMemoryResource,
  type MemoryBuffer,
  PinnedMemoryResource,
  StridedMemoryView,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";

const length = 8;

/** A struct of bytes, with one of the buffers for each child. */
function structOf(buffers: readonly MemoryBuffer[]): ArrowArray {
  const children = buffers.map((buffer, i) => {
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [length], dtype: "uint8" });
    return new ArrowArray({ field: arrowField("C", { name: `${i}` }), length, buffers: [null, view] });
  });
  const field = arrowField({ kind: "struct", children: children.map((child) => child.field) });
  return new ArrowArray({ field, length, buffers: [null], children });
}

/** The home stream of each buffer, one of a few. */
const homes = fc.array(fc.nat(3), { minLength: 1, maxLength: 6 });

test("an Arrow consumer sees what every home has written, on the host and its stream, whichever was last", () => {
  check(
    fc.property(
      homes,
      fc.constantFrom("pinned" as const, "managed" as const, "device" as const),
      fc.constantFrom("C data interface" as const, "event" as const),
      fc.boolean(),
      (homes, kind, how, nonBlocking) => {
        if (kind === "device" && how === "C data interface") return; // which is for host memory
        const reports: string[] = [];
        const cuda = Cuda.simulate({
          schedule: "latest",
          freesWait: false,
          check: { onReport: ({ message }) => reports.push(message) },
        });
        {
          const device = cuda.device(0);
          const streams = Array.from({ length: 4 }, () => device.createStream({ nonBlocking }));
          const resource = kind === "pinned"
            ? new PinnedMemoryResource(device)
            : kind === "managed"
            ? new ManagedMemoryResource(device)
            : device.memory;
          const home = (i: number): CudaStream => streams[i] ?? device.defaultStream;
          const buffers = homes.map((stream) => resource.allocate(length, { stream: home(stream) }));
          buffers.forEach((buffer) => buffer.fill(0, { stream: buffer.stream ?? home(0) }));
          device.synchronize();
          buffers.forEach((buffer, i) => buffer.fill(i + 1, { stream: buffer.stream ?? home(0) }));
          const array = structOf(buffers);
          using consumer = device.createStream();
          using result = new PinnedMemoryResource(device).allocate(length * buffers.length);
          if (how === "C data interface") {
            const exported = array.__arrow_c_array__();
            // As a C consumer reads it: no driver call, no stream.
            for (const [i, buffer] of buffers.entries()) assertEquals(new Set(buffer.bytes()), new Set([i + 1]));
            exported.close();
          } else {
            using taken = ArrowArray.from(array.toArrowDevice(), { stream: consumer });
            taken.children.forEach(({ buffers: [, elements] }, i) => {
              if (elements === null || elements === undefined) throw new Error("a child without elements");
              const part = StridedMemoryView.fromBuffer(result, {
                shape: [length],
                dtype: "uint8",
                offset: i * length,
              });
              part.copyFrom(elements, { stream: consumer });
            });
            consumer.synchronize();
            const expected = buffers.flatMap((_, i) => Array.from({ length }, () => i + 1));
            assertEquals([...result.bytes()], expected);
          }
          for (const one of [...buffers, ...streams]) one.close();
        }
        cuda.close();
        assertEquals(reports, []);
      },
    ),
    200,
  );
});

test("the length of an imported array's texts is read after its producer has written it, wherever it is", () => {
  check(
    fc.property(
      fc.constantFrom("pinned" as const, "managed" as const, "device" as const),
      fc.array(fc.nat(5), { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      fc.boolean(),
      (kind, lengths, isTold, nonBlocking) => {
        using cuda = Cuda.simulate({ schedule: "latest" });
        const device = cuda.device(0);
        using home = device.createStream({ nonBlocking });
        using consumer = device.createStream();
        const resource = kind === "pinned"
          ? new PinnedMemoryResource(device)
          : kind === "managed"
          ? new ManagedMemoryResource(device)
          : device.memory;
        const ends = lengths.reduce<number[]>((all, one) => [...all, (all.at(-1) ?? 0) + one], [0]);
        const total = ends.at(-1) ?? 0;
        using offsets = resource.allocate(4 * ends.length, { stream: home });
        using texts = resource.allocate(Math.max(1, total), { stream: home });
        offsets.fill(0, { stream: home });
        texts.fill(120, { stream: home });
        home.synchronize();
        offsets.copyFrom(Int32Array.from(ends), { stream: home }); // not done until something waits for it
        const over = (buffer: MemoryBuffer) =>
          StridedMemoryView.fromBuffer(buffer, { shape: [buffer.size], dtype: "uint8" });
        const array = new ArrowArray({
          field: arrowField("u"),
          length: lengths.length,
          buffers: [null, over(offsets), over(texts)],
        });
        const options = isTold ? { stream: consumer } : { device };
        const taken = ArrowArray.from(array.toArrowDevice(), options);
        assertEquals(taken.buffers[2]?.nbytes ?? 0, total, `${kind}, ${isTold ? "a stream" : "a device"}`);
        taken.close();
        device.synchronize();
      },
    ),
    200,
  );
});
