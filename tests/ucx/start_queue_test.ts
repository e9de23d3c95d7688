/** Operations that wait for their memory: in which order they begin, and when their memory is released. */
import { assertEquals } from "@std/assert";
import { test } from "node:test";
import { StartQueue } from "../../src/ucx/start_queue.ts";
import { check, fc } from "../support/property.ts";

type Step =
  | { readonly do: "add"; readonly isReady: boolean; readonly throws: boolean }
  | { readonly do: "ready" | "fail" | "abort"; readonly at: number }
  | { readonly do: "stop" };

const at = fc.nat(9);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constant("add" as const), isReady: fc.boolean(), throws: fc.boolean() }),
    },
    {
      weight: 5,
      arbitrary: fc.record({ do: fc.constantFrom("ready" as const, "fail" as const, "abort" as const), at }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const) }) },
  ),
  { maxLength: 20 },
);

test("a waiting operation begins in its turn, or ends with the reason and releases its memory, once", async () => {
  await check(
    fc.asyncProperty(steps, async (program) => {
      const queue = new StartQueue();
      const [log, expected]: [string[], string[]] = [[], []];
      const operations: { readonly ready: PromiseWithResolvers<void>; readonly aborter: AbortController }[] = [];
      /** The model: the waiting operations, first to last, and whether their memory is ready. */
      let isStopped = false;
      let waiting: { readonly name: number; isReady: boolean; readonly throws: boolean }[] = [];
      const advance = () => {
        const busy = waiting.findIndex(({ isReady }) => !isReady);
        const begun = waiting.splice(0, busy < 0 ? waiting.length : busy);
        for (const { name } of begun) expected.push(`begin ${name}`);
        for (const { name, throws } of begun) expected.push(throws ? `${name}: thrown` : `${name}: done`);
      };
      const drop = (name: number, reason: string) => {
        const index = waiting.findIndex((one) => one.name === name);
        if (index < 0) return;
        waiting.splice(index, 1);
        expected.push(`release ${name}`, `${name}: ${reason}`);
        advance();
      };
      for (const step of program) {
        if (step.do === "add") {
          const name = operations.length;
          const { isReady, throws } = step;
          const operation = { ready: Promise.withResolvers<void>(), aborter: new AbortController() };
          operations.push(operation);
          if (isStopped) expected.push(`release ${name}`, `${name}: stopped`);
          else {
            waiting.push({ name, isReady, throws });
            advance();
          }
          const options = {
            ready: isReady ? null : operation.ready.promise,
            release: () => log.push(`release ${name}`),
            signal: operation.aborter.signal,
          };
          const begin = () => {
            log.push(`begin ${name}`);
            return throws ? Promise.reject(new Error("thrown")) : Promise.resolve("done");
          };
          queue.add(options, begin).then((end) => log.push(`${name}: ${end}`), ({ message }: Error) => {
            log.push(`${name}: ${message}`);
          });
        } else if (step.do === "stop") {
          queue.stop(new Error(isStopped ? "stopped again" : "stopped"));
          isStopped = true;
          expected.push(...waiting.map(({ name }) => `release ${name}`));
          expected.push(...waiting.map(({ name }) => `${name}: stopped`));
          waiting = [];
        } else {
          const operation = operations[step.at];
          if (operation === undefined) continue;
          const one = waiting.find(({ name }) => name === step.at);
          if (step.do === "ready") {
            operation.ready.resolve();
            if (one !== undefined) one.isReady = true;
            advance();
          } else if (step.do === "abort") {
            operation.aborter.abort(new Error("aborted"));
            drop(step.at, "aborted");
          } else {
            operation.ready.reject(new Error("failed"));
            operation.ready.promise.catch(() => {});
            if (one?.isReady === false) drop(step.at, "failed");
          }
        }
        for (let turn = 0; turn < 8; turn++) await Promise.resolve();
        assertEquals(log.toSorted(), expected.toSorted());
        assertEquals(begun(log), begun(expected));
      }
    }),
    500,
  );
});

function begun(log: readonly string[]): string[] {
  return log.filter((line) => line.startsWith("begin"));
}

test("an operation that waits for nothing begins before the call returns", () => {
  let isBegun = false;
  const options = { ready: null, release: () => {} };
  void new StartQueue().add(options, () => Promise.resolve(void (isBegun = true)));
  assertEquals(isBegun, true);
});

test("an operation that cannot begin in its turn fails with the reason, and the next one begins", async () => {
  const queue = new StartQueue();
  const release = () => {};
  const first = queue.add({ ready: Promise.resolve(), release }, () => {
    throw new Error("thrown");
  });
  const second = queue.add({ ready: null, release }, () => Promise.resolve(2));
  assertEquals(await first.catch(({ message }: Error) => message), "thrown");
  assertEquals(await second, 2);
});
