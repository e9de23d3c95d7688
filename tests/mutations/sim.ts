/** The protective lines of the simulator: what makes a program that is wrong go wrong. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const simMutations: readonly Mutation[] = [
  ...law("sim/AddressSpace.allocateHost", [
    ["this.#reuse(block) ?? ", "", "What is written to page-locked memory after its free harms nobody."],
  ]),
  ...law("sim/AddressSpace.free", [
    [
      "      if (unfinished.length > 0) this.fill(address, Uint8Array.of(poison), bytes);\n",
      "",
      "Page-locked memory that is freed while it is read is read as it was.",
    ],
  ]),
  ...law("sim/AddressSpace.isUnregistered", [
    [
      'allocation?.kind === "registered" && this.allocations.find(allocation.address)?.kind !== "registered"',
      "false",
      "Memory that was unregistered in use is used on.",
    ],
  ]),
  ...law("sim/AddressSpace.copy", [
    ["this.write(to + BigInt(at), part)", "this.write(to, part)", "Of a large copy only the last piece is seen."],
  ]),
  ...law("sim/AddressSpace.freeUnused", [
    [
      "until.every(({ done }) => done)",
      "true",
      "Work that comes late writes into memory of this process that is anybody's.",
    ],
  ]),
  ...law("sim/isAccessible", [
    [
      "  return from.peers.has(context);",
      "  return true;",
      "Memory of a peer is reached though nobody has allowed it.",
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
    ["adjoins && !begins &&", "adjoins &&", "Segments that lie side by side are joined, and never given back."],
    ["if (adjoins && !begins && last", "if (adjoins && last", "Two neighbouring segments are never given back."],
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
    ["  if (exec.nodes.length === 0) return;", "", "An empty graph orders here what it does not on a GPU."],
  ]),
  ...law("sim/contextCalls", [
    [
      "[\n        context.barrier,\n        taskOf(simulator, event),\n      ]",
      "[taskOf(simulator, event)]",
      "A context that is to wait for two events waits for the last.",
    ],
  ]),
  ...law("sim/transfer", [
    ["const pieces = torn(simulator, work);", "const pieces = work;", "A copy onto its own source comes out right."],
    ["if (waits || alwaysWaits)", "if (waits)", "A copy of memory whose operations are to be synchronous is not."],
  ]),
  ...law("sim/torn", [
    [
      "first.to > first.from ? pieces : pieces.reverse()",
      "pieces",
      "A copy that moves bytes down, onto its own source, comes out right.",
    ],
    ["2 + random.below(7)", "1", "A copy of one row onto its own source comes out right."],
    ["2 + random.below(7)", "2", "Only one of the ways in which a copy onto its own source can go wrong is ever seen."],
  ]),
  ...law("sim/isReadAtOnce", [
    ["bytes > readAtOnce || ", "", "A copy is read early that libcuda reads when it runs."],
    [" || stream.explicitTail?.done === false", "", "What a stream was told to do is not looked at."],
    ["implied.some((task) => task?.done === false)", "true", "A copy is read early that may be read late."],
    ["implied.some((task) => task?.done === false)", "false", "A copy is read late that libcuda reads early."],
  ]),
  ...law("sim/boxRuns", [
    [
      "  if (box.srcY + Height > sourceHeight || box.dstY + Height > destinationHeight) {\n",
      "  if (box.srcY + Height > sourceHeight) {\n",
      "A box goes beyond what it is put into.",
    ],
  ]),
  ...law("sim/eventCalls", [
    [
      "      if (stream !== stream.context.legacy) stream.explicitTail = explicitTail;\n",
      "",
      "A record counts where libcuda lets it not.",
    ],
    [
      "    event.captured = stream.capture;\n    event.record = null;\n",
      "    event.captured = stream.capture;\n",
      "An event of a capture counts as what it was recorded as before.",
    ],
    [
      "      if (!start.record.task.done || !end.record.task.done) return CUresult.CUDA_ERROR_NOT_READY;\n",
      "",
      "Time is measured before it has passed.",
    ],
  ]),
  ...law("sim/fill", [
    [
      " || allocation.syncMemops) simulator.hostWaits",
      ") simulator.hostWaits",
      "A fill of memory whose operations are to be synchronous is not.",
    ],
  ]),
  ...law("sim/enqueueLaunch", [
    [
      "  simulator.flush(context);\n  const globals",
      "  const globals",
      "A launch does not say what was said before it.",
    ],
  ]),
  ...law("sim/moduleCalls", [
    ["\n      module.isLoaded = false;\n", "", "Code that was unloaded in use runs on."],
    ["    simulator.flush(context);\n    const program", "    const program", "Loading a module says nothing."],
    ["\n      simulator.flush(module.context);\n", "", "Unloading a module says nothing."],
  ]),
  ...law("sim/poolCalls", [
    [
      "      if (isFree) simulator.refuseImplicit(stream);\n",
      "",
      "Memory whose free was refused cannot be freed any more.",
    ],
    [
      "      changes.push([ordinal, flags]);\n",
      "      pool.setAccess(ordinal, flags);\n",
      "A change of access that is refused has changed some of it.",
    ],
  ]),
  ...law("sim/allocate", [
    [
      "  if (size > 0n) simulator.refuseImplicit(stream); // before any memory is taken\n",
      "",
      "Memory that was refused is taken for ever.",
    ],
  ]),
  ...law("sim/takeBlock", [
    ["other.trim(0n)", "other", "Memory that other pools hold and nobody uses is not there."],
  ]),
  ...law("sim/ipcCalls", [
    ["      if (--entry.count > 0) return;\n", "", "Memory that was opened twice is gone when it is closed once."],
  ]),
  ...law("sim/streamCalls", [
    [
      "      if (stream.capture?.of.origin === stream) simulator.invalidate(stream.capture.of);\n",
      "",
      "A capture goes on without the stream that could end it.",
    ],
    ["        simulator.flush(stream.context);\n", "", "A host function runs before what was said."],
  ]),
  ...law("sim/join", [
    [
      "  if (of.ended) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A stream joins a capture that has ended.",
    ],
  ]),
  ...law("sim/DeviceMemory.poison", [
    ["      else this.#written(page)?.fill(poison, from, to);\n", "", "Memory that is freed holds what it held."],
  ]),
  ...law("sim/DeviceMemory.unalias", [
    [
      "    for (const { page } of pieces(offset, bytes)) this.#aliases.delete(page);\n",
      "",
      "Memory of another process that was closed is there still.",
    ],
  ]),
  ...law("sim/SimulatedDriver.live", [
    [
      ".filter(({ address }) =>\n      graphMemory.get(address)?.isLive !== false\n    )",
      "",
      "Memory of a graph that is not launched counts as never freed.",
    ],
  ]),
  ...law("sim/GraphPool.commit", [
    ["    if (memory.bytes !== null) return;\n", "", "Each launch takes more of the device."],
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
      "Its own graph frees what another one does.",
    ],
  ]),
  ...law("sim/freeGraphMemory", [
    ["memory === undefined || !memory.isLive", "memory === undefined", "What a graph frees is freed outside as well."],
  ]),
  ...law("sim/release", [
    ["[memory.last, free]", "[memory.last]", "A launch allocates before the free."],
  ]),
  ...law("sim/unmap", [
    ["  device.memory.poison(offsetOf(address), bytes);\n", "", "A launch finds what the one before it has left."],
  ]),
  ...law("sim/prepareLaunch", [
    [
      "  if (left.length > 0 && !exec.freesOnLaunch) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A launch allocates what is allocated.",
    ],
    [
      "    if (!memory.isLive && !allocated.has(memory)) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A launch frees what is not allocated.",
    ],
    ["    after: all.map(({ last }) => last),\n", "    after: [],\n", "Two launches have the same memory at once."],
    [
      "        memory.isLive = !freed.has(memory);\n",
      "        memory.isLive = true;\n",
      "What a graph frees is never free.",
    ],
  ]),
  ...law("sim/releaseUnused", [
    ["memory.isLive || owners.has(memory.owner)", "owners.has(memory.owner)", "Memory ends with its graph."],
    [" || executable.has(memory)", "", "Memory ends with the graph of an executable that has it."],
  ]),
  ...law("sim/IntervalMap.overlaps", [
    [" || (next !== undefined && next.start < start + BigInt(bytes))", "", "Memory is registered twice."],
  ]),
  ...law("sim/faultCode", [
    [
      "      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;\n",
      "      return null;\n",
      "A kernel that spins leaves its context as good as new.",
    ],
  ]),
  ...law("sim/Output.add", [
    [
      "    while (this.#bytes > capacity) this.#bytes -= this.#parts[this.#first++]?.text.length ?? this.#bytes;\n",
      "",
      "A program that relies on more room than there is looks right.",
    ],
  ]),
  ...law("sim/Output.flush", [
    ["    this.#parts = [];\n", "", "What was said is said again."],
  ]),
  ...law("sim/Pool.reuse", [
    [
      "task.done && this.settings.reuseAllowOpportunistic",
      "task.done",
      "A pool that may not reuse what is free by chance does where it has nothing else.",
    ],
  ]),
  ...law("sim/Pool.grow", [
    [
      "    if (this.maxBytes > 0 && this.reserved + bytes > this.maxBytes) return null;\n",
      "",
      "A pool is larger than it may be.",
    ],
  ]),
  ...law("sim/Pool.isUsable", [
    [
      "tag.task.done ? settings.reuseAllowOpportunistic :",
      "tag.task.done ? true :",
      "A pool that may not reuse what is free by chance does.",
    ],
  ]),
  ...law("sim/Pool.isFollowed", [
    ["this.settings.reuseFollowEventDependencies && ", "", "A pool that may not follow events does."],
  ]),
  ...law("sim/Scheduler.enqueue", [
    ["    while (this.#queued > capacity && this.#stepOldest());\n", "", "A queue holds more than any real one."],
  ]),
  ...law("sim/Simulator.enqueue", [
    ["context.legacy.implicitTail", "context.legacy.tail", "Order is handed on by what hands on none on a GPU."],
  ]),
  ...law("sim/Simulator.enqueueAllocation", [
    [
      "[after, implicitTail, context.barrier]",
      "[after, context.barrier]",
      "After an allocation a default stream hands on nothing.",
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
      "Waiting says nothing.",
    ],
  ]),
  ...law("sim/Simulator.waitBeforeFree", [
    ["if (this.options.freesWait) {", "{", "A program that frees what is in use is never wrong."],
  ]),
  ...law("sim/Simulator.destroy", [
    [
      "    for (const other of this.contexts.values()) other.peers.delete(context);\n",
      "",
      "A context that comes again is reached by those that reached the last one.",
    ],
    [
      "if (owner === context) this.events.delete(handle);",
      "if (owner === context) handle;",
      "An event outlives its context.",
    ],
    [
      "    this.flush(context);\n    context.alive = false;\n",
      "    context.alive = false;\n",
      "The last words of a context are lost.",
    ],
  ]),
  ...law("sim/SimulatorState.refuseFault", [
    [
      "    this.flush(context); // output from before the failure, and the text of a failed assertion\n",
      "",
      "The assertion that a query has found is never said.",
    ],
  ]),
];
