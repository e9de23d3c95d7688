/**
 * The port through which everything else reaches native code, and the choice of its adapter.
 *
 * @module
 */
import type { FunctionDescription, SymbolTable } from "../../bindings/abi.ts";
import { bunPort } from "./bun.ts";
import { denoPort } from "./deno.ts";
import { FfiError } from "./errors.ts";
import type { CallbackDescription, CallbackFunction, FunctionGroup, HandleArgument, NativeFunction } from "./types.ts";

/** A JavaScript function that C can call until it is closed, on the thread that entered C. */
export interface NativeCallback {
  /** The address to pass to C. */
  readonly address: bigint;
  /** Frees the callback. C must not call it any more. */
  close(): void;
}

/** A `poll` call pending on one of the runtime's threads. */
export interface PollElsewhere {
  /** Settles when `poll` returns. */
  readonly done: Promise<void>;
  /** Whether it keeps the process alive; at first it does. */
  keepAlive(on: boolean): void;
}

/** A socket that the event loop reads, and whose data is discarded. */
export interface SocketWatch {
  /** Whether it keeps the process alive; at first it does. */
  keepAlive(on: boolean): void;
  /** Closes the descriptor. */
  close(): void;
}

/**
 * What Causeway needs from a runtime. There are two: Deno and Bun. Anything that Deno does not permit throws an
 * {@linkcode FfiError} that names the flag to add.
 */
export interface FfiPort {
  /** The runtime's name and version. */
  readonly runtime: { readonly name: "deno" | "bun"; readonly version: string };
  /** The platform as the runtime names it, for example `linux` and `x86_64`. */
  readonly platform: { readonly os: string; readonly arch: "x86_64" | "aarch64" | "other" };
  /**
   * Whether this is a Worker: a thread that may end before the program does, with all that JavaScript has allocated
   * there.
   */
  readonly isWorker: boolean;

  /**
   * Binds a group of functions of a library that the process has already opened, or that `dlopen` finds by this path.
   *
   * @param path absolute path, or a soname of the C library
   * @param handle the same library's handle from `dlopen`, for the adapter that resolves symbols itself; 0n binds the C
   *   library
   * @throws {FfiError} if a symbol that is not optional is missing, naming it
   */
  bind<G extends SymbolTable[string]>(path: string, handle: bigint, group: G): FunctionGroup<G>;

  /**
   * Converts a handle that will be passed many times as a `handle` argument to what this runtime passes fastest,
   * exactly.
   *
   * @param value 64 bits
   */
  handle(value: bigint): HandleArgument;

  /** The most bytes of an ArrayBuffer over native memory, which may be larger. */
  readonly maxArrayBytes: number;

  /**
   * An ArrayBuffer over native memory, which it neither owns nor keeps alive. Costs 0.2-0.5 us: make one and keep it.
   *
   * @param address start of the memory
   * @param length bytes; 0 gives a separate empty buffer
   * @throws {RangeError} for memory at NULL, and for a length that is not a valid number of bytes, or more than
   *   `maxArrayBytes`
   */
  memory(address: bigint, length: number): ArrayBuffer;

  /**
   * The address of an ArrayBuffer's bytes, valid as long as the buffer is reachable and not detached.
   *
   * Takes an ArrayBuffer and never a typed array, because Bun keeps small typed arrays in memory that moves as soon as
   * their `.buffer` is accessed; the memory of an ArrayBuffer never moves.
   *
   * @returns 0n for an empty buffer
   * @throws {TypeError} for a resizable buffer, whose memory may move or be unmapped
   */
  addressOf(buffer: ArrayBuffer): bigint;

  /**
   * A C function known only by its address, such as the deleter in a struct. Slower than a bound one (0.6 us in Deno).
   *
   * @throws {RangeError} for NULL
   */
  functionAt<const D extends FunctionDescription>(address: bigint, description: D): NativeFunction<D>;

  /** Makes a C callback of a JavaScript function. Only the JavaScript thread may call it. */
  callback<const D extends CallbackDescription>(description: D, fn: CallbackFunction<D>): NativeCallback;

  /**
   * Waits, on another thread, for end of file: the other ends are all closed, or this one is shut down.
   *
   * @param fd a socket on which nothing is sent; it stays open, and the caller still owns it
   */
  endOfFile(fd: number): Promise<void>;

  /**
   * Calls `poll` without a timeout on one of the runtime's threads; null if the runtime has no threads for that, and
   * its event loop reads sockets handed to it ({@linkcode watchSocket}).
   *
   * @param descriptors address of an array of `struct pollfd`, which must stay valid until it is done
   */
  readonly pollElsewhere: ((descriptors: bigint, count: number) => PollElsewhere) | null;

  /**
   * Runs a turn of the event loop that also serves sockets; null if every turn does. Deno serves them in one of 61
   * turns made by `setImmediate`, and in each that waits for another thread.
   */
  readonly turnWithSockets: (() => Promise<void>) | null;

  /**
   * Runs a turn of the event loop for which no immediate waits; null if none is needed. After an uncaught error Bun
   * 1.4.4 ends the process only in such a turn.
   */
  readonly turnToEnd: (() => Promise<void>) | null;

  /**
   * Hands a socket to the event loop, which calls back whenever data arrives at it; null if it takes none.
   *
   * @param fd a connected socket, which the watch owns from now on
   */
  readonly watchSocket: ((fd: number, onArrival: () => void) => SocketWatch) | null;

  /**
   * Calls a function before the program's modules are given up, be it to load them again (`deno run --watch`). Bun does
   * not tell: there the process ends with them, or goes on with both (`bun --hot`).
   *
   * @returns whether the runtime tells
   */
  atUnload(act: () => void): boolean;

  /** Whether the program may read and write all files in a folder without prompting the user. */
  mayUseFiles(folder: string): boolean;

  /**
   * Requests permission to use the network, if the runtime has permissions. Without it, `node:net` may end the process.
   *
   * @param doing the purpose, for the error
   * @param at a host, with `:port` unless its name is to be looked up; an IPv6 address in brackets
   * @throws {FfiError} if it is not granted
   */
  needNetwork(doing: string, at: string): void;

  /** Reads an environment variable without prompting the user for any permission beyond FFI. */
  env(name: string): string | undefined;
}

let chosen: FfiPort | undefined;

/**
 * The port of the runtime that this program runs on.
 *
 * @throws {FfiError} on any other runtime, on one that is too old, and where the runtime forbids native code
 */
export function ffiPort(): FfiPort {
  chosen ??= choose();
  return chosen;
}

function choose(): FfiPort {
  const port = denoPort() ?? bunPort();
  if (port === null) {
    throw new FfiError("Cannot call native code: this runtime is neither Deno nor Bun. Use Deno 2.9 or Bun 1.4.");
  }
  return port;
}
