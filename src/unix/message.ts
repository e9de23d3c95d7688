/**
 * One message over a Unix domain socket, with file descriptors in it: `sendmsg` and `recvmsg`.
 *
 * @module
 */
import { cmsghdr, errno, iovec, MSG, msghdr, SCM, SOL } from "../../bindings/libc.ts";
import { attempt, layoutOf, libc, littleEndian, NativeArena, roundUp, struct, type StructView } from "../ffi/mod.ts";
import { FileDescriptor } from "./file_descriptor.ts";

/** The maximum size of a message: well below what Linux buffers for a socket, so that every message fits whole. */
export const maxBytes = 65536;

/** The maximum number of descriptors in a message: Linux's limit (`SCM_MAX_FD`). */
export const descriptorLimit = 253;

/** What arrived, or why nothing did. */
export type Arrival =
  | { readonly kind: "message"; readonly data: Uint8Array<ArrayBuffer>; readonly descriptors: FileDescriptor[] }
  | { readonly kind: "end" | "nothing yet" }
  | { readonly kind: "cut"; readonly what: "data" | "descriptors" }
  | { readonly kind: "failed"; readonly errno: number };

/** Sends a message if it can be sent at once. @returns bytes sent, or `-errno` */
export function sendMessage(socket: number, data: Uint8Array, descriptors: readonly number[]): number {
  using arena = new NativeArena();
  const controlBytes = descriptors.length === 0 ? 0 : controlSpace(descriptors.length);
  const message = messageOver(arena, data.length, controlBytes);
  message.data.set(data);
  if (descriptors.length > 0) {
    const header = headerAt(message.control, message.controlAddress, 0);
    header.cmsg_len = headerBytes + 4 * descriptors.length;
    header.cmsg_level = SOL.SOCKET;
    header.cmsg_type = SCM.RIGHTS;
    const view = new DataView(message.control.buffer, message.control.byteOffset + headerBytes);
    descriptors.forEach((fd, i) => view.setInt32(4 * i, fd, littleEndian));
  }
  return attempt(() => libc().sockets.sendmsg(socket, message.header.$address, MSG.NOSIGNAL));
}

// law unix/receiveMessage: unix/descriptors, unix/socket
/** Takes the next message if there is one. Descriptors that arrive with a truncated message are closed. */
export function receiveMessage(socket: number): Arrival {
  using arena = new NativeArena();
  const message = messageOver(arena, maxBytes, controlSpace(descriptorLimit));
  const received = attempt(() => libc().sockets.recvmsg(socket, message.header.$address, MSG.CMSG_CLOEXEC));
  if (received === -errno.EAGAIN) return { kind: "nothing yet" };
  if (received < 0) return { kind: "failed", errno: -received };
  const descriptors = descriptorsIn(message.control.subarray(0, message.header.msg_controllen), message.controlAddress);
  const { msg_flags: flags } = message.header;
  if ((flags & (MSG.CTRUNC | MSG.TRUNC)) !== 0) {
    for (const descriptor of descriptors) descriptor.close();
    return { kind: "cut", what: (flags & MSG.CTRUNC) !== 0 ? "descriptors" : "data" };
  }
  if (received === 0) return { kind: "end" };
  return { kind: "message", data: message.data.slice(0, received), descriptors };
}

const headerBytes = layoutOf(cmsghdr).size; // a multiple of 8, as CMSG_DATA() requires

/** CMSG_SPACE() for this many descriptors. */
function controlSpace(descriptors: number): number {
  return headerBytes + roundUp(4 * descriptors, 8);
}

interface Message {
  readonly header: StructView<typeof msghdr>;
  readonly data: Uint8Array<ArrayBuffer>;
  readonly control: Uint8Array<ArrayBuffer>;
  readonly controlAddress: bigint;
}

function messageOver(arena: NativeArena, dataBytes: number, controlBytes: number): Message {
  const data = arena.bytes(dataBytes);
  const control = arena.bytes(controlBytes);
  const part = arena.struct(iovec);
  part.iov_base = data.address;
  part.iov_len = dataBytes;
  const header = arena.struct(msghdr);
  header.msg_iov = part.$address;
  header.msg_iovlen = 1;
  header.msg_control = controlBytes === 0 ? 0n : control.address;
  header.msg_controllen = controlBytes;
  return { header, data: data.bytes, control: control.bytes, controlAddress: control.address };
}

function headerAt(control: Uint8Array<ArrayBuffer>, address: bigint, at: number): StructView<typeof cmsghdr> {
  const { buffer, byteOffset } = control;
  return struct(cmsghdr).over(buffer, address - BigInt(byteOffset), byteOffset + at);
}

// law unix/descriptorsIn: unix/descriptors, unix/socket
/** Adopts all descriptors that have arrived. */
function descriptorsIn(control: Uint8Array<ArrayBuffer>, address: bigint): FileDescriptor[] {
  const found: FileDescriptor[] = [];
  for (let at = 0; at + headerBytes <= control.length;) {
    const { cmsg_len: length, cmsg_level: level, cmsg_type: type } = headerAt(control, address, at);
    if (length < headerBytes) break;
    if (level === SOL.SOCKET && type === SCM.RIGHTS) {
      const view = new DataView(control.buffer, control.byteOffset + at, Math.min(length, control.length - at));
      for (let byte = headerBytes; byte + 4 <= view.byteLength; byte += 4) {
        found.push(FileDescriptor.adopt(view.getInt32(byte, littleEndian)));
      }
    }
    at += roundUp(length, 8);
  }
  return found;
}
