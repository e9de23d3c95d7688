/** Kernels decode what the host decodes, on the simulator. */
import { assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../../mod.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import { handedMemory } from "../../../src/vortex/handed_buffer.ts";
import type { RawBuffer, RawNode } from "../../../src/vortex/raw_node.ts";
import { rowsOn, vortexBehaviours } from "../../gpu/vortex_behaviours.ts";
import { simulatedRoots } from "../../support/simulated_roots.ts";
import { check, fc } from "../../support/property.ts";
import { node, primitiveNode, proto, ptypeBits, ptypeCode, scalarOf } from "../../support/vortex/nodes.ts";
import { numberTree } from "../../support/vortex/number_trees.ts";
import { type BuiltArray, decodeTree, idsOf, rowsOf } from "../../support/vortex/wheel.ts";

for (const { name, run } of vortexBehaviours) {
  // A few orders suffice: everything runs on one stream.
  for (const [index, root] of simulatedRoots.slice(0, 4).entries()) {
    test(`${name}: order ${index}`, () => run(root));
  }
}

test("words of every size are unpacked from every width, and have no bit of their neighbours", () => {
  using cuda = Cuda.simulate();
  for (const ptype of ["u8", "u16", "u32", "u64"] as const) {
    for (let width = 0; width <= ptypeBits(ptype); width++) {
      // A block and a half of arbitrary words.
      const packed = Uint8Array.from({ length: 2 * 128 * width }, (_, i) => Math.imul(i + 1, 0x9e37_79b1) >>> 24);
      const tree = node("fastlanes.bitpacked", proto([1, width], [2, 3]), [packed]);
      const array = { dtype: { kind: "primitive", ptype, nullable: false }, length: 1500, tree } as const;
      assertEquals(rowsOn(cuda.device(0), array), rowsOf(decodeTree(array)), `${width} of ${ptype}`);
    }
  }
});

test("buffers that were handed over on the device are decoded in place, and copied to another one", () => {
  const isHanded = ({ id }: RawNode) => ["vortex.primitive", "fastlanes.bitpacked"].includes(id);
  const isThere = (one: RawBuffer): one is Uint8Array<ArrayBuffer> => one instanceof Uint8Array && one.length > 0;
  const hasHanded = (one: RawNode): boolean =>
    (isHanded(one) && one.buffers instanceof Array && one.buffers.some(isThere)) || one.children.some(hasHanded);
  // Half of all: by one seed in 30,000 the 30 of a daily run had ten buffers or fewer.
  const trees = fc.nat(2 ** 24).map(numberTree)
    .filter(({ dtype, tree }) => dtype.kind === "primitive" && hasHanded(tree));
  check(
    fc.property(trees, fc.nat(), fc.boolean(), (tree, schedule, elsewhere) => {
      using cuda = Cuda.simulate({ seed: schedule, devices: 2 });
      const owner = cuda.device(elsewhere ? 1 : 0);
      using producer = owner.createStream();
      using stack = new DisposableStack();
      const onDevice = (one: RawNode): RawNode => {
        const children = one.children.map(onDevice);
        if (!isHanded(one) || !(one.buffers instanceof Array)) return { ...one, children };
        const buffers = one.buffers.map((bytes): RawBuffer => {
          if (!isThere(bytes)) return bytes;
          const memory = stack.use(owner.memory.allocate(bytes.length, { stream: producer }));
          memory.copyFrom(bytes, { stream: producer });
          return handedMemory(memory);
        });
        return { ...one, children, buffers };
      };
      const rows = rowsOn(cuda.device(0), { ...tree, tree: onDevice(tree.tree) });
      assertEquals(rows, rowsOf(decodeTree(tree)), `${tree.name}: ${idsOf(tree.tree)}`);
    }),
    60,
  );
});

test("malformed arrays are refused by a device as by the host, and no memory is kept", () => {
  using cuda = Cuda.simulate();
  const u8 = { kind: "primitive", ptype: "u8", nullable: true } as const;
  const dict = (validity: readonly boolean[] | null) =>
    node(
      "vortex.dict",
      proto([1, 2], [2, ptypeCode("u16")], [3, true]),
      [],
      primitiveNode([0, 1, 2], "u16", validity),
      primitiveNode([7, 8], "u8"),
    );
  const rows = (tree: BuiltArray["tree"], length = 3) => rowsOn(cuda.device(0), { dtype: u8, length, tree });
  assertThrows(() => rows(dict(null)), VortexError, "A code has no value (at $.children[0])");
  assertThrows(() => rows(dict([false, true, true])), VortexError, "A code has no value");
  assertEquals(
    rows(dict([true, true, false])),
    rowsOf(decodeTree({ dtype: u8, length: 3, tree: dict([true, true, false]) })),
  );
  const packed = (row: number) =>
    node(
      "fastlanes.bitpacked",
      proto([1, 1], [3, proto([1, 1], [2, 0], [3, 0])]),
      [new Uint8Array(128)],
      primitiveNode([row], "u8"),
      primitiveNode([9], "u8"),
    );
  assertThrows(() => rows(packed(3)), VortexError, "Patch 0 is for row 3, expected 0 to 2 (at $)");
  const runs = node(
    "vortex.runend",
    proto([1, ptypeCode("u8")], [2, 1], [3, 0]),
    [],
    primitiveNode([2], "u8"),
    primitiveNode([9], "u8"),
  );
  assertThrows(() => rows(runs), VortexError, "The last run ends at 2, expected 3 (at $)");
  const twice = node(
    "vortex.runend",
    proto([1, ptypeCode("u8")], [2, 3], [3, 0]),
    [],
    primitiveNode([1, 1, 3], "u8"),
    primitiveNode([7, 8, 9], "u8"),
  );
  assertThrows(() => rows(twice), VortexError, "Run 1 ends at 1, expected an end after 1 (at $)");
  const many = node("vortex.constant", proto(), [scalarOf(1n, "u8")]);
  assertThrows(() => rows(many, 2 ** 30), VortexError, "Decoding would allocate 1073741824 bytes");
  cuda.device(0).synchronize();
  assertEquals(cuda.device(0).memory.pool.use.used, 0);
});
