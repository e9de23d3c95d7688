/** The protective lines of messages between processes. */
import { inFile, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const ucxMutations: readonly Mutation[] = [
  ...inFile("src/ucx/process_identity.ts", ["tests/ucx/process_identity_test.ts"], [
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
    [
      'if (stat === null) return readStat("self") !== null;',
      "if (stat === null) return false;",
      "A process that has ended is taken for alive.",
    ],
    ['return readStat("self") !== null;', "return true;", "Where no file can be opened everybody is taken for dead."],
    ["stat.start !== this.#start || ", "", "Whoever gets the number of a process is taken for it."],
    [' || "ZXx".includes(stat.state)', "", "A process that nobody asks for its exit code is alive for ever."],
    ["\\(.*\\)", "\\(.*?\\)", "A program's name is read as the state of its process."],
  ]),
  ...inFile("src/ucx/peer_liveness.ts", ["tests/ucx/peer_liveness_test.ts"], [
    [
      "    if (process === null) return;\n",
      "    if (process === null) throw 0;\n",
      "Who cannot be seen cannot be connected to.",
    ],
    ["interval).unref();", "interval);", "A worker keeps its process alive."],
    ["    if (this.#peers.size === 0) this.close();\n", "", "A closed endpoint keeps somebody looking for ever."],
    ["      if (!peer.process.isGone()) continue;\n", "", "The living are reported dead."],
    ["      if (peer.missed) ", "      ", "UCX is not given the time to say what it knows."],
    ["      else peer.missed = true;\n", "", "The dead are never reported."],
  ]),
  ...inFile("src/ucx/endpoint.ts", ["tests/ucx/endpoint_test.ts", "tests/ucx/two_processes_test.ts"], [
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
  ...inFile("src/ucx/start_queue.ts", ["tests/ucx/start_queue_test.ts"], [
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
    [
      "    start.drop(reason);\n    this.#advance();",
      "    start.drop(reason);",
      "Who waited only for its turn waits for ever when the one before it ends.",
    ],
    [
      "while (this.#waiting[0]?.isReady)",
      "if (this.#waiting[0]?.isReady)",
      "Only one of those whose turn it is begins.",
    ],
    ["    if (at < 0) return;", "    if (at < 0) at;", "What has begun is ended a second time by its signal."],
  ]),
  ...inFile("src/ucx/message_memory.ts", ["tests/ucx/order_test.ts"], [
    ["ready: hostReady(buffer)", "ready: null", "UCX has memory before it is there."],
    [
      "release: () => pin[Symbol.dispose]() }",
      "release: () => {} }",
      "Memory of a message that waits is freed when its buffer is closed.",
    ],
  ]),
  ...inFile("src/ucx/endpoint.ts", ["tests/ucx/order_test.ts"], [
    [
      '    this.#starts.stop(new TypeError("The endpoint was closed"));\n',
      "",
      "What waits for its memory is sent by an endpoint that is gone.",
    ],
    ["    this.#starts.stop(this.#isLost", "    void (this.#isLost", "A failed endpoint sends what waited."],
  ]),
  ...inFile("src/ucx/worker.ts", ["tests/ucx/order_test.ts"], [
    ["    this.#starts.stop(reason);\n", "", "A receive that waits for its memory begins when its worker is gone."],
  ]),
];
