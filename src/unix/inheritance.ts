/**
 * Which descriptors the processes that this one starts inherit. libucp opens its own to be inherited: a child would
 * hold a listener's port, and connections whose peers would not notice that this process has died. `Deno.Command` and
 * C's `system` close none.
 *
 * @module
 */
import { ifPresent, type Libc, readTextFile } from "../ffi/mod.ts";

/** Of `close_range`: descriptors are closed in children, not here (linux/close_range.h). */
const CLOSE_RANGE_CLOEXEC = 4;
const O_CLOEXEC = 0o2000000;
const [first, last] = [3, 0xffff_ffff];

/** Found at its first use. */
let closeRange: Libc["ranges"]["close_range"] | null | undefined;

/** Inherited descriptors have low numbers. */
const mostInherited = 256;

/** The descriptors that children inherit because this process has them for that, such as those of `make`. */
let inherited: readonly number[] | undefined;

// law unix/rememberInherited: unix/inheritance
/** Finds, once, which descriptors children inherit already: another program may have passed them for that. */
export function rememberInherited(): void {
  inherited ??= Array.from({ length: mostInherited - first }, (_, i) => first + i).filter(isInherited);
}

function isInherited(fd: number): boolean {
  const [, flags] = /^flags:\s*(\d+)/m.exec(readTextFile(`/proc/self/fdinfo/${fd}`) ?? "") ?? [];
  return flags !== undefined && (parseInt(flags, 8) & O_CLOEXEC) === 0;
}

// law unix/keepFromChildren: unix/inheritance
/**
 * Keeps all descriptors from children but those that {@linkcode rememberInherited} has found: all, since nobody can
 * tell which ones are libucp's. Linux before 5.11 and glibc before 2.34 cannot do it. Takes about a microsecond.
 */
export function keepFromChildren(): void {
  if (closeRange === undefined) closeRange = ifPresent(({ ranges }) => ranges.close_range);
  if (closeRange === null) return;
  let start = first;
  for (const fd of inherited ?? []) {
    if (fd > start) closeRange(start, fd - 1, CLOSE_RANGE_CLOEXEC);
    start = fd + 1;
  }
  closeRange(start, last, CLOSE_RANGE_CLOEXEC);
}
