/** Releasing exported Arrow structs: each part separately, moved or not, in any order. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { liveExports } from "../../src/order/reclaim.ts";
import { ArrowArray, ArrowDeviceArray, arrowField, ExchangeError, StridedMemoryView } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { libc } from "../../src/ffi/libc.ts";
import { MemoryBuffer } from "../../src/memory/memory_buffer.ts";
import { patiently, runScriptForJson } from "../support/child.ts";
import { check, fc, scaled } from "../support/property.ts";
import { layout, moveRaw, pointerAt, releaseRaw } from "../support/raw_arrow.ts";

/** How a consumer treats a struct: which children it moves out before releasing it, and what it does with them. */
interface Plan {
  readonly children: readonly Plan[];
  readonly isDictionary: boolean;
  readonly isMovedOut: boolean;
  /** Its position in the release order of structs held at the same time. */
  readonly turn: number;
}

const plans = fc.letrec<{ plan: Plan }>((tie) => ({
  plan: fc.record({
    children: fc.oneof({ maxDepth: 4, depthSize: "small" }, fc.constant([]), fc.array(tie("plan"), { maxLength: 3 })),
    isDictionary: fc.boolean(),
    isMovedOut: fc.boolean(),
    turn: fc.nat(100),
  }),
})).plan;

/** An array with the structs of a plan: a struct with children, a dictionary, or numbers. */
function arrayFor(plan: Plan, bytes: StridedMemoryView): ArrowArray {
  const [only] = plan.children;
  if (only === undefined) return new ArrowArray({ field: arrowField("c"), length: 2, buffers: [null, bytes] });
  const children = plan.children.map((child) => arrayFor(child, bytes));
  if (plan.isDictionary && children.length === 1 && children[0] !== undefined) {
    const [dictionary] = children;
    const field = arrowField({
      kind: "dictionary",
      index: { kind: "int", bits: 8 },
      values: dictionary.field,
      ordered: false,
    });
    return new ArrowArray({ field, length: 1, buffers: [null, bytes], dictionary });
  }
  const field = arrowField({ kind: "struct", children: children.map((child) => child.field) });
  return new ArrowArray({ field, length: 1, buffers: [null], children });
}

/** Addresses of the structs inside one, the dictionary's last. */
function innerOf(address: bigint, kind: "schema" | "array"): bigint[] {
  const [count, children, dictionary] = kind === "schema" ? [32, 40, 48] : [32, 48, 56];
  const list = pointerAt(address, children);
  const inner = Array.from({ length: Number(pointerAt(address, count)) }, (_, i) => pointerAt(list, i * 8));
  const entries = pointerAt(address, dictionary);
  return entries === 0n ? inner : [...inner, entries];
}

test("an export is released once the base struct and all structs moved out of it are released, not before", () => {
  let moves = 0;
  check(
    fc.property(plans, fc.boolean(), fc.boolean(), (plan, movesBase, looks) => {
      using arena = new NativeArena();
      const ptr = libc().loading.calloc(8n, 1n);
      let freed = 0;
      const free = () => {
        freed++;
        libc().loading.free(ptr);
      };
      const buffer = MemoryBuffer.fromAllocation({ ptr, size: 8, device: null, stream: null, free });
      const bytes = StridedMemoryView.fromBuffer(buffer, { shape: [8], dtype: "uint8" });
      const exported = arrayFor(plan, bytes).toArrowDevice();
      buffer.close();
      const taken = exported.take();
      for (const kind of ["schema", "array"] as const) {
        // A base struct may be used in place, or be moved first.
        const base = movesBase ? arena.bytes(layout[kind].size).address : taken[kind];
        if (movesBase) moveRaw(base, taken[kind], kind);
        const held = [{ address: base, plan }];
        while (held.length > 0) {
          held.sort((one, other) => one.plan.turn - other.plan.turn);
          const next = held.shift();
          if (next === undefined) break;
          for (const [i, inner] of innerOf(next.address, kind).entries()) {
            const its = next.plan.children[i];
            if (its === undefined || !its.isMovedOut) continue;
            const to = arena.bytes(layout[kind].size).address;
            moveRaw(to, inner, kind);
            held.push({ address: to, plan: its });
            moves++;
          }
          releaseRaw(next.address, kind);
          if (kind === "array" && looks) {
            assertEquals([exported.released, freed], held.length === 0 ? [true, 1] : [false, 0]);
          }
        }
      }
      assertEquals([exported.released, freed, liveExports()], [true, 1, 0]);
    }),
    1500,
  );
  assert(moves > scaled(500), `only ${moves} structs were moved out`);
});

test("exactly one consumer takes an export, and an export that no consumer took is released", () => {
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3));
  const before = liveExports();
  const once = view.toArrowDevice();
  ArrowArray.from(once).close();
  // Its memory may belong to another export by now.
  for (const again of [() => ArrowArray.from(once), () => once.ptr, () => once.schemaPtr, () => once.take()]) {
    assertThrows(again, ExchangeError, "taken it over");
  }
  const exported = view.toArrowDevice();
  const taken = exported.take();
  assertThrows(() => exported.take(), ExchangeError, "taken it over");
  assertThrows(() => exported.ptr, ExchangeError, "taken it over");
  assertThrows(() => ArrowArray.from(exported), ExchangeError, "taken it over");
  exported.close(); // owned by the consumer now
  assertEquals([exported.released, liveExports()], [false, before + 2]);
  using other = view.toArrowDevice();
  other.close();
  other.close();
  assertEquals([other.released, liveExports()], [true, before + 2]);
  releaseRaw(taken.array, "array");
  releaseRaw(taken.schema, "schema");
  assertEquals([exported.released, liveExports()], [true, before]);
});

test("closing an export that was not taken does not touch structs that were moved out of it or released", () => {
  const view = StridedMemoryView.fromTypedArray(new Float32Array(6), { shape: [2, 3] });
  using array = ArrowArray.from(view); // which is also an export
  const before = liveExports();
  for (const one of [view, array]) {
    using arena = new NativeArena();
    const moved = { schema: arena.bytes(72).address, array: arena.bytes(80).address };
    const exported = one.toArrowDevice();
    moveRaw(moved.schema, exported.schemaPtr, "schema");
    moveRaw(moved.array, exported.ptr, "array");
    exported.close();
    assertEquals(liveExports(), before + 2);
    releaseRaw(moved.schema, "schema");
    releaseRaw(moved.array, "array");
    assertEquals(liveExports(), before);

    const over = one.toArrowDevice();
    releaseRaw(over.schemaPtr, "schema");
    releaseRaw(over.ptr, "array");
    assertEquals(liveExports(), before);
    const others = Array.from({ length: 200 }, () => one.toArrowDevice()); // one of them reuses its memory
    over.close();
    assertEquals(liveExports(), before + 400);
    for (const other of others) other.close();
    assertEquals(liveExports(), before);
  }
});

test("a producer may return the addresses of structs of its own, which are released once", () => {
  const before = liveExports();
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3));
  for (const method of ["__arrow_c_device_array__", "__arrow_c_array__"] as const) {
    for (const name of ["array", "deviceArray"] as const) {
      const exported = view.toArrowDevice();
      const { schema, array } = exported.take();
      const source = { [method]: () => ({ schema, [name]: array }) };
      const back = StridedMemoryView.from(source);
      assertEquals([back.ptr, `${back}`, exported.released], [view.ptr, "[1. 2. 3.]", false]);
      back.close();
      assertEquals([exported.released, liveExports()], [true, before]);
    }
    const text = new ArrowArray({ field: arrowField("u"), length: 0, buffers: [null, null, null] }).toArrowDevice();
    const { schema, array } = text.take();
    for (const made of [null, {}, { schema: 8n }, { schema, array: 0n }, { schema: 12n, array }]) {
      assertThrows(() => StridedMemoryView.from({ [method]: () => made }), ExchangeError, "Cannot import an Arrow");
    }
    assertThrows(() => StridedMemoryView.from({ [method]: () => ({ schema, deviceArray: array }) }), ExchangeError);
    assertEquals([text.released, liveExports()], [true, before], "structs made for a refused import are released");
  }
});

test("an export moves to structs that a consumer has allocated", () => {
  const before = liveExports();
  using arena = new NativeArena();
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3));
  for (const name of ["array", "deviceArray"] as const) {
    const addresses = { schema: arena.bytes(72).address, [name]: arena.bytes(128).address };
    const exported = view.toArrowDevice();
    assertThrows(() => exported.moveTo({ schema: addresses.schema }), ExchangeError, "NULL");
    const { ptr, schemaPtr } = exported;
    exported.moveTo(addresses);
    const left = [pointerAt(ptr, layout.array.release), pointerAt(schemaPtr, layout.schema.release)];
    assertEquals(left, [0n, 0n], "moved structs are marked as released");
    assertThrows(() => exported.moveTo(addresses), ExchangeError, "taken it over");
    using back = StridedMemoryView.fromArrowDevice(addresses);
    assertEquals(back.ptr, view.ptr);
    back.close();
    assertEquals(exported.released, true);
  }
  assertEquals(liveExports(), before);
});

test(
  "dropped objects are released by the garbage collector, and a child keeps its import",
  patiently,
  async () => {
    const script = new URL("collection_child.ts", import.meta.url);
    const found = await runScriptForJson(script) as { left: number; child: number[]; withChild: number };
    assert(found.left <= 10, `${found.left} of 150 are left`);
    assertEquals([found.child, found.withChild], [[1, 2], 1]);
  },
);

test("a requested schema gives its names; types that the consumer can convert stay, and others are refused", () => {
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1, 2, 3));
  const asked = arrowField("f", { name: "x", metadata: { unit: "m" } });
  using named = view.__arrow_c_device_array__({ requestedSchema: asked });
  assertEquals([named.field.name, named.field.metadata.get("unit"), named.field.nullable], ["x", "m", false]);
  using plain = view.__arrow_c_array__({ requestedSchema: arrowField("g", { name: "x" }) });
  assertEquals([plain.field.name, plain.field.type], ["", { kind: "float", bits: 32 }]);
  for (const format of ["u", "b", "tdD", "n"]) {
    const requestedSchema = arrowField(format);
    if (format === "b") view.toArrowDevice({ requestedSchema }).close(); // also a number
    else assertThrows(() => view.toArrowDevice({ requestedSchema }), ExchangeError, "requested");
  }
  const list = arrowField({ kind: "list", offsets: 32, child: arrowField("g") });
  assertThrows(() => view.toArrowDevice({ requestedSchema: list }), ExchangeError, "requested list");
  view.reshaped([3, 1]).toArrowDevice({ requestedSchema: list }).close();
});

test("the names of a struct's fields stay with their values, in whatever order they are requested", () => {
  const struct = (...fields: readonly (readonly [name: string, format: string, unit?: string])[]) =>
    arrowField({
      kind: "struct",
      children: fields.map(([name, format, unit]) =>
        arrowField(format, { name, ...(unit === undefined ? {} : { metadata: { unit } }) })
      ),
    });
  const column = (format: string, array: Int32Array<ArrayBuffer>) =>
    new ArrowArray({
      field: arrowField(format),
      length: 1,
      buffers: [null, StridedMemoryView.fromTypedArray(new Uint8Array(array.buffer))],
    });
  const make = () =>
    new ArrowArray({
      field: struct(["a", "i"], ["b", "i"], ["c", "tdD"]),
      length: 1,
      buffers: [null],
      children: [column("i", Int32Array.of(1)), column("i", Int32Array.of(2)), column("tdD", Int32Array.of(7))],
    });
  const requests = [
    struct(["a", "i", "m"], ["b", "i"], ["c", "tdD"]),
    struct(["b", "i"], ["a", "i", "m"], ["c", "tdD"]),
    struct(["c", "tdD"], ["a", "i", "m"], ["b", "l"]), // which the consumer can convert
    struct(["p", "i"], ["q", "i"], ["r", "tdD"]),
  ];
  for (const [i, requestedSchema] of requests.entries()) {
    using out = make().toArrowDevice({ requestedSchema });
    using back = ArrowArray.from(out);
    assertEquals(back.get(0), { a: 1, b: 2, c: 7 }, `${i}`);
    const { type } = back.field;
    const unit = type.kind === "struct" ? type.children[0]?.metadata.get("unit") : null;
    assertEquals(unit, i < 2 ? "m" : undefined, `${i}`);
  }
  const other = struct(["c", "i"], ["a", "u"], ["b", "i"]);
  assertThrows(() => make().toArrowDevice({ requestedSchema: other }), ExchangeError, "requested");
});

test("unknown options are accepted only if they are null or undefined", () => {
  const view = StridedMemoryView.fromTypedArray(Float32Array.of(1));
  const options = { requestedSchema: null, stream: undefined, later: null };
  view.__arrow_c_device_array__(options).close();
  const unknown = { later: 1 };
  assertThrows(() => view.__arrow_c_device_array__(unknown as object), TypeError, 'Unknown option "later"');
  using exported = view.__arrow_c_array__();
  assert(exported instanceof ArrowDeviceArray);
});
