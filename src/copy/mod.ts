/**
 * Copies between any two layouts, wherever the elements are, and conversions of the elements on the way.
 *
 * The room knows memory and its order, and an array as its parts (`ArrayParts`): no view and no protocol.
 * `copyElements` (`copy.ts`) decides what copies. On the host, `host_plan.ts` plans moves, which machine code makes, or
 * loops if there is none (`host_copy.ts`, `host_move.ts`, `host_loops.ts`), on several threads for large copies
 * (`host_parts.ts`); `plan_cache.ts` finds the plans of earlier copies. Conversions are planned by `conversion_plan.ts`
 * and carried out box by box (`host_conversion.ts`, `conversion_boxes.ts`), by a vector loop generated for each pair of
 * types (`conversion_loop.ts`). With a device, two operands are reduced to their simplest form (`coalesced_copy.ts`),
 * and a pure function plans the copy: `planDeviceCopy` in `device_plan.ts` decides whether the driver's own copies
 * suffice, or which kind of kernel is needed: tiled where axes are transposed, else strided; `packed_plan.ts` plans
 * elements smaller than a byte. `device_plan_cache.ts` caches plans, `device_copy.ts` carries them out, and
 * `copy_kernel_cache.ts` generates the kernel of a plan (`tiled_kernel.ts`, `strided_kernel.ts`, `packed_kernel.ts`)
 * and compiles it once. `explainCopy` explains the decisions. `PtxWriter` writes kernels, those of other rooms, too.
 *
 * @module
 */
export {
  type ArrayParts,
  byteCount,
  checkBounds,
  checkOpen,
  type Closeable,
  firstAddress,
  type MakeArray,
  noItemsize,
} from "./array_parts.ts";
export { copyElements, explainCopy, readElements, type ViewCopyOptions } from "./copy.ts";
export { fillElements, type ViewFillOptions } from "./fill.ts";
export { copyToDevice, copyToHost, withLastingCopies } from "./copy_for_consumer.ts";
export { PtxWriter, type Register } from "./ptx_writer.ts";
