/** `.npy` files for tests, valid and invalid, written from scratch. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratchFolder } from "./scratch.ts";

/** Writes bytes to a new file, which is removed when the tests are done, and returns its path. */
export function fileOf(bytes: Uint8Array, ending = ".npy"): string {
  const path = join(scratchFolder(), `array${ending}`);
  writeFileSync(path, bytes);
  return path;
}

/** Options of {@linkcode npy}. */
export interface NpyOptions {
  readonly version?: 1 | 2 | 3;
  readonly magic?: string;
}

/** A file with the given header and data, padded as NumPy pads it. */
export function npy(header: string, data: Uint8Array = new Uint8Array(0), options: NpyOptions = {}): string {
  const { version = 1, magic = "\x93NUMPY" } = options;
  const lengthBytes = version === 1 ? 2 : 4;
  const text = `${header.padEnd(Math.ceil((header.length + 9 + lengthBytes) / 64) * 64 - 9 - lengthBytes)}\n`;
  const start = new Uint8Array(8 + lengthBytes);
  start.set(Array.from(magic, (letter) => letter.charCodeAt(0)));
  start[6] = version;
  const fields = new DataView(start.buffer);
  if (version === 1) fields.setUint16(8, text.length, true);
  else fields.setUint32(8, text.length, true);
  const encoded = new TextEncoder().encode(text);
  const file = new Uint8Array(start.length + encoded.length + data.length);
  file.set(start);
  file.set(encoded, start.length);
  file.set(data, start.length + encoded.length);
  return fileOf(file);
}

/** A header as NumPy writes it. */
export function headerOf(descr: string, shape: readonly number[], fortran = "False"): string {
  const extents = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  return `{'descr': '${descr}', 'fortran_order': ${fortran}, 'shape': (${extents}), }`;
}
