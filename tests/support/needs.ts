/**
 * Tests that need something the machine may lack: a program, a library, a device.
 *
 * @module
 */

/**
 * The first two arguments of a `test` that runs only if nothing is missing. A test that cannot run is reported as
 * skipped by both runtimes, and its name ends in what is missing.
 *
 * @param reason what is missing and how to get it, or null if nothing is
 * @param name the behaviour that the test protects
 *
 * @example
 * ```ts ignore
 * const missing = existsSync("/dev/nvidiactl") ? null : "no NVIDIA GPU: run on a machine that has one";
 * test(...needs(missing, "a kernel runs"), () => { ... });
 * ```
 */
export function needs(reason: string | null, name: string): [name: string, options: { readonly skip: boolean }] {
  return reason === null ? [name, { skip: false }] : [`${name} (skipped: ${reason})`, { skip: true }];
}
