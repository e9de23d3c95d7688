/**
 * The programs that call Python, on emulated processors of both architectures: which functions they call, in which
 * order and with which arguments, and what they leave in their memory.
 */
import { assertEquals } from "@std/assert";
import type { Buffer } from "node:buffer";
import { test } from "node:test";
import { layoutOf } from "../../src/ffi/struct.ts";
import type { Operation } from "../../src/native/assembler.ts";
import {
  attributeProgram,
  call_block,
  callProgram,
  made_argument,
  made_entry,
  maxArguments,
  maxEntries,
  offsets,
  Status,
} from "../../src/python/call_programs.ts";
import { type Architecture, base, type Call, emulate, memoryFor, place } from "../support/emulated_calls.ts";
import { missingUnicorn } from "../support/emulator.ts";
import { needs } from "../support/needs.ts";
import { testOnce } from "../support/once.ts";
import { check, fc } from "../support/property.ts";

const named = [
  ...["PyGILState_Ensure", "PyGILState_Release", "PyObject_VectorcallDict", "PyObject_GetAttr", "Py_DecRef"],
  ...["PyFloat_AsDouble", "PyLong_AsLongLongAndOverflow", "PyTuple_New", "PyTuple_SetItem", "PyCell_Set"],
  ...["PyObject_CallNoArgs", "PyDict_SetItem", "PyErr_Occurred", "selfOf", "functionOf", "make"],
] as const;
type Name = typeof named[number];

/** Objects to call or pass, and their possible types. */
const object = fc.nat(7).map((i) => BigInt(base + place.objects + 0x40 * (i + 1)));
const types = {
  ...{ float: 0x7000_0001n, int: 0x7000_0002n, method: 0x7000_0003n, other: 0x7000_0004n },
  otherFloat: 0x7000_0005n,
} as const;
const [none, yes, no] = [9, 10, 11].map((i) => BigInt(base + place.objects + 0x40 * i)) as [bigint, bigint, bigint];
const known = { none, true: yes, false: no } as const;
const anything = fc.bigInt({ min: 0n, max: (1n << 64n) - 1n });

/** An entry of a dict; `dict` is the number of the argument that is this dict. */
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
  arguments: fc.array(fc.record({ first: anything, second: anything, made: object }), { maxLength: maxArguments }),
  entries: fc.oneof(
    { weight: 2, arbitrary: fc.constant([] as Entry[]) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.record({ first: anything, second: anything, made: object, key: object, dict: fc.nat(maxArguments - 1) }),
        { maxLength: maxEntries },
      ),
    },
  ),
  entryFailsAt: fc.oneof({ weight: 4, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(maxEntries) }),
  pending: fc.oneof({ weight: 4, arbitrary: fc.constant(0n) }, { weight: 1, arbitrary: object }),
  isNamed: fc.boolean(),
  failsAt: fc.oneof({ weight: 4, arbitrary: fc.constant(-1) }, { weight: 1, arbitrary: fc.nat(maxArguments) }),
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

const minus = (value: bigint) => BigInt.asUintN(64, -value);
const blockAt = (field: keyof typeof offsets) => BigInt(base + place.block + offsets[field]);

/** The expected calls, by the description of Python's functions, and the expected contents of the block. */
function expectedOf(
  one: Case,
): { readonly calls: readonly Call<Name>[]; readonly after: Readonly<Record<string, bigint>> } {
  const calls: Call<Name>[] = [];
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
  if (type === types.float || type === types.otherFloat) {
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

  /** Expects that all arguments made are released. */
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

/** The type stored in an object; None, True and False have none of the types that are checked. */
function typeOf(one: Case, object: bigint): bigint {
  return object >= none ? types.other : types[one.type];
}

function memoryOf(one: Case, arch: Architecture, calls: readonly Call<Name>[]): Buffer {
  const { memory, set, functionAt } = memoryFor(named, arch, calls);
  for (let i = 1; i <= 11; i++) {
    const at = place.objects + 0x40 * i;
    set(at + one.typeAt, typeOf(one, BigInt(base + at)));
  }
  const field = (name: keyof typeof offsets, value: bigint) => set(place.block + offsets[name], value);
  for (const name of named) if (name in offsets) field(name as keyof typeof offsets, functionAt(name));
  const count = one.arguments.length;
  const fields: Partial<Record<keyof typeof offsets, bigint>> = {
    ...{ minusFloat: minus(types.float), minusInt: minus(types.int), minusNone: minus(known.none) },
    ...{
      minusOtherFloat: minus(types.otherFloat),
      minusTrue: minus(known.true),
      minusFalse: minus(known.false),
      object: one.object,
      name: one.name,
    },
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

for (const arch of ["x86_64", "aarch64"] as const) {
  testOnce(
    ...needs(
      missingUnicorn,
      `${arch}: a program makes the expected calls with their arguments, and reports the results`,
    ),
    () => {
      check(
        fc.property(fc.noShrink(fc.array(cases, { minLength: 60, maxLength: 60 })), (all) => {
          const expected = all.map(expectedOf);
          const programs = all.map((one, i) => ({
            program: programOf(one),
            memory: memoryOf(one, arch, expected[i]?.calls ?? []),
          }));
          emulate(arch, programs).forEach(({ read, returned, preserved, calls: made }, i) => {
            const { calls, after } = expected[i] ?? { calls: [], after: {} };
            const seen = made.map(({ id, args }, k) => {
              const name = named[id] ?? "?";
              const all = args.slice(0, calls[k]?.args.length ?? 4);
              // A maker may take its first argument as a double.
              return { name, args: name === "make" ? [...all, args[4] ?? 0n] : all };
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
        3,
      );
    },
  );
}

test("the block matches its description, and everything that the programs read of it is in reach", () => {
  const { size } = layoutOf(call_block);
  assertEquals(size % 8, 0);
  for (const name of Object.keys(offsets) as (keyof typeof offsets)[]) {
    assertEquals(offsets[name] % 8, 0, name);
    assertEquals(offsets[name] <= 4088 && offsets[name] < place.functions, true, name);
  }
});
