/**
 * Array files as NumPy writes them: `.npy`, and `.npz`, a zip of several.
 *
 * The room depends on views, what is below them, and the runtime's files and inflate. A header (`npy_header.ts`) is
 * read by a parser for the subset of Python that it uses (`python_literal.ts`): nothing is evaluated or unpickled.
 * `readNpy` lets `fill.ts` copy a source's next bytes (`source.ts`) to their memory, block by block: directly to host
 * memory, to a device through pinned blocks in stream order. `openNpy` maps a file instead. `readNpz` finds its members
 * (`zip.ts`) and reads each as a file. `writeNpy` and `writeNpz` do the reverse, to a file that replaces an existing
 * one once it is complete (`new_file.ts`).
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
