/**
 * Vortex dtypes as Arrow types.
 *
 * @module
 */
import { type ArrowField, arrowField, type ArrowMetadata, type ArrowType } from "../../cdata/mod.ts";
import type { CanonicalArray } from "../canonical.ts";
import { type DTypeOf, entriesOf, type VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import type { PType } from "../ptype.ts";
import type { VortexExtension, VortexSession } from "../session.ts";

const numbers: Readonly<Record<PType, ArrowType>> = {
  u8: { kind: "uint", bits: 8 },
  u16: { kind: "uint", bits: 16 },
  u32: { kind: "uint", bits: 32 },
  u64: { kind: "uint", bits: 64 },
  i8: { kind: "int", bits: 8 },
  i16: { kind: "int", bits: 16 },
  i32: { kind: "int", bits: 32 },
  i64: { kind: "int", bits: 64 },
  f16: { kind: "float", bits: 16 },
  f32: { kind: "float", bits: 32 },
  f64: { kind: "float", bits: 64 },
};

// law vortex/arrowDecimalBits: vortex/file/files
/**
 * Bits per decimal of a given precision in Arrow arrays that are made here. Arrow also has decimals of 32 and 64 bits,
 * which Polars 2.1 reads as if they had 128.
 */
export function arrowDecimalBits(precision: number): 128 | 256 {
  return precision <= 38 ? 128 : 256;
}

/** Bits of dictionary indices: signed, and wide enough for every unsigned code, as Vortex itself exports them. */
const indexBits = { u8: 16, u16: 32, u32: 64 } as const;

/**
 * The field of a dtype: text and bytes by views, lists by 32-bit offsets, decimals by 128 bits, or 256, extensions
 * as their session defines them.
 *
 * @param array if given, its dictionaries are dictionaries in the type too
 */
export function fieldOf(dtype: VortexDType, name: string, session: VortexSession, array?: CanonicalArray): ArrowField {
  const { nullable } = dtype;
  if (array?.kind === "dictionary") {
    const { ptype } = array.codes.dtype;
    const bits = ptype === "u8" || ptype === "u16" ? indexBits[ptype] : indexBits.u32;
    const values = fieldOf(array.values.dtype, "", session, array.values);
    return arrowField({ kind: "dictionary", index: { kind: "int", bits }, values, ordered: false }, { name, nullable });
  }
  if (array?.kind === "runEnd") {
    const runEnds = arrowField({ kind: "int", bits: 32 }, { name: "run_ends", nullable: false });
    const values = fieldOf(array.values.dtype, "values", session, array.values);
    return arrowField({ kind: "run_end_encoded", runEnds, values }, { name, nullable });
  }
  if (dtype.kind === "extension") return extensionField(dtype, name, session);
  return arrowField(typeOf(dtype, session, array), { name, nullable });
}

function typeOf(
  dtype: Exclude<VortexDType, { readonly kind: "extension" }>,
  session: VortexSession,
  array: CanonicalArray | undefined,
): ArrowType {
  switch (dtype.kind) {
    case "null":
    case "bool":
      return { kind: dtype.kind };
    case "primitive":
      return numbers[dtype.ptype];
    case "decimal": {
      const { precision, scale } = dtype;
      return { kind: "decimal", bits: arrowDecimalBits(precision), precision, scale };
    }
    case "utf8":
    case "binary":
      return { kind: dtype.kind, offsets: "view" };
    case "list": {
      const elements = array?.kind === "list" ? array.elements : undefined;
      return { kind: "list", offsets: 32, child: fieldOf(dtype.element, "item", session, elements) };
    }
    case "fixedSizeList": {
      const elements = array?.kind === "fixedSizeList" ? array.elements : undefined;
      return { kind: "fixed_size_list", size: dtype.size, child: fieldOf(dtype.element, "item", session, elements) };
    }
    case "struct": {
      const fields = array?.kind === "struct" ? array.fields : [];
      return {
        kind: "struct",
        children: dtype.fields.map((field, i) => fieldOf(field, dtype.names[i] ?? "", session, fields[i])),
      };
    }
    case "map":
      return { kind: "map", keysSorted: dtype.keysSorted, child: fieldOf(entriesOf(dtype), "entries", session) };
    case "variant":
    case "union":
      throw new VortexError("dtype", `Arrays of ${dtype.kind} are not supported`);
  }
}

function extensionField(dtype: DTypeOf<"extension">, name: string, session: VortexSession): ArrowField {
  const known = session.extension(dtype.id);
  const type = known === null ? null : typeOfExtension(known, dtype);
  const { nullable } = dtype;
  if (type !== null) return arrowField(type, { name, nullable, metadata: known?.fieldMetadata ?? {} });
  const storage = fieldOf(dtype.storage, name, session);
  if (known !== null) return { ...storage, metadata: new Map(Object.entries(known.fieldMetadata ?? {})) };
  // The extension is unknown here; the reader of the field may know it.
  const metadata: ArrowMetadata = new Map<string, string | Uint8Array>([
    ["ARROW:extension:name", dtype.id],
    ["ARROW:extension:metadata", dtype.metadata],
  ]);
  return { ...storage, metadata };
}

/** The Arrow type that an extension gives its values; its TypeErrors become errors about the dtype. */
function typeOfExtension(known: VortexExtension, dtype: DTypeOf<"extension">): ArrowType | null {
  try {
    return known.toArrow(dtype);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new VortexError("dtype", error.message, { cause: error });
  }
}
