/** Leases: work that the owner and the borrower enqueue runs in the order of their turns, whatever the streams do. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { type Schedule, SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, StridedMemoryView } from "../../mod.ts";
import { check, fc } from "../support/property.ts";
import { enqueueCopy } from "../../src/device/mod.ts";

/**
 * What a turn does: the owner, or a borrower for the length of the turn, adds to the bytes or copies them.
 */
const turns = fc.array(
  fc.record({ by: fc.nat(3), what: fc.constantFrom("fill", "copy"), value: fc.integer({ min: 0, max: 255 }) }),
  { minLength: 1, maxLength: 12 },
);

for (const schedule of ["latest", "random", "round-robin"] satisfies Schedule[]) {
  test(`owner and borrowers see the array as if they took turns (${schedule})`, () => {
    check(
      fc.property(turns, fc.nat(), fc.boolean(), (program, seed, closesEarly) => {
        using cuda = Cuda.simulate({ schedule, seed, freesWait: seed % 2 === 1 });
        const device = cuda.device(0);
        const streams = Array.from({ length: 4 }, () => device.createStream()); // the first is home
        const [home = device.defaultStream] = streams;
        const buffer = device.memory.allocate(16, { stream: home });
        const results = device.memory.allocate(16 * program.length, { stream: home });
        const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
        const log = StridedMemoryView.fromBuffer(results, { shape: [program.length, 16], dtype: "uint8" });
        buffer.fill(0, { stream: home });
        results.fill(0, { stream: home });
        let now = 0;
        const expected: number[] = [];
        program.forEach(({ by, what, value }, turn) => {
          const stream = streams[by] ?? home;
          using _one = view.borrow(stream);
          using _two = log.borrow(stream);
          if (what === "fill") {
            buffer.fill(value, { stream });
            now = value;
          } else enqueueCopy(stream, log.sliced(turn).ptr, view.ptr, 16, "DtoD");
          expected.push(...Array.from({ length: 16 }, () => what === "copy" ? now : 0));
          if (closesEarly && turn === program.length - 1) buffer.close(); // the lease keeps it alive
        });
        if (!buffer.isClosed) buffer.close();
        using check = device.memory.allocate(64, { stream: home }); // reuses memory that was freed too early
        check.fill(0xee, { stream: home });
        using host = cuda.device(0).memory.allocate(results.size, { stream: home });
        host.copyFrom(results, { stream: home });
        home.synchronize();
        assertEquals([...SimulatedDriver.of(cuda.driver)?.peek(host.ptr, host.size) ?? []], expected);
        results.close();
        for (const stream of streams) stream.close();
      }),
      300,
    );
  });
}

test("a lease pins memory and retains the stream until it is closed, and nothing closed can be borrowed", () => {
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  const [home, other] = [device.createStream(), device.createStream()];
  const buffer = device.memory.allocate(16, { stream: home });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [16], dtype: "uint8" });
  const simulated = SimulatedDriver.of(cuda.driver);
  const lease = view.borrow(other);
  buffer.close();
  other.close();
  assertEquals(simulated?.calls("cuMemFreeAsync"), 0);
  assertEquals(simulated?.calls("cuStreamDestroy_v2"), 0);
  lease.close();
  lease.close(); // harmless
  assert(lease.isClosed);
  assertEquals(simulated?.calls("cuMemFreeAsync"), 1);
  assertEquals(simulated?.calls("cuStreamDestroy_v2"), 1);
  assertThrows(() => view.borrow(home), TypeError, "closed MemoryBuffer");
  using alive = device.memory.allocate(16, { stream: home });
  const before = simulated?.calls("cuEventRecord");
  assertThrows(
    () => StridedMemoryView.fromBuffer(alive, { shape: [16], dtype: "uint8" }).borrow(other),
    TypeError,
    "closed CudaStream",
  );
  assertEquals(simulated?.calls("cuEventRecord"), before);
  home.close();
});
