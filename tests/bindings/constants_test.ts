import { assert, assertEquals } from "@std/assert";
import { test } from "node:test";
import { ARROW_CAPSULE } from "../../bindings/arrow.ts";
import { DLDataTypeCode, DLPACK_CAPSULE } from "../../bindings/dlpack.ts";
import { dlpackCode } from "../../src/layout/mod.ts";
import { factsOf } from "./facts.ts";
import { type Constant, libraries, type Library } from "./modules.ts";

/** Field masks are keyed by struct fields: `ucp_layout_test.ts` checks them. */
const isMask = (name: string): boolean => /^UCP_.*_FIELD$/.test(name);

/** Enums with only some members listed: the library can name them all. */
const PARTIAL = new Set(["cudaError"]);

/**
 * Constants by their C name. An object of constants is named by their common prefix, all capitals, or by their type:
 * then its keys are whole names.
 */
function namesOf(library: Library): [name: string, value: Constant][] {
  return Object.entries(library.constants).flatMap(([object, members]): [string, Constant][] => {
    if (isMask(object)) return [];
    if (typeof members !== "object") return [[object, members]];
    const prefix = /^([A-Z0-9_]+|PyBUF|Py_TPFLAGS)$/.test(object) ? `${object}_` : "";
    return Object.entries(members).map(([key, value]) => [prefix + key, value]);
  });
}

for (const library of libraries) {
  const known = factsOf(library.name);

  test(`${library.name}: every constant has the value of the header, in every version that has it`, () => {
    for (const [name, value] of namesOf(library)) {
      const fact = known.constants?.[name];
      assert(fact !== undefined, `${name} is in no header`);
      assertEquals(Number(value), fact, name);
    }
    assertEquals(Object.keys(known.constants ?? {}).length, namesOf(library).length);
  });

  test(`${library.name}: an enum that the bindings name is complete`, () => {
    for (const [type, members] of Object.entries(known.members ?? {})) {
      const ours = library.constants[type];
      assert(typeof ours === "object", type);
      if (!PARTIAL.has(type)) assertEquals(Object.keys(ours).toSorted(), members.toSorted(), type);
    }
  });
}

test("capsule names are those of the specifications", () => {
  assertEquals(Object.values(DLPACK_CAPSULE).toSorted(), [
    "dlpack_exchange_api",
    "dltensor",
    "dltensor_versioned",
    "used_dltensor",
    "used_dltensor_versioned",
  ]);
  assertEquals(Object.values(ARROW_CAPSULE).toSorted(), [
    "arrow_array",
    "arrow_array_stream",
    "arrow_device_array",
    "arrow_device_array_stream",
    "arrow_schema",
  ]);
});

test("the codes of dtypes, which layouts keep because they import nothing, are those of DLPack", () => {
  const codeOf = (name: string) => name.slice("kDL".length).toLowerCase().replace("opaque", "");
  assertEquals(
    dlpackCode as Readonly<Record<string, number>>,
    Object.fromEntries(Object.entries(DLDataTypeCode).map(([name, code]) => [codeOf(name), code])),
  );
});
