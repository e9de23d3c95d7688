import { assert, assertArrayIncludes, assertEquals } from "@std/assert";
import { test } from "node:test";
import type { Field } from "../../bindings/abi.ts";
import { layoutOf } from "../../src/ffi/struct.ts";
import { cLayout } from "./c_layout.ts";
import { factsOf } from "./facts.ts";
import { libraries } from "./modules.ts";

/** Structs that are smaller in older versions, which lack fields at the end. */
const GREW = new Set([
  "cudaPointerAttributes",
  "ucp_params_t",
  "ucp_context_attr_t",
  "ucp_ep_attr_t",
  "ucp_mem_map_params_t",
  "ucp_request_param_t",
]);

/** The descriptions allowed for a field, by the compiler's view of its type. An array's element type is unknown. */
function fieldsFor(kind: string, size: number): readonly Field[] {
  if (kind === "pointer" || (kind === "union" && size === 8)) return ["ptr"]; // a union of pointers
  if (kind === "float") return [size === 4 ? "f32" : "f64"];
  if (kind === "signed") return [size === 1 ? "i8" : size === 2 ? "i16" : size === 4 ? "i32" : "i64"];
  // The compiler treats enums as unsigned; we use i32. A CUdeviceptr is an integer in C.
  if (kind === "unsigned") return size === 1 ? ["u8"] : size === 2 ? ["u16"] : size === 4 ? ["u32", "i32"] : wide;
  return [];
}
const wide: readonly Field[] = ["u64", "size", "ptr"];

for (const library of libraries) {
  const known = factsOf(library.name).structs ?? {};

  test(`${library.name}: every field of every struct lies where the compiler puts it, in every version`, () => {
    assertEquals(Object.keys(known).toSorted(), Object.keys(library.structs).toSorted());
    for (const [name, description] of Object.entries(library.structs)) {
      const layout = cLayout(description);
      const versions = Object.entries(known[name] ?? {});
      assert(versions.length > 0, `${name} is in no header`);
      for (const [version, fact] of versions) {
        const where = `${name} in ${library.name} ${version}`;
        if (!GREW.has(name)) assertEquals(layout.size, fact.size, `size of ${where}`);
        assertEquals(layout.alignment, fact.alignment, `alignment of ${where}`);
        for (const [field, [offset, size]] of Object.entries(fact.fields)) {
          // Reserved space shrinks and moves as newer versions name parts of it.
          if (field !== "reserved") assertEquals(layout.fields[field], { offset, size }, `${field} of ${where}`);
        }
      }
      const [version, newest] = versions.at(-1) ?? [];
      assert(newest !== undefined);
      assertEquals(layout.size, newest.size, `size of ${name} in ${version}`);
      const offsets = Object.entries(newest.fields).map(([field, [offset, size]]) => [field, { offset, size }]);
      assertEquals(layout.fields, Object.fromEntries(offsets), `fields of ${name} in ${version}`);
    }
  });

  test(`${library.name}: every field has the type that the compiler sees`, () => {
    for (const [name, description] of Object.entries(library.structs)) {
      const newest = Object.values(known[name] ?? {}).at(-1)?.fields ?? {};
      for (const [field, type] of Object.entries(description)) {
        const [, size, kind] = newest[field] ?? [0, 0, "unknown"];
        if (typeof type === "string") assertArrayIncludes(fieldsFor(kind, size), [type], `${name}.${field}: ${kind}`);
        else if (Array.isArray(type)) assertArrayIncludes(["pointer", "struct", "union"], [kind], `${name}.${field}`);
        else assertEquals(kind, "struct", `${name}.${field}`);
      }
    }
  });

  test(`${library.name}: the seam lays every struct out as C does`, () => {
    for (const [name, description] of Object.entries(library.structs)) {
      const { size, alignment, fields } = cLayout(description);
      const offsets = Object.fromEntries(Object.entries(fields).map(([field, { offset }]) => [field, offset]));
      assertEquals(layoutOf(description), { size, alignment, offsets }, name);
    }
  });
}
