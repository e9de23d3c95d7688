/**
 * Device memory for the interpreter, and launches on it.
 *
 * @module
 */
import type { PtxAccess } from "../../../src/ptx/execution_state.ts";
import { initialBytes, type PtxKernel, type PtxMemory, type PtxModule } from "../../../src/ptx/mod.ts";

/** Memory with bounds-checked allocations, separated by unmapped gaps. */
export class FlatMemory implements PtxMemory {
  readonly #buffers: { readonly address: bigint; readonly view: DataView }[] = [];
  #next = 0x7f00_0000_0000n;
  /** Every access, if logging is on; else null. */
  log: { address: bigint; bytes: number; access: PtxAccess }[] | null = null;

  /** Allocates memory over these bytes, which kernels then change in place. */
  add(array: ArrayBufferView): bigint {
    const address = this.#next;
    this.#buffers.push({ address, view: new DataView(array.buffer, array.byteOffset, array.byteLength) });
    this.#next += BigInt(Math.ceil(array.byteLength / 256) + 1) * 256n;
    return address;
  }

  view(address: bigint, bytes: number, access: PtxAccess): { readonly bytes: DataView; readonly offset: number } {
    this.log?.push({ address, bytes, access });
    for (const buffer of this.#buffers) {
      const offset = address - buffer.address;
      if (offset >= 0n && offset + BigInt(bytes) <= BigInt(buffer.view.byteLength)) {
        return { bytes: buffer.view, offset: Number(offset) };
      }
    }
    throw new RangeError("no memory at this address");
  }
}

/** A parameter: an address or another 64-bit integer, an int, a float, a double, or the bytes of a struct. */
export type Argument = bigint | { int: number } | { float: number } | { double: number } | Uint8Array;

/** The bytes of a kernel's parameters. */
export function pack(kernel: PtxKernel, args: readonly Argument[]): Uint8Array {
  const last = kernel.params.at(-1);
  const bytes = new Uint8Array(last === undefined ? 0 : last.offset + last.size);
  const view = new DataView(bytes.buffer);
  args.forEach((argument, i) => {
    const offset = kernel.params[i]?.offset ?? 0;
    if (typeof argument === "bigint") view.setBigUint64(offset, BigInt.asUintN(64, argument), true);
    else if (argument instanceof Uint8Array) bytes.set(argument, offset);
    else if ("int" in argument) view.setInt32(offset, argument.int, true);
    else if ("float" in argument) view.setFloat32(offset, argument.float, true);
    else view.setFloat64(offset, argument.double, true);
  });
  return bytes;
}

/** How a kernel is launched, with defaults. */
export interface Shape {
  readonly grid?: readonly [number, number, number];
  readonly block?: readonly [number, number, number];
  readonly shared?: number;
  readonly seed?: number;
  readonly maxInstructions?: number;
}

/** Launches a kernel of a module whose variables are in memory already, or need none. */
export function launch(
  module: PtxModule,
  name: string,
  memory: FlatMemory,
  args: readonly Argument[],
  shape: Shape = {},
  globals: ReadonlyMap<string, bigint> = place(module, memory),
): void {
  const kernel = module.entry(name);
  if (kernel === null) throw new Error(`no kernel ${name}: there are ${module.entries.join(", ")}`);
  const { grid = [1, 1, 1], block = [1, 1, 1], shared = 0, seed = 0, maxInstructions = 1e9 } = shape;
  const params = pack(kernel, args);
  kernel.run({ grid, block, params, dynamicSharedBytes: shared, memory, globals, seed, maxInstructions });
}

/** Puts a module's variables into memory, with their initial values. */
export function place(module: PtxModule, memory: FlatMemory): Map<string, bigint> {
  const globals = new Map<string, bigint>();
  const contents = new Map<string, Uint8Array>();
  for (const [name, { init }] of module.globals) {
    const bytes = init.slice();
    contents.set(name, bytes);
    globals.set(name, memory.add(bytes));
  }
  for (const [name, variable] of module.globals) {
    contents.get(name)?.set(initialBytes(variable, (symbol) => globals.get(symbol) ?? 0n));
  }
  return globals;
}
