/** The protective lines of memory that processes share. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const memorySharingMutations: readonly Mutation[] = [
  ...law("memory/ChannelExports.undo", [
    ["    undo.dispose();\n", "", "Memory that could not be sent is kept for ever."],
  ]),
  ...law("memory/ChannelExports.takeBack", [
    [
      "    runAll(shares.map((share) => () => this.#shares.get(share)?.(mark)));\n",
      "    for (const share of shares) this.#shares.get(share)?.(mark);\n",
      "Memory stays shared because other memory could not be freed.",
    ],
  ]),
  ...law("memory/ChannelExports.takeAllBack", [
    [
      "    runAll([...this.#shares.values()].map((end) => () => end(null)));\n",
      "",
      "Memory that was shared with a process that is gone is never freed.",
    ],
    [
      "    runAll([...this.#shares.values()].map((end) => () => end(null)));\n",
      "    for (const end of [...this.#shares.values()]) end(null);\n",
      "Memory stays shared because other memory could not be freed.",
    ],
  ]),
  ...law("memory/ChannelExports.share", [
    [
      "    const pin = buffer.pinned();\n",
      "    const pin = { [Symbol.dispose]() {} };\n",
      "Memory is freed while another process uses it.",
    ],
    ["        pin[Symbol.dispose]();\n", "", "Memory that was sent is never freed."],
    [
      "        if (mark !== null && buffer.stream !== null) this.#marks.wait(buffer.stream, mark);\n",
      "",
      "Memory is used again while the other process still works on it.",
    ],
  ]),
  ...law("memory/ChannelImports.importBuffer", [
    [
      "if (part.mark !== null) {",
      "if (home !== null) {",
      "Memory without a home is reported on every stream except the one that it was received on.",
    ],
    ["observerOf(device.driver)?.received(", "void (", "Memory of another process is used too early without a report."],
    [
      "    if (part.mark !== null) this.#marks.wait(home, part.mark); //",
      "    //",
      "We read before the other process has written.",
    ],
  ]),
  ...law("memory/StreamMarks.mark", [
    ["      stream.record(event);\n", "", "The other process does not wait for our work."],
    [
      "ours.has(stream) ? stream : passed(ours)",
      "ours.has(stream) ? stream : null",
      "Each stream that is used leaves an event behind.",
    ],
  ]),
  ...law("memory/ChannelImports.learnPool", [
    ["    this.#openPool(id);\n    const pool", "    const pool", "A pool that could not be imported once never is."],
    ["      if (error instanceof RangeError) file.close();", "", "A file is kept for a device that is not there."],
  ]),
  ...law("memory/StreamMarks.learn", [
    ["device.isGone ? null : ", "", "Memory that is returned after a Cuda was closed ends the channel."],
  ]),
  ...law("memory/StreamMarks.wait", [
    [
      "    if (event !== null) comeAfter(stream, event);\n",
      "",
      "We do not wait for the work of the other process.",
    ],
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
      "While one stream is busy for a long time, each of the others leaves an event behind.",
    ],
  ]),
  ...law("memory/MemoryChannel.receive", [
    [
      "      if (this.#failure !== undefined) throw this.#failure;\n",
      "",
      "A message that cannot be understood looks like the end of the messages.",
    ],
  ]),
  ...law("memory/MemoryChannel.close", [
    [
      '    if (this.#isUsed && !this.#ended) this.#answer({ kind: "closed" });\n',
      "",
      "A receiver that keeps memory until the end of the messages, and the owner, wait for each other.",
    ],
    [
      "    this.#imports.close(); // nothing more is received\n",
      "",
      "Pools of a closed channel are leaks for the checker.",
    ],
  ]),
  ...law("memory/ofChannel", [
    [
      "  observerOf(event.device.driver)?.closedByUser(event.handle);\n",
      "",
      "Events of a closed channel are leaks for the checker.",
    ],
  ]),
  ...law("memory/MemoryChannel.markEnd", [
    [
      "      waitForEnd(stream);\n      return null;\n",
      "      throw 0;\n",
      "The owner is never notified that its memory is free.",
    ],
  ]),
  ...law("memory/untilThereIsMemory", [
    [
      "      if (!isShort) throw error;\n",
      "      throw error;\n",
      "Memory that was returned stays shared for ever.",
    ],
    [
      ": error instanceof FfiError;",
      ": false;",
      "Where this process has no memory for a message, memory that was returned stays shared for ever.",
    ],
  ]),
  ...law("memory/MemoryChannel.post", [
    ["this.#sent.then(() => ", "Promise.resolve().then(() => ", "A message names a mark that comes after it."],
    [
      "    this.#sent = sent.catch(() => {}).finally(() => {\n      this.#unsent--;\n      this.#endIfUnused();\n    });\n",
      "    sent.catch(() => {}).finally(() => {\n      this.#unsent--;\n      this.#endIfUnused();\n    });\n",
      "The same.",
    ],
    [
      "    this.#unsent++;\n",
      "    this.#unsent += 0;\n",
      "A channel that is closed does not send what was passed to it before.",
    ],
    ["      this.#unsent--;\n", "", "The connection of a closed channel never ends."],
  ]),
  ...law("memory/MemoryChannel.send", [
    [
      "    if (this.#failure !== undefined) throw this.#failure;\n",
      "",
      "A send over a channel that has ended does not say why it has.",
    ],
  ]),
  ...law("memory/MemoryChannel.listen", [
    ["      this.#failure = error;\n", "", "A message that cannot be understood looks like the end of the messages."],
    ["this.#marks.learn(message.marks); //", "//", "A return ends the channel, if it comes before a value is taken."],
  ]),
];
