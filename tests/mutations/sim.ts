/** The protective lines of the simulator: the code that makes an incorrect program fail. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const simMutations: readonly Mutation[] = [
  ...law("sim/AddressSpace.allocateHost", [
    ["this.#reuse(block) ?? ", "", "Writing page-locked memory after its free does no harm."],
  ]),
  ...law("sim/AddressSpace.free", [
    [
      "      if (unfinished.length > 0) this.fill(address, Uint8Array.of(poison), bytes);\n",
      "",
      "Page-locked memory that is freed while it is read keeps its contents.",
    ],
  ]),
  ...law("sim/AddressSpace.freeAllOf", [
    [
      "new Set([...this.allocations.values(), ...context.device.mapped.values()])",
      "[...this.allocations.values()]",
      "Memory is never freed if its context ended before its free in stream order ran.",
    ],
  ]),
  ...law("sim/AddressSpace.isUnregistered", [
    [
      'allocation?.kind === "registered" && this.allocations.find(allocation.address)?.kind !== "registered"',
      "false",
      "Memory that was unregistered while in use can still be used.",
    ],
  ]),
  ...law("sim/AddressSpace.copy", [
    ["this.write(to + BigInt(at), part)", "this.write(to, part)", "Only the last piece of a large copy is visible."],
  ]),
  ...law("sim/AddressSpace.freeUnused", [
    [
      "until.every(({ done }) => done)",
      "true",
      "Late work writes into unrelated memory of this process.",
    ],
  ]),
  ...law("sim/isAccessible", [
    [
      "  return from.peers.has(context);",
      "  return true;",
      "Memory of a peer can be accessed without permission.",
    ],
  ]),
  ...law("sim/refusal", [
    [
      "  if (address + BigInt(bytes) > end) return",
      "  if (address >= end) return",
      "A kernel reads beyond the end of its memory.",
    ],
  ]),
  ...law("sim/Heap.join", [
    ["adjoins && !begins &&", "adjoins &&", "Adjacent segments are joined, and never released."],
    ["if (adjoins && !begins && last", "if (adjoins && last", "Two adjacent segments are never released."],
  ]),
  ...law("sim/captureCalls", [
    [
      "        releaseUnused(simulator);\n        const",
      "        const",
      "A capture that fails keeps its addresses for ever.",
    ],
  ]),
  ...law("sim/graphCalls", [
    ["hasMemory(source) && isTaken", "false", "Two executables allocate at the same addresses."],
  ]),
  ...law("sim/launch", [
    ["  if (exec.nodes.length === 0) return;", "", "An empty graph creates order that it does not create on a GPU."],
  ]),
  ...law("sim/contextCalls", [
    [
      "[\n        context.barrier,\n        taskOf(simulator, event),\n      ]",
      "[taskOf(simulator, event)]",
      "A context that must wait for two events waits only for the last.",
    ],
  ]),
  ...law("sim/transfer", [
    ["const pieces = torn(simulator, work);", "const pieces = work;", "An overlapping copy gives the right result."],
    [
      "if (waits || alwaysWaits)",
      "if (waits)",
      "A copy of memory whose operations must be synchronous is not synchronous.",
    ],
  ]),
  ...law("sim/torn", [
    [
      "first.to > first.from ? pieces : pieces.reverse()",
      "pieces",
      "An overlapping copy to a lower address gives the right result.",
    ],
    ["2 + random.below(7)", "1", "An overlapping copy of one row gives the right result."],
    ["2 + random.below(7)", "2", "An overlapping copy can go wrong in only one way."],
  ]),
  ...law("sim/isReadAtOnce", [
    ["bytes > readAtOnce || ", "", "A copy is read early although libcuda reads it when it runs."],
    [" || stream.explicitTail?.done === false", "", "Work that was explicitly enqueued on a stream is not considered."],
    ["implied.some((task) => task?.done === false)", "true", "A copy is read early although it may be read late."],
    ["implied.some((task) => task?.done === false)", "false", "A copy is read late although libcuda reads it early."],
  ]),
  ...law("sim/boxRuns", [
    [
      "  if (box.srcY + Height > sourceHeight || box.dstY + Height > destinationHeight) {\n",
      "  if (box.srcY + Height > sourceHeight) {\n",
      "A box extends past its destination.",
    ],
  ]),
  ...law("sim/eventCalls", [
    [
      "      if (stream !== stream.context.legacy) stream.explicitTail = explicitTail;\n",
      "",
      "A record counts as work where libcuda does not count it.",
    ],
    [
      "    event.captured = stream.capture;\n    event.record = null;\n",
      "    event.captured = stream.capture;\n",
      "An event of a capture counts as recorded before the capture.",
    ],
    [
      "      if (!start.record.task.done || !end.record.task.done) return CUresult.CUDA_ERROR_NOT_READY;\n",
      "",
      "Time is measured before the events are done.",
    ],
  ]),
  ...law("sim/fill", [
    [
      " || allocation.syncMemops) simulator.hostWaits",
      ") simulator.hostWaits",
      "A fill of memory whose operations must be synchronous is not synchronous.",
    ],
  ]),
  ...law("sim/enqueueLaunch", [
    [
      "  simulator.flush(context);\n  const globals",
      "  const globals",
      "A launch does not print the earlier output.",
    ],
  ]),
  ...law("sim/moduleCalls", [
    [
      "    simulator.flush(context);\n    const program",
      "    const program",
      "Loading a module does not print the output.",
    ],
    ["\n      simulator.flush(module.context);\n", "", "Unloading a module does not print the output."],
  ]),
  ...law("sim/poolCalls", [
    ["      else pool.trim(0n);\n", "", "Memory that a destroyed pool has kept is lost for ever."],
    [
      "if (mapped.find(address) === allocation) ",
      "",
      "Memory that went with its context is freed again, and handed out twice.",
    ],
    [
      "      if (isFree) simulator.refuseImplicit(stream);\n",
      "",
      "Memory whose free was refused can no longer be freed.",
    ],
    [
      "      changes.push([ordinal, flags]);\n",
      "      pool.setAccess(ordinal, flags);\n",
      "A refused change of access is made in part.",
    ],
  ]),
  ...law("sim/allocate", [
    [
      "  if (size > 0n) simulator.refuseImplicit(stream); // before any memory is taken\n",
      "",
      "Memory of a refused allocation is lost for ever.",
    ],
  ]),
  ...law("sim/takeBlock", [
    ["other.trim(0n)", "other", "Unused memory that other pools hold is not available."],
  ]),
  ...law("sim/toFile", [
    [" === handleBytes) return fd;", " !== 0) return fd;", "Another process gets a pool without a name."],
    ["  close(fd);\n", "", "An export that fails leaves a file open."],
  ]),
  ...law("sim/ipcCalls", [
    ["      if (--entry.count > 0) return;\n", "", "Memory that was opened twice is gone after one close."],
  ]),
  ...law("sim/streamCalls", [
    [
      "      if (stream.capture?.of.origin === stream) stream.capture.of.invalidated = true;\n",
      "",
      "A capture goes on without the stream that could end it.",
    ],
    ["        simulator.flush(stream.context);\n", "", "A host function runs before the earlier output is printed."],
  ]),
  ...law("sim/join", [
    [
      "  if (of.ended) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A stream joins a capture that has ended.",
    ],
  ]),
  ...law("sim/DeviceMemory.poison", [
    ["      else this.#written(page)?.fill(poison, from, to);\n", "", "Freed memory keeps its contents."],
  ]),
  ...law("sim/DeviceMemory.unalias", [
    [
      "    for (const { page } of pieces(offset, bytes)) this.#aliases.delete(page);\n",
      "",
      "Memory of another process is still accessible after it was closed.",
    ],
  ]),
  ...law("sim/SimulatedDriver.live", [
    [
      ".filter(({ address }) =>\n      graphMemory.get(address)?.isLive !== false\n    )",
      "",
      "Memory of a graph that is not launched is reported as never freed.",
    ],
  ]),
  ...law("sim/GraphPool.commit", [
    ["    if (memory.bytes !== null) return;\n", "", "Each launch allocates more device memory."],
  ]),
  ...law("sim/captureFree", [
    [
      "memory === undefined || memory.freedBy === memory.owner",
      "memory === undefined",
      "Two graphs free the same memory.",
    ],
    [
      "isFreedHere || (isOwner && memory.freedBy !== null)",
      "isOwner && memory.freedBy !== null",
      "A graph frees twice.",
    ],
    [
      "isFreedHere || (isOwner && memory.freedBy !== null)",
      "isFreedHere",
      "A graph frees memory that another one frees.",
    ],
  ]),
  ...law("sim/freeGraphMemory", [
    [
      "memory === undefined || !memory.isLive",
      "memory === undefined",
      "Memory that a graph frees is also freed outside it.",
    ],
  ]),
  ...law("sim/release", [
    ["[memory.last, free]", "[memory.last]", "A launch allocates before the free."],
  ]),
  ...law("sim/unmap", [
    [
      "  device.memory.poison(offsetOf(address), bytes);\n",
      "",
      "A launch finds the contents that the one before it has left.",
    ],
  ]),
  ...law("sim/prepareLaunch", [
    [
      "  if (left.length > 0 && !exec.freesOnLaunch) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A launch allocates memory that is already allocated.",
    ],
    [
      "    if (!memory.isLive && !allocated.has(memory)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A launch frees memory that is not allocated.",
    ],
    ["    after: all.map(({ last }) => last),\n", "    after: [],\n", "Two launches use the same memory at once."],
    [
      "        memory.isLive = !freed.has(memory);\n",
      "        memory.isLive = true;\n",
      "Memory that a graph frees never becomes free.",
    ],
  ]),
  ...law("sim/releaseUnused", [
    ["memory.isLive || owners.has(memory.owner)", "owners.has(memory.owner)", "Memory is released with its graph."],
    [" || executable.has(memory)", "", "Memory is released with its graph although an executable still uses it."],
  ]),
  ...law("sim/IntervalMap.overlaps", [
    [" || (next !== undefined && next.start < start + BigInt(bytes))", "", "Memory is registered twice."],
  ]),
  ...law("sim/faultCode", [
    [
      "      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;\n",
      "      return null;\n",
      "A kernel that spins leaves its context intact.",
    ],
  ]),
  ...law("sim/Output.add", [
    [
      "    while (this.#bytes > capacity) this.#bytes -= this.#parts[this.#first++]?.text.length ?? this.#bytes;\n",
      "",
      "A program that relies on more buffer space than there is looks right.",
    ],
  ]),
  ...law("sim/Output.flush", [
    ["    this.#parts = [];\n", "", "Output is printed again."],
  ]),
  ...law("sim/Pool.isBusy", [
    ["this.#used > 0 || this.#frees.length > 0", "this.#used > 0", "A pool may be destroyed while frees are pending."],
    [
      "    for (const free of this.#frees) if (free.stream === ended && !free.task.done) free.orphanedAt = lastTask;\n",
      "",
      "A pool may be destroyed before the driver knows of the frees of a destroyed stream.",
    ],
    [" && !free.task.done", "", "Frees that had run before their stream was destroyed keep a pool busy."],
  ]),
  ...law("sim/isUnfinished", [
    [
      "orphanedAt >= stream",
      "orphanedAt > stream",
      "An event that was recorded before a stream was destroyed tells of it.",
    ],
  ]),
  ...law("sim/noteSeen", [
    [" && record.ofContext", "", "An event of a stream tells the driver of destroyed streams."],
  ]),
  ...law("sim/Pool.reuse", [
    [
      "task.done && this.settings.reuseAllowOpportunistic",
      "task.done",
      "A pool that may not reuse memory opportunistically does so if it has no other.",
    ],
  ]),
  ...law("sim/Pool.grow", [
    [
      "    if (this.maxBytes > 0 && this.reserved + bytes > this.maxBytes) return null;\n",
      "",
      "A pool exceeds its limit.",
    ],
  ]),
  ...law("sim/Pool.isUsable", [
    [
      "tag.task.done ? settings.reuseAllowOpportunistic :",
      "tag.task.done ? true :",
      "A pool that may not reuse memory opportunistically does so.",
    ],
  ]),
  ...law("sim/Pool.isFollowed", [
    ["this.settings.reuseFollowEventDependencies && ", "", "A pool that may not follow events does so."],
  ]),
  ...law("sim/Scheduler.enqueue", [
    ["    while (this.#queued > capacity && this.#stepOldest());\n", "", "A queue holds more work than any real one."],
  ]),
  ...law("sim/Simulator.enqueue", [
    ["context.legacy.implicitTail", "context.legacy.tail", "Order is passed on by work that passes on none on a GPU."],
  ]),
  ...law("sim/Simulator.enqueueAllocation", [
    [
      "[after, implicitTail, context.barrier]",
      "[after, context.barrier]",
      "After an allocation, a default stream passes on no order.",
    ],
    [
      "    stream.implicitTail = there;\n",
      "",
      "A program that relies on an allocation for order is right here, and wrong on a GPU.",
    ],
  ]),
  ...law("sim/Simulator.hostWaits", [
    [
      "    this.flush(context);\n    this.refuseFault(context);\n",
      "    this.refuseFault(context);\n",
      "Waiting does not print the output.",
    ],
  ]),
  ...law("sim/Simulator.waitBeforeFree", [
    ["if (this.options.freesWait) {", "{", "A program that frees memory in use never fails."],
  ]),
  ...law("sim/Simulator.unload", [
    ["    module.isLoaded = false;\n", "", "Code that was unloaded while in use continues to run."],
    [
      "    this.modules.delete(module.handle);\n",
      "",
      "A module outlives its context, and its variables are freed twice.",
    ],
    [
      "    for (const { handle } of module.functions.values()) this.functions.delete(handle);\n",
      "",
      "A kernel outlives its context.",
    ],
  ]),
  ...law("sim/Simulator.destroy", [
    [
      "      if (stream.capture !== null) stream.capture.of.invalidated = true;\n",
      "",
      "A capture goes on without the streams of a context that is gone.",
    ],
    ["      stream.capture = null;\n", "", "A default stream of a new context is still captured."],
    [
      "    for (const capture of this.captures) if (capture.origin.context === context) this.endCapture(capture);\n",
      "",
      "A capture that nothing can end forbids allocations for ever.",
    ],
    ["    releaseUnused(this);\n", "", "Memory of a capture that ended with its context is never released."],
    [
      "    for (const other of this.contexts.values()) other.peers.delete(context);\n",
      "",
      "A recreated context can be accessed by the peers of the old one.",
    ],
    [
      "if (owner === context) this.events.delete(handle);",
      "if (owner === context) handle;",
      "An event outlives its context.",
    ],
    [
      "    this.flush(context);\n    context.alive = false;\n",
      "    context.alive = false;\n",
      "The last output of a context is lost.",
    ],
  ]),
  ...law("sim/SimulatorState.refuseFault", [
    [
      "    this.flush(context); // output from before the failure, and the text of a failed assertion\n",
      "",
      "An assertion whose failure a query has found is never printed.",
    ],
  ]),
];
