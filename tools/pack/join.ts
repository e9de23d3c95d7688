/**
 * Joins the sources: a file for each subpath, and files that several subpaths share. With some 400 modules as separate
 * files, a program starts 25 ms (Bun) and 75 ms (Deno) later.
 *
 * @module
 */
import { copyFileSync, existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type OutputChunk, type Plugin, rolldown } from "rolldown";
import { type Entry, programs, root } from "./entries.ts";
import { groups } from "./rooms.ts";

/** Names that a file of the package exports, by the file's name without extension. */
export type Exports = ReadonlyMap<string, readonly string[]>;

/**
 * A comment with a source map of the first line alone: Bun rejects maps of nothing, or without sources, as invalid.
 * With each uncaught error Bun reports of files that it does not parse that they have no source map. A map of no code
 * silences that, and leaves all positions as they are, in Deno, too.
 */
export const sourceMapOfNothing = `//# sourceMappingURL=data:application/json;base64,${
  btoa(JSON.stringify({ version: 3, sources: ["index.js"], sourcesContent: [""], names: [], mappings: "AAAA" }))
}`;

/**
 * Writes the joined files. They are JavaScript as it was written, without types and comments, because stack traces show
 * it.
 *
 * @param more further files that are built like entries, by their names in the package
 */
export async function joinSources(
  all: readonly Entry[],
  more: Readonly<Record<string, string>>,
  out: string,
): Promise<Exports> {
  const files = { ...Object.fromEntries(all.map(({ name, source }) => [name, source])), ...programs, ...more };
  const input = Object.fromEntries(Object.entries(files).map(([name, source]) => [name, join(root, source)]));
  const build = await rolldown({
    input,
    platform: "node",
    external: ["apache-arrow"],
    tsconfig: false,
    plugins: [placeUrls(input, out)],
    onLog(_level, { message }) {
      throw new Error(`Joining the sources: ${message}`);
    },
  });
  const { output } = await build.write({
    dir: out,
    format: "esm",
    comments: false,
    chunkFileNames: ({ moduleIds }) => moduleIds.some((id) => id.includes("/src/cli/")) ? "cli_[name].js" : "[name].js",
    codeSplitting: { groups: [...groups] },
    // Bun runs files that start like this as they are. It parses and prints others first: 50 ms, unless cached.
    banner: "// @bun",
    footer: sourceMapOfNothing,
  });
  await build.close();
  const chunks = output.filter((file): file is OutputChunk => file.type === "chunk");
  return new Map(chunks.filter(({ isEntry }) => isEntry).map(({ name, exports }) => [name, exports]));
}

/**
 * Sources locate other files beside themselves by `new URL("./file", import.meta.url)`: programs that they start, and
 * data. URLs of programs get the names that these have in the package; data files are copied there.
 */
function placeUrls(input: Readonly<Record<string, string>>, out: string): Plugin {
  return {
    name: "place-urls",
    transform(code, id) {
      const placed = code.replace(/new URL\("(\.[^"]+)", import\.meta\.url\)/g, (_, path: string) => {
        const file = resolve(dirname(id), path);
        const program = Object.entries(input).find(([, source]) => source === file)?.[0];
        if (program === undefined) {
          if (!existsSync(file)) throw new Error(`${id} refers to ${path}, which is no file`);
          if (file.endsWith(".ts")) throw new Error(`${id} starts ${path}: name it in tools/pack/entries.ts`);
          copyFileSync(file, join(out, basename(file)));
        }
        return `new URL("./${program === undefined ? basename(file) : `${program}.js`}", import.meta.url)`;
      });
      return placed === code ? null : placed;
    },
  };
}
