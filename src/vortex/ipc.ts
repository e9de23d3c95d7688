/**
 * Vortex IPC messages: arrays between processes.
 *
 * @module
 */
import { showGiven } from "../layout/mod.ts";
import { openAll } from "./open_nodes.ts";
import type { VortexDType } from "./dtype.ts";
import { rootNode } from "./encoded_node.ts";
import { VortexError } from "./error.ts";
import { homeOf, type VortexReadOptions } from "./read_options.ts";
import { type ArrayHome, rootOf, VortexArray } from "./vortex_array.ts";
import { readArray } from "./wire/array_flatbuffer.ts";
import { writeArray } from "./wire/array_writer.ts";
import { readDType, writeDType } from "./wire/dtype_flatbuffer.ts";
import { FlatWriter, type Written } from "./wire/flatbuffer_writer.ts";
import { type IpcMessage, messagesOf, readHeader } from "./wire/ipc_message.ts";
import { type Bytes, checkThere, ownBytes } from "./wire/source.ts";

/** Reads a sequence of messages: a dtype first, then arrays of it. */
class IpcReader {
  readonly #home: ArrayHome;
  #dtype: VortexDType | null = null;

  constructor(home: ArrayHome) {
    this.#home = home;
  }

  /** The array of a message; null for a dtype. */
  read(message: IpcMessage): VortexArray | null {
    const { session, limits } = this.#home;
    switch (message.kind) {
      case "dtype":
        this.#dtype = readDType(message.body, "dtype", limits);
        return null;
      case "buffer":
        throw new VortexError("message", "Cannot read a message with only a buffer: expected a dtype or an array");
      case "array": {
        if (this.#dtype === null) throw new VortexError("message", "An array came first: send its dtype before it");
        const root = rootNode(readArray(message.body, message.ids, limits), this.#dtype, message.rowCount);
        openAll(session, root);
        return VortexArray.ofNode(root, this.#home);
      }
    }
  }
}

/**
 * Reads a message with a dtype and one with an array, as `encode_ipc_array_buffers` of Vortex in Python writes them.
 * Bytes aligned to 8 are not copied.
 *
 * @param dtype the message with the dtype; by default it comes first in `bytes`
 * @throws {VortexError} if they are not such messages, or do not hold exactly one array
 *
 * @example
 * ```ts files
 * import { decodeVortexIpc, encodeVortexIpc, openVortex } from "@causeway/causeway/vortex";
 *
 * using file = await openVortex("examples/trips.vortex"); // a file of this repository's
 * for await (const batch of file.scan({ columns: ["city"], rows: [0, 2] })) {
 *   const { dtype, array } = encodeVortexIpc(batch);
 *   console.log(decodeVortexIpc(array, { dtype }).toArrow().toArray()); // [ { city: "Lyon" }, { city: "Lyon" } ]
 * }
 * ```
 */
export function decodeVortexIpc(
  bytes: Uint8Array,
  options: VortexReadOptions & { readonly dtype?: Uint8Array } = {},
): VortexArray {
  const { dtype, ...rest } = options;
  const reader = new IpcReader(homeOf(rest));
  const parts = dtype === undefined ? [bytes] : [dtype, bytes];
  let array: VortexArray | null = null;
  for (const part of parts) {
    if (!(part instanceof Uint8Array)) throw noBytesFrom(part);
    for (const message of messagesOf(ownBytes(part))) {
      const read = reader.read(message);
      if (read === null) continue;
      if (array !== null) throw new VortexError("message", "There is more than one array: use readVortexIpc");
      array = read;
    }
  }
  return array ?? failMissing();
}

function failMissing(): never {
  throw new VortexError("message", "There is no array in these messages");
}

// law vortex/readVortexIpc: vortex/core/pieces
/**
 * Reads the arrays of a message stream one by one, as they arrive.
 *
 * @param source all bytes, or pieces of any size
 * @throws {VortexError} if they are not messages, or end inside one
 */
export async function* readVortexIpc(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  options: VortexReadOptions = {},
): AsyncGenerator<VortexArray, void, void> {
  const home = homeOf(options);
  const reader = new IpcReader(home);
  if (source instanceof Uint8Array) {
    for (const message of messagesOf(ownBytes(source))) {
      const array = reader.read(message);
      if (array !== null) yield array;
    }
    return;
  }
  const pieces = new Pieces(source, home.limits.bytes);
  try {
    for (;;) {
      const size = await pieces.take(4);
      if (size === null) return;
      const header = readHeader(await pieces.need(new DataView(size.buffer).getUint32(0, true)));
      const array = reader.read(header.withBody(await pieces.need(header.bodySize)));
      if (array !== null) yield array;
    }
  } catch (error) {
    await pieces.close().catch(() => {}); // what went wrong first counts
    throw error;
  } finally {
    await pieces.close();
  }
}

function endsInside(): never {
  throw new VortexError("message", "The stream ends inside a message");
}

function noBytesFrom(given: unknown): TypeError {
  return new TypeError(`Cannot read Vortex messages from ${showGiven(given)}: expected a Uint8Array, or many of them`);
}

/** Bytes that arrive in pieces. */
class Pieces {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #most: number;
  #here: Uint8Array[] = [];
  #count = 0;
  /** Whether the source has ended, has failed, or was told to end. */
  #isOver = false;

  constructor(source: AsyncIterable<Uint8Array>, most: number) {
    if (typeof source?.[Symbol.asyncIterator] !== "function") throw noBytesFrom(source);
    this.#source = source[Symbol.asyncIterator]();
    this.#most = most;
  }

  // law vortex/Pieces.take: vortex/core/ops, public/untyped
  /**
   * The next `size` bytes, in separate memory; null at the end.
   *
   * @throws {VortexError} if the end comes too early
   * @throws {TypeError} for a piece that is not bytes, or was transferred
   */
  async take(size: number): Promise<Bytes | null> {
    if (size > this.#most) {
      throw new VortexError("message", `A message has ${size} bytes, more than the limit of ${this.#most}`);
    }
    while (this.#count < size) {
      this.#isOver = true; // if it fails
      const { value, done } = await this.#source.next();
      if (done === true) break;
      this.#isOver = false;
      if (!(value instanceof Uint8Array)) throw noBytesFrom(value);
      checkThere(value.buffer);
      this.#here.push(value);
      this.#count += value.length;
    }
    if (this.#count === 0 && size > 0) return null;
    const taken = new Uint8Array(size);
    let at = 0;
    while (at < size) {
      const first = this.#here.shift() ?? endsInside();
      checkThere(first.buffer);
      const part = first.subarray(0, size - at);
      taken.set(part, at);
      at += part.length;
      if (part.length < first.length) this.#here.unshift(first.subarray(part.length));
    }
    this.#count -= size;
    return taken;
  }

  /** Like `take`, but the bytes must be there. */
  async need(size: number): Promise<Bytes> {
    const bytes = await this.take(size);
    return bytes ?? endsInside();
  }

  // law vortex/Pieces.close: vortex/core/pieces
  /** Tells a source that is not read to its end that no more of it is wanted: it may hold a file or a connection. */
  async close(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#source.return?.();
  }
}

/**
 * Writes an array as two messages, one with its dtype and one with the array, for `decodeVortexIpc` or for
 * `vortex._lib.serde.decode_ipc_array(array, dtype)` of Vortex in Python. Encoded arrays keep their encodings.
 *
 * @throws {TypeError} if it is not a VortexArray
 */
export function encodeVortexIpc(array: VortexArray): { readonly dtype: Bytes; readonly array: Bytes } {
  if (!(array instanceof VortexArray)) {
    throw new TypeError(`Cannot write messages: expected a VortexArray, got ${showGiven(array)}`);
  }
  const { body, ids } = writeArray(rootOf(array));
  const dtype = writeDType(array.dtype);
  return {
    dtype: messageOf(3, (writer) => writer.table([]), dtype),
    array: messageOf(
      1,
      (writer) => writer.table([{ u32: array.length }, writer.offsets(ids.map((id) => writer.text(id)))]),
      body,
    ),
  };
}

function messageOf(kind: number, header: (writer: FlatWriter) => Written, body: Bytes): Bytes {
  const writer = new FlatWriter();
  const flatbuffer = writer.finish(writer.table([null, { u8: kind }, header(writer), { u64: body.length }]));
  const message = new Uint8Array(4 + flatbuffer.length + body.length);
  new DataView(message.buffer).setUint32(0, flatbuffer.length, true);
  message.set(flatbuffer, 4);
  message.set(body, 4 + flatbuffer.length);
  return message;
}
