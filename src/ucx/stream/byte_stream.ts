/**
 * The streams of an endpoint: bytes in both directions, each with an end and with backpressure.
 *
 * @module
 */
import { ByteReader } from "./byte_reader.ts";
import { ByteWriter } from "./byte_writer.ts";
import type { EndpointOperations } from "../endpoint_operations.ts";
import type { RawStream } from "../raw_stream.ts";
import { sendControl, type StreamControl } from "./stream_control.ts";

/** The two streams of one endpoint, created on first access. */
export class ByteStream {
  readonly #raw: RawStream;
  readonly #notify: (control: StreamControl) => void;
  readonly #waitsFor: (end: Promise<void>) => Promise<void>;
  #reader: ByteReader | undefined;
  #writer: ByteWriter | undefined;
  /** Whether the other side writes, or reads no more: known even before the streams are accessed here. */
  #hasWriter = false;
  #cancelled: StreamControl | undefined;
  #isClosing = false;
  readonly #canNotify: boolean;
  readonly #retainWorker: () => () => void;
  /** Why reading and writing have ended. */
  #over: { readonly reason: unknown } | undefined;

  // law ucx/ByteStream.constructor: ucx/failing_calls
  /**
   * @param canNotify whether the other side can be notified of the end: without error handling, a message to an
   *   endpoint that was closed meanwhile aborts its process with a failed assertion in UCX
   * @param sender the checksum of this worker's address
   * @param retainWorker keeps the worker from being collected until the returned function is called: as long as a
   *   stream is open its end may be awaited
   */
  constructor(
    own: EndpointOperations,
    raw: RawStream,
    canNotify: boolean,
    sender: () => number,
    retainWorker: () => () => void,
  ) {
    this.#retainWorker = retainWorker;
    this.#raw = raw;
    this.#canNotify = canNotify;
    this.#notify = (control) => {
      if (!canNotify && this.#isClosing) return;
      // The other side waits for it. Of an endpoint that has failed or is closed the streams have ended before.
      sendControl(own, control, sender).catch((error: unknown) => this.end(error));
    };
    this.#waitsFor = (end) => own.worker.progress.waitsFor(end);
  }

  // law ucx/ByteStream.streams: ucx/dropped
  get readable(): ReadableStream<Uint8Array<ArrayBuffer>> {
    if (this.#reader === undefined) {
      this.#reader = new ByteReader(this.#raw, this.#notify, this.#retainWorker());
      if (this.#over !== undefined) this.#reader.fail(this.#over.reason);
    }
    return this.#reader.readable;
  }

  get writable(): WritableStream<Uint8Array> {
    if (this.#writer === undefined) {
      this.#writer = new ByteWriter(this.#raw, this.#notify, this.#waitsFor, this.#retainWorker());
      if (this.#over !== undefined) this.#writer.fail(this.#over.reason);
      else if (this.#cancelled !== undefined) this.#writer.onControl(this.#cancelled);
    }
    return this.#writer.writable;
  }

  /** Settles when a closed stream has been taken to its end, or never will be; null if there is nothing to wait for. */
  get delivered(): Promise<void> | null {
    return this.#writer?.delivered ?? null;
  }

  // law ucx/ByteStream.onControl: ucx/byte_stream
  /** Handles a control message from the other side's streams. Called by the worker. */
  onControl(control: StreamControl): void {
    if (control.kind === "writing") {
      this.#hasWriter = true;
      // It was in flight when the close began, which had no writer to notify then.
      if (this.#over !== undefined && this.#reader === undefined) this.#notify({ kind: "cancelled", taken: 0 });
    }
    if (control.kind === "cancelled") this.#cancelled = control;
    this.#writer?.onControl(control);
  }

  // law ucx/ByteStream.closing: ucx/byte_stream
  /** Ends reading, and ends writing unless the stream was closed, because the endpoint is closing. */
  closing(reason: unknown): void {
    if (this.#over !== undefined) return;
    this.#isClosing = true;
    if (this.#reader !== undefined) this.#reader.fail(reason);
    else if (this.#hasWriter) this.#notify({ kind: "cancelled", taken: 0 });
    if (this.#canNotify) this.#writer?.abandon(reason);
    else this.#writer?.fail(reason);
    this.#over = { reason };
  }

  /** Notifies the other side about the endpoint. @returns whether it can be notified */
  notify(kind: "closed" | "acknowledged"): boolean {
    if (this.#canNotify) this.#notify({ kind, taken: 0 });
    return this.#canNotify;
  }

  /** Ends both streams, because the endpoint is gone. */
  end(reason: unknown): void {
    this.closing(reason);
    this.#writer?.fail(reason);
  }
}
