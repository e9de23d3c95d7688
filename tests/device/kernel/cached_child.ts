/** Asks the cache for code, and prints whether it was made. */
import { cached } from "../../../src/device/kernel/code_cache.ts";

let made = false;
const code = cached(["key"], () => {
  made = true;
  return Uint8Array.of(1, 2, 3);
});
console.log(JSON.stringify([made, Array.from(code)]));
