/**
 * Copies between any two layouts, wherever the elements are, and conversions of the elements on the way.
 *
 * The room knows memory and its order, and an array as its parts (`ArrayParts`): no view and no protocol. `copyElements`
 * asks who does it. On the host, loops over joined axes do (`host_copy.ts`, `host_conversion.ts`). With a device, two operands
 * are brought to their simplest terms (`coalesced_copy.ts`), a plan is chosen by a pure function and cached
 * (`copy_plan.ts`, `packed_plan.ts`, `plan_cache.ts`), and carried out (`device_copy.ts`): by the driver's own copies where the
 * layout allows it, else by kernels that are written for the plan: `tiled_kernel.ts` for transposed copies,
 * `strided_kernel.ts` for all others, `packed_kernel.ts` for elements smaller than a byte. What is decided can be explained:
 * `explainCopy`.
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
} from "./array_parts.ts";
export { copyElements, explainCopy, readElements, type ViewCopyOptions } from "./copy.ts";
export { copyToDevice, copyToHost, withLastingCopies } from "./copy_for_consumer.ts";
