/** Drops a lease of memory that its owner closes, and prints the state of both. */
import { SimulatedDriver } from "../../src/public/sim.ts";
import { Cuda, StridedMemoryView } from "../../mod.ts";
import { collectGarbage } from "../support/collect.ts";

// Unchecked: in V8, the checker's record of a call for its reports keeps the caller's objects alive.
const cuda = Cuda.simulate({ schedule: "latest" });
const device = cuda.device(0);
const home = device.createStream();
const simulated = SimulatedDriver.of(cuda.driver);

function lend(): void {
  const borrower = device.createStream();
  const buffer = device.memory.allocate(2 ** 20, { stream: home });
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [2 ** 20], dtype: "uint8" });
  const lease = view.borrow(borrower);
  lease.view.buffer.fill(1, { stream: borrower });
  borrower.close(); // the lease retains it
  buffer.close();
}

lend();
for (let i = 0; i < 50 && simulated?.live.allocations !== 0; i++) await collectGarbage();
home.synchronize();
const { allocations, streams } = simulated?.live ?? {};
const freed = allocations === 0 ? "freed" : `${allocations} left`;
console.log(`${freed}, ${streams} stream`);
