/**
 * The writing end of a byte stream.
 *
 * @module
 */
import { ucs_status_t } from "../../../bindings/ucp_types.ts";
import { littleEndian } from "../../ffi/mod.ts";
import { abortMark, endMark, headBytes, queuedBytes, streamWindow } from "./byte_chunks.ts";
import { UcxError } from "../error.ts";
import type { RawStream } from "../raw_stream.ts";
import type { StreamControl } from "./stream_control.ts";

/** Chunks up to this size are copied after their length and sent together. */
const copiedBytes = 4096;

/** Sends chunks that are written to a stream. */
export class ByteWriter {
  readonly writable: WritableStream<Uint8Array>;
  readonly #raw: Pick<RawStream, "send">;
  readonly #notify: (control: StreamControl) => void;
  readonly #waitsFor: (end: Promise<void>) => Promise<void>;
  readonly #delivered = Promise.withResolvers<void>();
  #controller: WritableStreamDefaultController | undefined;
  /** Bytes sent, and how many of them the reader has taken. */
  #sent = 0;
  #taken = 0;
  /** What a write waits for when it is a whole window ahead. */
  #room: PromiseWithResolvers<void> | null = null;
  #state: "open" | "closed" | "failed" = "open";
  #failure: { readonly reason: unknown } | null = null;

  readonly #onOver: () => void;

  /** `waitsFor` keeps the process alive until a promise settles; `onOver` is called when writing ends. */
  constructor(
    raw: Pick<RawStream, "send">,
    notify: (control: StreamControl) => void,
    waitsFor: (end: Promise<void>) => Promise<void>,
    onOver: () => void,
  ) {
    this.#onOver = onOver;
    this.#raw = raw;
    this.#notify = notify;
    this.#waitsFor = waitsFor;
    const strategy = { highWaterMark: queuedBytes, size: (chunk: unknown) => isBytes(chunk) ? chunk.byteLength : 0 };
    this.writable = new WritableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        controller.signal.addEventListener("abort", () => this.#room?.reject(controller.signal.reason));
      },
      write: (chunk) => this.#write(chunk),
      close: () => this.#mark(endMark, "closed"),
      abort: () => this.#mark(abortMark, "failed"),
    }, strategy);
  }

  /** Settles when the other side has taken the end, or never will; null if no end was sent. */
  get delivered(): Promise<void> | null {
    return this.#state === "closed" ? this.#waitsFor(this.#delivered.promise) : null;
  }

  // law ucx/ByteWriter.write: ucx/byte_stream
  async #write(chunk: unknown): Promise<void> {
    try {
      if (!isBytes(chunk)) {
        const given = typeof chunk === "object" ? Object.prototype.toString.call(chunk) : typeof chunk;
        throw new TypeError(
          `Cannot write ${given}: expected a Uint8Array or other bytes that are not shared. Encode it first.`,
        );
      }
      if (this.#sent === 0 && chunk.byteLength > 0) this.#notify({ kind: "writing", taken: 0 });
      const bytes = ArrayBuffer.isView(chunk)
        ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
        : new Uint8Array(chunk);
      for (let at = 0; at < bytes.length;) {
        const room = streamWindow - (this.#sent - this.#taken);
        if (room === 0) {
          await this.#moreRoom();
          continue;
        }
        // UCX would refuse memory that may shrink, after the length of the piece has been sent.
        const piece = bytes.buffer.resizable ? bytes.slice(at, at + room) : bytes.subarray(at, at + room);
        at += piece.length;
        this.#sent += piece.length;
        await this.#send(piece);
      }
    } catch (error) {
      // The stream already knows that it has failed; its reader may not.
      if (this.#state === "open") await this.#mark(abortMark, "failed").catch(() => {});
      throw error;
    }
  }

  /** Sends a chunk: its length and its bytes, with nothing between them. */
  async #send(piece: Uint8Array): Promise<void> {
    const length = head(BigInt(piece.length), piece.length <= copiedBytes ? piece.length : 0);
    if (piece.length > copiedBytes) {
      await Promise.all([this.#raw.send(length), this.#raw.send(piece)]);
      return;
    }
    length.set(piece, headBytes);
    await this.#raw.send(length);
  }

  // law ucx/ByteWriter.moreRoom: ucx/byte_stream
  async #moreRoom(): Promise<void> {
    this.#controller?.signal.throwIfAborted();
    if (this.#failure !== null) throw this.#failure.reason; // meanwhile: it would not be reported again
    this.#room = Promise.withResolvers();
    await this.#waitsFor(this.#room.promise);
  }

  /** Notifies the reader that no bytes follow. */
  async #mark(mark: bigint, state: "closed" | "failed"): Promise<void> {
    this.#state = state;
    this.#onOver();
    await this.#raw.send(head(mark, 0));
  }

  // law ucx/ByteWriter.onControl: ucx/byte_stream
  /** Handles a control message from the reader. */
  onControl({ kind, taken }: StreamControl): void {
    if (kind === "cancelled") {
      this.fail(canceled("The other side has stopped reading: it has cancelled its stream, or closed its endpoint"));
    } else if (kind === "end") this.#delivered.resolve();
    else if (kind !== "taken") return;
    else if (!(taken >= this.#taken && taken <= this.#sent)) {
      this.fail(canceled(`The other side claims to have read ${taken} bytes of ${this.#sent}`));
    } else {
      this.#taken = taken;
      this.#room?.resolve();
      this.#room = null;
    }
  }

  /** Ends writing, and notifies the reader after the bytes that were written. */
  abandon(reason: unknown): void {
    if (this.#state !== "open") return;
    if (this.#sent > 0) this.#raw.send(head(abortMark, 0)).catch(() => {});
    this.fail(reason);
  }

  /** Ends writing with an error. May run inside a UCX callback. */
  fail(reason: unknown): void {
    this.#delivered.resolve();
    if (this.#state !== "open") return;
    this.#state = "failed";
    this.#onOver();
    this.#failure = { reason };
    this.#room?.reject(reason);
    this.#controller?.error(reason);
  }
}

function canceled(hint: string): UcxError {
  return new UcxError("ucp_stream_send_nbx", ucs_status_t.UCS_ERR_CANCELED, hint);
}

/** Whether a chunk can be sent. Shared memory cannot: UCX would fail to send it, after its length was already sent. */
function isBytes(chunk: unknown): chunk is ArrayBuffer | ArrayBufferView<ArrayBuffer> {
  return chunk instanceof ArrayBuffer || (ArrayBuffer.isView(chunk) && chunk.buffer instanceof ArrayBuffer);
}

/** The length before a chunk, with room for its bytes. */
function head(length: bigint, room: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(headBytes + room);
  new DataView(bytes.buffer).setBigUint64(0, length, littleEndian);
  return bytes;
}
