/**
 * Random programs of sends and receives between two workers of one process, against a model of tag matching: a message
 * goes to the first posted receive that its tag fits, a receive takes the first message that fits it. With one sender
 * that leaves one possible outcome, however sends, receives and arrivals interleave.
 *
 * One of the receivers limits how many messages may wait for a receive, to more than there are: that changes nothing.
 *
 * Prints the number of messages and the transports used.
 */
import { assert, assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { Ucx } from "../../src/ucx/ucx.ts";
import { UcxError } from "../../src/ucx/error.ts";
import type { Received } from "../../src/ucx/receiver.ts";
import { check, fc, scaled } from "../support/property.ts";
import { assertContent, Bordered, contentOf, memoryKinds, turns } from "../support/ucx_messages.ts";

type Operation =
  | { readonly kind: "send"; readonly tag: bigint; readonly size: number; readonly memory: number }
  | {
    readonly kind: "recv";
    readonly tag: bigint;
    readonly mask: bigint;
    readonly room: number;
    readonly memory: number;
  }
  | { readonly kind: "wait"; readonly turns: number };

const sizes = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(0, 1, 7, 8, 100, 1000, 4096, 8191, 8192, 8193) },
  { weight: 3, arbitrary: fc.nat(40_000) },
  { weight: 2, arbitrary: fc.constantFrom(65_536, 200_000, 1 << 20) },
);
const tags = fc.constantFrom(0n, 1n, 2n, 3n, (1n << 64n) - 1n);
const masks = fc.constantFrom((1n << 64n) - 1n, (1n << 64n) - 1n, (1n << 64n) - 1n, 1n, 2n, 0n);
const memory = fc.nat(memoryKinds.length - 1);
const operations: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("send" as const), tag: tags, size: sizes, memory }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("recv" as const),
      tag: tags,
      mask: masks,
      // Occasionally too little room.
      room: fc.oneof({ weight: 5, arbitrary: fc.constant(1 << 20) }, { weight: 1, arbitrary: sizes }),
      memory,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("wait" as const), turns: fc.nat(4) }) },
);

interface Message {
  readonly index: number;
  readonly tag: bigint;
  readonly size: number;
}

interface Receive {
  readonly tag: bigint;
  readonly mask: bigint;
  readonly memory: Bordered;
  readonly room: number;
  readonly outcome: Promise<Received | UcxError | typeof cancelled>;
  /** The message that it gets according to the model. */
  message: Message | undefined;
}

const cancelled = new Error("no message fits this receive");

const ucx = Ucx.open();
const sender = ucx.createWorker();
const receivers = [ucx.createWorker(), ucx.createWorker({ limits: { taggedMessages: 1000 } })] as const;
const endpoints = [await sender.connect(receivers[0].address), await sender.connect(receivers[1].address)] as const;
let messages = 0;
let truncated = 0;

function memoryKind(index: number): typeof memoryKinds[number] {
  return memoryKinds[index] ?? "array";
}

async function run(program: readonly Operation[], pair: 0 | 1): Promise<void> {
  const [receiver, endpoint] = [receivers[pair], endpoints[pair]];
  const unmatchedMessages: Message[] = [];
  const unmatchedReceives: Receive[] = [];
  const receives: Receive[] = [];
  const sends: Promise<void>[] = [];
  const closing: Bordered[] = [];
  const stop = new AbortController();
  const fits = ({ tag, mask }: Receive, message: Message) => (tag & mask) === (message.tag & mask);

  const post = (tag: bigint, mask: bigint, room: number, kind: number) => {
    const memory = new Bordered(memoryKind(kind), room);
    const outcome = receiver.recv(memory.memory, { tag, mask, signal: stop.signal }).catch((error: unknown) => {
      if (error === cancelled || error instanceof UcxError) return error;
      throw error;
    });
    const receive: Receive = { tag, mask, memory, room, outcome: outcome as Receive["outcome"], message: undefined };
    receives.push(receive);
    closing.push(memory);
    const place = unmatchedMessages.findIndex((message) => fits(receive, message));
    if (place < 0) unmatchedReceives.push(receive);
    else receive.message = unmatchedMessages.splice(place, 1)[0];
  };

  for (const operation of program) {
    if (operation.kind === "wait") await turns(operation.turns);
    else if (operation.kind === "recv") post(operation.tag, operation.mask, operation.room, operation.memory);
    else {
      const { tag, size } = operation;
      const message = { index: messages++, tag, size };
      const memory = new Bordered(memoryKind(operation.memory), size);
      memory.bytes.set(contentOf(message.index, size));
      closing.push(memory);
      sends.push(endpoint.send(memory.memory, { tag }));
      const place = unmatchedReceives.findIndex((receive) => fits(receive, message));
      const [receive] = place < 0 ? [] : unmatchedReceives.splice(place, 1);
      if (receive === undefined) unmatchedMessages.push(message);
      else receive.message = message;
    }
  }
  // Leftovers: receives for the remaining messages, and a cancel for receives without a message.
  for (const _ of [...unmatchedMessages]) post(0n, 0n, 1 << 20, 0);
  await Promise.all(receives.filter(({ message }) => message !== undefined).map(({ outcome }) => outcome));
  stop.abort(cancelled);
  await Promise.all(sends);
  for (const receive of receives) await assertOutcome(receive);
  for (const one of closing) one.close();
}

async function assertOutcome({ message, memory, room, outcome }: Receive): Promise<void> {
  const result = await outcome;
  if (message === undefined) {
    assertStrictEquals(result, cancelled);
    memory.assertUntouched(0);
  } else if (message.size > room) {
    assert(result instanceof UcxError, `${message.size} bytes in memory for ${room}`);
    assertEquals([result.statusName, result.call], ["UCS_ERR_MESSAGE_TRUNCATED", "ucp_tag_recv_nbx"]);
    memory.assertUntouched(room); // the bytes that fit may have been written
    truncated++;
  } else {
    assertEquals(result, { length: message.size, tag: message.tag });
    assertContent(memory.bytes.subarray(0, message.size), message.index);
    memory.assertUntouched(message.size);
  }
}

const programs = fc.array(operations, { minLength: 1, maxLength: 40, size: "max" });
await check(fc.asyncProperty(programs, fc.constantFrom(0, 1), run), 100);
assert(messages > scaled(300) && truncated > 0, `${messages} messages, ${truncated} of them truncated`);

// The same workers afterwards: no message is left over that a receive for any tag could match, and none was dropped.
const controller = new AbortController();
const { signal } = controller;
const last = receivers.map((receiver) => receiver.recv(new Uint8Array(8), { mask: 0n, signal }));
await turns(50);
controller.abort(cancelled);
for (const one of last) await assertRejects(() => one, Error, cancelled.message);
assertEquals(receivers.map(({ dropped }) => dropped), [0, 0]);

const paths = endpoints[0].transports();
await Promise.all([sender, ...receivers].map((worker) => worker.close()));
ucx.close();
console.log(JSON.stringify({ messages, truncated, transports: paths }));
