/** The protective lines of the simulator: what makes a program that is wrong go wrong. */
import { inFile, type Mutation } from "./mutation.ts";

const kernels = ["tests/sim/kernels_test.ts"];
const memory = ["tests/sim/memory_test.ts"];
const pools = ["tests/sim/pools_test.ts"];
const contexts = ["tests/sim/contexts_test.ts"];
const driver = ["tests/sim/driver_test.ts"];
const frees = ["tests/sim/early_frees_test.ts"];

const refusals = ["tests/sim/refusals_test.ts"];

/** What can be broken there. */
export const simMutations: readonly Mutation[] = [
  ...inFile("src/ptx/launch.ts", kernels, [
    [
      "      if (left <= 0) this.#exhausted(thread, this.#state.limit);\n",
      "",
      "A kernel that spins hangs the program.",
    ],
    ["Math.min(length, left)", "length", "A launch does more than it may, and ends as if it had not."],
  ]),
  ...inFile("src/sim/address_space.ts", frees, [
    [
      "      if (unfinished.length > 0) this.fill(address, Uint8Array.of(poison), bytes);\n",
      "",
      "Page-locked memory that is freed while it is read is read as it was.",
    ],
    ["this.#reuse(block) ?? ", "", "What is written to page-locked memory after its free harms nobody."],
    [
      "until.every(({ done }) => done)",
      "true",
      "Work that comes late writes into memory of this process that is anybody's.",
    ],
    [
      'allocation?.kind === "registered" && this.allocations.find(allocation.address)?.kind !== "registered"',
      "false",
      "Memory that was unregistered in use is used on.",
    ],
  ]),
  ...inFile("src/sim/calls/copy.ts", ["tests/sim/overlapping_copies_test.ts"], [
    ["const pieces = torn(simulator, work);", "const pieces = work;", "A copy onto its own source comes out right."],
    [
      "first.to > first.from ? pieces : pieces.reverse()",
      "pieces",
      "A copy that moves bytes down, onto its own source, comes out right.",
    ],
    ["2 + random.below(7)", "1", "A copy of one row onto its own source comes out right."],
    ["2 + random.below(7)", "2", "Only one of the ways in which a copy onto its own source can go wrong is ever seen."],
  ]),
  ...inFile("src/sim/calls/module.ts", frees, [
    ["\n      module.isLoaded = false;\n", "", "Code that was unloaded in use runs on."],
  ]),
  ...inFile("src/memory/staging_ring.ts", ["tests/memory/staging_test.ts"], [[
    "    this.#device.synchronize(); // the bus may still be at work\n",
    "",
    "Memory that the bus is at work with is freed.",
  ]]),
  ...inFile("src/sim/allocator.ts", pools, [
    ["adjoins && !begins &&", "adjoins &&", "Segments that lie side by side are joined, and never given back."],
  ]),
  ...inFile("src/sim/pool.ts", pools, [
    [
      "tag.task.done ? settings.reuseAllowOpportunistic :",
      "tag.task.done ? true :",
      "A pool that may not reuse what is free by chance does.",
    ],
    [
      "task.done && this.settings.reuseAllowOpportunistic",
      "task.done",
      "A pool that may not reuse what is free by chance does where it has nothing else.",
    ],
    ["this.settings.reuseFollowEventDependencies && ", "", "A pool that may not follow events does."],
  ]),
  ...inFile("src/sim/calls/pool.ts", pools, [
    [
      "      changes.push([ordinal, flags]);\n",
      "      pool.setAccess(ordinal, flags);\n",
      "A change of access that is refused has changed some of it.",
    ],
    ["other.trim(0n)", "other", "Memory that other pools hold and nobody uses is not there."],
  ]),
  ...inFile("src/sim/calls/context.ts", contexts, [
    [
      "[\n        context.barrier,\n        taskOf(simulator, event),\n      ]",
      "[taskOf(simulator, event)]",
      "A context that is to wait for two events waits for the last.",
    ],
  ]),
  ...inFile("src/sim/calls/fill.ts", memory, [
    [
      " || allocation.syncMemops) simulator.wait",
      ") simulator.wait",
      "A fill of memory whose operations are to be synchronous is not.",
    ],
  ]),
  ...inFile("src/sim/calls/copy.ts", memory, [
    ["if (waits || alwaysWaits)", "if (waits)", "A copy of memory whose operations are to be synchronous is not."],
  ]),
  ...inFile("src/sim/device_memory.ts", driver, [
    ["      else this.#written(page)?.fill(poison, from, to);\n", "", "Memory that is freed holds what it held."],
  ]),
  ...inFile("src/sim/address_space.ts", memory, [
    [
      "  if (address + BigInt(bytes) > end) return",
      "  if (address >= end) return",
      "A kernel reads beyond the end of its memory.",
    ],
    ["this.write(to + BigInt(at), part)", "this.write(to, part)", "Of a large copy only the last piece is seen."],
  ]),
  ...inFile("src/sim/interval_map.ts", memory, [
    [" || (next !== undefined && next.start < start + BigInt(bytes))", "", "Memory is registered twice."],
  ]),
  ...inFile("src/sim/scheduler.ts", memory, [
    ["    while (this.#queued > capacity && this.#stepOldest());\n", "", "A queue holds more than any real one."],
  ]),
  ...inFile("src/ptx/launch.ts", ["tests/ptx/kernels_test.ts", "tests/ptx/threads_test.ts", ...kernels], [
    ["  while (greatestCommonDivisor(step, count) !== 1) step--;\n", "", "Some blocks run twice, others never."],
  ]),
  ...inFile("src/sim/calls/sharing.ts", ["tests/sim/sharing_test.ts"], [
    [
      "      if (--entry.count > 0) return;\n",
      "",
      "Memory that was opened twice is gone when it is closed once.",
    ],
  ]),
  ...inFile("src/sim/kernel_faults.ts", kernels, [
    [
      "      return CUresult.CUDA_ERROR_LAUNCH_TIMEOUT;\n",
      "      return null;\n",
      "A kernel that spins leaves its context as good as new.",
    ],
  ]),
  ...inFile("src/sim/allocator.ts", refusals, [
    ["if (adjoins && !begins && last", "if (adjoins && last", "Two neighbouring segments are never given back."],
  ]),
  ...inFile("src/sim/pool.ts", refusals, [
    [
      "    if (this.maxBytes > 0 && this.reserved + bytes > this.maxBytes) return null;\n",
      "",
      "A pool is larger than it may be.",
    ],
  ]),
  ...inFile("src/sim/calls/event.ts", refusals, [
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
  ...inFile("src/sim/calls/stream.ts", refusals, [
    [
      "      if (stream.capture?.of.origin === stream) simulator.invalidate(stream.capture.of);\n",
      "",
      "A capture goes on without the stream that could end it.",
    ],
    [
      "  if (of.ended) throw refuse(CUresult.CUDA_ERROR_INVALID_VALUE);\n",
      "",
      "A stream joins a capture that has ended.",
    ],
  ]),
  ...inFile("src/sim/device_memory.ts", refusals, [
    [
      "    for (const { page } of pieces(offset, bytes)) this.#aliases.delete(page);\n",
      "",
      "Memory of another process that was closed is there still.",
    ],
  ]),
  ...inFile("src/sim/calls/copy.ts", refusals, [
    [
      "  if (box.srcY + Height > sourceHeight || box.dstY + Height > destinationHeight) {\n",
      "  if (box.srcY + Height > sourceHeight) {\n",
      "A box goes beyond what it is put into.",
    ],
  ]),
  ...inFile("src/sim/address_space.ts", [
    "tests/sim/questions_test.ts",
    "tests/sim/error_codes_test.ts",
    "tests/sim/programs_test.ts",
    "tests/sim/sharing_test.ts",
  ], [
    [
      "  return from.peers.has(context);",
      "  return true;",
      "Memory of a peer is reached though nobody has allowed it.",
    ],
  ]),

  ...inFile("src/sim/simulator.ts", frees, [[
    "if (this.options.freesWait) {",
    "{",
    "A program that frees what is in use is never wrong.",
  ]]),
  ...inFile("src/sim/simulator.ts", contexts, [[
    "    for (const other of this.contexts.values()) other.peers.delete(context);\n",
    "",
    "A context that comes again is reached by those that reached the last one.",
  ]]),
  ...inFile("src/sim/simulator.ts", contexts, [[
    "if (owner === context) this.events.delete(handle);",
    "if (owner === context) handle;",
    "An event outlives its context.",
  ]]),
];
