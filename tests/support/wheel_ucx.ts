/**
 * The libucp of a wheel, for what the system's cannot do: Debian's is 1.13, the wheel that UCXX's package brings is
 * newer and knows CUDA.
 *
 * @module
 */
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";

/** Where to get it, for a test that needs it. */
export const wheelAdvice =
  "pip install ucxx-cu13 numpy, and CAUSEWAY_UCXX_PYTHON=its interpreter, or CAUSEWAY_LIBUCP of the wheel libucx-cu13";

/**
 * The path of the wheel's library: that of `CAUSEWAY_LIBUCP`, or the one beside UCXX's package; null if there is none.
 */
export function ucxOfWheel(): string | null {
  const { CAUSEWAY_LIBUCP: named, CAUSEWAY_UCXX_PYTHON: python } = process.env;
  if (named !== undefined) return named;
  const libraries = join(dirname(dirname(python ?? "")), "lib");
  if (python === undefined || !existsSync(libraries)) return null;
  const found = readdirSync(libraries).map((name) =>
    join(libraries, name, "site-packages", "libucx", "lib", "libucp.so.0")
  );
  return found.find((path) => existsSync(path)) ?? null;
}
