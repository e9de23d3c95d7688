/**
 * The public API, as values.
 *
 * @module
 */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** A name that a subpath exports, and its value. */
export interface PublicValue {
  /** `.` or `cuda`. */
  readonly subpath: string;
  readonly name: string;
  readonly value: unknown;
}

const root = new URL("../../", import.meta.url);

/** Every name of every subpath. Types are not values. */
export async function publicValues(): Promise<PublicValue[]> {
  const files = readdirSync(fileURLToPath(new URL("src/public", root)));
  const modules = [
    [".", "mod.ts"] as const,
    ...files.map((file) => [file.slice(0, -3), `src/public/${file}`] as const),
  ];
  const all: PublicValue[] = [];
  for (const [subpath, path] of modules) {
    const module: Readonly<Record<string, unknown>> = await import(new URL(path, root).href);
    for (const [name, value] of Object.entries(module)) all.push({ subpath, name, value });
  }
  return all;
}
