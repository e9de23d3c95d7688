/**
 * Sending by tag through an endpoint.
 *
 * @module
 */
import { checkOptions, none, type OptionNames, showGiven } from "../layout/mod.ts";
import type { EndpointOperations } from "./endpoint_operations.ts";
import { checkLimits, checkTimeout, limitOptionNames, type LimitOptions } from "./limit.ts";
import { isOnGpu, type Sendable } from "./message_memory.ts";
import { partHeaders } from "./message_parts.ts";
import type { Operation } from "./operation.ts";

/** Options of {@linkcode UcxEndpoint.send}. */
export interface SendOptions extends LimitOptions {
  /** The tag that the receiver matches. Default 0; with the protocol `ucxx`, that of messages without a tag. */
  readonly tag?: bigint;
  /**
   * Only with the protocol `ucxx`: true sends the tag as it is, like UCXX's `force_tag`. Default false: hashed with the
   * number of the connection.
   */
  readonly exact?: boolean;
  /** False refuses memory that is not contiguous. Default true: its elements are sent in C order, from a copy. */
  readonly copy?: boolean;
}

/** Options of {@linkcode UcxEndpoint.sendSync}. */
export interface SendSyncOptions {
  /** As {@linkcode SendOptions.tag}. */
  readonly tag?: bigint;
  /** As {@linkcode SendOptions.exact}. */
  readonly exact?: boolean;
  /** Cancels the send after this many milliseconds, with UCS_ERR_TIMED_OUT. */
  readonly timeout?: number;
  /** As {@linkcode SendOptions.copy}. */
  readonly copy?: boolean;
}

const sendSyncOptionNames: OptionNames<SendSyncOptions> = { tag: true, exact: true, timeout: true, copy: true };

/** The names of the options of what is sent without a tag. */
export const untaggedOptionNames: OptionNames<LimitOptions & { readonly copy?: boolean }> = {
  ...limitOptionNames,
  copy: true,
};

const sendOptionNames: OptionNames<SendOptions> = { ...untaggedOptionNames, tag: true, exact: true };

/** Sends tagged messages through one endpoint. */
export class TagSender {
  readonly #endpoint: EndpointOperations;

  constructor(endpoint: EndpointOperations) {
    this.#endpoint = endpoint;
  }

  /** As {@linkcode UcxEndpoint.send}. */
  send(what: Sendable, options: SendOptions): Promise<void> {
    try {
      const endpoint = this.#endpoint;
      if (options !== none) checkOptions(options, sendOptionNames);
      endpoint.openHandle("send");
      const tag = endpoint.tags.toSend(options);
      const { signal } = options;
      if (options !== none) checkLimits(options);
      const operation = endpoint.take("ucp_tag_send_nbx");
      const ready = endpoint.takeMemory(operation, what, "send", options);
      if (ready === null && endpoint.isInTurn && options.timeout === undefined) {
        this.#begin(operation, tag);
        return endpoint.worker.progress.settled(operation, signal);
      }
      return this.#sendLater(operation, tag, ready, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A separate function: one that creates closures allocates memory for its variables at each call. */
  #sendLater(operation: Operation, tag: bigint, ready: Promise<void> | null, limits: LimitOptions): Promise<void> {
    return this.#endpoint.later(operation, ready, limits, () => this.#begin(operation, tag));
  }

  /** As {@linkcode UcxEndpoint.sendSync}. */
  sendSync(what: Sendable, options: SendSyncOptions): void {
    const endpoint = this.#endpoint;
    if (options !== none) checkOptions(options, sendSyncOptionNames);
    endpoint.openHandle("send");
    const tag = endpoint.tags.toSend(options);
    const { timeout } = options;
    if (!endpoint.isInTurn) {
      throw new TypeError("Cannot send: earlier operations wait for a stream or a fence. Await them first.");
    }
    if (timeout !== undefined) checkTimeout(timeout);
    const operation = endpoint.take("ucp_tag_send_nbx");
    endpoint.takeMemorySync(operation, what, "send", options);
    this.#begin(operation, tag);
    const { progress } = endpoint.worker;
    progress.runUntilDone(operation, timeout);
    progress.taken(operation, timeout);
  }

  // law ucx/TagSender.sendMany: ucx/message_parts, ucx/message_list
  /** As {@linkcode UcxEndpoint.sendMany}. */
  async sendMany(parts: readonly Sendable[], options: SendOptions): Promise<void> {
    const endpoint = this.#endpoint;
    checkOptions(options, sendOptionNames);
    endpoint.openHandle("send");
    const tag = endpoint.tags.toSend(options);
    checkLimits(options);
    if (!Array.isArray(parts)) throw new TypeError(`Expected an array of what to send, got ${showGiven(parts)}`);
    const operations: Operation[] = [];
    const waits: Promise<void>[] = [];
    const take = (what: Sendable) => {
      const operation = endpoint.take("ucp_tag_send_nbx");
      const ready = endpoint.takeMemory(operation, what, "send", options);
      operations.push(operation);
      if (ready !== null) waits.push(ready);
    };
    try {
      for (const part of parts) take(part);
      const data = operations.splice(0);
      for (const header of partHeaders(data.map((one) => ({ bytes: one.bytes, isCuda: isOnGpu(one) })))) take(header);
      operations.push(...data);
    } catch (error) {
      for (const operation of operations) endpoint.putBack(operation);
      throw error;
    }
    // All of them in one turn: no other message of the same tag comes between them.
    const ready = waits.length === 0 ? null : Promise.all(waits).then(() => {});
    await endpoint.laterAll(operations, ready, options, (operation) => this.#begin(operation, tag));
  }

  #begin(operation: Operation, tag: bigint): void {
    operation.prepare("plain", operation.memoryType);
    const { own, count, parameters } = operation;
    const { handle, worker: { ucp, progress } } = this.#endpoint;
    const answer = own === null
      ? ucp.tag.ucp_tag_send_nbx(handle, operation.address, count, tag, parameters)
      : ucp.tagOwn.ucp_tag_send_nbx(handle, own, count, tag, parameters);
    progress.begunOwn(operation, answer);
  }
}
