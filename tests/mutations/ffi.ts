/** The protective lines of the only room that knows the runtime. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const ffiMutations: readonly Mutation[] = [
  ...law("ffi/isFarFromEnds", [
    ["address > 0n && ", "", "Elements at NULL are believed."],
    [" && address <= farEnough", "", "Memory beyond the end of memory is believed."],
  ]),
  ...law("ffi/missingFile", [
    ['text.startsWith("~")', "false", "Who writes ~ is told that there is no such file, which the shell shows."],
  ]),
  ...law("ffi/NativeArena.grow", [
    [
      "Math.max(chunkBytes, size + alignment)",
      "Math.max(chunkBytes, size)",
      "What is aligned reaches beyond its chunk.",
    ],
  ]),
  ...law("ffi/alignedOffset", [
    ["Number(address % BigInt(alignment))", "0", "An address is not aligned by more than 16."],
  ]),
  ...law("ffi/decoder", [
    [", { ignoreBOM: true }", "", "A text that begins with U+FEFF loses it."],
  ]),
  ...law("ffi/DeferredFinalizer.constructor", [
    ["if (!state.closed) collected", "collected", "The collector frees a second time."],
  ]),
  ...law("ffi/DeferredFinalizer.register", [
    [
      "    if (young === 1) queueMicrotask(this.#registerLater);\n",
      "",
      "The collector is not told of what is only dropped.",
    ],
  ]),
  ...law("ffi/DeferredFinalizer.registerAll", [
    ["this.#registry.register(object, state);", "state;", "What is only dropped is never freed."],
    [
      "    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there\n",
      "",
      "The list of young objects keeps all of them alive.",
    ],
  ]),
  ...law("ffi/needNetwork", [
    ['host: at }).state === "granted"', 'host: at }).state !== ""', "What has not been permitted is tried."],
  ]),
  ...law("ffi/openLibrary", [
    ["    if (tried.has(path)) continue;\n", "", "A place is tried, and told of, twice."],
  ]),
  ...law("ffi/openFile", [
    [
      "if (status.isDirectory()) throw",
      "if (status.size < 0) throw",
      "A folder is refused in another way by each call.",
    ],
    ["if (got === 0) break;", "if (got === 0) return into.length;", "What a file has lost is read as zeros."],
  ]),
  ...law("ffi/register", [
    ["  opened.set(key, library);\n", "", "A library is bound anew each time that it is opened."],
  ]),
  ...law("ffi/candidates", [
    ["`${escaped(prefix)}/lib/python3*", "`${prefix}/lib/python3*", "A prefix with brackets is a pattern."],
  ]),
  ...law("ffi/readForeign", [
    [" || length > mostForeignBytes", "", "More is copied than there is room for."],
  ]),
  ...law("ffi/SlabPool.allocate", [
    ["--slab.free === resting", "--slab.free === 0", "What is given back is taken again before it has rested."],
    ["    if (slab.free === piecesPerSlab) this.#idle--;\n", "", "A block that is in use is freed."],
  ]),
  ...law("ffi/SlabPool.free", [
    ["(slab.first + slab.free) % piecesPerSlab", "slab.first", "A piece that is free is lost."],
    [
      "    if (++slab.free === resting + 1) this.#open.push(slab);\n",
      "    ++slab.free;\n",
      "The pieces of a block that was full are lost.",
    ],
    ["++this.#idle > 1", "++this.#idle > 1e9", "Memory that nobody needs is kept for ever."],
  ]),
  ...law("ffi/SlabPool.drop", [
    ["    libc().loading.free(slab.address);\n", "", "Memory that nobody needs is kept for ever."],
    ["    this.#open.splice(this.#open.indexOf(slab), 1);\n", "", "Memory that is freed is handed out."],
  ]),
  ...law("ffi/scalarAccessors", [
    ["high > 0x1f_ffff", "high > 0x3f_ffff", "A size that is no exact number is read as one."],
  ]),
  ...law("ffi/lowerStructs", [
    ["bytesOf(value).slice() : value", "bytesOf(value) : value", "The callee may change the caller's struct (arm64)."],
  ]),
  ...law("ffi/lowerToStack", [
    [
      "floats.length > floatRegisters",
      "floats.length > floatRegisters + 1",
      "A ninth number lies where the callee looks for the struct.",
    ],
  ]),
  ...law("ffi/attempt", [
    ["    if (code !== errno.EINTR) return -code;", "    return -code;", "A signal ends a call."],
  ]),
  ...law("ffi/readTextFile", [
    ["  fclose(file);\n", "", "Every file that is read stays open."],
  ]),
  ...law("ffi/writeTextFile", [
    ["  stdio.fclose(file);\n", "", "Every file that is written stays open."],
  ]),
  ...law("ffi/exactAddress", [
    ["return number < exactEnd ? number : 0;", "return number;", "An address is rounded, and other memory written."],
    ["(halves[1] ?? 0) * 2 ** 32", "(halves[1] ?? 0)", "The upper half of an address is lost."],
  ]),
];
