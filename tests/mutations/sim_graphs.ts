/** The protective lines of the memory that simulated graphs allocate. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const simGraphMutations: readonly Mutation[] = [
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
  ...law("sim/release", [
    ["[memory.last, free]", "[memory.last]", "A launch allocates before the free."],
  ]),
  ...law("sim/unmap", [
    ["  device.memory.poison(offsetOf(address), bytes);\n", "", "A launch finds what the one before it has left."],
  ]),
  ...law("sim/releaseUnused", [
    ["memory.isLive || owners.has(memory.owner)", "owners.has(memory.owner)", "Memory ends with its graph."],
    [" || executable.has(memory)", "", "Memory ends with the graph of an executable that has it."],
  ]),
  ...law("sim/GraphPool.commit", [
    ["    if (memory.bytes !== null) return;\n", "", "Each launch takes more of the device."],
  ]),
  ...law("sim/graphCalls", [
    ["hasMemory(source) && isTaken", "false", "Two executables allocate at the same addresses."],
  ]),
  ...law("sim/captureCalls", [
    [
      "        releaseUnused(simulator);\n        const",
      "        const",
      "A capture that fails keeps its addresses for ever.",
    ],
  ]),
  ...law("sim/SimulatedDriver.live", [
    [
      ".filter(({ address }) =>\n      graphMemory.get(address)?.isLive !== false\n    )",
      "",
      "Memory of a graph that is not launched counts as never freed.",
    ],
  ]),
];
