/**
 * Release callbacks that any thread may call, as they are machine code and not JavaScript.
 *
 * A consumer of an exported array calls its deleter or release callback from any thread, at any time. JavaScript
 * cannot run there: Deno blocks the caller until the event loop turns (and deadlocks if it never does), Bun runs it
 * later or never. So the callback is a few bytes of machine code that find a counter through the struct's context
 * pointer, mark the struct as released where its protocol asks for that, and increment the counter. JavaScript reads
 * the counter when it next polls.
 *
 * @module
 */
import { ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream, ArrowSchema } from "../../bindings/arrow.ts";
import { DLManagedTensor, DLManagedTensorVersioned } from "../../bindings/dlpack.ts";
import { FfiError, type FfiPort, ffiPort, layoutOf, littleEndian } from "../ffi/mod.ts";
import { instructions, mapExecutable } from "./machine_code.ts";

/** The byte offsets that a release callback uses in the struct that its only argument points to. */
export interface ThunkShape {
  /** Offset of the pointer to the counter (a 32-bit integer). */
  readonly context: number;
  /** Offset of the pointer that is set to NULL to mark the struct released, if the protocol requires that. */
  readonly clear?: number;
}

/** The release callbacks by protocol. */
export interface ReleaseThunks {
  /** Addresses to store in the structs. */
  readonly address: { readonly [Name in keyof typeof shapes]: bigint };
  /**
   * `machine code`: callable from every thread for the rest of the process's life. `callback`: JavaScript, where the
   * system refuses executable memory; the consumer must then release on the JavaScript thread.
   */
  readonly kind: "machine code" | "callback";
}

/** A release callback per struct of the exchange protocols. */
const shapes = {
  DLManagedTensor: { context: layoutOf(DLManagedTensor).offsets.manager_ctx },
  DLManagedTensorVersioned: { context: layoutOf(DLManagedTensorVersioned).offsets.manager_ctx },
  ArrowSchema: arrow(ArrowSchema),
  ArrowArray: arrow(ArrowArray),
  ArrowArrayStream: arrow(ArrowArrayStream),
  ArrowDeviceArrayStream: arrow(ArrowDeviceArrayStream),
} as const satisfies Record<string, ThunkShape>;

function arrow<const D extends { readonly release: "ptr"; readonly private_data: "ptr" }>(description: D): ThunkShape {
  const { offsets } = layoutOf(description);
  return { context: offsets.private_data, clear: offsets.release };
}

let made: ReleaseThunks | undefined;

/** The release callbacks of this process, made once, in one page that is never unmapped. */
export function releaseThunks(): ReleaseThunks {
  made ??= machineCode(ffiPort()) ?? callbacks(portOfMainThread(ffiPort()));
  return made;
}

function machineCode(port: FfiPort): ReleaseThunks | null {
  const encode = port.platform.arch === "aarch64" ? aarch64Thunk : x8664Thunk;
  const addresses = mapExecutable(Object.values(shapes).map(encode));
  return addresses === null ? null : { address: each((_, i) => addresses[i] ?? 0n), kind: "machine code" };
}

// law native/portOfMainThread: native/release_thunk
/** A port whose callbacks live as long as the program. @throws {FfiError} in a Worker, which they do not outlive */
export function portOfMainThread(port: FfiPort): FfiPort {
  if (!port.isWorker) return port;
  throw new FfiError(
    "Cannot export memory from a Worker: the system refuses executable memory, so consumers would have to call " +
      "JavaScript, which ends with the Worker. Export it on the main thread.",
  );
}

/** The same callbacks in JavaScript. Exported for its test: unused where machine code is allowed. */
export function callbacks(port: FfiPort): ReleaseThunks {
  const address = each(({ context, clear }) =>
    port.callback({ args: ["ptr"], returns: "void" }, (released) => {
      const bytes = new DataView(port.memory(released, Math.max(context, clear ?? 0) + 8));
      const counter = new DataView(port.memory(bytes.getBigUint64(context, littleEndian), 4));
      if (clear !== undefined) bytes.setBigUint64(clear, 0n, littleEndian);
      counter.setInt32(0, counter.getInt32(0, littleEndian) + 1, littleEndian);
    }).address
  );
  return { address, kind: "callback" };
}

function each(make: (shape: ThunkShape, index: number) => bigint): ReleaseThunks["address"] {
  const made = Object.entries(shapes).map(([name, shape], i) => [name, make(shape, i)]);
  return Object.fromEntries(made) as ReleaseThunks["address"]; // all shapes by their names
}

// law native/x8664Thunk: native/release_thunk
/**
 * x86-64, System V: the struct's address arrives in rdi.
 *
 * @throws {RangeError} if an offset does not fit the signed byte that the instructions have for it
 */
export function x8664Thunk({ context, clear }: ThunkShape): Uint8Array<ArrayBuffer> {
  for (const offset of [context, clear ?? 0]) {
    if (!Number.isInteger(offset) || offset < 0 || offset > 127) {
      throw new RangeError(`Cannot encode offset ${offset}: expected an integer from 0 to 127`);
    }
  }
  return new Uint8Array([
    ...[0x48, 0x8b, 0x47, context], // mov rax, [rdi + context]
    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0
    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]
    0xc3, // ret
  ]);
}

// law native/aarch64Thunk: native/release_thunk
/**
 * arm64, AAPCS64: the struct's address arrives in x0.
 *
 * @throws {RangeError} if an offset is not a multiple of 8 below 32768, which the instructions can encode
 */
export function aarch64Thunk({ context, clear }: ThunkShape): Uint8Array<ArrayBuffer> {
  for (const offset of [context, clear ?? 0]) {
    if (offset < 0 || offset >= 32768 || offset % 8 !== 0) {
      throw new RangeError(`Cannot encode offset ${offset}: expected a multiple of 8 below 32768`);
    }
  }
  return instructions([
    0xf9400001 | (context / 8) << 10, // ldr x1, [x0, #context]
    ...(clear === undefined ? [] : [0xf900001f | (clear / 8) << 10]), // str xzr, [x0, #clear]
    0x885ffc22, // again: ldaxr w2, [x1]
    0x11000442, // add w2, w2, #1
    0x8803fc22, // stlxr w3, w2, [x1]
    0x35ffffa3, // cbnz w3, again
    0xd65f03c0, // ret
  ]);
}
