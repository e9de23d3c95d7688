/**
 * Deflated bytes, inflated on demand by the runtime's own zlib.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";
import { NpyError } from "./error.ts";
import type { ByteSource } from "./source.ts";

/** Compressed bytes read at a time. */
const pieceBytes = 256 * 1024;

/**
 * The inflated contents of a source. Only a few pieces are ever in memory: the stream waits for the reader.
 *
 * @param size the expected inflated size, in bytes
 */
export function inflate(source: ByteSource, size: number): ByteSource & Disposable {
  const stream = nodeBuiltin("node:zlib").createInflateRaw({ chunkSize: pieceBytes });
  const feeding = feed(source, stream);
  feeding.catch((error: Error) => stream.destroy(error)); // the reader receives the error
  const chunks: AsyncIterator<Uint8Array> = stream[Symbol.asyncIterator]();
  let chunk: Uint8Array = new Uint8Array(0);
  let total = 0;
  const next = async (): Promise<boolean> => {
    try {
      const { done, value } = await chunks.next();
      if (done === true) return false;
      chunk = value;
      total += chunk.length;
    } catch (error) {
      throw error instanceof NpyError
        ? error
        : new NpyError(`cannot inflate it: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
    if (total > size) throw new NpyError(`it inflates to more than the ${size} bytes that it claims`);
    return true;
  };
  return {
    size,
    read: async (into) => {
      let done = 0;
      while (done < into.length) {
        if (chunk.length === 0 && !await next()) break;
        const some = chunk.subarray(0, into.length - done);
        into.set(some, done);
        chunk = chunk.subarray(some.length);
        done += some.length;
      }
      return done;
    },
    [Symbol.dispose]: () => void stream.destroy(),
  };
}

async function feed(source: ByteSource, stream: ReturnType<typeof import("node:zlib").createInflateRaw>) {
  for (;;) {
    const piece = new Uint8Array(pieceBytes);
    const got = await source.read(piece);
    if (got === 0 || stream.destroyed) break;
    if (!stream.write(piece.subarray(0, got))) {
      await new Promise<void>((resolve) => {
        const go = () => {
          stream.off("drain", go).off("close", go).off("end", go);
          resolve();
        };
        stream.on("drain", go).on("close", go).on("end", go);
      });
    }
  }
  stream.end();
}
