/**
 * Opens UCX, and reads past the memory of a WebAssembly module, which engines find out by a signal.
 *
 * @module
 */
import { Ucx } from "../../mod.ts";

/** The part of the WebAssembly API used here, which is missing from the types of both runtimes. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: { readonly read: (address: number) => number } };
  readonly RuntimeError: new () => Error;
};

/** A module that exports `read(address: i32): i32`, with one page of memory. */
const module = new WebAssembly.Module(Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...[1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f], // its type
  ...[3, 2, 1, 0],
  ...[5, 3, 1, 0, 1],
  ...[7, 8, 1, 4, 0x72, 0x65, 0x61, 0x64, 0, 0],
  ...[10, 9, 1, 7, 0, 0x20, 0, 0x28, 2, 0, 0x0b], // i32.load of its argument
));
const { read } = new WebAssembly.Instance(module).exports;
for (let i = 0; i < 20_000; i++) read(8); // until it is compiled
Ucx.open().close();
try {
  read(1 << 24);
} catch (error) {
  console.log(error instanceof WebAssembly.RuntimeError ? "out of bounds" : error);
}
