/**
 * Two processes: the other one is another simulated driver, with its own streams, addresses and objects. It receives
 * everything as a file, or as plain data.
 *
 * @module
 */
import type { Schedule } from "../../../src/public/sim.ts";
import type { IpcHandle } from "../../../src/public/sharing.ts";
import { Cuda, DeviceMemoryResource } from "../../../mod.ts";
import { simulatorOf } from "../../support/simulator_of.ts";

/** In bytes: more than one page of the simulator, and not a multiple of a page. */
export const size = 200_000;

/** A plain value after its transfer. */
export function sent<T extends IpcHandle>(value: T): T {
  return JSON.parse(JSON.stringify(structuredClone(value))) as T;
}

/** The driver's live objects. */
export function live(cuda: Cuda) {
  return simulatorOf(cuda).live;
}

/** Two processes, as {@linkcode pair} makes them. */
export interface Pair {
  readonly here: Cuda;
  readonly there: Cuda;
  /** Objects that are closed before the processes. */
  readonly owned: Disposable[];
}

/** Two processes. */
export function pair(schedule: Schedule = "random", seed = 0): Pair & Disposable {
  const freesWait = seed % 2 === 1;
  const here = Cuda.simulate({ devices: 2, schedule, seed, freesWait });
  const there = Cuda.simulate({ devices: 2, schedule, seed: seed + 1, freesWait });
  const owned: Disposable[] = [];
  return {
    here,
    there,
    owned,
    [Symbol.dispose]() {
      for (const one of owned) one[Symbol.dispose]();
      here.close();
      there.close();
    },
  };
}

/** A pool and the same pool on the other side. */
export function sharedPool({ here, there, owned }: Pair, device = 0): [DeviceMemoryResource, DeviceMemoryResource] {
  const pool = new DeviceMemoryResource(here.device(device), { shareable: true });
  using file = pool.exportPool();
  const imported = DeviceMemoryResource.importPool(there.device(device), file);
  owned.push(imported, pool);
  return [pool, imported];
}
