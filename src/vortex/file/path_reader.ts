/**
 * Ranges of a file on this machine.
 *
 * @module
 */
import { nodeBuiltin } from "../../ffi/mod.ts";
import type { VortexReader } from "./reader.ts";

/** The most that is read by one call: some systems refuse more than 2 GiB. */
const chunk = 1 << 30;

/** Opens a file. @throws {Error} the system's, if it is not there or is no file */
export function openPath(path: string | URL): VortexReader {
  const fs = nodeBuiltin("node:fs");
  const file = fs.openSync(path, "r");
  try {
    const status = fs.fstatSync(file);
    if (!status.isFile()) throw new TypeError(`Cannot open ${path} as a Vortex file: it is not a file`);
    const readOnce = (into: Uint8Array, position: number) =>
      new Promise<number>((resolve, reject) => {
        const length = Math.min(into.length, chunk);
        fs.read(file, into, 0, length, position, (error, read) => error === null ? resolve(read) : reject(error));
      });
    const read = async (offset: number, length: number) => {
      const bytes = new Uint8Array(length);
      let done = 0;
      while (done < length) {
        const got = await readOnce(bytes.subarray(done), offset + done);
        if (got === 0) break; // the file ends here now: who asked sees that bytes are missing
        done += got;
      }
      return bytes.subarray(0, done);
    };
    return { size: status.size, gap: 4096, read, close: () => fs.closeSync(file) };
  } catch (error) {
    fs.closeSync(file);
    throw error;
  }
}
