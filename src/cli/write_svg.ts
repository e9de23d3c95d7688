/**
 * The option `--svg FILE`.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { CannotError } from "./open_cuda.ts";

/** The option. */
export const svgOption = { type: "string", value: "FILE", says: "also draw it into this file, as SVG" } as const;

/** Writes the picture, and says so on standard error. @throws {CannotError} if it cannot be written */
export function writeSvg(path: string, svg: string): void {
  try {
    writeFileSync(path, svg);
  } catch (error) {
    throw new CannotError(`Cannot write ${path}: ${error instanceof Error ? error.message : error}`);
  }
  console.error(`Wrote ${path}`);
}
