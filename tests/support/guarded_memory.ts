/**
 * Memory for structs whose reader must not overrun: each piece ends at the end of a page that is followed by an
 * inaccessible one, so reading one byte too many ends the process.
 *
 * @module
 */
import { assertEquals } from "@std/assert";
import { MAP, PROT } from "../../bindings/libc.ts";
import { libc } from "../../src/ffi/libc.ts";
import { ffiPort } from "../../src/ffi/port.ts";
import { cString } from "../../src/ffi/c_string.ts";

const pageBytes = 4096;

/** An unmapped address: for pointers that must not be followed. */
export const nowhere = 0x10_0000n - 8n;

interface Pages {
  readonly end: bigint;
  readonly memory: ArrayBuffer;
}

/** Growing, zeroed memory. Nothing is unmapped: a process that makes one is meant to be short-lived. */
export class GuardedMemory {
  /** Runs of pages by page count: all that were ever mapped, and how many of them are in use. */
  readonly #made = new Map<number, { readonly all: Pages[]; used: number }>();

  /** Reclaims all pieces for reuse. */
  reset(): void {
    for (const pages of this.#made.values()) pages.used = 0;
  }

  /** Zeroed bytes, followed by an inaccessible page. */
  bytes(length: number): { readonly address: bigint; readonly bytes: Uint8Array<ArrayBuffer> } {
    const count = Math.max(1, Math.ceil(length / pageBytes));
    const pages = this.#made.get(count) ?? { all: [], used: 0 };
    this.#made.set(count, pages);
    const { end, memory } = pages.all[pages.used] ??= mapPages(count);
    pages.used++;
    const bytes = new Uint8Array(memory, memory.byteLength - length, length).fill(0);
    return { address: end - BigInt(length), bytes };
  }

  /** A NUL-terminated copy of a string. */
  cString(text: string): bigint {
    const encoded = cString(text);
    const { address, bytes } = this.bytes(encoded.length);
    bytes.set(encoded);
    return address;
  }
}

function mapPages(count: number): Pages {
  const { mmap, mprotect } = libc().memory;
  const size = count * pageBytes;
  const start = mmap(0n, BigInt(size + pageBytes), PROT.READ | PROT.WRITE, MAP.PRIVATE | MAP.ANONYMOUS, -1, 0n);
  const end = start + BigInt(size);
  assertEquals(mprotect(end, BigInt(pageBytes), PROT.NONE), 0);
  return { end, memory: ffiPort().memory(start, size) };
}
