import { assemble, MIN_PAGES, type WasmFunction } from "./assemble.ts";

/** The part of the WebAssembly API used here, which is missing from the types of both runtimes. */
declare const WebAssembly: {
  readonly Memory: new (options: { initial: number; maximum: number }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
    imports: Imports,
  ) => { readonly exports: { readonly f: (...numbers: number[]) => number } };
};

/** What a module imports, by its two names. */
type Imports = Readonly<Record<string, Readonly<Record<string, object>>>>;

interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

const PAGE = 65_536;
/** The largest possible size in pages: 64 MiB. Larger operands are processed in blocks. */
const MAX_PAGES = 1024;

let memory: WasmMemory | undefined;
let bytes = new Uint8Array(0);

// law wasm/scratch: wasm/scratch
/**
 * The memory that all functions work in: a caller copies operands in and results out before any other caller runs. No
 * caller owns it across calls, and it is never handed over.
 *
 * @param size bytes needed, from address 0 on; at most 64 MiB
 * @returns at least as many bytes, with arbitrary contents, valid until a call asks for more
 */
export function scratch(size: number): Uint8Array<ArrayBuffer> {
  if (size > PAGE * MAX_PAGES) throw new RangeError(`Expected at most ${PAGE * MAX_PAGES} bytes, got ${size}`);
  const shared = sharedMemory();
  if (size > shared.buffer.byteLength) shared.grow(Math.ceil((size - shared.buffer.byteLength) / PAGE));
  if (bytes.buffer !== shared.buffer) bytes = new Uint8Array(shared.buffer);
  return bytes;
}

function sharedMemory(): WasmMemory {
  return memory ??= new WebAssembly.Memory({ initial: MIN_PAGES, maximum: MAX_PAGES });
}

/**
 * Compiles a function. This takes a fraction of a millisecond, so the caller keeps the result.
 *
 * @returns the function; it takes and returns 32-bit numbers, and its memory is {@linkcode scratch}
 */
export function compile(code: WasmFunction): (...numbers: number[]) => number {
  return instantiate(assemble(code), { m: { m: sharedMemory() } });
}

/** The function that a module exports. */
export function instantiate(code: Uint8Array<ArrayBuffer>, imports: Imports): (...numbers: number[]) => number {
  return new WebAssembly.Instance(new WebAssembly.Module(code), imports).exports.f;
}
