/**
 * Copies between views in the order of their homes: random programs over memory of every kind, with a home for each
 * buffer, give what the same steps give one after the other. The simulated driver works as late as allowed.
 */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import {
  Cuda,
  HostMemoryResource,
  ManagedMemoryResource,
  PinnedMemoryResource,
  StridedLayout,
  StridedMemoryView,
} from "../../mod.ts";
import { check, fc } from "../support/property.ts";

const bytes = 24;
const kinds = ["device", "pinned", "managed", "host"] as const;
type Kind = (typeof kinds)[number];

const member = fc.nat(4);
const stream = fc.option(fc.nat(3), { freq: 1 });

/**
 * A copy on a given stream, or none, perhaps after work that was enqueued only on that stream; or the home stream's
 * work.
 */
const steps = fc.array(
  fc.oneof(
    fc.record({ what: fc.constant("fill" as const), to: member, value: fc.nat(255) }),
    fc.record({ what: fc.constant("copy" as const), from: member, to: member, stream }),
    fc.record({
      what: fc.constant("fill and copy" as const),
      from: member,
      to: member,
      stream,
      value: fc.nat(255),
    }),
    fc.record({ what: fc.constant("read" as const), from: member }),
  ),
  { minLength: 1, maxLength: 8 },
);

test("copies between views with homes of their own do what the same steps do one after the other", async () => {
  await check(
    fc.asyncProperty(
      fc.array(fc.record({ kind: fc.constantFrom<Kind>(...kinds), home: fc.nat(3) }), { minLength: 5, maxLength: 5 }),
      steps,
      fc.boolean(),
      fc.boolean(),
      async (places, program, nonBlocking, isStrided) => {
        const reports: string[] = [];
        const cuda = Cuda.simulate({ schedule: "latest", check: { onReport: ({ message }) => reports.push(message) } });
        const device = cuda.device(0);
        const streams = Array.from({ length: 4 }, () => device.createStream({ nonBlocking }));
        const at = (stream: number) => streams[stream] ?? device.defaultStream;
        const resources = {
          device: device.memory,
          pinned: new PinnedMemoryResource(device),
          managed: new ManagedMemoryResource(device),
          host: new HostMemoryResource(),
        };
        const buffers = places.map(({ kind, home }) =>
          kind === "host"
            ? resources.host.allocate(2 * bytes)
            : resources[kind].allocate(2 * bytes, { stream: at(home) })
        );
        const views = buffers.map((buffer) => {
          const whole = StridedMemoryView.fromBuffer(buffer, { shape: [2 * bytes], dtype: "uint8" });
          const strides = isStrided ? [16, 2] : [8, 1];
          return whole.view({ layout: new StridedLayout([bytes / 8, 8], strides, 1) });
        });
        const pick = <T>(list: readonly T[], i: number): T => list[i % list.length] as T; // none of them is empty
        const fill = (i: number, value: number, stream: number | null) => {
          const buffer = pick(buffers, i);
          if (buffer.kind === "host") return void buffer.bytes().fill(value);
          const order = stream === null ? buffer.stream ?? at(0) : at(stream);
          if (buffer.stream !== null) order.wait(buffer.stream);
          buffer.fill(value, { stream: order });
        };
        const model = buffers.map((_, i) => (fill(i, 0, null), 0));
        device.synchronize();
        for (const step of program) {
          if (step.what === "fill") {
            if (pick(buffers, step.to).kind === "host") device.synchronize(); // nothing else orders the host's writes
            fill(step.to, step.value, null);
            model[step.to] = step.value;
          } else if (step.what === "read") {
            if (pick(buffers, step.from).kind === "host") device.synchronize();
            const read = await pick(views, step.from).toTypedArray();
            assertEquals([...new Set(Array.from(read, Number))], [model[step.from]], "a read");
          } else {
            if (pick(buffers, step.from).kind === "host" || pick(buffers, step.to).kind === "host") {
              device.synchronize();
            }
            if (step.what === "fill and copy") {
              fill(step.from, step.value, step.stream);
              model[step.from] = step.value;
            }
            const options = step.stream === null ? {} : { stream: at(step.stream) };
            pick(views, step.to).copyFrom(pick(views, step.from), options);
            model[step.to] = model[step.from] ?? 0;
          }
        }
        for (const [i, view] of views.entries()) {
          if (buffers[i]?.kind === "host") device.synchronize();
          const read = await view.toTypedArray();
          assertEquals([...new Set(Array.from(read, Number))], [model[i]], `${places[i]?.kind} ${i} in the end`);
        }
        for (const one of [...buffers, ...streams]) one.close();
        cuda.close();
        assertEquals(reports, []);
      },
    ),
    50,
  );
});

test("a plan for one pair of arrays is used for another of the same layouts only where it applies", () => {
  const layouts = [
    [[8, 4], [4, 1], [1, 8]],
    [[4, 8], [8, 1], [8, 1]],
    [[32], [2], [1]],
    [[4, 2, 8], [16, 8, 1], [8, 32, 1]], // in words, if both sides are word-aligned
  ] as const;
  check(
    fc.property(
      fc.constantFrom(...layouts),
      fc.constantFrom(1, 2, 4),
      fc.array(fc.tuple(fc.constantFrom<Kind>(...kinds), fc.constantFrom<Kind>(...kinds), fc.nat(3), fc.nat(3)), {
        minLength: 2,
        maxLength: 6,
      }),
      ([shape, from, to], itemsize, pairs) => {
        using cuda = Cuda.simulate({ schedule: "latest" });
        const device = cuda.device(0);
        using stream = device.createStream();
        const [source, destination] = [from, to].map((strides) =>
          new StridedLayout([...shape], [...strides], itemsize)
        );
        if (source === undefined || destination === undefined) throw new Error("two layouts");
        const resources = {
          device: device.memory,
          pinned: new PinnedMemoryResource(device),
          managed: new ManagedMemoryResource(device),
          host: new HostMemoryResource(),
        };
        const dtype = ({ 1: "uint8", 2: "uint16", 4: "uint32" } as const)[itemsize] ?? "uint8";
        const room = 64 * itemsize + 16;
        for (const [here, there, shift, otherShift] of pairs) {
          const made = ([[here, shift, source], [there, otherShift, destination]] as const).map(
            ([kind, by, layout]) => {
              const buffer = resources[kind].allocate(room, kind === "host" ? {} : { stream });
              const bytes = StridedMemoryView.fromBuffer(buffer, { shape: [room], dtype: "uint8" });
              bytes.copyFrom(Uint8Array.from({ length: room }, (_, i) => i * 7), { stream });
              // The same layout objects, at other addresses.
              const start = StridedMemoryView.fromBuffer(buffer, { shape: [1], dtype, offset: by * itemsize });
              return { buffer, view: start.view({ layout }) };
            },
          );
          const [one, other] = made;
          if (one === undefined || other === undefined) throw new Error("two arrays");
          stream.synchronize();
          other.view.copyFrom(one.view, { stream });
          const dense = StridedMemoryView.fromBuffer(new HostMemoryResource().allocate(source.volume * itemsize), {
            shape: [...shape],
            dtype,
          });
          dense.copyFrom(other.view, { stream });
          stream.synchronize();
          const bytesAt = (i: number) => i * 7 & 255;
          const expected: number[] = [];
          const walk = (axis: number, at: number): void => {
            if (axis === shape.length) {
              for (let byte = 0; byte < itemsize; byte++) {
                expected.push(bytesAt(shift * itemsize + at * itemsize + byte));
              }
            } else for (let i = 0; i < (shape[axis] ?? 0); i++) walk(axis + 1, at + i * (from[axis] ?? 0));
          };
          walk(0, 0);
          assertEquals([...dense.buffer.bytes()], expected, `${here} + ${shift} to ${there} + ${otherShift}`);
          for (const { buffer } of made) buffer.close();
          dense.buffer.close();
        }
      },
    ),
    66,
  );
});
