/**
 * Which rooms share a file of the package. Few files start faster than many, and a subpath loads no room above its own.
 *
 * @module
 */

/** A file that holds whole rooms. */
interface Group {
  /** Its name in the package, without the extension. */
  readonly name: string;
  readonly test: RegExp;
  readonly priority: number;
}

/**
 * The lowest first: it is loaded in Node, too, with the errors and the runtimes' versions. What no pattern matches is
 * where it is needed.
 */
const rooms: Readonly<Record<string, RegExp>> = {
  room_layout: /\/src\/(layout\/|ffi\/(errors|oldest_runtimes)\.ts$)/,
  room_memory:
    /\/(bindings\/(?!cpython|ucp|vortex)|src\/(ffi|native|unix|driver|device|memory|order|cdata|dlpack|checker\/(draw_)?report\.ts))/,
  room_view: /\/src\/(view|copy|wasm|arrow|files)\//,
  room_simulator: /\/src\/(sim|ptx)\//,
  room_checker: /\/src\/checker\//,
  room_cuda: /\/src\/cuda\//,
  room_python: /\/(src\/python\/|bindings\/cpython\.ts$)/,
  room_ucx: /\/(src\/ucx\/|bindings\/ucp)/,
  room_vortex: /\/(src\/vortex\/|bindings\/vortex\.ts$)/,
};

/** Files that most programs never need. They are loaded when something of them is first used. */
export const rarelyUsed: readonly string[] = ["room_simulator", "room_checker"];

const last = Object.keys(rooms).length;

/** The files, as rolldown takes them: a module goes where the priority is highest, with all that it imports. */
export const groups: readonly Group[] = Object.entries(rooms)
  .map(([name, test], i) => ({ name, test, priority: last - i }));
