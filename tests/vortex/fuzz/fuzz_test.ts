/**
 * Damaged messages and trees of every encoding: they yield a value that keeps all promises, or an error that names a
 * place, in bounded time and memory. `CAUSEWAY_RUNS=250` tries 100,000 of both together.
 */
import { openAll } from "../../../src/vortex/open_nodes.ts";
import { assert } from "@std/assert";
import { Buffer } from "node:buffer";
import { readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { defaultEncodings } from "../../../src/vortex/default_encodings.ts";
import { rawOf, rootNode } from "../../../src/vortex/encoded_node.ts";
import { limitsOf } from "../../../src/vortex/limits.ts";
import { decodeVortexIpc, encodeVortexIpc, VortexError, VortexSession } from "../../../src/vortex/mod.ts";
import type { RawNode } from "../../../src/vortex/raw_node.ts";
import { rootOf, VortexArray } from "../../../src/vortex/vortex_array.ts";
import { readArray } from "../../../src/vortex/wire/array_flatbuffer.ts";
import { readDType } from "../../../src/vortex/wire/dtype_flatbuffer.ts";
import { messagesOf } from "../../../src/vortex/wire/ipc_message.ts";
import { checkUntil, fc, scaled } from "../../support/property.ts";
import { codeTree } from "../../support/vortex/code_trees.ts";
import { damagedBytes, damagedTree } from "../../support/vortex/damage.ts";
import { Dice, numberTree } from "../../support/vortex/number_trees.ts";
import { assertSound } from "../../support/vortex/sound.ts";
import type { BuiltArray } from "../../support/vortex/wheel.ts";

const limits = { bytes: 2 ** 24, nodes: 2 ** 12 };
/** Per case, on a machine with other load. */
const MAX_MILLISECONDS = 10_000;
/** How much garbage may pile up, at 16 MiB a case. */
const MAX_BYTES = 2 ** 31;

const file = new URL("../../data/vortex/messages.json", import.meta.url);
const written: readonly { readonly array: string; readonly dtype: string }[] = JSON.parse(readFileSync(file, "utf8"));

const messages = written.map(({ array, dtype }) => ({
  array: Uint8Array.from(Buffer.from(array, "base64")),
  dtype: Uint8Array.from(Buffer.from(dtype, "base64")),
}));

const arrays: readonly BuiltArray[] = messages.map(({ array, dtype }) => {
  const [first] = messagesOf(dtype);
  const [second] = messagesOf(array);
  if (first?.kind !== "dtype" || second?.kind !== "array") throw new Error("Not a dtype and an array");
  const tree = readArray(second.body, second.ids, limitsOf());
  return { dtype: readDType(first.body, "dtype", limitsOf()), length: second.rowCount, tree };
});

/** An undamaged array: PyVortex's, or built, or one of these decoded and re-encoded in the plainest way. */
function anyArray(dice: Dice): BuiltArray {
  const seed = dice.below(2 ** 20);
  const array = dice.pick(() => dice.pick(...arrays), () => numberTree(seed), () => codeTree(seed))();
  if (dice.below(3) > 0) return array;
  const slice = arrayOf(array).slice(0);
  return { dtype: slice.dtype, length: slice.length, tree: rawOf(rootOf(slice)) };
}

const session = VortexSession.default();

function arrayOf({ dtype, length, tree }: BuiltArray): VortexArray {
  const root = rootNode(tree, dtype, length);
  openAll(session, root);
  return VortexArray.ofNode(root, { session, limits: limitsOf(limits) });
}

const before = process.memoryUsage().rss;

/** Runs a case. @returns whether there is a value */
function outcome(read: () => VortexArray): boolean {
  const start = performance.now();
  try {
    const array = read();
    assertSound(array.decoded());
    array.toArrow();
    return true;
  } catch (error) {
    if (!(error instanceof VortexError)) throw error;
    assert(error.path !== "" && error.message.includes(error.path), error.message);
    return false;
  } finally {
    const took = performance.now() - start;
    assert(took < MAX_MILLISECONDS, `it took ${took} ms`);
    const grown = process.memoryUsage().rss - before;
    assert(grown < MAX_BYTES, `${grown} bytes more are resident`);
  }
}

test("the arrays that are damaged below cover every encoding", () => {
  const met = new Set<string>();
  const visit = ({ id, children }: RawNode): void => {
    met.add(id);
    children.forEach(visit);
  };
  for (const { tree } of arrays) visit(tree);
  for (let seed = 0; seed < 400; seed++) visit(numberTree(seed).tree);
  for (let seed = 0; seed < 40; seed++) visit(codeTree(seed).tree);
  const missing = defaultEncodings.filter(({ id }) => !met.has(id)).map(({ id }) => id);
  assert(missing.every((id) => id === "vortex.bytebool" || id === "vortex.chunked"), `${missing}`);
});

test("a damaged message is refused with the place, or it is an array that keeps all promises", async () => {
  let [values, refusals] = [0, 0];
  await checkUntil(
    () => Math.min(values, refusals) > scaled(5), // a daily run's 100 had 8 to 16 values
    fc.property(fc.nat(2 ** 31 - 1), (seed) => {
      const dice = new Dice(seed);
      let { array, dtype } = dice.below(3) > 0 ? dice.pick(...messages) : encodeVortexIpc(arrayOf(anyArray(dice)));
      const isDType = dice.below(12) === 0;
      for (let times = 1 + dice.below(3); times > 0; times--) {
        if (isDType) dtype = damagedBytes(dice, dtype);
        else array = damagedBytes(dice, array);
      }
      if (outcome(() => decodeVortexIpc(array, { dtype, limits }))) values++;
      else refusals++;
    }),
    200,
    { endOnFailure: true },
  );
  assert(values > scaled(5) && refusals > scaled(5), `${values} values, ${refusals} refusals`);
});

test("a damaged tree is refused with the node's path, or it is an array that keeps all promises", async () => {
  let [values, refusals] = [0, 0];
  await checkUntil(
    () => Math.min(values, refusals) > scaled(5), // a daily run's 100 had 6 to 13 values
    fc.property(fc.nat(2 ** 31 - 1), (seed) => {
      const dice = new Dice(seed);
      let { dtype, length, tree } = anyArray(dice);
      const others = Array.from({ length: 3 }, () => dice.pick(...arrays).tree);
      for (let times = 1 + dice.below(3); times > 0; times--) tree = damagedTree(dice, tree, others);
      if (dice.below(10) === 0) {
        length = dice.pick(0, 1, length + 1, length * 2, 2 ** 20, 2 ** 31, 2 ** 40, 2 ** 53 - 1);
      }
      if (dice.below(10) === 0) dtype = dice.pick(...arrays).dtype;
      if (outcome(() => arrayOf({ dtype, length, tree }))) values++;
      else refusals++;
    }),
    200,
    { endOnFailure: true },
  );
  assert(values > scaled(5) && refusals > scaled(5), `${values} values, ${refusals} refusals`);
});
