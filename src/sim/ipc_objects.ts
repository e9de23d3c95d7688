/**
 * What the simulated drivers of a process share, as drivers of separate processes do through the kernel: names under
 * which a driver finds another driver's memory and events.
 *
 * @module
 */
import { MFD } from "../../bindings/libc.ts";
import { CUresult } from "../../bindings/cuda_types.ts";
import { attempt, cString, libc, NativeArena, readField } from "../ffi/mod.ts";
import type { Simulator } from "./simulator.ts";
import type { Allocation, Event } from "./objects.ts";
import type { Pool } from "./pool.ts";
import { refuse } from "./call.ts";

/** An object of a driver that another driver may open. */
export type SharedObject =
  & { readonly simulator: Simulator }
  & (
    | { readonly kind: "pool"; readonly pool: Pool }
    | { readonly kind: "pool memory"; readonly allocation: Allocation }
    | { readonly kind: "memory"; readonly allocation: Allocation }
    | { readonly kind: "event"; readonly event: Event }
  );

type SharedOf<K extends SharedObject["kind"]> = Extract<SharedObject, { readonly kind: K }>;

/** Bytes of a handle in the driver's ABI. */
export const handleBytes = 64;

/** Shared objects by name. Each driver keeps its own objects alive, so that an unused driver can be collected. */
const shared = new Map<string, WeakRef<SharedObject>>();
const finalizer = new FinalizationRegistry<string>((name) => {
  shared.delete(name);
});

/** Shares an object under a name, the same each time. */
export function share(object: SharedObject): string {
  const { exports } = object.simulator;
  const key = object.kind === "pool" ? object.pool : object.kind === "event" ? object.event : object.allocation;
  const known = exports.get(key);
  if (known !== undefined) return known.name;
  const name = `simulated ${crypto.randomUUID()}`;
  exports.set(key, { name, object });
  shared.set(name, new WeakRef(object));
  finalizer.register(object, name);
  return name;
}

/** Finds the object of a name; refused if there is none of this kind. */
export function find<K extends SharedObject["kind"]>(name: string, kind: K): SharedOf<K> {
  const object = shared.get(name)?.deref();
  if (object?.kind !== kind) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);
  return object as SharedOf<K>; // its kind says so
}

/** Encodes a name as a handle of 64 bytes. */
export function toHandle(name: string): Uint8Array {
  const bytes = new Uint8Array(handleBytes);
  bytes.set(new TextEncoder().encode(name));
  return bytes;
}

/** The name in a handle. */
export function fromHandle(bytes: Uint8Array): string {
  return readField(bytes);
}

// law sim/toFile: memory/sharing/pieces
/** Writes a name to a file, whose descriptor can be sent to another process. */
export function toFile(name: string): number {
  const { memfd_create, pwrite, close } = libc().files;
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(handleBytes);
  bytes.set(toHandle(name));
  const fd = memfd_create(cString("causeway-simulated-pool"), MFD.CLOEXEC);
  if (fd < 0) throw refuse(CUresult.CUDA_ERROR_OPERATING_SYSTEM);
  if (attempt(() => pwrite(fd, address, BigInt(handleBytes), 0n)) === handleBytes) return fd;
  close(fd);
  throw refuse(CUresult.CUDA_ERROR_OPERATING_SYSTEM);
}

/** The name in a file; empty if the file holds none. */
export function fromFile(fd: number): string {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(handleBytes);
  const read = libc().files.pread(fd, address, BigInt(handleBytes), 0n);
  return read === BigInt(handleBytes) ? fromHandle(bytes) : "";
}
