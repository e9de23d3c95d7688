/**
 * Arrays that PyVortex, in this process, imports from Arrow, and exports as messages or files.
 *
 * @module
 */
import { ArrowArray, type PyObject, Python } from "../../../mod.ts";
import { NativeArena } from "../../../src/ffi/arena.ts";
import { encode, type Model, type Quirks, type Value } from "../arrow_model.ts";
import { findPython } from "../python.ts";
import { CountingRelease, RawWriter } from "../raw_arrow.ts";

const found = findPython("pyarrow", "vortex-data");

/** What is missing for PyVortex in this process, or null. */
export const missingPyVortex: string | null = typeof found === "string" ? found : null;

/** Opens Python, and defines the functions that the tests call. */
export function openPyVortex(): Python {
  const python = Python.open({ home: typeof found === "string" ? "" : found.executable });
  python.run(`
import pyarrow as pa
import vortex as vx, vortex.io
from vortex._lib import serde
def to_vortex(array, compress):
    made = vx.array(pa.array(array))
    return vx.compress(made) if compress and len(made) > 0 else made
def to_messages(array):
    parts, dtype = serde.encode_ipc_array_buffers(array)
    return [b"".join(bytes(part) for part in parts), b"".join(bytes(part) for part in dtype)]
def write_file(array, path, compact, edition):
    options = vx.io.VortexWriteOptions.compact() if compact else vx.io.VortexWriteOptions.default()
    if edition is not None:
        options = options.with_edition(edition)
    options.write(vx.array(pa.array(array)), path)
def of_messages(array, dtype):
    made = serde.decode_ipc_array(bytes(array), bytes(dtype)).to_arrow_array()
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
`);
  return python;
}

/**
 * Whether PyVortex accepts Arrow arrays of a type, whatever the values: the null type only inside other types, and no
 * times, which it requires to be within a day when it computes statistics.
 */
export function isVortexType(model: Model): boolean {
  return model.format !== "n" && isInnerType(model);
}

function isInnerType({ format, nullable, children, dictionary }: Model): boolean {
  if (dictionary !== null) {
    return nullable && dictionary.format !== "n" && isInnerType(dictionary) && dictionary.children.length === 0;
  }
  const isKnown = /^(n|b|[cCsSiIlLefg]|v?[uz]|[UZ]|td[Dm]|ts[smun]:.*|\+[lLs]|\+w:.*)$/.test(format) ||
    /^d:/.test(format) && !/,(32|64)$/.test(format);
  return isKnown && (format !== "n" || nullable) && children.every(isInnerType);
}

/** An array of ours with these values. */
export function arrayOfValues(model: Model, values: readonly Value[], quirk: Quirks): Disposable & { own: ArrowArray } {
  const arena = new NativeArena();
  const release = new CountingRelease();
  const writer = new RawWriter(arena, release);
  const own = ArrowArray.from({ schema: writer.schema(model), array: writer.array(encode(model, values, quirk)) });
  return {
    own,
    [Symbol.dispose]() {
      own.close();
      arena.close();
      release[Symbol.dispose]();
    },
  };
}

/** The elements of a Python list of bytes. */
export function bytesOfList(list: PyObject): Uint8Array<ArrayBuffer>[] {
  return (list.$value() as Uint8Array[]).map((bytes) => Uint8Array.from(bytes));
}
