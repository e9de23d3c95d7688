/** The protective lines of WebAssembly that is written here. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const wasmMutations: readonly Mutation[] = [
  ...law("wasm/assemble", [
    ["value > 0x7f; value", "value > 0xff; value", "A function of 128 to 255 bytes is none that an engine takes."],
    ["value < -64n || value > 63n", "value < -128n || value > 127n", "A constant of 64 is -64."],
  ]),
  ...law("wasm/enlist", [
    ["table.grow(1)", "table.grow(1) && 0", "Every function is called instead of the first one."],
    ["caller(one, two, three, enlisted)", "caller(two, one, three, enlisted)", "A loop writes where it is to read."],
  ]),
  ...law("wasm/scratch", [
    [
      "  if (size > PAGE * MOST_PAGES) throw new RangeError(`Expected at most ${PAGE * MOST_PAGES} bytes, got ${size}`);\n",
      "",
      "Who asks for too much memory is told so by the engine, in its words.",
    ],
    [
      "  if (bytes.buffer !== shared.buffer) bytes = new Uint8Array(shared.buffer);\n",
      "  if (bytes.byteOffset !== 0) bytes = new Uint8Array(shared.buffer);\n",
      "After the memory has grown everybody works on bytes that are none any more.",
    ],
  ]),
];
