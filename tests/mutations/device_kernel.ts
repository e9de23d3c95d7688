/** The protective lines of kernels and programs. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const deviceKernelMutations: readonly Mutation[] = [
  ...law("device/cacheFolder", [
    ["|| !port.mayUseFiles(place)", "", "A program that may not use files stops to ask for a cache."],
    ["mayUseFiles(place)", 'mayUseFiles("/")', "A program that may use the cache's folder alone compiles each time."],
    [' || place === "off"', "", "A cache that is off is a folder."],
  ]),
  ...law("device/cached", [
    [
      "      rmSync(temporary, { force: true }); // what a full disk has left of it\n",
      "",
      "Each program that cannot be kept leaves a file in the cache's folder.",
    ],
  ]),
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
      "A value that is not a stream causes an error inside this library.",
    ],
    [
      "if (sizes === null ? !Array.isArray(args) : sizes.length !== args?.length) {",
      "if (false) {",
      "A kernel reads arguments that were not given.",
    ],
    [
      "    if (!stream.needsContext) {\n",
      "    {\n",
      "A kernel that is launched on a default stream runs on the default stream of another device.",
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
      "The error for a kernel with many registers does not give their number.",
    ],
  ]),
  ...law("device/reasons", [
    [
      "if (threads > threadsMost) {",
      "if (threads > 1024) {",
      "The error does not mention the limit that a kernel declares.",
    ],
    [
      "if (exceeds(grid, gridMost)) {",
      "if (false) {",
      "The error for a grid that is too large does not give the limit.",
    ],
    [
      "} else if (exceeds(block, blockMost)) {",
      "} else if (false) {",
      "The error for a block that is too deep does not give the limit.",
    ],
  ]),
  ...law("device/Kernel.allowShared", [
    [
      "    if (bytes > most) {\n",
      "    if (false) {\n",
      "The error for too much shared memory does not say how much there is.",
    ],
    [
      "    this.#sharedMost = bytes;\n",
      "    this.#sharedMost = 2 * bytes;\n",
      "A larger request than the last one is refused by the driver.",
    ],
    [
      "    checkCuda(driver, `cuFuncSetAttribute of ${name}`, device.withContext(set));\n",
      "",
      "Kernels get 48 KiB of shared memory, whatever the device has.",
    ],
  ]),
  ...law("device/Kernel.write", [
    ["    this.#isWriting = true;\n", "", "Arguments are written to memory that was freed."],
    [
      "        if (size === expected) continue;\n",
      "        continue;\n",
      "An argument that is wider than its parameter is truncated.",
    ],
  ]),
  ...law("device/Kernel.slotsFor", [
    ["if (this.#isWriting) {", "if (false) {", "A kernel is launched with the arguments of another launch."],
    [" && this.#slots.capacity >= count", "", "Many arguments are written past the end of their memory."],
  ]),
  ...law("device/extent", [
    [
      "value >= 1 && value <= 0x7fff_ffff",
      "value <= 0x7fff_ffff",
      "An empty grid reaches the driver, which gives an unexplained error.",
    ],
    ["(first ? NaN : 1)", "1", "An invalid grid is launched as one block."],
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
    [" && value === (value | 0)", "", "A number that does not fit 32 bits loses its upper bits."],
    ["if (dtype.itemsize > slotBytes) throw", "if (false) throw", "An argument overwrites the next one."],
  ]),
  ...law("device/hasAccess", [
    ["  if (managed.value !== 0n) return true;\n", "", "Managed memory is reported as out of reach of other devices."],
    [
      "  if (pool.value === 0n) return false;\n",
      "  if (pool.value === 0n) return true;\n",
      "A kernel gets memory that is out of reach.",
    ],
    ["  location.id = ordinal;\n", "", "Device 0's access is assumed for every device."],
  ]),
  ...law("device/Program.constructor", [
    [
      "    closeIfDropped(this, stateOf(device, this.#references, this.#slots));\n",
      "",
      "Programs that are dropped without being closed pile up.",
    ],
    [
      "unload(device, handle, retained))",
      "unload(device, handle, new DisposableStack()))",
      "A context that had a program is never released.",
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
      "A kernel of unloaded code is returned.",
    ],
    [
      "      if (code === CUresult.CUDA_ERROR_NOT_FOUND) throw notFound(name);\n",
      "",
      "The error does not explain why a C++ kernel is not found.",
    ],
  ]),
  ...law("device/Program.close", [
    ["    this.#references.close();\n", "", "Loaded code piles up."],
  ]),
  ...law("device/unload", [
    ["besideCaptures(driver, take)", "take()", "Unloading code invalidates another library's capture."],
    ["      retained[Symbol.dispose]();\n", "", "A device that had a program is never released."],
    ["device.withContext(() => driver.module.cuModuleUnload(handle))", "0", "Loaded code piles up."],
  ]),
  ...law("device/stateOf", [
    [
      "      for (const one of slots) one.close(); // the driver has copied what it was passed\n",
      "",
      "Memory for the arguments of programs that are dropped piles up.",
    ],
    [
      "atRest(device).finally(() => references.close())",
      "Promise.resolve(references.close())",
      "Code is unloaded while a kernel runs it.",
    ],
  ]),
  ...law("device/atRest", [
    [
      "if (device.recordContext(event)) return await event.completed();",
      "return;",
      "Code is unloaded while a kernel runs it.",
    ],
  ]),
  ...law("device/looksAround", [
    ["/include|embed|import/", "/^\\s*#\\s*include/m", "A directive after a comment is not noticed."],
  ]),
  ...law("device/isSelfContained", [
    [
      'source.replace(splice, "")',
      "source",
      "A directive on two lines is not noticed, and the code is stale when the file changes.",
    ],
    [" || hidden.test(text)", "", "A name that is assembled from parts is not noticed."],
    [" && !hidden.test(option)", "", "An operator that is passed as an option is not noticed."],
    ["selfContained.test(option) && ", "", "A file that is passed as an option is not checked again."],
    ["  return options.every(", "  return false && options.every(", "Nothing is cached."],
  ]),
];
