/** The protective lines of memory that processes share. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const sharingMutations: readonly Mutation[] = [
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
    ["pieces.get(ptr) ?? {", "{", "What was imported twice is unmapped with the first."],
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
  ]),
  ...law("memory/comeAfter", [
    ["    stream.wait(event);\n", "", "A piece is unmapped while another stream still uses it."],
    ["    event.close();\n", "", "Events pile up."],
    ["    unlessLost(() => event.synchronize());\n", "", "A piece that no order can be made for is unmapped at once."],
  ]),
  ...law("memory/reclaimWhenDone", [
    [
      '    end.catch((error) => reportUncaught("giving back imported memory", error));\n',
      "",
      "An owner who cannot be told ends the process.",
    ],
  ]),
  ...law("memory/checkHome", [
    [
      '  checkStream(stream, device, "Cannot import memory to a stream");\n',
      "",
      "Memory is given back on a stream of another Cuda.",
    ],
  ]),
  ...law("memory/closeMemory", [
    [
      'checkRelease(driver, "cuIpcCloseMemHandle"',
      'checkCuda(driver, "cuIpcCloseMemHandle"',
      "Closing hides what has lost the context.",
    ],
  ]),
  ...law("memory/unlessLost", [
    [
      "    if (!isSticky(error)) throw error;\n",
      "    throw error;\n",
      "Closing hides what has lost the context, and leaks.",
    ],
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
  ...law("memory/destroy", [
    ["  if (imports.open > 0) return;\n", "", "A pool that was imported twice is never given back."],
    [
      "[CUresult.CUDA_ERROR_INVALID_VALUE]",
      "[]",
      "Whoever allocates is told of a pool that another library still uses.",
    ],
    ["new Array(imports.over)", "new Array(1)", "A pool that was imported twice is never given back."],
  ]),
  ...law("memory/MemoryPool.constructor", [
    ["          imports.open--;\n", "", "Imported pools are never given back."],
  ]),
  ...law("memory/countImport", [
    ["all.get(handle) ?? {", "{", "A pool that was imported twice cannot be closed once."],
  ]),
  ...law("memory/ProcessWide.of", [
    ["innermost(driver)", "driver", "What a checked and an unchecked Cuda have imported is unmapped with the first."],
  ]),
  ...law("memory/StreamMarks.mark", [
    ["      stream.record(event);\n", "", "The other process does not wait for our work."],
    [
      "ours.has(stream) ? stream : passed(ours)",
      "ours.has(stream) ? stream : null",
      "Each stream that is used leaves an event.",
    ],
  ]),
  ...law("memory/StreamMarks.wait", [
    ["      stream.wait(event);\n", "", "We do not wait for the work of the other process."],
    ["      waitOnHost(event);\n", "", "Where the driver refuses to order, memory is freed under the other process."],
  ]),
  ...law("memory/StreamMarks.close", [
    [
      "    for (const ours of this.#ours.values()) for (const { event } of ours.values()) event.close();\n",
      "",
      "Events pile up.",
    ],
    ["    for (const event of this.#theirs.values()) event?.close();\n", "", "Events of other processes pile up."],
  ]),
  ...law("memory/passed", [
    [
      "    if (isOver(mark.event)) return stream;\n",
      "    return stream;\n",
      "A receiver waits for another stream's work.",
    ],
    [
      "    ours.delete(stream);\n    ours.set(stream, mark);\n",
      "",
      "Behind a stream that is at work for long each one leaves an event.",
    ],
  ]),
  ...law("memory/StreamMarks.learn", [
    ["device.isGone ? null : ", "", "What comes back after a Cuda was closed ends the channel."],
  ]),
  ...law("memory/ChannelExports.share", [
    [
      "    const pin = buffer.pinned();\n",
      "    const pin = { [Symbol.dispose]() {} };\n",
      "Memory is freed under another process.",
    ],
    ["        pin[Symbol.dispose]();\n", "", "Memory that was sent is never freed."],
    [
      "        if (mark !== null && buffer.stream !== null) this.#marks.wait(buffer.stream, mark);\n",
      "",
      "Memory is used again while the other process still works on it.",
    ],
  ]),
  ...law("memory/ChannelExports.takeAllBack", [
    [
      "    for (const end of [...this.#shares.values()]) end(null);\n",
      "",
      "What a process had that is gone is never freed.",
    ],
  ]),
  ...law("memory/ChannelExports.undo", [
    ["    undo.dispose();\n", "", "What could not be sent is kept for ever."],
  ]),
  ...law("memory/ChannelImports.importBuffer", [
    [
      "    if (part.mark !== null) this.#marks.wait(home, part.mark); //",
      "    //",
      "We read before the other process has written.",
    ],
  ]),
];
