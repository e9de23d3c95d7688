/**
 * Callbacks that a C library calls when an operation completes: machine code that records the result, and puts the
 * operation's number into a ring, from which JavaScript takes it.
 *
 * UCX calls them inside its own functions, on the JavaScript thread. A callback of the runtime would cost 45 to 80 ns
 * there; this is a dozen instructions, and JavaScript's cost per completion does not depend on how many operations are
 * pending.
 *
 * @module
 */
import type { StructDescription } from "../../bindings/abi.ts";
import { type FfiPort, ffiPort, layoutOf, littleEndian } from "../ffi/mod.ts";
import { instructions, mapExecutable } from "./machine_code.ts";

/** The ring of the numbers of completed operations. */
export const completion_ring = {
  written: "u64", // numbers written so far
  mask: "u64", // the number of entries, a power of two and never too few, less one
  entries: "ptr", // u64 *
} as const satisfies StructDescription;

/** The target of `user_data`: one operation. */
export const completion = {
  ring: "ptr", // struct completion_ring *
  status: "i64", // a ucs_status_t
  length: "u64",
  tag: "u64",
  number: "u64", // goes into the ring
} as const satisfies StructDescription;

/**
 * The callbacks by the argument that UCX passes between the status and `user_data`: none (`ucp_send_nbx_callback_t`), a
 * `ucp_tag_recv_info_t *`, or a length (`ucp_stream_recv_nbx_callback_t`, `ucp_am_recv_data_nbx_callback_t`).
 */
export interface CompletionCallbacks {
  readonly plain: bigint;
  readonly tagged: bigint;
  readonly sized: bigint;
}

/** The name of a callback. */
export type CompletionKind = keyof CompletionCallbacks;

const kinds = ["plain", "tagged", "sized"] as const satisfies readonly CompletionKind[];

let made: CompletionCallbacks | undefined;

/** The callbacks of this process, made once; in JavaScript where the system refuses executable memory. */
export function completionCallbacks(): CompletionCallbacks {
  made ??= machineCode(ffiPort()) ?? javaScriptCallbacks(ffiPort());
  return made;
}

function machineCode(port: FfiPort): CompletionCallbacks | null {
  const encode = port.platform.arch === "aarch64" ? aarch64Completion : x8664Completion;
  const addresses = mapExecutable(kinds.map(encode));
  if (addresses === null) return null;
  const [plain = 0n, tagged = 0n, sized = 0n] = addresses;
  return { plain, tagged, sized };
}

/** The same callbacks in JavaScript. Exported for its test: unused where machine code is allowed. */
export function javaScriptCallbacks(port: FfiPort): CompletionCallbacks {
  const { size, offsets } = layoutOf(completion);
  const put = (userData: bigint, status: number, length?: bigint, tag?: bigint) => {
    const record = new DataView(port.memory(userData, size));
    record.setBigInt64(offsets.status, BigInt(status), littleEndian);
    if (length !== undefined) record.setBigUint64(offsets.length, length, littleEndian);
    if (tag !== undefined) record.setBigUint64(offsets.tag, tag, littleEndian);
    const ring = new DataView(port.memory(record.getBigUint64(offsets.ring, littleEndian), 24));
    const written = ring.getBigUint64(0, littleEndian);
    const at = ring.getBigUint64(16, littleEndian) + 8n * (written & ring.getBigUint64(8, littleEndian));
    new DataView(port.memory(at, 8)).setBigUint64(0, record.getBigUint64(offsets.number, littleEndian), littleEndian);
    ring.setBigUint64(0, written + 1n, littleEndian);
  };
  const plain = { args: ["ptr", "i8", "ptr"], returns: "void" } as const;
  const tagged = { args: ["ptr", "i8", "ptr", "ptr"], returns: "void" } as const;
  const sized = { args: ["ptr", "i8", "u64", "ptr"], returns: "void" } as const;
  return {
    plain: port.callback(plain, (_, status, userData) => put(userData, status)).address,
    tagged: port.callback(tagged, (_, status, info, userData) => {
      const received = new DataView(port.memory(info, 16));
      put(userData, status, received.getBigUint64(8, littleEndian), received.getBigUint64(0, littleEndian));
    }).address,
    sized: port.callback(sized, (_, status, length, userData) => put(userData, status, length)).address,
  };
}

const at = layoutOf(completion).offsets;
const ringAt = layoutOf(completion_ring).offsets;

// law native/x8664Completion: native/completion_callbacks
/** x86-64, System V: the status arrives in sil, the rest in rdx and rcx; the last one used is `user_data`. */
export function x8664Completion(kind: CompletionKind): Uint8Array<ArrayBuffer> {
  const [toRecord, fromRecord] = kind === "plain" ? [0x72, 0x02] : [0x71, 0x01]; // [rdx + ...] or [rcx + ...]
  return new Uint8Array([
    ...[0x48, 0x0f, 0xbe, 0xf6], // movsx rsi, sil: the enum is a byte, and the rest of the register is undefined
    ...[0x48, 0x89, toRecord, at.status], // mov [record + status], rsi
    ...(kind === "tagged"
      ? [
        ...[0x48, 0x8b, 0x02], // mov rax, [rdx]: the sender's tag
        ...[0x48, 0x89, 0x41, at.tag], // mov [rcx + tag], rax
        ...[0x48, 0x8b, 0x42, 8], // mov rax, [rdx + 8]: the length
        ...[0x48, 0x89, 0x41, at.length], // mov [rcx + length], rax
      ]
      : []),
    ...(kind === "sized" ? [0x48, 0x89, 0x51, at.length] : []), // mov [rcx + length], rdx
    ...[0x48, 0x8b, fromRecord], // mov rax, [record]: the ring
    ...[0x48, 0x8b, kind === "plain" ? 0x4a : 0x49, at.number], // mov rcx, [record + number]
    ...[0x4c, 0x8b, 0x00], // mov r8, [rax]: written
    ...[0x4c, 0x8b, 0x48, ringAt.entries], // mov r9, [rax + entries]
    ...[0x4d, 0x89, 0xc2], // mov r10, r8
    ...[0x4c, 0x23, 0x50, ringAt.mask], // and r10, [rax + mask]
    ...[0x4b, 0x89, 0x0c, 0xd1], // mov [r9 + 8 * r10], rcx
    ...[0x49, 0xff, 0xc0], // inc r8
    ...[0x4c, 0x89, 0x00], // mov [rax], r8
    0xc3, // ret
  ]);
}

// law native/aarch64Completion: native/completion_callbacks
/** arm64, AAPCS64: the status arrives in w1, the rest in x2 and x3; the last one used is `user_data`. */
export function aarch64Completion(kind: CompletionKind): Uint8Array<ArrayBuffer> {
  return instructions([
    ...(kind === "plain" ? [0xaa0203e3] : []), // mov x3, x2
    0x93401c21, // sxtb x1, w1
    0xf9000061 | (at.status / 8) << 10, // str x1, [x3, #status]
    ...(kind === "tagged"
      ? [
        0xa9401444, // ldp x4, x5, [x2]: the sender's tag, the length
        0xf9000064 | (at.tag / 8) << 10, // str x4, [x3, #tag]
        0xf9000065 | (at.length / 8) << 10, // str x5, [x3, #length]
      ]
      : []),
    ...(kind === "sized" ? [0xf9000062 | (at.length / 8) << 10] : []), // str x2, [x3, #length]
    0xf9400066, // ldr x6, [x3]: the ring
    0xf9400067 | (at.number / 8) << 10, // ldr x7, [x3, #number]
    0xf94000c8, // ldr x8, [x6]: written
    0xf94000c9 | (ringAt.mask / 8) << 10, // ldr x9, [x6, #mask]
    0xf94000ca | (ringAt.entries / 8) << 10, // ldr x10, [x6, #entries]
    0x8a080129, // and x9, x9, x8
    0xf8297947, // str x7, [x10, x9, lsl #3]
    0x91000508, // add x8, x8, #1
    0xf90000c8, // str x8, [x6]
    0xd65f03c0, // ret
  ]);
}
