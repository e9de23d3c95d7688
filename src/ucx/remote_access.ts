/**
 * Reading and writing memory of another process, through an endpoint.
 *
 * @module
 */
import { UCP_ATOMIC_OP, ucs_status_t } from "../../bindings/ucp_types.ts";
import { NativeArena, type Out } from "../ffi/mod.ts";
import { checkOptions, isNameIn, none, type OptionNames, show } from "../layout/mod.ts";
import type { EndpointOperations } from "./endpoint_operations.ts";
import { UcxError } from "./error.ts";
import type { UcpFunctions } from "./library.ts";
import { checkLimits, limitOptionNames, type LimitOptions } from "./limit.ts";
import type { Doing, Sendable } from "./message_memory.ts";
import { UcxRemoteKey } from "./remote_memory.ts";
import { untaggedOptionNames } from "./tag_sender.ts";

const atomicCodes = {
  add: UCP_ATOMIC_OP.ADD,
  swap: UCP_ATOMIC_OP.SWAP,
  "compare-and-swap": UCP_ATOMIC_OP.CSWAP,
  and: UCP_ATOMIC_OP.AND,
  or: UCP_ATOMIC_OP.OR,
  xor: UCP_ATOMIC_OP.XOR,
} as const;

/** The operations of {@linkcode UcxEndpoint.atomic}. */
export type AtomicOperation = "add" | "swap" | "compare-and-swap" | "and" | "or" | "xor";

/** Options of {@linkcode UcxEndpoint.atomic}. */
export interface AtomicOptions extends LimitOptions {
  /** The size of the number. Default 8. */
  readonly bytes?: 4 | 8;
  /** The value that the number must have to be swapped: for `compare-and-swap` only. */
  readonly compare?: bigint;
}

const atomicOptionNames: OptionNames<AtomicOptions> = { ...limitOptionNames, bytes: true, compare: true };

/** Why UCX cancels an atomic operation on a healthy endpoint. */
const notInSoftware =
  'Some versions of UCX (1.22 is one) do this in software only without error handling: connect with { errors: "none" }';

// Separate functions: their closures must not reference the endpoint, see `Owner`.
function releasing(remote: UcxRemoteKey): () => void {
  return () => remote.release();
}

function answering(answer: { value: bigint }, reply: Out<"u64">, bytes: 4 | 8, remote: UcxRemoteKey): () => void {
  return () => {
    answer.value = bytes === 8 ? reply.value : reply.value & 0xffff_ffffn;
    remote.release();
  };
}

/** Access to remote memory through one endpoint. */
export class RemoteAccess {
  readonly #operations: EndpointOperations;
  /** Whether any access has begun since the last fence. */
  #hasAccessed = false;
  /** Settles when all accesses before the last fence have taken effect; null if they have. */
  #fence: Promise<void> | null = null;

  constructor(own: EndpointOperations) {
    this.#operations = own;
  }

  // law ucx/RemoteAccess.fence: ucx/remote_memory
  /**
   * As {@linkcode UcxWorker.fence}, but for one endpoint. UCX's own fence does not order what goes different ways, and
   * since 1.14 it blocks this thread until the other side has answered.
   */
  fence(): void {
    if (!this.#hasAccessed) return;
    this.#hasAccessed = false;
    // What makes the flush fail ends the accesses that wait for it.
    const fence = this.#operations.flush(none).catch(() => {}).then(() => {
      if (this.#fence === fence) this.#fence = null;
    });
    this.#fence = fence;
  }

  // law ucx/RemoteAccess.ordered: ucx/remote_memory
  /** When an access whose memory is ready then may begin. */
  #ordered(ready: Promise<void> | null): Promise<void> | null {
    this.#hasAccessed = true;
    if (this.#fence === null || ready === null) return this.#fence ?? ready;
    return Promise.all([this.#fence, ready]).then(() => {});
  }

  /** As {@linkcode UcxEndpoint.remote}. */
  key(key: Uint8Array): UcxRemoteKey {
    const own = this.#operations;
    return new UcxRemoteKey(own.worker.keys, own.identity, own.openHandle("use remote memory"), key);
  }

  /** As {@linkcode UcxEndpoint.put}. */
  put(
    what: Sendable,
    remote: UcxRemoteKey,
    offset: number,
    options: LimitOptions & { readonly copy?: boolean },
  ): Promise<void> {
    const { ucp_put_nbx } = this.#operations.worker.ucp.remote;
    return this.#access("ucp_put_nbx", what, "send", remote, offset, options, ucp_put_nbx);
  }

  /** As {@linkcode UcxEndpoint.get}. */
  get(into: Sendable, remote: UcxRemoteKey, offset: number, options: LimitOptions): Promise<void> {
    const { ucp_get_nbx } = this.#operations.worker.ucp.remote;
    return this.#access("ucp_get_nbx", into, "receive into", remote, offset, options, ucp_get_nbx);
  }

  async #access(
    call: string,
    what: Sendable,
    doing: Doing,
    remote: UcxRemoteKey,
    offset: number,
    options: LimitOptions & { readonly copy?: boolean },
    start: UcpFunctions["remote"]["ucp_put_nbx"],
  ): Promise<void> {
    checkOptions(options, doing === "send" ? untaggedOptionNames : limitOptionNames);
    const own = this.#operations;
    own.openHandle("use remote memory");
    checkRemote(remote);
    checkLimits(options);
    const operation = own.take(call);
    const ready = own.takeMemory(operation, what, doing, options);
    let part: ReturnType<UcxRemoteKey["retainRange"]>;
    try {
      part = remote.retainRange(own.identity, offset, operation.bytes);
      operation.ending = releasing(remote);
    } catch (error) {
      own.putBack(operation);
      throw error;
    }
    await own.later(operation, this.#ordered(ready), options, () => {
      operation.prepare("plain", operation.memoryType);
      const { address, count, parameters } = operation;
      own.worker.progress.begun(operation, start(own.handle, address, count, part.address, part.key, parameters));
    });
  }

  /** As {@linkcode UcxEndpoint.atomic}. */
  async atomic(
    operation: AtomicOperation,
    remote: UcxRemoteKey,
    offset: number,
    operand: bigint,
    options: AtomicOptions,
  ): Promise<bigint> {
    checkOptions(options, atomicOptionNames);
    const own = this.#operations;
    own.openHandle("use remote memory");
    checkRemote(remote);
    checkLimits(options);
    const { bytes = 8, compare } = options;
    const code = isNameIn(atomicCodes, operation) ? atomicCodes[operation] : undefined;
    if (code === undefined || (bytes !== 4 && bytes !== 8)) {
      throw new RangeError(
        `Cannot do ${show(operation)} on ${show(bytes)} bytes: expected ${Object.keys(atomicCodes)} on 4 or 8`,
      );
    }
    if ((compare === undefined) !== (operation !== "compare-and-swap")) {
      throw new TypeError("Expected `compare` for compare-and-swap, and for nothing else");
    }
    for (const number of compare === undefined ? [operand] : [operand, compare]) {
      if (typeof number !== "bigint") {
        throw new TypeError(`Cannot use ${show(number)} as an operand: expected a bigint`);
      }
      if (number < 0n || number >= 1n << BigInt(8 * bytes)) {
        throw new RangeError(`Cannot use ${number} as an operand: expected an unsigned number of ${bytes} bytes`);
      }
    }
    const part = remote.retainRange(own.identity, offset, bytes);
    if (part.address % BigInt(bytes) !== 0n) {
      remote.release();
      throw new RangeError(
        `Cannot change ${bytes} bytes at offset ${offset} of memory at ${remote.address}: expected an offset where ` +
          `the address is a multiple of ${bytes}`,
      );
    }
    const slot = own.take("ucp_atomic_op_nbx");
    // UCX reads the comparand from one place, and the new value from where it writes the old one.
    const memory = new NativeArena();
    const [given, reply] = [memory.out("u64"), memory.out("u64")];
    given.value = compare ?? operand;
    reply.value = operand;
    slot.pin = memory; // until UCX is done with it
    const answer = { value: 0n };
    slot.ending = answering(answer, reply, bytes, remote);
    await own.later<void>(slot, this.#ordered(null), options, () => {
      slot.prepareAtomic(bytes, reply.$address);
      const { ucp, progress } = own.worker;
      const { ucp_atomic_op_nbx } = ucp.remote;
      const begun = ucp_atomic_op_nbx(own.handle, code, given.$address, 1n, part.address, part.key, slot.parameters);
      progress.begun(slot, begun);
    }).catch((error: unknown) => {
      const isCancelled = error instanceof UcxError && error.status === ucs_status_t.UCS_ERR_CANCELED;
      throw isCancelled && own.handle !== 0n ? new UcxError(error.call, error.status, notInSoftware) : error;
    });
    return answer.value;
  }
}

function checkRemote(remote: UcxRemoteKey): void {
  if (remote instanceof UcxRemoteKey) return;
  throw new TypeError(`Cannot use remote memory: expected the result of endpoint.remote(key), got ${show(remote)}`);
}
