/**
 * Reads `.npz` files: a zip of `.npy` files.
 *
 * @module
 */
import { nodeBuiltin, runAll } from "../ffi/mod.ts";
import { checkOptions, type OptionNames, show, showAs } from "../layout/mod.ts";
import type { StridedMemoryView } from "../view/mod.ts";
import { about, excerpt, NpyError } from "./error.ts";
import { inflate } from "./inflate.ts";
import { checkReadOptions, readArray, readNpyOptionNames, type ReadNpyOptions } from "./read_npy.ts";
import { type ByteRange, type ByteSource, type FileContents, openContents, sourceOf } from "./source.ts";
import { dataOf, readDirectory, type ZipMember } from "./zip.ts";

/** Options of {@linkcode readNpz}. Placement and progress are as for `readNpy`; progress is per array. */
export interface ReadNpzOptions extends ReadNpyOptions {
  /** The arrays to read, by name. Default: all. */
  readonly names?: readonly string[];
  /** Limits on what a file may claim: its number of members (65536), and the total bytes read (64 GiB). */
  readonly limits?: { readonly members?: number; readonly bytes?: number };
}

const readNpzOptionNames: OptionNames<ReadNpzOptions> = { ...readNpyOptionNames, names: true, limits: true };
const limitNames = { members: true, bytes: true } as const;

// law files/limitsOf: files/npz
/** @throws {RangeError} for a limit that is not an integer of at least 0, with which nothing would exceed it */
function limitsOf(given: NonNullable<ReadNpzOptions["limits"]>): { members: number; bytes: number } {
  checkOptions(given, limitNames);
  const { members = 65536, bytes = 64 * 2 ** 30 } = given;
  for (const [name, value] of Object.entries({ members, bytes })) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new RangeError(`Cannot limit ${name} to ${show(value)}: expected an integer from 0 to 2^53 - 1`);
  }
  return { members, bytes };
}

/** Arrays by name. Closing the map closes all of them. */
export class NpzArrays extends Map<string, StridedMemoryView> implements Disposable {
  // law files/NpzArrays.close: files/npz
  /** Frees the memory of all arrays, also if that of one cannot be freed; then the error is thrown. */
  close(): void {
    runAll([...this.values()].map((view) => () => view.close()));
  }

  /** Frees the memory of all arrays. */
  [Symbol.dispose](): void {
    this.close();
  }

  static {
    showAs(NpzArrays, (arrays) => {
      const most = 8;
      const lines = Array.from(arrays, ([name, view]) => {
        return `\n  ${name}: ${view.dtype.name} ${show(view.shape)}${view.buffer.isClosed ? ", closed" : ""}`;
      });
      const more = lines.length > most ? [`\n  and ${lines.length - most + 1} more`] : [];
      const shown = lines.length > most ? lines.slice(0, most - 1) : lines;
      return `of ${arrays.size} arrays${[...shown, ...more].join("")}`;
    });
  }
}

/**
 * Reads the arrays of a `.npz` file written by `numpy.savez` or `numpy.savez_compressed`: stored or deflated members,
 * in files of any size. Each array is read as by `readNpy`, is checked against its CRC, and owns its memory. Members
 * that are not `.npy` files are skipped.
 *
 * @param file a path, a Blob or File, or the file's bytes
 * @throws {SystemError} if it cannot be opened or read
 * @throws {RangeError} if a limit is not an integer of at least 0
 * @throws {NpyError} for a damaged or encrypted file, a member that is not an array of numbers, a name that the file
 *   lacks, and for exceeding the limits
 *
 * @example
 * ```ts files
 * import { readNpz, StridedMemoryView, writeNpz } from "@causeway/causeway";
 *
 * await writeNpz("/tmp/causeway-model.npz", { bias: StridedMemoryView.fromTypedArray(Float32Array.of(1, 2)) });
 * using model = await readNpz("/tmp/causeway-model.npz");
 * console.log(`${model.get("bias")}`); // [1. 2.]
 * ```
 */
export async function readNpz(file: FileContents, options: ReadNpzOptions = {}): Promise<NpzArrays> {
  checkOptions(options, readNpzOptionNames);
  const { names, limits = {}, ...place } = options;
  checkReadOptions(place);
  if (names !== undefined && !(Array.isArray(names) && names.every((name) => typeof name === "string"))) {
    throw new TypeError(`Expected names to be an array of strings, got ${show(names)}`);
  }
  const { members: most, bytes: maxBytes } = limitsOf(limits);
  using contents = await openContents(file);
  const arrays = new NpzArrays();
  try {
    const members = new Map(
      (await readDirectory(contents, most)).flatMap((member) =>
        member.name.endsWith(".npy") ? [[member.name.slice(0, -".npy".length), member]] : []
      ),
    );
    const wanted = names ?? [...members.keys()];
    let bytes = 0;
    for (const name of wanted) {
      const member = members.get(name);
      if (member === undefined) {
        const there = [...members.keys()].map(excerpt);
        throw new NpyError(`it has no array ${excerpt(name)}: expected one of ${there.slice(0, 20).join(", ")}`);
      }
      bytes += member.size;
      if (bytes > maxBytes) {
        throw new NpyError(`its arrays take more than ${maxBytes} bytes. Raise limits.bytes if you trust the file`);
      }
    }
    for (const name of new Set(wanted)) {
      const member = members.get(name);
      if (member !== undefined) arrays.set(name, await readMember(contents, member, place));
    }
    return arrays;
  } catch (error) {
    arrays.close();
    throw about(contents.name, error);
  }
}

async function readMember(file: ByteRange, member: ZipMember, options: ReadNpyOptions): Promise<StridedMemoryView> {
  const packed = sourceOf(file, await dataOf(file, member), member.packed);
  using source = checkedSource(member.isDeflated ? inflate(packed, member.size) : packed, member);
  try {
    return await readArray(source, options, () => source.finish());
  } catch (error) {
    if (!(error instanceof NpyError)) throw error;
    throw new NpyError(`member ${excerpt(member.name)}: ${error.message}`, { cause: error });
  }
}

// law files/checkedSource: files/npz
/** A source that computes the CRC of the bytes it has delivered. */
function checkedSource(
  source: ByteSource & Partial<Disposable>,
  member: ZipMember,
): ByteSource & Disposable & { finish(): Promise<void> } {
  const { crc32 } = nodeBuiltin("node:zlib");
  let [crc, total] = [0, 0];
  const read = async (into: Uint8Array) => {
    const got = await source.read(into);
    crc = crc32(into.subarray(0, got), crc);
    total += got;
    return got;
  };
  const finish = async () => {
    const rest = new Uint8Array(65536); // bytes after the array count, too
    while (await read(rest) > 0);
    if (total !== member.size) throw new NpyError(`it has ${total} bytes: expected the ${member.size} that it claims`);
    if (crc !== member.crc) {
      throw new NpyError(`its bytes are damaged: CRC ${crc.toString(16)}, expected ${member.crc.toString(16)}`);
    }
  };
  return { size: member.size, read, finish, [Symbol.dispose]: () => source[Symbol.dispose]?.() };
}
