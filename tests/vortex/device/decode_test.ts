/** What kernels decode is what the host decodes, on the simulator. */
import { assert, assertEquals, assertThrows } from "@std/assert";
import { test } from "node:test";
import { Cuda } from "../../../mod.ts";
import type { CudaDevice } from "../../../src/device/mod.ts";
import { DecodeContext } from "../../../src/vortex/decode_context.ts";
import { DeviceDecoder } from "../../../src/vortex/device/device_decoder.ts";
import { rootNode } from "../../../src/vortex/encoded_node.ts";
import { VortexError } from "../../../src/vortex/error.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { numbersOf } from "../../../src/vortex/numeric/columns.ts";
import { VortexSession } from "../../../src/vortex/session.ts";
import { check, fc } from "../../support/property.ts";
import { node, primitiveNode, proto, ptypeCode, scalarOf } from "../../support/vortex/nodes.ts";
import { numberTree } from "../../support/vortex/number_trees.ts";
import { type BuiltArray, decodeTree, idsOf, rowsOf } from "../../support/vortex/wheel.ts";

/** The rows that a device decodes. */
function rowsOn(device: CudaDevice, { dtype, length, tree }: BuiltArray): string {
  using stream = device.createStream();
  const session = VortexSession.default();
  const root = rootNode(tree, dtype, length);
  openAll(session, root);
  const decoder = new DeviceDecoder(new DecodeContext(session, limitsOf({ bytes: 2 ** 28 })), stream);
  try {
    const column = decoder.numbers(root);
    decoder.finish();
    using words = column.words;
    const bytes = new Uint8Array(words.size);
    if (bytes.length > 0) words.copyTo(bytes, { stream });
    stream.synchronize();
    return rowsOf(numbersOf(column.dtype, bytes, column.validity));
  } catch (error) {
    decoder.abandon();
    throw error;
  }
}

/** What kernels decode. */
const decoded = ["fastlanes.bitpacked", "fastlanes.for", "vortex.zigzag", "vortex.alp", "vortex.dict", "vortex.runend"]
  .concat("vortex.sequence", "vortex.constant", "vortex.primitive");

test("a device decodes what the host decodes, bit for bit, and keeps no memory", () => {
  const met = new Set<string>();
  check(
    fc.property(fc.nat(2 ** 24), fc.nat(), (seed, schedule) => {
      using cuda = Cuda.simulate({ seed: schedule });
      const tree = numberTree(seed);
      if (tree.dtype.kind !== "primitive") return;
      const ids = idsOf(tree.tree);
      for (const id of ids) met.add(id);
      const device = cuda.device(0);
      assertEquals(rowsOn(device, tree), rowsOf(decodeTree(tree)), `${tree.name}: ${ids}`);
      assertEquals(device.memory.pool.use.used, 0);
    }),
    150,
  );
  assert(decoded.every((id) => met.has(id)), `met only ${[...met].toSorted()}`);
});

test("what is malformed is refused by a device as by the host, and no memory is kept", () => {
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
  assertThrows(() => rows(dict(null)), VortexError, "A code stands for no value (at $.children[0])");
  assertThrows(() => rows(dict([false, true, true])), VortexError, "A code stands for no value");
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
  assertThrows(() => rows(packed(3)), VortexError, "Patch 0 is of row 3, expected one of 0 to 2 (at $)");
  const many = node("vortex.constant", proto(), [scalarOf(1n, "u8")]);
  assertThrows(() => rows(many, 2 ** 30), VortexError, "Decoding would allocate 1073741824 bytes");
  cuda.device(0).synchronize();
  assertEquals(cuda.device(0).memory.pool.use.used, 0);
});
