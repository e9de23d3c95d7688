/** The protective lines of PTX. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const ptxMutations: readonly Mutation[] = [
  ...law("ptx/ExecutionState.fault", [
    [
      "    throw this.failure ?? this.#fault(",
      "    throw this.#fault(",
      "A failed assertion is hidden by its consequences.",
    ],
  ]),
  ...law("ptx/ExecutionState.fail", [
    [
      "    this.limit = Math.min(this.limit, this.executed + more);\n",
      "",
      "A thread that spins for one whose assertion has failed hangs the simulator.",
    ],
  ]),
  ...law("ptx/conversion", [
    ["const conversion = /%%|%", "const conversion = /%%?", "Text after two percent signs takes an argument."],
  ]),
  ...law("ptx/formatC", [
    ["      if (taken + needed > maxArguments) return whole;\n", "", "More arguments are read than a GPU passes."],
    ['address === 0n ? "(null)".slice(0, most) : ', "", "A NULL string is an illegal address."],
  ]),
  ...law("ptx/roundedQuotient", [
    [" || (twice === under && (below & 1n) === 1n)", " || twice === under", "Ties are not rounded to even."],
  ]),
  ...law("ptx/scientific", [
    ["  while (digits >= most) digits", "  if (false) digits", "Numbers that round up have one digit too many."],
  ]),
  ...law("ptx/ld", [
    ['isStrong(reader) ? "volatile read" : "read"', '"read"', "A kernel that polls is reported."],
  ]),
  ...law("ptx/locator", [
    ["      if (carries) hi += 1;\n", "      hi += 1;\n", "An address that wraps around 32 bits is illegal."],
  ]),
  ...law("ptx/Program", [
    [
      "    const localAlign = Math.max(...[...reached].map((lowered) => lowered.localAlign));\n",
      "    const localAlign = 16;\n",
      "Local variables of a called function are not aligned as declared.",
    ],
  ]),
  ...law("ptx/initialBytes", [
    [
      "Number((address >> BigInt(8 * byte)) & 0xffn)",
      "Number(address & 0xffn)",
      "All bytes of a pointer are its lowest.",
    ],
    ["mask === 0xffn << BigInt(8 * byte)", "mask >= 0xffn << BigInt(8 * byte)", "Masks of several bytes pass for one."],
  ]),
  ...law("ptx/permutation", [
    ["  while (greatestCommonDivisor(step, count) !== 1) step--;\n", "", "Some blocks run twice, others never."],
  ]),
  ...law("ptx/Execution.constructor", [
    ["    state.failure = null;\n", "", "A launch fails because of an assertion in the one before it."],
  ]),
  ...law("ptx/Execution.run", [
    [
      "      if (left <= 0) this.#exhausted(thread, this.#state.limit);\n",
      "",
      "A kernel that spins hangs the program.",
    ],
    ["Math.min(length, left)", "length", "A launch exceeds its limit, and ends as if it had not."],
    [
      "        if (this.#state.failure !== null) throw this.#state.failure;\n",
      "",
      "An assertion that fails does not fail its launch.",
    ],
  ]),
  ...law("ptx/vprintf", [
    ["    if (format === 0n) return -1;\n", "", "A NULL format is an illegal address."],
    ["      at = (at + size - 1n) / size * size;\n", "", "Arguments are read at unaligned offsets."],
  ]),
  ...law("ptx/assertfail", [
    ["    block.exit(state.thread);\n", "", "Other threads wait for a thread whose assertion has failed."],
  ]),
];
