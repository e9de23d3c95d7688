/** The protective lines of the simulator: what makes a program that is wrong go wrong. */
import { inFile, type Mutation } from "./mutation.ts";

const kernels = ["tests/sim/kernels_test.ts"];
const frees = ["tests/sim/early_frees_test.ts"];

/** What can be broken there. */
export const simMutations: readonly Mutation[] = [
  ...inFile("src/sim/ptx/launch.ts", kernels, [
    ["      if (left <= 0) this.#exhausted(thread, most);\n", "", "A kernel that spins hangs the program."],
    ["Math.min(length, left)", "length", "A launch does more than it may, and ends as if it had not."],
  ]),
  ...inFile("src/sim/machine.ts", frees, [
    ["if (this.options.freesWait) {", "{", "A program that frees what is in use is never wrong."],
  ]),
  ...inFile("src/sim/address_space.ts", frees, [
    [
      "      if (unfinished.length > 0) this.fill(address, Uint8Array.of(poison), bytes);\n",
      "",
      "Page-locked memory that is freed while it is read is read as it was.",
    ],
    ["this.#reuse(block) ?? ", "", "What is written to page-locked memory after its free harms nobody."],
    [
      "until.every(({ done }) => done)",
      "true",
      "Work that comes late writes into memory of this process that is anybody's.",
    ],
    [
      'allocation?.kind === "registered" && this.known.find(allocation.address)?.kind !== "registered"',
      "false",
      "Memory that was unregistered in use is used on.",
    ],
  ]),
  ...inFile("src/sim/calls/copy.ts", ["tests/sim/overlapping_copies_test.ts"], [
    ["const pieces = torn(machine, work);", "const pieces = work;", "A copy onto its own source comes out right."],
    [
      "first.to > first.from ? pieces : pieces.reverse()",
      "pieces",
      "A copy that moves bytes down, onto its own source, comes out right.",
    ],
    ["2 + random.below(7)", "1", "A copy of one row onto its own source comes out right."],
    ["2 + random.below(7)", "2", "Only one of the ways in which a copy onto its own source can go wrong is ever seen."],
  ]),
  ...inFile("src/sim/calls/module.ts", frees, [
    ["        module.isLoaded = false;\n", "", "Code that was unloaded in use runs on."],
  ]),
  ...inFile("src/memory/staging.ts", ["tests/memory/staging_test.ts"], [
    [
      "    this.#device.synchronize(); // the bus may still be at work\n",
      "",
      "Memory that the bus is at work with is freed.",
    ],
  ]),
  ...inFile("src/sim/kernels.ts", kernels, [
    [
      "      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;\n",
      "      return null;\n",
      "A kernel that spins leaves its context as good as new.",
    ],
  ]),
];
