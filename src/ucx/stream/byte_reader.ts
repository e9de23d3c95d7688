/**
 * The reading end of a byte stream.
 *
 * @module
 */
import { ucs_status_t } from "../../../bindings/ucp_types.ts";
import { littleEndian } from "../../ffi/mod.ts";
import { abortMark, headBytes, streamWindow } from "./byte_chunks.ts";
import { UcxError } from "../error.ts";
import type { RawStream } from "../raw_stream.ts";
import type { StreamControl } from "./stream_control.ts";

/** Receives chunks, and exposes them as a stream. */
export class ByteReader {
  readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #raw: RawStream;
  readonly #notify: (control: StreamControl) => void;
  readonly #head = new DataView(new ArrayBuffer(headBytes));
  #controller: ReadableByteStreamController | undefined;
  /** Bytes of the current chunk that have yet to be received. */
  #left = 0;
  /** Bytes that the program has taken, and how many of them the writer knows of. */
  #taken = 0;
  #notified = 0;
  /** Whether reading has ended. */
  #isOver = false;
  readonly #onOver: () => void;
  /** Ends the wait for a chunk when reading ends: UCX cannot cancel a receive, but nothing awaits it any more. */
  readonly #over = new AbortController();

  /** `onOver` is called once, when reading ends. */
  constructor(raw: RawStream, notify: (control: StreamControl) => void, onOver: () => void) {
    this.#raw = raw;
    this.#notify = notify;
    this.#onOver = onOver;
    // Nothing is requested before a read (a highWaterMark of 0), and chunks for reads without a view are allocated
    // here, not by autoAllocateChunkSize: it would allocate them before it is known how many bytes there are.
    this.readable = new ReadableStream({
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
      },
      pull: (controller) => this.#pull(controller),
      cancel: () => this.#stop("cancelled"),
    });
  }

  async #pull(controller: ReadableByteStreamController): Promise<void> {
    try {
      if (this.#left === 0) this.#left = await this.#nextChunk();
      if (this.#isOver) return;
      if (this.#left === 0) return this.#end(controller);
      // Fetched only after the chunk has been announced: the reader may have gone, or supplied a view, meanwhile.
      const request = controller.byobRequest;
      const into = request?.view ?? new Uint8Array(this.#left);
      const length = Math.min(this.#left, into.byteLength);
      const bytes = new Uint8Array(into.buffer, into.byteOffset, length);
      await this.#raw.recvAll(bytes, { signal: this.#over.signal });
      this.#left -= length;
      if (this.#isOver) return;
      if (request === null) controller.enqueue(bytes); // transferred, and empty from here on
      else request.respond(length);
      this.#take(length);
    } catch (error) {
      if (!this.#isOver) this.fail(error);
    }
  }

  // law ucx/ByteReader.nextChunk: ucx/byte_stream
  /** @returns how many bytes the chunk has; 0 for the end */
  async #nextChunk(): Promise<number> {
    await this.#raw.recvAll(this.#head, { signal: this.#over.signal });
    const length = this.#head.getBigUint64(0, littleEndian);
    const call = "ucp_stream_recv_nbx";
    if (length === abortMark) {
      throw new UcxError(call, ucs_status_t.UCS_ERR_CANCELED, "The other side has aborted what it was writing");
    }
    if (length > BigInt(streamWindow)) {
      const hint = `The other side announced ${length} bytes, expected at most ${streamWindow}. Do both use streams?`;
      throw new UcxError(call, ucs_status_t.UCS_ERR_MESSAGE_TRUNCATED, hint);
    }
    return Number(length);
  }

  #end(controller: ReadableByteStreamController): void {
    this.#stop("end");
    controller.close();
    controller.byobRequest?.respond(0); // a read that waits with a view gets the view back
  }

  // law ucx/ByteReader.take: ucx/byte_stream
  /** Notifies the writer half a window at a time, so that it never waits for a reader that has taken everything. */
  #take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken - this.#notified < streamWindow / 2) return;
    this.#notified = this.#taken;
    this.#notify({ kind: "taken", taken: this.#taken });
  }

  // law ucx/ByteReader.stop: ucx/unclosed
  #stop(kind: "end" | "cancelled"): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.abort();
    this.#onOver();
    this.#notify({ kind, taken: this.#taken });
  }

  /** Ends reading with an error, and notifies the writer. */
  fail(reason: unknown): void {
    if (this.#isOver) return;
    this.#stop("cancelled");
    this.#controller?.error(reason);
  }
}
