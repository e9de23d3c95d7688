/** The protective lines of memory resources, pools and peer access. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const memoryResourcesMutations: readonly Mutation[] = [
  ...law("memory/canBeGranted", [
    [" || isWithheld(access)", "", "A device gets access that the pool's user has withheld."],
    ["!has(refused, access) && ", "", "The driver is asked at every copy for access that it has refused."],
    ["pool.isClosed || isWithheld", "isWithheld", "A copy from a closed pool's memory throws."],
  ]),
  ...law("memory/planAccess", [
    [
      "decides === undefined || isTaken(decides)",
      "decides === undefined",
      "Access that is already granted is requested at every copy.",
    ],
    [
      "const decides = ",
      "const decides = accesses.find(isTaken) ?? ",
      "One of the two devices makes the copies in both directions.",
    ],
    [" || isCapturing(first.owner.driver)", "", "Access that a capture could refuse is requested during the capture."],
    [
      "access.buffer.pool !== null && isPossible(access)",
      "isPossible(access)",
      "Kernels do without access that they could have.",
    ],
  ]),
  ...law("memory/takeAccess", [
    [
      "  if (bytes < worthSaying || accesses.some(isTaken)) return;\n",
      "",
      "A fast copy is reported as slow.",
    ],
  ]),
  ...law("memory/take", [
    ["note(isEnabled ? enabled : refused, access)", "note(refused, access)", "Access is requested for every copy."],
  ]),
  ...law("memory/DeviceMemoryResource.constructor", [
    [
      '    if (device.attribute("MEMORY_POOLS_SUPPORTED") === 0) {',
      "    if (false) {",
      "A device without pools fails with an unexplained error.",
    ],
  ]),
  ...law("memory/DeviceMemoryResource.importPool", [
    ["      pool.close();\n", "", "A pool whose import fails halfway stays."],
  ]),
  ...law("memory/DeviceMemoryResource.peerAccessibleBy", [
    ["    this.#peers.replace(devices);\n", "", "Assigning peers changes nothing."],
  ]),
  ...law("memory/device_memory_resource/DeviceMemoryResource.allocate", [
    [
      "        pool, // not this resource",
      "        Object.assign(pool, { of: this }), // and",
      "A resource keeps its buffers alive.",
    ],
    ["    checkSize(bytes);\n", "", "A negative size reaches the driver as an enormous one."],
    [
      "    reclaim();\n    refuseCapture",
      "    refuseCapture",
      "Memory that was released meanwhile is never reclaimed.",
    ],
    ["    refuseCapture(stream, bytes);\n", "", "An allocation invalidates a capture."],
    [
      "      pool.release(null);\n      throw error;\n",
      "      throw error;\n",
      "A pool is never released after a failed allocation.",
    ],
    ["    pool.retain();\n", "", "A pool is destroyed while it has buffers."],
    ["bytes === 0 ? 0n : this.#allocate(", "this.#allocate(", "The driver is asked for no bytes."],
  ]),
  ...law("memory/DeviceMemoryResource.close", [
    ["  close(): void {\n    this.pool.close();\n", "  close(): void {\n", "Pools pile up."],
  ]),
  ...law("memory/DeviceMemoryResource.allocate", [
    [
      "    const mode = relax(driver);\n",
      "    const mode = -1;\n",
      "Allocating invalidates another library's capture.",
    ],
    ["if (bytes !== this.#bytes)", "if (this.#bytes === 0)", "All allocations have the size of the first."],
    [
      "    if (code === CUresult.CUDA_ERROR_OUT_OF_MEMORY) throw this.#outOfMemory(bytes);\n",
      "",
      "The out-of-memory error does not say how much was requested, used and free.",
    ],
    [
      '    checkCuda(driver, "cuMemAllocFromPoolAsync", code);\n',
      "",
      "A failed allocation returns the address of an earlier one.",
    ],
    [
      "      if (!stream.needsContext) code = driver.pool.cuMemAlloc",
      "      code = driver.pool.cuMemAlloc",
      "Memory of a default stream is allocated on the default stream of another device.",
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
      "A free on the default stream invalidates another library's capture.",
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
    ["    pool.release(last);\n", "", "A pool and its device are never released."],
    [
      "    if (pool.isOwned) waitIfElsewhere(last);\n",
      "",
      "A pool is destroyed before a free in another context is done.",
    ],
  ]),
  ...law("memory/freeInOrder", [
    [
      "  let code = NEEDS_CONTEXT;\n  const mode = relax(driver);\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "  let code = NEEDS_CONTEXT;\n  const mode = -1;\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "Freeing invalidates another library's capture.",
    ],
    [
      "    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync(ptr, handle);\n",
      "    code = driver.pool.cuMemFreeAsync(ptr, handle);\n",
      "Memory of a default stream is freed on the default stream of another device.",
    ],
    ["  if (code === NEEDS_CONTEXT) code = freeWithin(stream, ptr);\n", "", "Nothing is freed on a default stream."],
  ]),
  ...law("memory/pinned", [
    ["CU_MEMHOSTALLOC.PORTABLE", "0", "Other devices do not recognize the memory as page-locked."],
  ]),
  ...law("memory/usersOf", [
    [
      "canReach(one, { kind, pool: null }, device)",
      'kind !== "device"',
      "Device memory without a home stream is freed before another device's copy reaches it.",
    ],
  ]),
  ...law("memory/driver_memory_resource/DriverMemoryResource.allocate", [
    ["    checkSize(bytes);\n", "", "A negative size reaches the driver as an enormous one."],
    [
      "    reclaim();\n    return named(",
      "    return named(",
      "Memory that was released meanwhile is never reclaimed.",
    ],
  ]),
  ...law("memory/DriverMemoryResource.make", [
    [
      "besideCaptures(device.driver, () => device.withContext(() => release(device, at)))",
      "device.withContext(() => release(device, at))",
      "Freeing page-locked memory invalidates another library's capture.",
    ],
    [
      "if (home === null) freeAfterAll(usersOf(device, kind), freeNow);",
      "if (home === null) freeNow();",
      "Memory without a home stream is freed before work in flight reaches it.",
    ],
    [
      "freeAfterAll(usersOf(device, kind), freeNow)",
      "freeAfterAll([device], freeNow)",
      "Memory without a home stream is freed before another device's work reaches it.",
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
      "A device is never released.",
    ],
    [
      "const ptr = bytes === 0 ? 0n : this.#allocate(bytes);",
      "const ptr = this.#allocate(bytes);",
      "An allocation of no bytes is an error of the driver.",
    ],
  ]),
  ...law("memory/DriverMemoryResource.allocate", [
    [
      "besideCaptures(device.driver, () => device.withContext(acquire))",
      "device.withContext(acquire)",
      "Allocating page-locked memory invalidates another library's capture.",
    ],
    [
      "throw isOutOfMemory(error) ? this.#outOfMemory(error, bytes) : error;",
      "throw error;",
      "The out-of-memory error does not say how much was requested, used and free.",
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
  ]),
  ...law("memory/ManagedMemoryResource.advise", [
    [
      'if (size > 0) checkCuda(driver, "cuMemAdvise", ',
      'checkCuda(driver, "cuMemAdvise", ',
      "Advising on an empty buffer is an error of the driver.",
    ],
  ]),
  ...law("memory/ordinalOf", [
    ["return CU_DEVICE_CPU;", "return 0;", "Memory for the host moves to a device."],
    ["if (place.driver !== driver)", "if (false)", "A device of another Cuda stands for one of this."],
  ]),
  ...law("memory/HostMemoryResource.constructor", [
    [
      "if (!Number.isSafeInteger(alignment) || alignment < 8 || Math.log2(alignment) % 1 !== 0) {",
      "if (false) {",
      "An invalid alignment reaches the C allocator.",
    ],
  ]),
  ...law("memory/HostMemoryResource.allocate", [
    ["    checkSize(bytes);\n", "", "A negative size reaches the C allocator as an enormous one."],
    ["stream: null, free })", "stream: null, free: () => {} })", "Host memory is never freed."],
    ["    reclaim();\n", "", "Memory that consumers have released is never reclaimed."],
  ]),
  ...law("memory/align", [
    ["  if (ptr === 0n) {\n", "  if (false) {\n", "A failed allocation is a buffer at address 0."],
  ]),
  ...law("memory/checked", [
    [
      "  if (isSize(from.size) && isSize(from.offset)) return bytes;\n",
      "  return bytes;\n",
      "Invalid sizes from another process are accepted.",
    ],
  ]),
  ...law("memory/importPoolMemory", [
    ["  piece.buffers++;\n", "", "A piece that two buffers share is unmapped with the first buffer."],
    ["    pool.retain();\n", "", "An imported pool is released before its memory."],
    [
      "pieces.getOrInsertComputed(ptr,",
      "new Map().getOrInsertComputed(ptr,",
      "Memory that was imported twice is unmapped with the first import.",
    ],
    [", () => onRelease?.(last)]", "]", "The owner is never notified, and keeps its memory for ever."],
  ]),
  ...law("memory/closePiece", [
    ["  pieces.delete(ptr);\n", "", "A piece that was unmapped is returned again."],
    ["  piece.buffers--;\n", "", "A piece is never unmapped."],
    [
      "    if (end !== null) closed.push(end);\n",
      "    end?.close();\n",
      "A piece is unmapped while another stream still uses it.",
    ],
    [
      'checkRelease(driver, "cuMemFreeAsync"',
      'checkCuda(driver, "cuMemFreeAsync"',
      "Closing hides the error that lost the context.",
    ],
    [", ...[...pools].map((pool) => () => pool.release(home))", "", "An imported pool is never released."],
    [
      "first !== undefined && isOver(first)",
      "false",
      "While a piece is in use, each of its buffers leaves an event behind.",
    ],
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
    ["      if (home !== null) reclaimWhenDone(home);\n", "", "The owner waits until the next allocation here."],
  ]),
  ...law("memory/reclaimWhenDone", [
    [
      '  end.catch((error) => reportUncaught("returning imported memory", error));\n',
      "",
      "A failure to notify the owner ends the process.",
    ],
  ]),
  ...law("memory/closeMemory", [
    [
      'checkRelease(driver, "cuIpcCloseMemHandle"',
      'checkCuda(driver, "cuIpcCloseMemHandle"',
      "Closing hides the error that lost the context.",
    ],
  ]),
  ...law("memory/checkHome", [
    [
      '  checkStream(stream, device, "Cannot import memory to a stream");\n',
      "",
      "Memory is released on a stream of another Cuda.",
    ],
  ]),
  ...law("memory/checkPoolOptions", [
    [
      "    if (!Number.isSafeInteger(size) || size < 0) {\n",
      "    if (false) {\n",
      "An invalid limit is accepted.",
    ],
  ]),
  ...law("memory/countImport", [
    [
      "allImports.of(driver).getOrInsertComputed",
      "new Map().getOrInsertComputed",
      "One of two imports of a pool cannot be closed.",
    ],
  ]),
  ...law("memory/destroy", [
    ["  if (imports.open > 0) return;\n", "", "A pool that was imported twice is never released."],
    [
      "[CUresult.CUDA_ERROR_INVALID_VALUE]",
      "[]",
      "An allocation fails because another library still uses a pool.",
    ],
    ["new Array(imports.over)", "new Array(1)", "A pool that was imported twice is never released."],
  ]),
  ...law("memory/describePool", [
    [" || isCapturing(device.driver)", "", "Printing a pool during a capture invalidates the capture."],
  ]),
  ...law("memory/destroyOnce", [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle))",
      "driver.pool.cuMemPoolDestroy(handle)",
      "Closing a pool invalidates another library's capture.",
    ],
    ["besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle));", "0;", "Pools pile up."],
  ]),
  ...law("memory/afterFrees", [
    [
      "freeAfterAll(devices, () => freeAfterAll(devices, destroy))",
      "freeAfterAll(devices, destroy)",
      "A pool is destroyed before the driver knows of the frees of a stream destroyed meanwhile.",
    ],
    [
      "freeAfterAll(devices, () => freeAfterAll(devices, destroy))",
      "destroy()",
      "Frees are pending when a pool is destroyed.",
    ],
  ]),
  ...law("memory/MemoryPool.constructor", [
    ["          imports.open--;\n", "", "Imported pools are never released."],
    [
      "      afterCaptures(driver, () => afterFrees([...users.keys()], end));\n",
      "      afterFrees([...users.keys()], end);\n",
      "Closing a pool during a capture invalidates the capture.",
    ],
    [
      "      if (retainedDevice === null) return; // the device's current pool is not ours to destroy\n",
      "",
      "The device's own pool is destroyed.",
    ],
    [
      "afterFrees([...users.keys()], ",
      "afterFrees([], ",
      "A pool is destroyed while its memory is still being returned, and is never freed.",
    ],
    ["        retained.use(retainedDevice);\n", "", "A device that had a pool is never released."],
    [
      "        for (const user of users.values()) retained.use(user);\n",
      "",
      "A device on whose stream memory was freed is never released.",
    ],
    [
      "    if (isOwned) closeIfDropped(this, stateOf(driver, references));\n",
      "",
      "Pools that are dropped without being closed pile up.",
    ],
  ]),
  ...law("memory/MemoryPool.current", [
    [
      "besideAllCaptures(driver, () => {\n",
      "((_: unknown, work: () => void) => work())(driver, () => {\n",
      "The first use of a device's memory is refused during a capture.",
    ],
    [
      '    if (pool.releaseThreshold === 0) pool.#set("RELEASE_THRESHOLD", never);\n',
      "",
      "The pool releases its memory at every synchronisation.",
    ],
    [
      "if (pool.releaseThreshold === 0) pool.#set",
      "pool.#set",
      "A threshold that another user has set is overwritten.",
    ],
  ]),
  ...law("memory/MemoryPool.create", [
    [
      "const create = () => besideCaptures(driver, make);",
      "const create = make;",
      "Creating a pool invalidates a capture.",
    ],
    ["      pool.close();\n      throw error;\n", "      throw error;\n", "A pool that could not be set up leaks."],
    ["    properties.maxSize = maxSize;\n", "", "A pool has no limit."],
    ["releaseThreshold === undefined ? never : BigInt(releaseThreshold)", "never", "A pool never releases memory."],
    [
      "releaseThreshold === undefined ? never :",
      "releaseThreshold === undefined ? 0n :",
      "A pool releases its memory at every synchronisation.",
    ],
  ]),
  ...law("memory/MemoryPool.handle", [
    [
      '    if (this.#references.isClosed) throw new TypeError("Cannot use a closed memory pool");\n',
      "",
      "Memory is allocated from a destroyed pool.",
    ],
  ]),
  ...law("memory/MemoryPool.trim", [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolTrimTo(handle, BigInt(keep)))",
      "driver.pool.cuMemPoolTrimTo(handle, BigInt(keep))",
      "Trimming a pool invalidates another library's capture.",
    ],
    [
      "    if (!Number.isSafeInteger(keep) || keep < 0) {\n",
      "    if (false) {\n",
      "An invalid size trims to a different one.",
    ],
  ]),
  ...law("memory/MemoryPool.retain", [
    ["    this.device.retain();\n", "", "The context is destroyed before the memory of its pool."],
    ["    this.#references.retain();\n", "", "A pool is destroyed while it has buffers."],
  ]),
  ...law("memory/MemoryPool.release", [
    [
      "this.#freedOn.set(user, user.retained({ evenClosed: true }));",
      "this.#freedOn.set(user, new DisposableStack());",
      "A device on whose stream a pool's memory is freed is forgotten too early.",
    ],
    ["    this.#references.release();\n", "", "A pool is never destroyed."],
    ["    this.device.release();\n", "", "A device is never released."],
  ]),
  ...law("memory/MemoryPool.close", [
    ["    this.#references.close();\n", "", "Pools pile up."],
  ]),
  ...law("memory/MemoryPool.get", [
    ["const code = besideCaptures(driver, get);", "const code = get();", "Querying a pool invalidates a capture."],
  ]),
  ...law("memory/MemoryPool.set", [
    ["const code = besideCaptures(driver, set);", "const code = set();", "Creating a pool invalidates a capture."],
  ]),
  ...law("memory/checkSize", [
    ["!Number.isSafeInteger(bytes) || ", "", "A size that is not a whole number is allocated as a different one."],
    [" || bytes < 0", "", "A negative size is allocated as an enormous one."],
  ]),
  ...law("memory/planPeerAccess", [
    [
      "ordinal !== owner && !others.has(ordinal)).sort",
      "!others.has(ordinal)).sort",
      "The owner's access is revoked, which the driver refuses.",
    ],
    [
      "!others.has(ordinal)).sort((a, b) => a - b);",
      "!others.has(ordinal));",
      "Devices are passed to the driver in no fixed order.",
    ],
    [
      "ordinal !== owner && !others.has(ordinal)",
      "ordinal !== owner",
      "The driver is asked for access that is already set.",
    ],
  ]),
  ...law("memory/isAccessGranted", [
    [
      "flags.value === CU_MEM_ACCESS_FLAGS_PROT.READWRITE",
      "flags.value !== 0",
      "Read-only access is mistaken for full access.",
    ],
    ['  checkCuda(driver, "cuMemPoolGetAccess", code);\n', "", "A failed query gives a random answer."],
  ]),
  ...law("memory/warnAboutCost", [
    ["  if (word.isCostReported) return;\n", "", "Every copy is reported on the console."],
  ]),
  ...law("memory/setAccess", [
    ["  if (count === 0) return;\n", "", "The driver is called without any change."],
    ['  checkCuda(driver, "cuMemPoolSetAccess", code);\n', "", "A failed change looks done."],
    [
      "i < grant.length ? CU_MEM_ACCESS_FLAGS_PROT.READWRITE : CU_MEM_ACCESS_FLAGS_PROT.NONE",
      "CU_MEM_ACCESS_FLAGS_PROT.READWRITE",
      "Access is never revoked.",
    ],
  ]),
  ...law("memory/PeerAccessSet.delete", [
    [
      "    if (wasGranted) setAccess(this.#pool, { grant: [], revoke: [ordinal] });\n",
      "    setAccess(this.#pool, { grant: [], revoke: [ordinal] });\n",
      "Removing a device that has no access calls the driver.",
    ],
  ]),
  ...law("memory/PeerAccessSet.find", [
    [
      "ordinal !== undefined && ordinal !== owner && siblings",
      "ordinal !== undefined && siblings",
      "The access of the owner can be queried, and revoked.",
    ],
  ]),
  ...law("memory/PeerAccessSet.resolve", [
    [
      "filter((device) => !isOwner(device))",
      "filter(() => true)",
      "The owner causes an error instead of being dropped.",
    ],
  ]),
  ...law("memory/PeerAccessSet.others", [
    ["ordinal === owner ? [] : [ordinal]", "[ordinal]", "The owner is listed as its own peer."],
  ]),
  ...law("memory/PeerAccessSet.become", [
    [
      "canAccessPeer(owner) !== true",
      "canAccessPeer(owner) === undefined",
      "A device without a path is only refused by the driver, with an error code.",
    ],
    [
      "owner.siblings[ordinal]?.canAccessPeer(owner)",
      "owner.canAccessPeer(owner.siblings[ordinal] ?? owner)",
      "The path is queried in the wrong direction.",
    ],
    [
      "    if (unreachable.length > 0) {\n",
      "    if (unreachable.length > 1) {\n",
      "One device without a path is only refused by the driver.",
    ],
    [
      "    for (const ordinal of decided) withheld.add(ordinal);\n",
      "",
      "The user's settings for a pool are not kept.",
    ],
    [
      "    for (const ordinal of wanted) withheld.delete(ordinal);\n",
      "",
      "Access that was revoked once is never granted again.",
    ],
  ]),
  ...law("memory/ProcessWide.of", [
    [
      "innermost(driver)",
      "driver",
      "Memory that a checked and an unchecked Cuda have imported is unmapped with the first import.",
    ],
  ]),
];
