/**
 * Files that are written whole, or not at all where the system allows it.
 *
 * @module
 */
import {
  checkPath,
  cString,
  ffiPort,
  libc,
  missingFile,
  namingErrors,
  NativeArena,
  nodeBuiltin,
  readString,
  readTextFile,
  systemErrorOf,
} from "../ffi/mod.ts";
import { NpyError } from "./error.ts";

/** A sequential sink of bytes. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>;
}

/**
 * A file that is being written. Disposing it before it is complete leaves what was there before, if it can. It waits
 * for a write that is under way.
 */
export interface NewFile extends ByteSink, AsyncDisposable {
  writeAt(bytes: Uint8Array, at: number): void;
  /** Called once, when everything has been written: the file is now at its path. */
  commit(): void;
}

/** Why a file cannot be created at a path. */
function missingFolder(path: string | URL): string {
  const hint = missingFile(path);
  return hint === "There is no such file" ? "Its folder does not exist: make it first" : hint;
}

/** The most of the list of mappings that is read, in bytes: more than the system allows a process to have. */
const maxList = 1 << 24;

// law files/checkNotMapped: files/open_npy, files/new_file
/**
 * Refuses a file that this process has mapped: if it is truncated, its views, perhaps those to be written, end there,
 * and if it is replaced, they are no longer the file's. libc reads the list: to Deno's own, that needs permission.
 *
 * @param file its descriptor, not yet truncated
 */
function checkNotMapped(path: string | URL, file: number): void {
  const { dev, ino, size } = nodeBuiltin("node:fs").fstatSync(file, { bigint: true });
  if (size === 0n) return;
  const device = [dev >> 8n & 0xfffn | dev >> 32n & ~0xfffn, dev & 0xffn | dev >> 12n & ~0xffn];
  // The list has one name of each file, with newlines escaped, and other numbers for some file systems.
  const marks = [
    ` ${device.map((part) => part.toString(16).padStart(2, "0")).join(":")} ${ino} `,
    ` ${nameOf(file)}\n`,
  ];
  const mapped = readTextFile("/proc/self/maps", maxList) ?? "";
  if (!marks.some((mark) => mapped.includes(mark))) return;
  throw new NpyError(`Cannot write ${path}: a view of it is open (openNpy). Close that first, or write another file`);
}

/** The path of an open file, without symbolic links. */
function nameOf(file: number): string {
  using arena = new NativeArena();
  const { address, bytes } = arena.bytes(4096); // PATH_MAX
  const length = libc().files.readlink(cString(`/proc/self/fd/${file}`), address, BigInt(bytes.length));
  return readString(address, Math.max(0, Number(length)));
}

/** A file that is being written beside the one that it will replace. */
interface Beside {
  readonly file: number;
  readonly path: string;
  /** The path to replace, without symbolic links. */
  readonly target: string;
}

/** The folder of an absolute path. */
function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

// law files/absolute: files/new_file
/** The path as text, which does not change its meaning when the process changes its folder. */
function absolute(path: string | URL): string {
  const text = path instanceof URL ? nodeBuiltin("node:url").fileURLToPath(path) : path;
  return text.startsWith("/") ? text : `${nodeBuiltin("node:process").cwd()}/${text}`;
}

// law files/replaceable: files/new_file
/**
 * The path of the file that a path stands for, without symbolic links. Null if that cannot be replaced, or others would
 * keep the old one: by another of its names, or by a descriptor, as a shell has standard output.
 */
function replaceable(path: string): string | null {
  const fs = nodeBuiltin("node:fs");
  let at = path;
  for (let links = 0; links < 40; links++) {
    if (!ffiPort().mayUseFiles(folderOf(at))) return null;
    const folder = fs.realpathSync(folderOf(at));
    if (/^\/proc\//.test(folder)) return null; // a descriptor's link
    at = `${folder === "/" ? "" : folder}/${at.slice(at.lastIndexOf("/") + 1)}`;
    const status = fs.lstatSync(at, { throwIfNoEntry: false });
    if (status?.isSymbolicLink() !== true) {
      const isWhole = status === undefined || (status.isFile() && status.nlink === 1);
      return isWhole ? at : null;
    }
    const link = fs.readlinkSync(at);
    at = link.startsWith("/") ? link : `${folder}/${link}`;
  }
  return null;
}

/** Reasons not to write at all: writing in place would destroy what is there. */
const noRoom: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT"]);

// law files/openBeside: files/new_file, files/open_npy
/**
 * Opens a new file in the folder of the one that it will replace; null where that cannot be done or is not allowed.
 *
 * @throws {Error} of node:fs if there is no room for a file
 */
function openBeside(path: string | URL): Beside | null {
  const fs = nodeBuiltin("node:fs");
  try {
    const target = replaceable(absolute(path));
    if (target === null) return null;
    const beside = `${folderOf(target)}/.causeway-${crypto.randomUUID()}.tmp`; // names have a maximum length
    const old = fs.existsSync(target) ? fs.openSync(target, "r+") : null; // throws if it may not be written
    if (old !== null) {
      try {
        checkNotMapped(path, old);
      } finally {
        fs.closeSync(old);
      }
    }
    // Nobody else may open it while its permissions are not yet those of the old one.
    const file = fs.openSync(beside, "wx", old === null ? 0o666 : 0o600);
    if (takesPlaceOf(target, file)) return { file, path: beside, target };
    fs.closeSync(file);
    fs.unlinkSync(beside);
    return null;
  } catch (error) {
    if (error instanceof Error && "code" in error && noRoom.has(error.code)) throw error;
    return null; // writing in place may succeed, or has the error that a program expects
  }
}

/**
 * Gives a file the permissions of the one at a path, if there is one.
 *
 * @returns whether it is then as good as that: of the same user and group
 */
function takesPlaceOf(path: string, file: number): boolean {
  const fs = nodeBuiltin("node:fs");
  const old = fs.statSync(path, { throwIfNoEntry: false });
  if (old === undefined) return true;
  try {
    fs.fchmodSync(file, old.mode & 0o7777);
    const { uid, gid } = fs.fstatSync(file);
    return uid === old.uid && gid === old.gid;
  } catch {
    return false;
  }
}

// law files/replace: files/new_file
/** Replaces the old file by the new one; a mount point by its contents, as it cannot be renamed to. */
function replace({ file, path, target }: Beside): void {
  const fs = nodeBuiltin("node:fs");
  takesPlaceOf(target, file); // they may have changed
  try {
    fs.renameSync(path, target);
  } catch {
    fs.copyFileSync(path, target);
    fs.unlinkSync(path);
  }
}

/** Whether what untyped programs pass is a stream of Node's, such as the response of a server. */
function isNodeStream(path: unknown): boolean {
  return typeof path === "object" && path !== null && "write" in path && "pipe" in path;
}

// law files/openInPlace: files/new_file, files/open_npy
/**
 * Opens a file to be written from its start, and creates it if there is none.
 *
 * @throws {NpyError} if it is mapped; it is as it was then
 */
function openInPlace(path: string | URL): number {
  const fs = nodeBuiltin("node:fs");
  const { O_CREAT, O_WRONLY } = fs.constants;
  const file = fs.openSync(path, O_WRONLY | O_CREAT, 0o666);
  try {
    if (fs.fstatSync(file).isFile()) { // a pipe has no length
      checkNotMapped(path, file);
      fs.ftruncateSync(file);
    }
    return file;
  } catch (error) {
    fs.closeSync(file);
    throw error;
  }
}

// law files/createFile: files/new_file
/** Creates a file, which replaces an existing one once it is complete. Where that cannot be done it is truncated. */
export function createFile(path: string | URL): NewFile {
  const fs = nodeBuiltin("node:fs");
  if (isNodeStream(path)) {
    throw new TypeError(
      "Cannot write a file: expected a path, a file: URL or a WritableStream, got a stream of Node's. " +
        'Writable.toWeb(stream) of "node:stream" makes a WritableStream of it',
    );
  }
  checkPath("write", path);
  const beside = namingErrors(`write ${path}`, () => openBeside(path));
  const file = beside?.file ?? namingErrors(`write ${path}`, () => openInPlace(path), () => missingFolder(path));
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
  const all = async (bytes: Uint8Array) => {
    for (let done = 0; done < bytes.length;) done += await once(bytes.subarray(done));
  };
  let writing = Promise.resolve();
  return {
    write: (bytes) => writing = all(bytes),
    writeAt: (bytes, at) => void namingErrors(`write ${path}`, () => fs.writeSync(file, bytes, 0, bytes.length, at)),
    commit: () =>
      namingErrors(`write ${path}`, () => {
        if (beside !== null) replace(beside);
        close();
      }, () => missingFolder(path)),
    [Symbol.asyncDispose]: async () => {
      if (!isOpen) return;
      await writing.catch(() => {}); // its descriptor may be another file's as soon as this one is closed
      close();
      if (beside !== null) fs.rmSync(beside.path, { force: true }); // it may be gone, with its folder
    },
  };
}
