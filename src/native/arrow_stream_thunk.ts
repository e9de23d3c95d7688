/**
 * The callbacks of an exported Arrow stream, which any thread may call: machine code that takes the next struct from a
 * list that JavaScript wrote beforehand.
 *
 * @module
 */
import {
  ArrowArray,
  ArrowArrayStream,
  ArrowDeviceArray,
  ArrowDeviceArrayStream,
  ArrowSchema,
} from "../../bindings/arrow.ts";
import type { StructDescription } from "../../bindings/abi.ts";
import { type FfiPort, ffiPort, layoutOf, libc, littleEndian, struct } from "../ffi/mod.ts";
import { instructions, int32, mapExecutable } from "./machine_code.ts";
import { portOfMainThread } from "./release_thunk.ts";

/** The target of an exported stream's `private_data`. The release callback increments `released`. */
export const StreamState = {
  released: "i32",
  next_array: "ptr",
  end_of_arrays: "ptr",
  next_schema: "ptr",
  end_of_schemas: "ptr",
  error: "ptr", // const char *, for get_last_error
} as const satisfies StructDescription;

/** The functions of one of the stream structs, as addresses to store in it. */
export interface StreamThunks {
  readonly get_schema: bigint;
  readonly get_next: bigint;
  readonly get_last_error: bigint;
}

/** The stream structs. */
export type StreamKind = "ArrowArrayStream" | "ArrowDeviceArrayStream";

/** A function that takes the next item of a list in the stream's state. All offsets and sizes are in bytes. */
export interface TakeShape {
  /** Offset in the stream of the pointer to its state. */
  readonly context: number;
  /** Offset in the state of the pointer to the next item, which the pointer to the end of the items follows. */
  readonly list: number;
  /** Size of an item, a multiple of 8. */
  readonly size: number;
  /** At the end, either a pointer in the destination is set to NULL, or the function returns an error number. */
  readonly atEnd: { readonly clear: number } | { readonly error: number };
}

/** The error number of a stream that has no copies of its schema left: ENOMEM. */
const ENOMEM = 12;

const state = layoutOf(StreamState).offsets;

function shapesOf(kind: StreamKind): { schema: TakeShape; next: TakeShape; context: number } {
  const isDevice = kind === "ArrowDeviceArrayStream";
  const { private_data: context } = layoutOf(isDevice ? ArrowDeviceArrayStream : ArrowArrayStream).offsets;
  const { size } = layoutOf(isDevice ? ArrowDeviceArray : ArrowArray);
  const { release } = layoutOf(ArrowArray).offsets;
  return {
    context,
    schema: { context, list: state.next_schema, size: layoutOf(ArrowSchema).size, atEnd: { error: ENOMEM } },
    next: { context, list: state.next_array, size, atEnd: { clear: release } },
  };
}

let made: Readonly<Record<StreamKind, StreamThunks>> | undefined;

/** The functions of exported streams, made once; in JavaScript where the system refuses executable memory. */
export function streamThunks(kind: StreamKind): StreamThunks {
  made ??= machineCode(ffiPort()) ?? {
    ArrowArrayStream: streamCallbacks(portOfMainThread(ffiPort()), "ArrowArrayStream"),
    ArrowDeviceArrayStream: streamCallbacks(portOfMainThread(ffiPort()), "ArrowDeviceArrayStream"),
  };
  return made[kind];
}

function machineCode(port: FfiPort): Readonly<Record<StreamKind, StreamThunks>> | null {
  const [take, load] = port.platform.arch === "aarch64" ? [aarch64Take, aarch64Load] : [x8664Take, x8664Load];
  const codes = (["ArrowArrayStream", "ArrowDeviceArrayStream"] as const).flatMap((kind) => {
    const { schema, next, context } = shapesOf(kind);
    return [take(schema), take(next), load(context, state.error)];
  });
  const [a = 0n, b = 0n, c = 0n, d = 0n, e = 0n, f = 0n] = mapExecutable(codes) ?? [];
  if (a === 0n) return null;
  return {
    ArrowArrayStream: { get_schema: a, get_next: b, get_last_error: c },
    ArrowDeviceArrayStream: { get_schema: d, get_next: e, get_last_error: f },
  };
}

/** The same functions in JavaScript. Exported for its test: unused where machine code is allowed. */
export function streamCallbacks(port: FfiPort, kind: StreamKind): StreamThunks {
  const { schema, next, context } = shapesOf(kind);
  const pointers = (address: bigint, at: number, count = 1) =>
    new DataView(port.memory(address + BigInt(at), 8 * count));
  const stateOf = (stream: bigint) => pointers(stream, context).getBigUint64(0, littleEndian);
  const take = ({ list, size, atEnd }: TakeShape) =>
    port.callback({ args: ["ptr", "ptr"], returns: "i32" }, (stream, out) => {
      const items = pointers(stateOf(stream), list, 2);
      const item = items.getBigUint64(0, littleEndian);
      if (item < items.getBigUint64(8, littleEndian)) {
        libc().memory.memcpy(out, item, BigInt(size));
        items.setBigUint64(0, item + BigInt(size), littleEndian);
        return 0;
      }
      if ("error" in atEnd) return atEnd.error;
      pointers(out, atEnd.clear).setBigUint64(0, 0n, littleEndian);
      return 0;
    }).address;
  const get_last_error = port.callback(
    { args: ["ptr"], returns: "ptr" },
    (stream) => struct(StreamState).at(stateOf(stream)).error,
  ).address;
  return { get_schema: take(schema), get_next: take(next), get_last_error };
}

/** x86-64, System V: the stream's address arrives in rdi, the destination's in rsi. Offsets are below 120. */
export function x8664Take({ context, list, size, atEnd }: TakeShape): Uint8Array<ArrayBuffer> {
  const taken = [
    ...[0x48, 0x89, 0xf7], // mov rdi, rsi
    ...[0x48, 0x89, 0xce], // mov rsi, rcx
    ...[0xb9, ...int32(size)], // mov ecx, size
    ...[0xf3, 0xa4], // rep movsb: leaves rsi at the end of the item
    ...[0x48, 0x89, 0x70, list], // mov [rax + list], rsi
    ...[0x31, 0xc0], // xor eax, eax
    0xc3, // ret
  ];
  const over = "error" in atEnd
    ? [0xb8, ...int32(atEnd.error), 0xc3] // mov eax, error; ret
    // mov qword ptr [rsi + clear], 0; xor eax, eax; ret
    : [0x48, 0xc7, 0x46, atEnd.clear, ...int32(0), 0x31, 0xc0, 0xc3];
  return new Uint8Array([
    ...[0x48, 0x8b, 0x47, context], // mov rax, [rdi + context]
    ...[0x48, 0x8b, 0x48, list], // mov rcx, [rax + list]
    ...[0x48, 0x3b, 0x48, list + 8], // cmp rcx, [rax + list + 8]
    ...[0x73, taken.length], // jae over
    ...taken,
    ...over,
  ]);
}

/** arm64, AAPCS64: the stream's address arrives in x0, the destination's in x1. Offsets are multiples of 8. */
export function aarch64Take({ context, list, size, atEnd }: TakeShape): Uint8Array<ArrayBuffer> {
  const taken = [
    0xd2800005 | (size / 8) << 5, // mov x5, #size / 8
    0xf8408466, // again: ldr x6, [x3], #8
    0xf8008426, // str x6, [x1], #8
    0xf10004a5, // subs x5, x5, #1
    0x54ffffa1, // b.ne again
    0xf9000043 | (list / 8) << 10, // str x3, [x2, #list]
    0x52800000, // mov w0, #0
    0xd65f03c0, // ret
  ];
  const over = "error" in atEnd
    ? [0x52800000 | atEnd.error << 5, 0xd65f03c0] // mov w0, #error; ret
    : [0xf900003f | (atEnd.clear / 8) << 10, 0x52800000, 0xd65f03c0]; // str xzr, [x1, #clear]; mov w0, #0; ret
  return instructions([
    0xf9400002 | (context / 8) << 10, // ldr x2, [x0, #context]
    0xf9400043 | (list / 8) << 10, // ldr x3, [x2, #list]
    0xf9400044 | ((list + 8) / 8) << 10, // ldr x4, [x2, #list + 8]
    0xeb04007f, // cmp x3, x4
    0x54000002 | (taken.length + 1) << 5, // b.hs over
    ...taken,
    ...over,
  ]);
}

/** x86-64: returns a pointer in the stream's state. */
export function x8664Load(context: number, field: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array([
    ...[0x48, 0x8b, 0x47, context], // mov rax, [rdi + context]
    ...[0x48, 0x8b, 0x40, field], // mov rax, [rax + field]
    0xc3, // ret
  ]);
}

/** arm64: returns a pointer in the stream's state. */
export function aarch64Load(context: number, field: number): Uint8Array<ArrayBuffer> {
  return instructions([
    0xf9400001 | (context / 8) << 10, // ldr x1, [x0, #context]
    0xf9400020 | (field / 8) << 10, // ldr x0, [x1, #field]
    0xd65f03c0, // ret
  ]);
}
