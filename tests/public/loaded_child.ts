/**
 * Imports one file of the package in a fresh process, and prints what it exports, which rooms were loaded, and how many
 * errors were constructed meanwhile.
 */
import inspector from "node:inspector";
import { createRequire } from "node:module";
import process from "node:process";
import { pathToFileURL } from "node:url";

const [, , path = ""] = process.argv;
const isBun = process.versions["bun"] !== undefined;
const parsed: string[] = [];
if (!isBun) { // programs cannot see Deno's module cache; its debugger is notified of each module
  const session = new inspector.Session();
  session.connect();
  session.on("Debugger.scriptParsed", ({ params }) => void parsed.push(params.url));
  session.post("Debugger.enable");
}
let errors = 0;
for (const name of ["Error", "TypeError", "RangeError"] as const) {
  globalThis[name] = new Proxy(globalThis[name], {
    construct(target, args, called) {
      errors++;
      return Reflect.construct(target, args, called);
    },
  });
}
const module: object = await import(pathToFileURL(path).href);
const files = isBun ? Object.keys(createRequire(import.meta.url).cache) : parsed;
const own = new URL("../../", import.meta.url).pathname;
const rooms = files.map((file) => file.replace("file://", "")).filter((file) => file.startsWith(own))
  .map((file) => /^(?:src\/(\w+)\/|(bindings)\/)/.exec(file.slice(own.length)))
  .map((match) => match?.[1] ?? match?.[2])
  .filter((room) => room !== undefined && room !== "public");
console.log(JSON.stringify({ names: Object.keys(module).sort(), rooms: [...new Set(rooms)].sort(), errors }));
process.exit(0); // the debugger session would keep Deno alive
