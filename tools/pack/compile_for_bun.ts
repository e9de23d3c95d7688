/**
 * The package's files for Bun: the same sources as CommonJS with the bytecode that Bun's compiler made of them. Bun
 * parses and compiles the other files at each start, which is most of what an import costs there.
 *
 * Bytecode is for one version of Bun, and compiled files cannot be bundled: `load.js` decides when a program starts.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Plugin, rolldown } from "rolldown";
import { oldestRuntimes } from "../../src/ffi/oldest_runtimes.ts";
import { findBun } from "../bun.ts";
import { type Entry, root } from "./entries.ts";
import { type Exports, sourceMapOfNothing } from "./join.ts";
import { groups, rarelyUsed } from "./rooms.ts";

/**
 * Writes the folder `bun`: a file for each subpath, which passes on what is in the folder `causeway_compiled` beside
 * it.
 *
 * @param exports the names that each subpath exports
 */
export async function compileForBun(all: readonly Entry[], exports: Exports, out: string): Promise<void> {
  const [folder, scratch] = [join(out, "bun"), mkdtempSync(join(tmpdir(), "causeway-compile-"))];
  mkdirSync(folder, { recursive: true });
  try {
    await writeCommonJs(all, scratch);
    compile(scratch, join(folder, "causeway_compiled"));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  writeFileSync(join(folder, "load.js"), loader(print("Bun.revision")));
  for (const { name } of all) {
    const lines = [
      `import { compiled } from "./load.js";`,
      `const all = compiled("${name}") ?? require("../${name}.js");`,
      ...(exports.get(name) ?? []).map((each) => `export const ${each} = all.${each};`),
      "",
    ];
    writeFileSync(join(folder, `${name}.js`), lines.join("\n"));
  }
}

async function writeCommonJs(all: readonly Entry[], dir: string): Promise<void> {
  const build = await rolldown({
    input: Object.fromEntries(all.map(({ name, source }) => [name, join(root, source)])),
    platform: "node",
    external: ["apache-arrow"],
    tsconfig: false,
    plugins: [ownUrl, loadWhenUsed],
    onLog(_level, { message }) {
      throw new Error(`Compiling for Bun: ${message}`);
    },
  });
  await build.write({
    dir,
    format: "cjs",
    comments: false,
    chunkFileNames: "[name].js",
    codeSplitting: { groups: [...groups] },
  });
  await build.close();
}

/**
 * How a file finds out its own URL: Bun's compiler would put a path of this machine for `__filename`, and Bun takes 2
 * ms to load `node:url`.
 */
const ownUrl: Plugin = {
  name: "own-url",
  renderChunk: (code, { fileName }) =>
    code.replaceAll('require("url").pathToFileURL(__filename)', `Bun.pathToFileURL(require.resolve("./${fileName}"))`),
};

/** Makes each reference to a lazy file load it, and the first one alone. */
const loadWhenUsed: Plugin = {
  name: "load-when-used",
  renderChunk(code, { fileName }) {
    let changed = code;
    for (const name of rarelyUsed) {
      const [declaration, variable] =
        new RegExp(`^const (require_\\w+) = require\\("\\./${name}\\.js"\\);$`, "m").exec(code) ?? [];
      if (declaration === undefined || variable === undefined || !fileName.startsWith("room_")) continue;
      const cached = `let loaded_${name};\nconst ${variable} = () => loaded_${name} ??= require("./${name}.js");`;
      const used = changed.replace(declaration, "").replace(new RegExp(`\\b${variable}\\.`, "g"), `(${variable}()).`);
      if (new RegExp(`\\b${variable}\\b(?!\\(\\))`).test(used)) throw new Error(`${fileName} uses all of ${name}`);
      changed = `${cached}\n${used}`;
    }
    return changed;
  },
};

/** Runs Bun's compiler over all files of a folder, each on its own: they go on requiring one another. */
function compile(from: string, to: string): void {
  const [strict, footer] = [`--banner="use strict";`, `--footer=${sourceMapOfNothing}`]; // as modules are
  const options = ["--bytecode", "--target=bun", "--format=cjs", "--external=*", strict, footer];
  runBun(["build", ...readdirSync(from).map((name) => `./${name}`), ...options, "--root=.", `--outdir=${to}`], from);
}

/** What an expression is in Bun. */
function print(expression: string): string {
  return runBun(["--print", expression]).trim();
}

function runBun(args: readonly string[], cwd?: string): string {
  const { status, stdout, stderr } = spawnSync(findBun(), args, { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`bun ${args[0]}: ${stdout}${stderr}`);
  return stdout;
}

/**
 * The code that loads compiled files. Bundlers do not see which, and bundle the others. Bun takes 3 ms for `node:fs`.
 *
 * A Bun that is too old gets the stand-ins that Node gets, because the others may not parse there: they have `using`.
 */
const loader = (revision: string): string =>
  `import { createRequire } from "node:module";

/**
 * The compiled file of a subpath. None in other versions of Bun, in a bundle, which has no such file beside it, and
 * where a bundle for Bun runs elsewhere. In a Bun that is too old, the file that says so.
 */
export function compiled(name) {
  const isCompiler = globalThis.Bun?.revision === "${revision}";
  const isOld = !isCompiler && globalThis.Bun?.semver.order(process.versions.bun, "${oldestRuntimes.bun}.0-0") < 0;
  if (!isCompiler && !isOld) return undefined;
  const folder = isCompiler ? "./causeway_compiled" : "../node";
  const file = Bun.fileURLToPath(new URL(\`\${folder}/\${name}.js\`, import.meta.url));
  return Bun.file(file).size > 0 ? createRequire(import.meta.url)(file) : undefined;
}
`;
