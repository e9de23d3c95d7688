/**
 * Identities of other processes, for the tests that watch them.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { ownIdentity } from "../../src/ucx/process_identity.ts";

/** The identity that another process of this machine computes for itself. */
export function identityOf(pid: number): Uint8Array {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const start = text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  const bytes = ownIdentity();
  const fields = new DataView(bytes.buffer, 16);
  fields.setBigUint64(0, BigInt(start ?? ""));
  fields.setUint32(8, pid);
  return bytes;
}
