/**
 * Malformed Arrow structs, in a separate process: a valid struct is broken in one place, and its pointers that must no
 * longer be followed point to unmapped memory. One read too many kills the process.
 *
 * Prints what was tried as JSON.
 */
import { assert, assertEquals, assertInstanceOf } from "@std/assert";
import { ArrowArray, ArrowStream, Cuda, ExchangeError } from "../../mod.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { checkUntil, fc, scaled } from "../support/property.ts";
import { encode, type Model, models, quirks, valueOf } from "../support/arrow_model.ts";
import { nextCase } from "../support/fuzz.ts";
import { GuardedMemory, nowhere } from "../support/guarded_memory.ts";
import { CountingRelease, layout, pointerAt, RawWriter, readRawArray, setPointer } from "../support/raw_arrow.ts";

/** A struct of a valid tree. */
interface Node {
  readonly schema: bigint;
  readonly array: bigint;
  readonly model: Model;
  /** The structs from the root to this one. */
  readonly path: readonly Node[];
}

function nodesOf(schema: bigint, array: bigint, model: Model, above: readonly Node[] = []): Node[] {
  const node: Node = { schema, array, model, path: [] };
  const path = [...above, node];
  const inner = model.children.flatMap((child, i) =>
    nodesOf(pointerAt(pointerAt(schema, 40), i * 8), pointerAt(pointerAt(array, 48), i * 8), child, path)
  );
  const entries = model.dictionary === null
    ? []
    : nodesOf(pointerAt(schema, 48), pointerAt(array, 56), model.dictionary, path);
  return [{ ...node, path }, ...inner, ...entries];
}

const int64 = (value: bigint) => BigInt.asUintN(64, value);
const wildCounts = [-1n, -(1n << 63n), 1n << 40n, 1n << 53n, 1n << 62n, (1n << 63n) - 1n].map(int64);
const wildLengths = [-1n, -(1n << 63n), 1n << 53n, (1n << 63n) - 1n].map(int64);
const badFormats = [
  ...["", "x", "ii", "+q", "+", "w", "w:", "w:-1", "w:1x", "w:99999999999", "+w", "+w:", "+w:-2", "+w:4294967296"],
  ...["d:", "d:5", "d:0,1", "d:39,1", "d:77,0,256", "d:10,2,77", "d:1,2,3,4", "d:a,b", "d:-5,2"],
  ...["ts", "tss", "tsq:", "tt", "ttx", "tDs:", "td", "tdX", "ti", "tiX", "v", "vq"],
  ...["+ud:0,1", "+us:", "+r", "+vx", "+v", "\u{1f600}", "i".repeat(5000)],
];

/** Breaks a struct in one way; returns false if it cannot be broken that way. */
type Break = (node: Node, arena: GuardedMemory, pick: number) => boolean;

const choose = <T>(list: readonly T[], pick: number): T => {
  const chosen = list[pick % list.length];
  if (chosen === undefined) throw new Error("nothing to choose from");
  return chosen;
};

function lose(array: bigint): void {
  for (const at of [40, 48, 56]) setPointer(array, at, nowhere);
}

const lengthOf = ({ array }: Node) => Number(pointerAt(array, 0));
const offsetOf = ({ array }: Node) => Number(pointerAt(array, 16));
const hasOffsets = ({ model }: Node) => model.dictionary === null && /^(\+[lLm]|[uUzZ])$/.test(model.format);
const offsetWidth = ({ model }: Node) => /[LUZ]/.test(model.format) ? 8 : 4;
const isNested = ({ model }: Node) => model.children.length > 0;
const hasSecond = ({ model }: Node) => !/^(n|\+s|\+w:\d+|w:0)$/.test(model.format);
const misplaced = (node: Node, pick: number, of: "schema" | "array") =>
  [0n, 0x1003n, ...node.path.map((one) => one[of])][
    pick % (2 + node.path.length)
  ] ?? 0n;

const breaks: Readonly<Record<string, Break>> = {
  "a released schema": ({ schema }) => {
    for (const at of [0, 8, 16, 40, 48]) setPointer(schema, at, nowhere);
    setPointer(schema, 56, 0n);
    return true;
  },
  "no format": ({ schema }) => {
    for (const at of [8, 16, 40, 48]) setPointer(schema, at, nowhere);
    setPointer(schema, 0, 0n);
    return true;
  },
  "a bad format": ({ schema }, arena, pick) => {
    setPointer(schema, 0, arena.cString(choose(badFormats, pick)));
    return true;
  },
  "a wild number of schema children": ({ schema }, _, pick) => {
    setPointer(schema, 32, choose(wildCounts, pick));
    setPointer(schema, 40, nowhere);
    return true;
  },
  "children of a type that has none": (node, arena) => {
    if (/^\+/.test(node.model.format)) return false;
    setPointer(node.schema, 32, 1n);
    const child = new RawWriter(arena, release).schema({ ...node.model, format: "i", children: [], dictionary: null });
    const { address } = arena.bytes(8);
    setPointer(address, 0, child);
    setPointer(node.schema, 40, address);
    return true;
  },
  "children of a schema at NULL or between addresses": (node, _, pick) => {
    if (isNested(node)) setPointer(node.schema, 40, choose([0n, 0x1003n], pick));
    return isNested(node);
  },
  "a schema inside itself": (node, _, pick) => {
    if (isNested(node)) setPointer(pointerAt(node.schema, 40), 0, misplaced(node, pick, "schema"));
    return isNested(node);
  },
  "a dictionary schema inside itself": (node, _, pick) => {
    setPointer(node.schema, 48, misplaced(node, pick, "schema") || 0x1003n);
    return true;
  },
  "negative lengths in metadata": ({ schema }, arena, pick) => {
    const { address, bytes } = arena.bytes(16);
    const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
    const [count = 0, key = 0, value = 0] = choose(
      [[-1, 0, 0], [1, -5, 0], [1, 0, -(2 ** 31)], [2 ** 31 - 1, 0, 0]],
      pick,
    );
    view.setInt32(0, count, true);
    view.setInt32(4, key, true);
    view.setInt32(8, value, true);
    setPointer(schema, 16, address);
    return true;
  },
  "a released array": ({ array }) => {
    lose(array);
    setPointer(array, 64, 0n);
    return true;
  },
  "a wild length": ({ array }, _, pick) => {
    lose(array);
    setPointer(array, 0, choose(wildLengths, pick));
    return true;
  },
  "a wild offset": ({ array }, _, pick) => {
    lose(array);
    setPointer(array, 16, choose(wildLengths, pick));
    return true;
  },
  "an end beyond 2^53": ({ array }) => {
    lose(array);
    setPointer(array, 0, 1n);
    setPointer(array, 16, (1n << 53n) - 1n);
    return true;
  },
  "a wild null count": (node, _, pick) => {
    lose(node.array);
    const counts = [-2n, -(1n << 63n), BigInt(lengthOf(node)) + 1n, (1n << 63n) - 1n].map(int64);
    setPointer(node.array, 8, choose(counts, pick));
    return true;
  },
  "a wrong number of buffers": ({ array, model }, _, pick) => {
    const count = pointerAt(array, 24);
    const isView = /^v/.test(model.format) && model.dictionary === null;
    const wrong = [
      ...isView ? [0n, 1n, 2n] : [count + 1n, count + 2n],
      ...wildCounts,
      ...count > 0n ? [count - 1n] : [],
    ];
    const chosen = choose(wrong, pick);
    if (isView && chosen >= 3n && chosen <= 1n << 20n) return false;
    lose(array);
    setPointer(array, 24, chosen);
    return true;
  },
  "buffers at NULL or between addresses": ({ array }, _, pick) => {
    if (pointerAt(array, 24) === 0n) return false;
    setPointer(array, 40, choose([0n, 0x1003n, 0x1004n], pick));
    return true;
  },
  "no values or offsets": (node) => {
    if (lengthOf(node) === 0 || !hasSecond(node)) return false;
    setPointer(pointerAt(node.array, 40), 8, 0n);
    return true;
  },
  "values beyond the end of memory": (node) => {
    if (lengthOf(node) < 9 || !hasSecond(node)) return false;
    setPointer(pointerAt(node.array, 40), 8, (1n << 64n) - 1n);
    return true;
  },
  "nulls without a bitmap": (node) => {
    if (lengthOf(node) === 0 || node.model.format === "n") return false;
    setPointer(node.array, 8, 1n);
    setPointer(pointerAt(node.array, 40), 0, 0n);
    return true;
  },
  "a wrong number of array children": ({ array }, _, pick) => {
    const count = pointerAt(array, 32);
    const wrong = choose([count + 1n, ...wildCounts, ...count > 0n ? [count - 1n] : []], pick);
    setPointer(array, 32, wrong);
    setPointer(array, 48, nowhere);
    setPointer(array, 56, nowhere);
    return true;
  },
  "children of an array at NULL or between addresses": (node, _, pick) => {
    if (isNested(node)) setPointer(node.array, 48, choose([0n, 0x1003n], pick));
    return isNested(node);
  },
  "an array inside itself": (node, _, pick) => {
    if (isNested(node)) setPointer(pointerAt(node.array, 48), 0, misplaced(node, pick, "array"));
    return isNested(node);
  },
  "a missing dictionary or one inside itself": (node, _, pick) => {
    const wrong = misplaced(node, pick, "array");
    if (node.model.dictionary === null && wrong === 0n) return false;
    setPointer(node.array, 56, wrong);
    return true;
  },
  "offsets that are negative or decrease": (node, _, pick) => {
    if (!hasOffsets(node) || lengthOf(node) === 0) return false;
    const width = offsetWidth(node);
    const offsets = pointerAt(pointerAt(node.array, 40), 8);
    const view = new DataView(ffiPort().memory(offsets, (offsetOf(node) + lengthOf(node) + 1) * width));
    const [at, value] = pick % 2 === 0 ? [offsetOf(node), -1] : [offsetOf(node) + lengthOf(node), -7];
    if (width === 8) view.setBigInt64(at * 8, BigInt(value), true);
    else view.setInt32(at * 4, value, true);
    return true;
  },
  "a child that is too short": (node) => {
    const { format, dictionary } = node.model;
    if (lengthOf(node) === 0 || !isNested(node) || dictionary !== null || /^\+(w:0|v.)$/.test(format)) return false;
    if (/^\+[lLm]$/.test(format)) {
      const width = offsetWidth(node);
      const end = offsetOf(node) + lengthOf(node);
      const view = new DataView(ffiPort().memory(pointerAt(pointerAt(node.array, 40), 8), (end + 1) * width));
      if (view.getInt32(end * width, true) === 0) return false;
    }
    const child = pointerAt(pointerAt(node.array, 48), 0);
    setPointer(child, 0, 0n);
    setPointer(child, 8, 0n);
    return true;
  },
  "a product beyond 2^53": (node) => {
    const { format, dictionary } = node.model;
    if (dictionary === null && (hasOffsets(node) || /^(n|b|v.|\+s|\+?w:[01])$/.test(format))) return false;
    setPointer(node.array, 0, 1n << 52n);
    return true;
  },
  "sizes of data that are negative": ({ array, model }, _, pick) => {
    const count = Number(pointerAt(array, 24));
    if (!/^v/.test(model.format) || model.dictionary !== null || count < 4) return false;
    setPointer(pointerAt(pointerAt(array, 40), (count - 1) * 8), 0, choose([-1n, -(1n << 63n)].map(int64), pick));
    return true;
  },
};

/** Marks the array as on a device. */
function onDevice(array: bigint, id: bigint, event: bigint): void {
  setPointer(array, layout.deviceArray.deviceId, id);
  setPointer(array, layout.deviceArray.deviceType, 2n);
  setPointer(array, layout.deviceArray.syncEvent, event);
}

/** Ways to break fields that only the base structs have. */
const baseBreaks: Readonly<Record<string, (array: bigint, arena: GuardedMemory) => void>> = {
  "a wrong device": (array) => onDevice(array, 5n, nowhere),
  "an event between addresses": (array) => onDevice(array, 0n, 0x1003n),
  "an event that is NULL": (array, arena) => onDevice(array, 0n, arena.bytes(8).address),
  "an unknown device": (array) => setPointer(array, layout.deviceArray.deviceType, 99n),
  "no device": (array) => setPointer(array, layout.deviceArray.deviceType, 0n),
  "a device that was not given": (array) => setPointer(array, layout.deviceArray.deviceType, 2n),
};

const ways = [...Object.keys(breaks), ...Object.keys(baseBreaks), "a bad address", "nothing"];

const cases = models.chain((model) =>
  fc.record({
    model: fc.constant(model),
    values: fc.array(valueOf(model), { maxLength: 12 }),
    quirk: quirks,
    how: fc.constantFrom(...ways),
    where: fc.nat(50),
    pick: fc.nat(1000),
    isDevice: fc.boolean(),
  })
);

const tally: Record<string, number> = {};
const arena = new GuardedMemory();
using cuda = Cuda.simulate();
const device = cuda.device(0);
using release = new CountingRelease();

/** Breaks the structs, and returns the addresses to import from, or null if they cannot be broken that way. */
function broken(
  { how, where, pick, model }: {
    readonly how: string;
    readonly where: number;
    readonly pick: number;
    readonly model: Model;
  },
  { schema, array }: { readonly schema: bigint; readonly array: bigint },
  arena: GuardedMemory,
): { readonly schema: bigint; readonly array: bigint } | null {
  if (how === "a bad address") {
    return choose([{ schema: 0n, array }, { schema: schema + 4n, array }, { schema, array: 0n }, {
      schema,
      array: array + 1n,
    }], pick);
  }
  const base = baseBreaks[how];
  if (base !== undefined) {
    base(array, arena);
    return { schema, array };
  }
  const nodes = nodesOf(schema, array, model);
  const make = breaks[how];
  // The first struct from `where` on that can be broken that way.
  const isBroken = nodes.some((_, i) => make?.(choose(nodes, where + i), arena, pick) === true);
  return isBroken ? { schema, array } : null;
}

await checkUntil(
  () => ways.every((how) => (tally[how] ?? 0) >= scaled(3)), // a daily run's 4000 had 4 to 9 of the rarest
  fc.property(cases, ({ values, quirk, isDevice: wantsDevice, ...one }) => {
    nextCase({ values, quirk, wantsDevice, ...one });
    arena.reset();
    const writer = new RawWriter(arena, release);
    const isDevice = wantsDevice || one.how in baseBreaks;
    const kind = isDevice ? "deviceArray" : "array";
    const whole = { schema: writer.schema(one.model), array: writer.array(encode(one.model, values, quirk), kind) };
    release.calls.clear();
    const expected = one.how === "nothing" ? whole : broken(one, whole, arena);
    const { schema, array } = expected ?? whole;
    const mustFail = expected !== null && one.how !== "nothing";
    const kept = [pointerAt(whole.array, layout.array.release), pointerAt(whole.schema, layout.schema.release)];
    let imported: ArrowArray;
    try {
      imported = ArrowArray.from(
        isDevice ? { schema, deviceArray: array } : { schema, array },
        one.how === "a device that was not given" ? {} : { device },
      );
    } catch (error) {
      assertInstanceOf(error, ExchangeError, String(error));
      assert(mustFail, `${error.message} (for a valid array)`);
      assert(/\. |: /.test(error.message), error.message);
      const now = [pointerAt(whole.array, layout.array.release), pointerAt(whole.schema, layout.schema.release)];
      assertEquals([now, release.calls.size], [kept, 0], "nothing is taken");
      tally[one.how] = (tally[one.how] ?? 0) + 1;
      return;
    }
    assert(!mustFail, `${one.how} was accepted`);
    assertEquals(imported.length, values.length);
    imported.close();
    assertEquals([release.calls.get(array), release.calls.get(schema)], [1, 1]);
    tally["nothing"] = (tally["nothing"] ?? 0) + 1;
  }),
  8000,
);

/** Nested lists. */
function nested(depth: number): Model {
  const head = { name: "", nullable: false, flags: 0, metadata: [], dictionary: null };
  return depth === 0
    ? { ...head, format: "i", children: [] }
    : { ...head, format: "+w:1", children: [nested(depth - 1)] };
}

for (const [depth, isRight] of [[64, true], [65, false], [1000, false]] as const) {
  arena.reset();
  const writer = new RawWriter(arena, release);
  const model = nested(depth);
  const quirk = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };
  const schema = writer.schema(model);
  const array = writer.array(encode(model, [], quirk));
  let failed = false;
  try {
    ArrowArray.from({ schema, array }).close();
  } catch (error) {
    assertInstanceOf(error, ExchangeError);
    failed = true;
    assertEquals(readRawArray(array).release, release.array);
  }
  assertEquals(failed, !isRight, `${depth} levels`);
}
// Two children at one address, 30 times: walking every path would take 2^30 steps.
for (const side of ["schema", "array"] as const) {
  arena.reset();
  const writer = new RawWriter(arena, release);
  const twins = (depth: number): Model => ({
    ...nested(0),
    ...depth === 0 ? {} : { format: "+s", children: [twins(depth - 1), { ...nested(0), name: "twin" }] },
  });
  const model = twins(30);
  const quirk = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };
  const whole = { schema: writer.schema(model), array: writer.array(encode(model, [], quirk)) };
  let at = whole[side];
  for (let depth = 30; depth > 0; depth--) {
    const children = pointerAt(at, side === "schema" ? 40 : 48);
    at = pointerAt(children, 0);
    setPointer(children, 8, at);
  }
  let refused = "";
  try {
    ArrowArray.from(whole);
  } catch (error) {
    assertInstanceOf(error, ExchangeError);
    refused = error.message;
  }
  assert(/leads twice/.test(refused), `${side}: ${refused}`);
}

// Streams: if a struct lacks a function, none of its functions is called.
for (const [kind, size, names] of [["stream", 40, [0, 8, 16, 24]], ["deviceStream", 48, [8, 16, 24, 32]]] as const) {
  for (const absent of [...names, "address", "odd address"] as const) {
    arena.reset();
    const { address } = arena.bytes(size);
    for (const at of names) setPointer(address, at, at === absent ? 0n : nowhere);
    const given = absent === "address" ? 0n : absent === "odd address" ? address + 4n : address;
    let refused = false;
    try {
      ArrowStream.from(kind === "stream" ? { stream: given } : { deviceStream: given });
    } catch (error) {
      assertInstanceOf(error, ExchangeError, String(error));
      refused = true;
    }
    assert(refused, `${kind} without ${absent}`);
  }
}
console.log(JSON.stringify(tally));
