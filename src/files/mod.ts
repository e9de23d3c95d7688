/**
 * Files of arrays, as NumPy writes them: `.npy`, and `.npz`, a zip of several.
 *
 * The room knows views, what is below them, and the runtime's files and inflate. A header (`npy_header.ts`) is read by
 * a parser of the little Python that it is written in (`python_literal.ts`): nothing is evaluated, and nothing
 * unpickled. `readNpy` has `fill.ts` bring what a source of bytes (`source.ts`) has next to its memory, block by block:
 * host memory directly, a device's through pinned blocks in the order of streams. `openNpy` maps a file instead.
 * `readNpz` finds its members (`zip.ts`) and reads each as a file. `writeNpy` and `writeNpz` go the other way.
 *
 * @module
 */
export { NpyError } from "./error.ts";
export type { Progress } from "./fill.ts";
export { NpzArrays, readNpz, type ReadNpzOptions } from "./npz.ts";
export { openNpy, type OpenNpyOptions } from "./open_npy.ts";
export { readNpy, type ReadNpyOptions } from "./read_npy.ts";
export type { FileContents } from "./source.ts";
export { writeNpy, type WriteNpyOptions } from "./write_npy.ts";
export { writeNpz, type WriteNpzOptions } from "./write_npz.ts";
