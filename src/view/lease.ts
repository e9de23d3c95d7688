/**
 * The lease of a view.
 *
 * @module
 */
import { OrderedLease } from "../order/lease.ts";
import type { StridedMemoryView } from "./strided_memory_view.ts";

/**
 * A loan of an array: until it ends, work on its stream may use the array. What the array's home stream held when the lease
 * began comes before that work, and what the home stream gets after the lease comes after it: mutations by the owner, and
 * the free. The buffer may be closed meanwhile; its memory is pinned until the lease ends.
 *
 * Both ends cost an event pair on the device; the host waits for neither. Made by {@linkcode StridedMemoryView.borrow}.
 */
export class Lease extends OrderedLease<StridedMemoryView> {}
