/**
 * The messages of a memory channel: a JSON value, and separately the resources that JSON cannot express, by their
 * paths.
 *
 * @module
 */
import { CudaEvent, type IpcHandle } from "../../device/mod.ts";
import { FileDescriptor } from "../../unix/mod.ts";
import { isPlainObject, showGiven } from "../../layout/mod.ts";
import { DeviceMemoryResource } from "../device_memory_resource.ts";
import { MemoryBuffer } from "../memory_buffer.ts";
import type { BufferDescriptor } from "../buffer_descriptor.ts";

/**
 * Resources that can be shared with another process: buffers of device memory, pools, interprocess events, open files.
 */
export type SharedResource = MemoryBuffer | DeviceMemoryResource | CudaEvent | FileDescriptor;

/** Values that a channel sends: JSON, with resources anywhere in it. */
export type Shareable =
  | null
  | boolean
  | number
  | string
  | SharedResource
  | readonly Shareable[]
  | { readonly [key: string]: Shareable };

/** The path of a resource in a value: the keys that lead to it. */
export type Path = readonly (string | number)[];

/** A point in a stream of the sender, identified by an event that the receiver opens on its first mention. */
export interface Mark {
  readonly id: number;
  readonly event: IpcHandle;
}

/** A resource in a message. */
export type Part =
  & { readonly path: Path }
  & (
    | { readonly kind: "pool"; readonly pool: number }
    | { readonly kind: "event"; readonly event: IpcHandle }
    | { readonly kind: "file"; readonly file: number }
    | {
      readonly kind: "buffer";
      /** The number with which the receiver returns the memory. */
      readonly share: number;
      readonly descriptor: BufferDescriptor;
      /** The number of the memory's pool in this direction of the channel. */
      readonly pool: number | null;
      /** The mark that the receiver's stream waits for. */
      readonly mark: number | null;
    }
  );

/** A value that is sent. */
export interface ValueMessage {
  readonly kind: "value";
  readonly value: unknown;
  readonly parts: readonly Part[];
  /** Pools that the receiver has not seen yet, each with the index of its descriptor. */
  readonly pools: readonly { readonly id: number; readonly device: string; readonly file: number }[];
  /** Marks that the receiver has not seen yet. */
  readonly marks: readonly Mark[];
}

/** Returns memory to its owner. */
export interface ReleaseMessage {
  readonly kind: "released";
  readonly shares: readonly number[];
  /** The mark that the owner's stream must wait for. */
  readonly mark: number | null;
  readonly marks: readonly Mark[];
}

/** Acknowledges that the marks of a release have been opened: their events may be destroyed from now on. */
export interface LearnedMessage {
  readonly kind: "learned";
  readonly count: number;
}

/** Announces that no more values will be sent; the connection stays open for outstanding returns. */
export interface ClosedMessage {
  readonly kind: "closed";
}

/** All messages of a channel. */
export type Message = ValueMessage | ReleaseMessage | LearnedMessage | ClosedMessage;

/** A resource in a value, and its path. */
export interface Found {
  readonly path: Path;
  readonly resource: SharedResource;
}

/**
 * Takes the resources out of a value.
 *
 * @returns the value with null in place of the resources, and the resources
 * @throws {TypeError} for anything that is neither JSON nor a resource
 */
export function extract(value: Shareable): { readonly value: unknown; readonly found: Found[] } {
  const found: Found[] = [];
  /** What the current member is in: a value that contains itself has no end. */
  const around = new Set<unknown>();
  const walk = (one: unknown, path: Path): unknown => {
    if (isResource(one)) {
      found.push({ path, resource: one });
      return null;
    }
    if (one === null || typeof one === "string" || typeof one === "boolean" || Number.isFinite(one)) return one;
    const where = path.length === 0 ? "" : ` at ${path.join(".")}`;
    if (around.has(one)) throw new TypeError(`Cannot send ${showGiven(one)}${where}: it contains itself`);
    around.add(one);
    try {
      if (Array.isArray(one)) return one.map((element, i) => walk(element, [...path, i]));
      if (isPlainObject(one)) {
        return Object.fromEntries(Object.entries(one).map(([key, member]) => [key, walk(member, [...path, key])]));
      }
    } finally {
      around.delete(one);
    }
    throw new TypeError(
      `Cannot send ${showGiven(one)}${where}: expected JSON, or a MemoryBuffer (of a view: view.buffer), a ` +
        "DeviceMemoryResource, a CudaEvent or a FileDescriptor",
    );
  };
  return { value: walk(value, []), found };
}

/**
 * Puts a resource back into its place in a value. @returns the value, which is the resource itself for the empty path
 */
export function restore(value: unknown, path: Path, resource: SharedResource): unknown {
  if (path.length === 0) return resource;
  let holder = value;
  for (const key of path.slice(0, -1)) holder = member(holder, key);
  const [last] = path.slice(-1);
  if (typeof holder !== "object" || holder === null || last === undefined || !Object.hasOwn(holder, last)) {
    throw new TypeError(`Cannot read a message: it has no member ${path.join(".")}`);
  }
  Object.defineProperty(holder, last, { value: resource, enumerable: true, configurable: true, writable: true });
  return value;
}

function member(holder: unknown, key: string | number): unknown {
  return typeof holder === "object" && holder !== null && Object.hasOwn(holder, key)
    ? Reflect.get(holder, key)
    : undefined;
}

function isResource(value: unknown): value is SharedResource {
  return value instanceof MemoryBuffer || value instanceof DeviceMemoryResource || value instanceof CudaEvent ||
    value instanceof FileDescriptor;
}
