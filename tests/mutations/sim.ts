/** The protective lines of the simulator: what makes a program that is wrong go wrong. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const simMutations: readonly Mutation[] = [
  ...law("ptx/Execution.run", [
    [
      "      if (left <= 0) this.#exhausted(thread, this.#state.limit);\n",
      "",
      "A kernel that spins hangs the program.",
    ],
    ["Math.min(length, left)", "length", "A launch does more than it may, and ends as if it had not."],
  ]),
  ...law("sim/AddressSpace.free", [
    [
      "      if (unfinished.length > 0) this.fill(address, Uint8Array.of(poison), bytes);\n",
      "",
      "Page-locked memory that is freed while it is read is read as it was.",
    ],
  ]),
  ...law("sim/AddressSpace.allocateHost", [
    ["this.#reuse(block) ?? ", "", "What is written to page-locked memory after its free harms nobody."],
  ]),
  ...law("sim/AddressSpace.freeUnused", [
    [
      "until.every(({ done }) => done)",
      "true",
      "Work that comes late writes into memory of this process that is anybody's.",
    ],
  ]),
  ...law("sim/AddressSpace.isUnregistered", [
    [
      'allocation?.kind === "registered" && this.allocations.find(allocation.address)?.kind !== "registered"',
      "false",
      "Memory that was unregistered in use is used on.",
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
  ...law("sim/moduleCalls", [
    ["\n      module.isLoaded = false;\n", "", "Code that was unloaded in use runs on."],
  ]),
  ...law("memory/StagingRing.close", [
    [
      "    this.#device.synchronize(); // the bus may still be at work\n",
      "",
      "Memory that the bus is at work with is freed.",
    ],
  ]),
  ...law("sim/Heap.join", [
    ["adjoins && !begins &&", "adjoins &&", "Segments that lie side by side are joined, and never given back."],
    ["if (adjoins && !begins && last", "if (adjoins && last", "Two neighbouring segments are never given back."],
  ]),
  ...law("sim/Pool.isUsable", [
    [
      "tag.task.done ? settings.reuseAllowOpportunistic :",
      "tag.task.done ? true :",
      "A pool that may not reuse what is free by chance does.",
    ],
  ]),
  ...law("sim/Pool.reuse", [
    [
      "task.done && this.settings.reuseAllowOpportunistic",
      "task.done",
      "A pool that may not reuse what is free by chance does where it has nothing else.",
    ],
  ]),
  ...law("sim/Pool.isFollowed", [
    ["this.settings.reuseFollowEventDependencies && ", "", "A pool that may not follow events does."],
  ]),
  ...law("sim/poolCalls", [
    [
      "      changes.push([ordinal, flags]);\n",
      "      pool.setAccess(ordinal, flags);\n",
      "A change of access that is refused has changed some of it.",
    ],
  ]),
  ...law("sim/takeBlock", [
    ["other.trim(0n)", "other", "Memory that other pools hold and nobody uses is not there."],
  ]),
  ...law("sim/contextCalls", [
    [
      "[\n        context.barrier,\n        taskOf(simulator, event),\n      ]",
      "[taskOf(simulator, event)]",
      "A context that is to wait for two events waits for the last.",
    ],
  ]),
  ...law("sim/fill", [
    [
      " || allocation.syncMemops) simulator.wait",
      ") simulator.wait",
      "A fill of memory whose operations are to be synchronous is not.",
    ],
  ]),
  ...law("sim/DeviceMemory.poison", [
    ["      else this.#written(page)?.fill(poison, from, to);\n", "", "Memory that is freed holds what it held."],
  ]),
  ...law("sim/refusal", [
    [
      "  if (address + BigInt(bytes) > end) return",
      "  if (address >= end) return",
      "A kernel reads beyond the end of its memory.",
    ],
  ]),
  ...law("sim/AddressSpace.copy", [
    ["this.write(to + BigInt(at), part)", "this.write(to, part)", "Of a large copy only the last piece is seen."],
  ]),
  ...law("sim/IntervalMap.overlaps", [
    [" || (next !== undefined && next.start < start + BigInt(bytes))", "", "Memory is registered twice."],
  ]),
  ...law("sim/Scheduler.enqueue", [
    ["    while (this.#queued > capacity && this.#stepOldest());\n", "", "A queue holds more than any real one."],
  ]),
  ...law("ptx/permutation", [
    ["  while (greatestCommonDivisor(step, count) !== 1) step--;\n", "", "Some blocks run twice, others never."],
  ]),
  ...law("sim/ipcCalls", [
    ["      if (--entry.count > 0) return;\n", "", "Memory that was opened twice is gone when it is closed once."],
  ]),
  ...law("sim/faultCode", [
    [
      "      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;\n",
      "      return null;\n",
      "A kernel that spins leaves its context as good as new.",
    ],
  ]),
  ...law("sim/Pool.grow", [
    [
      "    if (this.maxBytes > 0 && this.reserved + bytes > this.maxBytes) return null;\n",
      "",
      "A pool is larger than it may be.",
    ],
  ]),
  ...law("sim/eventCalls", [
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
  ...law("sim/streamCalls", [
    [
      "      if (stream.capture?.of.origin === stream) simulator.invalidate(stream.capture.of);\n",
      "",
      "A capture goes on without the stream that could end it.",
    ],
  ]),
  ...law("sim/join", [
    [
      "  if (of.ended) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A stream joins a capture that has ended.",
    ],
  ]),
  ...law("sim/DeviceMemory.unalias", [
    [
      "    for (const { page } of pieces(offset, bytes)) this.#aliases.delete(page);\n",
      "",
      "Memory of another process that was closed is there still.",
    ],
  ]),
  ...law("sim/boxRuns", [
    [
      "  if (box.srcY + Height > sourceHeight || box.dstY + Height > destinationHeight) {\n",
      "  if (box.srcY + Height > sourceHeight) {\n",
      "A box goes beyond what it is put into.",
    ],
  ]),
  ...law("sim/isAccessible", [
    [
      "  return from.peers.has(context);",
      "  return true;",
      "Memory of a peer is reached though nobody has allowed it.",
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
  ]),
];
