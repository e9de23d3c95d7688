/** The protective lines of the causality checker. */
import { inFile, type Mutation } from "./mutation.ts";

const laws = "tests/checker/checker_test.ts";
const work = "tests/checker/pending_call_test.ts";
const lifetime = "tests/checker/lifetime_test.ts";
const kernels = "tests/checker/kernels_test.ts";
const copies = "tests/checker/copies_test.ts";
const thrown = "tests/checker/thrown_test.ts";
const folder = "src/checker";

/** What can be broken there. */
export const checkerMutations: readonly Mutation[] = [
  ...inFile("src/checker/vector_clocks.ts", ["tests/checker/schedule_test.ts"], [
    [
      "[...stream.implicitClock ?? stream.clock]",
      "[...stream.clock]",
      "Order by two allocations on a default stream is taken for order.",
    ],
  ]),
  ...inFile("src/checker/pending_call.ts", ["tests/checker/schedule_test.ts"], [
    ["    if (this.isNothing) return;\n", "", "A fill of no bytes is taken for order."],
  ]),
  ...inFile("src/sim/calls/capture.ts", ["tests/gpu/implied_order_test.ts"], [
    ["  if (exec.nodes.length === 0) return;", "", "An empty graph orders here what it does not on a GPU."],
  ]),
  ...inFile("src/checker/checker_state.ts", ["tests/checker/schedule_test.ts"], [
    ["    if (graph.isEmpty) return;", "", "Order by an empty graph is taken for order."],
  ]),
  ...inFile("src/checker/calls/graph.ts", ["tests/checker/schedule_test.ts"], [
    [
      "nodes, opaque, isEmpty, last",
      "nodes, opaque, isEmpty: nodes.length === 0, last",
      "Graphs of others are no work: false alarms.",
    ],
  ]),
  ...inFile("src/checker/calls/host_synchronization.ts", ["tests/checker/schedule_test.ts"], [
    [
      "  if (stream === null || pending.isNothing) return;\n  checker.checkOverlap(stream, pending.call",
      "  if (stream === null) return;\n  checker.checkOverlap(stream, pending.call",
      "A peer copy of no bytes is taken for order.",
    ],
  ]),
  ...inFile("src/checker/calls/host_synchronization.ts", ["tests/checker/schedule_test.ts"], [
    [
      "  if (stream === null || pending.isNothing) return;\n  checker.checkOverlap(stream, call,",
      "  if (stream === null || touches.length === 0) return;\n  checker.checkOverlap(stream, call,",
      "A copy of arrays is no work: false alarms.",
    ],
  ]),
  ...inFile("src/sim/calls/pool.ts", ["tests/sim/driver_test.ts"], [
    [
      "  if (size > 0n) simulator.refuseImplicit(stream); // before anything is taken\n",
      "",
      "Memory that was refused is taken for ever.",
    ],
    [
      "      if (isFree) simulator.refuseImplicit(stream);\n",
      "",
      "Memory whose free was refused cannot be freed any more.",
    ],
  ]),
  ...inFile("src/checker/vector_clocks.ts", ["tests/checker/checker_test.ts"], [
    [
      "legacy.implicitClock ?? legacy.clock",
      "legacy.clock",
      "Order by an allocation on a default stream is taken for order.",
    ],
    ["    stream.implicitClock = null;\n", "", "After an allocation a default stream hands on nothing: false alarms."],
  ]),
  ...inFile("src/checker/checker_state.ts", ["tests/checker/checker_test.ts"], [
    [
      "      implicit[stream.index] = tick;\n",
      "",
      "Memory of a default stream is not there for a blocking one: false alarms.",
    ],
  ]),
  ...inFile(`${folder}/checker.ts`, [laws], [
    ["      state.order.wait(to, [...from.clock]);\n", "", "What Python has ordered is reported."],
    [
      '[state.stream(first, "cuEventRecord"), state.stream(then, "cuStreamWaitEvent")]',
      '[state.stream(then, "cuEventRecord"), state.stream(first, "cuStreamWaitEvent")]',
      "What Python has ordered is taken the other way round.",
    ],
  ]),
  ...inFile(`${folder}/vector_clocks.ts`, [laws], [
    ["      join(clock, this.host);\n", "", "What the host has waited for is reported."],
    ["      join(clock, context.barrier);\n", "", "What a whole context waits for is reported."],
    ["        join(clock, other.clock);\n", "", "The default stream seems to wait for nobody."],
    ["      join(clock, legacy.implicitClock ?? legacy.clock);\n", "", "Nobody seems to wait for the default stream."],
    ["clock.every((tick, stream) => this.isOver(stream, tick))", "true", "A new stream inherits what an old one did."],
    ["    this.#hostVersion++;\n", "", "What the host waits for later is not seen."],
    ["    context.barrierVersion++;\n", "", "What a context waits for is not seen."],
    ["    const tick = stream.tick + 1;", "    const tick = stream.tick;", "Work is taken for the work before it."],
    [
      "stream === context.legacy ? [...context.streams].filter(({ isBlocking }) => isBlocking) : [stream]",
      "[stream]",
      "Waiting for the default stream is not waiting for the streams that it waits for.",
    ],
  ]),
  ...inFile(`${folder}/access_history.ts`, [laws], [
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
    ["      conflict ??= span.history.conflict(true, clock);\n", "", "Writes of a part are missed."],
    ["      conflict ??= span.history.conflict(false, clock);\n", "", "Reads of a part are missed."],
    [
      "      if (span.end > end) pieces.push({ start: end, end: span.end, history: copyOf(span.history) });\n",
      "",
      "What is behind a written part is forgotten.",
    ],
    ["    gap(end);\n", "", "A read of what nobody has touched is forgotten."],
    [
      "if (this.write !== null && order.isOver(this.write.stream.index, this.write.tick)) this.write = null;",
      "this.write = null;",
      "A write is forgotten before the host has waited for it.",
    ],
  ]),
  ...inFile(`${folder}/calls/stream.ts`, [laws], [
    ["        order.wait(stream, clock);\n", "", "Waits for events are not seen."],
    [
      '      if (code === 0) waitedFor(stream, "cuStreamQuery");',
      '      waitedFor(stream, "cuStreamQuery");',
      "A stream that is asked too early counts as done.",
    ],
  ]),
  ...inFile(`${folder}/calls/event.ts`, [laws], [
    ["clock: [...stream.clock]", "clock: stream.clock", "An event stands for what comes after it, too."],
    ['      if (code === 0) passed(state, "cuEventQuery");\n', "", "What an event's answer says is not seen."],
    [
      '      if (code === 0) passed(state, "cuEventQuery");',
      '      passed(state, "cuEventQuery");',
      "An event that is asked too early counts as done.",
    ],
  ]),
  ...inFile(`${folder}/calls/context.ts`, [laws], [
    ["        join(clock, stream.clock);\n", "", "An event of a whole context stands for nothing."],
  ]),
  ...inFile(`${folder}/calls/host_synchronization.ts`, [laws], [
    ["checker.touchByHost(call, start, end, false);", ";", "What the host reads during an upload is not seen."],
    ['synchronous && from === "pageable" && to === "device"', "false", "An upload seems to be over when it returns."],
  ]),
  ...inFile(`${folder}/checker_state.ts`, [laws, work], [
    ["    this.order.wait(stream, graph.last);\n", "", "A launch does not wait for the last one."],
    ["    graph.last = [...stream.clock];\n", "", "A launch does not wait for the last one."],
    ["    if (!graph.examined) this.#examine(stream, graph);\n", "", "Branches of a graph are not compared."],
    [
      'if (conflict !== null) this.#raceWithHost(conflict, call, "frees", start, end, allocation);',
      "",
      "Memory of a pool that is freed at once may be in use.",
    ],
  ]),
  ...inFile(`${folder}/pending_call.ts`, [laws], [
    ["const isSolid = pitch === width || height === 1;", "const isSolid = true;", "Columns that interleave collide."],
  ]),
  ...inFile(`${folder}/known_memory.ts`, [work], [
    ["return conflict ?? kernel;", "return conflict;", "Kernels are unordered with nothing."],
  ]),
  ...inFile(`${folder}/kernel_params.ts`, [work], [
    [
      ' || (opcode === "ld" && !modifiers.includes("param"))',
      "",
      "Memory whose values are used as an index counts as written to.",
    ],
  ]),
  ...inFile(`${folder}/checker.ts`, [lifetime], [
    [
      'return () => state.hostWaits(clock, "completed()", [seq]);',
      "return () => {};",
      "Waiting for completed() is no wait.",
    ],
  ]),
  ...inFile(`${folder}/reporter.ts`, [thrown], [
    [
      "    if (this.#thrown === null) throw this.#thrown = new CausalityError(report);",
      "    throw this.#thrown = new CausalityError(report);",
      "What closing the rest finds hides the report.",
    ],
    [
      "    if (this.#thrown?.isInspected !== false) return;\n",
      "    return;\n",
      "A report that another error hides is lost.",
    ],
    [
      "this.#thrown?.isInspected !== false",
      "this.#thrown === null",
      "A report that was looked at is said again.",
    ],
  ]),
  ...inFile(`${folder}/journal.ts`, [kernels], [
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
    ["synchronized.has(other.run)", "false", "Kernels that talk to each other are reported."],
    [
      "if (isStrong && writes && allocation.isOfHost) recording.signalsHost = true;",
      "",
      "A kernel that tells the host is reported when the host listens.",
    ],
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
    [
      "    if (this.#running.length === 0) {\n      this.#entries",
      "    {\n      this.#entries",
      "What came before a kernel is forgotten while it waits.",
    ],
    [
      "last !== undefined && start <= last.end",
      "last !== undefined",
      "A kernel touches what is between what it touches.",
    ],
    ["this.#pieces = this.touches();", "this.#pieces = [];", "Of a kernel that touches much only the end is known."],
  ]),
  ...inFile(`${folder}/checker_state.ts`, [copies], [
    ["      before.opened++;\n", "", "Memory that is open twice is gone when it is closed once."],
    [
      "freed !== exporters && this.#isAnothers(freed)",
      "this.#isAnothers(freed)",
      "A free by the owner is taken for somebody else's memory.",
    ],
  ]),
  ...inFile(`${folder}/capture.ts`, [copies], [
    [
      "start === writes[i]?.start && end === writes[i].end",
      "start === writes[i]?.start",
      "Rows that slide into each other pass.",
    ],
    ["one.end <= read.start; one", "one.start <= read.start; one", "What a copy reads and writes in common is missed."],
  ]),
  ...inFile(`${folder}/calls/host_synchronization.ts`, [copies], [
    ["  checker.checkOverlap(stream, call, touches);\n", "", "Copies within themselves are missed."],
  ]),
  ...inFile(`${folder}/checker.ts`, [copies], [
    ["this.#closed || state.isLost || ", "", "A closed Cuda still speaks of memory that is somebody else's now."],
  ]),
  ...inFile("src/order/order.ts", [copies], [
    ["  noteElementAccess(elements, false, call);\n", "", "Nobody hears that a consumer on the host came too early."],
  ]),
  ...inFile("src/copy/device_copy.ts", [copies], [
    [
      '  noteElementAccess(source, false, "view.copyFrom()");\n',
      "",
      "The host arranges what is not there yet, and nobody hears.",
    ],
    [
      '  noteElementAccess(destination, true, "view.copyFrom()");\n',
      "",
      "The host writes what is still read, and nobody hears.",
    ],
  ]),
  ...inFile(`${folder}/kernel_params.ts`, [work], [
    ['  "call",\n', "", "What a kernel has a function write counts as read only."],
    ['opcode === "atom" ? inputs[0] : target', "target", "What a kernel adds to counts as read only."],
  ]),
  ...inFile(`${folder}/known_memory.ts`, [work], [
    [" || one.writes !== access.writes)", ")", "A kernel that reads hides one before it that writes."],
  ]),
  ...inFile(`${folder}/capture.ts`, [work], [
    ["[node, ...ancestors.get(node) ?? []]", "[node]", "Work of a graph seems to follow only the one before it."],
  ]),
  ...inFile(`${folder}/calls/graph.ts`, [work], [
    [
      "isEmpty: exec.isEmpty, last: exec.last, examined",
      "isEmpty: exec.isEmpty, last: [], examined",
      "An updated graph does not wait for its last launch.",
    ],
  ]),
  ...inFile(`${folder}/stream_state.ts`, [lifetime], [
    ["this.#sharedEvents.has(handle) ? null : state", "state", "What another process records is not waited for."],
  ]),
  ...inFile(`${folder}/calls/host_synchronization.ts`, [lifetime], [
    [
      "if (touches.some(({ start }) => checker.memory.find(start)?.syncMemops)) checker.hostWaitsFor([stream], call);",
      "",
      "Memory that is told to wait is reported.",
    ],
  ]),
  ...inFile(`${folder}/calls/fill.ts`, [lifetime], [
    [
      "(synchronous && isOnHost) || allocation.syncMemops",
      "allocation.syncMemops",
      "A fill of the host's memory is not waited for.",
    ],
  ]),
  ...inFile(`${folder}/object_lifetimes.ts`, [lifetime], [
    [
      "    if (this.#closed.size > 0) this.#closed.delete(BigInt(address));\n",
      "",
      "Memory that is left where other memory was is no leak.",
    ],
  ]),
  ...inFile(`${folder}/checker.ts`, [thrown], [
    ["leaks && !isLost", "leaks", "What a lost context keeps is called a leak."],
  ]),
  ...inFile(`${folder}/object_lifetimes.ts`, [lifetime], [
    ["!this.#closed.has(handle)", "true", "What is closed and still needed counts as left."],
  ]),

  ...inFile("src/ptx/instructions/load_store.ts", [kernels], [[
    'isStrong(reader) ? "volatile read" : "read"',
    '"read"',
    "A kernel that polls is reported.",
  ]]),

  ...inFile("src/sim/simulator.ts", ["tests/checker/schedule_test.ts"], [[
    "[after, implicitTail, context.barrier]",
    "[after, context.barrier]",
    "After an allocation a default stream hands on nothing.",
  ]]),
  ...inFile("src/sim/simulator.ts", ["tests/gpu/implied_order_test.ts"], [[
    "    stream.implicitTail = there;\n",
    "",
    "A program that relies on an allocation for order is right here, and wrong on a GPU.",
  ]]),
  ...inFile("src/sim/simulator.ts", ["tests/gpu/implied_order_test.ts"], [[
    "context.legacy.implicitTail",
    "context.legacy.tail",
    "Order is handed on by what hands on none on a GPU.",
  ]]),
];
