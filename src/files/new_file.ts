/**
 * Files that are written whole, or not at all where the system allows it.
 *
 * @module
 */
import type { Stats } from "node:fs";
import { checkPath, ffiPort, missingFile, namingErrors, nodeBuiltin, systemErrorOf } from "../ffi/mod.ts";
import { NpyError } from "./error.ts";

/** A sequential sink of bytes. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>;
}

/** A file that is being written. Disposing it before it is complete leaves what was there before, if it can. */
export interface NewFile extends ByteSink, Disposable {
  writeAt(bytes: Uint8Array, at: number): void;
  /** Called once, when everything has been written: the file is now at its path. */
  commit(): void;
}

/** Why a file cannot be created at a path. */
function missingFolder(path: string | URL): string {
  const hint = missingFile(path);
  return hint === "There is no such file" ? "Its folder does not exist: make it first" : hint;
}

// law files/checkNotMapped: files/open_npy
/** Refuses to truncate a file that this process has mapped: its views, perhaps those to be written, would end there. */
function checkNotMapped(path: string | URL): void {
  const fs = nodeBuiltin("node:fs");
  let mapped = "";
  let marks: string[] = [];
  try {
    const { dev, ino } = fs.statSync(path, { bigint: true });
    const device = [dev >> 8n & 0xfffn | dev >> 32n & ~0xfffn, dev & 0xffn | dev >> 12n & ~0xffn];
    // The list has one name of each file, with newlines escaped, and other numbers for some file systems.
    marks = [
      ` ${device.map((part) => part.toString(16).padStart(2, "0")).join(":")} ${ino} `,
      ` ${fs.realpathSync(path)}\n`,
    ];
    mapped = fs.readFileSync("/proc/self/maps", "utf8");
  } catch {
    return; // there is no such file, or Deno may not look
  }
  if (!marks.some((mark) => mapped.includes(mark))) return;
  throw new NpyError(`Cannot write ${path}: a view of it is open (openNpy). Close that first, or write another file`);
}

/** A file that is being written beside the one that it will replace. */
interface Beside {
  readonly file: number;
  readonly path: string;
  /** The file to replace, without symbolic links. */
  readonly target: string;
}

/** A path at which a file can be replaced. */
interface Replaceable {
  /** Without symbolic links. */
  readonly target: string;
  /** The file that is there; null if there is none. */
  readonly status: Stats | null;
}

// law files/replaceable: files/new_file
/** Null if what is at a path cannot be replaced, or somebody would notice more than new contents. */
function replaceable(path: string): Replaceable | null {
  const fs = nodeBuiltin("node:fs");
  // Where another process has it open by a descriptor, such as standard output, it is that file which is to be written.
  if (path === "" || /^\/(dev|proc)\//.test(path) || !ffiPort().mayUseFiles(folderOf(path))) return null;
  const status = fs.statSync(path, { throwIfNoEntry: false });
  if (status === undefined) {
    const isLink = fs.lstatSync(path, { throwIfNoEntry: false }) !== undefined; // to a file that is yet to be made
    return isLink ? null : { target: path, status: null };
  }
  if (!status.isFile() || status.nlink !== 1) return null;
  fs.closeSync(fs.openSync(path, "r+")); // throws if it may not be written; Deno asks for more to look at its mode
  const target = fs.realpathSync(path);
  return ffiPort().mayUseFiles(folderOf(target)) ? { target, status } : null;
}

/** The folder of an absolute path. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

/** The path as text, which does not change its meaning when the process changes its folder. */
function absolute(path: string | URL): string {
  const text = path instanceof URL ? nodeBuiltin("node:url").fileURLToPath(path) : path;
  return text === "" || text.startsWith("/") ? text : `${nodeBuiltin("node:process").cwd()}/${text}`;
}

// law files/openBeside: files/new_file
/** Opens a new file in the folder of the one that it will replace; null where that cannot be done or is not allowed. */
function openBeside(path: string | URL): Beside | null {
  const fs = nodeBuiltin("node:fs");
  try {
    const found = replaceable(absolute(path));
    if (found === null) return null;
    const { target, status } = found;
    const beside = `${target}.${crypto.randomUUID()}.tmp`;
    const file = fs.openSync(beside, "wx");
    if (status === null || takesPlaceOf(status, file)) return { file, path: beside, target };
    fs.closeSync(file);
    fs.unlinkSync(beside);
    return null;
  } catch {
    return null; // writing in place may succeed, or has the error that a program expects
  }
}

/** Gives a file the permissions of another one. @returns whether it is then as good as that: of the same user and group */
function takesPlaceOf({ uid, gid, mode }: Stats, file: number): boolean {
  const fs = nodeBuiltin("node:fs");
  try {
    fs.fchmodSync(file, mode & 0o7777);
    const made = fs.fstatSync(file);
    return made.uid === uid && made.gid === gid;
  } catch {
    return false;
  }
}

// law files/createFile: files/new_file
/** Creates a file, which replaces an existing one once it is complete. Where that cannot be done it is truncated. */
export function createFile(path: string | URL): NewFile {
  const fs = nodeBuiltin("node:fs");
  checkPath("write", path);
  checkNotMapped(path);
  const beside = openBeside(path);
  const file = beside?.file ?? namingErrors(`write ${path}`, () => fs.openSync(path, "w"), () => missingFolder(path));
  let isOpen = true;
  const close = () => {
    isOpen = false;
    fs.closeSync(file);
  };
  const once = (bytes: Uint8Array) =>
    new Promise<number>((resolve, reject) => {
      fs.write(file, bytes, 0, bytes.length, null, (error, written) => {
        if (error === null) resolve(written);
        else reject(systemErrorOf(`write ${path}`, error));
      });
    });
  return {
    write: async (bytes) => {
      for (let done = 0; done < bytes.length;) done += await once(bytes.subarray(done));
    },
    writeAt: (bytes, at) => void namingErrors(`write ${path}`, () => fs.writeSync(file, bytes, 0, bytes.length, at)),
    commit: () =>
      namingErrors(`write ${path}`, () => {
        if (beside !== null) fs.renameSync(beside.path, beside.target);
        close();
      }),
    [Symbol.dispose]: () => {
      if (!isOpen) return;
      close();
      if (beside !== null) fs.unlinkSync(beside.path);
    },
  };
}
