/**
 * Messages for tests: bytes that identify their message, and memory of every kind to send from and receive into, with a
 * border that reveals an overrun.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { setImmediate as nextTurn } from "node:timers/promises";
import { HostMemoryResource } from "../../src/memory/host_memory_resource.ts";
import type { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import type { Sendable } from "../../src/ucx/message_memory.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { StridedMemoryView } from "../../src/view/strided_memory_view.ts";

const resource = new HostMemoryResource();
const border = 64;
const blank = 0xee;

/** The bytes of a message: different for each message and position. */
export function contentOf(message: number, size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(new ArrayBuffer(size));
  let state = Math.imul(message + 1, 2654435761) >>> 0;
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

/** Random numbers from 0 to below a limit, the same in both processes of a test. */
export function numbers(seed: number): (limit: number) => number {
  let state = Math.imul(seed + 1, 2654435761) >>> 0;
  return (limit) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 2 ** 32 * limit);
  };
}

function isBlank(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, new Uint8Array(bytes.length).fill(blank)) === 0;
}

/** Kinds of memory. */
export const memoryKinds = ["array", "buffer", "view"] as const;

/** Memory inside a border. */
export class Bordered {
  /** The memory to pass to UCX. */
  readonly memory: Sendable;
  readonly #size: number;
  readonly #whole: Uint8Array;
  readonly #buffer: MemoryBuffer | undefined;

  constructor(kind: typeof memoryKinds[number], size: number) {
    this.#size = size;
    const total = size + 2 * border;
    if (kind === "array") {
      this.#whole = new Uint8Array(new ArrayBuffer(total));
      this.memory = this.#whole.subarray(border, border + size);
    } else if (kind === "view") {
      this.#buffer = resource.allocate(total);
      this.#whole = this.#buffer.bytes();
      const options = { shape: [size], dtype: "uint8", offset: border } as const;
      this.memory = StridedMemoryView.fromBuffer(this.#buffer, options);
    } else {
      // A buffer has no border: it begins and ends with the message.
      this.#buffer = resource.allocate(size);
      this.#whole = new Uint8Array(0);
      this.memory = this.#buffer;
    }
    this.#whole.fill(blank);
  }

  /** The bytes inside the border. */
  get bytes(): Uint8Array {
    if (this.#whole.length === 0) return this.#buffer?.bytes() ?? new Uint8Array(0);
    return this.#whole.subarray(border, border + this.#size);
  }

  /** Fails if the border, or anything from byte `from` on, has been written to. */
  assertUntouched(from: number): void {
    const outside = [this.#whole.subarray(0, border), this.#whole.subarray(border + this.#size)];
    assertEquals(outside.every(isBlank), true, "bytes outside of the memory were written");
    if (this.#whole.length > 0) {
      assertEquals(isBlank(this.bytes.subarray(from)), true, "bytes behind the message were written");
    }
  }

  /** Frees the memory. */
  close(): void {
    this.#buffer?.close();
  }
}

/** Fails unless the bytes are those of a message. Much faster than comparing arrays as values. */
export function assertContent(bytes: Uint8Array, message: number): void {
  const isSame = Buffer.compare(bytes, contentOf(message, bytes.length)) === 0;
  assertEquals(isSame, true, `the ${bytes.length} bytes received must be those of message ${message}`);
}

/** A message of a plan. */
export interface Planned {
  /** The seed of its bytes. */
  readonly index: number;
  readonly tag: bigint;
  readonly size: number;
}

/** Messages that both processes know, because they are made from the same seed. */
export function planOf(seed: number, count: number): Planned[] {
  const below = numbers(seed);
  const sizes = [0, 1, 100, 1000, 8192, 9000, 65_536, 300_000, 1 << 20];
  return Array.from({ length: count }, (_, place) => {
    const size = below(2) === 0 ? below(3000) : sizes[below(sizes.length)] ?? 0;
    return { index: seed % 1000 * 1000 + place, tag: BigInt(below(3)), size };
  });
}

/** Sends a plan's messages, in order. */
export async function sendPlan(endpoint: UcxEndpoint, plan: readonly Planned[]): Promise<void> {
  await Promise.all(plan.map(({ index, tag, size }) => endpoint.send(contentOf(index, size), { tag })));
}

/**
 * Receives a plan's messages, some before they arrive and some after: within a tag in the order in which they were
 * sent, which is the order in which they must arrive, but across tags in random order.
 */
export async function receivePlan(worker: UcxWorker, plan: readonly Planned[], seed: number): Promise<void> {
  const below = numbers(seed + 77);
  const left = Map.groupBy(plan, ({ tag }) => tag);
  const received: Promise<void>[] = [];
  while (left.size > 0) {
    const [tag = 0n, queue = []] = [...left][below(left.size)] ?? [];
    const message = queue.shift();
    if (message === undefined) left.delete(tag);
    else received.push(receive(worker, message, below(3) * 10));
    if (below(4) === 0) await turns(below(30));
  }
  await Promise.all(received);
}

async function receive(worker: UcxWorker, { index, tag, size }: Planned, spare: number): Promise<void> {
  const memory = new Bordered("array", size + spare);
  assertEquals(await worker.recv(memory.memory, { tag }), { length: size, tag });
  assertContent(memory.bytes.subarray(0, size), index);
  memory.assertUntouched(size);
}

/** Lets the event loop turn a few times. */
export async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await nextTurn();
}
