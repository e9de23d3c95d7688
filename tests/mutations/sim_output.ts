/** The protective lines of what simulated kernels say. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const simOutputMutations: readonly Mutation[] = [
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
  ...law("ptx/conversion", [
    ["const conversion = /%%|%", "const conversion = /%%?", "What follows two percent signs takes an argument."],
  ]),
  ...law("ptx/vprintf", [
    ["    if (format === 0n) return -1;\n", "", "A text that is NULL is an illegal address."],
    ["      at = (at + size - 1n) / size * size;\n", "", "Arguments are read beside their places."],
  ]),
  ...law("ptx/assertfail", [
    ["    block.exit(state.thread);\n", "", "A thread whose assertion has failed is waited for."],
  ]),
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
  ...law("ptx/Execution.run", [
    [
      "        if (this.#state.failure !== null) throw this.#state.failure;\n",
      "",
      "An assertion that fails does not fail its launch.",
    ],
  ]),
  ...law("ptx/Execution.constructor", [
    ["    state.failure = null;\n", "", "A launch fails for an assertion of the one before it."],
  ]),
  ...law("sim/SimulatorState.refuseFault", [
    [
      "    this.flush(context); // what was printed before it, and the text of a failed assertion\n",
      "",
      "The assertion that a query has found is never said.",
    ],
  ]),
  ...law("sim/moduleCalls", [
    ["    simulator.flush(context);\n    const program", "    const program", "Loading a module says nothing."],
    ["\n      simulator.flush(module.context);\n", "", "Unloading a module says nothing."],
  ]),
  ...law("sim/streamCalls", [
    ["        simulator.flush(stream.context);\n", "", "A host function runs before what was said."],
  ]),
  ...law("sim/Output.add", [
    [
      "    while (this.#bytes > capacity) this.#bytes -= this.#parts[this.#first++]?.text.length ?? this.#bytes;\n",
      "",
      "A program that relies on more room than there is looks right.",
    ],
  ]),
  ...law("sim/Output.flush", [
    ["    this.#parts = [];\n", "", "What was said is said again."],
  ]),
  ...law("sim/Simulator.wait", [
    [
      "    this.flush(context);\n    this.refuseFault(context);\n",
      "    this.refuseFault(context);\n",
      "Waiting says nothing.",
    ],
  ]),
  ...law("sim/Simulator.destroy", [
    [
      "    this.flush(context);\n    context.alive = false;\n",
      "    context.alive = false;\n",
      "The last words of a context are lost.",
    ],
  ]),
  ...law("sim/enqueueLaunch", [
    [
      "  simulator.flush(context);\n  const globals",
      "  const globals",
      "A launch does not say what was said before it.",
    ],
  ]),
];
