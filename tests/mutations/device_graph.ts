/** The protective lines of captures and graphs. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const deviceGraphMutations: readonly Mutation[] = [
  ...law("device/isCapturing", [
    [
      "  for (const capture of active) if (capture.stream.device.driver === driver) return true;\n",
      "",
      "Frees and queries invalidate a capture.",
    ],
    ["capture.stream.device.driver === driver", "true", "The captures of one driver delay the frees of another."],
  ]),
  ...law("device/afterCaptures", [
    [
      "  if (isCapturing(driver)) waiting.push({ driver, work });\n  else work();\n",
      "  work();\n",
      "A release during a capture invalidates it.",
    ],
  ]),
  ...law("device/beginCapture", [
    ["  active = [...active, capture];\n", "", "The beginning of a capture is not noticed."],
  ]),
  ...law("device/endCapture", [
    ["  active = active.filter((one) => one !== capture);\n", "", "Nothing is released any more after a capture."],
    ["  runAll(due.map(({ work }) => work));\n", "", "A release that was delayed by a capture is never made."],
  ]),
  ...law("device/noteRecord", [
    [
      "  for (const capture of active) capture.recorded(event, capture.includes(stream));\n",
      "",
      "A stream that joins a capture is not known to be part of it.",
    ],
  ]),
  ...law("device/noteWait", [
    [
      "  for (const capture of active) capture.waits(stream, event);\n",
      "",
      "A stream that joins a capture is not known to be part of it.",
    ],
  ]),
  ...law("device/noteEventDestroyed", [
    [
      "  for (const capture of active) capture.forget(driver, handle);\n",
      "",
      "A new event that has the handle of a closed one is taken for one that was recorded in a capture.",
    ],
  ]),
  ...law("device/StreamCapture.constructor", [
    ["    if (code === undefined) {\n", "    if (false) {\n", "An invalid mode reaches the driver as undefined."],
  ]),
  ...law("device/StreamCapture.includes", [
    [
      "    return this.#isOurs(stream) && this.#streams.has(name(stream));\n",
      "    return this.#streams.has(name(stream));\n",
      "A capture of one Cuda delays another Cuda with equal handles.",
    ],
  ]),
  ...law("device/StreamCapture.recorded", [
    [
      "    if (!this.#isOurs(event)) return;\n",
      "",
      "An event of one Cuda makes one of its streams join a capture of another Cuda.",
    ],
    [
      "    else this.#events.delete(event.handle);\n",
      "",
      "A stream that waits for an event that was recorded again is mistaken for part of the capture.",
    ],
  ]),
  ...law("device/StreamCapture.forget", [
    [
      "if (driver === this.stream.device.driver) this",
      "this",
      "An event that is closed is forgotten by a capture of another Cuda, which has recorded one of the same handle.",
    ],
  ]),
  ...law("device/StreamCapture.waits", [
    [
      "if (this.#isOurs(stream) && this.#events.has(event.handle)",
      "if (this.#events.has(event.handle)",
      "A stream of one Cuda joins a capture of another Cuda.",
    ],
  ]),
  ...law("device/StreamCapture.retain", [
    ["    this.#resources.push(used);\n", "", "Memory is freed while a graph uses it."],
  ]),
  ...law("device/StreamCapture.end", [
    [
      '    if (this.#ended) throw new TypeError("Cannot end a capture twice");\n',
      "",
      "Ending twice fails with an unexplained error, and releases twice.",
    ],
    [
      '      checkCuda(device.driver, "cuStreamEndCapture", code);\n',
      "",
      "An invalidated capture returns an invalid graph.",
    ],
  ]),
  ...law("device/StreamCapture.close", [
    ["    if (this.#ended) return;\n", "", "Closing after the end releases twice."],
    ["    if (handle !== 0n) driver.graph.cuGraphDestroy(handle);\n", "", "A discarded capture leaks its graph."],
  ]),
  ...law("device/StreamCapture.add", [
    ["    stream.retain();\n", "", "A stream that is destroyed during a capture invalidates it."],
  ]),
  ...law("device/StreamCapture.finish", [
    ["    this.#ended = true;\n", "", "Ending twice releases twice."],
    [
      "        ...[...this.#streams.values()].map((one) => () => one.release()),\n",
      "",
      "The streams of a capture are never destroyed.",
    ],
    [
      "      if (out.value !== 0n) graph.cuGraphDestroy(out.value); // a stream could not be released\n",
      "",
      "A capture whose stream cannot be destroyed leaks its graph.",
    ],
  ]),
  ...law("device/nameInCaptures", [
    [
      'stream.handleFor("use")',
      "stream.handle",
      "The driver is queried about an idle stream, because it was captured once.",
    ],
  ]),
  ...law("device/CudaGraph.constructor", [
    ["    closeIfDropped(this, this.#state);\n", "", "Graphs that are dropped without being closed pile up."],
  ]),
  ...law("device/CudaGraph.close", [
    ["    closeOnce(this.#state);\n", "", "A closed graph is not destroyed before it is collected."],
  ]),
  ...law("device/GraphExecState.switchTo", [
    [
      "    this.#retained = resources.retained();\n    before[Symbol.dispose]();\n",
      "    before[Symbol.dispose]();\n",
      "Memory of the new graph is freed while the graph uses it.",
    ],
    [
      "    if (resources !== this.resources) this.resources.noteLast(this);\n",
      "",
      "Launches of updated executables pile up.",
    ],
    ["    before[Symbol.dispose]();\n", "", "Memory of the old graph is never released."],
  ]),
  ...law("device/GraphExecState.close", [
    [
      "      const code = besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle));\n",
      "      const code = 0;\n",
      "Graphs pile up.",
    ],
    ["      this.#retained[Symbol.dispose]();\n", "", "Memory that a graph uses is never released."],
    [
      "    const { driver } = this;\n    this.resources.noteLast(this);\n",
      "    const { driver } = this;\n",
      "Launches of closed executables pile up.",
    ],
    [
      "besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle))",
      "driver.graph.cuGraphExecDestroy(this.#handle)",
      "Closing a graph invalidates another library's capture.",
    ],
    [
      "    afterCaptures(driver, () => { // the destroy would invalidate a capture\n",
      "    ((_: unknown, work: () => void) => work())(driver, () => { // the destroy would invalidate a capture\n",
      "Closing a graph during a capture invalidates the capture.",
    ],
  ]),
  ...law("device/CudaGraphExec.constructor", [
    ["    closeIfDropped(this, this.#state);\n", "", "Graphs that are dropped without being closed pile up."],
  ]),
  ...law("device/CudaGraphExec.handle", [
    [
      '    if (this.#state.closed) throw new TypeError("Cannot use a closed CudaGraphExec");\n',
      "",
      "A destroyed handle is passed to the driver.",
    ],
  ]),
  ...law("device/CudaGraphExec.close", [
    ["    closeOnce(this.#state);\n", "", "A closed executable is not destroyed before it is collected."],
  ]),
  ...law("device/CudaGraphExec.enqueue", [
    [
      "    if (captureOf(stream) !== null) {\n",
      "    if (false) {\n",
      "A launch into a capture fails with an unexplained error.",
    ],
  ]),
  ...law("device/LastLaunch.prepare", [
    [
      "    if (isHandleStable) stream.retain();\n",
      "    if (isHandleStable) {}\n",
      "Memory is freed while a launch uses it.",
    ],
    [
      "    else if (this.#event?.device !== stream.device) {\n",
      "    else {\n",
      "Every launch on a foreign stream creates an event.",
    ],
  ]),
  ...law("device/LastLaunch.note", [
    [
      "      if (this.#event !== null) stream.record(this.#event);\n",
      "",
      "Memory is freed while a launch on a foreign stream uses it.",
    ],
    ["      this.#stream = null;\n", "", "A launch on a foreign stream is not waited for."],
    ["    before?.release();\n", "", "Streams that graphs were launched on are never destroyed."],
  ]),
  ...law("device/LastLaunch.Symbol.dispose", [
    ["    this.#event?.close();\n  }\n", "  }\n", "A graph's event is never destroyed."],
  ]),
  ...law("device/GraphResources.constructor", [
    [
      "    this.#retainedDevice = device.retained({ evenClosed: true });\n",
      "    this.#retainedDevice = new DisposableStack();\n",
      "The context is destroyed before its graph.",
    ],
  ]),
  ...law("device/GraphResources.retained", [
    [
      "const retained = this.#references.retained();",
      "const retained = new DisposableStack();",
      "Memory that a graph uses is released with the first of its executables.",
    ],
  ]),
  ...law("device/GraphResources.launchOf", [
    [
      "    if (this.#launches.size >= this.#enough) this.#forgetFinished();\n",
      "",
      "Launches of closed executables pile up.",
    ],
  ]),
  ...law("device/GraphResources.noteLast", [
    ["    if (launch !== undefined) launch.isLast = true;\n", "", "Launches of closed executables pile up."],
  ]),
  ...law("device/GraphResources.forgetFinished", [
    [
      "      if (!launch.isLast || launch.inFlight !== null) continue;\n",
      "      if (!launch.isLast) continue;\n",
      "Memory is freed while a launch of a closed executable uses it.",
    ],
  ]),
  ...law("device/GraphResources.release", [
    [
      "    for (const launch of launches) end.use(launch);\n",
      "",
      "Streams that graphs were launched on are never destroyed.",
    ],
    ["    end.use(this.#retainedDevice);\n", "", "A device that had a graph is never released."],
    [
      "inFlight.every((mark) => follows(home, mark))",
      "inFlight.some((mark) => follows(home, mark))",
      "Memory is freed while a launch on one of several streams uses it.",
    ],
  ]),
  ...law("device/isBusy", [
    ["    return !mark.isDone;\n", "    return false;\n", "Memory is freed while a launch uses it."],
  ]),
];
