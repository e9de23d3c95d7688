/** The functions of exported Arrow streams: their effect on memory, as machine code of both kinds and in JavaScript. */
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import {
  aarch64Load,
  aarch64Take,
  streamCallbacks,
  type StreamKind,
  streamThunks,
  type TakeShape,
  x8664Load,
  x8664Take,
} from "../../src/native/arrow_stream_thunk.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";
import { missingUnicorn, python } from "../support/emulator.ts";

/** From the headers: the offset of a stream's state, and the size of an item. */
const kinds: Readonly<Record<StreamKind, { context: number; array: number }>> = {
  ArrowArrayStream: { context: 32, array: 80 },
  ArrowDeviceArrayStream: { context: 40, array: 128 },
};

for (const [made, thunks] of [["this process's", streamThunks], ["JavaScript", callbacks]] as const) {
  for (const kind of ["ArrowArrayStream", "ArrowDeviceArrayStream"] as const) {
    test(`${made} functions of an ${kind} return each item once, and then report the end`, () => {
      using arena = new NativeArena();
      const { context, array } = kinds[kind];
      const { get_schema, get_next, get_last_error } = thunks(kind);
      const [stream, state, items, out] = [48, 48, 3 * array + 2 * 72, 128].map((size) => arena.bytes(size));
      assert(stream !== undefined && state !== undefined && items !== undefined && out !== undefined);
      items.bytes.forEach((_, i) => items.bytes[i] = (i * 7 + 1) & 255);
      const set = (at: { bytes: Uint8Array }, offset: number, value: bigint) =>
        new DataView(at.bytes.buffer, at.bytes.byteOffset).setBigUint64(offset, value, true);
      set(stream, context, state.address);
      const ends = [0, 3 * array, 3 * array + 2 * 72].map((at) => items.address + BigInt(at));
      [ends[0], ends[1], ends[1], ends[2], 77n].forEach((value, i) => set(state, 8 + i * 8, value ?? 0n));
      const call = (address: bigint) =>
        ffiPort().functionAt(address, { args: ["ptr", "ptr"], returns: "i32" })(stream.address, out.address);
      for (let i = 0; i < 3; i++) {
        out.bytes.fill(0xee);
        assertEquals(call(get_next), 0);
        assertEquals(out.bytes.slice(0, array), items.bytes.slice(i * array, (i + 1) * array));
        assert(out.bytes.subarray(array).every((byte) => byte === 0xee));
      }
      for (let again = 0; again < 2; again++) {
        out.bytes.fill(0xee);
        assertEquals(call(get_next), 0);
        assertEquals(out.bytes.findIndex((byte) => byte === 0), 64, "release is NULL at the end");
        assertEquals(out.bytes.filter((byte) => byte === 0xee).length, 120);
      }
      for (let i = 0; i < 2; i++) {
        assertEquals(call(get_schema), 0);
        assertEquals(out.bytes.slice(0, 72), items.bytes.slice(3 * array + i * 72, 3 * array + (i + 1) * 72));
      }
      assertEquals(call(get_schema), 12);
      assertEquals(ffiPort().functionAt(get_last_error, { args: ["ptr"], returns: "ptr" })(stream.address), 77n);
    });
  }
}

function callbacks(kind: StreamKind) {
  return streamCallbacks(ffiPort(), kind);
}

const base = 0x30_0000;
const shapes: fc.Arbitrary<TakeShape> = fc.record({
  context: fc.nat(14).map((words) => words * 8),
  list: fc.nat(13).map((words) => words * 8),
  size: fc.integer({ min: 9, max: 40 }).map((words) => words * 8),
  atEnd: fc.oneof(
    fc.record({ clear: fc.nat(8).map((words) => words * 8) }),
    fc.record({ error: fc.integer({ min: 1, max: 133 }) }),
  ),
});

for (const [arch, take, load] of [["x86_64", x8664Take, x8664Load], ["aarch64", aarch64Take, aarch64Load]] as const) {
  testOnce(
    ...needs(missingUnicorn, `${arch}: the code takes items on an emulated processor, for any offsets and sizes`),
    () => {
      const cases = fc.record({
        shape: shapes,
        left: fc.nat(2),
        content: fc.uint8Array({ minLength: 2048, maxLength: 2048 }),
      });
      check(
        fc.property(fc.noShrink(fc.array(cases, { minLength: 60, maxLength: 60 })), (all) => {
          const made = all.map(({ shape, left, content }) => {
            const memory = Buffer.from(content);
            // The stream, its state, items and destination, in this order.
            const [stream, state, items, out] = [base, base + 0x100, base + 0x200, base + 0x600];
            memory.writeBigUInt64LE(BigInt(state), shape.context);
            memory.writeBigUInt64LE(BigInt(items), 0x100 + shape.list);
            memory.writeBigUInt64LE(BigInt(items + left * shape.size), 0x100 + shape.list + 8);
            const expected = Buffer.from(memory);
            if (left > 0) {
              memory.copy(expected, 0x600, 0x200, 0x200 + shape.size);
              expected.writeBigUInt64LE(BigInt(items + shape.size), 0x100 + shape.list);
            } else if ("clear" in shape.atEnd) expected.writeBigUInt64LE(0n, 0x600 + shape.atEnd.clear);
            const result = left === 0 && "error" in shape.atEnd ? shape.atEnd.error : 0;
            const common = { arch, memory: memory.toString("hex"), arguments: [stream, out] };
            const field = memory.readBigUInt64LE(0x100 + shape.list);
            return [
              { case: { ...common, code: hex(take(shape)) }, expected: expected.toString("hex"), result: `${result}` },
              {
                case: { ...common, code: hex(load(shape.context, shape.list)) },
                expected: common.memory,
                result: `${field}`,
              },
            ];
          }).flat();
          const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
          const input = JSON.stringify(made.map((one) => one.case));
          const { status, stdout, stderr } = spawnSync(python, [script], {
            input,
            encoding: "utf8",
            maxBuffer: 2 ** 28,
          });
          assertEquals(status, 0, stderr);
          const reports = JSON.parse(stdout) as {
            memory: string;
            result: string;
            returned: boolean;
            preserved: boolean;
          }[];
          assertEquals(reports.length, made.length);
          for (const [i, { expected, result }] of made.entries()) {
            assertEquals(reports[i], { memory: expected, result, returned: true, preserved: true });
          }
        }),
        2,
      );
    },
  );
}

function hex(code: Uint8Array): string {
  return Buffer.from(code).toString("hex");
}
