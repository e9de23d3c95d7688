/**
 * Bytes as text.
 *
 * @module
 */

/** Two digits for each byte, at most 32 of them. */
export function toHex(bytes: Uint8Array): string {
  const digits = Array.from(bytes.subarray(0, 32), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return bytes.length > 32 ? `${digits}...` : digits;
}
