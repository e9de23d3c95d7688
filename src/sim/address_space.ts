/**
 * The address space of devices and host: what is allocated where, and the bytes behind the addresses.
 *
 * @module
 */
import { CU_MEM_ACCESS_FLAGS_PROT, CUresult } from "../../bindings/cuda_types.ts";
import { ffiPort, libc, roundUp } from "../ffi/mod.ts";
import { blockBytes } from "./allocator.ts";
import { deviceBase, deviceSpan, poison, spanOfAddress } from "./device_memory.ts";
import { IllegalAddressError } from "./kernel_faults.ts";
import type { Allocation, Context, Device } from "./objects.ts";
import type { PtxMemory } from "../ptx/mod.ts";
import { IntervalMap } from "./interval_map.ts";
import { refuse } from "./call.ts";
import type { Task } from "./scheduler.ts";

/** Copies are split into pieces of this many bytes. */
const pieceBytes = 2 ** 20;

/** Host page size: the alignment of pinned and managed memory. */
const pageBytes = 4096;

/** Host memory that was freed while work could still use it. */
interface Freed {
  readonly address: bigint;
  /** A multiple of the page size. */
  readonly bytes: number;
  /** Once these tasks have run, nothing uses the memory any more. */
  readonly until: readonly Task[];
}

/** The address space that devices and host share. */
export class AddressSpace {
  /** Allocations as the host sees them: each from the call that allocates it to the call that frees it. */
  readonly allocations: IntervalMap<Allocation> = new IntervalMap();
  readonly #devices: readonly Device[];
  readonly #firstSpan: number;
  /** Views of host memory for kernels, by allocation: creating one costs more than an access. */
  readonly #hostViews = new WeakMap<Allocation, DataView<ArrayBuffer>>();
  /** Freed memory not yet returned to the system, the most recent at the end. */
  #freed: Freed[] = [];
  #ids = 0n;

  /** @param devices by ordinal */
  constructor(devices: readonly Device[]) {
    this.#devices = devices;
    this.#firstSpan = devices[0]?.span ?? 0;
  }

  /** Allocates device memory immediately. Null if there is not enough. */
  allocateDevice(context: Context, bytes: number, kind: "device" | "variable" = "device"): Allocation | null {
    const { device } = context;
    const block = roundUp(bytes, blockBytes);
    const offset = device.heap.reuse(block, () => true)?.offset ?? device.heap.grow(block);
    if (offset === null) return null;
    const allocation = this.add({ kind, address: addressAt(device, offset), bytes, context });
    device.memory.poison(offset, block);
    device.mapped.add(allocation.address, bytes, allocation);
    return allocation;
  }

  // law sim/AddressSpace.allocateHost: sim/early_frees
  /** Allocates host memory that devices can access too. Null if the host does not have enough. */
  allocateHost(context: Context, kind: "pinned" | "managed", bytes: number, flags: number): Allocation | null {
    const block = roundUp(bytes, pageBytes);
    const address = this.#reuse(block) ?? libc().loading.aligned_alloc(BigInt(pageBytes), BigInt(block));
    return address === 0n ? null : this.add({ kind, address, bytes, context, flags });
  }

  /** Adds an allocation to those that the host sees. */
  add(
    allocation: Pick<Allocation, "address" | "bytes" | "kind" | "context"> & Partial<Allocation>,
  ): Allocation {
    const { device } = allocation.context;
    const known = { device, pool: null, id: ++this.#ids, syncMemops: false, flags: 0, ...allocation };
    this.allocations.add(known.address, known.bytes, known);
    return known;
  }

  // law sim/AddressSpace.free: sim/early_frees
  /**
   * Frees memory that was not allocated in stream order.
   *
   * @param unfinished work that may still use it: it reads poison, or what the next owner wrote there
   */
  free(allocation: Allocation, unfinished: readonly Task[]): void {
    const { address, bytes, device, kind } = allocation;
    this.allocations.remove(address);
    if (kind === "pinned" || kind === "managed") {
      if (unfinished.length > 0) this.fill(address, Uint8Array.of(poison), bytes);
      this.#freed.push({ address, bytes: roundUp(bytes, pageBytes), until: unfinished });
      this.#freeUnused();
    }
    if (kind === "opened") {
      device.mapped.remove(address);
      device.memory.unalias(offsetOf(address), bytes);
    }
    if (kind !== "device" && kind !== "variable") return;
    const block = roundUp(bytes, blockBytes);
    const offset = offsetOf(address);
    device.mapped.remove(address);
    device.memory.poison(offset, block);
    device.heap.release({ offset, bytes: block, tag: null });
    device.heap.trim(0, () => true);
  }

  // law sim/AddressSpace.freeAllOf: sim/contexts
  /**
   * Frees the memory of a destroyed context, also what is mapped because a free in stream order has not run. Memory of
   * pools and graphs belongs to the device.
   */
  freeAllOf(context: Context, unfinished: readonly Task[]): void {
    for (const allocation of new Set([...this.allocations.values(), ...context.device.mapped.values()])) {
      if (allocation.context !== context || allocation.kind === "pool" || allocation.kind === "graph") continue;
      this.free(allocation, unfinished);
    }
    this.#freeUnused();
  }

  // law sim/AddressSpace.isUnregistered: sim/early_frees
  /**
   * Whether host memory that was registered when work was enqueued has since been unregistered: it may be gone by now.
   */
  isUnregistered(allocation: Allocation | null): boolean {
    return allocation?.kind === "registered" && this.allocations.find(allocation.address)?.kind !== "registered";
  }

  /** The allocation that begins at an address. */
  at(address: bigint): Allocation | undefined {
    const allocation = this.allocations.find(address);
    return allocation?.address === address ? allocation : undefined;
  }

  /**
   * The allocation that contains a range, or null for host memory unknown to the driver.
   *
   * Refused with CUDA_ERROR_INVALID_VALUE: a device address at which nothing is allocated, and a range that extends
   * beyond its allocation.
   */
  range(address: bigint, bytes: number): Allocation | null {
    const allocation = this.allocations.find(address);
    if (allocation === undefined) {
      if (address === 0n || spanOfAddress(address) !== null) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
      return null;
    }
    if (address + BigInt(bytes) > allocation.address + BigInt(allocation.bytes)) {
      throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
    }
    return allocation;
  }

  /** Copies bytes out of device or host memory. */
  read(address: bigint, into: Uint8Array): void {
    const device = this.#deviceAt(address);
    if (device !== null) device.memory.read(offsetOf(address), into);
    else into.set(new Uint8Array(ffiPort().memory(address, into.length)));
  }

  /** Copies bytes into device or host memory. */
  write(address: bigint, source: Uint8Array): void {
    const device = this.#deviceAt(address);
    if (device !== null) device.memory.write(offsetOf(address), source);
    else new Uint8Array(ffiPort().memory(address, source.length)).set(source);
  }

  // law sim/AddressSpace.copy: sim/memory
  /** Copies bytes between any two addresses. */
  copy(to: bigint, from: bigint, bytes: number): void {
    const piece = new Uint8Array(Math.min(bytes, pieceBytes));
    for (let at = 0; at < bytes; at += pieceBytes) {
      const part = piece.subarray(0, Math.min(pieceBytes, bytes - at));
      this.read(from + BigInt(at), part);
      this.write(to + BigInt(at), part);
    }
  }

  /** Fills memory with a pattern of 1, 2 or 4 bytes. */
  fill(address: bigint, pattern: Uint8Array, count: number): void {
    const bytes = count * pattern.length;
    const piece = new Uint8Array(Math.min(bytes, pieceBytes));
    piece.set(pattern);
    for (let at = pattern.length; at < piece.length; at *= 2) piece.copyWithin(at, 0, at);
    for (let at = 0; at < bytes; at += pieceBytes) {
      this.write(address + BigInt(at), piece.subarray(0, Math.min(pieceBytes, bytes - at)));
    }
  }

  /** Memory as kernels of a context access it. */
  kernelMemory(context: Context): PtxMemory {
    return {
      view: (address, bytes, access) => {
        const owner = this.#deviceAt(address);
        const allocation = owner === null ? this.allocations.find(address) : owner.mapped.find(address);
        if (allocation === undefined) {
          throw new IllegalAddressError(address, bytes, access, "nothing is allocated there");
        }
        const reason = refusal(allocation, address, bytes, context);
        if (reason !== null) throw new IllegalAddressError(address, bytes, access, reason);
        if (owner === null) {
          const view = this.#hostViews.getOrInsertComputed(allocation, viewOf);
          return { bytes: view, offset: Number(address - allocation.address) };
        }
        const view = owner.memory.view(offsetOf(address), bytes);
        if (view === null) throw new IllegalAddressError(address, bytes, access, "it is not aligned");
        return view;
      },
    };
  }

  /** The most recently freed host memory of this size, if any. */
  #reuse(bytes: number): bigint | null {
    this.#freeUnused();
    const at = this.#freed.findLastIndex((one) => one.bytes === bytes);
    const [again] = at < 0 ? [] : this.#freed.splice(at, 1);
    return again?.address ?? null;
  }

  // law sim/AddressSpace.freeUnused: sim/early_frees
  /** Returns freed host memory to the system once nothing uses it any more. */
  #freeUnused(): void {
    const isOver = ({ until }: Freed) => until.every(({ done }) => done);
    for (const { address } of this.#freed.filter(isOver)) libc().loading.free(address);
    this.#freed = this.#freed.filter((one) => !isOver(one));
  }

  #deviceAt(address: bigint): Device | null {
    const span = spanOfAddress(address);
    return span === null ? null : this.#devices[span - this.#firstSpan] ?? null;
  }
}

function viewOf({ address, bytes }: Allocation): DataView<ArrayBuffer> {
  return new DataView(ffiPort().memory(address, bytes));
}

/** The address of an offset in a device's memory. */
export function addressAt({ span }: Device, offset: number): bigint {
  return deviceBase + BigInt(span) * BigInt(deviceSpan) + BigInt(offset);
}

/** The offset of an address in its device's memory. */
export function offsetOf(address: bigint): number {
  return Number((address - deviceBase) % BigInt(deviceSpan));
}

// law sim/isAccessible: sim/questions, sim/error_codes, sim/programs, sim/sharing
/** Whether kernels and copies of a device may access the memory of an allocation. */
export function isAccessible({ device, pool, context }: Allocation, from: Context): boolean {
  if (device === from.device) return true;
  if (pool !== null) return pool.access(from.device.ordinal) === CU_MEM_ACCESS_FLAGS_PROT.READWRITE;
  return from.peers.has(context);
}

/** Whether the allocation is host memory, which every device can access. */
export function isOnHost({ kind }: Allocation): boolean {
  return kind === "pinned" || kind === "registered" || kind === "managed";
}

/** Whether work of a context may access an allocation at all. */
export function isReachable(allocation: Allocation, from: Context): boolean {
  return isOnHost(allocation) || isAccessible(allocation, from);
}

// law sim/refusal: sim/memory
/** Why kernels of a context may not access bytes that begin in an allocation; null if they may. */
function refusal(allocation: Allocation, address: bigint, bytes: number, context: Context): string | null {
  const end = allocation.address + BigInt(allocation.bytes);
  if (address + BigInt(bytes) > end) return `the allocation of ${allocation.bytes} bytes ends before`;
  if (!isReachable(allocation, context)) {
    return `device ${context.device.ordinal} has no access to this memory of device ${allocation.device.ordinal}`;
  }
  return null;
}
