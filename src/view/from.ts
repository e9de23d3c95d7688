/**
 * How views reach the exchange protocols, which are built on top of them: the exchange room plugs itself in when it is
 * loaded, which every public module does. So `view.toDlpack()` can be a method, and no import points upwards.
 *
 * @module
 */
import type { ArrayInterface, CudaArrayInterface } from "../dlpack/array_interface.ts";
import type { ArrowDeviceArray, FromArrowOptions, ToArrowOptions } from "../cdata/device_array.ts";
import type { CudaStream } from "../device/stream.ts";
import type { Lease } from "./lease.ts";
import type { DlpackTensor, ImportOptions, ToDlpackOptions } from "../dlpack/tensor.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/** What the exchange room provides. */
export interface Protocols {
  borrow(view: StridedMemoryView, stream: CudaStream): Lease;
  toDlpack(view: StridedMemoryView, options: ToDlpackOptions): DlpackTensor;
  fromDlpack(source: unknown, options: ImportOptions): StridedMemoryView;
  dlpackDevice(view: StridedMemoryView): [type: number, id: number];
  toArrayInterface(view: StridedMemoryView): ArrayInterface;
  toCudaArrayInterface(view: StridedMemoryView): CudaArrayInterface;
  fromArrayInterface(source: unknown, options: ImportOptions): StridedMemoryView;
  fromCudaArrayInterface(source: unknown, options: ImportOptions): StridedMemoryView;
  toArrow(view: StridedMemoryView, options: ToArrowOptions, where: "host" | "device"): ArrowDeviceArray;
  fromArrow(source: unknown, options: FromArrowOptions): StridedMemoryView;
}

/** A kind of foreign array that `StridedMemoryView.from` takes. */
export interface ArraySource {
  /** What it looks for, for the message when nobody finds anything: `__dlpack__`. */
  readonly speaks: string;
  /** Whether an object, or a function, is of this kind. */
  accepts(source: object): boolean;
  /** Sees an array of this kind without copying it. */
  take(source: object, options: ImportOptions): StridedMemoryView;
}

let provided: Protocols | undefined;

/** Plugs the exchange protocols in. */
export function provideProtocols(protocols: Protocols): void {
  provided = protocols;
}

/** The exchange protocols. */
export function protocols(): Protocols {
  if (provided === undefined) throw new TypeError("Cannot exchange arrays: import the package, not one file of it");
  return provided;
}

const sources: ArraySource[] = [];

/** Plugs a kind of foreign array in. The kinds are tried in the order in which they came. */
export function provideArraySource(source: ArraySource): void {
  sources.push(source);
}

/** The kind that an object is of, or undefined. */
export function arraySourceOf(value: unknown): ArraySource | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return sources.find((source) => source.accepts(value));
}

/** What the kinds look for, as a list for a message. */
export function spokenProtocols(): string {
  return sources.map(({ speaks }) => speaks).join(", ");
}
