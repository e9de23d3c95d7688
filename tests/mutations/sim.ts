/** The protective lines of the simulator: what makes a program that is wrong go wrong. */
import { inFile, type Mutation } from "./mutation.ts";

const kernels = ["tests/sim/kernels_test.ts"];

/** What can be broken there. */
export const simMutations: readonly Mutation[] = [
  ...inFile("src/sim/ptx/launch.ts", kernels, [
    ["      if (left <= 0) this.#exhausted(thread, most);\n", "", "A kernel that spins hangs the program."],
    ["Math.min(length, left)", "length", "A launch does more than it may, and ends as if it had not."],
  ]),
  ...inFile("src/sim/kernels.ts", kernels, [
    [
      "      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;\n",
      "      return null;\n",
      "A kernel that spins leaves its context as good as new.",
    ],
  ]),
];
