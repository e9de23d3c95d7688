/**
 * Emulated processors, for machine code that this machine cannot run.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import process from "node:process";

/** The Python that has the emulator. */
export const python = process.env["CAUSEWAY_PYTHON"] ?? "python3";

/** Why there is no emulator here, or null. */
export const missingUnicorn = spawnSync(python, ["-c", "import unicorn"]).status === 0
  ? null
  : `${python} has no package unicorn: pip install unicorn, and name another Python with CAUSEWAY_PYTHON`;
