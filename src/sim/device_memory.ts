/**
 * The bytes of a simulated device, at addresses that host memory never has.
 *
 * @module
 */

/**
 * Where the addresses of devices begin. Linux maps no process memory this high unless asked to, and the values are
 * still exact as doubles, which one of the two runtimes requires of addresses.
 */
export const deviceBase = 0x000d_0000_0000_0000n;

/** Addresses per device. */
export const deviceSpan = 0x0100_0000_0000;

/** How many devices there are addresses for. */
export const maxSpans = Number((2n ** 53n - deviceBase) / BigInt(deviceSpan));

let spansTaken = 0;

/**
 * Takes addresses for the devices of a simulator. Another one has others, so that it refuses memory of this one instead
 * of taking it for its own. After the last addresses come the first again: simulators come and go without end.
 *
 * @returns the number of the first device's span, which the others follow
 */
export function takeSpans(devices: number): number {
  if (spansTaken + devices > maxSpans) spansTaken = 0;
  const first = spansTaken;
  spansTaken += devices;
  return first;
}

/** The value of bytes that were never written, or were freed. */
export const poison = 0xdb;

/** The number of the span that an address is in, or null for a host address. */
export function spanOfAddress(address: bigint): number | null {
  return address < deviceBase ? null : Number((address - deviceBase) / BigInt(deviceSpan));
}

/** Bytes per page: the unit in which host memory is taken, at the first write to a page. */
const pageBytes = 65536;

/**
 * Pages from here on, in the upper half of a device's addresses, are never allocated: they alias other drivers'
 * memory.
 */
const firstAlias = deviceSpan / 2 / pageBytes;

/**
 * The memory of a device: poison until it is written, and again once it is freed. Offsets count from the device's first
 * address. Any offset can be read and written: the allocators decide what is allocated.
 */
export class DeviceMemory {
  readonly #pages = new Map<number, Uint8Array<ArrayBuffer>>();
  /** Pages that alias another driver's memory. */
  readonly #aliases = new Map<number, { readonly memory: DeviceMemory; readonly page: number }>();
  #nextAlias = firstAlias;

  // law sim/DeviceMemory.poison: sim/driver
  /** Fills a range with poison. Whole pages are returned to the host. */
  poison(offset: number, bytes: number): void {
    for (const { page, from, to } of pieces(offset, bytes)) {
      if (to - from === pageBytes) this.#pages.delete(page);
      else this.#written(page)?.fill(poison, from, to);
    }
  }

  /** Copies bytes out. */
  read(offset: number, into: Uint8Array): void {
    for (const { page, from, to, at } of pieces(offset, into.length)) {
      const bytes = this.#written(page);
      if (bytes === undefined) into.fill(poison, at, at + to - from);
      else into.set(bytes.subarray(from, to), at);
    }
  }

  /** Copies bytes in. */
  write(offset: number, source: Uint8Array): void {
    for (const { page, from, to, at } of pieces(offset, source.length)) {
      this.#page(page).set(source.subarray(at, at + to - from), from);
    }
  }

  /**
   * Views bytes in place, for one kernel access.
   *
   * @returns null if the range crosses a page boundary, which no aligned access does
   */
  view(offset: number, bytes: number): { readonly bytes: DataView<ArrayBuffer>; readonly offset: number } | null {
    const at = offset % pageBytes;
    if (at + bytes > pageBytes) return null;
    return { bytes: new DataView(this.#page((offset - at) / pageBytes).buffer), offset: at };
  }

  /**
   * Maps a range of another driver's memory at an offset in this one: each reads what the other writes.
   *
   * @returns the offset
   */
  alias(memory: DeviceMemory, offset: number, bytes: number): number {
    const within = offset % pageBytes;
    const first = (offset - within) / pageBytes;
    const count = Math.ceil((within + bytes) / pageBytes);
    const start = this.#nextAlias;
    for (let i = 0; i < count; i++) this.#aliases.set(start + i, { memory, page: first + i });
    this.#nextAlias += count;
    return start * pageBytes + within;
  }

  // law sim/DeviceMemory.unalias: sim/refusals
  /** Unmaps a range that `alias` mapped. */
  unalias(offset: number, bytes: number): void {
    for (const { page } of pieces(offset, bytes)) this.#aliases.delete(page);
  }

  #written(page: number): Uint8Array<ArrayBuffer> | undefined {
    const alias = this.#aliases.get(page);
    return alias === undefined ? this.#pages.get(page) : alias.memory.#written(alias.page);
  }

  #page(page: number): Uint8Array<ArrayBuffer> {
    const alias = this.#aliases.get(page);
    if (alias !== undefined) return alias.memory.#page(alias.page);
    return this.#pages.getOrInsertComputed(page, poisoned);
  }
}

function poisoned(): Uint8Array<ArrayBuffer> {
  return new Uint8Array(pageBytes).fill(poison);
}

/** The part of one page that a range covers. */
interface Piece {
  readonly page: number;
  readonly from: number;
  readonly to: number;
  /** Its offset in the range. */
  readonly at: number;
}

function* pieces(offset: number, bytes: number): Generator<Piece> {
  for (let at = 0; at < bytes;) {
    const from = (offset + at) % pageBytes;
    const to = Math.min(pageBytes, from + bytes - at);
    yield { page: (offset + at - from) / pageBytes, from, to, at };
    at += to - from;
  }
}
