/** The protective lines of the root. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const cudaMutations: readonly Mutation[] = [
  ...law("cuda/Cuda.constructor", [
    [
      'checkCuda(driver, "cuInit", cuInit(0));',
      "cuInit(0);",
      "A driver that does not start is taken for one without devices.",
    ],
  ]),
  ...law("cuda/Cuda.device", [
    [
      "    if (device === undefined) {",
      "    if (false) {",
      "A device that is not there is undefined instead of an error.",
    ],
  ]),
  ...law("cuda/Cuda.pointerAttributes", [
    [
      '    if (this.#closed) throw new TypeError("Cannot query pointer attributes of a closed Cuda");\n',
      "",
      "A closed Cuda answers about addresses by memory that it has freed.",
    ],
  ]),
  ...law("cuda/Cuda.close", [
    [
      "      runAll(this.devices.map((device) => () => device.close()));\n",
      "",
      "The primary contexts are never given back.",
    ],
    [
      "runAll(this.devices.map((device) => () => device.close()));",
      "for (const device of this.devices) device.close();",
      "A device that cannot be closed leaves all later ones open.",
    ],
  ]),
];
