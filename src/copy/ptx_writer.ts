/**
 * Writes PTX: instructions, and the registers that they need.
 *
 * @module
 */

/** Kinds of registers by the letter that PTX code commonly uses for them. */
const kinds = { p: ".pred", h: ".b16", r: ".b32", d: ".b64" } as const;

/** The name of a register. */
export type Register = `%${keyof typeof kinds}${number}`;

/** Collects the body of one kernel. */
export class PtxWriter {
  readonly #lines: string[] = [];
  readonly #counts = { p: 0, h: 0, r: 0, d: 0 };
  #labels = 0;

  /** A new register. */
  register(kind: keyof typeof kinds): Register {
    return `%${kind}${this.#counts[kind]++}`;
  }

  /** Writes an instruction whose result goes into a new register, which is returned. `$` stands for it. */
  make(kind: keyof typeof kinds, instruction: string): Register {
    const register = this.register(kind);
    this.line(instruction.replace("$", register));
    return register;
  }

  /** A register that holds zero until something else is written to it. */
  zero(kind: "h" | "r" | "d"): Register {
    return this.make(kind, `mov${kinds[kind]} $, 0`);
  }

  /** Writes an instruction. */
  line(instruction: string): void {
    this.#lines.push(`\t${instruction};`);
  }

  /** A new label. */
  label(): string {
    return `L${this.#labels++}`;
  }

  /** Places a label here, as a jump target. */
  place(label: string): void {
    this.#lines.push(`${label}:`);
  }

  /**
   * The whole program.
   *
   * @param name name of the kernel
   * @param shared bytes of shared memory, named `tile`
   * @param parameters names of 64-bit parameters. Default: two pointers
   */
  program(name: string, shared = 0, parameters: readonly string[] = ["to", "from"]): string {
    const registers = Object.entries(kinds).map(([kind, type]) =>
      `\t.reg ${type} %${kind}<${Math.max(1, this.#counts[kind as keyof typeof kinds])}>;`
    );
    return [
      ".version 7.0",
      ".target sm_70",
      ".address_size 64",
      `.visible .entry ${name}(${parameters.map((one) => `.param .u64 ${one}`).join(", ")})`,
      "{",
      ...registers,
      ...(shared > 0 ? [`\t.shared .align 16 .b8 tile[${shared}];`] : []),
      ...this.#lines,
      "\tret;",
      "}",
      "",
    ].join("\n");
  }
}
