/**
 * The port on Bun: `bun:ffi`, with symbols resolved by `dlsym`, because Bun does not support optional symbols.
 *
 * @module
 */
import type { Argument, FunctionDescription, SymbolTable } from "../../bindings/abi.ts";
import { nodeBuiltin } from "./node_builtin.ts";
import { lowerStructs, structTakers, takesStruct, withStructs } from "./struct_by_value.ts";
import { checkFunction, checkMemory, FfiError, resizableBufferError } from "./errors.ts";
import { checkVersion } from "./oldest_runtimes.ts";
import type { FfiPort, NativeCallback, SocketWatch } from "./port.ts";
import type { CallbackDescription, CallbackFunction, FunctionGroup, HandleArgument, NativeFunction } from "./types.ts";

/** The part of `bun:ffi` used here, typed by hand so that neither runtime needs ambient types. */
interface BunFfi {
  dlopen(path: string, symbols: Record<string, BunSymbol>): { readonly symbols: object };
  linkSymbols(symbols: Record<string, BunSymbol & { readonly ptr: number }>): { readonly symbols: object };
  toArrayBuffer(address: number, byteOffset: number, byteLength: number): ArrayBuffer;
  ptr(buffer: ArrayBuffer): number;
  readonly JSCallback: new (
    fn: (...args: never[]) => unknown,
    definition: BunSymbol,
  ) => { readonly ptr: number | null; close(): void };
}

/** The part of `process` used here. */
interface BunProcess {
  readonly versions: { readonly bun?: string };
  readonly arch: string;
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  getBuiltinModule(name: "bun:ffi"): BunFfi;
}

/** The part of the global `Bun` used here. */
interface BunGlobal {
  readonly isMainThread: boolean;
  connect(options: { readonly fd: number; readonly socket: { data(): void } }): Promise<BunSocket>;
}

/** A Bun socket. */
interface BunSocket {
  ref(): void;
  unref(): void;
  end(): void;
}

interface BunSymbol {
  readonly args: readonly string[];
  readonly returns: string;
}

/** Bun's name for a type of the tables, once structs are lowered. */
function bunType(type: Argument | "void"): string {
  if (type === "ptr" || type === "size") return "u64";
  // Bun's `ptr` takes a typed array, null, a number or a bigint
  return type === "buffer" || type === "memory" || type === "handle" ? "ptr" : type;
}

function bunGlobal(): BunGlobal {
  return Reflect.get(globalThis, "Bun") as unknown as BunGlobal;
}

/** Integers below this are exact as numbers. */
const exactEnd = 1n << 53n;

/**
 * The port, or null if this is not Bun.
 *
 * @throws {FfiError} if this Bun is too old
 */
export function bunPort(): FfiPort | null {
  const process = Reflect.get(globalThis, "process") as unknown as BunProcess | undefined;
  const version = process?.versions.bun;
  if (process === undefined || version === undefined) return null;
  checkVersion("bun", version);
  return new BunPort(version, process);
}

/** The most parameters that Bun can pass; a struct by value takes eight of them. */
const maxParameters = 32;

class BunPort implements FfiPort {
  readonly runtime: FfiPort["runtime"];
  readonly platform: FfiPort["platform"];
  readonly isWorker: boolean;
  readonly maxArrayBytes: number = 2 ** 32;
  readonly #process: BunProcess;
  readonly #ffi: BunFfi;
  #dlsym: ((handle: bigint, name: Uint8Array<ArrayBuffer>) => bigint) | undefined;
  /** Functions made for an address, keyed by the address and the types. */
  readonly #callers = new Map<string, NativeFunction<FunctionDescription>>();

  constructor(version: string, process: BunProcess) {
    const arch = process.arch === "x64" ? "x86_64" : process.arch === "arm64" ? "aarch64" : "other";
    this.#process = process;
    // The only synchronous import: a static one would make this module unloadable in Deno.
    this.#ffi = process.getBuiltinModule("bun:ffi");
    this.runtime = { name: "bun", version };
    this.platform = { os: process.platform, arch };
    this.isWorker = !bunGlobal().isMainThread;
  }

  bind<G extends SymbolTable[string]>(path: string, handle: bigint, group: G): FunctionGroup<G> {
    // To dlsym, handle 0n is RTLD_DEFAULT: what the process itself would call, which is the C library's functions.
    this.#dlsym ??= this.#bindDlsym();
    const found: Record<string, BunSymbol & { readonly ptr: number }> = {};
    const absent: Record<string, null> = {};
    for (const [name, { args, returns, optional }] of Object.entries(group)) {
      const address = this.#dlsym(handle, new TextEncoder().encode(`${name}\0`));
      if (address !== 0n) found[name] = { ...this.#symbol(args, returns), ptr: Number(address) };
      else if (optional) absent[name] = null;
      else throw new FfiError(`Cannot bind ${path}: it has no symbol ${name}`);
    }
    // linkSymbols refuses an empty table.
    const symbols = Object.keys(found).length === 0 ? {} : this.#ffi.linkSymbols(found).symbols;
    const lowered = structTakers(group).filter(([name]) => name in found).map(([name, args]) =>
      [name, withStructs(lowerStructs(args, this.platform.arch), Reflect.get(symbols, name))] as const
    );
    if (lowered.length > 0) return { ...symbols, ...absent, ...Object.fromEntries(lowered) } as FunctionGroup<G>;
    return Object.assign(symbols, absent) as FunctionGroup<G>;
  }

  #symbol(args: readonly Argument[], returns: Argument | "void"): BunSymbol {
    const plain = takesStruct(args) ? lowerStructs(args, this.platform.arch).args : args;
    if (plain.length > maxParameters) {
      throw new FfiError(`Cannot call a function of ${plain.length} words: Bun passes at most ${maxParameters}`);
    }
    return { args: plain.map(bunType), returns: bunType(returns) };
  }

  #bindDlsym(): (handle: bigint, name: Uint8Array<ArrayBuffer>) => bigint {
    try {
      const { symbols } = this.#ffi.dlopen("libc.so.6", { dlsym: this.#symbol(["ptr", "buffer"], "ptr") });
      return Reflect.get(symbols, "dlsym");
    } catch (error) {
      throw new FfiError(`Cannot bind libc.so.6: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }

  /**
   * A number: a call that passes numbers for `ptr` is inlined into its caller and takes 2 ns, against 15 with bigints
   * for `u64`. Converting a bigint at each call would take as long.
   */
  handle(value: bigint): HandleArgument {
    return value < exactEnd ? Number(value) : value;
  }

  memory(address: bigint, length: number): ArrayBuffer {
    checkMemory(address, length, this.maxArrayBytes);
    return length === 0 ? new ArrayBuffer(0) : this.#ffi.toArrayBuffer(Number(address), 0, length);
  }

  addressOf(buffer: ArrayBuffer): bigint {
    if (buffer.resizable) throw resizableBufferError();
    if (buffer.byteLength === 0) return 0n;
    return BigInt(this.#ffi.ptr(buffer));
  }

  functionAt<const D extends FunctionDescription>(address: bigint, { args, returns }: D): NativeFunction<D> {
    checkFunction(address);
    // the caller vouches for the types
    const f = this.#callerOf({ ...this.#symbol(args, returns), ptr: Number(address) }) as NativeFunction<D>;
    if (!takesStruct(args)) return f;
    // the caller vouches for the types
    return withStructs(lowerStructs(args, this.platform.arch), f) as NativeFunction<D>;
  }

  /** Cached: the code that Bun compiles for each function, 500 bytes, is never freed. */
  #callerOf(symbol: BunSymbol & { readonly ptr: number }): NativeFunction<FunctionDescription> {
    const key = `${symbol.ptr} ${symbol.args} ${symbol.returns}`;
    return this.#callers.getOrInsertComputed(key, () => {
      const { f } = this.#ffi.linkSymbols({ f: symbol }).symbols as { readonly f: NativeFunction<FunctionDescription> };
      return f;
    });
  }

  callback<const D extends CallbackDescription>(description: D, fn: CallbackFunction<D>): NativeCallback {
    const definition = { args: description.args.map(bunType), returns: bunType(description.returns) };
    const callback = new this.#ffi.JSCallback(fn, definition);
    if (callback.ptr === null) throw new FfiError("Cannot make a callback: Bun returned no address");
    return { address: BigInt(callback.ptr), close: () => callback.close() };
  }

  endOfFile(fd: number): Promise<void> {
    const { read } = nodeBuiltin("node:fs");
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    read(fd, new Uint8Array(1), 0, 1, null, (error) => {
      if (error === null) resolve();
      else reject(error);
    });
    return promise;
  }

  readonly pollElsewhere = null;
  readonly turnWithSockets = null;

  readonly turnToEnd = (): Promise<void> =>
    new Promise((resolve) => {
      const { port1, port2 } = new MessageChannel(); // after a timer, immediates may come first
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    });

  readonly watchSocket = (fd: number, onArrival: () => void): SocketWatch => {
    const connected = bunGlobal().connect({ fd, socket: { data: onArrival } });
    // Actions run in request order once the socket is connected, which is practically at once.
    const then = (act: (socket: BunSocket) => void) => void connected.then(act);
    return { keepAlive: (on) => then((s) => on ? s.ref() : s.unref()), close: () => then((s) => s.end()) };
  };

  atUnload(): boolean {
    return false;
  }

  mayUseFiles(): boolean {
    return true;
  }

  needNetwork(): void {}

  env(name: string): string | undefined {
    const { env } = this.#process;
    return Object.hasOwn(env, name) ? env[name] : undefined; // it inherits from Object.prototype
  }
}
