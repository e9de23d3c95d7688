/** Tries everything that the port can do, and the search for a library. Prints the outcome of each attempt. */
import { libc } from "../../../src/ffi/libc.ts";
import { openLibrary } from "../../../src/ffi/library.ts";
import { ffiPort } from "../../../src/ffi/port.ts";
import { releaseThunks } from "../../../src/native/release_thunk.ts";

const port = ffiPort();
const libm = { name: "libm", override: "CAUSEWAY_LIBM", remedy: "Install glibc.", symbols: {}, sonames: ["libm.so.6"] };
const attempts: { readonly [name: string]: () => unknown } = {
  libc: () => libc().loading,
  env: () => port.env("HOME"),
  memory: () => port.memory(4096n, 8),
  addressOf: () => port.addressOf(new ArrayBuffer(8)),
  functionAt: () => port.functionAt(4096n, { args: [], returns: "void" }),
  callback: () => port.callback({ args: [], returns: "void" }, () => {}).close(),
  openLibrary: () => openLibrary({ ...libm, wheels: ["*/lib"], homes: ["HOME"], folders: ["/nowhere"] }).handle,
  releaseThunks: () => releaseThunks(),
};
const outcomes: Record<string, string> = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    attempt();
    outcomes[name] = "ok";
  } catch (error) {
    outcomes[name] = String(error);
  }
}
console.log(JSON.stringify(outcomes));
