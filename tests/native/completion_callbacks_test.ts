/** UCX's completion callbacks: what they write, where, and that they touch nothing else. */
import { assertEquals } from "@std/assert";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NativeArena } from "../../src/ffi/arena.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import {
  aarch64Completion,
  type CompletionCallbacks,
  completionCallbacks,
  javaScriptCallbacks,
  x8664Completion,
} from "../../src/native/completion_callbacks.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";
import { missingUnicorn, python } from "../support/emulator.ts";

const kinds = ["plain", "tagged", "sized"] as const;

/** Offsets in the memory of a case: the record, the receive info, the ring, its entries. */
const at = { record: 64, info: 128, ring: 192, entries: 256, end: 256 + 16 * 8 };

const word = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });

/** Arbitrary memory in which one operation completes. */
const ends = fc.record({
  kind: fc.constantFrom(...kinds),
  content: fc.uint8Array({ minLength: at.end, maxLength: at.end }),
  status: fc.oneof(fc.constantFrom(0, -1, -16, -100), fc.integer({ min: -128, max: 127 })),
  garbage: fc.bigInt({ min: 0n, max: 2n ** 56n - 1n }), // the remaining bits of the status register
  length: word,
  tag: word,
  number: word,
  written: fc.oneof(fc.bigInt({ min: 0n, max: 40n }), fc.constant(2n ** 64n - 1n)),
  entries: fc.constantFrom(1n, 2n, 8n, 16n),
});
type End = typeof ends extends fc.Arbitrary<infer T> ? T : never;

/** The memory before and after, if it lies at `base`. */
function model(base: bigint, { kind, content, status, length, tag, number, written, entries }: End) {
  const before = new DataView(content.slice().buffer);
  const put = (memory: DataView, offset: number, value: bigint) => memory.setBigUint64(offset, value, true);
  put(before, at.record, base + BigInt(at.ring));
  put(before, at.record + 32, number);
  put(before, at.info, tag);
  put(before, at.info + 8, length);
  put(before, at.ring, written);
  put(before, at.ring + 8, entries - 1n);
  put(before, at.ring + 16, base + BigInt(at.entries));
  const after = new DataView(before.buffer.slice(0));
  put(after, at.record + 8, BigInt.asUintN(64, BigInt(status)));
  if (kind !== "plain") put(after, at.record + 16, length);
  if (kind === "tagged") put(after, at.record + 24, tag);
  put(after, at.entries + 8 * Number(written % entries), number);
  put(after, at.ring, BigInt.asUintN(64, written + 1n));
  const between = kind === "plain" ? [] : [kind === "tagged" ? base + BigInt(at.info) : length];
  return { before: new Uint8Array(before.buffer), after: new Uint8Array(after.buffer), between };
}

const signatures = {
  plain: { args: ["ptr", "u64", "ptr"], returns: "void" },
  tagged: { args: ["ptr", "u64", "ptr", "ptr"], returns: "void" },
  sized: { args: ["ptr", "u64", "u64", "ptr"], returns: "void" },
} as const;

function call(callbacks: CompletionCallbacks, kind: End["kind"], args: readonly bigint[]): void {
  const [request = 0n, status = 0n, third = 0n, fourth = 0n] = args;
  if (kind === "plain") ffiPort().functionAt(callbacks.plain, signatures.plain)(request, status, third);
  else ffiPort().functionAt(callbacks[kind], signatures[kind])(request, status, third, fourth);
}

const callbacks = [["this process's", completionCallbacks], [
  "JavaScript",
  () => javaScriptCallbacks(ffiPort()),
]] as const;
for (const [whose, get] of callbacks) {
  test(`${whose} callbacks write the result of an operation, and its number into the ring, and nothing else`, () => {
    const made = get();
    check(fc.property(ends, (end) => {
      using arena = new NativeArena();
      const { address, bytes } = arena.bytes(at.end);
      const { before, after, between } = model(address, end);
      bytes.set(before);
      // When the runtime makes the call, the status comes without garbage bits: they concern machine code only.
      const garbage = whose === "JavaScript" ? 0n : end.garbage << 8n;
      const status = garbage | BigInt.asUintN(8, BigInt(end.status));
      call(made, end.kind, [0xdeadn, status, ...between, address + BigInt(at.record)]);
      assertEquals(bytes.toHex(), after.toHex());
    }));
  });
}

for (const [arch, encode] of [["x86_64", x8664Completion], ["aarch64", aarch64Completion]] as const) {
  testOnce(...needs(missingUnicorn, `the ${arch} code does the same, and preserves its caller's registers`), () => {
    const base = 0x30_0000n;
    const sample = fc.sample(ends, { numRuns: 300, seed: 7 });
    const cases = sample.map((end) => {
      const { before, between } = model(base, end);
      const status = end.garbage << 8n | BigInt.asUintN(8, BigInt(end.status));
      const args = [0xdeadn, status, ...between, base + BigInt(at.record)];
      // JSON has no bigint, but Python reads integers of any length.
      return `{"arch":"${arch}","code":"${
        encode(end.kind).toHex()
      }","memory":"${before.toHex()}","arguments":[${args}]}`;
    });
    const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
    const { status, stdout, stderr } = spawnSync(python, [script], { input: `[${cases}]`, encoding: "utf8" });
    assertEquals(status, 0, stderr);
    const reports: { memory: string; returned: boolean; preserved: boolean }[] = JSON.parse(stdout);
    assertEquals(
      reports.map(({ memory, returned, preserved }) => ({ memory, returned, preserved })),
      sample.map((end) => ({ memory: model(base, end).after.toHex(), returned: true, preserved: true })),
    );
  });
}
