/** The protective lines of captures and graphs. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const deviceGraphMutations: readonly Mutation[] = [
  ...law("device/isCapturing", [
    [
      "  for (const capture of active) if (capture.stream.device.driver === driver) return true;\n",
      "",
      "Frees and questions spoil a capture.",
    ],
    ["capture.stream.device.driver === driver", "true", "The captures of one driver hold up the frees of another."],
  ]),
  ...law("device/afterCaptures", [
    [
      "  if (isCapturing(driver)) waiting.push({ driver, work });\n  else work();\n",
      "  work();\n",
      "What is given back during a capture spoils it.",
    ],
  ]),
  ...law("device/beginCapture", [
    ["  active = [...active, capture];\n", "", "Nobody knows that a capture has begun."],
  ]),
  ...law("device/endCapture", [
    ["  active = active.filter((one) => one !== capture);\n", "", "Nothing is given back any more after a capture."],
    ["  runAll(due.map(({ work }) => work));\n", "", "What was to be given back during a capture never is."],
  ]),
  ...law("device/noteRecord", [
    [
      "  for (const capture of active) capture.recorded(event, capture.includes(stream));\n",
      "",
      "A stream that joins a capture is not known to.",
    ],
  ]),
  ...law("device/noteWait", [
    [
      "  for (const capture of active) capture.waits(stream, event);\n",
      "",
      "A stream that joins a capture is not known to.",
    ],
  ]),
  ...law("device/StreamCapture.constructor", [
    ["    if (code === undefined) {\n", "    if (false) {\n", "A mode that is none reaches the driver as undefined."],
  ]),
  ...law("device/StreamCapture.includes", [
    [
      "    return this.#isOurs(stream) && this.#streams.has(name(stream));\n",
      "    return this.#streams.has(name(stream));\n",
      "What one Cuda captures holds up another one whose handles are the same.",
    ],
  ]),
  ...law("device/StreamCapture.recorded", [
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
  ]),
  ...law("device/StreamCapture.waits", [
    [
      "if (this.#isOurs(stream) && this.#events.has(event.handle)",
      "if (this.#events.has(event.handle)",
      "A stream of one Cuda joins the capture of another one.",
    ],
  ]),
  ...law("device/StreamCapture.retain", [
    ["    this.#resources.push(used);\n", "", "Memory is freed under a graph."],
  ]),
  ...law("device/StreamCapture.end", [
    [
      '    if (this.#ended) throw new TypeError("Cannot end a capture twice");\n',
      "",
      "Ending twice is a nameless error, and gives back twice.",
    ],
    [
      '      checkCuda(device.driver, "cuStreamEndCapture", code);\n',
      "",
      "A spoiled capture gives a graph that is none.",
    ],
  ]),
  ...law("device/StreamCapture.close", [
    ["    if (this.#ended) return;\n", "", "Closing after the end gives back twice."],
    ["    if (handle !== 0n) driver.graph.cuGraphDestroy(handle);\n", "", "What is thrown away leaks its graph."],
  ]),
  ...law("device/StreamCapture.add", [
    ["    stream.retain();\n", "", "A stream that is destroyed meanwhile spoils the capture."],
  ]),
  ...law("device/StreamCapture.finish", [
    ["    this.#ended = true;\n", "", "Ending twice gives back twice."],
    [
      "    runAll([...this.#streams.values()].map((stream) => () => stream.release()));\n",
      "",
      "The streams of a capture are never destroyed.",
    ],
  ]),
  ...law("device/CudaGraph.constructor", [
    ["    closeIfDropped(this, this.#state);\n", "", "Graphs that are only dropped pile up."],
  ]),
  ...law("device/CudaGraph.close", [
    ["    closeOnce(this.#state);\n", "", "A graph that is closed is not destroyed before it is collected."],
  ]),
  ...law("device/GraphExecState.switchTo", [
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
    ["    before[Symbol.dispose]();\n", "", "Memory of the old graph is never given back."],
  ]),
  ...law("device/GraphExecState.close", [
    [
      "      const code = besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle));\n",
      "      const code = 0;\n",
      "Graphs pile up.",
    ],
    ["      this.#retained[Symbol.dispose]();\n", "", "What a graph uses is never given back."],
    [
      "    const { driver } = this;\n    this.resources.noteLast(this);\n",
      "    const { driver } = this;\n",
      "What closed executables have launched piles up.",
    ],
    [
      "besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle))",
      "driver.graph.cuGraphExecDestroy(this.#handle)",
      "Closing a graph spoils another library's capture.",
    ],
    [
      "    afterCaptures(driver, () => { // the destroy would invalidate a capture\n",
      "    ((_: unknown, work: () => void) => work())(driver, () => { // the destroy would invalidate a capture\n",
      "Closing a graph during a capture spoils it.",
    ],
  ]),
  ...law("device/CudaGraphExec.constructor", [
    ["    closeIfDropped(this, this.#state);\n", "", "Graphs that are only dropped pile up."],
  ]),
  ...law("device/CudaGraphExec.handle", [
    [
      '    if (this.#state.closed) throw new TypeError("Cannot use a closed CudaGraphExec");\n',
      "",
      "A destroyed handle is given to the driver.",
    ],
  ]),
  ...law("device/CudaGraphExec.close", [
    ["    closeOnce(this.#state);\n", "", "An executable that is closed is not destroyed before it is collected."],
  ]),
  ...law("device/CudaGraphExec.enqueue", [
    ["    if (captureOf(stream) !== null) {\n", "    if (false) {\n", "A launch into a capture is a nameless error."],
  ]),
  ...law("device/LastLaunch.prepare", [
    ["    if (isHandleStable) stream.retain();\n", "    if (isHandleStable) {}\n", "Memory is freed under a launch."],
    [
      "    else if (this.#event?.device !== stream.device) {\n",
      "    else {\n",
      "Every launch on somebody else's stream makes an event.",
    ],
  ]),
  ...law("device/LastLaunch.note", [
    [
      "      if (this.#event !== null) stream.record(this.#event);\n",
      "",
      "Memory is freed under a launch on somebody else's stream.",
    ],
    ["      this.#stream = null;\n", "", "What was launched on somebody else's stream is not waited for."],
    ["    before?.release();\n", "", "Streams that graphs were launched on are never destroyed."],
  ]),
  ...law("device/LastLaunch.Symbol.dispose", [
    ["    this.#event?.close();\n  }\n", "  }\n", "A graph's event is never destroyed."],
  ]),
  ...law("device/GraphResources.constructor", [
    [
      "    this.#retainedDevice = device.retained({ evenClosed: true });\n",
      "    this.#retainedDevice = new DisposableStack();\n",
      "The context goes before its graph.",
    ],
  ]),
  ...law("device/GraphResources.retained", [
    [
      "const retained = this.#references.retained();",
      "const retained = new DisposableStack();",
      "What a graph uses is given back with the first of its executables.",
    ],
  ]),
  ...law("device/GraphResources.launchOf", [
    [
      "    if (this.#launches.size >= this.#enough) this.#forgetFinished();\n",
      "",
      "What closed executables have launched piles up.",
    ],
  ]),
  ...law("device/GraphResources.noteLast", [
    ["    if (launch !== undefined) launch.isLast = true;\n", "", "What closed executables have launched piles up."],
  ]),
  ...law("device/GraphResources.forgetFinished", [
    [
      "      if (!launch.isLast || launch.inFlight !== null) continue;\n",
      "      if (!launch.isLast) continue;\n",
      "Memory is freed under a launch whose executable is closed.",
    ],
  ]),
  ...law("device/GraphResources.release", [
    [
      "    for (const launch of launches) end.use(launch);\n",
      "",
      "Streams that graphs were launched on are never destroyed.",
    ],
    ["    end.use(this.#retainedDevice);\n", "", "A device is never given back once it had a graph."],
    [
      "inFlight.every((mark) => follows(home, mark))",
      "inFlight.some((mark) => follows(home, mark))",
      "Memory is freed under a launch on one of several streams.",
    ],
  ]),
  ...law("device/isBusy", [
    ["    return !mark.isDone;\n", "    return false;\n", "Memory is freed under a launch."],
  ]),
];
