/**
 * Vortex arrays decoded by kernels, and brought to a device, on a GPU or a simulated one.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { ArrowArray } from "../../mod.ts";
import type { CudaDevice } from "../../src/device/mod.ts";
import { DecodeContext } from "../../src/vortex/decode_context.ts";
import { DeviceDecoder } from "../../src/vortex/device/device_decoder.ts";
import { rootNode } from "../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../src/vortex/limits.ts";
import { numbersOf } from "../../src/vortex/numeric/columns.ts";
import { openAll } from "../../src/vortex/open_nodes.ts";
import { VortexSession } from "../../src/vortex/session.ts";
import { VortexArray } from "../../src/vortex/vortex_array.ts";
import type { Behaviour, Root } from "../support/cuda_root.ts";
import { check, checkUntil, fc } from "../support/property.ts";
import { canonicalTree } from "../support/vortex/canonical_trees.ts";
import { numberTree } from "../support/vortex/number_trees.ts";
import { type BuiltArray, decodeTree, idsOf, rowsOf } from "../support/vortex/wheel.ts";

/** The rows that a device decodes. */
export function rowsOn(device: CudaDevice, { dtype, length, tree }: BuiltArray): string {
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

/** The encodings that kernels decode. */
const decoded = ["fastlanes.bitpacked", "fastlanes.for", "vortex.zigzag", "vortex.alp", "vortex.dict", "vortex.runend"]
  .concat("vortex.sequence", "vortex.constant", "vortex.primitive");

async function decodesAsTheHost(root: Root): Promise<void> {
  using cuda = root.open();
  const device = cuda.device(0);
  const { used } = device.memory.pool.use;
  const lacking = new Set(decoded);
  await checkUntil(
    () => lacking.size === 0,
    fc.property(fc.nat(2 ** 24), (seed) => {
      const tree = numberTree(seed);
      if (tree.dtype.kind !== "primitive") return;
      const ids = idsOf(tree.tree);
      for (const id of ids) lacking.delete(id);
      assertEquals(rowsOn(device, tree), rowsOf(decodeTree(tree)), `${tree.name}: ${ids}`);
      assertEquals(device.memory.pool.use.used, used);
    }),
    300,
  );
  assertEquals([...lacking], [], "encodings that were in no array");
}

// The sizes of text's data were uploaded, too: whoever read the struct on the host ended the process.
function goesThereAndBack(root: Root): void {
  using cuda = root.open();
  const device = cuda.device(0);
  using stream = device.createStream();
  const session = VortexSession.default();
  check(
    fc.property(fc.nat(2 ** 20), (seed) => {
      const { dtype, length, tree } = canonicalTree(seed);
      using array = VortexArray.ofNode(rootNode(tree, dtype, length), { session, limits: limitsOf() });
      const wanted = array.toArrow({ name: "column" });
      using imported = ArrowArray.from(array.toArrowDevice({ stream, name: "column" }), { stream });
      using got = imported.to("host");
      assertEquals([got.field, got.nullCount, got.toArray()], [wanted.field, wanted.nullCount, wanted.toArray()]);
    }),
    150,
  );
}

/** Behaviours that must hold on every root. */
export const vortexBehaviours: readonly Behaviour[] = [
  {
    name: "a device decodes Vortex's numbers as the host does, bit for bit, and keeps no memory",
    devices: 1,
    run: decodesAsTheHost,
  },
  {
    name: "an array of any type that is exported from a device has its elements, nulls and type where it is imported",
    devices: 1,
    run: goesThereAndBack,
  },
];
