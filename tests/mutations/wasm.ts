/** The protective lines of WebAssembly that is assembled here. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const wasmMutations: readonly Mutation[] = [
  ...law("wasm/assemble", [
    ["value > 0x7f; value", "value > 0xff; value", "An engine refuses a function of 128 to 255 bytes."],
    ["value < -64n || value > 63n", "value < -128n || value > 127n", "A constant of 64 becomes -64."],
  ]),
  ...law("wasm/enlist", [
    ["table.grow(1)", "table.grow(1) && 0", "Each function replaces the first one."],
    [
      "caller(one, two, three, enlisted)",
      "caller(two, one, three, enlisted)",
      "A loop writes to where it should read.",
    ],
  ]),
  ...law("wasm/scratch", [
    [
      "  if (size > PAGE * MAX_PAGES) throw new RangeError(`Expected at most ${PAGE * MAX_PAGES} bytes, got ${size}`);\n",
      "",
      "A request for too much memory fails with the engine's error.",
    ],
    [
      "  if (bytes.buffer !== shared.buffer) bytes = new Uint8Array(shared.buffer);\n",
      "  if (bytes.byteOffset !== 0) bytes = new Uint8Array(shared.buffer);\n",
      "After the memory has grown, all users work on detached bytes.",
    ],
  ]),
];
