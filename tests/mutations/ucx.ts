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
      "    if (this.#failure !== undefined || this.#handle === 0n) return;\n    this.fail",
      "    this.fail",
      "An endpoint that has failed or is closed is given back twice.",
    ],
    ['    this.fail(gone("ucp_worker_progress"));\n', "", "Nobody is told that the peer is gone."],
    [
      "    this.#context.progress.abandonAll(this.#owner, ({ call }) => gone(call)); // UCX may never end them\n",
      "",
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
  ...law("ucx/takeMemory", [
    [
      "  operation.isCuda = isCuda;\n  return buffer;\n",
      "  operation.isCuda = isCuda;\n  return null as unknown as MemoryBuffer;\n",
      "UCX has memory before it is there.",
    ],
    [
      "  operation.held = buffer.pinned();\n",
      "",
      "Memory of a message that waits is freed when its buffer is closed.",
    ],
    ["operation.address += BigInt(offset)", "operation.address += 0n", "A part of an array is its beginning."],
    ["        view.close();\n      },", "      },", "Another library's array is kept for ever."],
  ]),
  ...law("ucx/openUcp", [
    ["  if (library.path !== opened) {", "  if (false) {", "Two libucps share one libucs."],
  ]),
  ...law("ucx/writeSocketAddress", [
    ["(port & 255) << 8 | port >> 8", "port", "A port is read from its other end."],
    ["  if (isIP(literal) === 6 && family === 4) {", "  if (false) {", "UCX writes past the end of its memory."],
  ]),
  ...law("ucx/UcxListener.close", [
    ["    for (const take of this.#takers.splice(0)) take(null);\n", "", "Who waits for a connection waits for ever."],
    ["    if (this.#handle === 0n) return;\n", "", "A listener is destroyed twice."],
  ]),
  ...law("ucx/UcxListener.add", [
    ["queueMicrotask(() => this.#accept())", "void 0", "Nobody is let in."],
  ]),
  ...law("ucx/UcxListener.accept", [
    ["        this.#rejected++;\n", "", "Nobody counts who was rejected."],
    ["if (this.#waiting.length >= this.#backlog) {", "if (false) {", "Any number of connections waits."],
  ]),
  ...law("ucx/Receiver.probe", [
    ["    this.#progress.poll();\n", "", "A message that has come is not seen."],
    ["tag, mask, remove,", "tag, mask, 0,", "A message that was taken is received by somebody else."],
  ]),
  ...law("ucx/UcxMemoryRegion.close", [
    ["    if (this.#handle === 0n) return;\n", "", "Memory is unregistered twice."],
  ]),
  ...law("ucx/UcxRemoteKey.range", [
    [" || offset + bytes > this.size", "", "What lies behind the memory is overwritten."],
    ["this.address + BigInt(offset)", "this.address", "Everything is written to the beginning."],
  ]),
  ...law("ucx/ActiveMessages.message", [
    [
      "? view.getBigUint64(receiveField.reply_ep, littleEndian) : 0n",
      "? 0n : 0n",
      "Messages come to the worker, not to its endpoint.",
    ],
  ]),
  ...law("ucx/timeLimit", [
    ["clear: () => clearTimeout(timer)", "clear: nothing", "A timer keeps the process alive that nobody waits for."],
  ]),
  ...law("ucx/Operation.prepare", [
    ["    if (memoryType !== this.#memoryType) {", "    if (false) {", "A GPU's memory is taken for the host's."],
    ["    if (kind !== this.#kind) {", "    if (this.#kind === null) {", "A receive reports as a send did."],
  ]),
  ...law("ucx/Operation.release", [
    ["    this.held = null;\n", "", "What was received into is kept for as long as the worker."],
  ]),
  ...law("ucx/Operations.take", [
    ["    operation.isAbandoned = false;\n", "", "An operation is given back while somebody waits for it."],
  ]),
  ...law("ucx/Operations.give", [
    ["    operation.foreign = 0n;\n", "", "A request of UCX's is freed twice."],
  ]),
  ...law("ucx/Operations.next", [
    ["    this.#read = this.#read + 1 | 0;\n", "", "The same operation ends for ever."],
  ]),
  ...law("ucx/Operations.widen", [
    ["(n & count - 1) * 8, number", "(n & this.#mask) * 8, number", "What has ended is lost when the ring grows."],
    ["    this.#mask = count - 1;\n", "", "The ring is read as if it had not grown."],
  ]),
  ...law("ucx/Progress.cancel", [
    ["if (operation.isWaitedFor) {", "if (false) {", "An operation is given back twice, and two share it then."],
    [" || operation.isAbandoned", "", "UCX is asked again and again to give up what it cannot."],
    [
      "    this.#drain(); // UCX gives back",
      "    // UCX gives back",
      "Memory is still UCX's when its owner hears that nothing was received.",
    ],
    [
      "    this.#queueTurn(); // the process",
      "    // the process",
      "A receive that was cancelled keeps the process alive.",
    ],
  ]),
  ...law("ucx/Progress.abandonAll", [
    ["if (operation.owner === owner) ", "", "Who is lost takes others with it."],
  ]),
  ...law("ucx/Progress.stop", [
    ["    this.#watch?.close();\n", "", "A thread waits for a descriptor that is closed."],
  ]),
  ...law("ucx/Progress.end", [
    ["    owner?.ended(operation);\n", "", "A close waits for ever for sends that are over."],
    ["if (operation.foreign !== 0n) ", "if (false) ", "UCX's requests are never freed."],
  ]),
  ...law("ucx/Progress.turn", [
    ["now - this.#lastNews < patience", "true", "A worker that has nothing to do takes a processor."],
  ]),
  ...law("ucx/Progress.sleep", [
    [
      "!== ucs_status_t.UCS_OK) return this.#queueTurn();",
      "!== ucs_status_t.UCS_OK) void 0;",
      "What came last is slept through.",
    ],
    [
      "this.#watch.keepAlive(this.#pending > 0)",
      "this.#watch.keepAlive(true)",
      "An idle worker keeps the process alive.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.closeHandle", [
    [
      "    this.#starts.stop(closed);\n",
      "",
      "What waits for its memory is sent by an endpoint that is gone.",
    ],
  ]),
  ...law("ucx/UcxEndpoint.fail", [
    ["    this.#starts.stop(error);\n", "", "A failed endpoint sends what waited."],
  ]),
  ...law("ucx/UcxWorker.finish", [
    [
      "    if (left > 0) await pause(left);\n",
      "",
      "A receiver that connects back to a worker that has just closed aborts its process, before UCX 1.14.",
    ],
  ]),
  ...law("ucx/UcxWorker.abort", [
    ["    this.#receiver.close(reason);\n", "", "A receive that waits for its memory begins when its worker is gone."],
  ]),
  ...law("native/watchReadable", [
    ["      if (isWaiting || isClosed) return;\n", "", "Each start calls back, also of one that is under way."],
    [
      "      if (isWaiting) files.eventfd_write(stop, 1n);\n      else free();",
      "      free();",
      "A thread polls a list that is freed.",
    ],
  ]),
  ...law("native/x8664Completion", [
    ["[0x48, 0x0f, 0xbe, 0xf6]", "[0x48, 0x89, 0xf6]", "What lies beside a status in its register is part of it."],
    ["    ...[0x49, 0xff, 0xc0], // inc r8\n", "", "The second operation that ends takes the place of the first."],
    ["    ...[0x4c, 0x23, 0x50, ringAt.mask], // and r10, [rax + mask]\n", "", "The ring is written past its end."],
  ]),
  ...law("native/aarch64Completion", [
    ["0x93401c21, // sxtb", "0xaa0103e1, // mov x1, x1: not sxtb", "On arm64 what lies beside a status is part of it."],
    ["    0x8a080129, // and x9, x9, x8\n", "", "On arm64 each operation takes the place of the one before it."],
  ]),
];
