/**
 * How views reach the exchange protocols, which are built on top of them: the exchange room plugs itself in when it is
 * loaded, which every public module does. So `view.toDlpack()` can be a method, and no import points upwards.
 *
 * @module
 */
import type { DlpackTensor, ImportOptions, ToDlpackOptions } from "../exchange/dlpack.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/** What the exchange room provides. */
export interface Protocols {
  isDlpackSource(source: unknown): boolean;
  toDlpack(view: StridedMemoryView, options: ToDlpackOptions): DlpackTensor;
  fromDlpack(source: unknown, options: ImportOptions): StridedMemoryView;
  dlpackDevice(view: StridedMemoryView): [type: number, id: number];
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
