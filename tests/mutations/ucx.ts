/** The protective lines of messages between processes. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const ucxMutations: readonly Mutation[] = [
  ...law("ucx/PeerProcess.find", [
    [
      "if (!isSame(0, 16) || isSame(16, identityBytes)) return null;",
      "",
      "A process of another machine is looked after.",
    ],
    [" || isSame(16, identityBytes)", "", "A worker looks after its own process."],
    [
      "return process.isGone() ? null : process;",
      "return process;",
      "What cannot be seen from here is taken for gone.",
    ],
  ]),
  ...law("ucx/PeerProcess.isGone", [
    [
      'if (stat === null) return readStat("self") !== null;',
      "if (stat === null) return false;",
      "A process that has ended is taken for alive.",
    ],
    ['return readStat("self") !== null;', "return true;", "Where no file can be opened everybody is taken for dead."],
    ["stat.start !== this.#start || ", "", "Whoever gets the number of a process is taken for it."],
    [' || "ZXx".includes(stat.state)', "", "A process that nobody asks for its exit code is alive for ever."],
  ]),
  ...law("ucx/readStat", [
    ["\\(.*\\)", "\\(.*?\\)", "A program's name is read as the state of its process."],
  ]),
  ...law("ucx/PeerLiveness.watch", [
    [
      "    if (process === null) return;\n",
      "    if (process === null) throw 0;\n",
      "Who cannot be seen cannot be connected to.",
    ],
    ["interval).unref();", "interval);", "A worker keeps its process alive."],
  ]),
  ...law("ucx/PeerLiveness.forget", [
    ["    if (this.#peers.size === 0) this.close();\n", "", "A closed endpoint keeps somebody looking for ever."],
  ]),
  ...law("ucx/PeerLiveness.poll", [
    ["      if (!peer.process.isGone()) continue;\n", "", "The living are reported dead."],
    ["      if (peer.missed) ", "      ", "UCX is not given the time to say what it knows."],
    ["      else peer.missed = true;\n", "", "The dead are never reported."],
  ]),
  ...law("ucx/UcxEndpoint.lose", [
    [
      "    if (this.#failure !== undefined || this.#handle === 0n) return;\n    this.#isLost",
      "    this.#isLost",
      "An endpoint that has failed or is closed is given back twice.",
    ],
    ["    this.#isLost = true;\n", "", "A send to the dead is said to be cancelled."],
    ['    this.fail(gone("ucp_worker_progress"));\n', "", "Nobody is told that the peer is gone."],
    [
      "    await this.#end(UCP_EP_CLOSE_FLAG.FORCE);\n  }\n\n  /**\n   * Closes",
      "  }\n\n  /**\n   * Closes",
      "Sends to the dead wait for ever.",
    ],
  ]),
  ...law("ucx/StartQueue.add", [
    [
      "if (ready === null && this.#waiting.length === 0) return begin();",
      "if (ready === null) return begin();",
      "A message overtakes one that waits for its memory.",
    ],
    [
      "if (ready === null && this.#waiting.length === 0) return begin();\n",
      "",
      "What waits for nothing begins after the call has returned, or never.",
    ],
  ]),
  ...law("ucx/StartQueue.drop", [
    [
      "    start.drop(reason);\n    this.#advance();",
      "    start.drop(reason);",
      "Who waited only for its turn waits for ever when the one before it ends.",
    ],
    ["    if (at < 0) return;", "    if (at < 0) at;", "What has begun is ended a second time by its signal."],
  ]),
  ...law("ucx/StartQueue.advance", [
    [
      "while (this.#waiting[0]?.isReady)",
      "if (this.#waiting[0]?.isReady)",
      "Only one of those whose turn it is begins.",
    ],
  ]),
  ...law("ucx/memoryOf", [
    ["ready: hostReady(buffer)", "ready: null", "UCX has memory before it is there."],
    [
      "release: () => pin[Symbol.dispose]() }",
      "release: () => {} }",
      "Memory of a message that waits is freed when its buffer is closed.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.closeHandle", [
    [
      '    this.#starts.stop(new TypeError("The endpoint was closed"));\n',
      "",
      "What waits for its memory is sent by an endpoint that is gone.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.fail", [
    ["    this.#starts.stop(this.#isLost", "    void (this.#isLost", "A failed endpoint sends what waited."],
  ]),
  ...law("ucx/UcxWorker.finish", [
    [
      "    if (left > 0) await pause(left);\n",
      "",
      "A receiver that connects back to a worker that has just closed aborts its process, before UCX 1.14.",
    ],
    [
      "this.#flush(), pause(farewell, undefined, { ref: false })",
      "null",
      "A worker that is still connecting back when it closes aborts its own process, before UCX 1.14.",
    ],
  ]),
  ...law("ucx/UcxWorker.abort", [
    ["    this.#starts.stop(reason);\n", "", "A receive that waits for its memory begins when its worker is gone."],
  ]),
];
