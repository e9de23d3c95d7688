/** The protective lines of buffers: their bytes, their release, and staging. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const memoryMutations: readonly Mutation[] = [
  ...law("memory/finalizer", [
    [
      "if (wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
      "if (!wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
      "A leak is not reported.",
    ],
    [
      "  try {\n    freeIfUnused(state);\n",
      "  try {\n",
      "A buffer that is dropped without being closed is never freed.",
    ],
  ]),
  ...law("memory/freeIfUnused", [
    [
      "  if (driver !== null && isCapturing(driver)) freeAfterCaptures(driver, state);\n  else freeNow(state);\n",
      "  freeNow(state);\n",
      "A free becomes part of a graph, or invalidates its capture.",
    ],
    [
      "  if (!state.closed || state.pins > 0) return;\n",
      "  if (state.pins > 0) return;\n",
      "The end of an export frees a buffer that is open.",
    ],
    [
      "  if (!state.closed || state.pins > 0) return;\n",
      "  if (!state.closed) return;\n",
      "Memory is freed while a consumer still uses it.",
    ],
  ]),
  ...law("memory/freeNow", [
    [
      "state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument)",
      "state.free(state.ptr, state.stream, state.argument)",
      "Memory whose stream was closed before is not freed.",
    ],
    ["    state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument);\n", "", "Memory is never freed."],
    ["  state.owner = undefined;\n", "", "The owner of foreign memory is kept for ever."],
    ["      state.retained?.release();\n", "", "A device is never released."],
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
      "A home that could not be set is never destroyed.",
    ],
    ["  kept?.release();\n", "", "The former home is never destroyed."],
    [
      "  state.stream = stream; // first: an error when the old home is released must not discard the new one\n  kept?.release();\n",
      "  kept?.release();\n  state.stream = stream;\n",
      "A new home is kept for ever if the former one cannot be destroyed.",
    ],
    ["  stream.retain();\n", "", "The new home is destroyed before memory is freed on it."],
    [
      "  state.stream = stream; // first: an error when the old home is released must not discard the new one\n",
      "",
      "Memory is freed on the former home.",
    ],
  ]),
  ...law("memory/Pin.Symbol.dispose", [
    ["    this.#state = null;\n", "", "A second release frees memory that another consumer uses."],
    ["    unpin(state);\n", "", "Memory that is closed before its consumer releases it is never freed."],
  ]),
  ...law("memory/unpin", [
    ["  state.pins--;\n", "", "Memory that was exported is never freed."],
    ["    freeIfUnused(state);\n", "", "Memory that was exported is never freed."],
    ["    state.lender?.unpin();\n", "", "Memory is never freed once a part of it was exported."],
  ]),
  ...law("memory/lenderOfBytes", [
    ["buffers.get(memory) ?? null", "null", "A buffer is freed while a stream copies its bytes."],
  ]),
  ...law("memory/noteArrayBuffer", [
    ["noted.has(memory) || ", "", "A race is missed if there is another view of the array."],
    ["buffers.has(memory) || ", "", "A race is missed if a buffer's bytes are viewed."],
    [
      "  noteNewHostMemory(ffiPort()",
      "  void (ffiPort()",
      "An array at the place of another is reported to be in use.",
    ],
  ]),
  ...law("memory/lenderOf", [
    ["  if (owner instanceof MemoryBuffer) return owner;\n", "", "A buffer is freed while a part of it is exported."],
    [
      "owner instanceof ArrayBuffer ? lenderOfBytes(owner) : null",
      "null",
      "A buffer is freed while a view of its bytes is.",
    ],
  ]),
  ...law("memory/MemoryBuffer.over", [
    ["{ owner: ownBuffer(array) }", "{ owner: array }", "A buffer is freed while a stream copies to its bytes."],
  ]),
  ...law("memory/checkRange", [
    ["!Number.isSafeInteger(size) || size < 0) throw", "false) throw", "An invalid size is accepted."],
    ["ptr < 0n || ", "", "An invalid address is accepted."],
    [" || (ptr === 0n && size > 0)", "", "Bytes at NULL are accepted."],
    ["endsBeyondMemory(ptr, size)", "false", "Bytes beyond the end of the address space are accepted."],
  ]),
  ...law("memory/allocateFrom", [
    [" && buffer.size >= bytes", "", "An array ends beyond its memory."],
    ["  if (buffer instanceof MemoryBuffer) buffer.close();\n", "", "A buffer that nobody has stays allocated."],
  ]),
  ...law("memory/checkAllocation", [
    ["  checkRange(ptr, size);\n", "", "A resource's buffer has no valid address."],
    ["  if (stream !== null && !(stream instanceof CudaStream)) {", "  if (false) {", "An engine's error."],
    ['  if (typeof free !== "function") {', "  if (false) {", "The error comes when the memory is to be freed."],
  ]),
  ...law("memory/addressWithin", [
    ["byteOffset + size > ownSize(owner)", "false", "Memory past the end of an ArrayBuffer is read."],
    ["!areIntegers || ", "", "A fraction of a byte of an ArrayBuffer is accepted."],
  ]),
  ...law("memory/noAddress", [
    ["isShared ? ifShared : ifElsewhere", "ifShared", "An array of another context is said to lie in shared memory."],
  ]),
  ...law("memory/bytesOf", [
    ["  buffers.set(bytes.buffer, buffer);\n", "", "A buffer is freed while its bytes are in use."],
  ]),
  ...law("memory/placeOf", [
    ["    buffers.set(memory, buffer);\n", "", "A buffer is freed while a part of its bytes is in use."],
    ["start + length <= even + most ? even : start;", "even;", "Some parts of large memory cannot be read."],
    [
      "  if (length > most) throw tooLongForArray(length, most);\n",
      "",
      "A part longer than any array fails with an engine's error.",
    ],
    ["    those.set(first, memory);\n", "", "Closing a buffer leaves arrays over its memory."],
    ["memory?.detached !== false", "memory === undefined", "A part that was transferred is gone from its buffer."],
    [
      "if (!memory.detached) memory.transfer();",
      "memory.transfer();",
      "A buffer of which a part was transferred cannot be closed.",
    ],
  ]),
  ...law("memory/endsWithWorker", [
    [
      "if (!ffiPort().isWorker) return false;",
      "return false;",
      "Memory that a Worker has exported ends with the Worker.",
    ],
    [
      "memory instanceof ArrayBuffer && !(buffers.get(memory)?.endsWithWorker === false);",
      "memory instanceof ArrayBuffer;",
      "Memory of a resource that is viewed as a typed array is copied.",
    ],
  ]),
  ...law("memory/MemoryBuffer.id", [
    ["= ++lastId;", "= 1;", "Tests that compare arrays field by field pass, whatever the arrays contain."],
  ]),
  ...law("memory/MemoryBuffer.made", [
    ['    if (here === "host") noteNewHostMemory(ptr, size);\n', "", "New memory is reported to be in use."],
    [
      "    if (isHostObserved() && owner instanceof ArrayBuffer) noteArrayBuffer(owner);\n",
      "",
      "A new array is reported to be in use.",
    ],
    ["    if (stream !== null) stream.retain();\n", "", "A stream is destroyed before memory is freed on it."],
    ["    freeIfDropped(this, state);\n", "", "A buffer that is dropped without being closed is never freed."],
    [
      "buffer.#borrowedHome = stream ?? device.defaultStream;",
      "buffer.#borrowedHome = stream ?? null;",
      "The next user of borrowed memory is not ordered after work enqueued on it.",
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
    ["if (!this.#readonly) return", "return", "Memory that others assume constant is written to."],
    ["    if (!this.isHostAccessible) {\n", "    if (false) {\n", "The host reads device memory, and crashes."],
    [
      "    if (isFirst) freeIfDropped(this, this.#state);\n",
      "",
      "A stream that was made the home of foreign memory is never destroyed if the buffer is dropped.",
    ],
    [" || this.#bytes.buffer.detached", "", "Memory whose bytes were transferred can no longer be viewed."],
    ["    if (closed) throw this.#closed(doing);\n", "", "The address of freed memory is returned."],
    [
      "    if (owner instanceof ArrayBuffer && owner.detached && ptr !== 0n) throw",
      "    if (false) throw",
      "Memory that was transferred to another thread is read and written.",
    ],
    [
      '    if (this.#state.closed) throw this.#closed("give a home stream to");\n',
      "",
      "A freed buffer keeps a stream for ever.",
    ],
    ["    if (source.size !== this.size) {\n", "    if (false) {\n", "A copy runs beyond the end of a buffer."],
    ["    if (this.size > 0) copyBytes(", "    copyBytes(", "A copy of no bytes is an error of the driver."],
    ["    if (this.size > 0) fillBytes(", "    fillBytes(", "A fill of no bytes is an error of the driver."],
    [
      "(this.#state.stream ?? this.#borrowedHome)?.orSuccessor ?? null",
      "this.#state.stream ?? this.#borrowedHome",
      "A buffer cannot be used once its home is closed.",
    ],
  ]),
  ...law("memory/MemoryBuffer.pinUntilPassed", [
    [
      "capture.retain({ home: () => this.stream, retained: this.pinned() });",
      "this.pinned()[Symbol.dispose]();",
      "A graph uses memory that was released.",
    ],
  ]),
  ...law("memory/MemoryBuffer.pin", [
    ['    if (state.closed) throw this.#closed("pin");\n', "", "Freed memory is exported."],
    ["    state.pins++;\n", "", "Memory is freed while a consumer still uses it."],
    ["    state.lender?.pin(); // first: it may be closed\n", "", "A buffer is freed while its bytes are in use."],
    ["    unpin(this.#state);\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("memory/MemoryBuffer.close", [
    ["    emptyParts(this);\n", "", "Closing a large buffer leaves arrays over its memory."],
    [
      '      if (this.kind === "host") pinWhileInFlight(this, stream);',
      "",
      "Host memory is freed while a stream has yet to read it.",
    ],
    [
      "      pollIfFew();",
      "     ",
      "Memory that is closed after its use is not released.",
    ],
    ["      noteClosed();\n", "", "Memory that was used and closed is not released until much more has been used."],
    ["    if (this.#state.closed) return;\n", "", "Closing twice frees twice."],
    ["      this.#moveLast(stream);\n", "", "Memory is freed on another stream than the one asked for."],
    ["    this.#state.closed = true;\n", "", "Closing frees nothing, and the buffer stays usable."],
    [
      "    if (given?.detached === false) given.transfer(); // moves no bytes: the array becomes empty\n",
      "",
      "An array accesses freed memory.",
    ],
    ["(given?.detached === false)", "(given !== undefined)", "Memory whose bytes were transferred is never freed."],
    [
      "closedByUser(ptr); // an export or work in flight may keep it\n    freeIfUnused(this.#state);\n",
      "closedByUser(ptr); // an export or work in flight may keep it\n",
      "Closing frees nothing.",
    ],
  ]),
  ...law("memory/isRingWorthIt", [
    ["return rings.has(device) || ", "return ", "Copies do not use a ring that already exists."],
    [
      "(unstaged.get(device) ?? 0) + bytes >= worthStarting",
      "bytes >= worthStarting",
      "Many copies of a few MiB never get a ring.",
    ],
    ["(unstaged.get(device) ?? 0) + bytes >= worthStarting", "true", "One copy of 4 MiB starts a ring."],
  ]),
  ...law("memory/toDevice", [
    [
      "    ring.wait(chunk); // the bus may still read the slot's previous chunk\n",
      "",
      "Threads fill a slot that the bus still reads.",
    ],
    [
      "    team.finish(); // the chunk is in its slot\n",
      "",
      "The bus takes a chunk that threads have not copied yet.",
    ],
  ]),
  ...law("memory/callsOf", [
    [
      " + maxPageCalls(chunk)",
      "",
      "A large array cannot be read, because its threads get more calls than they can take.",
    ],
  ]),
  ...law("memory/pagesOf", [
    ["return isNew ? ", "return true ? ", "Pages that exist are populated again, which takes time."],
    ["next < end ? next : end, end", "next, next", "Pages past the end of the memory are populated."],
  ]),
  ...law("memory/toHost", [
    [
      "pagesOf(run, plan, chunk + 1)",
      "pagesOf(run, plan, chunk)",
      "Threads write to pages while others populate them.",
    ],
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
  ...law("memory/StagingRing.enqueue", [
    [
      "      waitForEnd(stream); // the slot's next user could not\n",
      "",
      "A slot is filled while the bus still writes it.",
    ],
  ]),
  ...law("memory/StagingRing.close", [
    [
      "    waitForDevice(this.#device); // transfers may still be in flight\n",
      "",
      "Memory that is still being transferred is freed.",
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
      "A copy without a stream fails with an unexplained error.",
    ],
    [
      "if (peers !== null) takeAccess(accessesBetween(source, peers.from, destination, peers.to), bytes);\n",
      "",
      "Buffers are copied through the host, at a tenth of the rate.",
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
      "A value that does not fit is filled in as a different one.",
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
      "A fill without a stream fails with a misleading error.",
    ],
    [
      "\n  if (width > 1 && Number(ptr & 3n) % width !== 0) {\n",
      "    if (false) {\n",
      "An unaligned fill fails with an unexplained error.",
    ],
  ]),
];
