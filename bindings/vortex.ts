/**
 * Vortex's C struct for exporting a buffer, as PyVortex exports it in a capsule (vortex-python, since 0.76).
 *
 * @module
 */
import type { StructDescription } from "./abi.ts";

/** A buffer of a producer. `release` frees it and the struct. */
export const VortexBufferExport = {
  version: "u32", // 1
  kind: "u32", // VORTEX_BUFFER_KIND
  ptr: "ptr", // const void *: may be NULL if there are no bytes
  len: "size",
  alignment: "size", // a power of two; ptr is a multiple of it
  device_id: "i32", // -1 for the host
  sync_event: "ptr", // pointer to the event after which the bytes are ready; NULL: they are ready
  private_data: "ptr", // void *
  release: "ptr", // void (*)(VortexBufferExport *)
} as const satisfies StructDescription;

/** Where a buffer is. */
export const VORTEX_BUFFER_KIND = { HOST: 0, DEVICE: 1 } as const;

/** The name of capsules with a `VortexBufferExport`. */
export const VORTEX_BUFFER_CAPSULE = "vortex_buffer_export";
