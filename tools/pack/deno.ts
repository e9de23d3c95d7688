/**
 * The package's files for Deno: the joined ones, but for the room that makes simulators and checkers. It loads those
 * rooms when something of them is first used, as few programs do.
 *
 * Only `require` loads a module in the middle of a call. A module of Deno's has none before it makes one, which takes
 * 20 ms; in a bundle of Deno's there is one, and the bundle has the rooms. The global one of a `node:worker_threads`
 * Worker is its file's, and looks for the rooms beside that.
 *
 * @module
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "./entries.ts";
import { rarelyUsed } from "./rooms.ts";

/** The room that uses them. */
const user = "room_cuda.js";

/** Writes the folder `deno`: that room, and a file for each subpath that needs it. */
export function writeForDeno(all: readonly Entry[], out: string): void {
  mkdirSync(join(out, "deno"), { recursive: true });
  const read = (name: string) => readFileSync(join(out, name), "utf8");
  const write = (name: string, code: string) => writeFileSync(join(out, "deno", name), besideRest(code));
  write(user, loadingWhenUsed(read(user)));
  for (const name of all.map((entry) => `${entry.name}.js`)) {
    const code = read(name);
    if (code.includes(`"./${user}"`)) write(name, code);
  }
}

/** The same code, one folder further down: all other files stay where they are. */
function besideRest(code: string): string {
  return code.replace(/ from "\.\/(?<name>\w[\w.-]*)"/g, (all, name) => name === user ? all : ` from "../${name}"`);
}

/** Makes each use of a rarely used room load it, and the first one alone. */
function loadingWhenUsed(code: string): string {
  let changed = code;
  for (const room of rarelyUsed) {
    const [declaration, names = ""] = new RegExp(`^import \\{ (.+) \\} from "\\./${room}\\.js";$`, "m").exec(code) ??
      [];
    if (declaration === undefined) throw new Error(`${user} does not import ${room}`);
    const make = `process.getBuiltinModule("node:module").createRequire(import.meta.url)`;
    const hasNone = 'typeof require === "undefined" || require === globalThis.require';
    const load = `${hasNone} ? ${make}("../${room}.js") : require("../${room}.js")`;
    changed = changed.replace(declaration, `let loaded_${room};\nconst ${room} = () => loaded_${room} ??= (${load});`);
    for (const [, exported, name] of names.matchAll(/(\w+) as (\w+)/g)) {
      const uses = new RegExp(`(?<!\\w|[^.]\\.)${name}\\b(?!:)`, "g"); // no member of another object
      changed = changed.replace(uses, `(${room}().${exported})`);
      if (new RegExp(`\\b${name}\\b`).test(changed)) throw new Error(`${user} has another ${name}`);
    }
  }
  return changed;
}
