/**
 * Writes `.npz` files, as `numpy.savez` does: a zip of `.npy` files.
 *
 * @module
 */
import { nodeBuiltin } from "../ffi/mod.ts";
import { checkBoolean, checkOptions, type OptionNames, show, showGiven } from "../layout/mod.ts";
import { StridedMemoryView } from "../view/mod.ts";
import { NpyError } from "./error.ts";
import { type ByteSink, createFile, type NewFile } from "./new_file.ts";
import { headerFor, writeArray, writeToStream } from "./write_npy.ts";

/** Options of {@linkcode writeNpz}. */
export interface WriteNpzOptions {
  /** Deflate the arrays, as `numpy.savez_compressed` does. Default false. */
  readonly compressed?: boolean;
}

const writeNpzOptionNames: OptionNames<WriteNpzOptions> = { compressed: true };

/** An array to be written. */
interface Entry {
  readonly name: Uint8Array;
  readonly view: StridedMemoryView;
  /** What precedes its elements. */
  readonly header: Uint8Array;
}

/** A member's directory entry. */
interface Written {
  readonly name: Uint8Array;
  readonly flags: number;
  readonly method: number;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  readonly at: number;
}

/**
 * Writes arrays to a `.npz` file. Each array is written as by `writeNpy`, in a format that supports any size, and like
 * there a file that is there stays until the new one is complete. The views must stay open, and their elements the
 * same, until the promise settles.
 *
 * A stream gets the bytes as it takes them, and is closed; or aborted if that fails. It cannot go back: the size of
 * each member follows it, as in all zips that are made so, and is in the directory at the end, which readers use.
 *
 * @param target a path, or a stream, such as that of a response
 * @param arrays by name, in the file's order
 * @throws {SystemError} if the file cannot be written
 * @throws what the stream fails with, and a TypeError if it is locked
 * @throws {NpyError} for element types that NumPy lacks, and for a name that is empty, too long or no Unicode text
 */
export async function writeNpz(
  target: string | URL | WritableStream<Uint8Array<ArrayBuffer>>,
  arrays: Readonly<Record<string, StridedMemoryView>> | ReadonlyMap<string, StridedMemoryView>,
  options: WriteNpzOptions = {},
): Promise<void> {
  if (target instanceof WritableStream) {
    return await writeToStream(target, async (sink) => {
      const entries = checked(arrays, options); // here: who reads the stream must learn of an error
      using _ = pinned(entries);
      await writeMembers(sink, entries, options);
    });
  }
  const entries = checked(arrays, options);
  using _ = pinned(entries); // first: that of a closed view is an error, before a file is replaced
  await using file = createFile(target);
  await writeMembers(file, entries, options);
  file.commit();
}

function checked(arrays: Parameters<typeof writeNpz>[1], options: WriteNpzOptions): Entry[] {
  checkOptions(options, writeNpzOptionNames);
  checkBoolean("compressed", options.compressed);
  return namedViews(arrays).map(([name, view]) => {
    const where = `as ${show(name)} in writeNpz(path, { name: view })`;
    return { name: memberName(name), view, header: headerFor(view, where) };
  });
}

/** The memory of all views, until it is disposed. */
function pinned(entries: readonly Entry[]): Disposable {
  using pins = new DisposableStack();
  for (const { view } of entries) pins.use(view.buffer.pinned());
  return pins.move();
}

// law files/writeMembers: files/npz, files/numpy
async function writeMembers(
  sink: ByteSink & Partial<Pick<NewFile, "writeAt">>,
  entries: readonly Entry[],
  { compressed = false }: WriteNpzOptions,
): Promise<void> {
  const written: Written[] = [];
  let at = 0;
  for (const { name, view, header } of entries) {
    const method = compressed ? 8 : 0;
    const flags = sink.writeAt === undefined ? isUtf8 | sizesFollow : isUtf8;
    const member = { name, flags, method, crc: 0, packed: 0, size: 0, at };
    const local = localHeader(member);
    await sink.write(local);
    const whole = { ...member, ...await writeMember(sink, view, header, method === 8) };
    written.push(whole);
    at += local.length + whole.packed;
    if (sink.writeAt !== undefined) sink.writeAt(localHeader(whole), whole.at); // the sizes are known now
    else {
      const sizes = sizesOf(whole);
      await sink.write(sizes);
      at += sizes.length;
    }
  }
  for (const bytes of [...written.map(entryOf), endOf(written, at)]) await sink.write(bytes);
}

// law files/namedViews: files/write_input
function namedViews(
  arrays: Readonly<Record<string, StridedMemoryView>> | ReadonlyMap<string, StridedMemoryView>,
): readonly (readonly [name: string, view: StridedMemoryView])[] {
  if (arrays instanceof Map) return [...arrays];
  // An array would have indices as names, and a view has its own members.
  if (typeof arrays !== "object" || arrays === null || Array.isArray(arrays) || arrays instanceof StridedMemoryView) {
    throw new TypeError(
      `Cannot write a NumPy file: expected views by name, { weights: view } or a Map, got ${showGiven(arrays)}`,
    );
  }
  return Object.entries(arrays);
}

function memberName(name: string): Uint8Array {
  if (typeof name !== "string" || !name.isWellFormed()) {
    throw new NpyError(`Cannot write an array named ${show(name)}: expected a name that UTF-8 can encode`);
  }
  const bytes = new TextEncoder().encode(`${name}.npy`);
  if (name !== "" && bytes.length < 65536) return bytes;
  throw new NpyError(`Cannot write an array with a name of ${name.length} characters: expected 1 to 65531 bytes`);
}

// law files/writeMember: files/write_npy
async function writeMember(
  file: ByteSink,
  view: StridedMemoryView,
  header: Uint8Array,
  isDeflated: boolean,
): Promise<Pick<Written, "crc" | "packed" | "size">> {
  const zlib = nodeBuiltin("node:zlib");
  let [crc, packed, size] = [0, 0, 0];
  const out = async (bytes: Uint8Array) => {
    packed += bytes.length;
    await file.write(bytes);
  };
  const deflater = isDeflated ? zlib.createDeflateRaw() : null;
  const chunks = deflater?.[Symbol.asyncIterator]();
  const drained = chunks === undefined ? null : (async () => {
    for (;;) {
      const { done, value } = await chunks.next();
      if (done === true) return;
      await out(value);
    }
  })();
  const write = async (bytes: Uint8Array) => {
    crc = zlib.crc32(bytes, crc);
    size += bytes.length;
    if (deflater === null || drained === null) return await out(bytes);
    // Resolves once the bytes are consumed: the memory may then be reused for the next block.
    const consumed = new Promise<void>((resolve, reject) => {
      deflater.write(bytes, (error) => error ? reject(error) : resolve());
    });
    await Promise.race([consumed, drained]); // after an error nothing takes what it makes, and it consumes no more
  };
  drained?.catch(() => {}); // it is awaited below
  try {
    await writeArray({ write }, view, header);
    deflater?.end();
    await drained;
  } catch (error) {
    deflater?.destroy();
    throw error;
  }
  return { crc, packed, size };
}

/** Consecutive fields: `[size in bytes, value]`. */
function fields(...values: readonly (readonly [bytes: 2 | 4 | 8, value: number])[]): Uint8Array {
  const bytes = new Uint8Array(values.reduce((sum, [size]) => sum + size, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [size, value] of values) {
    if (size === 2) view.setUint16(at, value, true);
    else if (size === 4) view.setUint32(at, value, true);
    else view.setBigUint64(at, BigInt(value), true);
    at += size;
  }
  return bytes;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return nodeBuiltin("node:buffer").Buffer.concat(parts);
}

/** Marks sizes that are in the extra field. */
const elsewhere = 0xffff_ffff;
/** Names are UTF-8. */
const isUtf8 = 0x800;
/** Sizes and checksum follow the member: its header had to be written before they were known. */
const sizesFollow = 8;
/** 1980-01-01 00:00: the same arrays make the same file. */
const [time, date] = [0, 0x21];

function localHeader({ name, flags, method, crc, packed, size }: Written): Uint8Array {
  const start = fields(
    ...[[4, 0x04034b50], [2, 45], [2, flags], [2, method], [2, time], [2, date], [4, crc]] as const,
    ...[[4, elsewhere], [4, elsewhere], [2, name.length], [2, 20]] as const,
  );
  return joined(start, name, fields([2, 1], [2, 16], [8, size], [8, packed]));
}

/** Follows a member whose header lacks its sizes; they have 8 bytes each, as in that header. */
function sizesOf({ crc, packed, size }: Written): Uint8Array {
  return fields([4, 0x08074b50], [4, crc], [8, packed], [8, size]);
}

function entryOf({ name, flags, method, crc, packed, size, at }: Written): Uint8Array {
  const start = fields(
    ...[[4, 0x02014b50], [2, 45], [2, 45], [2, flags], [2, method], [2, time], [2, date], [4, crc]] as const,
    ...[[4, elsewhere], [4, elsewhere], [2, name.length], [2, 28], [2, 0], [2, 0], [2, 0], [4, 0]] as const,
    [4, elsewhere],
  );
  return joined(start, name, fields([2, 1], [2, 24], [8, size], [8, packed], [8, at]));
}

function endOf(written: readonly Written[], at: number): Uint8Array {
  const size = written.reduce((sum, one) => sum + entryOf(one).length, 0);
  const count = written.length;
  if (count === 0) return fields([4, 0x06054b50], [2, 0], [2, 0], [2, 0], [2, 0], [4, 0], [4, 0], [2, 0]); // for NumPy
  return joined(
    fields(
      ...[[4, 0x06064b50], [8, 44], [2, 45], [2, 45], [4, 0], [4, 0]] as const,
      ...[[8, count], [8, count], [8, size], [8, at]] as const,
    ),
    fields([4, 0x07064b50], [4, 0], [8, at + size], [4, 1]),
    fields([4, 0x06054b50], [2, 0], [2, 0], [2, 0xffff], [2, 0xffff], [4, elsewhere], [4, elsewhere], [2, 0]),
  );
}
