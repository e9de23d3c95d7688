/**
 * The port on Deno: `Deno.dlopen` with every pointer as `u64`, the form that Deno compiles to a direct call.
 *
 * @module
 */
import type { Argument, CScalar, FunctionDescription, SymbolTable } from "../../bindings/abi.ts";
import { checkingStructs, structBytes, structTakers } from "./struct_by_value.ts";
import { checkFunction, checkMemory, FfiError, resizableBufferError } from "./errors.ts";
import { checkVersion } from "./oldest_runtimes.ts";
import type { FfiPort, NativeCallback, PollElsewhere } from "./port.ts";
import type { CallbackDescription, CallbackFunction, FunctionGroup, HandleArgument, NativeFunction } from "./types.ts";

/** Deno's opaque pointer. Never kept: 64-bit integers are faster, and survive `postMessage`. */
type DenoPointer = { readonly __denoPointer: unique symbol } | null;

/** The part of Deno used here, typed by hand so that neither runtime needs ambient types. */
interface DenoApi {
  readonly version: { readonly deno: string };
  readonly build: { readonly os: string; readonly arch: string };
  readonly permissions: {
    querySync(
      wanted: { readonly name: "net" } | { readonly name: "read" | "write"; readonly path: string },
    ): { readonly state: string; readonly partial: boolean };
    requestSync(
      wanted: { readonly name: "ffi" } | { readonly name: "net"; readonly host: string },
    ): { readonly state: string; readonly partial: boolean };
  };
  readonly env: { get(name: string): string | undefined };
  readonly internal: symbol;
  dlopen(path: string, symbols: Record<string, DenoSymbol>): { readonly symbols: object };
  readonly UnsafePointer: {
    create(value: bigint): DenoPointer;
    of(buffer: ArrayBuffer): DenoPointer;
    value(pointer: DenoPointer): bigint;
  };
  readonly UnsafePointerView: { getArrayBuffer(pointer: DenoPointer, length: number): ArrayBuffer };
  readonly UnsafeFnPointer: new (
    pointer: DenoPointer,
    definition: { parameters: readonly DenoType[]; result: string },
  ) => { call(...args: unknown[]): unknown };
  readonly UnsafeCallback: new (
    definition: { parameters: string[]; result: string },
    fn: (...args: never[]) => unknown,
  ) => { readonly pointer: DenoPointer; close(): void };
}

/** A parameter type, as Deno names it. */
type DenoType = string | { readonly struct: readonly string[] };

interface DenoSymbol {
  readonly parameters: readonly DenoType[];
  readonly result: string;
  readonly optional?: boolean;
  readonly nonblocking?: boolean;
}

/** `memset` of an ArrayBuffer. */
type AddressOf = (buffer: ArrayBuffer, value: number, count: bigint) => bigint;

interface Waiting {
  read(fd: number, buffer: Uint8Array<ArrayBuffer>, count: bigint): Promise<bigint>;
  poll(descriptors: bigint, count: bigint, timeout: number): Promise<number>;
  usleep(microseconds: number): Promise<number>;
}

/** Deno's internal API for its own libraries, under Deno's names: whether a call keeps the process alive. */
interface DenoCore {
  refOpPromise?(promise: Promise<unknown>): void;
  unrefOpPromise?(promise: Promise<unknown>): void;
}

/** Deno's name for a scalar of the tables. */
function denoScalar(type: CScalar | "void"): string {
  return type === "ptr" || type === "size" ? "u64" : type;
}

/** Deno's name for a parameter type: Deno passes by value the structs that are described by their members. */
function denoType(type: Argument): DenoType {
  if (type === "struct64") return { struct: new Array<string>(structBytes).fill("u8") };
  if (type === "handle") return "u64";
  if (type === "buffer" || type === "memory") return "buffer"; // it accepts anything that has bytes
  return denoScalar(type);
}

// law ffi/denoPort: ffi/oldest_runtimes
/**
 * The port, or null if this is not Deno.
 *
 * @throws {FfiError} if this Deno is too old
 */
export function denoPort(): FfiPort | null {
  const api = Reflect.get(globalThis, "Deno") as unknown as DenoApi | undefined;
  if (api?.dlopen === undefined) return null;
  checkVersion("deno", api.version.deno);
  return new DenoPort(api);
}

class DenoPort implements FfiPort {
  readonly runtime: FfiPort["runtime"];
  readonly platform: FfiPort["platform"];
  // node:worker_threads reports no Worker there
  readonly isWorker: boolean = Reflect.has(globalThis, "DedicatedWorkerGlobalScope");
  readonly maxArrayBytes: number = Number.MAX_SAFE_INTEGER;
  readonly #deno: DenoApi;
  #waiting: Waiting | undefined;
  #memset: AddressOf | undefined;
  /** Binding takes 1.2 ms: a program that takes few addresses does without. */
  #addressesUntilBound = 100;
  #getenv: ((name: string) => string | undefined) | undefined;
  /** Whether FFI was granted in full, and need not be requested again. */
  #isGranted = false;

  constructor(deno: DenoApi) {
    const { os, arch } = deno.build;
    this.#deno = deno;
    this.runtime = { name: "deno", version: deno.version.deno };
    this.platform = { os, arch: arch === "x86_64" || arch === "aarch64" ? arch : "other" };
  }

  bind<G extends SymbolTable[string]>(path: string, _handle: bigint, group: G): FunctionGroup<G> {
    const symbols: Record<string, DenoSymbol> = {};
    for (const [name, { args, returns, optional }] of Object.entries(group)) {
      symbols[name] = { parameters: args.map(denoType), result: denoScalar(returns), optional: optional ?? false };
    }
    const bound = this.#try(`bind ${path}`, () => this.#deno.dlopen(path, symbols).symbols);
    const checked = structTakers(group).map(([name, args]) => [name, checkingStructs(args, Reflect.get(bound, name))]);
    // Deno checks the values at each call; the table states their types, once.
    return (checked.length === 0 ? bound : { ...bound, ...Object.fromEntries(checked) }) as FunctionGroup<G>;
  }

  /** Unchanged: a number passed for 64 bits takes a slow path of 70 ns or more. */
  handle(value: bigint): HandleArgument {
    return value;
  }

  memory(address: bigint, length: number): ArrayBuffer {
    checkMemory(address, length, this.maxArrayBytes);
    if (length === 0) return new ArrayBuffer(0);
    const { UnsafePointer, UnsafePointerView } = this.#deno;
    return this.#try("view memory", () => UnsafePointerView.getArrayBuffer(UnsafePointer.create(address), length));
  }

  addressOf(buffer: ArrayBuffer): bigint {
    if (buffer.resizable) throw resizableBufferError();
    if (buffer.byteLength === 0) return 0n;
    if (this.#memset === undefined) {
      if (--this.#addressesUntilBound > 0) return this.#try("take an address", () => this.#pointerTo(buffer));
      this.#memset = this.bind("libc.so.6", 0n, {
        memset: { args: ["buffer", "i32", "size"], returns: "ptr" },
      }).memset as unknown as AddressOf; // it accepts anything that has bytes
    }
    return this.#memset(buffer, 0, 0n); // returns the address and sets nothing: 20 ns, where UnsafePointer takes 300
  }

  #pointerTo(buffer: ArrayBuffer): bigint {
    const { UnsafePointer } = this.#deno;
    return UnsafePointer.value(UnsafePointer.of(buffer));
  }

  functionAt<const D extends FunctionDescription>(address: bigint, { args, returns }: D): NativeFunction<D> {
    checkFunction(address);
    const { UnsafeFnPointer, UnsafePointer } = this.#deno;
    const definition = { parameters: args.map(denoType), result: denoScalar(returns) };
    const pointer = this.#try("call a pointer", () => new UnsafeFnPointer(UnsafePointer.create(address), definition));
    const call = (...values: unknown[]) => pointer.call(...values);
    return checkingStructs(args, call) as NativeFunction<D>; // the caller vouches for the types
  }

  callback<const D extends CallbackDescription>(description: D, fn: CallbackFunction<D>): NativeCallback {
    const parameters = description.args.map(denoScalar);
    const { UnsafeCallback, UnsafePointer } = this.#deno;
    const definition = { parameters, result: denoScalar(description.returns) };
    const callback = this.#try("make a callback", () => new UnsafeCallback(definition, fn));
    return { address: UnsafePointer.value(callback.pointer), close: () => callback.close() };
  }

  async endOfFile(fd: number): Promise<void> {
    // node:fs knows only files that Deno has opened; a nonblocking call runs on one of Deno's threads.
    await this.#calls().read(fd, new Uint8Array(1), 1n);
  }

  readonly pollElsewhere = (descriptors: bigint, count: number): PollElsewhere => {
    const promise = this.#calls().poll(descriptors, BigInt(count), -1);
    const { core }: { core?: DenoCore } = Reflect.get(this.#deno, this.#deno.internal) ?? {};
    return {
      done: promise.then(() => {}),
      // A Deno that has moved these functions keeps the process alive as long as a call is pending.
      keepAlive: (on) => on ? core?.refOpPromise?.(promise) : core?.unrefOpPromise?.(promise),
    };
  };

  readonly turnWithSockets = async (): Promise<void> => {
    await this.#calls().usleep(100); // a call that completes at once leaves the event loop no time to look at them
  };

  readonly turnToEnd = null;
  readonly watchSocket = null;

  /** Functions that may block for long, which run on Deno's threads. */
  #calls(): Waiting {
    const read = { parameters: ["i32", "buffer", "u64"], result: "i64", nonblocking: true };
    const poll = { parameters: ["u64", "u64", "i32"], result: "i32", nonblocking: true };
    const usleep = { parameters: ["u32"], result: "i32", nonblocking: true };
    this.#waiting ??= this.#deno.dlopen("libc.so.6", { read, poll, usleep }).symbols as Waiting;
    return this.#waiting;
  }

  atUnload(act: () => void): boolean {
    (Reflect.get(globalThis, "addEventListener") as (type: "unload", act: () => void) => void)("unload", act);
    return true;
  }

  mayUseFiles(folder: string): boolean {
    const { permissions } = this.#deno;
    return (["read", "write"] as const).every((name) =>
      permissions.querySync({ name, path: folder }).state === "granted"
    );
  }

  // law ffi/needNetwork: ffi/port, ucx/secret
  needNetwork(doing: string, at: string): void {
    const { permissions } = this.#deno;
    // All of the network comes first: a request for one host cannot name every address, such as one with a zone.
    const { state, partial } = permissions.querySync({ name: "net" });
    if (state === "granted" && !partial) return;
    if (permissions.requestSync({ name: "net", host: at }).state === "granted") return;
    throw new FfiError(`Cannot ${doing}: Deno did not grant the network at ${at}. Run with --allow-net (or -A).`);
  }

  env(name: string): string | undefined {
    // Deno.env needs --allow-env; libc's getenv sees the same environment and needs only --allow-ffi.
    this.#getenv ??= this.#bindGetenv();
    return this.#getenv(name);
  }

  #bindGetenv(): (name: string) => string | undefined {
    const { getenv, strlen } = this.bind("libc.so.6", 0n, {
      getenv: { args: ["buffer"], returns: "ptr" },
      strlen: { args: ["ptr"], returns: "size" },
    });
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return (name) => {
      const value = name.includes("\0") ? 0n : getenv(new TextEncoder().encode(`${name}\0`));
      return value === 0n ? undefined : decoder.decode(this.memory(value, Number(strlen(value))));
    };
  }

  // law ffi/needFfi: ffi/port
  /**
   * Runs an operation that needs FFI, and requests all of it first: one question, to which `y` is enough. If it were
   * Deno that asks, for one library, `y` would be a partial grant, as `--allow-ffi=path` and `--deny-ffi=path` are:
   * under one, Deno looks for sonames in the current folder, and refuses operations on addresses.
   */
  #try<T>(doing: string, act: () => T): T {
    if (!this.#isGranted) {
      const { state, partial } = this.#deno.permissions.requestSync({ name: "ffi" });
      if (state !== "granted" || partial) {
        throw new FfiError(
          `Cannot ${doing}: Deno did not grant FFI in full. Run with --allow-ffi (or -A), without a path or --deny-ffi.`,
        );
      }
      this.#isGranted = true;
    }
    try {
      return act();
    } catch (error) {
      throw new FfiError(`Cannot ${doing}: ${error instanceof Error ? error.message : error}`, { cause: error });
    }
  }
}
