/** Operations in native memory: the parameters UCX reads, and that each leaves the ring once, in completion order. */
import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { libc as tables } from "../../bindings/libc.ts";
import { UCP_OP_ATTR_FLAG, UCP_REQUEST_PARAM_FIELD, ucp_request_param_t } from "../../bindings/ucp_types.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { FfiError } from "../../src/ffi/errors.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { struct } from "../../src/ffi/struct.ts";
import { isUnambiguous, type Operation, OperationPool } from "../../src/ucx/operation.ts";
import { Progress } from "../../src/ucx/progress.ts";
import { collectGarbage } from "../support/collect.ts";
import { FailingCalls } from "../support/failing_calls.ts";
import { check, fc } from "../support/property.ts";
import { scriptedResources, ScriptedUcp } from "./scripted_ucp.ts";

const { NO_IMM_CMPL } = UCP_OP_ATTR_FLAG;
const { request, cb, user_data, memory_type, flags } = UCP_REQUEST_PARAM_FIELD;

const kinds = ["plain", "tagged", "sized"] as const;
type Kind = typeof kinds[number];

/** Completes an operation as UCX does: calls the callback that the parameters name. */
function end(operation: Operation, kind: Kind, status: number, length: bigint, tag: bigint): void {
  const { cb, user_data } = struct(ucp_request_param_t).at(operation.parameters);
  if (kind === "plain") {
    ffiPort().functionAt(cb, { args: ["ptr", "i64", "ptr"], returns: "void" })(1n, BigInt(status), user_data);
    return;
  }
  using arena = new NativeArena();
  const info = arena.bytes(16);
  const written = new DataView(info.bytes.buffer, info.bytes.byteOffset, 16);
  written.setBigUint64(0, tag, true);
  written.setBigUint64(8, length, true);
  const between = kind === "tagged" ? info.address : length;
  const signature = { args: ["ptr", "i64", "u64", "ptr"], returns: "void" } as const;
  ffiPort().functionAt(cb, signature)(1n, BigInt(status), between, user_data);
}

/** The steps: begin some, complete one of those begun, drain those completed. */
const programs = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constant("begin" as const),
      kind: fc.constantFrom(...kinds),
      count: fc.integer({ min: 1, max: 90 }),
    }),
    fc.record({
      do: fc.constant("end" as const),
      which: fc.nat(),
      times: fc.integer({ min: 1, max: 90 }),
      status: fc.constantFrom(0, -9, -16, -80),
      length: fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }).map(BigInt),
      tag: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    }),
    fc.record({ do: fc.constant("read" as const), times: fc.integer({ min: 1, max: 60 }) }),
  ),
  { maxLength: 40 },
);

test("any number of completed operations are read once each, in order of completion, with their results", () => {
  check(fc.property(programs, (program) => {
    const operations = new OperationPool(100);
    const begun: [Operation, Kind][] = [];
    const ended: { operation: Operation; status: number; result: unknown }[] = [];
    const read = () => {
      const expected = ended.shift();
      const operation = operations.next();
      assertStrictEquals(operation, expected?.operation);
      if (operation === undefined || expected === undefined) return;
      assertEquals([operation.status, operation.result()], [expected.status, expected.result]);
      operation.isDone = true;
      operations.returnToPool(operation);
    };
    for (const step of program) {
      if (step.do === "begin") {
        for (let i = 0; i < step.count; i++) {
          const operation = operations.take();
          operation.prepare(step.kind, 0);
          operation.isBegun = true;
          begun.push([operation, step.kind]);
        }
      } else if (step.do === "read") {
        for (let i = 0; i < step.times; i++) read();
      } else {
        for (let i = 0; i < step.times && begun.length > 0; i++) {
          const [[operation, kind] = []] = begun.splice(step.which % begun.length, 1);
          if (operation === undefined || kind === undefined) continue;
          end(operation, kind, step.status, step.length, step.tag);
          const received = { length: Number(step.length), tag: step.tag };
          const result = kind === "plain" ? undefined : kind === "tagged" ? received : Number(step.length);
          ended.push({ operation, status: step.status, result });
        }
      }
      assertEquals(operations.inUse, begun.length + ended.length);
    }
    while (ended.length > 0) read();
    assertEquals(operations.pending().length, begun.length);
    operations.close();
  }));
});

test("the lower half of an answer tells completion, failure with a status, and a pending request apart", () => {
  const others = new Set(
    [0n, ...Array.from({ length: 100 }, (_, i) => BigInt(-1 - i))].map((one) => BigInt.asUintN(32, one)),
  );
  const near = fc.tuple(fc.bigInt({ min: 0n, max: 0xffff_ffffn }), fc.bigInt({ min: -130n, max: 30n }))
    .map(([high, low]) => BigInt.asUintN(64, (high << 32n) + low));
  check(fc.property(fc.oneof(near, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })), (request) => {
    assertEquals(isUnambiguous(request), !others.has(BigInt.asUintN(32, request)));
  }));
});

test("the parameters describe the operation to UCX, and no two operations share a byte", () => {
  const operations = new OperationPool(300);
  const mine = Array.from({ length: 200 }, () => operations.take());
  const places = mine.map((operation) => {
    const { request, user_data } = struct(ucp_request_param_t).at(operation.parameters);
    return { start: user_data, parameters: operation.parameters, request };
  }).toSorted((one, other) => one.start < other.start ? -1 : 1);
  places.forEach(({ start, parameters, request }, i) => {
    assert(start + 40n <= parameters && parameters + 96n + 300n <= request, "a record, parameters, UCX's request");
    assert(request <= (places[i + 1]?.start ?? request));
    assertEquals(request % 16n, 0n);
  });
  check(
    fc.property(
      fc.array(fc.record({
        which: fc.nat(3),
        kind: fc.constantFrom(...kinds),
        memoryType: fc.constantFrom(0, 1),
        own: fc.boolean(),
        given: fc.constantFrom(null, 0, 1),
      })),
      (steps) => {
        for (const { which, kind, memoryType, own, given } of steps) {
          const operation = mine[which];
          if (operation === undefined) throw new TypeError("too few operations");
          operation.prepare(kind, memoryType, given, own ? "ours" : "ucx");
          const parameters = struct(ucp_request_param_t).at(operation.parameters);
          const mask = own
            ? request | cb | user_data | memory_type | (kind === "plain" ? 0 : NO_IMM_CMPL) |
              (kind === "sized" || given !== null ? flags : 0)
            : cb | user_data | (given === null ? 0 : flags);
          assertEquals([parameters.op_attr_mask, parameters.memory_type], [mask, memoryType]);
          if (given !== null) assertEquals(parameters.flags, given);
          end(operation, kind, 0, 5n, 6n);
          assertStrictEquals(operations.next(), operation);
        }
      },
    ),
  );
  operations.close();
});

test("where there is no memory for further operations, those that there are complete", () => {
  using calls = new FailingCalls(libc(), { loading: tables.loading });
  const operations = new OperationPool(100);
  for (const nth of [1, 2]) {
    calls.failNth("calloc", nth, 0n);
    assertThrows(() => operations.take(), FfiError, "Cannot allocate");
  }
  calls.failNth("", 0, 0);
  const begun = Array.from({ length: 200 }, () => operations.take());
  for (const operation of begun) {
    operation.prepare("plain", 0);
    end(operation, "plain", 0, 0n, 0n);
  }
  assert(begun.every((operation) => operations.next() === operation));
  operations.close();
});

// In V8 an error keeps the objects whose methods were on the stack.
test("an operation that has failed keeps no worker from being collected", async () => {
  const workers = await Promise.all(Array.from({ length: 20 }, async () => {
    const ucp = new ScriptedUcp();
    const resources = scriptedResources(ucp);
    const progress = new Progress(resources, "event", null);
    const operation = resources.operations.take();
    operation.landing = () => {
      throw new TypeError("no copy");
    };
    operation.bytes = 8;
    operation.prepare("tagged", 0);
    progress.begun(operation, BigInt(ucp.functions.tag.ucp_tag_recv_nbx(1n, 8n, 8n, 0n, 0n, operation.parameters)));
    const failed = assertRejects(() => progress.settled(operation), TypeError, "no copy");
    ucp.finish(1, 0, 8);
    progress.poll();
    await failed;
    progress.stop(new TypeError("over"));
    return { resources, progress: new WeakRef(progress) }; // its resources outlive a worker that was dropped
  }));
  const left = () => workers.filter(({ progress }) => progress.deref() !== undefined).length;
  for (let i = 0; i < 20 && left() > 10; i++) await collectGarbage();
  assert(left() <= 10, `${left()} of 20 are left`); // the stack may hold a few
  for (const { resources } of workers) resources.operations.close();
});
