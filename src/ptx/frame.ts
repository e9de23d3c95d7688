/**
 * The frame of a function. Everything that an instruction can read has a slot in it: registers, constants, special
 * registers, addresses of variables. So instructions need not distinguish kinds of operands.
 *
 * @module
 */

/** A slot whose value is known only when a kernel is linked, launched or called. */
export type Fixup =
  /** The address of a .global or .const variable, 64 bits. */
  | { readonly kind: "global"; readonly slot: number; readonly name: string; readonly offset: bigint }
  /** The offset of a .shared variable; an upper word of zero follows. */
  | { readonly kind: "shared"; readonly slot: number; readonly name: string; readonly offset: number }
  /** An offset into the local memory of the call; an upper word of zero follows. */
  | { readonly kind: "local"; readonly slot: number; readonly offset: number }
  /** A special register, 32 bits, with an upper word of zero. */
  | { readonly kind: "special"; readonly slot: number; readonly name: string };

/** The frame of a function while it is being laid out. */
export class Frame {
  #bytes = 0;
  /** Constants by their bits: each is stored as 64 bits, so that one slot serves every width. */
  readonly #constants = new Map<bigint, number>();
  readonly #fixups = new Map<string, Fixup>();

  #carry: number | null = null;

  /** The slot of the condition code, which `add.cc` writes and `addc` reads. */
  get carry(): number {
    return this.#carry ??= this.allocate(4);
  }

  /** Size in bytes, a multiple of 8. */
  get bytes(): number {
    return (this.#bytes + 7) & ~7;
  }

  /** Values that are the same for every call. */
  get constants(): ReadonlyMap<bigint, number> {
    return this.#constants;
  }

  /** Values that differ between kernels, launches or calls. */
  get fixups(): readonly Fixup[] {
    return [...this.#fixups.values()];
  }

  /** Reserves a slot. */
  allocate(bytes: number): number {
    const align = bytes >= 8 ? 7 : 3;
    const slot = (this.#bytes + align) & ~align;
    this.#bytes = slot + bytes;
    return slot;
  }

  /** A slot holding the lower 64 bits of a value. */
  constant(value: bigint): number {
    return this.#constants.getOrInsertComputed(BigInt.asUintN(64, value), () => this.allocate(8));
  }

  #fixed(key: string, make: (slot: number) => Fixup): number {
    return this.#fixups.getOrInsertComputed(key, () => make(this.allocate(8))).slot;
  }

  /** A slot holding the address of a .global or .const variable. */
  global(name: string, offset: bigint): number {
    return this.#fixed(`global ${name} ${offset}`, (slot) => ({ kind: "global", slot, name, offset }));
  }

  /** A slot holding the offset of a .shared variable. */
  shared(name: string, offset: number): number {
    return this.#fixed(`shared ${name} ${offset}`, (slot) => ({ kind: "shared", slot, name, offset }));
  }

  /** A slot holding the local-memory address of a per-call variable. */
  local(offset: number): number {
    return this.#fixed(`local ${offset}`, (slot) => ({ kind: "local", slot, offset }));
  }

  /** A slot holding a special register. */
  special(name: string): number {
    return this.#fixed(`special ${name}`, (slot) => ({ kind: "special", slot, name }));
  }
}
