import { assemble, LEAST_PAGES, type WasmFunction } from "./assemble.ts";

/** The part of WebAssembly that is used here: the types of both runtimes lack it. */
declare const WebAssembly: {
  readonly Memory: new (options: { initial: number; maximum: number }) => WasmMemory;
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (
    module: object,
    imports: { m: { m: WasmMemory } },
  ) => { readonly exports: { readonly f: (...numbers: number[]) => number } };
};

interface WasmMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

const PAGE = 65_536;
/** Most that can ever be asked for, in pages: 64 MiB. What is larger is done in blocks. */
const MOST_PAGES = 1024;

let memory: WasmMemory | undefined;
let bytes = new Uint8Array(0);

// law wasm/scratch: wasm/scratch
/**
 * The memory that all functions work in: whoever calls one puts the operands there and takes the results out before
 * anybody else can. It belongs to nobody across calls, and is never given away.
 *
 * @param size bytes that are needed, from address 0 on; at most 64 MiB
 * @returns at least as many, of any contents, until somebody asks for more
 */
export function scratch(size: number): Uint8Array<ArrayBuffer> {
  if (size > PAGE * MOST_PAGES) throw new RangeError(`Expected at most ${PAGE * MOST_PAGES} bytes, got ${size}`);
  const shared = theMemory();
  if (size > shared.buffer.byteLength) shared.grow(Math.ceil((size - shared.buffer.byteLength) / PAGE));
  if (bytes.buffer !== shared.buffer) bytes = new Uint8Array(shared.buffer);
  return bytes;
}

function theMemory(): WasmMemory {
  return memory ??= new WebAssembly.Memory({ initial: LEAST_PAGES, maximum: MOST_PAGES });
}

/**
 * Has a function compiled: fractions of a millisecond, so that whoever asks keeps the result.
 *
 * @returns the function; what it takes and leaves are 32-bit numbers, and its memory is {@linkcode scratch}
 */
export function compile(code: WasmFunction): (...numbers: number[]) => number {
  return new WebAssembly.Instance(new WebAssembly.Module(assemble(code)), { m: { m: theMemory() } }).exports.f;
}
