/**
 * The demo's array, from either kind of file, with what the second process must answer about it.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { DType } from "../layout/mod.ts";
import { HostMemoryResource, type MemoryBuffer } from "../memory/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { readNpy } from "../files/mod.ts";
import { openVortex, type VortexDType, type VortexFile } from "../vortex/mod.ts";
import { controlSummary } from "./control.ts";
import type { Summary } from "./summary.ts";
import { badInput } from "./vortex.ts";
import { UsageError } from "./usage_error.ts";

/** An array from a file. Closing the buffer frees it. */
export interface DemoFile {
  readonly view: StridedMemoryView;
  readonly buffer: MemoryBuffer;
  /** What it is, besides its type and shape: empty, or the column. */
  readonly what: string;
  /** What the second process must answer, computed from the current contents of the file. */
  control(): Promise<Summary>;
}

/**
 * Reads the array of a `.npy` file, or the first column of numbers without nulls of a `.vortex` file.
 *
 * @throws {UsageError} if the file cannot be read, or has no such column
 */
export async function readDemoFile(file: string): Promise<DemoFile> {
  try {
    return await (file.endsWith(".vortex") ? readVortex(file) : readNumpy(file));
  } catch (error) {
    throw error instanceof UsageError ? error : badInput(file, error);
  }
}

async function readNumpy(file: string): Promise<DemoFile> {
  const view = await readNpy(file);
  const { shape, layout, dtype, buffer } = view;
  const control = () => {
    const part = { shape, isFortran: !layout.isContiguousC, typestr: dtype.require("typestr") };
    const bytes = readFileSync(file);
    // The elements are read again, from where the format says they are, by code other than readNpy's.
    const dataOffset = bytes[6] === 1 ? 10 + bytes.readUInt16LE(8) : 12 + bytes.readUInt32LE(8);
    const elements = bytes.subarray(dataOffset, dataOffset + buffer.size);
    const [, kind, size] = /'>([a-z])(\d+)'/.exec(bytes.toString("latin1", 0, dataOffset)) ?? [];
    const width = Number(size ?? 1) / (kind === "c" ? 2 : 1); // big-endian, if it is more than a byte
    if (width === 2) elements.swap16();
    else if (width === 4) elements.swap32();
    else if (width === 8) elements.swap64();
    return Promise.resolve(controlSummary(elements, part));
  };
  return { view, buffer, what: "", control };
}

async function readVortex(file: string): Promise<DemoFile> {
  using opened = await openVortex(file);
  const { name, dtype } = columnOf(opened, file);
  const buffer = new HostMemoryResource().allocate(opened.rowCount * dtype.itemsize);
  try {
    await fill(buffer.bytes(), opened, name, 65_536);
  } catch (error) {
    buffer.close();
    throw error;
  }
  const view = StridedMemoryView.fromBuffer(buffer, { shape: [opened.rowCount], dtype });
  const control = async () => {
    // Read and decoded again, in batches with other boundaries.
    using again = await openVortex(file);
    const bytes = new Uint8Array(buffer.size);
    await fill(bytes, again, name, 10_007);
    return controlSummary(bytes, { shape: [again.rowCount], isFortran: false, typestr: dtype.require("typestr") });
  };
  return { view, buffer, what: `column ${name}, `, control };
}

/** NumPy's name for a numeric type. */
function nameOf(dtype: VortexDType): string | null {
  if (dtype.kind !== "primitive") return null;
  const kinds = { u: "uint", i: "int", f: "float" } as const;
  const kind = dtype.ptype.startsWith("u") ? kinds.u : dtype.ptype.startsWith("i") ? kinds.i : kinds.f;
  return `${kind}${dtype.ptype.slice(1)}`;
}

function columnOf({ dtype, statistics }: VortexFile, file: string): { readonly name: string; readonly dtype: DType } {
  if (dtype.kind === "struct") {
    for (const [i, name] of dtype.names.entries()) {
      const field = dtype.fields[i];
      const type = field === undefined ? null : nameOf(field);
      if (type === null || (field?.nullable === true && statistics.get(name)?.nullCount !== 0)) continue;
      return { name, dtype: DType.from(type) };
    }
  }
  throw new UsageError(`${file} has no column of numbers without nulls`);
}

/** Decodes a column, which must be as large as its destination. */
async function fill(into: Uint8Array, file: VortexFile, name: string, batchRows: number): Promise<void> {
  let at = 0;
  for await (const batch of file.scan({ columns: [name], batchRows })) {
    const array = batch.decoded();
    const column = array.kind === "struct" ? array.fields[0] : undefined;
    if (column?.kind !== "primitive" || batch.toArrow().child(0).nullCount > 0) {
      throw new UsageError(`Some numbers of column ${name} are null, though the file says that none are`);
    }
    const { buffer, byteOffset, byteLength } = column.values;
    into.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
}
