/**
 * nanoarrow's entry points for Arrow's integration tests, in C++: it creates schemas and batches from a JSON file,
 * which we must read as the file says, and compares ours with the file.
 */
import { assertEquals } from "@std/assert";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { SymbolTable } from "../../bindings/abi.ts";
import { liveExports } from "../../src/order/reclaim.ts";
import { ArrowArray } from "../../mod.ts";
import { NativeArena } from "../../src/ffi/arena.ts";
import { LibraryNotFoundError } from "../../src/ffi/errors.ts";
import { openLibrary } from "../../src/ffi/library.ts";
import { readCString } from "../../src/ffi/c_string.ts";
import type { Functions } from "../../src/ffi/types.ts";
import { isSayable, JsonTable } from "../support/arrow_json.ts";
import { encode, type Model, models, type Value, valueOf } from "../support/arrow_model.ts";
import { CountingRelease, pointerAt, RawWriter, readRawSchema } from "../support/raw_arrow.ts";
import { patiently } from "../support/child.ts";
import { needs } from "../support/needs.ts";
import { check, fc } from "../support/property.ts";
import { findPython } from "../support/python.ts";

const symbols = {
  integration: {
    // const char* nanoarrow_CDataIntegration_ExportSchemaFromJson(const char* json_path, ArrowSchema* out);
    nanoarrow_CDataIntegration_ExportSchemaFromJson: { args: ["ptr", "ptr"], returns: "ptr" },
    // const char* nanoarrow_CDataIntegration_ImportSchemaAndCompareToJson(const char* json_path, ArrowSchema* schema);
    nanoarrow_CDataIntegration_ImportSchemaAndCompareToJson: { args: ["ptr", "ptr"], returns: "ptr" },
    // const char* nanoarrow_CDataIntegration_ExportBatchFromJson(const char* json_path, int num_batch, ArrowArray*
    // out);
    nanoarrow_CDataIntegration_ExportBatchFromJson: { args: ["ptr", "i32", "ptr"], returns: "ptr" },
    // const char* nanoarrow_CDataIntegration_ImportBatchAndCompareToJson(const char* json_path, int num_batch,
    // ArrowArray* batch);
    nanoarrow_CDataIntegration_ImportBatchAndCompareToJson: { args: ["ptr", "i32", "ptr"], returns: "ptr" },
    // int64_t nanoarrow_BytesAllocated(void);
    nanoarrow_BytesAllocated: { args: [], returns: "i64" },
  },
} as const satisfies SymbolTable;

function open(): Functions<typeof symbols>["integration"] | string {
  const python = findPython("nanoarrow");
  const folder = typeof python === "string" ? undefined : python.path.find((path) => path.endsWith("site-packages"));
  try {
    const { functions } = openLibrary({
      name: "libnanoarrow_c_data_integration",
      symbols,
      override: "CAUSEWAY_NANOARROW",
      sonames: ["libnanoarrow_c_data_integration.so"],
      folders: folder === undefined ? [] : [join(folder, "nanoarrow")],
      remedy: "Build it: tools/nanoarrow.sh PYTHON",
    });
    return functions.integration;
  } catch (error) {
    if (error instanceof LibraryNotFoundError) {
      return `no ${error.message.split(/[.\n]/)[0]}: tools/nanoarrow.sh PYTHON`;
    }
    throw error;
  }
}

const nanoarrow = open();
const withNanoarrow = (name: string) => {
  const [title, { skip }] = needs(typeof nanoarrow === "string" ? nanoarrow : null, name);
  return [title, { skip, ...patiently }] as const;
};

/** Throws nanoarrow's error message, if there is one. */
function ok(words: bigint): void {
  if (words !== 0n) throw new Error(readCString(words));
}

/** Whether all numbers exist in JSON, and no decimals are ones that nanoarrow reads as text. */
function isPlain(value: Value): boolean {
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return true;
  return Object.values(value).every(isPlain);
}

const plain = { offset: 0, tail: 0, countUnknown: false, idleBitmap: false, gap: 0 };

/** Tables: a struct of any columns, and rows that are not null. */
const tables = fc.array(models.filter(isSayable), { maxLength: 3 }).chain((columns) => {
  const children = columns.map((column, i) => ({ ...column, name: `f${i}${column.name}` }));
  const model: Model = { format: "+s", name: "", nullable: false, flags: 0, metadata: [], children, dictionary: null };
  return fc.record({ model: fc.constant(model), values: fc.array(valueOf(model), { maxLength: 8 }) });
}).filter(({ values }) => values.every(isPlain));

const folder = mkdtempSync(join(tmpdir(), "causeway-nanoarrow-"));
const path = join(folder, "table.json");

test(...withNanoarrow("schemas and batches of nanoarrow's are what the file says, and ours are what it reads"), () => {
  if (typeof nanoarrow === "string") throw new Error(nanoarrow);
  using release = new CountingRelease();
  const before = nanoarrow.nanoarrow_BytesAllocated();
  check(
    fc.property(tables, ({ model, values }) => {
      using arena = new NativeArena();
      writeFileSync(path, new JsonTable().text(model, values));
      const file = arena.cString(path);
      const [schema, array] = [arena.bytes(72).address, arena.bytes(80).address];

      ok(nanoarrow.nanoarrow_CDataIntegration_ExportSchemaFromJson(file, schema));
      ok(nanoarrow.nanoarrow_CDataIntegration_ExportBatchFromJson(file, 0, array));
      assertEquals(essence(readRawSchema(schema)), essence(model), "the file says what the model is");
      const theirs = ArrowArray.from({ schema, array });
      assertEquals(theirs.toArray() as unknown, values);

      const exported = theirs.toArrowDevice(); // theirs, through us, and back
      exported.moveTo({ schema, array });
      ok(nanoarrow.nanoarrow_CDataIntegration_ImportSchemaAndCompareToJson(file, schema));
      ok(nanoarrow.nanoarrow_CDataIntegration_ImportBatchAndCompareToJson(file, 0, array));
      assertEquals([pointerAt(schema, 56), pointerAt(array, 64), exported.released], [0n, 0n, true]);
      theirs.close();
      assertEquals(nanoarrow.nanoarrow_BytesAllocated(), before);

      const writer = new RawWriter(arena, release); // buffers not made by nanoarrow
      const ours = ArrowArray.from({ schema: writer.schema(model), array: writer.array(encode(model, values, plain)) });
      ours.toArrowDevice().moveTo({ schema, array });
      ok(nanoarrow.nanoarrow_CDataIntegration_ImportSchemaAndCompareToJson(file, schema));
      ok(nanoarrow.nanoarrow_CDataIntegration_ImportBatchAndCompareToJson(file, 0, array));
      ours.close();
      assertEquals(liveExports(), 0);
    }),
    500,
  );
  rmSync(folder, { recursive: true });
});

/** The part of a schema that the file has: maps' own names and the flags of types inside a dictionary are not in it. */
function essence(model: Model): unknown {
  const { format, children, dictionary } = model;
  return { format, children: children.map(essence), dictionary: dictionary === null ? null : essence(dictionary) };
}
