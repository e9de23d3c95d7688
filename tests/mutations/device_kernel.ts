/** The protective lines of kernels and programs. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const deviceKernelMutations: readonly Mutation[] = [
  ...law("device/withoutDigest", [
    [
      'if (digest.some((byte, i) => byte !== file[i])) throw new Error("damaged");',
      "",
      "A damaged file is run as code.",
    ],
  ]),
  ...law("device/Kernel.launch", [
    [
      "    if (!isSameDevice(stream.device, device)) {\n",
      "    if (false) {\n",
      "A kernel is launched in the context of another device, which does not know it.",
    ],
    [
      "    if (stream?.handleFor === undefined) {\n",
      "    if (false) {\n",
      "What is no stream is an error of this library's own insides.",
    ],
    [
      "if (sizes === null ? !Array.isArray(args) : sizes.length !== args?.length) {",
      "if (false) {",
      "A kernel reads arguments that are not there.",
    ],
    [
      "    if (!stream.needsContext) {\n",
      "    {\n",
      "A kernel that is launched on a default stream runs on that of another device.",
    ],
    [
      "    if (code === NEEDS_CONTEXT) code = this.#launchWithin",
      "    if (false) code = this.#launchWithin",
      "Nothing can be launched on a default stream.",
    ],
  ]),
  ...law("device/launchError", [
    [
      " || code === CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
      "",
      "A kernel with many registers is refused without a number.",
    ],
  ]),
  ...law("device/reasons", [
    ["if (threads > threadsMost) {", "if (threads > 1024) {", "What a kernel declares is no limit in its error."],
    ["if (exceeds(grid, gridMost)) {", "if (false) {", "A grid that is too large is refused without a number."],
    [
      "} else if (exceeds(block, blockMost)) {",
      "} else if (false) {",
      "A block that is too deep is refused without a number.",
    ],
  ]),
  ...law("device/Kernel.allowShared", [
    [
      "    if (bytes > most) {\n",
      "    if (false) {\n",
      "Too much shared memory is an error without the number that there is.",
    ],
    [
      "    this.#sharedMost = bytes;\n",
      "    this.#sharedMost = 2 * bytes;\n",
      "More than was asked for is refused by the driver.",
    ],
    [
      "    checkCuda(driver, `cuFuncSetAttribute of ${name}`, device.withContext(set));\n",
      "",
      "Kernels get 48 KiB of shared memory, whatever the device has.",
    ],
  ]),
  ...law("device/Kernel.write", [
    [
      "        if (size === expected) continue;\n",
      "        continue;\n",
      "An argument that is wider than its parameter is cut off.",
    ],
  ]),
  ...law("device/Kernel.slotsFor", [
    [" && this.#slots.capacity >= count", "", "Many arguments are written beyond the memory that is there for them."],
  ]),
  ...law("device/extent", [
    [
      "value >= 1 && value <= 0x7fff_ffff",
      "value <= 0x7fff_ffff",
      "An empty grid reaches the driver as a nameless error.",
    ],
    ["(first ? NaN : 1)", "1", "A grid that is no grid is launched as one block."],
  ]),
  ...law("device/ArgumentSlots.write", [
    [
      "if (word !== arg && BigInt.asIntN(64, arg) !== arg) throw",
      "if (false) throw",
      "An argument that does not fit loses its upper bits.",
    ],
    ["    checkReachable(arg, device);\n", "", "A kernel reads memory that it cannot reach."],
  ]),
  ...law("device/writeTyped", [
    [" && value === (value | 0)", "", "A number that does not fit 32 bits loses its upper ones."],
    ["if (dtype.itemsize > slotBytes) throw", "if (false) throw", "An argument overwrites the next one."],
  ]),
  ...law("device/hasAccess", [
    ["  if (managed.value !== 0n) return true;\n", "", "Managed memory is said to be out of reach of other devices."],
    [
      "  if (pool.value === 0n) return false;\n",
      "  if (pool.value === 0n) return true;\n",
      "A kernel is given memory out of reach.",
    ],
    ["  location.id = ordinal;\n", "", "Device 0's access is taken for every device's."],
  ]),
  ...law("device/Program.constructor", [
    ["    closeIfDropped(this, stateOf(device, this.#references));\n", "", "Programs that are only dropped pile up."],
    [
      "unload(device, handle, retained))",
      "unload(device, handle, new DisposableStack()))",
      "A context is never given back once it had a program.",
    ],
  ]),
  ...law("device/Program.kernel", [
    [
      "() => this.#references.retained()",
      "() => new DisposableStack()",
      "Code is unloaded while a graph still runs it.",
    ],
    [
      '    if (this.#references.isClosed) throw new TypeError("Cannot use a closed Program");\n',
      "",
      "A kernel of unloaded code is given out.",
    ],
    [
      "      if (code === CUresult.CUDA_ERROR_NOT_FOUND) throw notFound(name);\n",
      "",
      "Nobody says why a kernel of C++ is not found.",
    ],
  ]),
  ...law("device/Program.close", [
    ["    this.#references.close();\n", "", "Code piles up."],
  ]),
  ...law("device/unload", [
    ["besideCaptures(driver, take)", "take()", "Unloading code spoils another library's capture."],
    ["      retained[Symbol.dispose]();\n", "", "A device is never given back once it had a program."],
    ["device.withContext(() => driver.module.cuModuleUnload(handle))", "0", "Code piles up."],
  ]),
  ...law("device/stateOf", [
    [
      "atRest(device).finally(() => references.close())",
      "Promise.resolve(references.close())",
      "Code is unloaded under a running kernel.",
    ],
  ]),
  ...law("device/atRest", [
    [
      "if (device.recordContext(event)) return await event.completed();",
      "return;",
      "Code is unloaded under a running kernel.",
    ],
  ]),
  ...law("device/looksAround", [
    ["/include|embed|import/", "/^\\s*#\\s*include/m", "A directive after a comment is not seen."],
  ]),
  ...law("device/isSelfContained", [
    [
      'source.replace(splice, "")',
      "source",
      "A directive in two lines is not seen: code is stale when the file changes.",
    ],
    [" || hidden.test(text)", "", "A name that is put together is not seen."],
    [" && !hidden.test(option)", "", "An operator that comes by an option is not seen."],
    ["selfContained.test(option) && ", "", "A file that comes by an option is not looked at again."],
    ["  return options.every(", "  return false && options.every(", "Nothing is kept."],
  ]),
];
