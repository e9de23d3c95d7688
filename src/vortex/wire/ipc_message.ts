/**
 * Vortex IPC messages: a size, a flatbuffer that describes what follows, and a body.
 *
 * @module
 */
import { VortexError } from "../error.ts";
import { FlatTable } from "./flatbuffer.ts";
import type { Bytes } from "./source.ts";

/** A message. */
export type IpcMessage =
  | { readonly kind: "dtype"; readonly body: Bytes }
  | { readonly kind: "array"; readonly body: Bytes; readonly rowCount: number; readonly ids: readonly string[] }
  | { readonly kind: "buffer"; readonly body: Bytes };

/** The header of a message: its kind, and how many bytes of body follow. */
export interface IpcHeader {
  readonly bodySize: number;
  /** Makes the message, once its body has arrived. */
  readonly withBody: (body: Bytes) => IpcMessage;
}

/** Maximum number of tables in a header, which has few. */
const headerTables = 8;

function fail(why: string): never {
  throw new VortexError("message", `Cannot read a Vortex message: ${why}`);
}

/** Reads the flatbuffer of a message. */
export function readHeader(bytes: Bytes): IpcHeader {
  const table = FlatTable.root(bytes, "message", "message", headerTables);
  const version = table.u8(0);
  if (version !== 0) fail(`its version is ${version}. Expected 0`);
  const kind = table.u8(1);
  const header = table.table(2) ?? fail("it has no header");
  const bodySize = table.u64(3);
  switch (kind) {
    case 1: {
      const [rowCount, ids] = [header.u32(0), header.texts(1)];
      return { bodySize, withBody: (body) => ({ kind: "array", body, rowCount, ids }) };
    }
    case 2:
      return { bodySize, withBody: (body) => ({ kind: "buffer", body }) };
    case 3:
      return { bodySize, withBody: (body) => ({ kind: "dtype", body }) };
    default:
      return fail(`its kind is ${kind}. Expected 1 to 3`);
  }
}

/** Reads the messages in bytes, one after the other. */
export function* messagesOf(bytes: Bytes): Generator<IpcMessage> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = 0; at < bytes.length;) {
    if (at + 4 > bytes.length) fail("it ends inside a size");
    const size = view.getUint32(at, true);
    const start = at + 4 + size;
    if (start > bytes.length) fail(`its header has ${size} bytes, more than available`);
    const header = readHeader(bytes.subarray(at + 4, start));
    at = start + header.bodySize;
    if (at > bytes.length) fail(`its body has ${header.bodySize} bytes, more than available`);
    yield header.withBody(bytes.subarray(start, at));
  }
}
