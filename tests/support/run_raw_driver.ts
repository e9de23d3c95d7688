/**
 * Random programs, run through a driver's own calls.
 *
 * @module
 */
import { CU_MEM_ACCESS_FLAGS_PROT, CU_STREAM } from "../../bindings/cuda_types.ts";
import type { CudaDriver } from "../../src/driver/driver.ts";
import { deviceOf, laneKinds } from "./stream_lanes.ts";
import { bufferBytes, type Program, uploaded } from "./driver_programs.ts";
import { type HostBytes, Raw } from "./raw_driver.ts";

/** How a program is run. */
export interface RunOptions {
  /** Index of an `order` step to skip, from 0. */
  readonly without?: number;
  /** Whether host memory is page-locked. Default true. */
  readonly pinned?: boolean;
}

/** Runs a program; returns what was downloaded. */
export function run(driver: CudaDriver, program: Program, options: RunOptions = {}): number[][] {
  const { without, pinned = true } = options;
  const { devices, steps, downloads } = program;
  using raw = new Raw(driver, devices);
  const take = (): HostBytes => pinned ? raw.pinned(bufferBytes) : raw.pageable(bufferBytes);
  const uploads = new Map<number, HostBytes>();
  for (let device = 0; device < devices; device++) {
    for (let other = 0; other < devices; other++) {
      if (other === device) continue;
      const pool = raw.pool(device);
      raw.ok(raw.grant(pool, other));
      raw.onClose(() => raw.grant(pool, other, CU_MEM_ACCESS_FLAGS_PROT.NONE)); // the pool outlives the program
    }
  }
  const handles: bigint[] = [];
  const events: bigint[] = [];
  for (let device = 0; device < devices; device++) {
    raw.use(device);
    for (const kind of laneKinds) {
      const own = kind === "blocking" ? CU_STREAM.DEFAULT : CU_STREAM.NON_BLOCKING;
      handles.push(kind === "legacy" ? 0n : kind === "thread" ? 2n : raw.stream(own));
      events.push(raw.event());
    }
  }
  raw.use(0);
  const slots = Array.from({ length: downloads }, () => {
    const slot = take();
    slot.bytes.fill(0xee);
    return slot;
  });
  for (const step of steps) {
    if (step.do !== "upload" || uploads.has(step.slot)) continue;
    const slot = take();
    slot.bytes.set(uploaded(step.slot));
    uploads.set(step.slot, slot);
  }

  const addresses = new Map<number, { readonly address: bigint; readonly device: number }>();
  const size = BigInt(bufferBytes);
  const at = (buffer: number): bigint => addresses.get(buffer)?.address ?? 0n;
  const home = (buffer: number): number => addresses.get(buffer)?.device ?? 0;
  const stream = (lane: number): bigint => handles[lane] ?? 0n;
  let orders = 0;
  for (const step of steps) {
    if (!("lane" in step) && step.do !== "order") throw new TypeError(`The driver has no call to ${step.do}`);
    const lane = "lane" in step ? step.lane : step.before;
    if (lane === null || step.do === "home") throw new TypeError("A program for resources is no program for a driver");
    raw.use(deviceOf(lane));
    switch (step.do) {
      case "allocate":
        addresses.set(step.buffer, {
          address: raw.allocate(bufferBytes, stream(lane)),
          device: step.device,
        });
        break;
      case "fill":
        raw.ok(driver.fill.cuMemsetD8Async(at(step.buffer), step.value, size, stream(step.lane)));
        break;
      case "upload": {
        const source = uploads.get(step.slot)?.address ?? 0n;
        raw.ok(driver.copy.cuMemcpyHtoDAsync_v2(at(step.buffer), source, size, stream(step.lane)));
        break;
      }
      case "copy": {
        const { from, to, peer } = step;
        const contexts = [raw.context(home(to)), raw.context(home(from))] as const;
        const { cuMemcpyPeerAsync, cuMemcpyAsync } = driver.copy;
        raw.ok(
          peer
            ? cuMemcpyPeerAsync(at(to), contexts[0], at(from), contexts[1], size, stream(lane))
            : cuMemcpyAsync(at(to), at(from), size, stream(lane)),
        );
        break;
      }
      case "download": {
        const target = slots[step.slot]?.address ?? 0n;
        raw.ok(driver.copy.cuMemcpyDtoHAsync_v2(target, at(step.buffer), size, stream(step.lane)));
        break;
      }
      case "free":
        raw.ok(driver.pool.cuMemFreeAsync(at(step.buffer), stream(lane)));
        addresses.delete(step.buffer);
        break;
      case "synchronize":
        raw.ok(driver.stream.cuStreamSynchronize(stream(step.lane)));
        break;
      case "order": {
        if (orders++ === without) break;
        const fresh = step.how === "recorded again" ? null : raw.word((out) => driver.event.cuEventCreate(out, 2));
        const event = fresh ?? events[step.before] ?? 0n;
        const { cuCtxRecordEvent } = driver.context;
        const byContext = step.how === "context" && cuCtxRecordEvent !== null;
        raw.ok(
          byContext
            ? cuCtxRecordEvent(raw.context(deviceOf(step.before)), event)
            : driver.event.cuEventRecord(event, stream(step.before)),
        );
        raw.use(deviceOf(step.after));
        raw.ok(driver.stream.cuStreamWaitEvent(stream(step.after), event, 0));
        if (fresh !== null) raw.ok(driver.event.cuEventDestroy_v2(fresh)); // the wait outlives it
      }
    }
  }
  for (let device = 0; device < devices; device++) {
    raw.use(device);
    raw.ok(driver.context.cuCtxSynchronize());
  }
  const seen = slots.map(({ bytes }) => Array.from(bytes));
  for (const { address, device } of addresses.values()) {
    raw.use(device);
    raw.ok(driver.pool.cuMemFreeAsync(address, 0n));
  }
  return seen;
}
