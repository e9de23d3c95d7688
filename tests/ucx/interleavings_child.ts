/**
 * Random programs of every tag operation between two workers of one process: sends, receives of the worker and of an
 * endpoint, probes, messages that are taken and received later, signals, timeouts, closes in order and by force.
 * `tag_model.ts` determines the outcome of each message and each receive.
 *
 * UCX decides what arrives when. A step that looks at the queues, or cancels an operation, runs when everything sent
 * has arrived, which a marker message with its own tag, sent last, shows; except for signals that race with small
 * messages, where the outcome tells which came first.
 *
 * Prints how often each kind of event occurred.
 */
import { assert, assertEquals, assertInstanceOf, assertStrictEquals } from "@std/assert";
import { setTimeout as pause } from "node:timers/promises";
import type { UcxEndpoint } from "../../src/ucx/endpoint.ts";
import { UcxError } from "../../src/ucx/error.ts";
import type { Received, UcxMessage } from "../../src/ucx/receiver.ts";
import { Ucx } from "../../src/ucx/ucx.ts";
import type { UcxWorker } from "../../src/ucx/worker.ts";
import { checkUntil, fc, scaled } from "../support/property.ts";
import { assertContent, Bordered, contentOf, memoryKinds, turns } from "../support/ucx_messages.ts";
import { fits, stateAfter, type TagEvent, type TagMessage } from "./tag_model.ts";

/** The tag bit of marker messages, which show that all before them have arrived; no other receive matches them. */
const marker = 1n << 63n;
/** Up to this size UCX has a message at once: a signal finds it there whole, or not at all. */
const small = 1000;

const sizes = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(0, 1, 100, small) },
  { weight: 1, arbitrary: fc.constantFrom(9000, 70_000, 300_000) },
);
const tag = fc.bigInt(0n, 3n);
const mask = fc.constantFrom(2n ** 64n - 1n, 2n ** 64n - 1n, marker | 1n, marker | 2n, marker);
const memory = fc.constantFrom(...memoryKinds);
const room = fc.oneof({ weight: 5, arbitrary: fc.constant(300_000) }, { weight: 1, arbitrary: sizes });
const pick = fc.nat(1000);

const steps = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("send" as const), tag, size: sizes, memory }) },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant("recv" as const), tag, mask, room, memory, ofEndpoint: fc.boolean() }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), turns: fc.nat(4) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("probe" as const), tag, mask }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("take" as const), tag, mask }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("receive taken" as const),
      pick,
      room,
      memory,
      isAborted: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("abort receive" as const), pick }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("race receive" as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("abort send" as const), pick }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("recv for a moment" as const), tag, mask, timeout: fc.nat(3) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("close sender's endpoint" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("close it by force" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("close receiver's endpoint" as const) }) },
);
const programs = fc.record({
  steps: fc.array(steps, { minLength: 1, maxLength: 40, size: "max" }),
  /** Whether the workers are closed with operations pending. */
  isLeft: fc.integer({ min: 0, max: 14 }).map((n) => n === 0),
  isLimited: fc.boolean(),
});

/** The outcome of a promise: its value, or the reason of its rejection. */
type Outcome<T> = { readonly value: T } | { readonly error: unknown };

async function outcomeOf<T>(promise: Promise<T>): Promise<Outcome<T>> {
  return await promise.then((value) => ({ value }), (error: unknown) => ({ error }));
}

interface Receive {
  readonly tag: bigint;
  readonly mask: bigint;
  readonly room: number;
  readonly memory: Bordered;
  readonly ofEndpoint: boolean;
  readonly end: AbortController;
  readonly outcome: Promise<Outcome<Received>>;
  /** Why it may have been cancelled: a reason of ours, or Causeway's message for a closed endpoint. */
  givenUp: unknown;
}

interface Send {
  readonly end: AbortController;
  readonly outcome: Promise<Outcome<void>>;
}

const counts: Record<string, number> = {};

function count(what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}

/** Two workers, the endpoint from one to the other, and one to a third worker, whose close ends receives. */
class Ends {
  readonly sender: UcxWorker;
  readonly receiver: UcxWorker;
  readonly third: UcxWorker;
  toReceiver!: UcxEndpoint;
  ofReceiver!: UcxEndpoint;

  /** `isLimited`: the receiver takes waiting messages from UCX to count them, and may keep more than there are. */
  constructor(ucx: Ucx, isLimited: boolean) {
    [this.sender, this.third] = [ucx.createWorker(), ucx.createWorker()];
    this.receiver = ucx.createWorker(isLimited ? { limits: { taggedMessages: 1000 } } : {});
  }

  async connect(): Promise<void> {
    this.toReceiver = await this.sender.connect(this.receiver.address);
  }

  async connectReceiver(): Promise<void> {
    this.ofReceiver = await this.receiver.connect(this.third.address);
  }
}

/** One run of a program. */
class Run {
  readonly #ends: Ends;
  readonly #log: TagEvent<Receive>[] = [];
  readonly #receives: Receive[] = [];
  readonly #sends: Send[] = [];
  readonly #closes: Promise<void>[] = [];
  readonly #taken: [UcxMessage, TagMessage][] = [];
  #markers = 0n;
  /** Whether a large message may still be in flight. */
  #isLargeUnderWay = false;
  #hasGivenUpSend = false;

  constructor(ends: Ends) {
    this.#ends = ends;
  }

  async step(step: typeof steps extends fc.Arbitrary<infer S> ? S : never): Promise<void> {
    count(step.do);
    switch (step.do) {
      case "send":
        return this.#send(step.tag, step.size, step.memory);
      case "recv":
        return void this.#post(step, step.ofEndpoint ? this.#ends.ofReceiver : this.#ends.receiver);
      case "wait":
        return await turns(step.turns);
      case "probe": {
        await this.#arrived();
        const found = stateAfter(this.#log).unexpected.find((message) => fits(step, message));
        const expected = found === undefined ? null : { length: found.size, tag: found.tag };
        return assertEquals(this.#ends.receiver.probe(step.tag, step.mask), expected);
      }
      case "take":
        await this.#arrived();
        return this.#take(step.tag, step.mask);
      case "receive taken":
        return await this.#receiveTaken(step);
      case "abort receive":
        await this.#arrived();
        return this.#abortReceive(this.#receives[step.pick % this.#receives.length]);
      case "race receive":
        return await this.#raceReceive(this.#receives[step.pick % this.#receives.length]);
      case "abort send":
        return await this.#abortSend(this.#sends[step.pick % this.#sends.length]);
      case "recv for a moment": {
        await this.#arrived(); // nothing arrives meanwhile
        const receive = this.#post({ ...step, room: 300_000, memory: "array" }, this.#ends.receiver);
        const outcome = await receive.outcome;
        receive.givenUp = "a timeout";
        if ("error" in outcome) this.#log.push({ kind: "withdraw", receive });
        return;
      }
      case "close sender's endpoint":
        await this.#arrived();
        this.#closes.push(this.#ends.toReceiver.close()); // once everything is received
        return await this.#ends.connect();
      case "close it by force": {
        // Nothing reports whether a message that both sides have cancelled is still in flight.
        if (this.#hasGivenUpSend && this.#receives.some(({ givenUp }) => givenUp !== undefined)) return;
        await this.#receiveAll();
        const { received } = stateAfter(this.#log);
        await Promise.all([...this.#sends, ...received.keys()].map(({ outcome }) => outcome));
        await this.#ends.toReceiver.close({ force: true });
        return await this.#ends.connect();
      }
      case "close receiver's endpoint":
        await this.#arrived();
        for (const receive of this.#receives.filter(({ ofEndpoint }) => ofEndpoint)) {
          receive.givenUp ??= "The endpoint was closed";
          this.#log.push({ kind: "withdraw", receive });
        }
        await this.#ends.ofReceiver.close();
        return await this.#ends.connectReceiver();
    }
  }

  #send(tag: bigint, size: number, kind: typeof memoryKinds[number]): void {
    const message = { index: messages++, tag, size };
    const memory = new Bordered(kind, size);
    memory.bytes.set(contentOf(message.index, size));
    const end = new AbortController();
    const send = this.#ends.toReceiver.send(memory.memory, { tag, signal: end.signal });
    memory.close(); // the memory lives until UCX is done with it
    this.#sends.push({ end, outcome: outcomeOf(send) });
    this.#log.push({ kind: "arrive", message });
    this.#isLargeUnderWay ||= size > small;
  }

  #post(
    { tag, mask, room, memory: kind, timeout }: {
      tag: bigint;
      mask: bigint;
      room: number;
      memory: typeof memoryKinds[number];
      timeout?: number;
    },
    from: UcxWorker | UcxEndpoint,
  ): Receive {
    const memory = new Bordered(kind, room);
    const end = new AbortController();
    const limits = timeout === undefined ? {} : { timeout };
    const outcome = outcomeOf(from.recv(memory.memory, { tag, mask, signal: end.signal, ...limits }));
    const ofEndpoint = from === this.#ends.ofReceiver;
    const receive: Receive = { tag, mask, room, memory, ofEndpoint, end, outcome, givenUp: undefined };
    this.#receives.push(receive);
    this.#log.push({ kind: "post", receive });
    return receive;
  }

  #take(tag: bigint, mask: bigint): void {
    const found = stateAfter(this.#log).unexpected.find((message) => fits({ tag, mask }, message));
    const message = this.#ends.receiver.take(tag, mask);
    const seen = message === null ? null : { size: message.length, tag: message.tag };
    assertEquals(seen, found === undefined ? null : { size: found.size, tag: found.tag });
    if (message === null || found === undefined) return;
    this.#log.push({ kind: "take", match: { tag, mask } });
    this.#taken.push([message, found]);
  }

  async #receiveTaken(
    { pick, room, memory: kind, isAborted }: {
      pick: number;
      room: number;
      memory: typeof memoryKinds[number];
      isAborted: boolean;
    },
  ): Promise<void> {
    const at = pick % this.#taken.length;
    const [message, sent] = this.#taken[at] ?? [];
    if (message === undefined || sent === undefined) return;
    const memory = new Bordered(kind, room);
    if (isAborted) {
      const reason = new Error("too late");
      const outcome = await outcomeOf(message.recv(memory.memory, { signal: AbortSignal.abort(reason) }));
      assertStrictEquals("error" in outcome ? outcome.error : null, reason);
      memory.assertUntouched(0); // and it can still be received
    } else {
      this.#taken.splice(at, 1);
      assertReceived(await outcomeOf(message.recv(memory.memory)), sent, room, memory);
    }
    memory.close();
  }

  /** Waits until every message sent has been matched, or waits to be. */
  async #arrived(): Promise<void> {
    const tag = marker | this.#markers++;
    const { toReceiver, receiver } = this.#ends;
    await Promise.all([receiver.recv(new Uint8Array(1), { tag }), toReceiver.send(Uint8Array.of(1), { tag })]);
    this.#isLargeUnderWay = false;
  }

  #abortReceive(receive: Receive | undefined): void {
    if (receive === undefined) return;
    receive.givenUp ??= new Error("given up");
    receive.end.abort(receive.givenUp);
    this.#log.push({ kind: "withdraw", receive });
  }

  /** Fires a signal while messages arrive. */
  async #raceReceive(receive: Receive | undefined): Promise<void> {
    if (receive === undefined || receive.givenUp !== undefined) return;
    if (this.#isLargeUnderWay) await this.#arrived();
    const sent = stateAfter(this.#log).received.get(receive);
    const reason = new Error("given up in the middle");
    receive.end.abort(reason);
    const outcome = await receive.outcome;
    if ("value" in outcome || outcome.error !== reason) return; // it had completed: the model determines how, too
    receive.givenUp = reason;
    if (sent !== undefined && sent.size > small) return; // it had the message, which is lost with it
    if (sent !== undefined) count("receives that a signal reached before their message");
    // No matching message had arrived: it is as if the receive had never been posted.
    const at = this.#log.findIndex((event) => event.kind === "post" && event.receive === receive);
    this.#log.splice(at, 1);
  }

  /** A message arrives even if its send was cancelled: it was in flight. */
  async #abortSend(send: Send | undefined): Promise<void> {
    if (send === undefined) return;
    const reason = new Error("given up");
    send.end.abort(reason);
    const outcome = await send.outcome; // at once
    if ("value" in outcome) return;
    this.#hasGivenUpSend = true;
    count("sends given up before they were over");
  }

  /** Receives all unreceived messages. */
  async #receiveAll(): Promise<void> {
    await this.#arrived();
    while (stateAfter(this.#log).unexpected.length > 0) {
      this.#post({ tag: 0n, mask: marker, room: 300_000, memory: "array" }, this.#ends.receiver);
    }
    for (const [message, sent] of this.#taken.splice(0)) {
      const memory = new Bordered("array", sent.size);
      assertReceived(await outcomeOf(message.recv(memory.memory)), sent, sent.size, memory);
    }
  }

  /** Ends everything; each operation ends as the model says. */
  async finish(): Promise<void> {
    await this.#receiveAll();
    const { received } = stateAfter(this.#log);
    for (const receive of this.#receives) {
      if (received.has(receive) || receive.givenUp !== undefined) continue;
      this.#abortReceive(receive);
    }
    for (const receive of this.#receives) await this.#assertEnd(receive, received.get(receive));
    for (const send of this.#sends) await send.outcome;
    await Promise.all(this.#closes);
    assertEquals(this.#ends.receiver.probe(0n, 0n), null);
    assertEquals(this.#ends.receiver.dropped, 0);
  }

  async #assertEnd(receive: Receive, sent: TagMessage | undefined): Promise<void> {
    const { outcome: promise, room, memory, givenUp } = receive;
    const outcome = await promise;
    const isGivenUp = "error" in outcome && isReason(outcome.error, givenUp);
    if (sent === undefined) {
      assert(isGivenUp, `a receive of nothing ended with ${JSON.stringify(outcome)}`);
      memory.assertUntouched(0);
    } else if (isGivenUp) {
      assert(sent.size > small, `a receive of ${sent.size} bytes was given up, and its message with it`);
      count("receives given up in the middle of a message");
    } else assertReceived(outcome, sent, room, memory);
    if (!isGivenUp) memory.close();
  }

  /** Closes the workers with operations pending: everything ends. */
  async leave(): Promise<void> {
    await this.#arrived();
    await this.#ends.receiver.close();
    const { received } = stateAfter(this.#log);
    for (const receive of this.#receives) {
      const outcome = await receive.outcome;
      const sent = received.get(receive);
      if ("value" in outcome) {
        assert(sent !== undefined);
        assertReceived(outcome, sent, receive.room, receive.memory);
      } else if (!(outcome.error instanceof UcxError)) {
        const end = receive.ofEndpoint ? "The endpoint was closed" : "The worker was closed";
        assert(isReason(outcome.error, receive.givenUp) || isReason(outcome.error, end), String(outcome.error));
      }
    }
    await this.#ends.sender.close({ timeout: 50 });
    for (const { outcome } of this.#sends) await outcome;
    await Promise.all(this.#closes);
    await this.#ends.third.close();
  }
}

function isReason(error: unknown, reason: unknown): boolean {
  if (reason === "a timeout") return error instanceof UcxError && error.statusName === "UCS_ERR_TIMED_OUT";
  if (typeof reason === "string") return error instanceof TypeError && error.message === reason;
  return error === reason;
}

function assertReceived(outcome: Outcome<Received>, sent: TagMessage, room: number, memory: Bordered): void {
  if (sent.size > room) {
    assert("error" in outcome, `${sent.size} bytes in memory for ${room}`);
    assertInstanceOf(outcome.error, UcxError);
    assertEquals(outcome.error.statusName, "UCS_ERR_MESSAGE_TRUNCATED");
    memory.assertUntouched(room); // the bytes that fit may have been written
    count("messages too long");
  } else {
    if ("error" in outcome) throw outcome.error;
    assertEquals(outcome.value, { length: sent.size, tag: sent.tag });
    assertContent(memory.bytes.subarray(0, sent.size), sent.index);
    memory.assertUntouched(sent.size);
    count("messages received");
  }
}

let messages = 0;
const needed = ["messages received", "abort receive", "abort send", "close it by force"];
const enough = scaled(10);
const ucx = Ucx.open();
const idle = new Map<boolean, Ends>();

await checkUntil(
  () => needed.every((what) => (counts[what] ?? 0) > enough), // a daily run's 40 closed 10 to 26 by force
  fc.asyncProperty(programs, async ({ steps, isLeft, isLimited }) => {
    let mine = idle.get(isLimited);
    if (mine === undefined) {
      mine = new Ends(ucx, isLimited);
      await mine.connect();
      await mine.connectReceiver();
    }
    idle.delete(isLimited); // not reused if the run fails
    const run = new Run(mine);
    for (const step of steps) await run.step(step);
    if (isLeft) await run.leave();
    else {
      await run.finish();
      idle.set(isLimited, mine);
    }
  }),
  80,
);
for (const what of needed) assert((counts[what] ?? 0) > enough, JSON.stringify(counts));
await pause(0);
ucx.close();
console.log(JSON.stringify(counts));
