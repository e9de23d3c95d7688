/**
 * Dtypes on the wire: flatbuffer tables.
 *
 * @module
 */
import type { VortexDType } from "../dtype.ts";
import { VortexError } from "../error.ts";
import type { VortexLimits } from "../limits.ts";
import { type PType, ptypes } from "../ptype.ts";
import { FlatTable } from "./flatbuffer.ts";
import { FlatWriter, type Written } from "./flatbuffer_writer.ts";
import type { Bytes } from "./source.ts";

/** The code of each kind. */
const codes = {
  null: 1,
  bool: 2,
  primitive: 3,
  decimal: 4,
  utf8: 5,
  binary: 6,
  struct: 7,
  list: 8,
  extension: 9,
  fixedSizeList: 10,
  variant: 11,
  union: 12,
  map: 13,
} as const;

const kinds = new Map<number, VortexDType["kind"]>(
  Object.entries(codes).map(([kind, code]) => [code, kind as VortexDType["kind"]]), // the keys of the table above
);

/**
 * Reads a dtype.
 *
 * @param path what the dtype belongs to, for errors
 * @throws {VortexError} if the bytes are not a dtype, or it is nested too deeply
 */
export function readDType(bytes: Bytes, path: string, limits: VortexLimits): VortexDType {
  return dtypeOf(FlatTable.root(bytes, path, "dtype", limits.nodes), limits.depth);
}

function dtypeOf(table: FlatTable, depth: number): VortexDType {
  if (depth === 0) table.fail("it is nested more deeply than the limit allows");
  const code = table.u8(0);
  const kind = kinds.get(code) ?? table.fail(`its kind is ${code}. Expected 1 to 13`);
  const type = table.table(1) ?? table.fail(`a ${kind} has no type table`);
  const inner = (slot: number): VortexDType =>
    dtypeOf(type.table(slot) ?? table.fail(`a ${kind} has no dtype in field ${slot}`), depth - 1);
  const all = (slot: number): VortexDType[] => type.tables(slot).map((one) => dtypeOf(one, depth - 1));
  switch (kind) {
    case "null":
      return { kind, nullable: true };
    case "primitive":
      return { kind, ptype: ptypeOf(type.u8(0), table), nullable: type.bool(1) };
    case "decimal": {
      const [precision, scale] = [type.u8(0), type.i8(1)];
      if (precision < 1 || precision > 76) table.fail(`the precision of a decimal is ${precision}. Expected 1 to 76`);
      return { kind, precision, scale, nullable: type.bool(2) };
    }
    case "struct": {
      const [names, fields] = [type.texts(0), all(1)];
      if (names.length !== fields.length) table.fail(`a struct has ${names.length} names and ${fields.length} dtypes`);
      return { kind, names, fields, nullable: type.bool(2) };
    }
    case "list":
      return { kind, element: inner(0), nullable: type.bool(1) };
    case "extension": {
      const id = type.text(0) ?? table.fail("an extension has no id");
      const storage = inner(1);
      return { kind, id, storage, metadata: (type.bytes(2) ?? new Uint8Array()).slice(), nullable: storage.nullable };
    }
    case "fixedSizeList":
      return { kind, element: inner(0), size: type.u32(1), nullable: type.bool(2) };
    case "union": {
      const [names, variants, typeIds] = [type.texts(0), all(1), [...type.bytes(2) ?? []]];
      if (names.length !== variants.length || typeIds.length !== variants.length) {
        table.fail(`a union has ${names.length} names, ${variants.length} dtypes and ${typeIds.length} type ids`);
      }
      return { kind, names, variants, typeIds, nullable: type.bool(3) };
    }
    case "map":
      return { kind, key: inner(0), value: inner(1), keysSorted: type.bool(2), nullable: type.bool(3) };
    default:
      return { kind, nullable: type.bool(0) };
  }
}

function ptypeOf(code: number, table: FlatTable): PType {
  return ptypes[code] ?? table.fail(`its ptype is ${code}. Expected 0 to ${ptypes.length - 1}`);
}

/** Writes a dtype. */
export function writeDType(dtype: VortexDType): Bytes {
  const writer = new FlatWriter();
  return writer.finish(write(writer, dtype));
}

function write(writer: FlatWriter, dtype: VortexDType): Written {
  return writer.table([{ u8: codes[dtype.kind] }, writeKind(writer, dtype)]);
}

function writeKind(writer: FlatWriter, dtype: VortexDType): Written {
  const nullable = { bool: dtype.nullable };
  switch (dtype.kind) {
    case "null":
      return writer.table([]);
    case "primitive":
      return writer.table([{ u8: ptypes.indexOf(dtype.ptype) }, nullable]);
    case "decimal":
      return writer.table([{ u8: dtype.precision }, { u8: dtype.scale & 0xff }, nullable]);
    case "struct":
      return writer.table([texts(writer, dtype.names), all(writer, dtype.fields), nullable]);
    case "list":
      return writer.table([write(writer, dtype.element), nullable]);
    case "extension":
      return writer.table([writer.text(dtype.id), write(writer, dtype.storage), writer.bytes(dtype.metadata)]);
    case "fixedSizeList":
      return writer.table([write(writer, dtype.element), { u32: dtype.size }, nullable]);
    case "union":
      return writer.table([
        texts(writer, dtype.names),
        all(writer, dtype.variants),
        writer.bytes(Uint8Array.from(dtype.typeIds)),
        nullable,
      ]);
    case "map":
      return writer.table([write(writer, dtype.key), write(writer, dtype.value), { bool: dtype.keysSorted }, nullable]);
    default:
      return writer.table([nullable]);
  }
}

function texts(writer: FlatWriter, names: readonly string[]): Written {
  return writer.offsets(names.map((name) => writer.text(name)));
}

function all(writer: FlatWriter, dtypes: readonly VortexDType[]): Written {
  return writer.offsets(dtypes.map((dtype) => write(writer, dtype)));
}

/** The ptype of a code in a message. @throws {VortexError} if no ptype has this code */
export function ptypeOfCode(code: number, path: string, what: string): PType {
  const ptype = ptypes[code];
  if (ptype === undefined) throw new VortexError(path, `The ptype of ${what} is ${code}. Expected 0 to 10`);
  return ptype;
}
