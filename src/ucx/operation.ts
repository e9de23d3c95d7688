/**
 * Operations: requests to UCX, in native memory that is reused.
 *
 * An operation is a record that a completion callback fills in (`native/`), the parameters of the UCX call, and room
 * for UCX's own request. On completion the callback puts the operation's number into a ring, which JavaScript drains:
 * the cost of a completion does not depend on how many operations are pending. To add a kind of request, write
 * a class like `RawStream` (`raw_stream.ts`): the steps are in `mod.ts`.
 *
 * @module
 */
import {
  UCP_DATATYPE,
  UCP_OP_ATTR_FLAG,
  UCP_REQUEST_PARAM_FIELD,
  ucp_request_param_t,
  ucs_status_t,
} from "../../bindings/ucp_types.ts";
import { allocate, ffiPort, layoutOf, libc, roundUp } from "../ffi/mod.ts";
import {
  completion,
  completion_ring,
  type CompletionCallbacks,
  completionCallbacks,
  type CompletionKind,
} from "../native/mod.ts";
import { BuffersInUse } from "./buffers_in_use.ts";
import type { PendingCopy } from "./pending_copies.ts";
import { TakenMemory } from "./taken_memory.ts";

/** Not imported: see `ffi/endian.ts`. */
const littleEndian = true;

/**
 * The owner of operations, with which they end. It must not reference an endpoint or a worker: an operation may still
 * be in flight after they have been collected.
 */
export interface Owner {
  /** Called once, when UCX is done with an operation and before its promise settles. */
  ended(operation: Operation): void;
  /** Aborted, with the reason, once nothing may begin for this owner any more. */
  readonly over?: AbortSignal;
}

/** Owns operations whose completion need not be tracked. */
export class UntrackedOwner implements Owner {
  readonly over?: AbortSignal;

  constructor(over?: AbortSignal) {
    if (over !== undefined) this.over = over;
  }

  ended(): void {}
}

/** Owns operations whose completion can be awaited: those in flight, or waiting for their memory. */
export class CountingOwner implements Owner {
  count = 0;
  #drained: PromiseWithResolvers<void> | undefined;

  // law ucx/CountingOwner.ended: ucx/endpoint
  ended(): void {
    if (--this.count === 0) this.forget();
  }

  /** Settles when there are none, or they are no longer counted. */
  drained(): Promise<void> {
    this.#drained = Promise.withResolvers();
    return this.#drained.promise;
  }

  /** Ends the wait for their completion. */
  forget(): void {
    this.#drained?.resolve();
  }
}

/** Where a request lies: in the operation's own memory (`ours`), or in memory of UCX, which must be freed. */
export type Request = "ours" | "ucx";

const record = layoutOf(completion).offsets;
const field = layoutOf(ucp_request_param_t).offsets;
const ringField = layoutOf(completion_ring).offsets;

/** Offsets of an operation's parameters and of UCX's request, after the record. */
const parametersAt = 64;
const requestAt = roundUp(parametersAt + layoutOf(ucp_request_param_t).size, 32);

const { request, cb, user_data, memory_type, datatype, reply_buffer, flags: flagsField } = UCP_REQUEST_PARAM_FIELD;

/** Bits of `op_attr_mask`: with `NO_IMM_CMPL` every receive completes by its callback, which alone knows its length. */
const masks = {
  plain: request | cb | user_data | memory_type,
  tagged: request | cb | user_data | memory_type | UCP_OP_ATTR_FLAG.NO_IMM_CMPL,
  sized: request | cb | user_data | memory_type | flagsField | UCP_OP_ATTR_FLAG.NO_IMM_CMPL,
} as const satisfies Record<CompletionKind, number>;

// law ucx/isUnambiguous: ucx/operation
/**
 * Whether the lower half of UCX's return value distinguishes the three cases: 0 (done), a status from -1 to -100
 * (failed), or the address of a request. Reading all of it would allocate a bigint.
 */
export function isUnambiguous(request: bigint): boolean {
  const low = BigInt.asIntN(32, request);
  return low > 0n || low < BigInt(ucs_status_t.UCS_ERR_LAST);
}

/** The functions that begin a send, a put or a get. */
const transfers: ReadonlySet<string> = new Set([
  ...["ucp_tag_send_nbx", "ucp_am_send_nbx", "ucp_stream_send_nbx"],
  ...["ucp_put_nbx", "ucp_get_nbx"],
]);

/** The bytes of a view from an offset on. */
function bytesFrom({ buffer, byteOffset, byteLength }: DataView, offset: number): Uint8Array {
  return new Uint8Array(buffer, byteOffset + offset, byteLength - offset);
}

/** A request to UCX, begun or not. UCX may read or write its memory until it has completed. */
export class Operation extends TakenMemory {
  /** A `ucp_request_param_t *` for the call that begins it. */
  readonly parameters: bigint;
  /** Its index among the operations of its worker. */
  readonly number: number;
  /** The function that began it, for errors. */
  call = "";
  owner: Owner | null = null;
  /** Whether `address` points to a list of pieces (`ucp_dt_iov_t`). */
  isList = false;
  /** The tag of the message that it receives, if only one matches: it need not be read. */
  onlyTag: bigint | null = null;
  /** Settle its promise; null if it has none, because the caller blocks on it or it was abandoned. */
  resolve: ((result: unknown) => void) | null = null;
  reject: ((reason: unknown) => void) | null = null;
  /** Runs before the memory is freed, to read what UCX has written to it. */
  ending: (() => void) | null = null;
  /** Disarms the signal or timer that would end it. */
  disarm: (() => void) | null = null;
  /** Whether it was handed to UCX, and whether UCX is done with it. */
  isBegun = false;
  isDone = false;
  /** Whether it is among those of its pool that have begun. */
  isNoted = false;
  /** Whether it is no longer awaited: it is free as soon as UCX is done with it. */
  isAbandoned = false;
  /** Whether the caller blocks on it, and then returns it to the pool. */
  isWaitedFor = false;
  /** The copy of received data to their destination: UCX is done with it, and its promise is not settled yet. */
  lands: PendingCopy | null = null;
  /** Why that copy has failed. */
  failure: Error | null = null;
  /** Why the caller no longer blocks on it, although UCX may never complete it. */
  unblocked: { readonly reason: unknown } | null = null;
  /** The request that UCX has allocated, if it is not ours. */
  foreign = 0n;
  readonly #request: bigint;
  readonly #memory: DataView;
  /** The memory of that request; null before {@linkcode clearRequest}. */
  #requestMemory: Uint8Array | null = null;
  readonly #callbacks: CompletionCallbacks;
  #kind: CompletionKind | null = null;
  #mask = 0;
  #writtenType = 0;

  /** Use {@linkcode OperationPool.take}. */
  constructor(address: bigint, memory: DataView, ring: bigint, number: number, requestBytes: number) {
    super();
    this.parameters = address + BigInt(parametersAt);
    this.number = number;
    this.#memory = memory;
    this.#callbacks = completionCallbacks();
    this.#request = address + BigInt(requestAt + requestBytes); // UCX's request ends there
    memory.setBigUint64(record.ring, ring, littleEndian);
    memory.setBigUint64(record.number, BigInt(number), littleEndian);
    memory.setBigUint64(parametersAt + field.request, this.#request, littleEndian);
    memory.setBigUint64(parametersAt + field.user_data, address, littleEndian);
  }

  /** Makes the operation use `count` pieces of memory, listed at an address. */
  override useList(address: bigint, count: number): void {
    super.useList(address, count);
    this.isList = true;
  }

  // law ucx/Operation.prepare: ucx/operation
  /** Writes the parameters. */
  prepare(kind: CompletionKind, memoryType: number, flags: number | null = null, whose: Request = "ours"): void {
    const memory = this.#memory;
    let mask: number = flags === null ? masks[kind] : masks[kind] | flagsField;
    if (this.isList) {
      mask |= datatype;
      memory.setBigUint64(parametersAt + field.datatype, UCP_DATATYPE.IOV, littleEndian);
    }
    if (whose === "ucx") mask = cb | user_data | (flags === null ? 0 : flagsField);
    if (kind !== this.#kind) {
      this.#kind = kind;
      memory.setBigUint64(parametersAt + field.cb, this.#callbacks[kind], littleEndian);
    }
    if (mask !== this.#mask) {
      this.#mask = mask;
      memory.setUint32(parametersAt + field.op_attr_mask, mask, littleEndian);
    }
    if (memoryType !== this.#writtenType) {
      this.#writtenType = memoryType;
      memory.setInt32(parametersAt + field.memory_type, memoryType, littleEndian);
    }
    if (flags !== null) memory.setUint32(parametersAt + field.flags, flags, littleEndian);
  }

  /** Writes the parameters of an atomic operation on one number, whose previous value is written to `reply`. */
  prepareAtomic(bytes: 4 | 8, reply: bigint): void {
    this.prepare("plain", this.#writtenType);
    const memory = this.#memory;
    this.#mask = request | cb | user_data | datatype | reply_buffer;
    memory.setUint32(parametersAt + field.op_attr_mask, this.#mask, littleEndian);
    memory.setBigUint64(parametersAt + field.datatype, BigInt(bytes) << 3n, littleEndian); // ucp_dt_make_contig
    memory.setBigUint64(parametersAt + field.reply_buffer, reply, littleEndian);
  }

  // law ucx/Operation.clearRequest: ucx/raw_stream
  /** Clears the memory of its UCX request, where an earlier one may have left its status. Before it begins. */
  clearRequest(): void {
    this.#requestMemory ??= bytesFrom(this.#memory, requestAt);
    this.#requestMemory.fill(0);
  }

  /** Whether it reads or writes memory here for a peer that may never answer: a send, a put or a get. */
  get isTransfer(): boolean {
    return transfers.has(this.call);
  }

  /** The address of its UCX request. */
  get request(): bigint {
    return this.foreign === 0n ? this.#request : this.foreign;
  }

  /** Its completion status, a `ucs_status_t`. */
  get status(): number {
    return this.#memory.getInt32(record.status, littleEndian);
  }

  /** Bytes received. */
  get length(): number {
    const low = this.#memory.getUint32(record.length, littleEndian);
    const high = this.#memory.getUint32(record.length + 4, littleEndian);
    return high === 0 ? low : low + high * 2 ** 32; // a sum of products is a double, which V8 allocates
  }

  /** The address of {@linkcode length}, for functions that return it without a callback. */
  get lengthAddress(): bigint {
    return this.parameters - BigInt(parametersAt - record.length);
  }

  /** The sender's tag. */
  get tag(): bigint {
    return this.#memory.getBigUint64(record.tag, littleEndian);
  }

  /** Bytes that have arrived, of all that there was room for. */
  get received(): number {
    return this.#kind === "plain" ? this.bytes : this.length;
  }

  /** Its result: what was received, how many bytes, or nothing. */
  result(): unknown {
    if (this.#kind === "tagged") return { length: this.length, tag: this.onlyTag ?? this.tag };
    return this.#kind === "sized" ? this.length : undefined;
  }

  /** Records a completion that UCX reported by its return value, without a callback. */
  end(status: number): void {
    this.#memory.setInt32(record.status, status, littleEndian);
  }

  /** Unpins the memory. */
  override release(): void {
    const { ending } = this;
    this.ending = null;
    if (ending !== null) ending();
    super.release();
  }
}

// law ucx/watchBegun: ucx/buffers_in_use
/** Nothing but the loop, for the reason that `lastGone` of `buffers_in_use.ts` gives. */
function watchBegun(begun: Operation[], buffers: BuffersInUse): void {
  for (let one = begun.pop(); one !== undefined; one = begun.pop()) {
    one.isNoted = false;
    if (one.isBegun && !one.isDone) one.watch(buffers);
  }
}

/** How many operations are allocated at once. */
const operationsPerBlock = 64;

/** The operations of one worker. */
export class OperationPool {
  readonly #requestBytes: number;
  readonly #all: Operation[] = [];
  readonly #free: Operation[] = [];
  readonly #blocks: bigint[] = [];
  /** Operations that have begun since {@linkcode transferred} was last called. Most are over by the next call. */
  readonly #begun: Operation[] = [];
  /** JavaScript's memory in the operations in flight that had begun before. */
  readonly #buffers = new BuffersInUse();
  /** Whether a send, a put or a get was given up before it was over. */
  hasGivenUp = false;
  readonly #ringAddress: bigint;
  readonly #ring: DataView;
  #entries: DataView;
  #entriesAddress = 0n;
  #mask = 0;
  /** Numbers taken from the ring so far, in 32 bits like the lower half of the ring's own count. */
  #read = 0;

  /** `requestBytes`: the size of UCX's own request (`ucp_context_attr_t.request_size`). */
  constructor(requestBytes: number) {
    this.#requestBytes = roundUp(requestBytes, 32);
    const { size } = layoutOf(completion_ring);
    this.#ringAddress = allocate(size);
    this.#ring = new DataView(ffiPort().memory(this.#ringAddress, size));
    this.#entries = new DataView(new ArrayBuffer(0));
  }

  /** How many operations were taken and not returned. */
  get inUse(): number {
    return this.#all.length - this.#free.length;
  }

  /** How many ArrayBuffers {@linkcode transferred} asks, but for those of operations that have begun since. */
  get buffersInUse(): number {
    return this.#buffers.count;
  }

  // law ucx/OperationPool.note: ucx/buffers_in_use, ucx/transferred
  /** Notes an operation that has begun, and is not over yet. */
  note(operation: Operation): void {
    if (operation.isNoted) return;
    operation.isNoted = true;
    this.#begun.push(operation);
  }

  // law ucx/OperationPool.transferred: ucx/buffers_in_use, ucx/transferred
  /**
   * Awaited operations that may still be in flight, whose memory JavaScript has transferred since the last call. Looks
   * at the operations that have begun since, and at all of them only if there is such memory.
   */
  transferred(): Operation[] {
    watchBegun(this.#begun, this.#buffers);
    if (!this.#buffers.takeTransferred()) return [];
    return this.#all.filter((one) => one.isBegun && !one.isDone && !one.isAbandoned && one.isTransferred);
  }

  /** Operations that may still be in flight. */
  pending(): Operation[] {
    return this.#all.filter(({ isBegun, isDone }) => isBegun && !isDone);
  }

  // law ucx/OperationPool.take: ucx/progress
  /** A free operation, not yet handed to UCX. */
  take(): Operation {
    const operation = this.#free.pop() ?? this.#grow();
    operation.isBegun = false;
    operation.isDone = false;
    operation.isAbandoned = false;
    operation.isWaitedFor = false;
    operation.isList = false;
    operation.onlyTag = null;
    return operation;
  }

  // law ucx/OperationPool.returnToPool: ucx/operation, ucx/endpoint
  /** Takes back an operation that UCX is done with, or has never seen. */
  returnToPool(operation: Operation): void {
    operation.owner = null;
    operation.resolve = null;
    operation.reject = null;
    operation.disarm = null;
    operation.unblocked = null;
    operation.failure = null; // V8 keeps the objects whose methods were on its stack: the worker among them
    operation.foreign = 0n;
    this.#free.push(operation);
  }

  /** The same of one that has taken memory, which it releases. */
  putBack(operation: Operation): void {
    operation.release();
    this.returnToPool(operation);
  }

  // law ucx/OperationPool.next: ucx/operation
  /** The next completed operation, in order of completion; undefined if there is none now. */
  next(): Operation | undefined {
    if (this.#ring.getInt32(ringField.written, littleEndian) === this.#read) return undefined;
    const at = this.#read & this.#mask;
    this.#read = this.#read + 1 | 0;
    return this.#all[this.#entries.getUint32(at * 8, littleEndian)];
  }

  /** Frees the memory. Only once UCX has forgotten all operations. */
  close(): void {
    for (const block of [...this.#blocks.splice(0), this.#entriesAddress, this.#ringAddress]) {
      libc().loading.free(block);
    }
  }

  // law ucx/OperationPool.grow: ucx/operation
  #grow(): Operation {
    this.#widen(this.#all.length + operationsPerBlock); // first: the ring has room for all that can complete
    const bytes = roundUp(requestAt + this.#requestBytes, 64);
    const block = allocate(bytes * operationsPerBlock + 64);
    this.#blocks.push(block);
    const memory = ffiPort().memory(block, bytes * operationsPerBlock + 64);
    const aligned = roundUp(Number(block % 64n), 64) - Number(block % 64n);
    for (let i = 0; i < operationsPerBlock; i++) {
      const at = aligned + i * bytes;
      const view = new DataView(memory, at, bytes);
      const number = this.#all.length;
      const operation = new Operation(block + BigInt(at), view, this.#ringAddress, number, this.#requestBytes);
      if (!isUnambiguous(operation.request)) continue;
      this.#all.push(operation);
      this.#free.push(operation);
    }
    return this.#free.pop() ?? this.#grow();
  }

  // law ucx/OperationPool.widen: ucx/operation
  /** Grows the ring to hold this many operations. Completions already in it stay. */
  #widen(operations: number): void {
    const count = 2 ** Math.ceil(Math.log2(operations));
    if (count * 8 <= this.#entries.byteLength) return;
    const address = allocate(count * 8);
    const entries = new DataView(ffiPort().memory(address, count * 8));
    const written = this.#ring.getInt32(ringField.written, littleEndian);
    for (let n = this.#read; n !== written; n = n + 1 | 0) {
      const number = this.#entries.getBigUint64((n & this.#mask) * 8, littleEndian);
      entries.setBigUint64((n & count - 1) * 8, number, littleEndian);
    }
    libc().loading.free(this.#entriesAddress); // nothing, the first time
    this.#entries = entries;
    this.#entriesAddress = address;
    this.#mask = count - 1;
    this.#ring.setBigUint64(ringField.mask, BigInt(count - 1), littleEndian);
    this.#ring.setBigUint64(ringField.entries, address, littleEndian);
  }
}
