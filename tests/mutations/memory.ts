/** The protective lines of buffers and of their frees. */
import { inFile, type Mutation } from "./mutation.ts";

const programs = "tests/memory/memory_programs_test.ts";
const buffers = "tests/memory/memory_buffer_test.ts";
const collection = "tests/memory/collection_test.ts";
const kept = "tests/order/pageable_in_use_test.ts";
const pageLocked = "tests/copy/page_locked_test.ts";

/** What can be broken there. */
export const memoryMutations: readonly Mutation[] = [
  ...inFile("src/ffi/deferred_finalizer.ts", [collection], [
    ["this.#registry.register(object, state);", "state;", "What is only dropped is never freed."],
    [
      "    if (young === 1) queueMicrotask(this.#registerLater);\n",
      "",
      "The collector is not told of what is only dropped.",
    ],
    [
      "    this.#young.length = 0; // emptied, not replaced: a collector that scans the stack may still find the array there\n",
      "",
      "The list of young objects keeps all of them alive.",
    ],
    ["if (!state.closed) collected", "collected", "The collector frees a second time."],
  ]),
  ...inFile("src/ffi/slab.ts", ["tests/ffi/slab_test.ts"], [
    ["--slab.free === resting", "--slab.free === 0", "What is given back is taken again before it has rested."],
    ["(slab.first + slab.free) % piecesPerSlab", "slab.first", "A piece that is free is lost."],
    [
      "    if (++slab.free === resting + 1) this.#open.push(slab);\n",
      "    ++slab.free;\n",
      "The pieces of a block that was full are lost.",
    ],
    ["++this.#idle > 1", "++this.#idle > 1e9", "Memory that nobody needs is kept for ever."],
    ["    if (slab.free === piecesPerSlab) this.#idle--;\n", "", "A block that is in use is freed."],
    ["    libc().loading.free(slab.address);\n", "", "Memory that nobody needs is kept for ever."],
    ["    this.#open.splice(this.#open.indexOf(slab), 1);\n", "", "Memory that is freed is handed out."],
  ]),
  ...inFile("src/order/deferred_free.ts", ["tests/order/deferred_free_test.ts", programs], [
    [" && mayFree(one.passed);", ";", "Memory is freed while work still uses it."],

    ["    pending.push(one);\n    if", "    if", "What is not done when somebody looks is never freed."],

    ["      errors.push(error);\n", "      throw error;\n", "What stands behind a free that fails is never freed."],
    ["  if (errors.length > 0) throw errors[0];\n", "", "A free that fails goes unnoticed."],
    ["    return isSticky(error);\n", "    throw error;\n", "A context that is lost makes every allocation fail."],

    ["    return isSticky(error);\n", "    return false;\n", "Memory of a context that is lost is waited for."],
    ["    return isSticky(error);\n", "    return true;\n", "A question that fails frees memory that work still uses."],

    [
      "  if (isCapturing(work.device.driver)) return false; // nothing may be queried meanwhile\n",
      "",
      "Asking spoils a capture.",
    ],
    [
      "    stream.synchronize(); // which says what is wrong, if it is something else\n",
      "",
      "Without an event, memory is freed while work still uses it.",
    ],

    ["    passed.close();\n", "", "Events pile up."],
    ["    free();\n  } finally {", "  } finally {", "Memory is never freed."],
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
    ["      device[Symbol.dispose]();\n", "", "A device is never given back."],
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
      "device: stream.device.retained({ evenClosed: true })",
      "device: new DisposableStack()",
      "The context goes before the event that tells when to free.",
    ],
    ["    if (!isOver(passed)) passed.synchronize();\n", "", "Draining frees memory while work still uses it."],
  ]),
  ...inFile("src/memory/memory_resource.ts", ["tests/memory/host_memory_resource_test.ts"], [
    ["!Number.isSafeInteger(bytes) || ", "", "A size that is no whole number is allocated as another one."],
    [" || bytes < 0", "", "A negative size is allocated as an enormous one."],
  ]),
  ...inFile("src/memory/staging.ts", [programs], [
    [
      "stream.device.copy(to, from, bytes,",
      "(stream.device.siblings[0] ?? stream.device).copy(to, from, bytes,",
      "A copy goes to the default stream of another device.",
    ],
  ]),
  ...inFile("src/order/deferred_free.ts", ["tests/order/deferred_free_test.ts"], [
    [
      "  if (device.isGone) return next(); // its context has gone while another device was waited for\n",
      "",
      "What waits for a device whose Cuda is closed meanwhile is never freed.",
    ],
    [
      "    if (!stream.isKnownNonBlocking) stream.device.synchronize();\n",
      "",
      "Without an event, memory is freed before the default stream's work, which comes first.",
    ],
    [
      "const next = () => freeAfterAll(others, free);",
      "const next = free;",
      "A pool is destroyed while one device is still at work with it.",
    ],
  ]),
  ...inFile("src/native/release_thunk.ts", ["tests/native/release_thunk_test.ts"], [
    [
      "    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n" +
      "    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n",
      "    ...[0xf0, 0xff, 0x00], // lock inc dword ptr [rax]\n" +
      "    ...(clear === undefined ? [] : [0x48, 0xc7, 0x47, clear, 0, 0, 0, 0]), // mov qword ptr [rdi + clear], 0\n",
      "A consumer writes to a struct that is freed.",
    ],
    ["[0x48, 0xc7, 0x47, clear, 0", "[0xc7, 0x47, clear, 0", "Half of a pointer says that an array is there."],
    ["...[0xf0, 0xff, 0x00], // lock", "...[0xff, 0x00], // lock", "A release is lost."],
    ["0x8803fc22", "0x88037c22", "On arm64 the count is seen before the struct is cleared."],
  ]),
  ...inFile("src/order/deferred_free.ts", [pageLocked], [
    [
      "(stream.isKnownNonBlocking && isOver(stream))",
      "isOver(stream)",
      "Memory is freed that a default stream still uses.",
    ],
  ]),
  ...inFile("src/device/stream.ts", ["tests/order/order_test.ts", "tests/dlpack/host_consumers_test.ts"], [
    [
      "      return ask(event);\n    } finally {\n      this.device.releaseEvent(event);\n",
      "      return ask(event);\n    } finally {\n",
      "An event is lost with each wait.",
    ],
  ]),
  ...inFile("src/device/stream.ts", [pageLocked], [
    [
      "if (this.isKnownNonBlocking) return this.isDone;",
      "return this.isDone;",
      "A default stream's work is not waited for.",
    ],
    [
      "if (this.isKnownNonBlocking) return this.synchronize();",
      "return this.synchronize();",
      "The host does not wait for a default stream's work.",
    ],
    [
      "return new CudaStream(new StreamState(device, handle, false, owner, null));",
      "return new CudaStream(new StreamState(device, handle, true, owner, null));",
      "A stream of which nothing is known is taken for one that ignores default streams.",
    ],
  ]),
  ...inFile("src/copy/copy.ts", [pageLocked], [[
    "    await readBack(array, bytes, layout, stream, null);\n",
    '    copyHost(onHost(array, "read", false), { bytes, offset: 0, layout });\n',
    "What comes as a typed array is not written yet.",
  ]]),
  ...inFile("src/copy/copy.ts", [pageLocked], [[
    "order?.waitUntilReady()",
    "order?.synchronize()",
    "The host copies what a default stream has not written yet.",
  ]]),
  ...inFile("src/view/print.ts", ["tests/view/print_test.ts"], [
    [
      "    staging.pinUntilPassed(stream); // what was enqueued before the failure still writes there\n",
      "",
      "A print that fails leaves copies to memory that was given back.",
    ],
  ]),
  ...inFile("src/view/print.ts", [pageLocked], [
    ["    view.stream?.waitUntilReady(); // page-locked", "    // page-locked", "What is printed is not written yet."],
  ]),
  ...inFile("src/order/deferred_free.ts", [kept], [
    [" || bytes >= enoughBytes", "", "Copies that nobody waits for keep ever more memory."],
    ["busy.add(one.stream)", "one", "Whoever looks asks after every mark of a stream, not only after its first."],
  ]),
  ...inFile("src/native/huge_pages.ts", ["tests/native/huge_pages_test.ts"], [
    ["libc().paging.madvise(first, length, MADV.HUGEPAGE);", "", "Large new memory is slow to write."],
    [" - first) / page * page", " - first) / page / 2n * page", "Half of a large array is slow to write."],
  ]),
  ...inFile("src/order/pageable_in_use.ts", [kept], [
    ["  buffer.pin();\n", "", "Memory is freed before a copy is done."],
    ["    open.add(this);\n", "", "What a stream has used is not given back after its Cuda is closed."],
    ["  isWanted = open.size > 0;", "", "Memory that was used and closed is not given back before much else is used."],
    ["  isWanted = false;\n", "", "Every allocation marks all streams."],
    ["Math.max(buffer.size, share)", "buffer.size", "Thousands of small arrays are kept."],
    ["Math.max(buffer.size, share)", "share", "Copies keep 64 arrays of whatever size."],
    ["this.#weight >= much || ", "", "Copies that nobody waits for keep ever more memory."],
    [" || !stream[internals].isHandleStable", "", "The end of a stream is marked after it was destroyed."],
    [" || stream.device.isClosed", "", "What was used after its Cuda was closed is kept for ever."],
    ["if (one.#stream.device === device) one.onClosing();", "one;", "What a default stream has used is kept for ever."],
    ["      pollPending();\n", "", "After its Cuda is closed nobody looks for what a stream has used."],
    ["captureOf(this.#stream) === null", "true", "A mark becomes part of a graph, and memory is kept for ever."],
    ["free, this.#weight", "free", "Nobody looks for what other copies have used."],
    ["    this.#stream[internals].watcher = null;\n", "", "Memory is given back twice."],
    ["quietly(() => buffer.unpin())", "buffer.unpin()", "One free that fails keeps others from being done."],
  ]),
  ...inFile("src/device/stream.ts", [kept], [
    ["(this.isOwned || this.isDefault)", "true", "The end of somebody's stream is marked after he destroyed it."],
    [" && !this.isClosedByUser;", ";", "The end of a stream is marked after it was destroyed."],
    [
      "besideCaptures(driver, synchronize));\n    this.#state.watcher?.onPassed();",
      "besideCaptures(driver, synchronize));",
      "Waiting for a stream does not give back what it has used.",
    ],
    [
      "event.synchronize());\n    this.#state.watcher?.onPassed();",
      "event.synchronize());",
      "Waiting for a stream does not give back what it has used.",
    ],
    [
      "    this.#state.watcher?.onPassed();\n    return true;",
      "    return true;",
      "Finding a stream done does not give back what it has used.",
    ],
  ]),
  ...inFile("src/device/completion.ts", [kept], [[
    "if (state === CUresult.CUDA_SUCCESS) stream[internals].watcher?.onPassed();\n  else ",
    "",
    "Waiting for a stream does not give back what it has used.",
  ]]),
  ...inFile("src/memory/memory_buffer.ts", ["tests/memory/host_order_test.ts"], [
    [
      '      if (this.kind === "host") pinWhileInFlight(this, stream);',
      "",
      "Host memory is freed while a stream has yet to read it.",
    ],
  ]),
  ...inFile("src/memory/transfer.ts", ["tests/memory/host_order_test.ts"], [[
    "\n  stream?.waitUntilReady();\n  noteHostAccess(ptr",
    "    noteHostAccess(ptr",
    "The host fills what a stream has yet to read.",
  ]]),
  ...inFile("src/memory/transfer.ts", ["tests/memory/host_order_test.ts"], [[
    "\n    stream?.waitUntilReady(); // the host copies, and no stream can wait for it\n",
    "",
    "The host copies what a stream has yet to write.",
  ]]),
  ...inFile("src/memory/memory_buffer.ts", [kept, "tests/sim/behaviours_test.ts"], [
    [
      "      pollIfFew(); // perhaps",
      "      // perhaps",
      "Memory that work has used is not given back when it is closed afterwards.",
    ],
    ["      freeSoon();\n", "", "Memory that was used and closed is not given back before much else is used."],
    [
      "capture.retain({ home: () => this.stream, retained: this.pinned() });",
      "this.pinned()[Symbol.dispose]();",
      "A graph uses memory that is given back.",
    ],
  ]),
  ...inFile("src/memory/transfer.ts", [kept, "tests/sim/behaviours_test.ts"], [[
    "  destination.pinUntilPassed(stream);\n  source",
    "    source",
    "Memory is freed before a copy has written it.",
  ]]),
  ...inFile("src/memory/transfer.ts", [kept, "tests/sim/behaviours_test.ts"], [[
    "\n  source.pinUntilPassed(stream);\n",
    "",
    "Memory is freed before a copy has read it.",
  ]]),
  ...inFile("src/memory/memory_buffer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [
    ["    stream?.retain();\n", "", "A stream is destroyed before what is freed on it."],

    ["    freeIfDropped(this, state);\n", "", "A buffer that is only dropped is never freed."],

    ["    buffers.set(this.#bytes.buffer, this);\n", "", "A buffer is freed while somebody holds its bytes."],
    ["!Number.isSafeInteger(size) || size < 0) {", "false) {", "A size that cannot be is believed."],
    ["ptr < 0n || ", "", "An address that cannot be is believed."],
    [" || (ptr === 0n && size > 0)", "", "Bytes at NULL are believed."],
    ["ptr + BigInt(size) > addressEnd", "false", "Bytes beyond the end of memory are believed."],
    [
      "    if (closed) throw this.#closed(doing);\n",
      "",
      "The address of freed memory is given out.",
    ],
    [
      '    if (this.#state.closed) throw this.#closed("give a home stream to");\n',
      "",
      "A freed buffer holds a stream for ever.",
    ],
    [
      "      if (before !== null) stream.wait(before);\n",
      "",
      "Memory is freed while work on the former home still uses it.",
    ],
    [
      "      stream.release();\n      throw error;\n",
      "      throw error;\n",
      "A home that could not be taken is never destroyed.",
    ],

    [
      "buffer.#borrowedHome = stream ?? device.defaultStream;",
      "buffer.#borrowedHome = stream ?? null;",
      "Whoever has borrowed memory next comes before what was enqueued on it.",
    ],
    ["    kept?.release();\n", "", "The former home is never destroyed."],
    [
      "    this.#state.stream = stream; // first: what the driver says to the end of the former home must not keep the new one\n    kept?.release();\n",
      "    kept?.release();\n    this.#state.stream = stream;\n",
      "A new home is kept for ever if the former one cannot be destroyed.",
    ],

    ["    stream.retain();\n", "", "The new home is destroyed before what is freed on it."],

    [
      "    this.#state.stream = stream; // first: what the driver says to the end of the former home must not keep the new one\n",
      "",
      "Memory is freed on the former home.",
    ],
    ["    if (!this.isHostAccessible) {\n", "    if (false) {\n", "The host reads device memory, and crashes."],
    ["    if (source.size !== this.size) {\n", "    if (false) {\n", "A copy runs beyond the end of a buffer."],
    [
      "    if (this.size > 0) copyBytes(",
      "    copyBytes(",
      "A copy of nothing is an error of the driver.",
    ],
    [
      "    if (this.size > 0) fillBytes(",
      "    fillBytes(",
      "A fill of nothing is an error of the driver.",
    ],
    [
      '    if (this.#state.closed) throw this.#closed("pin");\n',
      "",
      "Freed memory is exported.",
    ],
    ["byteOffset + size > owner.byteLength", "false", "Memory behind an ArrayBuffer is read."],
    ["!areIntegers || ", "", "Half a byte of an ArrayBuffer is believed in."],
    [
      "(this.#state.stream ?? this.#borrowedHome)?.orSuccessor ?? null",
      "this.#state.stream ?? this.#borrowedHome",
      "A buffer cannot be used once its home was closed.",
    ],
    [
      "    if (owner instanceof ArrayBuffer && owner.detached && ptr !== 0n) {\n",
      "    if (false) {\n",
      "Memory that another thread has been given is read and written.",
    ],
    ["    this.#state.pins++;\n", "", "Memory is freed under a consumer."],
    ["state.pins--;\n", "", "Memory that was exported is never freed."],
    ["    if (this.#state.closed) return;\n", "", "Closing twice frees twice."],
    [
      "      this.#moveLast(stream);\n",
      "",
      "Memory is freed on another stream than the one asked for.",
    ],

    ["    this.#state.closed = true;\n", "", "Closing frees nothing, and the buffer stays usable."],
    [
      "    if (given?.detached === false) given.transfer(); // moves no bytes: the array becomes empty\n",
      "",
      "An array reaches memory that is freed.",
    ],
    ["(given?.detached === false)", "(given !== undefined)", "Memory whose bytes were transferred is never freed."],
    [" || this.#bytes.buffer.detached", "", "Memory whose bytes were transferred cannot be seen any more."],
    ["    this.#state.pins--;\n", "", "Memory that was exported is never freed."],
    [
      "    this.#state.pins--;\n    freeIfUnused(this.#state);\n",
      "    this.#state.pins--;\n",
      "Memory that was exported is never freed.",
    ],
    [
      "closedByUser(ptr); // an export may keep it, or work that is under way\n    freeIfUnused(this.#state);\n",
      "closedByUser(ptr); // an export may keep it, or work that is under way\n",
      "Closing frees nothing.",
    ],
  ]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "  if (driver !== null && isCapturing(driver)) afterCaptures(driver, () => freeNow(state));\n  else freeNow(state);\n",
    "  freeNow(state);\n",
    "A free becomes part of a graph, or spoils its capture.",
  ]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [["    this.#state = null;\n", "", "A release that comes twice frees memory under another consumer."]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument)",
    "state.free(state.ptr, state.stream, state.argument)",
    "What is freed on a stream that was closed before is not freed.",
  ]]),
  ...inFile("src/memory/transfer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    '  if (!buffer.isHostAccessible) throw new TypeError("Cannot fill',
    '    if (false) throw new TypeError("Cannot fill',
    "A fill without a stream is a misleading error.",
  ]]),
  ...inFile("src/memory/transfer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [["  if (size % width !== 0) {\n", "    if (false) {\n", "The last bytes are not filled."]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "if (wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
    "if (!wantsLeakReports()) {\n    console.error(`Causeway: a MemoryBuffer",
    "A leak is not reported.",
  ]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "    state.free(state.ptr, state.stream?.orSuccessor ?? null, state.argument);\n",
    "",
    "Memory is never freed.",
  ]]),
  ...inFile("src/memory/transfer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    'kind === "host" || kind === "pinned";',
    'kind === "host";',
    "A copy to page-locked memory asks for device memory.",
  ]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "\n    state.pins--;\n    freeIfUnused(state);\n",
    "      state.pins--;\n",
    "Memory that is closed before its consumer releases is never freed.",
  ]]),
  ...inFile("src/order/loan.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[" isPinned = false;\n", "", "A release that comes twice frees memory under another consumer."]]),
  ...inFile("src/memory/transfer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "\n  if (width > 1 && Number(ptr & 3n) % width !== 0) {\n",
    "    if (false) {\n",
    "A fill that is not aligned is a nameless error.",
  ]]),
  ...inFile("src/memory/transfer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "!Number.isInteger(value) || value < 0 || value >= 256 ** width",
    "false",
    "A value that does not fit is filled in as another one.",
  ]]),
  ...inFile("src/memory/transfer.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    '\n  if (stream === undefined) throw new TypeError("Cannot copy device memory without',
    '    if (false) throw new TypeError("Cannot copy device memory without',
    "A copy without a stream is a nameless error.",
  ]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [["  try {\n    freeIfUnused(state);\n", "  try {\n", "A buffer that is only dropped is never freed."]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [["  state.owner = undefined;\n", "", "The owner of foreign memory is kept for ever."]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "  if (!state.closed || state.pins > 0) return;\n",
    "  if (state.pins > 0) return;\n",
    "The end of an export frees a buffer that is open.",
  ]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "  if (!state.closed || state.pins > 0) return;\n",
    "  if (!state.closed) return;\n",
    "Memory is freed under a consumer.",
  ]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [["      state.retained?.release();\n", "", "A device is never given back."]]),
  ...inFile("src/memory/buffer_state.ts", [
    buffers,
    "tests/memory/cuda_core_buffer_test.ts",
    "tests/memory/device_memory_resource_test.ts",
    "tests/memory/driver_memory_resource_test.ts",
    collection,
    "tests/sim/behaviours_test.ts",
    "tests/view/strided_memory_view_test.ts",
    programs,
  ], [[
    "      state.retained?.release();\n    } finally {\n      state.stream?.release();\n",
    "      state.retained?.release();\n    } finally {\n",
    "A stream is never destroyed.",
  ]]),
  ...inFile("src/copy/pinned_cache.ts", ["tests/copy/pinned_cache_test.ts"], [
    ["?.pop();", "?.at(-1);", "Two use the same memory at a time."],
    [
      "if (this.#isClosed || this.#bytes",
      "if (this.#bytes",
      "What is given back after its device is closed is never freed.",
    ],
    [" || this.#bytes + size > mostKept", "", "More and more memory is kept."],
    ["    this.#bytes -= size;\n", "", "Less and less memory is kept."],
    ["for (const buffer of kept) buffer.close();", ";", "What is kept outlives its device."],
    [", (own) => own.close());", ", () => {});", "What is kept outlives its device."],
    ["    closeAfter(buffer, stream);\n", "", "Memory whose use has failed is never freed."],
    [
      "  } catch {\n    buffer.close();\n",
      "  } catch {\n",
      "Memory is never freed if the stream was closed meanwhile.",
    ],
    [
      "    observerOf(this.#pinned.device.driver)?.closedByUser(buffer.ptr);",
      "    // observerOf;",
      "The checker takes what is kept for a leak.",
    ],
  ]),

  ...inFile("src/order/reclaim.ts", ["tests/order/deferred_free_test.ts"], [[
    "  pollDeferred();\n",
    "",
    "Nothing that is released later is ever given back.",
  ]]),
  ...inFile("src/order/reclaim.ts", ["tests/order/deferred_free_test.ts"], [[
    "  markClosed();\n",
    "",
    "Nothing that is released later is ever given back.",
  ]]),
];
