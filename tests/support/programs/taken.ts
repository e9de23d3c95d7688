/**
 * What a consumer in another library sees of a struct that it has taken over, read by hand.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import type { DlpackTensor } from "../../../mod.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { type Run, runsOf } from "./streams.ts";
import { layout, pointerAt, type RawArray, readRawArray } from "../raw_arrow.ts";
import { type Kind, readInt64s, readRaw } from "../raw_dlpack.ts";

/** What a consumer holds. */
export interface Taken {
  readonly runs: readonly Run[];
  /** The event to wait for; 0n if there is none. */
  readonly event: bigint;
  /** What the consumer releases: the base struct, or a child that it has moved out. */
  struct: Struct;
  /** The address of this array's struct in its parent, if it is one child of two. */
  readonly child: bigint;
  readonly releaseSchema: () => void;
}

/** A struct that a consumer must release. */
export interface Struct {
  readonly address: bigint;
  readonly callback: bigint;
}

/** Takes a tensor over. */
export function takeTensor(source: DlpackTensor, isReadonly: boolean): Taken {
  const kind: Kind = source.version === null ? "legacy" : "versioned";
  const address = source.take();
  const raw = readRaw(address, kind);
  if (kind === "versioned") assertEquals((raw.flags & 1n) !== 0n, isReadonly, "READ_ONLY");
  const runs = runsOf(raw.data + raw.byteOffset, readInt64s(raw.shape, raw.ndim), readInt64s(raw.strides, raw.ndim));
  return { runs, event: 0n, struct: { address, callback: raw.deleter }, child: 0n, releaseSchema: () => {} };
}

/** The elements of nested lists of bytes. */
export function runOf(raw: RawArray): Run {
  let inner = raw;
  for (let [child] = raw.children; child !== undefined; [child] = child.children) inner = child;
  return { ptr: (inner.buffers[1] ?? 0n) + BigInt(inner.offset), bytes: inner.length };
}

/** Reads an ArrowDeviceArray: its event, its release callback, and where its elements are if they are bytes. */
export function takeStruct(address: bigint): Pick<Taken, "runs" | "event" | "struct"> {
  const slot = pointerAt(address, layout.deviceArray.syncEvent);
  return {
    runs: [runOf(readRawArray(address))],
    event: slot === 0n ? 0n : pointerAt(slot, 0),
    struct: { address, callback: pointerAt(address, layout.array.release) },
  };
}

/** Calls a function of an ArrowDeviceArrayStream, by its offset there; the function writes a struct. */
export function callStream(stream: bigint, offset: number, out: bigint): void {
  const code = ffiPort().functionAt(pointerAt(stream, offset), { args: ["ptr", "ptr"], returns: "i32" })(stream, out);
  assertEquals(code, 0);
}
