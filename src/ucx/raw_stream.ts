/**
 * UCX's stream: bytes in the order in which they were sent, without message boundaries, an end, or a limit on what the
 * other side's UCX buffers.
 *
 * @module
 */
import { UCP_STREAM_RECV_FLAG } from "../../bindings/ucp_types.ts";
import { checkOptions, none } from "../layout/mod.ts";
import type { EndpointOperations } from "./endpoint_operations.ts";
import { checkLimits, limitOptionNames, type LimitOptions } from "./limit.ts";
import type { Receivable, Sendable } from "./message_memory.ts";
import type { Operation } from "./operation.ts";
import { untaggedOptionNames } from "./tag_sender.ts";

/** The stream between an endpoint and the other side's endpoint. */
export class RawStream {
  readonly #operations: EndpointOperations;

  /** Use {@linkcode UcxEndpoint.rawStream}. */
  constructor(own: EndpointOperations) {
    this.#operations = own;
  }

  // law ucx/RawStream.send: ucx/raw_stream
  /**
   * Sends bytes after those sent before. They must not change until the promise is settled.
   *
   * @param what a view, a buffer, JavaScript's own memory, or another library's array
   * @throws {UcxError} if the other side is gone, or UCS_ERR_TIMED_OUT: how much was sent is then unknown
   * @throws {TypeError} as {@linkcode UcxEndpoint.send}
   */
  async send(what: Sendable, options: LimitOptions & { readonly copy?: boolean } = none): Promise<void> {
    const own = this.#operations;
    checkOptions(options, untaggedOptionNames);
    checkLimits(options);
    own.openHandle("send");
    const operation = own.take("ucp_stream_send_nbx");
    const ready = own.takeMemory(operation, what, "send", options);
    if (operation.bytes === 0) return own.putBack(operation); // UCX 1.13 aborts the receiver with a failed assertion
    const begin = () => {
      operation.prepare("plain", operation.memoryType);
      const { address, count, parameters } = operation;
      const { ucp, progress } = own.worker;
      progress.begun(operation, ucp.stream.ucp_stream_send_nbx(own.handle, address, count, parameters));
    };
    await own.later(operation, ready, options, begin);
  }

  // law ucx/RawStream.recvAll: ucx/raw_stream
  /**
   * Receives the next bytes, as many as the memory holds. UCX cannot cancel a receive: one that is ended by its limits
   * still takes its bytes, and later receives get the bytes after them.
   *
   * @param into contiguous writable memory: a view, a buffer, JavaScript's own, or another library's array
   * @throws {UcxError} if the other side is gone, or UCS_ERR_TIMED_OUT
   * @throws {TypeError} as {@linkcode UcxEndpoint.recv}
   */
  async recvAll(into: Receivable, limits: LimitOptions = none): Promise<void> {
    const own = this.#operations;
    checkOptions(limits, limitOptionNames);
    checkLimits(limits);
    own.openHandle("receive");
    const operation = own.takeReceive("ucp_stream_recv_nbx");
    const ready = own.takeMemory(operation, into, "receive into");
    await own.later(operation, ready, limits, () => this.#receive(operation));
  }

  // law ucx/RawStream.receive: ucx/raw_stream
  #receive(operation: Operation): void {
    operation.prepare("sized", operation.memoryType, UCP_STREAM_RECV_FLAG.WAITALL);
    // A receive whose bytes have arrived ends with the status that its request happens to contain, in builds of UCX
    // without assertions (seen with 1.21.0): after an operation that had failed it lost those bytes.
    operation.clearRequest();
    const { ucp, progress } = this.#operations.worker;
    const { address, count, lengthAddress, parameters } = operation;
    const { ucp_stream_recv_nbx } = ucp.stream;
    progress.begun(operation, ucp_stream_recv_nbx(this.#operations.handle, address, count, lengthAddress, parameters));
  }
}
