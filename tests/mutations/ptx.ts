/** The protective lines of PTX. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const ptxMutations: readonly Mutation[] = [
  ...law("ptx/ExecutionState.fault", [
    [
      "    throw this.failure ?? this.#fault(",
      "    throw this.#fault(",
      "A failed assertion is hidden by what follows from it.",
    ],
  ]),
  ...law("ptx/ExecutionState.fail", [
    [
      "    this.limit = Math.min(this.limit, this.executed + more);\n",
      "",
      "Who spins for a thread whose assertion has failed hangs the simulator.",
    ],
  ]),
  ...law("ptx/conversion", [
    ["const conversion = /%%|%", "const conversion = /%%?", "What follows two percent signs takes an argument."],
  ]),
  ...law("ptx/formatC", [
    ["      if (taken + needed > mostArguments) return whole;\n", "", "Arguments are read that no GPU passes."],
    ['address === 0n ? "(null)".slice(0, most) : ', "", "A string that is NULL is an illegal address."],
  ]),
  ...law("ptx/roundedQuotient", [
    [" || (twice === under && (below & 1n) === 1n)", " || twice === under", "Ties are not rounded to even."],
  ]),
  ...law("ptx/scientific", [
    ["  while (digits >= most) digits", "  if (false) digits", "Numbers that round up have a digit too many."],
  ]),
  ...law("ptx/ld", [
    ['isStrong(reader) ? "volatile read" : "read"', '"read"', "A kernel that polls is reported."],
  ]),
  ...law("ptx/permutation", [
    ["  while (greatestCommonDivisor(step, count) !== 1) step--;\n", "", "Some blocks run twice, others never."],
  ]),
  ...law("ptx/Execution.constructor", [
    ["    state.failure = null;\n", "", "A launch fails for an assertion of the one before it."],
  ]),
  ...law("ptx/Execution.run", [
    [
      "      if (left <= 0) this.#exhausted(thread, this.#state.limit);\n",
      "",
      "A kernel that spins hangs the program.",
    ],
    ["Math.min(length, left)", "length", "A launch does more than it may, and ends as if it had not."],
    [
      "        if (this.#state.failure !== null) throw this.#state.failure;\n",
      "",
      "An assertion that fails does not fail its launch.",
    ],
  ]),
  ...law("ptx/vprintf", [
    ["    if (format === 0n) return -1;\n", "", "A text that is NULL is an illegal address."],
    ["      at = (at + size - 1n) / size * size;\n", "", "Arguments are read beside their places."],
  ]),
  ...law("ptx/assertfail", [
    ["    block.exit(state.thread);\n", "", "A thread whose assertion has failed is waited for."],
  ]),
];
