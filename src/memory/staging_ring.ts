/**
 * Pinned memory of a device through which ordinary host memory is copied, and the threads that copy it.
 *
 * @module
 */
import { CU_MEMHOSTALLOC } from "../../bindings/cuda_types.ts";
import {
  besideCaptures,
  type CudaDevice,
  type CudaEvent,
  type CudaStream,
  PerDevice,
  waitForDevice,
} from "../device/mod.ts";
import { checkCuda, checkRelease, observerOf } from "../driver/mod.ts";
import { NativeArena } from "../ffi/mod.ts";
import { waitForEnd } from "../order/mod.ts";
import { ThreadTeam } from "../native/mod.ts";
import { callsOf, maxCalls, maxSlots, ringBytes, type StagingPlan } from "./staging_plan.ts";

/** Pinned memory for a few chunks, which use its slots in turn, and the threads that copy them. */
export class StagingRing {
  readonly #device: CudaDevice;
  readonly #memory: bigint;
  /** For each slot, the event after its last transfer; undefined before its first use. */
  readonly #events: (CudaEvent | undefined)[] = [];
  #slots = 0;
  #chunk = 0;
  #team: ThreadTeam | null = null;

  // law memory/StagingRing.constructor: memory/staging
  /** Allocates the pinned memory; threads are started when needed. */
  constructor(device: CudaDevice) {
    this.#device = device;
    using arena = new NativeArena();
    const out = arena.out("ptr");
    const { driver } = device;
    const { cuMemHostAlloc } = driver.hostMemory;
    const allocate = () => cuMemHostAlloc(out.$address, BigInt(ringBytes), CU_MEMHOSTALLOC.PORTABLE);
    checkCuda(driver, "cuMemHostAlloc", besideCaptures(driver, () => device.withContext(allocate)));
    this.#memory = out.value;
    observerOf(device.driver)?.closedByUser(this.#memory); // freed with the device
  }

  /**
   * Makes the ring fit a plan.
   *
   * @returns the threads: they sleep between copies, and end with the device. Starting them takes as long as copying
   *   20 MiB
   * @throws {FfiError} if there are no threads left
   */
  arrange({ threads, slots, chunk, piece }: StagingPlan): ThreadTeam {
    if (slots !== this.#slots || chunk !== this.#chunk) {
      for (const event of this.#events) event?.synchronize(); // the new slots overlap the old ones
      [this.#slots, this.#chunk] = [slots, chunk];
    }
    // Large enough for other plans, too: starting threads takes longer than copying with them.
    const rounds = Math.max(slots, maxSlots);
    const size = { threads, rounds, calls: Math.max(callsOf({ chunk, piece }), maxCalls) };
    if (this.#team?.fits(size)) return this.#team;
    this.#team?.close();
    this.#team = null;
    return this.#team = ThreadTeam.start(size);
  }

  /** Address of a chunk's slot. */
  slot(chunk: number): bigint {
    return this.#memory + BigInt(chunk % this.#slots * this.#chunk);
  }

  /** Waits until the bus is done with a chunk's slot. */
  wait(chunk: number): void {
    this.#events[chunk % this.#slots]?.synchronize();
  }

  // law memory/StagingRing.enqueue: memory/staging
  /** Enqueues the transfer of a chunk's slot over the bus. */
  enqueue(chunk: number, stream: CudaStream, work: (slot: bigint) => void): void {
    work(this.slot(chunk));
    try {
      stream.record(this.#events[chunk % this.#slots] ??= this.#event());
    } catch (error) {
      waitForEnd(stream); // the slot's next user could not
      throw error;
    }
  }

  #event(): CudaEvent {
    const event = this.#device.makeEvent();
    observerOf(this.#device.driver)?.closedByUser(event.handle);
    return event;
  }

  // law memory/StagingRing.close: memory/staging
  /** Waits for the bus, ends the threads, and frees the memory. */
  close(): void {
    const { driver } = this.#device;
    this.#team?.close();
    waitForDevice(this.#device); // transfers may still be in flight
    for (const event of this.#events) event?.close();
    const free = () => this.#device.withContext(() => driver.hostMemory.cuMemFreeHost(this.#memory));
    checkRelease(driver, "cuMemFreeHost", besideCaptures(driver, free));
  }
}

/** The ring of each device. */
export const rings: PerDevice<StagingRing> = new PerDevice((device) => new StagingRing(device), (ring) => ring.close());
