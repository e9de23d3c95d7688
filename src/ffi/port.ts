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

/** A JavaScript function that C can call, on the thread that entered C, until it is closed. */
export interface NativeCallback {
  /** The address to give to C. */
  readonly address: bigint;
  /** Frees the callback. C must not call it any more. */
  close(): void;
}

/** A `poll` that a thread of the runtime is in. */
export interface PollElsewhere {
  /** Settles when `poll` returns. */
  readonly done: Promise<void>;
  /** Whether the process stays alive for it; at first it does. */
  keepAlive(on: boolean): void;
}

/** A socket that the event loop reads, and whose data are of no interest. */
export interface SocketWatch {
  /** Whether the process stays alive for it; at first it does. */
  keepAlive(on: boolean): void;
  /** Closes the descriptor. */
  close(): void;
}

/**
 * What Causeway needs of a runtime. There are two: Deno and Bun. Whatever Deno does not permit throws an
 * {@linkcode FfiError} that says which flag to add.
 */
export interface FfiPort {
  /** The runtime's name and version. */
  readonly runtime: { readonly name: "deno" | "bun"; readonly version: string };
  /** The platform as the runtime names it, for example `linux` and `x86_64`. */
  readonly platform: { readonly os: string; readonly arch: "x86_64" | "aarch64" | "other" };
  /**
   * Whether this is a Worker: a thread that may end, with all that JavaScript has allocated there, before the program
   * does.
   */
  readonly isWorker: boolean;

  /**
   * Binds a group of functions of a library that the process has already opened, or that `dlopen` finds by this path.
   *
   * @param path absolute path, or a soname of the C library
   * @param handle `dlopen`'s handle of the same library, for the runtime that resolves symbols itself; 0n binds the
   *   C library
   * @throws {FfiError} if a symbol that is not optional is missing; it is named
   */
  bind<G extends SymbolTable[string]>(path: string, handle: bigint, group: G): FunctionGroup<G>;

  /**
   * Prepares a handle that will be passed many times as a `handle` argument: what this runtime passes fastest, and
   * exactly.
   *
   * @param value 64 bits
   */
  handle(value: bigint): HandleArgument;

  /**
   * An ArrayBuffer over native memory, which it neither owns nor keeps alive. Costs 0.2-0.5 us: make one and keep it.
   *
   * @param address start of the memory
   * @param length bytes; 0 gives an empty buffer of its own
   * @throws {RangeError} for memory at NULL, and for a length that is no number of bytes
   */
  memory(address: bigint, length: number): ArrayBuffer;

  /**
   * The address of an ArrayBuffer's bytes, valid as long as the buffer is reachable and not detached.
   *
   * It takes an ArrayBuffer and never a typed array, because Bun keeps small typed arrays in memory that moves as soon
   * as their `.buffer` is asked for; the memory of an ArrayBuffer never moves.
   *
   * @returns 0n for an empty buffer
   * @throws {TypeError} for a resizable buffer, whose memory may move or be unmapped
   */
  addressOf(buffer: ArrayBuffer): bigint;

  /**
   * A C function that is known by its address only, such as the deleter in a struct. Slower than a bound one (0.6 us in
   * Deno).
   *
   * @throws {RangeError} for NULL
   */
  functionAt<const D extends FunctionDescription>(address: bigint, description: D): NativeFunction<D>;

  /** Makes a C callback of a JavaScript function. Only the JavaScript thread may call it. */
  callback<const D extends CallbackDescription>(description: D, fn: CallbackFunction<D>): NativeCallback;

  /**
   * Waits, on another thread, until there is nothing more to read: the other ends are all closed, or this one is shut
   * down.
   *
   * @param fd a socket on which nothing is sent; it stays open, and belongs to the caller
   */
  endOfFile(fd: number): Promise<void>;

  /**
   * Calls `poll` without a time limit on a thread of the runtime; null where the runtime has no threads for that, and
   * its event loop reads sockets that are given to it ({@linkcode watchSocket}).
   *
   * @param descriptors address of an array of `struct pollfd`, which must stay until it is done
   */
  readonly pollElsewhere: ((descriptors: bigint, count: number) => PollElsewhere) | null;

  /**
   * A turn of the event loop in which it also serves sockets; null where every turn does. Deno serves them in one of 61
   * turns that `setImmediate` makes, and in each that waits for another thread.
   */
  readonly turnWithSockets: (() => Promise<void>) | null;

  /**
   * Has the event loop call back whenever something arrives at a socket that is given to it; null where it takes none.
   *
   * @param fd a connected socket, which belongs to the watch from now on
   */
  readonly watchSocket: ((fd: number, onArrival: () => void) => SocketWatch) | null;

  /** Whether the program may read and write files without the user being asked. */
  mayUseFiles(): boolean;

  /**
   * Asks for the permission to use the network, where the runtime has such. What `node:net` does without one may end
   * the process.
   *
   * @param doing what for, for the error
   * @param at a host, with `:port` unless its name is to be looked up; an IPv6 address in brackets
   * @throws {FfiError} if it is not granted
   */
  needNetwork(doing: string, at: string): void;

  /** Reads an environment variable without asking the user for a permission beyond FFI. */
  env(name: string): string | undefined;
}

let chosen: FfiPort | undefined;

/**
 * The port of the runtime that this program runs on.
 *
 * @throws {FfiError} on any other runtime, and where the runtime forbids native code
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
