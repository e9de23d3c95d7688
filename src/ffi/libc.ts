/**
 * The C library, which every process has open: the loader, the allocator and the environment.
 *
 * @module
 */
import { libc as table } from "../../bindings/libc.ts";
import { FfiError } from "./errors.ts";
import { lazySymbols } from "./lazy_symbols.ts";
import { ffiPort } from "./port.ts";
import type { Functions } from "./types.ts";

/** The C library's functions. */
export type Libc = Functions<typeof table>;

let opened: Libc | undefined;

/**
 * The C library of this process: glibc, by the soname that is part of its ABI.
 *
 * @throws {FfiError} on another operating system, and on an architecture whose calling convention is unknown here
 */
export function libc(): Libc {
  opened ??= open();
  return opened;
}

/** A function that not every glibc has; null where this one lacks it. */
export function ifPresent<F>(find: (libc: Libc) => F): F | null {
  try {
    return find(libc());
  } catch (error) {
    if (error instanceof FfiError) return null;
    throw error;
  }
}

function open(): Libc {
  const { os, arch } = ffiPort().platform;
  if (os !== "linux" || arch === "other") {
    throw new FfiError(
      `Cannot call native code on ${os} (${arch}): Causeway needs Linux on x86-64 or arm64 with glibc.`,
    );
  }
  return lazySymbols(table, "libc.so.6", 0n);
}
