/** The protective lines of captures and graphs. */
import { inFile, type Mutation } from "./mutation.ts";

const behaviours = "tests/sim/behaviours_test.ts";
const graphs = [
  "tests/device/graph/graph_resources_test.ts",
  "tests/device/graph/graph_test.ts",
  behaviours,
  "tests/order/deferred_free_test.ts",
  "tests/device/failures_test.ts",
  "tests/device/graph/active_captures_test.ts",
  "tests/device/graph/graph_launches_test.ts",
];

/** What can be broken there. */
export const graphMutations: readonly Mutation[] = [
  ...inFile("src/device/graph/active_captures.ts", graphs, [
    [
      "  for (const capture of active) if (capture.stream.device.driver === driver) return true;\n",
      "",
      "Frees and questions spoil a capture.",
    ],
    ["capture.stream.device.driver === driver", "true", "The captures of one driver hold up the frees of another."],
    [
      "  if (isCapturing(driver)) waiting.push({ driver, work });\n  else work();\n",
      "  work();\n",
      "What is given back during a capture spoils it.",
    ],
    ["  active = [...active, capture];\n", "", "Nobody knows that a capture has begun."],
    ["  active = active.filter((one) => one !== capture);\n", "", "Nothing is given back any more after a capture."],
    ["  runAll(due.map(({ work }) => work));\n", "", "What was to be given back during a capture never is."],

    [
      "  for (const capture of active) capture.recorded(event, capture.includes(stream));\n",
      "",
      "A stream that joins a capture is not known to.",
    ],
    [
      "  for (const capture of active) capture.waits(stream, event);\n",
      "",
      "A stream that joins a capture is not known to.",
    ],
  ]),
  ...inFile("src/device/graph/capture.ts", graphs, [
    ["    if (code === undefined) {\n", "    if (false) {\n", "A mode that is none reaches the driver as undefined."],
    [
      '    if (this.#ended) throw new TypeError("Cannot end a capture twice");\n',
      "",
      "Ending twice is a nameless error, and gives back twice.",
    ],
    ["    if (this.#ended) return;\n", "", "Closing after the end gives back twice."],
    ["    this.#ended = true;\n", "", "Ending twice gives back twice."],
    ["    stream.retain();\n", "", "A stream that is destroyed meanwhile spoils the capture."],
    [
      "    runAll([...this.#streams.values()].map((stream) => () => stream.release()));\n",
      "",
      "The streams of a capture are never destroyed.",
    ],
    ["    this.#resources.push(used);\n", "", "Memory is freed under a graph."],
    [
      "    return this.#isOurs(stream) && this.#streams.has(name(stream));\n",
      "    return this.#streams.has(name(stream));\n",
      "What one Cuda captures holds up another one whose handles are the same.",
    ],
    [
      "    if (!this.#isOurs(event)) return;\n",
      "",
      "An event of one Cuda makes a stream of it join another one's capture.",
    ],
    [
      "    else this.#events.delete(event.handle);\n",
      "",
      "A stream that waits for an event recorded anew is taken for one of the capture.",
    ],
    [
      "if (this.#isOurs(stream) && this.#events.has(event.handle)",
      "if (this.#events.has(event.handle)",
      "A stream of one Cuda joins the capture of another one.",
    ],
    [
      '      checkCuda(device.driver, "cuStreamEndCapture", code);\n',
      "",
      "A spoiled capture gives a graph that is none.",
    ],
    ["    if (handle !== 0n) driver.graph.cuGraphDestroy(handle);\n", "", "What is thrown away leaks its graph."],
  ]),
  ...inFile("src/device/graph/graph_resources.ts", graphs, [
    [
      "const retained = this.#references.retained();",
      "const retained = new DisposableStack();",
      "What a graph uses is given back with the first of its executables.",
    ],

    [
      "    this.#retainedDevice = device.retained({ evenClosed: true });\n",
      "    this.#retainedDevice = new DisposableStack();\n",
      "The context goes before its graph.",
    ],
    [
      "    for (const launch of launches) end.use(launch);\n",
      "",
      "Streams that graphs were launched on are never destroyed.",
    ],
    ["    end.use(this.#retainedDevice);\n", "", "A device is never given back once it had a graph."],
    ["    return !mark.isDone;\n", "    return false;\n", "Memory is freed under a launch."],
    [
      "    if (isHandleStable) stream.retain();\n",
      "    if (isHandleStable) {}\n",
      "Memory is freed under a launch.",
    ],
    [
      "inFlight.every((mark) => follows(home, mark))",
      "inFlight.some((mark) => follows(home, mark))",
      "Memory is freed under a launch on one of several streams.",
    ],
    [
      "      if (this.#event !== null) stream.record(this.#event);\n",
      "",
      "Memory is freed under a launch on somebody else's stream.",
    ],
    [
      "    else if (this.#event?.device !== stream.device) {\n",
      "    else {\n",
      "Every launch on somebody else's stream makes an event.",
    ],
    ["      this.#stream = null;\n", "", "What was launched on somebody else's stream is not waited for."],
    ["    before?.release();\n", "", "Streams that graphs were launched on are never destroyed."],
    ["    this.#event?.close();\n  }\n", "  }\n", "A graph's event is never destroyed."],
    ["    if (launch !== undefined) launch.isLast = true;\n", "", "What closed executables have launched piles up."],
    [
      "      if (!launch.isLast || launch.inFlight !== null) continue;\n",
      "      if (!launch.isLast) continue;\n",
      "Memory is freed under a launch whose executable is closed.",
    ],
    [
      "    if (this.#launches.size >= this.#enough) this.#forgetFinished();\n",
      "",
      "What closed executables have launched piles up.",
    ],
  ]),
  ...inFile("src/device/graph/graph_exec.ts", graphs, [
    [
      '    if (this.#state.closed) throw new TypeError("Cannot use a closed CudaGraphExec");\n',
      "",
      "A destroyed handle is given to the driver.",
    ],
    ["    if (this.#state.closed) return;\n", "", "Closing twice destroys twice."],
    ["    this.#state.closed = true;\n", "", "Closing twice destroys twice."],
    [
      "      const code = besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle));\n",
      "      const code = 0;\n",
      "Graphs pile up.",
    ],
    ["      this.#retained[Symbol.dispose]();\n", "", "What a graph uses is never given back."],
    [
      "    this.#retained = resources.retained();\n    before[Symbol.dispose]();\n",
      "    before[Symbol.dispose]();\n",
      "Memory of the new graph is freed under it.",
    ],
    [
      "    if (resources !== this.resources) this.resources.noteLast(this);\n",
      "",
      "What updated executables have launched piles up.",
    ],
    [
      "    const { driver } = this;\n    this.resources.noteLast(this);\n",
      "    const { driver } = this;\n",
      "What closed executables have launched piles up.",
    ],
    ["    before[Symbol.dispose]();\n", "", "Memory of the old graph is never given back."],
    ["    if (captureOf(stream) !== null) {\n", "    if (false) {\n", "A launch into a capture is a nameless error."],
  ]),
];
