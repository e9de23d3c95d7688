/**
 * `.npy` files as memory: mapped by the system, which reads pages on access.
 *
 * @module
 */
import { errno, MAP, PROT, SEEK } from "../../bindings/libc.ts";
import { attempt, checkPath, cString, libc, missingFile, NativeArena, nodeBuiltin, SystemError } from "../ffi/mod.ts";
import { checkBoolean, checkOptions, DType, type DTypeLike, type OptionNames, show } from "../layout/mod.ts";
import { MemoryBuffer } from "../memory/mod.ts";
import { makeView, StridedMemoryView } from "../view/mod.ts";
import { about, NpyError } from "./error.ts";
import { elementBytes, type NpyHeader, prefixBytes, readHeader, readPrefix } from "./npy_header.ts";

/** Options of {@linkcode openNpy}. */
export interface OpenNpyOptions {
  /** Whether writing to the view writes to the file. Default false: the view is read-only. */
  readonly writable?: boolean;
  /** As for `readNpy`: the type of elements for which the file states only their size in bytes. */
  readonly rawDtype?: DTypeLike;
}

const openNpyOptionNames: OptionNames<OpenNpyOptions> = { writable: true, rawDtype: true };

// law files/openNpy: files/open_npy
/**
 * Maps the array of a `.npy` file into memory: nothing is read until accessed, so the file may be larger than the
 * machine's memory. The view owns the mapping: closing it unmaps the file.
 *
 * Do not truncate a mapped file: accessing a part that no longer exists kills the process (SIGBUS), as in every
 * language. Writes by other processes to the file may become visible at any time. Writing to a mapping that is not
 * writable, bypassing `view.readonly`, leaves the file unchanged. `view.asTypedArray({ readonly: true })` exposes the
 * mapping itself.
 *
 * Bun has no array of more than 4 GiB: there `asTypedArray` and `toTypedArray` of more are a RangeError, of a smaller
 * part not, wherever it lies in a larger file.
 *
 * @throws {NpyError} if the file is damaged or does not hold an array of numbers, as for `readNpy`, and for numbers
 *   that only a copy could make usable: big-endian or misaligned
 * @throws {SystemError} if it cannot be opened or mapped
 * @throws {TypeError} for a Blob or bytes, which cannot be mapped
 *
 * @example
 * ```ts files
 * import { openNpy } from "@causeway/causeway";
 *
 * using digits = openNpy("examples/digits.npy"); // a file of this repository's
 * console.log(`${digits.sliced(0, 0)}`); // [ 0  0  5 13  9  1  0  0]
 * ```
 */
export function openNpy(file: string | URL, options: OpenNpyOptions = {}): StridedMemoryView {
  checkOptions(options, openNpyOptionNames);
  checkBoolean("writable", options.writable);
  const path = pathOf(file);
  const { writable = false, rawDtype } = options;
  const { fopen, fclose, fileno } = libc().stdio;
  let stream = 0n;
  const opened = attempt(() => (stream = fopen(cString(path), cString(writable ? "r+e" : "re"))) === 0n ? -1 : 0);
  if (opened < 0) {
    const hint = -opened === errno.ENOENT ? missingFile(file) : "";
    throw new SystemError(`open ${path}`, "fopen", -opened, hint);
  }
  try {
    return map(fileno(stream), path, writable, rawDtype === undefined ? undefined : DType.from(rawDtype));
  } catch (error) {
    throw about(path, error);
  } finally {
    fclose(stream); // the mapping remains valid
  }
}

function pathOf(file: string | URL): string {
  if (typeof file === "string") return file;
  if (!(file instanceof URL)) {
    throw new TypeError(`Cannot map ${show(file)}: expected a path or a file: URL. readNpy reads Blobs and bytes`);
  }
  checkPath("map", file);
  return nodeBuiltin("node:url").fileURLToPath(file);
}

function map(fd: number, path: string, writable: boolean, raw: DType | undefined): StridedMemoryView {
  const size = checked(path, "lseek", () => libc().files.lseek(fd, 0n, SEEK.END));
  const { header: { dtype, layout }, dataOffset } = findArray(fd, path, size, raw);
  // The mapping itself is always writable: otherwise a write that bypasses `readonly` would kill the process.
  // NORESERVE: such a mapping may be larger than memory.
  const flags = writable ? MAP.SHARED : MAP.PRIVATE | MAP.NORESERVE;
  let ptr = 0n;
  checked(path, "mmap", () => {
    ptr = libc().memory.mmap(0n, BigInt(size), PROT.READ | PROT.WRITE, flags, fd, 0n);
    return BigInt.asIntN(64, ptr) === -1n ? -1 : 0;
  });
  const free = (at: bigint) => void libc().memory.munmap(at, BigInt(size));
  const buffer = MemoryBuffer.fromAllocation({ ptr, size, device: null, stream: null, free });
  return StridedMemoryView[makeView](buffer, dataOffset, layout, dtype, !writable, buffer);
}

function findArray(
  fd: number,
  path: string,
  size: number,
  raw: DType | undefined,
): { readonly header: NpyHeader; readonly dataOffset: number } {
  using arena = new NativeArena();
  const read = (length: number, position: number) => {
    const { address, bytes } = arena.bytes(Math.max(1, length));
    const got = checked(path, "pread", () => libc().files.pread(fd, address, BigInt(length), BigInt(position)));
    return { bytes, got };
  };
  const prefix = read(prefixBytes, 0);
  const { from, to, encoding } = readPrefix(prefix.bytes, prefix.got, size);
  const text = read(to - from, from);
  const header = readHeader(text.bytes.subarray(0, text.got), encoding, raw);
  const { dtype: { alignment }, swapped } = header;
  if (swapped !== 0) {
    throw new NpyError("its numbers are big-endian, which a mapping cannot convert. Use readNpy, which does");
  }
  elementBytes(header, size - to); // throws if there are fewer
  if (to % alignment !== 0) {
    throw new NpyError(
      `its elements begin at byte ${to}, not a multiple of ${alignment}. Use readNpy, which copies them`,
    );
  }
  return { header, dataOffset: to };
}

/** The result of a call. @throws {SystemError} if it failed */
function checked(path: string, name: string, call: () => number | bigint): number {
  const result = attempt(call);
  if (result < 0) throw new SystemError(`map ${path}`, name, -result, "");
  return result;
}
