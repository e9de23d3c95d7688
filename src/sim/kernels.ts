/**
 * What the simulator needs of an interpreter of PTX: kernels that run, to the end, on bytes that they reach by address.
 *
 * @module
 */

/** Three extents: of a grid in blocks, of a block in threads. */
export interface Extent {
  /** The innermost. */
  readonly x: number;
  /** The middle one. */
  readonly y: number;
  /** The outermost. */
  readonly z: number;
}

/** Memory as a kernel reaches it. */
export interface PtxMemory {
  /**
   * The bytes of one access, in place.
   *
   * @param address of the first byte
   * @param bytes how many: 1, 2, 4, 8 or 16, and the address a multiple of it
   * @throws {IllegalAddressError} if the device may not access them
   */
  view(
    address: bigint,
    bytes: number,
    access: "read" | "write",
  ): { readonly bytes: DataView; readonly offset: number };
}

/** One launch of a kernel. */
export interface PtxLaunch {
  /** Blocks. */
  readonly grid: Extent;
  /** Threads of a block. */
  readonly block: Extent;
  /** The arguments, each at the offset that the entry's `params` say. */
  readonly params: Uint8Array;
  /** Bytes of shared memory beyond what the kernel declares. */
  readonly dynamicSharedBytes: number;
  /** What the kernel reads and writes. */
  readonly memory: PtxMemory;
  /** Addresses of the module's variables, by name. */
  readonly globals: ReadonlyMap<string, bigint>;
  /** Chooses the order of blocks and warps. */
  readonly seed: number;
}

/** A kernel. */
export interface PtxEntry {
  /** Where each argument lies, in bytes. */
  readonly params: readonly { readonly offset: number; readonly size: number }[];
  /** Bytes of shared memory that the kernel declares. */
  readonly staticSharedBytes: number;
  /**
   * Runs all threads to their end.
   *
   * @throws {Error} with a `kind` of {@linkcode KernelFaultKind} for what a GPU would stop the kernel for; the driver
   * reports it as a code of every later call. Anything else that is thrown goes to whoever made the simulator run.
   */
  run(launch: PtxLaunch): void;
}

/** What a GPU stops a kernel for. */
export type KernelFaultKind = "illegal address" | "misaligned address" | "trap" | "stack overflow";

/** A variable of a module in global or constant memory. */
export interface PtxGlobal {
  /** Bytes. */
  readonly size: number;
  /** Alignment in bytes. */
  readonly align: number;
  /** The first bytes; the rest is zero. Null: all of it is. */
  readonly init: Uint8Array | null;
}

/** A module: PTX that was read. */
export interface PtxProgram {
  /** Names of the kernels. */
  readonly entries: readonly string[];
  /** The kernel of a name, or null. */
  entry(name: string): PtxEntry | null;
  /** The variables by name. */
  readonly globals: ReadonlyMap<string, PtxGlobal>;
}

/**
 * Reads PTX.
 *
 * @throws {Error} saying what it does not understand, which the driver reports as CUDA_ERROR_INVALID_PTX
 */
export type LoadPtx = (text: string) => PtxProgram;

/** A kernel has used an address that it may not use. The driver reports CUDA_ERROR_ILLEGAL_ADDRESS, and goes on doing so. */
export class IllegalAddressError extends Error {
  /** `IllegalAddressError`. */
  override readonly name: string = "IllegalAddressError";
  /** What the driver makes of it. */
  readonly kind: KernelFaultKind = "illegal address";
  /** The address. */
  readonly address: bigint;

  /** For implementations of {@linkcode PtxMemory}. */
  constructor(address: bigint, bytes: number, access: "read" | "write", reason: string) {
    super(`Cannot ${access} ${bytes} bytes at 0x${address.toString(16)}: ${reason}`);
    this.address = address;
  }
}
