/** The protective lines of `Cuda`. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const cudaMutations: readonly Mutation[] = [
  ...law("cuda/Cuda.constructor", [
    [
      'checkCuda(driver, "cuInit", cuInit(0));',
      "cuInit(0);",
      "A driver that fails to start is mistaken for one without devices.",
    ],
  ]),
  ...law("cuda/Cuda.device", [
    [
      "    if (device === undefined) {",
      "    if (false) {",
      "A device that does not exist is undefined instead of an error.",
    ],
  ]),
  ...law("cuda/Cuda.pointerAttributes", [
    [
      '    if (this.#closed) throw new TypeError("Cannot query pointer attributes of a closed Cuda");\n',
      "",
      "A closed Cuda answers queries about addresses with freed memory.",
    ],
  ]),
  ...law("cuda/Cuda.close", [
    [
      "      runAll(this.devices.map((device) => () => device.close()));\n",
      "",
      "The primary contexts are never released.",
    ],
    [
      "runAll(this.devices.map((device) => () => device.close()));",
      "for (const device of this.devices) device.close();",
      "A device that cannot be closed leaves all later ones open.",
    ],
  ]),
];
