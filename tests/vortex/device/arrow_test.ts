/** Vortex arrays as Arrow arrays on the simulator's device. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { ArrowArray, Cuda, type CudaStream, StridedMemoryView } from "../../../mod.ts";
import { pollAll } from "../../../src/order/exports.ts";
import { toArrowArray } from "../../../src/vortex/arrow/to_arrow.ts";
import { DecodeContext, type Kept } from "../../../src/vortex/decode_context.ts";
import { toArrowOnDevice } from "../../../src/vortex/device/to_arrow_on_device.ts";
import type { VortexDType } from "../../../src/vortex/dtype.ts";
import { rootNode } from "../../../src/vortex/encoded_node.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { VortexArray } from "../../../src/vortex/vortex_array.ts";
import { VortexSession } from "../../../src/vortex/session.ts";
import { check, fc } from "../../support/property.ts";
import { until } from "../../support/until.ts";
import { boolNode, node, primitiveNode, proto, ptypeCode } from "../../support/vortex/nodes.ts";
import { numberTree } from "../../support/vortex/number_trees.ts";
import { type BuiltArray, decodeTree } from "../../support/vortex/wheel.ts";

const session = VortexSession.default();
const newContext = () => new DecodeContext(session, limitsOf({ bytes: 2 ** 28 }));

const nothing: Kept = { dictionary: false, runEnd: false };

function onDevice({ dtype, length, tree }: BuiltArray, stream: CudaStream, keep: Kept = nothing): ArrowArray {
  const root = rootNode(tree, dtype, length);
  openAll(session, root);
  return toArrowOnDevice(root, "column", new DecodeContext(session, limitsOf({ bytes: 2 ** 28 }), keep), stream);
}

/** An array in device memory, copied to the host. */
function onHost(array: ArrowArray, stream: CudaStream): ArrowArray {
  const buffers = array.buffers.map((view) => {
    if (view === null) return null;
    const bytes = new Uint8Array(view.buffer.size);
    if (bytes.length > 0) view.buffer.copyTo(bytes, { stream });
    stream.synchronize();
    return StridedMemoryView.fromTypedArray(bytes);
  });
  const { field, length, offset, nullCount } = array;
  const children = array.children.map((child) => onHost(child, stream));
  const dictionary = array.dictionary === null ? null : onHost(array.dictionary, stream);
  return new ArrowArray({ field, length, offset, nullCount, buffers, children, dictionary });
}

/** A struct of the columns that have the length of the first. */
function structOf(columns: readonly BuiltArray[], valid: readonly boolean[] | null): BuiltArray {
  const length = columns[0]?.length ?? 0;
  const own = columns.filter((column) => column.length === length);
  const dtype: VortexDType = {
    kind: "struct",
    names: own.map((_, index) => `f${index}`),
    fields: own.map((column) => column.dtype),
    nullable: valid !== null,
  };
  const validity = boolNode(
    valid === null ? null : Array.from({ length }, (_, row) => valid[row % valid.length] ?? true),
  );
  return { dtype, length, tree: node("vortex.struct", proto(), [], validity, ...own.map(({ tree }) => tree)) };
}

test("an array on a device has the elements, nulls and type that it has on the host", () => {
  const columns = fc.record({
    seeds: fc.array(fc.nat(2 ** 20), { minLength: 1, maxLength: 12 }),
    valid: fc.option(fc.array(fc.boolean(), { minLength: 1, maxLength: 9 })),
    schedule: fc.nat(),
    keep: fc.record({ dictionary: fc.boolean(), runEnd: fc.boolean() }),
  });
  check(
    fc.property(columns, ({ seeds, valid, schedule, keep }) => {
      const trees = seeds.map(numberTree);
      const [first] = trees;
      if (first === undefined) return;
      const tree = trees.length === 1 ? first : structOf(trees, valid);
      using cuda = Cuda.simulate({ seed: schedule });
      const device = cuda.device(0);
      using stream = device.createStream();
      const array = onDevice(tree, stream, keep);
      const wanted = toArrowArray(decodeTree(tree, { keep }), "column", session, newContext().allocateForAll);
      const got = onHost(array, stream);
      assertEquals([got.field, got.nullCount, got.toArray()], [wanted.field, wanted.nullCount, wanted.toArray()]);
      array.close();
      stream.synchronize();
      assertEquals(device.memory.pool.use.used, 0);
    }),
    40,
  );
});

test("an export to a device keeps the memory until its consumer has released it, of whole arrays and of slices", async () => {
  const u8: VortexDType = { kind: "primitive", ptype: "u8", nullable: false };
  using cuda = Cuda.simulate();
  const device = cuda.device(0);
  using stream = device.createStream();
  const tree = node("fastlanes.bitpacked", proto([1, 8]), [Uint8Array.from({ length: 1024 }, () => 9)]);
  using array = VortexArray.ofNode(rootNode(tree, u8, 100), { session, limits: limitsOf() });
  for (const part of [array, array.slice(10, 60)]) {
    const imported = ArrowArray.from(part.toArrowDevice({ stream, name: "nines" }), { stream });
    assertEquals([imported.field.name, imported.length, device.memory.pool.use.used > 0], ["nines", part.length, true]);
    assertEquals(onHost(imported, stream).toArray(), Array.from({ length: part.length }, () => 9));
    imported.close();
    await until(() => {
      pollAll(); // consumers' releases are noticed only by polling
      return device.memory.pool.use.used === 0;
    });
    assertEquals(device.memory.pool.use.used, 0);
  }
});

test("dictionaries and runs are kept on a device where they are asked for, and decoded elsewhere", () => {
  const u8: VortexDType = { kind: "primitive", ptype: "u8", nullable: false };
  const trees: readonly BuiltArray[] = [
    {
      dtype: u8,
      length: 3,
      tree: node(
        "vortex.dict",
        proto([1, 2], [2, ptypeCode("u8")]),
        [],
        primitiveNode([1, 0, 1], "u8"),
        primitiveNode([5, 200], "u8"),
      ),
    },
    {
      dtype: u8,
      length: 3,
      tree: node(
        "vortex.runend",
        proto([1, ptypeCode("u8")], [2, 2]),
        [],
        primitiveNode([2, 3], "u8"),
        primitiveNode([7, 8], "u8"),
      ),
    },
  ];
  const { dtype, length, tree } = structOf(trees, null);
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  const kept = [["dictionary", "run_end_encoded"], ["dictionary", "uint"], ["uint", "run_end_encoded"], [
    "uint",
    "uint",
  ]];
  for (const kinds of kept) {
    using array = VortexArray.ofNode(rootNode(tree, dtype, length), { session, limits: limitsOf() });
    const keep = (["dictionary", "runEnd"] as const).filter((_, i) => kinds[i] !== "uint");
    const imported = ArrowArray.from(array.toArrowDevice({ stream, keep }), { stream });
    assertEquals(imported.children.map(({ field }) => field.type.kind), kinds);
    assertEquals(onHost(imported, stream).toArray(), [{ f0: 200, f1: 7 }, { f0: 5, f1: 7 }, { f0: 200, f1: 8 }]);
    imported.close();
  }
  using array = VortexArray.ofNode(rootNode(tree, dtype, length), { session, limits: limitsOf() });
  const all = ["all"] as unknown as readonly ["dictionary"]; // as it may come from JavaScript
  assertThrows(() => array.toArrowDevice({ stream, keep: all }), TypeError, 'Cannot keep "all"');
});

test("an array that cannot be decoded leaves no memory on the device, nor that of parts decoded before it", () => {
  const u8: VortexDType = { kind: "primitive", ptype: "u8", nullable: false };
  const codes = (code: number) => primitiveNode([0, code], "u8");
  const dict = (code: number): BuiltArray => ({
    dtype: u8,
    length: 2,
    tree: node("vortex.dict", proto([1, 1], [2, ptypeCode("u8")]), [], codes(code), primitiveNode([5], "u8")),
  });
  const short: BuiltArray = { dtype: u8, length: 2, tree: primitiveNode([1, 2], "u8") };
  using cuda = Cuda.simulate();
  using stream = cuda.device(0).createStream();
  const fine = onDevice(structOf([short, dict(0)], null), stream);
  assertEquals(onHost(fine, stream).toArray(), [{ f0: 1, f1: 5 }, { f0: 2, f1: 5 }]);
  fine.close();
  assertThrows(() => onDevice(structOf([short, dict(1)], null), stream), VortexError, "(at $.children[1].children[0])");
  stream.synchronize();
  assertEquals(cuda.device(0).memory.pool.use.used, 0);
});
