/**
 * Files damaged mostly near their end: they yield rows that keep all promises, or an error that names a place, in
 * bounded time and memory. `CAUSEWAY_RUNS=100` tries 100,000 of them.
 */
import { assert } from "@std/assert";
import process from "node:process";
import { test } from "node:test";
import { boolDType, primitiveDType, type VortexDType } from "../../../src/vortex/dtype.ts";
import { openVortex, VortexError, type VortexFilter } from "../../../src/vortex/mod.ts";
import { check, fc, scaled } from "../../support/property.ts";
import { damagedBytes } from "../../support/vortex/damage.ts";
import { FileWriter, type Flat, flatbuffer, type LaidOut } from "../../support/vortex/file_writer.ts";
import { boolNode, joined, node, primitiveNode, proto, ptypeCode, scalarOf } from "../../support/vortex/nodes.ts";
import { Dice } from "../../support/vortex/number_trees.ts";
import { assertSound } from "../../support/vortex/sound.ts";

const limits = { bytes: 2 ** 24, nodes: 2 ** 12 };
/** Per case, on a machine with other load. */
const MAX_MILLISECONDS = 10_000;
/** How much garbage may pile up, at 16 MiB an array. */
const MAX_BYTES = 2 ** 31;

const i64 = primitiveDType("i64");
const none = new Uint8Array(0);
const rows = 40;

/** A file of every layout, with zones and statistics. */
function soundFile(): Uint8Array<ArrayBuffer> {
  const writer = new FileWriter();
  const numbers = Array.from({ length: rows }, (_, i) => i);
  const chunk = (start: number, end: number, isInline: boolean) =>
    writer.flat(primitiveNode(numbers.slice(start, end), "i64"), end - start, isInline);
  const chunked: LaidOut = {
    id: "chunked",
    rows,
    children: [chunk(0, 16, false), chunk(16, 32, true), chunk(32, rows, false)],
  };
  const aggregate = (id: string) => [2, proto([1, new TextEncoder().encode(id)])] as const;
  const zones = [7, 15, 23, 31, 39];
  const table = node(
    "vortex.struct",
    none,
    [],
    primitiveNode(zones, "i64", zones.map(() => true)),
    node("vortex.constant", none, [scalarOf(0n, "u64")]),
  );
  const zoned: LaidOut = {
    id: "zoned",
    rows,
    metadata: joined(Uint8Array.of(1), proto([1, 8], aggregate("vortex.max"), aggregate("vortex.null_count"))),
    children: [chunked, writer.flat(table, zones.length)],
  };
  const dict: LaidOut = {
    id: "dict",
    rows,
    metadata: proto([1, ptypeCode("u8")], [2, true]),
    children: [
      writer.flat(primitiveNode([5, 6, 7], "i64", [true, false, true]), 3),
      writer.flat(primitiveNode(numbers.map((i) => i % 3), "u8", numbers.map((i) => i % 4 > 0)), rows),
    ],
  };
  const list: LaidOut = {
    id: "list",
    rows,
    metadata: proto([1, ptypeCode("u32")]),
    children: [
      writer.flat(primitiveNode(numbers, "i64"), rows),
      writer.flat(primitiveNode([0, ...numbers], "u32"), rows + 1),
      writer.flat(node("vortex.constant", none, [proto([2, true])]), rows),
    ],
  };
  const fields: LaidOut = {
    id: "struct",
    rows,
    children: [writer.flat(boolNode(numbers.map((i) => i % 5 > 0)) ?? node("", none, []), rows), dict],
  };
  const nullable = primitiveDType("i64", true);
  const dtype: VortexDType = {
    kind: "struct",
    names: ["zoned", "list", "fields", "truth"],
    fields: [
      i64,
      { kind: "list", element: i64, nullable: true },
      { kind: "struct", names: ["dict"], fields: [nullable], nullable: true },
      boolDType,
    ],
    nullable: false,
  };
  const truth = writer.flat(boolNode(numbers.map((i) => i % 2 === 0)) ?? node("", none, []), rows);
  const known: (Flat | null)[] = [{ bytes: scalarOf(0n, "i64") }, { u8: 1 }, { bytes: scalarOf(39n, "i64") }, {
    u8: 1,
  }];
  const statistics = flatbuffer([{ tables: [known, [], [], []] }]);
  return writer.finish({
    dtype,
    layout: { id: "struct", rows, children: [zoned, list, fields, truth] },
    statistics,
  });
}

const sound = soundFile();
const filters: readonly (VortexFilter | undefined)[] = [
  undefined,
  { column: "zoned", op: ">", value: 20 },
  { column: ["fields", "dict"], op: "==", value: 7 },
];
const before = process.memoryUsage().rss;

/** Reads a file in every way. @returns whether it has rows */
async function outcome(bytes: Uint8Array, filter: VortexFilter | undefined): Promise<boolean> {
  const start = performance.now();
  try {
    using file = await openVortex(bytes, { limits });
    file.explain();
    await file.describe();
    let batches = 0;
    for await (const batch of file.scan({ batchRows: 16, ...filter !== undefined && { filter } })) {
      assertSound(batch.decoded());
      batch.toArrow();
      if (++batches > 100) break; // it may claim any number of rows that need no memory
    }
    return batches > 0;
  } catch (error) {
    // A damaged column may no longer fit the filter.
    if (filter !== undefined && error instanceof TypeError && error.message.includes("column")) return false;
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

test("the file that is damaged below is sound", async () => {
  for (const filter of filters) assert(await outcome(sound, filter));
});

test("a damaged file is refused with the place, or it has rows that keep all promises", async () => {
  let [values, refusals] = [0, 0];
  await check(
    fc.asyncProperty(fc.nat(2 ** 31 - 1), async (seed) => {
      const dice = new Dice(seed);
      // Damage mostly keeps the size: otherwise little but the tail would be read.
      const [from, to] = dice.pick([0, sound.length], [sound.length - 1500, sound.length], [
        sound.length - 600,
        sound.length - 8,
      ]);
      let middle = sound.slice(from, to);
      for (let times = 1 + dice.below(3); times > 0; times--) {
        const changed = damagedBytes(dice, middle);
        middle = changed.length === middle.length || dice.below(8) === 0 ? changed : middle;
      }
      const bytes = joined(sound.slice(0, from), middle, sound.slice(to));
      if (await outcome(bytes, dice.pick(...filters.map((filter) => [filter] as const))[0])) values++;
      else refusals++;
    }),
    1000,
  );
  assert(values > scaled(100) && refusals > scaled(100), `${values} values, ${refusals} refusals`);
});
