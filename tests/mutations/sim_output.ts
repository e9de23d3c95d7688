/** The protective lines of what simulated kernels say. */
import { inFile, type Mutation } from "./mutation.ts";

const output = ["tests/sim/output_test.ts", "tests/ptx/faults_test.ts"];

/** What can be broken there. */
export const simOutputMutations: readonly Mutation[] = [
  ...inFile("src/ptx/format.ts", ["tests/ptx/format_test.ts"], [
    [
      "      if (taken + needed > mostArguments) return whole;\n",
      "",
      "Arguments are read that no GPU passes.",
    ],
    [" || (twice === under && (below & 1n) === 1n)", " || twice === under", "Ties are not rounded to even."],
    ["  while (digits >= most) digits", "  if (false) digits", "Numbers that round up have a digit too many."],
    ["const conversion = /%%|%", "const conversion = /%%?", "What follows two percent signs takes an argument."],
    ['address === 0n ? "(null)".slice(0, most) : ', "", "A string that is NULL is an illegal address."],
  ]),
  ...inFile("src/ptx/system_calls.ts", output, [
    ["    if (format === 0n) return -1;\n", "", "A text that is NULL is an illegal address."],
    ["      at = (at + size - 1n) / size * size;\n", "", "Arguments are read beside their places."],
    ["    block.exit(state.thread);\n", "", "A thread whose assertion has failed is waited for."],
  ]),
  ...inFile("src/ptx/execution_state.ts", output, [
    [
      "    throw this.failure ?? this.#fault(",
      "    throw this.#fault(",
      "A failed assertion is hidden by what follows from it.",
    ],
    [
      "    this.limit = Math.min(this.limit, this.executed + more);\n",
      "",
      "Who spins for a thread whose assertion has failed hangs the simulator.",
    ],
  ]),
  ...inFile("src/ptx/launch.ts", output, [
    [
      "        if (this.#state.failure !== null) throw this.#state.failure;\n",
      "",
      "An assertion that fails does not fail its launch.",
    ],
    ["    state.failure = null;\n", "", "A launch fails for an assertion of the one before it."],
  ]),
  ...inFile("src/sim/simulator_state.ts", output, [
    [
      "    this.flush(context); // what was printed before it, and the text of a failed assertion\n",
      "",
      "The assertion that a query has found is never said.",
    ],
  ]),
  ...inFile("src/sim/calls/module.ts", output, [
    ["    simulator.flush(context);\n    const program", "    const program", "Loading a module says nothing."],
    ["\n      simulator.flush(module.context);\n", "", "Unloading a module says nothing."],
  ]),
  ...inFile("src/sim/calls/stream.ts", output, [
    ["        simulator.flush(stream.context);\n", "", "A host function runs before what was said."],
  ]),
  ...inFile("src/sim/output.ts", output, [
    [
      "    while (this.#bytes > capacity) this.#bytes -= this.#parts[this.#first++]?.text.length ?? this.#bytes;\n",
      "",
      "A program that relies on more room than there is looks right.",
    ],
    ["    this.#parts = [];\n", "", "What was said is said again."],
  ]),

  ...inFile("src/sim/simulator.ts", output, [[
    "    this.flush(context);\n    this.refuseFault(context);\n",
    "    this.refuseFault(context);\n",
    "Waiting says nothing.",
  ]]),
  ...inFile("src/sim/simulator.ts", output, [[
    "    this.flush(context);\n    context.alive = false;\n",
    "    context.alive = false;\n",
    "The last words of a context are lost.",
  ]]),
  ...inFile("src/sim/calls/launch.ts", output, [[
    "  simulator.flush(context);\n  const globals",
    "  const globals",
    "A launch does not say what was said before it.",
  ]]),
];
