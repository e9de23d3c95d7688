/**
 * Host reads and writes of page-locked and managed memory are ordered after its home stream's work, on a simulator that
 * works as late as allowed, under the checker.
 */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { CausalityError, Cuda, ManagedMemoryResource, PinnedMemoryResource, StridedMemoryView } from "../../mod.ts";
import { check, fc } from "../support/property.ts";

const kinds = { pinned: PinnedMemoryResource, managed: ManagedMemoryResource } as const;

/** Ways for the host to see that elements of a view are 7. */
const reads: Readonly<Record<string, (view: StridedMemoryView<"uint8">) => boolean>> = {
  get: (view) => view.get(3) === 7,
  item: (view) => view.sliced(2).item() === 7,
  toArray: (view) => view.toArray().every((value) => value === 7),
  asTypedArray: (view) => view.asTypedArray().every((value) => value === 7),
  copy: (view) => view.copy({ device: "host" }).asTypedArray().every((value) => value === 7),
  to: (view) => view.to("host").toArray().every((value) => value === 7),
  equals: (view) => view.equals(StridedMemoryView.full([4], 7, "uint8")),
};

for (const [kind, Resource] of Object.entries(kinds)) {
  for (const [name, isSeven] of Object.entries(reads)) {
    test(`${name} of ${kind} memory sees the work of its home stream`, () => {
      check(
        fc.property(fc.nat(1000), (seed) => {
          using cuda = Cuda.simulate({ seed, schedule: "latest", check: true });
          using home = cuda.device(0).createStream();
          using buffer = new Resource(cuda.device(0)).allocate(4, { stream: home });
          const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" });
          using there = StridedMemoryView.full([4], 7, { dtype: "uint8", device: cuda.device(0), stream: home });
          there.fill(7, { stream: home });
          view.copyFrom(there, { stream: home });
          assertEquals(isSeven(view), true);
          assertEquals(cuda.reports, []);
        }),
        15,
      );
    });
  }

  test(`set and fill of ${kind} memory are ordered between its home stream's earlier and later work`, () => {
    check(
      fc.property(fc.nat(1000), fc.boolean(), (seed, isFill) => {
        using cuda = Cuda.simulate({ seed, schedule: "latest", check: true });
        using home = cuda.device(0).createStream();
        using buffer = new Resource(cuda.device(0)).allocate(4, { stream: home });
        const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" });
        using there = StridedMemoryView.full([4], 7, { dtype: "uint8", device: cuda.device(0), stream: home });
        view.copyFrom(there, { stream: home });
        if (isFill) view.sliced(1).fill(9);
        else view.set(9, 1);
        there.copyFrom(view, { stream: home });
        assertEquals(there.to("host").toArray(), [7, 9, 7, 7]);
        assertEquals(cuda.reports, []);
      }),
      15,
    );
  });

  test(`an element of ${kind} memory that another stream still writes is reported`, () => {
    using cuda = Cuda.simulate({ check: true });
    using home = cuda.device(0).createStream({ name: "home" });
    using other = cuda.device(0).createStream({ name: "other" });
    using buffer = new Resource(cuda.device(0)).allocate(4, { stream: home, name: "shared" });
    const view = StridedMemoryView.fromBuffer(buffer, { shape: [4], dtype: "uint8" });
    buffer.fill(1, { stream: other });
    const error = assertThrows(() => view.get(0), CausalityError);
    assertEquals(error.kind, "race");
    for (const word of ["view.get()", '"other"', '"shared"']) assertEquals(error.message.includes(word), true, word);
    other.synchronize();
    home.wait(other);
  });
}
