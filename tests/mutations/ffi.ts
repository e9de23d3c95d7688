/** The protective lines of FFI, the only part that depends on the runtime. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const ffiMutations: readonly Mutation[] = [
  ...law("ffi/isFarFromEnds", [
    ["address > 0n && ", "", "Elements at NULL are accepted."],
    [" && address <= farEnough", "", "Memory beyond the end of the address space is accepted."],
  ]),
  ...law("ffi/checkMemory", [
    [
      "  if (length > most) throw tooLongForArray(length, most);\n",
      "",
      "Memory larger than any array is refused with the engine's error.",
    ],
  ]),
  ...law("ffi/missingFile", [
    ['text.startsWith("~")', "false", "A path with ~ is only reported as missing, although a shell finds it."],
  ]),
  ...law("ffi/NativeArena.grow", [
    [
      "Math.max(chunkBytes, size + alignment)",
      "Math.max(chunkBytes, size)",
      "An aligned allocation extends past its chunk.",
    ],
  ]),
  ...law("ffi/alignedOffset", [
    ["Number(address % BigInt(alignment))", "0", "An address is not aligned to more than 16."],
  ]),
  ...law("ffi/decoder", [
    [", { ignoreBOM: true }", "", "A text that begins with U+FEFF loses it."],
  ]),
  ...law("ffi/decodeText", [
    ["    throw tooLong(bytes, { cause });\n", "    throw cause;\n", "A text that is too long is an engine's error."],
  ]),
  ...law("ffi/DeferredFinalizer.constructor", [
    ["if (!state.closed) collected", "collected", "The collector frees an object a second time."],
  ]),
  ...law("ffi/DeferredFinalizer.register", [
    [
      "    if (young === 1) queueMicrotask(this.#registerLater);\n",
      "",
      "Objects that are dropped without being closed are not registered with the collector.",
    ],
  ]),
  ...law("ffi/DeferredFinalizer.registerAll", [
    [
      "this.#registry.register(object, state);",
      "state;",
      "Objects that are dropped without being closed are never freed.",
    ],
    [
      "    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there\n",
      "",
      "The list of young objects keeps all of them alive.",
    ],
  ]),
  ...law("ffi/needNetwork", [
    [" && !partial", "", "An address that is denied is looked up."],
    ['host: at }).state === "granted"', 'host: at }).state !== ""', "A connection that is not permitted is attempted."],
  ]),
  ...law("ffi/needFfi", [
    [
      "    if (!this.#isGranted) {\n",
      "    if (false) {\n",
      "Who answers y when asked for FFI has granted too little of it.",
    ],
    ['state !== "granted" || partial', 'state !== "granted"', "A library is looked for in the current folder."],
    ['"granted" || partial', '"granted" && partial', "Without FFI an error does not say which flag to add."],
  ]),
  ...law("ffi/denoPort", [
    ['  checkVersion("deno", api.version.deno);\n', "", "A Deno that is too old fails later, by whatever it lacks."],
  ]),
  ...law("ffi/tooOld", [
    ["minor >= oldestMinor", "minor > oldestMinor", "The oldest version that works is refused."],
    [" && minor >= oldestMinor", "", "A version that is too old is taken for one that is not."],
    ["major > oldestMajor", "minor > oldestMinor", "A version is compared by its second number first."],
    [".map(Number)", ".map((part) => part.slice(0, 1)).map(Number)", "The tenth minor version is taken for the first."],
  ]),
  ...law("ffi/openLibrary", [
    ["    if (tried.has(path)) continue;\n", "", "A path is tried, and reported, twice."],
  ]),
  ...law("ffi/openFile", [
    [
      "if (status.isDirectory()) throw",
      "if (status.size < 0) throw",
      "Each call refuses a folder with a different error.",
    ],
    ["if (got === 0) break;", "if (got === 0) return into.length;", "Bytes that a file has lost are read as zeros."],
  ]),
  ...law("ffi/register", [
    ["  opened.set(key, library);\n", "", "A library is bound again each time it is opened."],
  ]),
  ...law("ffi/candidates", [
    ["`${escaped(prefix)}/lib/python3*", "`${prefix}/lib/python3*", "A prefix with brackets is treated as a pattern."],
  ]),
  ...law("ffi/readForeign", [
    [" || length > maxForeignBytes", "", "More bytes are copied than there is room for."],
  ]),
  ...law("ffi/SlabPool.allocate", [
    ["--slab.free === resting", "--slab.free === 0", "Memory that was returned is reused before it has rested."],
    ["    if (slab.free === piecesPerSlab) this.#idle--;\n", "", "A block that is in use is freed."],
  ]),
  ...law("ffi/SlabPool.free", [
    ["(slab.first + slab.free) % piecesPerSlab", "slab.first", "A free piece is lost."],
    [
      "    if (++slab.free === resting + 1) this.#open.push(slab);\n",
      "    ++slab.free;\n",
      "The pieces of a block that was full are lost.",
    ],
    ["++this.#idle > 1", "++this.#idle > 1e9", "Memory that is not needed is kept for ever."],
  ]),
  ...law("ffi/SlabPool.drop", [
    ["    libc().loading.free(slab.address);\n", "", "Memory that is not needed is kept for ever."],
    ["    this.#open.splice(this.#open.indexOf(slab), 1);\n", "", "Freed memory is allocated."],
  ]),
  ...law("ffi/scalarAccessors", [
    ["high > 0x1f_ffff", "high > 0x3f_ffff", "A size that is not an exact number is read as one."],
  ]),
  ...law("ffi/lowerStructs", [
    ["bytesOf(value).slice() : value", "bytesOf(value) : value", "The callee may change the caller's struct (arm64)."],
  ]),
  ...law("ffi/lowerToStack", [
    [
      "floats.length > floatRegisters",
      "floats.length > floatRegisters + 1",
      "A ninth number is where the callee expects the struct.",
    ],
  ]),
  ...law("ffi/attempt", [
    ["    if (code !== errno.EINTR) return -code;", "    return -code;", "A signal ends a call with an error."],
  ]),
  ...law("ffi/readTextFile", [
    ["  fclose(file);\n", "", "Every file that is read stays open."],
  ]),
  ...law("ffi/writeTextFile", [
    ["  stdio.fclose(file);\n", "", "Every file that is written stays open."],
  ]),
  ...law("ffi/ownExtent", [
    [
      "return (view instanceof DataView ? lengthOfDataView.call(view) : lengthOfTyped.call(view)) as number;",
      "return view.byteLength;",
      "Native code writes beyond an array that says it is longer.",
    ],
    [
      "return (view instanceof DataView ? offsetOfDataView.call(view) : offsetOfTyped.call(view)) as number;",
      "return view.byteOffset;",
      "Native code reads what is beside an array.",
    ],
    ["return sizeOfBuffer.call(buffer) as number;", "return buffer.byteLength;", "A buffer exposes other memory."],
  ]),
  ...law("ffi/exactAddress", [
    ["return number < exactEnd ? number : 0;", "return number;", "An address is rounded, and other memory is written."],
    ["(halves[1] ?? 0) * 2 ** 32", "(halves[1] ?? 0)", "The upper half of an address is lost."],
  ]),
];
