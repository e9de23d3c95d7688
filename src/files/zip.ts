/**
 * The members of a zip file: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, with zip64.
 *
 * @module
 */
import { excerpt, NpyError } from "./error.ts";
import { beginsAsNpy } from "./npy_header.ts";
import type { ByteRange } from "./source.ts";

/** A member, as listed by the directory at the file's end. */
export interface ZipMember {
  readonly name: string;
  readonly isDeflated: boolean;
  readonly crc: number;
  /** Bytes in the file. */
  readonly packed: number;
  /** Bytes when unpacked. */
  readonly size: number;
  /** Where its local header begins. */
  readonly at: number;
}

/** Sizes of a zip file's records, without names and extra fields. */
const bytesOf = { end: 22, end64Locator: 20, end64: 56, entry: 46, header: 30 } as const;
const longestComment = 65535;

/** Maximum compression ratio of deflate: 258 bytes for two codes of one bit each, plus a start. */
const maxInflated = 1032;

const damaged = (what: string) => new NpyError(`the zip file is damaged: ${what}`);

async function bytesAt(file: ByteRange, at: number, length: number): Promise<DataView<ArrayBuffer>> {
  if (!(at >= 0 && at + length <= file.size)) throw damaged(`it refers to bytes beyond its end (${file.size})`);
  const bytes = new Uint8Array(length);
  if (await file.readAt(bytes, at) < length) throw damaged("it became shorter while it was read");
  return new DataView(bytes.buffer);
}

/** A 64-bit number. One that a JavaScript number cannot hold exactly is not a plausible file size. */
function wordAt(view: DataView, at: number): number {
  const word = Number(view.getBigUint64(at, true));
  if (!Number.isSafeInteger(word)) throw damaged(`a size of ${word} bytes`);
  return word;
}

// law files/readDirectory: files/npz
/**
 * Lists the members.
 *
 * @param most maximum number of members
 * @throws {NpyError} for a file that is not a zip file or is damaged, or members that cannot be read: encrypted, split
 *   over several disks, compressed other than by deflate, claiming more than deflate can have packed, or sharing bytes
 */
export async function readDirectory(file: ByteRange, most: number): Promise<ZipMember[]> {
  const { count, size, at } = await findDirectory(file);
  if (count > most) throw new NpyError(`the zip file has ${count} members: expected at most ${most}, the limit`);
  if (count * bytesOf.entry > size || size > file.size) throw damaged(`${count} members in ${size} bytes`);
  const view = await bytesAt(file, at, size);
  const members: ZipMember[] = [];
  const names = new Set<string>();
  let next = 0;
  for (let i = 0; i < count; i++) {
    if (next + bytesOf.entry > size || view.getUint32(next, true) !== 0x02014b50) throw damaged(`no member ${i}`);
    const [nameBytes, extraBytes, commentBytes] = [28, 30, 32].map((at) => view.getUint16(next + at, true));
    const end = next + bytesOf.entry + (nameBytes ?? 0) + (extraBytes ?? 0) + (commentBytes ?? 0);
    if (end > size) throw damaged(`member ${i} reaches beyond the directory`);
    const member = readEntry(new DataView(view.buffer, next, end - next), nameBytes ?? 0, extraBytes ?? 0);
    if (names.has(member.name)) throw damaged(`it has two members ${excerpt(member.name)}`);
    names.add(member.name);
    members.push(member);
    next = end;
  }
  if (next !== size) throw damaged(`its directory of ${size} bytes has more than the ${count} members that it counts`);
  checkApart(members, at);
  return members;
}

async function findDirectory(file: ByteRange): Promise<{ count: number; size: number; at: number }> {
  const length = Math.min(file.size, bytesOf.end + longestComment);
  const tail = await bytesAt(file, file.size - length, length);
  for (let i = length - bytesOf.end; i >= 0; i--) {
    if (tail.getUint32(i, true) !== 0x06054b50 || i + bytesOf.end + tail.getUint16(i + 20, true) !== length) continue;
    const [count, size, at] = [
      tail.getUint16(i + 10, true),
      tail.getUint32(i + 12, true),
      tail.getUint32(i + 16, true),
    ];
    if (tail.getUint16(i + 4, true) !== 0 && tail.getUint16(i + 4, true) !== 0xffff) {
      throw damaged("it spans several disks");
    }
    if (count !== 0xffff && size !== 0xffff_ffff && at !== 0xffff_ffff) return { count, size, at };
    const locator = await bytesAt(file, file.size - length + i - bytesOf.end64Locator, bytesOf.end64Locator);
    if (locator.getUint32(0, true) !== 0x07064b50) return { count, size, at }; // at the limit, but not beyond
    const end = await bytesAt(file, wordAt(locator, 8), bytesOf.end64);
    if (end.getUint32(0, true) !== 0x06064b50) throw damaged("no end record of its directory where one is promised");
    return { count: wordAt(end, 32), size: wordAt(end, 40), at: wordAt(end, 48) };
  }
  const start = new Uint8Array(8);
  await file.readAt(start, 0);
  const what = beginsAsNpy(start) ? "it is a .npy file. Use readNpy" : "no zip directory at its end";
  throw new NpyError(`it is not a .npz file: ${what}`);
}

function readEntry(entry: DataView<ArrayBuffer>, nameBytes: number, extraBytes: number): ZipMember {
  const [flags, method, crc] = [entry.getUint16(8, true), entry.getUint16(10, true), entry.getUint32(16, true)];
  let [packed, size, at] = [entry.getUint32(20, true), entry.getUint32(24, true), entry.getUint32(42, true)];
  const nameAt = entry.byteOffset + bytesOf.entry;
  // NumPy's names are ASCII or UTF-8, whatever the flag for UTF-8 says.
  const name = new TextDecoder().decode(new Uint8Array(entry.buffer, nameAt, nameBytes));
  if ((flags & 0x2041) !== 0) throw new NpyError(`member ${excerpt(name)} is encrypted, which is not supported`);
  if (method !== 0 && method !== 8) {
    throw new NpyError(
      `member ${excerpt(name)} is compressed by method ${method}: expected 0 (stored) or 8 (deflated)`,
    );
  }
  const extra = new DataView(entry.buffer, nameAt + nameBytes, extraBytes);
  for (let i = 0; i + 4 <= extraBytes;) {
    const [id, length] = [extra.getUint16(i, true), extra.getUint16(i + 2, true)];
    if (i + 4 + length > extraBytes) throw damaged(`the extra fields of ${excerpt(name)}`);
    if (id === 1) {
      // The large numbers in this order, only those that did not fit their fields.
      let word = i + 4;
      const take = () => {
        if (word + 8 > i + 4 + length) throw damaged(`the sizes of ${excerpt(name)}`);
        return wordAt(extra, (word += 8) - 8);
      };
      if (size === 0xffff_ffff) size = take();
      if (packed === 0xffff_ffff) packed = take();
      if (at === 0xffff_ffff) at = take();
    }
    i += 4 + length;
  }
  const isDeflated = method === 8;
  if (isDeflated ? size > packed * maxInflated + 64 : size !== packed) {
    throw damaged(`${excerpt(name)} claims ${size} bytes in ${packed}`);
  }
  return { name, isDeflated, crc, packed, size, at };
}

/** Where a member's bytes begin. @throws {NpyError} if it is not there, or extends beyond the file */
export async function dataOf(file: ByteRange, { name, at, packed }: ZipMember): Promise<number> {
  const header = await bytesAt(file, at, bytesOf.header);
  if (header.getUint32(0, true) !== 0x04034b50) throw damaged(`no member ${excerpt(name)} where it is promised`);
  const nameBytes = header.getUint16(26, true);
  const own = new TextDecoder().decode(await bytesAt(file, at + bytesOf.header, nameBytes));
  if (own !== name) throw damaged(`member ${excerpt(name)} is ${excerpt(own)} where it is promised`);
  const from = at + bytesOf.header + nameBytes + header.getUint16(28, true);
  if (from + packed > file.size) throw damaged(`member ${excerpt(name)} reaches beyond its end`);
  return from;
}

// law files/checkApart: files/npz
/**
 * Refuses members that share bytes: a small file could claim any number of arrays, each within what deflate can pack.
 *
 * @param end where the members end
 */
function checkApart(members: readonly ZipMember[], end: number): void {
  let last: ZipMember | undefined;
  for (const member of members.toSorted((a, b) => a.at - b.at)) {
    if (last !== undefined && last.at + bytesOf.header + last.packed > member.at) {
      throw damaged(`${excerpt(last.name)} and ${excerpt(member.name)} share bytes`);
    }
    last = member;
  }
  if (last !== undefined && last.at + bytesOf.header + last.packed > end) {
    throw damaged(`${excerpt(last.name)} reaches into the directory`);
  }
}
