/** A queue hands each item to one waiter, in order, even if others stop waiting. */
import { assertEquals, assertRejects } from "@std/assert";
import { test } from "node:test";
import { MessageQueue } from "../../src/ucx/active_messages/message_queue.ts";
import { turnIfDue } from "../../src/ucx/event_loop.ts";
import { check, fc } from "../support/property.ts";

const steps = fc.array(fc.constantFrom("push", "next", "return", "abort", "take"), { maxLength: 30 });

test("each item is delivered to one taker, in order, whichever iterators return and waits are aborted", async () => {
  await check(
    fc.asyncProperty(steps, async (plan) => {
      let held = 0;
      const queue = new MessageQueue<number>(() => {
        held++;
        return () => held--;
      });
      const taken: number[] = [];
      let pushed = 0;
      // The model: the waiters, in order of arrival.
      type Wait = { wants: boolean };
      const waits: Wait[] = [];
      let iterator = queue.iterate();
      let own: Wait[] = []; // the iterator's waits
      let abort = new AbortController();
      let abortable: Wait[] = [];
      const settled: Promise<unknown>[] = [];
      let expected = 0;
      const note = (value: number | null | undefined) => {
        if (typeof value === "number") taken.push(value);
      };
      const wait = (): Wait => {
        const one = { wants: true };
        if (pushed > expected) expected++; // the item has already been pushed
        else waits.push(one);
        return one;
      };
      for (const step of plan) {
        if (step === "push") {
          queue.push(pushed++);
          const first = waits.findIndex(({ wants }) => wants);
          if (first >= 0) {
            waits.splice(0, first + 1);
            expected++;
          }
        } else if (step === "next") {
          own.push(wait());
          settled.push(iterator.next().then(({ value }) => note(value)));
        } else if (step === "take") {
          abortable.push(wait());
          settled.push(queue.next(abort.signal).then(note, () => {}));
        } else if (step === "return") {
          await iterator.return?.();
          for (const one of own) one.wants = false;
          [iterator, own] = [queue.iterate(), []];
        } else {
          abort.abort();
          for (const one of abortable) one.wants = false;
          [abort, abortable] = [new AbortController(), []];
        }
        await Promise.resolve();
        assertEquals(held, waits.some(({ wants }) => wants) ? 1 : 0, "only a pending wait keeps the process alive");
      }
      queue.end();
      await Promise.all(settled);
      assertEquals([taken.length, held], [expected, 0]);
      const rest = queue.takeAll();
      assertEquals([...taken, ...rest], Array.from({ length: pushed }, (_, i) => i));
    }),
    300,
  );
});

test("an iteration ends when all items are taken: with the error that ended the queue, once", async () => {
  const queue = new MessageQueue<string>();
  queue.push("a");
  queue.push("b");
  queue.end(new Error("lost"));
  queue.end();
  assertEquals(queue.push("late"), false);
  const iterator = queue.iterate();
  const taken: string[] = [];
  await assertRejects(
    async () => {
      for (let next = await iterator.next(); !next.done; next = await iterator.next()) taken.push(next.value);
    },
    Error,
    "lost",
  );
  assertEquals([taken, (await iterator.next()).done, await queue.next()], [["a", "b"], true, null]);
  const waited = new MessageQueue<string>();
  const waiting = assertRejects(() => waited.iterate().next(), Error, "lost");
  waited.end(new Error("lost"));
  await waiting;
  const quiet = new MessageQueue<string>();
  quiet.end();
  assertEquals((await quiet.iterate().next()).done, true);
});

test("an item that is put back is the next one again, and nobody's once the queue has ended", async () => {
  const queue = new MessageQueue<number>();
  for (const item of [1, 2]) queue.push(item);
  assertEquals(await queue.next(), 1);
  assertEquals(queue.putBack(1), true);
  assertEquals([await queue.next(), await queue.next()], [1, 2]);
  const waits = queue.next();
  assertEquals(queue.putBack(2), true);
  assertEquals([await waits, queue.waiting], [2, []]);
  queue.end();
  assertEquals([queue.putBack(2), queue.takeAll()], [false, []]);
});

test("a limit ends a wait and not the iteration", async () => {
  const queue = new MessageQueue<number>();
  let cleared = 0;
  const iterator = queue.iterate(() => ({ signal: AbortSignal.timeout(5), clear: () => cleared++ }));
  await assertRejects(() => iterator.next(), Error);
  queue.push(1);
  assertEquals([await iterator.next(), cleared], [{ done: false, value: 1 }, 2]);
});

// In Deno 100,000 took 5 s, in which no timer fired.
test("many items are taken in order, and the event loop turns meanwhile", async () => {
  const queue = new MessageQueue<number>(null, turnIfDue);
  const count = 300_000;
  for (let i = 0; i < count; i++) queue.push(i);
  let turns = 0;
  const timer = setInterval(() => turns++);
  let expected = 0;
  for await (const item of queue.iterate()) {
    assertEquals(item === expected++, true);
    if (item % 1000 === 999) {
      queue.putBack(item);
      assertEquals(await queue.next(), item);
    }
    if (expected === count) break;
  }
  clearInterval(timer);
  assertEquals([queue.waiting, turns > 0], [[], true]);
});

// Each arrival is compared with a limit: a copy of all that wait would make a flood quadratic.
test("a queue knows how many wait, whatever was taken and put back", async () => {
  const queue = new MessageQueue<number>();
  for (let i = 0; i < 3000; i++) queue.push(i);
  for (let i = 0; i < 1500; i++) await queue.next();
  queue.putBack(1499);
  assertEquals([queue.size, queue.waiting.length, queue.waiting[0]], [1501, 1501, 1499]);
  assertEquals([queue.takeAll((item) => item % 2 === 0).length, queue.size], [750, 751]);
});
