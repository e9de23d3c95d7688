/**
 * The programs that call Python, on emulated processors of both kinds: which functions they call in which order with
 * what, and what they leave in their memory. The functions are one piece of code by hand, which writes down what it is
 * called with, returns what a list says, and spoils every register that it may.
 */
import { assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { layoutOf } from "../../src/ffi/struct.ts";
import { aarch64, type Operation, x8664 } from "../../src/native/assembler.ts";
import {
  attributeProgram,
  call_block,
  callProgram,
  made_argument,
  made_entry,
  mostArguments,
  mostEntries,
  offsets,
  Status,
} from "../../src/python/call_programs.ts";
import { missingUnicorn, python } from "../support/emulator.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";

/** Where emulate_call.py puts the memory; in it: the block, the functions, what they write and return, objects. */
const base = 0x30_0000;
const place = { block: 0, functions: 0x1000, log: 0x3000, script: 0xa000, objects: 0xb000, size: 0xd000 };
const functionBytes = 0x100;

const named = [
  ...["PyGILState_Ensure", "PyGILState_Release", "PyObject_VectorcallDict", "PyObject_GetAttr", "Py_DecRef"],
  ...["PyFloat_AsDouble", "PyLong_AsLongLongAndOverflow", "PyTuple_New", "PyTuple_SetItem", "PyCell_Set"],
  ...["PyObject_CallNoArgs", "PyDict_SetItem", "PyErr_Occurred", "selfOf", "functionOf", "make"],
] as const;
type Name = typeof named[number];

const word = (value: bigint) => [...new Uint8Array(BigUint64Array.of(BigInt.asUintN(64, value)).buffer)];
const log = BigInt(base + place.log);

/** Writes {id, four arguments, a double}, and returns what is next in the script, as an integer and as a double. */
const functions = {
  x86_64: (id: number) => [
    ...[0x48, 0xb8, ...word(log)], // movabs rax, log
    ...[0x4c, 0x8b, 0x00], // mov r8, [rax]
    ...[0x49, 0xc7, 0x00, id, 0, 0, 0], // mov qword [r8], id
    ...[0x49, 0x89, 0x78, 0x08, 0x49, 0x89, 0x70, 0x10], // mov [r8 + 8], rdi; mov [r8 + 16], rsi
    ...[0x49, 0x89, 0x50, 0x18, 0x49, 0x89, 0x48, 0x20], // mov [r8 + 24], rdx; mov [r8 + 32], rcx
    ...[0x66, 0x41, 0x0f, 0xd6, 0x40, 0x28], // movq [r8 + 40], xmm0
    ...[0x49, 0x83, 0xc0, 0x30, 0x4c, 0x89, 0x00], // add r8, 48; mov [rax], r8
    ...[0x4c, 0x8b, 0x48, 0x08], // mov r9, [rax + 8]
    ...[0x4d, 0x8b, 0x11, 0xf3, 0x41, 0x0f, 0x7e, 0x01], // mov r10, [r9]; movq xmm0, [r9]
    ...[0x4d, 0x8b, 0x59, 0x08], // mov r11, [r9 + 8]
    ...[0x49, 0x83, 0xc1, 0x10, 0x4c, 0x89, 0x48, 0x08], // add r9, 16; mov [rax + 8], r9
    ...named[id] === "PyLong_AsLongLongAndOverflow" ? [0x44, 0x89, 0x1e] : [], // mov [rsi], r11d
    ...[0x4c, 0x89, 0xd0], // mov rax, r10
    ...[0x48, 0xc7, 0xc7, 0xff, 0xff, 0xff, 0xff], // mov rdi, -1, and so on
    ...[0x48, 0x89, 0xfe, 0x48, 0x89, 0xfa, 0x48, 0x89, 0xf9, 0x49, 0x89, 0xf8, 0x49, 0x89, 0xf9, 0x49, 0x89, 0xfa],
    ...[0x49, 0x89, 0xfb, 0xc3], // mov r11, rdi; ret
  ],
  aarch64: (id: number) => {
    const put = (register: number, at: number) => 0xf9000000 | at / 8 << 10 | 10 << 5 | register; // str, [x10, #at]
    const code = [
      0x58000009, // ldr x9, log
      0xf940012a, // ldr x10, [x9]
      0xd280000b | id << 5, // mov x11, #id
      ...[put(11, 0), put(0, 8), put(1, 16), put(2, 24), put(3, 32)],
      0xfd000000 | 5 << 10 | 10 << 5, // str d0, [x10, #40]
      0x9100c14a, // add x10, x10, #48
      0xf900012a, // str x10, [x9]
      0xf940052a, // ldr x10, [x9, #8]
      0xf940014b, // ldr x11, [x10]
      0xfd400140, // ldr d0, [x10]
      0xf940054c, // ldr x12, [x10, #8]
      0x9100414a, // add x10, x10, #16
      0xf900052a, // str x10, [x9, #8]
      ...named[id] === "PyLong_AsLongLongAndOverflow" ? [0xb900002c] : [], // str w12, [x1]
      0xaa0b03e0, // mov x0, x11
      ...Array.from({ length: 17 }, (_, i) => 0x92800000 | i + 1), // mov x1 to x17, #-1
      0xd65f03c0, // ret
    ];
    if (code.length % 2 === 1) code.push(0);
    code[0] = 0x58000009 | code.length << 5;
    return [...new Uint8Array(Uint32Array.from(code).buffer), ...word(log)];
  },
} as const;

const architectures = { x86_64: x8664, aarch64 } as const;

/** What is called, and what an object may be. */
const object = fc.nat(7).map((i) => BigInt(base + place.objects + 0x40 * (i + 1)));
const types = { float: 0x7000_0001n, int: 0x7000_0002n, method: 0x7000_0003n, other: 0x7000_0004n } as const;
const [none, yes, no] = [9, 10, 11].map((i) => BigInt(base + place.objects + 0x40 * i)) as [bigint, bigint, bigint];
const known = { none, true: yes, false: no } as const;
const anything = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });

/** An entry of a dict, which is the argument of this number. */
interface Entry {
  readonly first: bigint;
  readonly second: bigint;
  readonly made: bigint;
  readonly key: bigint;
  readonly dict: number;
}

const cases = fc.record({
  kind: fc.constantFrom("call", "framed", "attribute"),
  locks: fc.boolean(),
  typeAt: fc.constantFrom(8, 24),
  arguments: fc.array(fc.record({ first: anything, second: anything, made: object }), { maxLength: mostArguments }),
  entries: fc.oneof(
    { weight: 2, arbitrary: fc.constant([] as Entry[]) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.record({ first: anything, second: anything, made: object, key: object, dict: fc.nat(mostArguments - 1) }),
        { maxLength: mostEntries },
      ),
    },
  ),
  entryFailsAt: fc.oneof({ weight: 4, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(mostEntries) }),
  pending: fc.oneof({ weight: 4, arbitrary: fc.constant(0n) }, { weight: 1, arbitrary: object }),
  isNamed: fc.boolean(),
  failsAt: fc.oneof({ weight: 4, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(mostArguments) }),
  tuple: fc.oneof({ weight: 5, arbitrary: object }, { weight: 1, arbitrary: fc.constant(0n) }),
  result: fc.oneof(object, fc.constant(0n), fc.constantFrom(...Object.values(known))),
  type: fc.constantFrom(...Object.keys(types) as (keyof typeof types)[]),
  value: anything,
  overflow: fc.constantFrom(0n, 0n, 1n, 0xffff_ffffn),
  afterwards: fc.oneof(fc.constant(0n), object),
  object,
  name: object,
  state: fc.constantFrom(0n, 1n),
  keepsLock: fc.boolean(),
  expected: fc.constantFrom("nothing", "object", "method"),
  expectedObject: object,
  self: fc.constantFrom("this", "another"),
  target: fc.constantFrom("this", "another"),
  adopts: fc.boolean(),
});
type Case = typeof cases extends fc.Arbitrary<infer C> ? C : never;

interface Call {
  readonly name: Name;
  readonly args: readonly bigint[];
  readonly returns: readonly [result: bigint, second: bigint];
}

const minus = (value: bigint) => BigInt.asUintN(64, -value);
const blockAt = (field: keyof typeof offsets) => BigInt(base + place.block + offsets[field]);

/** The calls that are to be made, by the description of Python's functions, and what is to stand in the block. */
function expectedOf(one: Case): { readonly calls: readonly Call[]; readonly after: Readonly<Record<string, bigint>> } {
  const calls: Call[] = [];
  const call = (name: Name, args: readonly bigint[], result = 0n, second = 0n) => {
    calls.push({ name, args, returns: [result, second] });
    return result;
  };
  const after: Record<string, bigint> = {};
  const end = (status: Status) => ({ calls, after: { ...after, status: BigInt(status) } });
  if (one.locks) after["state"] = call("PyGILState_Ensure", [], one.state);
  let result: bigint;
  if (one.kind === "attribute") {
    result = call("PyObject_GetAttr", [one.object, one.name], one.result);
    if (result === 0n) return end(Status.raised);
    const isObject = one.expected === "object" && result === one.expectedObject;
    const isMethod = !isObject && one.expected === "method" && typeOf(one, result) === types.method &&
      call("selfOf", [result], one.self === "this" ? 0x81n : 0x82n) === 0x81n &&
      call("functionOf", [result], one.target === "this" ? 0x91n : 0x92n) === 0x91n;
    if (isObject || isMethod) {
      after["result"] = result;
      if (!one.adopts) call("Py_DecRef", [result]);
      unlock();
      return end(Status.same);
    }
  } else {
    for (const [i, { first, second, made }] of one.arguments.entries()) {
      if (call("make", [first, second], i === one.failsAt ? 0n : made) !== 0n) continue;
      after["left"] = BigInt(one.arguments.length - i);
      return end(Status.notMade);
    }
    const made = one.arguments.map((argument) => argument.made);
    for (const [i, { first, second, key, dict, made: value }] of entriesOf(one).entries()) {
      if (call("make", [first, second], i === one.entryFailsAt ? 0n : value) === 0n) return notMade();
      call("PyDict_SetItem", [made[dict] ?? 0n, key, value], 0xffff_ffffn);
      call("Py_DecRef", [value]);
    }
    if (entriesOf(one).length > 0 && call("PyErr_Occurred", [], one.pending) !== 0n) return notMade();
    if (one.kind === "call") {
      const byName = isNamed(one) ? made[made.length - 1] ?? 0n : 0n;
      const flagged = BigInt(made.length - Number(isNamed(one))) | 1n << 63n;
      result = call("PyObject_VectorcallDict", [one.object, blockAt("objects"), flagged, byName], one.result);
      for (const each of made) call("Py_DecRef", [each]);
    } else {
      let given = made[0] ?? 0n;
      if (isNamed(one) || made.length !== 1) {
        const byPosition = isNamed(one) ? made.slice(0, -1) : made;
        given = call("PyTuple_New", [BigInt(byPosition.length)], one.tuple);
        if (given === 0n) return notMade();
        byPosition.forEach((each, i) => call("PyTuple_SetItem", [given, BigInt(i), each]));
      }
      if (isNamed(one)) {
        const byName = made[made.length - 1] ?? 0n;
        call("PyCell_Set", [0xa4n, byName]);
        call("Py_DecRef", [byName]);
      }
      call("PyCell_Set", [0xa2n, given]);
      call("PyCell_Set", [0xa1n, one.object]);
      call("Py_DecRef", [given]);
      result = call("PyObject_CallNoArgs", [0xa3n], one.result);
      call("PyCell_Set", [0xa1n, 0n]);
      call("PyCell_Set", [0xa2n, 0n]);
      if (isNamed(one)) call("PyCell_Set", [0xa4n, 0n]);
    }
    call("Py_DecRef", [one.afterwards]);
    if (result === 0n) return end(Status.raised);
  }
  const type = typeOf(one, result);
  if (type === types.float) {
    after["value"] = call("PyFloat_AsDouble", [result], one.value);
    return simple(Status.float);
  }
  if (type === types.int) {
    after["value"] = call("PyLong_AsLongLongAndOverflow", [result, blockAt("overflow")], one.value, one.overflow);
    if (one.overflow === 0n) return simple(Status.int);
  }
  for (const name of ["none", "true", "false"] as const) if (result === known[name]) return simple(Status[name]);
  after["result"] = result;
  return end(Status.object);

  /** All arguments were made, and are to be released. */
  function notMade() {
    after["left"] = 0n;
    return end(Status.notMade);
  }
  function simple(status: Status) {
    call("Py_DecRef", [result]);
    unlock();
    return end(status);
  }
  function unlock() {
    if (one.locks && !one.keepsLock) call("PyGILState_Release", [one.state]);
  }
}

/** The entries whose dict is one of the arguments. */
function entriesOf(one: Case): readonly Entry[] {
  return one.entries.filter(({ dict }) => dict < one.arguments.length);
}

function isNamed(one: Case): boolean {
  return one.isNamed && one.arguments.length > 0;
}

/** The type that stands in an object; None, True and False are none of those that are looked at. */
function typeOf(one: Case, object: bigint): bigint {
  return object >= none ? types.other : types[one.type];
}

function memoryOf(one: Case, arch: keyof typeof functions, calls: readonly Call[]): Buffer {
  const memory = Buffer.alloc(place.size);
  const set = (at: number, value: bigint) => memory.writeBigUInt64LE(BigInt.asUintN(64, value), at);
  const functionAt = (name: Name) => BigInt(base + place.functions + functionBytes * named.indexOf(name));
  named.forEach((_, id) => memory.set(functions[arch](id), place.functions + functionBytes * id));
  set(place.log, log + 16n);
  set(place.log + 8, BigInt(base + place.script));
  calls.forEach(({ returns }, i) => returns.forEach((value, k) => set(place.script + 16 * i + 8 * k, value)));
  for (let i = 1; i <= 11; i++) {
    const at = place.objects + 0x40 * i;
    set(at + one.typeAt, typeOf(one, BigInt(base + at)));
  }
  const field = (name: keyof typeof offsets, value: bigint) => set(place.block + offsets[name], value);
  for (const name of named) if (name in offsets) field(name as keyof typeof offsets, functionAt(name));
  const count = one.arguments.length;
  const fields: Partial<Record<keyof typeof offsets, bigint>> = {
    ...{ minusFloat: minus(types.float), minusInt: minus(types.int), minusNone: minus(known.none) },
    ...{ minusTrue: minus(known.true), minusFalse: minus(known.false), object: one.object, name: one.name },
    ...{ afterwards: one.afterwards, count: BigInt(count), entryCount: BigInt(entriesOf(one).length) },
    ...{ countAndFlag: BigInt(count - Number(isNamed(one))) | 1n << 63n },
    ...{ byName: isNamed(one) ? blockAt("objects") + 8n * BigInt(count - 1) : 0n },
    ...{ functionCell: 0xa1n, argumentsCell: 0xa2n, keywordsCell: 0xa4n, frame: 0xa3n },
    ...{ asTuple: count === 1 && !isNamed(one) ? 0n : 1n, positional: BigInt(count - Number(isNamed(one))) },
    ...{ minusObject: one.expected === "object" ? minus(one.expectedObject) : 0n },
    ...one.expected === "method"
      ? { minusType: minus(types.method), minusSelf: minus(0x81n), minusFunction: minus(0x91n) }
      : {},
    ...{ adopts: one.adopts ? 1n : 0n, keepsLock: one.keepsLock ? 1n : 0n },
  };
  for (const [name, value] of Object.entries(fields)) field(name as keyof typeof offsets, value);
  const made = layoutOf(made_argument);
  one.arguments.forEach(({ first, second }, i) => {
    const at = place.block + offsets.made + i * made.size;
    set(at + made.offsets.make, functionAt("make"));
    set(at + made.offsets.first, first);
    set(at + made.offsets.second, second);
  });
  const entry = layoutOf(made_entry);
  entriesOf(one).forEach(({ first, second, key, dict }, i) => {
    const at = place.block + offsets.entries + i * entry.size;
    set(at + made.offsets.make, functionAt("make"));
    set(at + made.offsets.first, first);
    set(at + made.offsets.second, second);
    set(at + entry.offsets.key, key);
    set(at + entry.offsets.dict, blockAt("objects") + 8n * BigInt(dict));
  });
  return memory;
}

function programOf({ kind, typeAt, locks }: Case): readonly Operation[] {
  return kind === "attribute" ? attributeProgram(typeAt, locks) : callProgram(typeAt, locks, kind === "framed");
}

const hex = (code: Uint8Array) => Buffer.from(code).toString("hex");

for (const arch of ["x86_64", "aarch64"] as const) {
  test(
    ...needs(missingUnicorn, `${arch}: a program calls what it should with what it should, and says what came`),
    () => {
      check(
        fc.property(fc.noShrink(fc.array(cases, { minLength: 60, maxLength: 60 })), (all) => {
          const expected = all.map(expectedOf);
          const given = all.map((one, i) => ({
            arch,
            memory: hex(memoryOf(one, arch, expected[i]?.calls ?? [])),
            code: hex(architectures[arch](programOf(one))),
            arguments: [base + place.block],
          }));
          const script = fileURLToPath(new URL("../support/emulate_call.py", import.meta.url));
          const { status, stdout, stderr } = spawnSync(python, [script], {
            input: JSON.stringify(given),
            encoding: "utf8",
            maxBuffer: 2 ** 28,
          });
          assertEquals(status, 0, stderr);
          const reports = JSON.parse(stdout) as { memory: string; returned: boolean; preserved: boolean }[];
          reports.forEach(({ memory, returned, preserved }, i) => {
            const { calls, after } = expected[i] ?? { calls: [], after: {} };
            const bytes = Buffer.from(memory, "hex");
            const read = (at: number) => bytes.readBigUInt64LE(at);
            const made = Number(read(place.log) - log - 16n) / 48;
            const seen = Array.from({ length: made }, (_, k) => {
              const at = place.log + 16 + 48 * k;
              const name = named[Number(read(at))] ?? "?";
              // A maker may take its first argument as a double.
              const count = calls[k]?.args.length ?? 4;
              const args = Array.from({ length: count }, (_, n) => read(at + 8 + 8 * n));
              return { name, args: name === "make" ? [...args, read(at + 40)] : args };
            });
            const wanted = calls.map(({ name, args }) => ({
              name: name as string,
              args: name === "make"
                ? [...args, args[0] ?? 0n]
                : name === "PyGILState_Release"
                ? [args[0] ?? 0n]
                : [...args],
            }));
            assertEquals({ seen, returned, preserved }, { seen: wanted, returned: true, preserved: true });
            const fields = Object.fromEntries(
              Object.keys(after).map((name) => [name, read(place.block + offsets[name as keyof typeof offsets])]),
            );
            assertEquals(fields, after);
          });
        }),
        6,
      );
    },
  );
}

test("the block is as its description says, and all that the programs read of it is in reach", () => {
  const { size } = layoutOf(call_block);
  assertEquals(size % 8, 0);
  for (const name of Object.keys(offsets) as (keyof typeof offsets)[]) {
    assertEquals(offsets[name] % 8, 0, name);
    assertEquals(offsets[name] <= 4088 && offsets[name] < place.functions, true, name);
  }
});
