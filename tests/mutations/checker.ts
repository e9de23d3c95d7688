/** The protective lines of the causality checker. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const checkerMutations: readonly Mutation[] = [
  ...law("checker/CausalityChecker.received", [
    [
      "if (home !== null) state.enqueue",
      "if (home === null) state.enqueue",
      "Memory of another process is used too early.",
    ],
    [" || allocation.opened > 1", "", "Who has the memory already is reported for what another stream receives."],
  ]),
  ...law("checker/currentSite", [
    ["frames = 48", "frames = 16", "Of a copy to a typed array nobody learns where it was made."],
  ]),
  ...law("checker/History.conflict", [
    [
      "if (writes) { for (const read of this.reads) if (!isBefore(read, clock)) return read; }",
      "",
      "A write over a read is missed.",
    ],
    [
      "    if (this.write !== null && !isBefore(this.write, clock)) return this.write;\n",
      "",
      "Nothing follows a write.",
    ],
  ]),
  ...law("checker/History.forgetWrite", [
    [
      "if (this.write !== null && order.isOver(this.write.stream.index, this.write.tick)) this.write = null;",
      "this.write = null;",
      "A write is forgotten before the host has waited for it.",
    ],
  ]),
  ...law("checker/RangeHistory.write", [
    ["      conflict ??= span.history.conflict(true, clock);\n", "", "Writes of a part are missed."],
    [
      "      if (span.end > end) pieces.push({ start: end, end: span.end, history: copyOf(span.history) });\n",
      "",
      "What is behind a written part is forgotten.",
    ],
  ]),
  ...law("checker/RangeHistory.read", [
    ["      conflict ??= span.history.conflict(false, clock);\n", "", "Reads of a part are missed."],
    ["    gap(end);\n", "", "A read of what nobody has touched is forgotten."],
  ]),
  ...law("checker/contextCalls", [
    ["        join(clock, stream.clock);\n", "", "An event of a whole context stands for nothing."],
  ]),
  ...law("checker/eventCalls", [
    ["clock: [...stream.clock]", "clock: stream.clock", "An event stands for what comes after it, too."],
    ['      if (code === 0) passed(state, "cuEventQuery");\n', "", "What an event's answer says is not seen."],
    [
      '      if (code === 0) passed(state, "cuEventQuery");',
      '      passed(state, "cuEventQuery");',
      "An event that is asked too early counts as done.",
    ],
  ]),
  ...law("checker/finish", [
    [
      "(synchronous && isOnHost) || allocation.syncMemops",
      "allocation.syncMemops",
      "A fill of the host's memory is not waited for.",
    ],
  ]),
  ...law("checker/graphCalls", [
    [
      "nodes, opaque, isEmpty, last",
      "nodes, opaque, isEmpty: nodes.length === 0, last",
      "Graphs of others are no work: false alarms.",
    ],
    [
      "isEmpty: exec.isEmpty, last: exec.last, examined",
      "isEmpty: exec.isEmpty, last: [], examined",
      "An updated graph does not wait for its last launch.",
    ],
  ]),
  ...law("checker/acceptCopy", [
    [
      "  if (stream === null || pending.isNothing) return;\n  checker.checkOverlap(stream, call,",
      "  if (stream === null || touches.length === 0) return;\n  checker.checkOverlap(stream, call,",
      "A copy of arrays is no work: false alarms.",
    ],
    ["checker.touchByHost(call, start, end, false);", ";", "What the host reads during an upload is not seen."],
    ['synchronous && from === "pageable" && to === "device"', "false", "An upload seems to be over when it returns."],
    ["  checker.checkOverlap(stream, call, touches);\n", "", "Copies within themselves are missed."],
    [
      "if (touches.some(({ start }) => checker.memory.find(start)?.syncMemops)) checker.hostWaitsFor([stream], call);",
      "",
      "Memory that is told to wait is reported.",
    ],
  ]),
  ...law("checker/acceptPeerCopy", [
    [
      "  if (stream === null || pending.isNothing) return;\n  checker.checkOverlap(stream, pending.call",
      "  if (stream === null) return;\n  checker.checkOverlap(stream, pending.call",
      "A peer copy of no bytes is taken for order.",
    ],
  ]),
  ...law("checker/streamCalls", [
    ["        order.wait(stream, clock);\n", "", "Waits for events are not seen."],
    [
      '      if (code === 0) waitedFor(stream, "cuStreamQuery");',
      '      waitedFor(stream, "cuStreamQuery");',
      "A stream that is asked too early counts as done.",
    ],
  ]),
  ...law("checker/unorderedNodes", [
    ["[node, ...ancestors.get(node) ?? []]", "[node]", "Work of a graph seems to follow only the one before it."],
  ]),
  ...law("checker/overlap", [
    [
      "start === writes[i]?.start && end === writes[i].end",
      "start === writes[i]?.start",
      "Rows that slide into each other pass.",
    ],
    ["one.end <= read.start; one", "one.start <= read.start; one", "What a copy reads and writes in common is missed."],
  ]),
  ...law("checker/CausalityChecker.mark", [
    [
      'return () => state.hostWaits(clock, "completed()", [seq]);',
      "return () => {};",
      "Waiting for completed() is no wait.",
    ],
  ]),
  ...law("checker/CausalityChecker.orderedElsewhere", [
    ["      state.order.wait(to, [...from.clock]);\n", "", "What Python has ordered is reported."],
    [
      '[state.stream(first, "cuEventRecord"), state.stream(then, "cuStreamWaitEvent")]',
      '[state.stream(then, "cuEventRecord"), state.stream(first, "cuStreamWaitEvent")]',
      "What Python has ordered is taken the other way round.",
    ],
  ]),
  ...law("checker/CausalityChecker.hostAccess", [
    ["state.isLost || ", "", "A lost Cuda still speaks of memory that is gone."],
  ]),
  ...law("checker/CausalityChecker.close", [
    ["leaks && !isLost", "leaks", "What a lost context keeps is called a leak."],
    ["    this.#stopObserving();\n", "", "A closed Cuda still speaks of memory that is somebody else's now."],
  ]),
  ...law("checker/CheckerState.launchGraph", [
    ["    if (graph.isEmpty) return;", "", "Order by an empty graph is taken for order."],
    ["    this.order.wait(stream, graph.last);\n", "", "A launch does not wait for the last one."],
    ["    graph.last = [...stream.clock];\n", "", "A launch does not wait for the last one."],
    ["    if (!graph.examined) this.#examine(stream, graph);\n", "", "Branches of a graph are not compared."],
  ]),
  ...law("checker/CheckerState.allocated", [
    [
      "      implicit[stream.index] = tick;\n",
      "",
      "Memory of a default stream is not there for a blocking one: false alarms.",
    ],
  ]),
  ...law("checker/CheckerState.imported", [
    ["      before.opened++;\n", "", "Memory that is open twice is gone when it is closed once."],
  ]),
  ...law("checker/CheckerState.freeByHost", [
    [
      'if (conflict !== null) this.#raceWithHost(conflict, call, "frees", start, end, allocation);',
      "",
      "Memory of a pool that is freed at once may be in use.",
    ],
  ]),
  ...law("checker/CheckerState.checkNotFreed", [
    [
      "freed !== exporters && this.#isAnothers(freed)",
      "this.#isAnothers(freed)",
      "A free by the owner is taken for somebody else's memory.",
    ],
  ]),
  ...law("checker/KernelRecording.accessed", [
    ["this.#pieces = this.touches();", "this.#pieces = [];", "Of a kernel that touches much only the end is known."],
  ]),
  ...law("checker/KernelRecording.joined", [
    [
      "last !== undefined && start <= last.end",
      "last !== undefined",
      "A kernel touches what is between what it touches.",
    ],
  ]),
  ...law("checker/Journal.add", [
    [
      "if (entry.host === null || !run.recording.signalsHost) this.#addRace(kernel, entry);",
      "this.#addRace(kernel, entry);",
      "A kernel that tells the host is reported when the host listens later.",
    ],
    [
      "if (run === null || !conflict(kernel, entry) || areOrdered(run, entry)) continue;",
      "continue;",
      "What comes after a kernel that has run is missed.",
    ],
  ]),
  ...law("checker/Journal.entriesOf", [
    [
      "if (isStrong && writes && allocation.isOfHost) recording.signalsHost = true;",
      "",
      "A kernel that tells the host is reported when the host listens.",
    ],
  ]),
  ...law("checker/Journal.allocationAt", [
    [
      "now !== undefined && now.allocatedAt < at",
      "now !== undefined",
      "What a kernel touches is taken for memory that came later.",
    ],
    [
      "findLast(({ allocatedAt, start, end }) => allocatedAt < at && ",
      "find(({ start, end }) => ",
      "What a kernel touches is taken for memory that came and went later.",
    ],
  ]),
  ...law("checker/Journal.compare", [
    ["synchronized.has(other.run)", "false", "Kernels that talk to each other are reported."],
  ]),
  ...law("checker/Journal.sweep", [
    [
      "    if (this.#running.length === 0) {\n      this.#entries",
      "    {\n      this.#entries",
      "What came before a kernel is forgotten while it waits.",
    ],
  ]),
  ...law("checker/opaque", [
    ['  "call",\n', "", "What a kernel has a function write counts as read only."],
  ]),
  ...law("checker/writtenParams", [
    [
      ' || (opcode === "ld" && !modifiers.includes("param"))',
      "",
      "Memory whose values are used as an index counts as written to.",
    ],
    ['opcode === "atom" ? inputs[0] : target', "target", "What a kernel adds to counts as read only."],
  ]),
  ...law("checker/Allocation.touch", [
    ["return conflict ?? kernel;", "return conflict;", "Kernels are unordered with nothing."],
  ]),
  ...law("checker/Allocation.touchByKernel", [
    [" || one.writes !== access.writes)", ")", "A kernel that reads hides one before it that writes."],
  ]),
  ...law("checker/ObjectLifetimes.forgetMemory", [
    [
      "    if (this.#closed.size > 0) this.#closed.delete(BigInt(address));\n",
      "",
      "Memory that is left where other memory was is no leak.",
    ],
  ]),
  ...law("checker/ObjectLifetimes.leaks", [
    ["!this.#closed.has(handle)", "true", "What is closed and still needed counts as left."],
  ]),
  ...law("checker/PendingCall.rows", [
    ["const isSolid = pitch === width || height === 1;", "const isSolid = true;", "Columns that interleave collide."],
  ]),
  ...law("checker/PendingCall.accepted", [
    ["    if (this.isNothing) return;\n", "", "A fill of no bytes is taken for order."],
  ]),
  ...law("checker/Reporter.report", [
    [
      "    if (this.#thrown === null) throw this.#thrown = new CausalityError(report);",
      "    throw this.#thrown = new CausalityError(report);",
      "What closing the rest finds hides the report.",
    ],
  ]),
  ...law("checker/Reporter.printUninspected", [
    [
      "    if (this.#thrown?.isInspected !== false) return;\n",
      "    return;\n",
      "A report that another error hides is lost.",
    ],
    ["this.#thrown?.isInspected !== false", "this.#thrown === null", "A report that was looked at is said again."],
  ]),
  ...law("checker/StreamState.event", [
    ["this.#sharedEvents.has(handle) ? null : state", "state", "What another process records is not waited for."],
  ]),
  ...law("checker/VectorClocks.reusable", [
    ["clock.every((tick, stream) => this.isOver(stream, tick))", "true", "A new stream inherits what an old one did."],
  ]),
  ...law("checker/VectorClocks.advance", [
    [
      "legacy.implicitClock ?? legacy.clock",
      "legacy.clock",
      "Order by an allocation on a default stream is taken for order.",
    ],
    ["    stream.implicitClock = null;\n", "", "After an allocation a default stream hands on nothing: false alarms."],
    ["      join(clock, this.host);\n", "", "What the host has waited for is reported."],
    ["      join(clock, context.barrier);\n", "", "What a whole context waits for is reported."],
    ["        join(clock, other.clock);\n", "", "The default stream seems to wait for nobody."],
    ["      join(clock, legacy.implicitClock ?? legacy.clock);\n", "", "Nobody seems to wait for the default stream."],
  ]),
  ...law("checker/VectorClocks.step", [
    ["    const tick = stream.tick + 1;", "    const tick = stream.tick;", "Work is taken for the work before it."],
  ]),
  ...law("checker/VectorClocks.implicitClockOf", [
    [
      "[...stream.implicitClock ?? stream.clock]",
      "[...stream.clock]",
      "Order by two allocations on a default stream is taken for order.",
    ],
  ]),
  ...law("checker/VectorClocks.waitInContext", [
    ["    context.barrierVersion++;\n", "", "What a context waits for is not seen."],
  ]),
  ...law("checker/VectorClocks.hostWaits", [
    ["    this.#hostVersion++;\n", "", "What the host waits for later is not seen."],
  ]),
  ...law("checker/VectorClocks.awaited", [
    [
      "stream === context.legacy ? [...context.streams].filter(({ isBlocking }) => isBlocking) : [stream]",
      "[stream]",
      "Waiting for the default stream is not waiting for the streams that it waits for.",
    ],
  ]),
  ...law("checker/ownPlaces", [
    [
      'here.includes("/causeway/dist/") ? ["./"] : []',
      "[]",
      "In the published package a report names its own files as the places of the calls.",
    ],
  ]),
];
