/**
 * Filtered scans against PyVortex's own, and against PyArrow on the table that was written: files of several zones, of
 * each edition, with columns of most ordered types.
 */
import { assert, assertEquals } from "@std/assert";
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type LiteralValue, openVortex, type VortexFilter } from "../../../src/vortex/mod.ts";
import { check, fc } from "../../support/property.ts";
import { findPythonOrSystem } from "../../support/python.ts";
import { rowsOf, withWheel } from "../../support/vortex/wheel.ts";

/** A filter as the judge writes it: each value as its kind and its text. */
type Said =
  | { readonly and: readonly Said[] }
  | { readonly or: readonly Said[] }
  | { readonly not: Said }
  | { readonly column: string; readonly op: string; readonly value?: Value | readonly Value[] };
type Value = readonly [kind: string, text: string];

interface Judged {
  readonly path: string;
  readonly edition: string;
  readonly rows: number;
  readonly schema: string;
  readonly filters: readonly {
    readonly filter: Said;
    readonly column: string;
    readonly count: number;
    readonly rows: string;
    readonly arrow?: string;
  }[];
}

function valueOf([kind, text]: Value): LiteralValue {
  switch (kind) {
    case "int":
      return BigInt(text);
    case "float":
      return Number(text);
    case "bool":
      return text === "True";
    case "bytes":
      return Uint8Array.from(Buffer.from(text, "hex"));
    default:
      return text;
  }
}

function filterOf(said: Said): VortexFilter {
  if ("not" in said) return { not: filterOf(said.not) };
  if ("and" in said) return { and: said.and.map(filterOf) };
  if ("or" in said) return { or: said.or.map(filterOf) };
  const { column, op, value } = said;
  if (value === undefined) return { column, op } as VortexFilter; // the judge knows the operators
  const one = op === "in" ? (value as readonly Value[]).map(valueOf) : valueOf(value as Value);
  return { column, op, value: one } as VortexFilter;
}

const [title, options] = withWheel("filters find the rows that PyVortex's scan finds, and PyArrow");

const filesOfACase = 20;

test(title, options, async () => {
  const python = findPythonOrSystem("vortex-data>=0.93", "pyarrow", "numpy");
  if (typeof python === "string") throw new Error(python);
  const folder = mkdtempSync(join(tmpdir(), "causeway-vortex-"));
  after(() => rmSync(folder, { recursive: true }));
  const script = fileURLToPath(new URL("../../support/vortex/file_judge.py", import.meta.url));
  const property = fc.asyncProperty(fc.nat(2 ** 30), async (first) => {
    const args = [script, `${first}`, `${filesOfACase}`, folder];
    const { stdout, stderr, status } = spawnSync(python.executable, args, { encoding: "utf8", maxBuffer: 2 ** 30 });
    assertEquals(status, 0, stderr);
    const all = stdout.trim().split("\n").map((line): Judged => JSON.parse(line));
    const sums = { read: 0, whole: 0, found: 0 };
    for (const one of all) await compare(one, sums);
    assert(sums.found > filesOfACase, "filters find too little to say anything");
    assert(sums.read < 0.9 * sums.whole, `${sums.read} of ${sums.whole} bytes were read: zones exclude too little`);
  });
  await check(property, 1, { endOnFailure: true }); // the judge's seeds do not shrink
});

async function compare(
  { path, edition, schema, rows, filters }: Judged,
  sums: Record<"read" | "whole" | "found", number>,
) {
  using file = await openVortex(path);
  assertEquals(file.rowCount, rows);
  for (const { filter, column, count, rows, arrow } of filters) {
    const what = `${path}, ${edition}: ${JSON.stringify(filter)} in ${schema}`;
    assertEquals(arrow, undefined, what);
    const before = file.readStatistics.bytes;
    const hash = createHash("sha256");
    let got = 0;
    for await (const batch of file.scan({ columns: [column], filter: filterOf(filter), batchRows: 7000 })) {
      const array = batch.decoded();
      const only = array.kind === "struct" ? array.fields[0] : undefined;
      assert(only !== undefined);
      hash.update(Buffer.from(rowsOf(only), "base64"));
      got += batch.length;
    }
    assertEquals(got, count, what);
    assertEquals(hash.digest("hex"), rows, what);
    sums.found += got === 0 ? 0 : 1;
    sums.read += file.readStatistics.bytes - before;
    sums.whole += file.byteLength;
  }
}
