/** The protective lines of memory resources, pools and peer access. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const memoryResourcesMutations: readonly Mutation[] = [
  ...law("memory/canBeGranted", [
    [" || isWithheld(access)", "", "A device gets the access that the pool's user has taken from it."],
    ["!has(refused, access) && ", "", "The driver is asked for every copy what it has refused."],
    ["pool.isClosed || isWithheld", "isWithheld", "A copy from a closed pool's memory throws."],
  ]),
  ...law("memory/planAccess", [
    [
      "decides === undefined || isTaken(decides)",
      "decides === undefined",
      "What is granted is asked for at every copy.",
    ],
    ["const decides = ", "const decides = accesses.find(isTaken) ?? ", "One of two devices moves what goes both ways."],
    [" || isCapturing(first.owner.driver)", "", "What a capture could refuse is asked for while it goes on."],
    [
      "access.buffer.pool !== null && isPossible(access)",
      "isPossible(access)",
      "Kernels go without access that they could have.",
    ],
  ]),
  ...law("memory/takeAccess", [
    [
      "  if (bytes < worthSaying || accesses.some(isTaken)) return;\n",
      "",
      "It is said of a fast copy that it is slow.",
    ],
  ]),
  ...law("memory/take", [
    ["note(isEnabled ? enabled : refused, access)", "note(refused, access)", "Access is taken for every copy."],
  ]),
  ...law("memory/DeviceMemoryResource.constructor", [
    [
      '    if (device.attribute("MEMORY_POOLS_SUPPORTED") === 0) {',
      "    if (false) {",
      "A device without pools answers with a nameless error.",
    ],
  ]),
  ...law("memory/DeviceMemoryResource.peerAccessibleBy", [
    ["    this.#peers.replace(devices);\n", "", "Assigning peers changes nothing."],
  ]),
  ...law("memory/device_memory_resource/DeviceMemoryResource.allocate", [
    [
      "        pool, // not this resource",
      "        Object.assign(pool, { of: this }), // and",
      "A resource keeps the buffers alive that it knows.",
    ],
    ["    checkSize(bytes);\n", "", "A negative size reaches the driver as an enormous one."],
    ["    reclaim();\n    refuseCapture", "    refuseCapture", "What has been released meanwhile is never given back."],
    ["    refuseCapture(stream, bytes);\n", "", "An allocation spoils a capture."],
    [
      "      pool.release(null);\n      throw error;\n",
      "      throw error;\n",
      "A pool is never given back after a failed allocation.",
    ],
    ["    pool.retain();\n", "", "A pool is destroyed under its buffers."],
    ["      if (bytes > 0) ptr =", "      ptr =", "The driver is asked for no bytes."],
  ]),
  ...law("memory/DeviceMemoryResource.close", [
    ["  close(): void {\n    this.pool.close();\n", "  close(): void {\n", "Pools pile up."],
  ]),
  ...law("memory/DeviceMemoryResource.allocate", [
    ["    const mode = relax(driver);\n", "    const mode = -1;\n", "Allocating spoils another library's capture."],
    ["if (bytes !== this.#bytes)", "if (this.#bytes === 0)", "All memory has the size of the first."],
    [
      "    if (code === CUresult.CUDA_ERROR_OUT_OF_MEMORY) throw this.#outOfMemory(bytes);\n",
      "",
      "Out of memory does not say how much was asked, used and free.",
    ],
    [
      '    checkCuda(driver, "cuMemAllocFromPoolAsync", code);\n',
      "",
      "A failed allocation gives out the address of an earlier one.",
    ],
    [
      "      if (!stream.needsContext) code = driver.pool.cuMemAlloc",
      "      code = driver.pool.cuMemAlloc",
      "Memory of a default stream is allocated on that of another device.",
    ],
    [
      "    if (code === NEEDS_CONTEXT) code = allocateWithin(stream, outParameter.$address, size, pool);\n",
      "",
      "Nothing is allocated on a default stream.",
    ],
  ]),
  ...law("memory/returnToPool", [
    [
      "  if (last.isLegacy) whenUnblocked(last, () => returnOn(last, ptr, pool));\n  else returnOn",
      "  returnOn",
      "What is freed on the default stream spoils another library's capture.",
    ],
    [
      "const last = home ?? pool.device.defaultStream;",
      "const last = pool.device.defaultStream;",
      "Memory is freed on the wrong stream.",
    ],
  ]),
  ...law("memory/returnOn", [
    ["    if (ptr !== 0n) freeInOrder(ptr, last);\n", "", "Memory is never freed."],
    ["if (ptr !== 0n) freeInOrder(ptr, last", "freeInOrder(ptr, last", "The driver is asked to free nothing."],
    ["    pool.release(last);\n", "", "A pool, and its device, is never given back."],
  ]),
  ...law("memory/freeInOrder", [
    [
      "  let code = NEEDS_CONTEXT;\n  const mode = relax(driver);\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "  let code = NEEDS_CONTEXT;\n  const mode = -1;\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "Freeing spoils another library's capture.",
    ],
    [
      "    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync(ptr, handle);\n",
      "    code = driver.pool.cuMemFreeAsync(ptr, handle);\n",
      "Memory of a default stream is freed on that of another device.",
    ],
    ["  if (code === NEEDS_CONTEXT) code = freeWithin(stream, ptr);\n", "", "Nothing is freed on a default stream."],
  ]),
  ...law("memory/pinned", [
    ["CU_MEMHOSTALLOC.PORTABLE", "0", "Other devices do not take the memory for page-locked."],
  ]),
  ...law("memory/usersOf", [
    [
      "canReach(one, { kind, pool: null }, device)",
      'kind !== "device"',
      "A device's memory without a home stream is gone when a copy of another device gets to it.",
    ],
  ]),
  ...law("memory/driver_memory_resource/DriverMemoryResource.allocate", [
    ["    checkSize(bytes);\n", "", "A negative size reaches the driver as an enormous one."],
    [
      "    reclaim();\n    return named(",
      "    return named(",
      "What has been released meanwhile is never given back.",
    ],
  ]),
  ...law("memory/DriverMemoryResource.make", [
    [
      "besideCaptures(device.driver, () => device.withContext(() => release(device, at)))",
      "device.withContext(() => release(device, at))",
      "Freeing page-locked memory spoils another library's capture.",
    ],
    [
      "if (home === null) freeAfterAll(usersOf(device, kind), freeNow);",
      "if (home === null) freeNow();",
      "Memory without a home stream is gone when work that is under way gets to it.",
    ],
    [
      "freeAfterAll(usersOf(device, kind), freeNow)",
      "freeAfterAll([device], freeNow)",
      "Memory without a home stream is gone when another device's work gets to it.",
    ],
    ["      stream?.release(); // the buffer retains it now\n", "", "A stream is never destroyed."],
    [
      "        else freeAfter(home, freeNow);\n",
      "        else freeNow();\n",
      "Memory is freed while work still uses it.",
    ],
    [
      "if (at !== 0n) besideCaptures(device.driver, () => device.withContext(() => release(device, at)));",
      "",
      "Memory is never freed.",
    ],
    ["if (at !== 0n) besideCaptures(", "besideCaptures(", "The driver is asked to free nothing."],
    [
      "() => device.withContext(() => release(device, at))",
      "() => release(device, at)",
      "Memory is freed in whatever context is current, or in none.",
    ],
    [
      "          } finally {\n            retained[Symbol.dispose]();\n",
      "          } finally {\n",
      "A device is never given back.",
    ],
    [
      "const ptr = bytes === 0 ? 0n : this.#allocate(bytes);",
      "const ptr = this.#allocate(bytes);",
      "No bytes are an error of the driver.",
    ],
  ]),
  ...law("memory/DriverMemoryResource.allocate", [
    [
      "besideCaptures(device.driver, () => device.withContext(acquire))",
      "device.withContext(acquire)",
      "Allocating page-locked memory spoils another library's capture.",
    ],
    [
      "throw isOutOfMemory(error) ? this.#outOfMemory(error, bytes) : error;",
      "throw error;",
      "Out of memory does not say how much was asked, used and free.",
    ],
  ]),
  ...law("memory/ManagedMemoryResource.prefetch", [
    [
      'if (size > 0) checkCuda(driver, "cuMemPrefetchAsync", ',
      'checkCuda(driver, "cuMemPrefetchAsync", ',
      "Moving an empty buffer is an error of the driver.",
    ],
    [
      "stream.enqueue(prefetch)",
      "this.device.within(prefetch)",
      "A prefetch goes to the default stream of another device.",
    ],
    ["to?.ordinal ?? CU_DEVICE_CPU", "to?.ordinal ?? 0", "Memory moves to a device instead of the host."],
  ]),
  ...law("memory/ManagedMemoryResource.advise", [
    [
      'if (size > 0) checkCuda(driver, "cuMemAdvise", ',
      'checkCuda(driver, "cuMemAdvise", ',
      "Advising on an empty buffer is an error of the driver.",
    ],
    ["location?.ordinal ?? CU_DEVICE_CPU", "location?.ordinal ?? 0", "Advice about the host is given about a device."],
  ]),
  ...law("memory/HostMemoryResource.constructor", [
    [
      "if (!Number.isSafeInteger(alignment) || alignment < 8 || Math.log2(alignment) % 1 !== 0) {",
      "if (false) {",
      "An alignment that is none reaches the C allocator.",
    ],
  ]),
  ...law("memory/HostMemoryResource.allocate", [
    ["    checkSize(bytes);\n", "", "A negative size reaches the C allocator as an enormous one."],
    ["stream: null, free })", "stream: null, free: () => {} })", "Host memory is never freed."],
    ["    reclaim();\n", "", "What consumers have released is never given back."],
  ]),
  ...law("memory/align", [
    ["  if (ptr === 0n) {\n", "  if (false) {\n", "A failed allocation is a buffer at address 0."],
  ]),
  ...law("memory/checked", [
    [
      "  if (isSize(from.size) && isSize(from.offset)) return bytes;\n",
      "  return bytes;\n",
      "Sizes that another process has made up are believed.",
    ],
  ]),
  ...law("memory/importPoolMemory", [
    ["  piece.buffers++;\n", "", "A piece that two buffers share is unmapped with the first."],
    ["    pool.retain();\n", "", "An imported pool is given back before its memory."],
    [
      "pieces.getOrInsertComputed(ptr,",
      "new Map().getOrInsertComputed(ptr,",
      "What was imported twice is unmapped with the first.",
    ],
    [", () => onRelease?.(last)]", "]", "The owner is never told, and keeps its memory for ever."],
  ]),
  ...law("memory/closePiece", [
    ["  pieces.delete(ptr);\n", "", "A piece that was unmapped is given out again."],
    ["  piece.buffers--;\n", "", "A piece is never unmapped."],
    [
      "    if (end !== null) closed.push(end);\n",
      "    end?.close();\n",
      "A piece is unmapped while another stream still uses it.",
    ],
    [
      'checkRelease(driver, "cuMemFreeAsync"',
      'checkCuda(driver, "cuMemFreeAsync"',
      "Closing hides what has lost the context.",
    ],
    [", ...[...pools].map((pool) => () => pool.release(home))", "", "An imported pool is never given back."],
    ["first !== undefined && isOver(first)", "false", "While a piece is in use, each buffer over it leaves an event."],
    [
      "first !== undefined && isOver(first)",
      "first !== undefined",
      "A piece is unmapped while another stream still uses it.",
    ],
    ["() => comeAfter(home, event), ", "", "A piece is unmapped while another stream still uses it."],
    [", () => event.close()]", "]", "Events pile up."],
  ]),
  ...law("memory/importMemory", [
    ["() => closeMemory(device, base, retained), ", "", "Memory of another process is never closed."],
    [
      "      freeAfter(home, () => {\n",
      "      freeAfter(null, () => {\n",
      "Memory of another process is unmapped while work still uses it.",
    ],
    ["      if (home !== null) reclaimWhenDone(home);\n", "", "The owner waits until we happen to allocate."],
  ]),
  ...law("memory/reclaimWhenDone", [
    [
      '  end.catch((error) => reportUncaught("returning imported memory", error));\n',
      "",
      "An owner who cannot be told ends the process.",
    ],
  ]),
  ...law("memory/closeMemory", [
    [
      'checkRelease(driver, "cuIpcCloseMemHandle"',
      'checkCuda(driver, "cuIpcCloseMemHandle"',
      "Closing hides what has lost the context.",
    ],
  ]),
  ...law("memory/checkHome", [
    [
      '  checkStream(stream, device, "Cannot import memory to a stream");\n',
      "",
      "Memory is given back on a stream of another Cuda.",
    ],
  ]),
  ...law("memory/checkPoolOptions", [
    [
      "    if (!Number.isSafeInteger(size) || size < 0) {\n",
      "    if (false) {\n",
      "A limit that cannot be is believed.",
    ],
  ]),
  ...law("memory/countImport", [
    [
      "allImports.of(driver).getOrInsertComputed",
      "new Map().getOrInsertComputed",
      "A pool that was imported twice cannot be closed once.",
    ],
  ]),
  ...law("memory/destroy", [
    ["  if (imports.open > 0) return;\n", "", "A pool that was imported twice is never given back."],
    [
      "[CUresult.CUDA_ERROR_INVALID_VALUE]",
      "[]",
      "Whoever allocates is told of a pool that another library still uses.",
    ],
    ["new Array(imports.over)", "new Array(1)", "A pool that was imported twice is never given back."],
  ]),
  ...law("memory/describePool", [
    [" || isCapturing(device.driver)", "", "Who prints a pool during a capture loses the capture."],
  ]),
  ...law("memory/destroyOnce", [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle))",
      "driver.pool.cuMemPoolDestroy(handle)",
      "Closing a pool spoils another library's capture.",
    ],
    ["besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle));", "0;", "Pools pile up."],
  ]),
  ...law("memory/MemoryPool.constructor", [
    ["          imports.open--;\n", "", "Imported pools are never given back."],
    [
      "      afterCaptures(driver, () => freeAfterAll([...users.keys()], end));\n",
      "      freeAfterAll([...users.keys()], end);\n",
      "Closing a pool during a capture spoils it.",
    ],
    [
      "      if (retainedDevice === null) return; // the device's current pool is not ours to destroy\n",
      "",
      "The device's own pool is destroyed.",
    ],
    [
      "freeAfterAll([...users.keys()], ",
      "freeAfterAll([], ",
      "A pool is destroyed while its memory is on its way back, and stays.",
    ],
    ["        retained.use(retainedDevice);\n", "", "A device is never given back once it had a pool."],
    [
      "        for (const user of users.values()) retained.use(user);\n",
      "",
      "A device on whose stream memory was freed is never given back.",
    ],
    [
      "    if (isOwned) closeIfDropped(this, stateOf(driver, references));\n",
      "",
      "Pools that are only dropped pile up.",
    ],
  ]),
  ...law("memory/MemoryPool.current", [
    [
      "besideAllCaptures(driver, () => {\n",
      "((_: unknown, work: () => void) => work())(driver, () => {\n",
      "Who asks for a device's memory first while something is captured is refused.",
    ],
    [
      '    if (pool.releaseThreshold === 0) pool.#set("RELEASE_THRESHOLD", never);\n',
      "",
      "The pool gives its memory back at every synchronisation.",
    ],
    [
      "if (pool.releaseThreshold === 0) pool.#set",
      "pool.#set",
      "A threshold that somebody else has chosen is overwritten.",
    ],
  ]),
  ...law("memory/MemoryPool.create", [
    ["const create = () => besideCaptures(driver, make);", "const create = make;", "A new pool spoils a capture."],
    ["      pool.close();\n      throw error;\n", "      throw error;\n", "A pool that could not be set up leaks."],
    ["    properties.maxSize = maxSize;\n", "", "A pool has no limit."],
    ["releaseThreshold === undefined ? never : BigInt(releaseThreshold)", "never", "A pool never gives memory back."],
    [
      "releaseThreshold === undefined ? never :",
      "releaseThreshold === undefined ? 0n :",
      "A pool gives its memory back at every synchronisation.",
    ],
  ]),
  ...law("memory/MemoryPool.handle", [
    [
      '    if (this.#references.isClosed) throw new TypeError("Cannot use a closed memory pool");\n',
      "",
      "Memory is taken from a pool that is destroyed.",
    ],
  ]),
  ...law("memory/MemoryPool.trim", [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolTrimTo(handle, BigInt(keep)))",
      "driver.pool.cuMemPoolTrimTo(handle, BigInt(keep))",
      "Trimming a pool spoils another library's capture.",
    ],
    [
      "    if (!Number.isSafeInteger(keep) || keep < 0) {\n",
      "    if (false) {\n",
      "A size that cannot be trims to another one.",
    ],
  ]),
  ...law("memory/MemoryPool.retain", [
    ["    this.device.retain();\n", "", "The context goes before the memory of its pool."],
    ["    this.#references.retain();\n", "", "A pool is destroyed under its buffers."],
  ]),
  ...law("memory/MemoryPool.release", [
    [
      "this.#freedOn.set(user, user.retained({ evenClosed: true }));",
      "this.#freedOn.set(user, new DisposableStack());",
      "A device on whose stream a pool's memory is freed is forgotten before.",
    ],
    ["    this.#references.release();\n", "", "A pool is never destroyed."],
    ["    this.device.release();\n", "", "A device is never given back."],
  ]),
  ...law("memory/MemoryPool.close", [
    ["    this.#references.close();\n", "", "Pools pile up."],
  ]),
  ...law("memory/MemoryPool.get", [
    ["const code = besideCaptures(driver, get);", "const code = get();", "To ask a pool spoils a capture."],
  ]),
  ...law("memory/MemoryPool.set", [
    ["const code = besideCaptures(driver, set);", "const code = set();", "A new pool spoils a capture."],
  ]),
  ...law("memory/checkSize", [
    ["!Number.isSafeInteger(bytes) || ", "", "A size that is no whole number is allocated as another one."],
    [" || bytes < 0", "", "A negative size is allocated as an enormous one."],
  ]),
  ...law("memory/planPeerAccess", [
    [
      "ordinal !== owner && !others.has(ordinal)).sort",
      "!others.has(ordinal)).sort",
      "The owner's access is taken away, which the driver refuses.",
    ],
    [
      "!others.has(ordinal)).sort((a, b) => a - b);",
      "!others.has(ordinal));",
      "Devices are told to the driver in no order.",
    ],
    ["ordinal !== owner && !others.has(ordinal)", "ordinal !== owner", "The driver is told what is so already."],
  ]),
  ...law("memory/isAccessGranted", [
    [
      "flags.value === CU_MEM_ACCESS_FLAGS_PROT.READWRITE",
      "flags.value !== 0",
      "Access to read only is taken for access.",
    ],
    ['  checkCuda(driver, "cuMemPoolGetAccess", code);\n', "", "A question that failed is answered by chance."],
  ]),
  ...law("memory/warnAboutCost", [
    ["  if (word.isCostReported) return;\n", "", "The console is told of every copy."],
  ]),
  ...law("memory/setAccess", [
    ["  if (count === 0) return;\n", "", "The driver is called for nothing."],
    ['  checkCuda(driver, "cuMemPoolSetAccess", code);\n', "", "A change that failed looks done."],
    [
      "i < grant.length ? CU_MEM_ACCESS_FLAGS_PROT.READWRITE : CU_MEM_ACCESS_FLAGS_PROT.NONE",
      "CU_MEM_ACCESS_FLAGS_PROT.READWRITE",
      "Access is never taken away.",
    ],
  ]),
  ...law("memory/PeerAccessSet.delete", [
    [
      "    if (wasGranted) setAccess(this.#pool, { grant: [], revoke: [ordinal] });\n",
      "    setAccess(this.#pool, { grant: [], revoke: [ordinal] });\n",
      "Removing a device that has no access calls the driver.",
    ],
  ]),
  ...law("memory/PeerAccessSet.current", [
    [
      "filter((ordinal) => ordinal !== owner && this.#isGranted(ordinal, handle))",
      "filter((ordinal) => this.#isGranted(ordinal, handle))",
      "The owner is its own peer.",
    ],
  ]),
  ...law("memory/PeerAccessSet.find", [
    [
      "ordinal !== undefined && ordinal !== owner && siblings",
      "ordinal !== undefined && siblings",
      "The owner has access that can be asked for, and taken.",
    ],
  ]),
  ...law("memory/PeerAccessSet.resolve", [
    ["filter((device) => !isOwner(device))", "filter(() => true)", "The owner is an error instead of being dropped."],
  ]),
  ...law("memory/PeerAccessSet.become", [
    [
      "canAccessPeer(owner) !== true",
      "canAccessPeer(owner) === undefined",
      "A device without a path is only refused by the driver, by a code.",
    ],
    [
      "owner.siblings[ordinal]?.canAccessPeer(owner)",
      "owner.canAccessPeer(owner.siblings[ordinal] ?? owner)",
      "The path is asked for in the wrong direction.",
    ],
    [
      "    if (unreachable.length > 0) {\n",
      "    if (unreachable.length > 1) {\n",
      "One device without a path is only refused by the driver.",
    ],
    [
      "    for (const ordinal of decided) withheld.add(ordinal);\n",
      "",
      "What the user has said of a pool does not stand.",
    ],
    [
      "    for (const ordinal of wanted) withheld.delete(ordinal);\n",
      "",
      "What was taken back once is never given again.",
    ],
  ]),
  ...law("memory/ProcessWide.of", [
    ["innermost(driver)", "driver", "What a checked and an unchecked Cuda have imported is unmapped with the first."],
  ]),
];
