/**
 * Copies between any two layouts, wherever the elements are, and conversions of the elements on the way.
 *
 * The room knows memory and its order, and an array as its parts (`ArrayParts`): no view and no protocol.
 * `copyElements` (`copy.ts`) says who copies. On the host, `host_plan.ts` plans moves, which machine code makes, or loops
 * where it cannot be had (`host_copy.ts`, `host_move.ts`, `host_loops.ts`), of much on several threads
 * (`host_parts.ts`). Conversions are planned by
 * `conversion_plan.ts` and carried out box by box (`host_conversion.ts`, `conversion_boxes.ts`), by a loop of vectors
 * that is written for each pair of types (`conversion_loop.ts`). With a device, two operands are brought to their
 * simplest terms (`coalesced_copy.ts`), and a pure function plans the copy: `planCopy` in `copy_plan.ts` says whether the
 * driver's own copies do, or a kernel of which kind: tiled where axes are transposed, else strided; `packed_plan.ts` plans
 * elements smaller than a byte. `plan_cache.ts` remembers plans, `device_copy.ts` carries them out, and
 * `copy_kernel_cache.ts` has the kernel of a plan written (`tiled_kernel.ts`, `strided_kernel.ts`, `packed_kernel.ts`) and
 * compiled once. What is decided can be explained: `explainCopy`. Kernels are written by `PtxWriter`, those of other
 * rooms, too.
 *
 * @module
 */
export {
  type ArrayParts,
  byteCount,
  checkBounds,
  type Closeable,
  firstAddress,
  type MakeArray,
  noItemsize,
} from "./array_parts.ts";
export { copyElements, explainCopy, readElements, type ViewCopyOptions } from "./copy.ts";
export { fillElements, type ViewFillOptions } from "./fill.ts";
export { copyToDevice, copyToHost, withLastingCopies } from "./copy_for_consumer.ts";
export { PtxWriter, type Register } from "./ptx_writer.ts";
