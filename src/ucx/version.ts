/**
 * Versions of UCX, and what differs between them.
 *
 * @module
 */

/** Whether a version is older than 1.`minor`. */
export function isBefore(version: string, minor: number): boolean {
  const [major = 0, own = 0] = version.split(".").map(Number);
  return major === 1 && own < minor;
}
