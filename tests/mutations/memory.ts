/** The protective lines of buffers and of their frees. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const memoryMutations: readonly Mutation[] = [
  ...law("ffi/DeferredFinalizer.registerAll", [
    ["this.#registry.register(object, state);", "state;", "What is only dropped is never freed."],
    [
      "    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there\n",
      "",
      "The list of young objects keeps all of them alive.",
    ],
  ]),
  ...law("ffi/DeferredFinalizer.register", [
    [
      "    if (young === 1) queueMicrotask(this.#registerLater);\n",
      "",
      "The collector is not told of what is only dropped.",
    ],
  ]),
  ...law("ffi/DeferredFinalizer.constructor", [
    ["if (!state.closed) collected", "collected", "The collector frees a second time."],
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
  ...law("order/freeWhere", [
    [" && mayFree(one.passed);", ";", "Memory is freed while work still uses it."],
    ["    pending.push(one);\n    if", "    if", "What is not done when somebody looks is never freed."],
    ["      errors.push(error);\n", "      throw error;\n", "What stands behind a free that fails is never freed."],
    ["  if (errors.length > 0) throw errors[0];\n", "", "A free that fails goes unnoticed."],
    ["busy.add(one.stream)", "one", "Whoever looks asks after every mark of a stream, not only after its first."],
  ]),
  ...law("order/isOver", [
    ["    return isSticky(error);\n", "    throw error;\n", "A context that is lost makes every allocation fail."],
    ["    return isSticky(error);\n", "    return false;\n", "Memory of a context that is lost is waited for."],
    ["    return isSticky(error);\n", "    return true;\n", "A question that fails frees memory that work still uses."],
    [
      "  if (isCapturing(work.device.driver)) return false; // nothing may be queried meanwhile\n",
      "",
      "Asking spoils a capture.",
    ],
  ]),
  ...law("order/waitForEnd", [
    [
      "    stream.synchronize(); // which says what is wrong, if it is something else\n",
      "",
      "Without an event, memory is freed while work still uses it.",
    ],
    [
      "    if (!stream.isKnownNonBlocking) stream.device.synchronize();\n",
      "",
      "Without an event, memory is freed before the default stream's work, which comes first.",
    ],
  ]),
  ...law("order/finish", [
    ["    passed.close();\n", "", "Events pile up."],
    ["    free();\n  } finally {", "  } finally {", "Memory is never freed."],
    ["      device[Symbol.dispose]();\n", "", "A device is never given back."],
  ]),
  ...law("order/pollAfterClose", [
    [
      "  device.onClose(pollPending);\n",
      "",
      "What is not done when all is closed keeps its context until somebody allocates.",
    ],
    [
      "  if (device.isClosed) return pollPending();\n",
      "  if (device.isClosed) return;\n",
      "What is closed after its Cuda keeps its context until somebody allocates.",
    ],
  ]),
  ...law("order/freeAfter", [
    [
      "if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();",
      "if (stream === null) return free();",
      "What could be freed at once stays until the next allocation.",
    ],
    [
      "if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();",
      "return free();",
      "Memory is freed while work still uses it.",
    ],
    [
      "(stream.isKnownNonBlocking && isOver(stream))",
      "isOver(stream)",
      "Memory is freed that a default stream still uses.",
    ],
  ]),
  ...law("order/freeAtEnd", [
    [
      "device: stream.device.retained({ evenClosed: true })",
      "device: new DisposableStack()",
      "The context goes before the event that tells when to free.",
    ],
  ]),
  ...law("order/drainFrees", [
    ["    if (!isOver(passed)) passed.synchronize();\n", "", "Draining frees memory while work still uses it."],
  ]),
  ...law("memory/checkSize", [
    ["!Number.isSafeInteger(bytes) || ", "", "A size that is no whole number is allocated as another one."],
    [" || bytes < 0", "", "A negative size is allocated as an enormous one."],
  ]),
  ...law("order/freeAfterAll", [
    [
      "  if (device.isGone) return next(); // its context has gone while another device was waited for\n",
      "",
      "What waits for a device whose Cuda is closed meanwhile is never freed.",
    ],
    [
      "const next = () => freeAfterAll(others, free);",
      "const next = free;",
      "A pool is destroyed while one device is still at work with it.",
    ],
  ]),
  ...law("native/x8664Thunk", [
    [
      "    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n",
      "A consumer writes to a struct that is freed.",
    ],
    ["[0x48, 0xc7, 0x47, clear, 0", "[0xc7, 0x47, clear, 0", "Half of a pointer says that an array is there."],
    ["...[0xf0, 0xff, 0x00], // lock", "...[0xff, 0x00], // lock", "A release is lost."],
  ]),
  ...law("native/aarch64Thunk", [
    ["0x8803fc22", "0x88037c22", "On arm64 the count is seen before the struct is cleared."],
  ]),
  ...law("device/atNext", [
    [
      "    device.releaseEvent(event);\n",
      "",
      "An event is lost with each wait.",
    ],
  ]),
  ...law("device/CudaStream.isReady", [
    [
      "if (this.isKnownNonBlocking) return this.isDone;",
      "return this.isDone;",
      "A default stream's work is not waited for.",
    ],
  ]),
  ...law("device/CudaStream.waitUntilReady", [
    [
      "if (this.isKnownNonBlocking) return this.synchronize();",
      "return this.synchronize();",
      "The host does not wait for a default stream's work.",
    ],
    [
      "event.synchronize());\n    this.#state.watcher?.onPassed();",
      "event.synchronize());",
      "Waiting for a stream does not give back what it has used.",
    ],
  ]),
  ...law("device/CudaStream.fromHandle", [
    [
      "return new CudaStream(new StreamState(device, handle, false, owner, null, CudaStream.#successors));",
      "return new CudaStream(new StreamState(device, handle, true, owner, null, CudaStream.#successors));",
      "A stream of which nothing is known is taken for one that ignores default streams.",
    ],
  ]),
  ...law("copy/readElements", [
    [
      "    await readBack(array, bytes, layout, stream, null);\n",
      '    copyHost(onHost(array, "read", false), { bytes, offset: 0, layout });\n',
      "What comes as a typed array is not written yet.",
    ],
  ]),
  ...law("copy/copyOnHost", [
    ["order?.waitUntilReady()", "order?.synchronize()", "The host copies what a default stream has not written yet."],
  ]),
  ...law("view/readElements", [
    [
      "    staging.pinUntilPassed(stream); // what was enqueued before the failure still writes there\n",
      "",
      "A print that fails leaves copies to memory that was given back.",
    ],
    ["    view.stream?.waitUntilReady(); // page-locked", "    // page-locked", "What is printed is not written yet."],
  ]),
  ...law("order/defer", [
    [" || bytes >= enoughBytes", "", "Copies that nobody waits for keep ever more memory."],
  ]),
  ...law("native/newArrayBuffer", [
    ["libc().paging.madvise(first, length, MADV.HUGEPAGE);", "", "Large new memory is slow to write."],
    [" - first) / page * page", " - first) / page / 2n * page", "Half of a large array is slow to write."],
  ]),
  ...law("order/pinWhileInFlight", [
    ["  buffer.pin();\n", "", "Memory is freed before a copy is done."],
  ]),
  ...law("order/InFlight.constructor", [
    ["    open.add(this);\n", "", "What a stream has used is not given back after its Cuda is closed."],
    ["if (one.#stream.device === device) one.onClosing();", "one;", "What a default stream has used is kept for ever."],
    ["      pollPending();\n", "", "After its Cuda is closed nobody looks for what a stream has used."],
  ]),
  ...law("order/freeSoon", [
    ["  isWanted = open.size > 0;", "", "Memory that was used and closed is not given back before much else is used."],
  ]),
  ...law("order/markClosed", [
    ["  isWanted = false;\n", "", "Every allocation marks all streams."],
  ]),
  ...law("order/InFlight.add", [
    ["Math.max(buffer.size, share)", "buffer.size", "Thousands of small arrays are kept."],
    ["Math.max(buffer.size, share)", "share", "Copies keep 64 arrays of whatever size."],
    ["this.#weight >= much || ", "", "Copies that nobody waits for keep ever more memory."],
    [" || !stream[internals].isHandleStable", "", "The end of a stream is marked after it was destroyed."],
    [" || stream.device.isClosed", "", "What was used after its Cuda was closed is kept for ever."],
  ]),
  ...law("order/InFlight.onClosing", [
    ["captureOf(this.#stream) === null", "true", "A mark becomes part of a graph, and memory is kept for ever."],
    ["free, this.#weight", "free", "Nobody looks for what other copies have used."],
  ]),
  ...law("order/InFlight.end", [
    ["    this.#stream[internals].watcher = null;\n", "", "Memory is given back twice."],
  ]),
  ...law("order/InFlight.free", [
    ["quietly(() => buffer.unpin())", "buffer.unpin()", "One free that fails keeps others from being done."],
  ]),
  ...law("device/StreamState.isHandleStable", [
    ["(this.isOwned || this.isDefault)", "true", "The end of somebody's stream is marked after he destroyed it."],
    [" && !this.isClosedByUser;", ";", "The end of a stream is marked after it was destroyed."],
  ]),
  ...law("device/CudaStream.synchronize", [
    [
      "besideCaptures(driver, synchronize));\n    this.#state.watcher?.onPassed();",
      "besideCaptures(driver, synchronize));",
      "Waiting for a stream does not give back what it has used.",
    ],
  ]),
  ...law("device/CudaStream.isDone", [
    [
      "    this.#state.watcher?.onPassed();\n    return true;",
      "    return true;",
      "Finding a stream done does not give back what it has used.",
    ],
  ]),
  ...law("device/completion", [
    [
      "if (state === CUresult.CUDA_SUCCESS) stream[internals].watcher?.onPassed();\n  else ",
      "",
      "Waiting for a stream does not give back what it has used.",
    ],
  ]),
  ...law("memory/MemoryBuffer.close", [
    [
      '      if (this.kind === "host") pinWhileInFlight(this, stream);',
      "",
      "Host memory is freed while a stream has yet to read it.",
    ],
    [
      "      pollIfFew(); // perhaps",
      "      // perhaps",
      "Memory that work has used is not given back when it is closed afterwards.",
    ],
    ["      freeSoon();\n", "", "Memory that was used and closed is not given back before much else is used."],
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
      "closedByUser(ptr); // an export may keep it, or work in flight\n    freeIfUnused(this.#state);\n",
      "closedByUser(ptr); // an export may keep it, or work in flight\n",
      "Closing frees nothing.",
    ],
  ]),
  ...law("memory/fillBytes", [
    [
      "\n  stream?.waitUntilReady();\n  noteHostAccess(ptr",
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
  ...law("memory/copyBytes", [
    [
      "\n    stream?.waitUntilReady(); // the host copies, and no stream can wait for it\n",
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
  ]),
  ...law("memory/MemoryBuffer.pinUntilPassed", [
    [
      "capture.retain({ home: () => this.stream, retained: this.pinned() });",
      "this.pinned()[Symbol.dispose]();",
      "A graph uses memory that is given back.",
    ],
  ]),
  ...law("memory/MemoryBuffer.made", [
    ["    stream?.retain();\n", "", "A stream is destroyed before what is freed on it."],
    ["    freeIfDropped(this, state);\n", "", "A buffer that is only dropped is never freed."],
    [
      "buffer.#borrowedHome = stream ?? device.defaultStream;",
      "buffer.#borrowedHome = stream ?? null;",
      "Whoever has borrowed memory next comes before what was enqueued on it.",
    ],
  ]),
  ...law("memory/bytesOf", [
    ["  buffers.set(bytes.buffer, buffer);\n", "", "A buffer is freed while somebody holds its bytes."],
  ]),
  ...law("memory/MemoryBuffer.used", [
    ["    if (!this.isHostAccessible) {\n", "    if (false) {\n", "The host reads device memory, and crashes."],
    [" || this.#bytes.buffer.detached", "", "Memory whose bytes were transferred cannot be seen any more."],
    ["    if (closed) throw this.#closed(doing);\n", "", "The address of freed memory is given out."],
    [
      "    if (owner instanceof ArrayBuffer && owner.detached && ptr !== 0n) {\n",
      "    if (false) {\n",
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
  ...law("memory/checkRange", [
    ["!Number.isSafeInteger(size) || size < 0) {", "false) {", "A size that cannot be is believed."],
    ["ptr < 0n || ", "", "An address that cannot be is believed."],
    [" || (ptr === 0n && size > 0)", "", "Bytes at NULL are believed."],
    ["ptr + BigInt(size) > addressEnd", "false", "Bytes beyond the end of memory are believed."],
  ]),
  ...law("memory/moveHome", [
    [
      "    if (before !== null) stream.wait(before);\n",
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
      "  state.stream = stream; // first: what the driver says to the end of the former home must not keep the new one\n  kept?.release();\n",
      "  kept?.release();\n  state.stream = stream;\n",
      "A new home is kept for ever if the former one cannot be destroyed.",
    ],
    ["  stream.retain();\n", "", "The new home is destroyed before what is freed on it."],
    [
      "  state.stream = stream; // first: what the driver says to the end of the former home must not keep the new one\n",
      "",
      "Memory is freed on the former home.",
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
  ...law("memory/addressWithin", [
    ["byteOffset + size > owner.byteLength", "false", "Memory behind an ArrayBuffer is read."],
    ["!areIntegers || ", "", "Half a byte of an ArrayBuffer is believed in."],
  ]),
  ...law("memory/freeIfUnused", [
    [
      "  if (driver !== null && isCapturing(driver)) afterCaptures(driver, () => freeNow(state));\n  else freeNow(state);\n",
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
  ...law("memory/Pin.Symbol.dispose", [
    ["    this.#state = null;\n", "", "A release that comes twice frees memory under another consumer."],
    [
      "\n    state.pins--;\n    freeIfUnused(state);\n",
      "      state.pins--;\n",
      "Memory that is closed before its consumer releases is never freed.",
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
  ...law("memory/checkFill", [
    ["  if (size % width !== 0) {\n", "    if (false) {\n", "The last bytes are not filled."],
    [
      "!Number.isInteger(value) || value < 0 || value >= 256 ** width",
      "false",
      "A value that does not fit is filled in as another one.",
    ],
  ]),
  ...law("memory/finalizer", [
    [
      "if (wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
      "if (!wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
      "A leak is not reported.",
    ],
    ["  try {\n    freeIfUnused(state);\n", "  try {\n", "A buffer that is only dropped is never freed."],
  ]),
  ...law("memory/directionOf", [
    [
      'kind === "host" || kind === "pinned";',
      'kind === "host";',
      "A copy to page-locked memory asks for device memory.",
    ],
  ]),
  ...law("order/Loan.constructor", [
    [" isPinned = false;\n", "", "A release that comes twice frees memory under another consumer."],
  ]),
  ...law("copy/Spares.take", [
    ["?.pop();", "?.at(-1);", "Two use the same memory at a time."],
    ["    this.#bytes -= size;\n", "", "Less and less memory is kept."],
  ]),
  ...law("copy/Spares.give", [
    [
      "if (this.#isClosed || this.#bytes",
      "if (this.#bytes",
      "What is given back after its device is closed is never freed.",
    ],
    [" || this.#bytes + size > mostKept", "", "More and more memory is kept."],
    [
      "    observerOf(this.#pinned.device.driver)?.closedByUser(buffer.ptr);",
      "    // observerOf;",
      "The checker takes what is kept for a leak.",
    ],
  ]),
  ...law("copy/Spares.close", [
    ["for (const buffer of kept) buffer.close();", ";", "What is kept outlives its device."],
  ]),
  ...law("copy/spares", [
    [", (own) => own.close());", ", () => {});", "What is kept outlives its device."],
  ]),
  ...law("copy/withPinned", [
    ["    closeAfter(buffer, stream);\n", "", "Memory whose use has failed is never freed."],
  ]),
  ...law("copy/closeAfter", [
    [
      "  } catch {\n    buffer.close();\n",
      "  } catch {\n",
      "Memory is never freed if the stream was closed meanwhile.",
    ],
  ]),
  ...law("order/reclaim", [
    ["  pollDeferred();\n", "", "Nothing that is released later is ever given back."],
    ["  markClosed();\n", "", "Nothing that is released later is ever given back."],
  ]),
];
