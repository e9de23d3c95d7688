/** The copy whose stores bypass the caches: the same bytes as memcpy, and no others. */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NativeArena } from "../../src/ffi/arena.ts";
import { cString } from "../../src/ffi/c_string.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { nonTemporalCopy, x8664NonTemporalCopy } from "../../src/native/non_temporal_copy.ts";
import { canMoveNatively, prepareMove } from "../../src/native/strided_mover.ts";
import { pattern } from "../support/arrays.ts";
import { missingUnicorn, python } from "../support/emulator.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";

const noCode = canMoveNatively() ? null : "the system refuses executable memory";

test("a streaming copy writes exactly the bytes that it was given", () => {
  const copy = ffiPort().functionAt(nonTemporalCopy(), { args: ["ptr", "ptr", "size"], returns: "void" });
  using arena = new NativeArena();
  const size = 1024;
  const [from, to] = [arena.bytes(size, 64), arena.bytes(size, 64)];
  const bytes = fc.oneof(fc.nat(200), fc.constantFrom(0, 63, 64, 65, 128, 640), fc.nat(800));
  check(
    fc.property(fc.nat(130), fc.nat(130), bytes, fc.nat(255), (source, target, count, seed) => {
      from.bytes.forEach((_, i) => from.bytes[i] = i * 7 + seed);
      to.bytes.forEach((_, i) => to.bytes[i] = i * 5 + seed + 1);
      const expected = to.bytes.slice();
      expected.set(from.bytes.subarray(source, source + count), target);
      copy(to.address + BigInt(target), from.address + BigInt(source), BigInt(count));
      assertEquals(to.bytes, expected);
    }),
    300,
  );
});

/** Where emulate_call.py puts the memory. */
const base = 0x30_0000;

testOnce(
  ...needs(missingUnicorn, "x86-64: so does its code on an emulated processor, which it leaves as it was"),
  () => {
    const counts = [0, 1, 15, 63, 64, 65, 127, 128, 200, 500];
    const cases = counts.flatMap((count) =>
      [[0, 0], [1, 0], [0, 1], [63, 7], [40, 64]].map(([source = 0, target = 0]) => {
        const memory = pattern(2048, count + source);
        const expected = memory.slice();
        expected.copyWithin(1024 + target, source, source + count);
        return { memory, expected, arguments: [base + 1024 + target, base + source, count] };
      })
    );
    const code = x8664NonTemporalCopy().toHex();
    const input = JSON.stringify(
      cases.map(({ memory, arguments: values }) => ({
        arch: "x86_64",
        code,
        memory: memory.toHex(),
        arguments: values,
      })),
    );
    const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
    const { status, stdout, stderr } = spawnSync(python, [script], { input, encoding: "utf8" });
    assertEquals(status, 0, stderr);
    const reports: { memory: string; returned: boolean; preserved: boolean }[] = JSON.parse(stdout);
    assertEquals(
      reports.map(({ memory, returned, preserved }) => ({ memory, returned, preserved })),
      cases.map(({ expected }) => ({ memory: expected.toHex(), returned: true, preserved: true })),
    );
  },
);

test(...needs(noCode, "a run that no cache would keep uses the streaming copy, any other uses memcpy"), () => {
  const memcpy = libc().loading.dlsym(0n, cString("memcpy"));
  const functionOf = (isFar?: boolean) => {
    const move = { bytes: 100, axes: [], ...isFar === undefined ? {} : { isFar } };
    return new BigUint64Array(prepareMove(move)?.addresses.buffer ?? new ArrayBuffer(32))[3];
  };
  assertEquals([undefined, false, true].map(functionOf), [memcpy, memcpy, nonTemporalCopy()]);
});
