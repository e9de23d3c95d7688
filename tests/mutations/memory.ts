/** The protective lines of buffers: their bytes, their ends, and staging. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const memoryMutations: readonly Mutation[] = [
  ...law("memory/finalizer", [
    [
      "if (wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
      "if (!wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
      "A leak is not reported.",
    ],
    ["  try {\n    freeIfUnused(state);\n", "  try {\n", "A buffer that is only dropped is never freed."],
  ]),
  ...law("memory/freeIfUnused", [
    [
      "  if (driver !== null && isCapturing(driver)) freeAfterCaptures(driver, state);\n  else freeNow(state);\n",
      "  freeNow(state);\n",
      "A free becomes part of a graph, or spoils its capture.",
    ],
    [
      "  if (!state.closed || state.pins > 0) return;\n",
      "  if (state.pins > 0) return;\n",
      "The end of an export frees a buffer that is open.",
    ],
    [
      "  if (!state.closed || state.pins > 0) return;\n",
      "  if (!state.closed) return;\n",
      "Memory is freed under a consumer.",
    ],
  ]),
  ...law("memory/freeNow", [
    [
      "state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument)",
      "state.free(state.ptr, state.stream, state.argument)",
      "What is freed on a stream that was closed before is not freed.",
    ],
    ["    state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument);\n", "", "Memory is never freed."],
    ["  state.owner = undefined;\n", "", "The owner of foreign memory is kept for ever."],
    ["      state.retained?.release();\n", "", "A device is never given back."],
    [
      "      state.retained?.release();\n    } finally {\n      state.stream?.release();\n",
      "      state.retained?.release();\n    } finally {\n",
      "A stream is never destroyed.",
    ],
  ]),
  ...law("memory/moveHome", [
    [
      "    orderStreams(before, stream);\n",
      "",
      "Memory is freed while work on the former home still uses it.",
    ],
    [
      "    stream.release();\n    throw error;\n",
      "    throw error;\n",
      "A home that could not be taken is never destroyed.",
    ],
    ["  kept?.release();\n", "", "The former home is never destroyed."],
    [
      "  state.stream = stream; // first: an error when the old home is released must not discard the new one\n  kept?.release();\n",
      "  kept?.release();\n  state.stream = stream;\n",
      "A new home is kept for ever if the former one cannot be destroyed.",
    ],
    ["  stream.retain();\n", "", "The new home is destroyed before what is freed on it."],
    [
      "  state.stream = stream; // first: an error when the old home is released must not discard the new one\n",
      "",
      "Memory is freed on the former home.",
    ],
  ]),
  ...law("memory/Pin.Symbol.dispose", [
    ["    this.#state = null;\n", "", "A release that comes twice frees memory under another consumer."],
    [
      "\n    state.pins--;\n    freeIfUnused(state);\n",
      "      state.pins--;\n",
      "Memory that is closed before its consumer releases is never freed.",
    ],
  ]),
  ...law("memory/checkRange", [
    ["!Number.isSafeInteger(size) || size < 0) throw", "false) throw", "A size that cannot be is believed."],
    ["ptr < 0n || ", "", "An address that cannot be is believed."],
    [" || (ptr === 0n && size > 0)", "", "Bytes at NULL are believed."],
    ["endsBeyondMemory(ptr, size)", "false", "Bytes beyond the end of memory are believed."],
  ]),
  ...law("memory/addressWithin", [
    ["byteOffset + size > owner.byteLength", "false", "Memory behind an ArrayBuffer is read."],
    ["!areIntegers || ", "", "Half a byte of an ArrayBuffer is believed in."],
  ]),
  ...law("memory/bytesOf", [
    ["  buffers.set(bytes.buffer, buffer);\n", "", "A buffer is freed while somebody holds its bytes."],
  ]),
  ...law("memory/endsWithWorker", [
    [
      "if (!ffiPort().isWorker) return false;",
      "return false;",
      "What a Worker has lent ends with it.",
    ],
    [
      "memory instanceof ArrayBuffer && !(buffers.get(memory)?.endsWithWorker === false);",
      "memory instanceof ArrayBuffer;",
      "Memory of a resource is copied, if it is seen as a typed array.",
    ],
  ]),
  ...law("memory/MemoryBuffer.made", [
    ["    if (stream !== null) stream.retain();\n", "", "A stream is destroyed before what is freed on it."],
    ["    freeIfDropped(this, state);\n", "", "A buffer that is only dropped is never freed."],
    [
      "buffer.#borrowedHome = stream ?? device.defaultStream;",
      "buffer.#borrowedHome = stream ?? null;",
      "Whoever has borrowed memory next comes before what was enqueued on it.",
    ],
  ]),
  ...law("memory/exactPtr", [
    [
      'const ptr = buffer.#open("use");\n      return buffer.#exactPtr ??= exactAddress(ptr);',
      'return buffer.#exactPtr ??= exactAddress(buffer.#open("use"));',
      "Memory that was freed after a first copy is written.",
    ],
  ]),
  ...law("memory/MemoryBuffer.used", [
    ["    if (!this.isHostAccessible) {\n", "    if (false) {\n", "The host reads device memory, and crashes."],
    [" || this.#bytes.buffer.detached", "", "Memory whose bytes were transferred cannot be seen any more."],
    ["    if (closed) throw this.#closed(doing);\n", "", "The address of freed memory is given out."],
    [
      "    if (owner instanceof ArrayBuffer && owner.detached && ptr !== 0n) throw",
      "    if (false) throw",
      "Memory that another thread has been given is read and written.",
    ],
    [
      '    if (this.#state.closed) throw this.#closed("give a home stream to");\n',
      "",
      "A freed buffer holds a stream for ever.",
    ],
    ["    if (source.size !== this.size) {\n", "    if (false) {\n", "A copy runs beyond the end of a buffer."],
    ["    if (this.size > 0) copyBytes(", "    copyBytes(", "A copy of nothing is an error of the driver."],
    ["    if (this.size > 0) fillBytes(", "    fillBytes(", "A fill of nothing is an error of the driver."],
    [
      "(this.#state.stream ?? this.#borrowedHome)?.orSuccessor ?? null",
      "this.#state.stream ?? this.#borrowedHome",
      "A buffer cannot be used once its home was closed.",
    ],
  ]),
  ...law("memory/MemoryBuffer.pinUntilPassed", [
    [
      "capture.retain({ home: () => this.stream, retained: this.pinned() });",
      "this.pinned()[Symbol.dispose]();",
      "A graph uses memory that is given back.",
    ],
  ]),
  ...law("memory/MemoryBuffer.pin", [
    ['    if (this.#state.closed) throw this.#closed("pin");\n', "", "Freed memory is exported."],
    ["    this.#state.pins++;\n", "", "Memory is freed under a consumer."],
    ["state.pins--;\n", "", "Memory that was exported is never freed."],
    ["    this.#state.pins--;\n", "", "Memory that was exported is never freed."],
    [
      "    this.#state.pins--;\n    freeIfUnused(this.#state);\n",
      "    this.#state.pins--;\n",
      "Memory that was exported is never freed.",
    ],
  ]),
  ...law("memory/MemoryBuffer.close", [
    [
      '      if (this.kind === "host") pinWhileInFlight(this, stream);',
      "",
      "Host memory is freed while a stream has yet to read it.",
    ],
    [
      "      pollIfFew();",
      "     ",
      "Memory that work has used is not given back when it is closed afterwards.",
    ],
    ["      noteClosed();\n", "", "Memory that was used and closed is not given back before much else is used."],
    ["    if (this.#state.closed) return;\n", "", "Closing twice frees twice."],
    ["      this.#moveLast(stream);\n", "", "Memory is freed on another stream than the one asked for."],
    ["    this.#state.closed = true;\n", "", "Closing frees nothing, and the buffer stays usable."],
    [
      "    if (given?.detached === false) given.transfer(); // moves no bytes: the array becomes empty\n",
      "",
      "An array reaches memory that is freed.",
    ],
    ["(given?.detached === false)", "(given !== undefined)", "Memory whose bytes were transferred is never freed."],
    [
      "closedByUser(ptr); // an export or work in flight may keep it\n    freeIfUnused(this.#state);\n",
      "closedByUser(ptr); // an export or work in flight may keep it\n",
      "Closing frees nothing.",
    ],
  ]),
  ...law("memory/isRingWorthIt", [
    ["return rings.has(device) || ", "return ", "What a ring is there for goes without it."],
    [
      "(unstaged.get(device) ?? 0) + bytes >= worthStarting",
      "bytes >= worthStarting",
      "Many copies of a few MiB never get a ring.",
    ],
    ["(unstaged.get(device) ?? 0) + bytes >= worthStarting", "true", "One copy of 4 MiB pays for a ring."],
  ]),
  ...law("memory/toDevice", [
    [
      "    ring.wait(chunk); // the bus may still read the slot's previous chunk\n",
      "",
      "Threads fill a slot that the bus still reads.",
    ],
    [
      "    ring.team.finish(); // the chunk is in its slot\n",
      "",
      "The bus takes a chunk that threads have not copied yet.",
    ],
  ]),
  ...law("memory/callsOf", [
    [
      " + mostPageCalls(chunk)",
      "",
      "A large array cannot be read: its threads have more to do than they can be given.",
    ],
  ]),
  ...law("memory/pagesOf", [
    ["return isNew ? ", "return true ? ", "Pages that are there are made again, which takes time."],
    ["next < end ? next : end, end", "next, next", "Pages are made of memory behind the end."],
  ]),
  ...law("memory/toHost", [
    ["pagesOf(run, plan, chunk + 1)", "pagesOf(run, plan, chunk)", "Threads write to pages while others make them."],
    ["      ring.wait(chunk); // the bus is done with it\n", "", "Threads empty a slot that the bus still fills."],
    [
      "    ring.wait(chunk); // an earlier copy's chunk may still be in the slot\n",
      "",
      "The bus fills a slot whose bytes are still on their way to the device.",
    ],
  ]),
  ...law("memory/StagingRing.constructor", [
    [
      "observerOf(device.driver)?.closedByUser(this.#memory);",
      "// it goes",
      "The ring is reported as lost.",
    ],
  ]),
  ...law("memory/StagingRing.close", [
    [
      "    waitForDevice(this.#device); // transfers may still be in flight\n",
      "",
      "Memory that the bus is at work with is freed.",
    ],
  ]),
  ...law("memory/copyBytes", [
    [
      "\n    hostWaitsFor(stream); // the host copies, and no stream can wait for it\n",
      "",
      "The host copies what a stream has yet to write.",
    ],
    ["  destination.pinUntilPassed(stream);\n  source", "    source", "Memory is freed before a copy has written it."],
    ["\n  source.pinUntilPassed(stream);\n", "", "Memory is freed before a copy has read it."],
    [
      '\n  if (stream === undefined) throw new TypeError("Cannot copy device memory without',
      '    if (false) throw new TypeError("Cannot copy device memory without',
      "A copy without a stream is a nameless error.",
    ],
    [
      "if (peers !== null) takeAccess(accessesBetween(source, peers.from, destination, peers.to), bytes);\n",
      "",
      "Buffers go by way of the host, at a tenth of the rate.",
    ],
  ]),
  ...law("memory/directionOf", [
    [
      'kind === "host" || kind === "pinned";',
      'kind === "host";',
      "A copy to page-locked memory asks for device memory.",
    ],
  ]),
  ...law("memory/checkFill", [
    ["  if (size % width !== 0) {\n", "    if (false) {\n", "The last bytes are not filled."],
    [
      "!Number.isInteger(value) || value < 0 || value >= 256 ** width",
      "false",
      "A value that does not fit is filled in as another one.",
    ],
  ]),
  ...law("memory/fillBytes", [
    [
      "\n  hostWaitsFor(stream);\n  noteHostAccess(ptr",
      "    noteHostAccess(ptr",
      "The host fills what a stream has yet to read.",
    ],
    [
      '  if (!buffer.isHostAccessible) throw new TypeError("Cannot fill',
      '    if (false) throw new TypeError("Cannot fill',
      "A fill without a stream is a misleading error.",
    ],
    [
      "\n  if (width > 1 && Number(ptr & 3n) % width !== 0) {\n",
      "    if (false) {\n",
      "A fill that is not aligned is a nameless error.",
    ],
  ]),
];
