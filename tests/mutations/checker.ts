/** The protective lines of the causality checker. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const checkerMutations: readonly Mutation[] = [
  ...law("checker/CausalityChecker.received", [
    [
      "if (home !== null) state.enqueue",
      "if (home === null) state.enqueue",
      "Memory of another process is used too early.",
    ],
    [" || allocation.opened > 1", "", "A stream that already has the memory is reported when another one receives it."],
  ]),
  ...law("checker/currentSite", [
    ["frames = 48", "frames = 16", "The report of a copy to a typed array does not say where it was made."],
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
      "A conflict with an earlier write is missed.",
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
      "The bytes after a written part are forgotten.",
    ],
  ]),
  ...law("checker/RangeHistory.read", [
    ["      conflict ??= span.history.conflict(false, clock);\n", "", "Reads of a part are missed."],
    ["    gap(end);\n", "", "A read of bytes that were never accessed before is forgotten."],
  ]),
  ...law("checker/contextCalls", [
    ["        join(clock, stream.clock);\n", "", "An event of a whole context orders nothing."],
  ]),
  ...law("checker/eventCalls", [
    ["clock: [...stream.clock]", "clock: stream.clock", "An event also covers work that was enqueued after it."],
    ['      if (code === 0) passed(state, "cuEventQuery");\n', "", "The result of an event query is not noticed."],
    [
      '      if (code === 0) passed(state, "cuEventQuery");',
      '      passed(state, "cuEventQuery");',
      "An event that is queried too early counts as done.",
    ],
  ]),
  ...law("checker/finish", [
    [
      "(synchronous && isOnHost) || allocation.syncMemops",
      "allocation.syncMemops",
      "A fill of host memory is not waited for.",
    ],
  ]),
  ...law("checker/moduleCalls", [
    [
      "      for (const kernel of modules.get(handle)?.kernels ?? []) kernels.delete(kernel);\n",
      "",
      "A program that loads one kernel after the other grows for as long as it is checked.",
    ],
  ]),
  ...law("checker/graphCalls", [
    [
      "nodes, opaque, isEmpty, last",
      "nodes, opaque, isEmpty: nodes.length === 0, last",
      "Graphs of other libraries do not count as work, which causes false alarms.",
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
      "A copy of arrays does not count as work, which causes false alarms.",
    ],
    ["checker.touchByHost(call, start, end, false);", ";", "Reads by the host during an upload are not noticed."],
    [
      'synchronous && from === "pageable" && to === "device"',
      "false",
      "An upload seems to be done when its call returns.",
    ],
    ["  checker.checkOverlap(stream, call, touches);\n", "", "Copies that overlap themselves are missed."],
    [
      "if (touches.some(({ start }) => checker.memory.find(start)?.syncMemops)) checker.hostWaitsFor([stream], call);",
      "",
      "A use of memory with synchronous operations is reported.",
    ],
  ]),
  ...law("checker/acceptPeerCopy", [
    [
      "  if (stream === null || pending.isNothing) return;\n  checker.checkOverlap(stream, pending.call",
      "  if (stream === null) return;\n  checker.checkOverlap(stream, pending.call",
      "A peer copy of no bytes counts as ordering.",
    ],
  ]),
  ...law("checker/streamCalls", [
    ["        order.wait(stream, clock);\n", "", "Waits for events are not noticed."],
    [
      '      if (code === 0) waitedFor(stream, "cuStreamQuery");',
      '      waitedFor(stream, "cuStreamQuery");',
      "A stream that is queried too early counts as done.",
    ],
  ]),
  ...law("checker/unorderedNodes", [
    ["[node, ...ancestors.get(node) ?? []]", "[node]", "Work of a graph seems to follow only the node before it."],
  ]),
  ...law("checker/overlap", [
    [
      "start === writes[i]?.start && end === writes[i].end",
      "start === writes[i]?.start",
      "Rows that partly overlap are not reported.",
    ],
    [
      "one.end <= read.start; one",
      "one.start <= read.start; one",
      "Bytes that a copy both reads and writes are missed.",
    ],
  ]),
  ...law("checker/CausalityChecker.mark", [
    [
      'return () => state.hostWaits(clock, "completed()", [seq]);',
      "return () => {};",
      "Waiting for completed() does not count as a wait.",
    ],
  ]),
  ...law("checker/CausalityChecker.orderedElsewhere", [
    ["      state.order.wait(to, [...from.clock]);\n", "", "Work that Python has ordered is reported."],
    [
      '[state.stream(first, "cuEventRecord"), state.stream(then, "cuStreamWaitEvent")]',
      '[state.stream(then, "cuEventRecord"), state.stream(first, "cuStreamWaitEvent")]',
      "An order that Python has made is recorded in reverse.",
    ],
  ]),
  ...law("checker/CausalityChecker.newHostMemory", [
    ["this.#state.memory.newHostMemory(start, start + bytes);", "{}", "New memory is reported to be in use."],
  ]),
  ...law("checker/KnownMemory.newHostMemory", [
    ["    this.#foreign.forget(start, end);\n", "", "New memory is reported to be in use."],
  ]),
  ...law("checker/CausalityChecker.hostAccess", [
    ["state.isLost || ", "", "A lost Cuda still reports uses of memory that is gone."],
  ]),
  ...law("checker/CausalityChecker.close", [
    ["leaks && !isLost", "leaks", "Objects of a lost context are reported as leaks."],
    [
      "    this.#stopObserving();\n",
      "",
      "A closed Cuda still reports uses of memory that now belongs to another owner.",
    ],
  ]),
  ...law("checker/CheckerState.launchGraph", [
    ["    if (graph.isEmpty) return;", "", "An empty graph counts as ordering."],
    ["    this.order.wait(stream, graph.last);\n", "", "A launch does not wait for the last one."],
    ["    graph.last = [...stream.clock];\n", "", "A launch does not wait for the last one."],
    ["    if (!graph.examined) this.#examine(graph);\n", "", "Branches of a graph are not compared."],
  ]),
  ...law("checker/CheckerState.allocated", [
    [
      "      implicit[stream.index] = tick;\n",
      "",
      "Memory of a default stream does not exist yet for a blocking stream, which causes false alarms.",
    ],
  ]),
  ...law("checker/CheckerState.imported", [
    ["      before.opened++;\n", "", "Memory that was opened twice counts as closed after one close."],
  ]),
  ...law("checker/CheckerState.freeByHost", [
    [
      'if (conflict !== null) this.#raceWithHost(conflict, call, "frees", start, end, allocation);',
      "",
      "Memory of a pool that is freed immediately may still be in use.",
    ],
  ]),
  ...law("checker/CheckerState.checkNotFreed", [
    [
      "freed !== exporters && this.#isAnothers(freed)",
      "this.#isAnothers(freed)",
      "A use of memory that its exporter has freed is attributed to another owner.",
    ],
  ]),
  ...law("checker/KernelRecording.accessed", [
    [
      "this.#pieces = this.touches();",
      "this.#pieces = [];",
      "Only the last accesses of a kernel with many accesses are known.",
    ],
  ]),
  ...law("checker/KernelRecording.joined", [
    [
      "last !== undefined && start <= last.end",
      "last !== undefined",
      "The accesses of a kernel include the gaps between them.",
    ],
  ]),
  ...law("checker/Journal.add", [
    [
      "if (entry.host === null || !run.recording.signalsHost) this.#addRace(kernel, entry);",
      "this.#addRace(kernel, entry);",
      "A kernel that signals the host is reported when the host reads the signal later.",
    ],
    [
      "if (run === null || !conflict(kernel, entry) || areOrdered(run, entry)) continue;",
      "continue;",
      "Work after a kernel that has run is missed.",
    ],
  ]),
  ...law("checker/Journal.entriesOf", [
    [
      "if (isStrong && writes && allocation.isOfHost) recording.signalsHost = true;",
      "",
      "A kernel that signals the host is reported when the host reads the signal.",
    ],
  ]),
  ...law("checker/Journal.allocationAt", [
    [
      "now !== undefined && now.allocatedAt < at",
      "now !== undefined",
      "A kernel's access is attributed to memory that was allocated later.",
    ],
    [
      "findLast(({ allocatedAt, start, end }) => allocatedAt < at && ",
      "find(({ start, end }) => ",
      "A kernel's access is attributed to memory that was allocated and freed later.",
    ],
  ]),
  ...law("checker/Journal.compare", [
    [
      "synchronized.has(other.run.recording.signals)",
      "false",
      "Kernels that synchronize with each other are reported.",
    ],
  ]),
  ...law("checker/Journal.sweep", [
    [
      "return isIdle ? left.filter((entry) => !isOver(entry)) : left;",
      "return left.filter((entry) => !isOver(entry));",
      "Work before a kernel is forgotten while the kernel waits.",
    ],
  ]),
  ...law("checker/Journal.newest", [
    [
      "if (at < launched) later.push(entry);",
      "later.push(entry);",
      "Work that a waiting kernel may race with is forgotten for work that is ordered with the kernel.",
    ],
    ["(one.writes || !writes) && ", "", "A write is forgotten for a later read."],
    [" && isBefore(access, one.clock)", "", "Work is forgotten for later work that nothing orders after it."],
    [" ${isStrong} ", " ", "That a kernel signals is forgotten for what it has done without signals."],
    [
      ' ${run?.recording.signals ?? ""}',
      "",
      "A kernel is forgotten for one that others may wait for by themselves.",
    ],
  ]),
  ...law("checker/RangeIndex.overlapping", [
    [
      "firstAfter(list, start - below)",
      "firstAfter(list, start)",
      "Bytes are not found in a range that starts before.",
    ],
    ["if (one.end > start) ", "", "A range that ends before the bytes is found."],
  ]),
  ...law("checker/opaque", [
    ['  "call",\n', "", "Memory that a called function writes counts as only read."],
  ]),
  ...law("checker/writtenParams", [
    [
      ' || (opcode === "ld" && !modifiers.includes("param"))',
      "",
      "Memory whose values are used as an index counts as written.",
    ],
    ['opcode === "atom" ? inputs[0] : target', "target", "Memory that a kernel adds to counts as only read."],
  ]),
  ...law("checker/Allocation.touch", [
    ["return conflict ?? kernel;", "return conflict;", "Kernels never count as unordered."],
  ]),
  ...law("checker/Allocation.touchByKernel", [
    [" || one.writes !== access.writes)", ")", "A kernel that reads hides an earlier kernel that writes."],
  ]),
  ...law("checker/ObjectLifetimes.forgetClosed", [
    [
      "    if (this.#closed.size > 0) this.#closed.delete(BigInt(address));\n",
      "",
      "Memory that is leaked at the address of earlier memory is not reported.",
    ],
  ]),
  ...law("checker/ObjectLifetimes.leaks", [
    ["!this.#closed.has(handle)", "true", "Objects that are closed and still needed are reported as leaks."],
  ]),
  ...law("checker/PendingCall.rows", [
    [
      "const isSolid = pitch === width || height === 1;",
      "const isSolid = true;",
      "Interleaved columns count as overlapping.",
    ],
  ]),
  ...law("checker/PendingCall.accepted", [
    ["    if (this.isNothing) return;\n", "", "A fill of no bytes counts as ordering."],
  ]),
  ...law("checker/Reporter.report", [
    [
      "    if (this.#thrown === null) throw this.#thrown = new CausalityError(report);",
      "    throw this.#thrown = new CausalityError(report);",
      "Errors while closing the rest hide the report.",
    ],
  ]),
  ...law("checker/Reporter.printUninspected", [
    [
      "    if (this.#thrown?.isInspected !== false) return;\n",
      "    return;\n",
      "A report that another error hides is lost.",
    ],
    ["this.#thrown?.isInspected !== false", "this.#thrown === null", "A report that was inspected is printed again."],
  ]),
  ...law("checker/StreamState.event", [
    ["this.#sharedEvents.has(handle) ? null : state", "state", "Work that another process records is not waited for."],
  ]),
  ...law("checker/VectorClocks.reusable", [
    [
      "clock.every((tick, stream) => this.isOver(stream, tick))",
      "true",
      "A new stream inherits the history of an old one.",
    ],
  ]),
  ...law("checker/VectorClocks.advance", [
    [
      "legacy.implicitClock ?? legacy.clock",
      "legacy.clock",
      "An allocation on a default stream counts as ordering.",
    ],
    [
      "    stream.implicitClock = null;\n",
      "",
      "After an allocation, a default stream passes on no order, which causes false alarms.",
    ],
    ["      join(clock, this.host);\n", "", "Work that the host has waited for is reported."],
    ["      join(clock, context.barrier);\n", "", "Work that a whole context waits for is reported."],
    ["        join(clock, other.clock);\n", "", "The default stream seems to wait for no other stream."],
    [
      "      join(clock, legacy.implicitClock ?? legacy.clock);\n",
      "",
      "No stream seems to wait for the default stream.",
    ],
  ]),
  ...law("checker/VectorClocks.step", [
    ["    const tick = stream.tick + 1;", "    const tick = stream.tick;", "Work is mistaken for the work before it."],
  ]),
  ...law("checker/VectorClocks.implicitClockOf", [
    [
      "[...stream.implicitClock ?? stream.clock]",
      "[...stream.clock]",
      "Two allocations on a default stream count as ordering.",
    ],
  ]),
  ...law("checker/VectorClocks.waitInContext", [
    ["    context.barrierVersion++;\n", "", "Waits of a context are not noticed."],
  ]),
  ...law("checker/VectorClocks.hostWaits", [
    ["    this.#hostVersion++;\n", "", "Later waits of the host are not noticed."],
  ]),
  ...law("checker/VectorClocks.awaited", [
    [
      "stream === context.legacy ? [...context.streams].filter(({ isBlocking }) => isBlocking) : [stream]",
      "[stream]",
      "Waiting for the default stream does not cover the streams that it waits for.",
    ],
  ]),
  ...law("checker/checkIsDriver", [
    [
      'typeof driver?.opening === "object"',
      "true",
      "What has a driver is taken for one, and fails with an engine's error.",
    ],
  ]),
  ...law("checker/isOwn", [
    [
      "packageFile.test(frame)",
      "false",
      "In the published package, a report names the package's own files as the places.",
    ],
    ["isBundled ? stack.join() : ", "", "In a bundle, only the first of several races is reported."],
    [
      "!isSource && !packageFile.test(import.meta.url)",
      "!isSource",
      "The package reports a race for each call of its function.",
    ],
  ]),
];
