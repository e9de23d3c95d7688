/** The protective lines of captures and graphs. */
import { inFile, type Mutation } from "./mutation.ts";

const behaviours = "tests/sim/behaviours_test.ts";
const graphs = [
  "tests/cuda/graph_use_test.ts",
  "tests/cuda/graph_test.ts",
  behaviours,
  "tests/memory/deferred_free_test.ts",
  "tests/cuda/failures_test.ts",
];

/** What can be broken there. */
export const graphMutations: readonly Mutation[] = [
  ...inFile("src/cuda/captures.ts", graphs, [
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
    ["  allOf(due.map(({ work }) => work));\n", "", "What was to be given back during a capture never is."],

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
  ...inFile("src/cuda/capture.ts", graphs, [
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
      "    allOf([...this.#streams.values()].map((stream) => () => stream.release()));\n",
      "",
      "The streams of a capture are never destroyed.",
    ],
    ["    this.#used.push(used);\n", "", "Memory is freed under a graph."],
    [
      '      checkCuda(device.driver, "cuStreamEndCapture", code);\n',
      "",
      "A spoiled capture gives a graph that is none.",
    ],
    ["    if (handle !== 0n) driver.graph.cuGraphDestroy(handle);\n", "", "What is thrown away leaks its graph."],
  ]),
  ...inFile("src/cuda/graph_use.ts", graphs, [
    ["    this.#holders++;\n", "", "What a graph uses is given back with the first of its executables."],

    [
      "    this.#releaseDevice = device.keep();\n",
      "    this.#releaseDevice = () => {};\n",
      "The context goes before its graph.",
    ],
    ["    stream.retain();\n    this.#streams.add(stream);\n", "", "Memory is freed under a launch."],
    [
      "[...[...this.#streams].map((stream) => () => stream.release()), this.#releaseDevice];",
      "[this.#releaseDevice];",
      "Streams that graphs were launched on are never destroyed.",
    ],
    [", this.#releaseDevice];", "];", "A device is never given back once it had a graph."],
    ["    return !stream.isDone;\n", "    return false;\n", "Memory is freed under a launch."],
    ["    home.wait(stream);\n", "", "Memory is freed under a launch."],
  ]),
  ...inFile("src/cuda/graph_exec.ts", graphs, [
    [
      '    if (this.#left.closed) throw new TypeError("Cannot use a closed CudaGraphExec");\n',
      "",
      "A destroyed handle is given to the driver.",
    ],
    ["    if (this.#left.closed) return;\n", "", "Closing twice destroys twice."],
    ["    this.#left.closed = true;\n", "", "Closing twice destroys twice."],
    [
      "      const code = driver.graph.cuGraphExecDestroy(this.#handle);\n",
      "      const code = 0;\n",
      "Graphs pile up.",
    ],
    ["      this.release();\n", "", "What a graph uses is never given back."],
    ["    this.#use.launchedOn(stream);\n", "", "Memory is freed under a launch."],
    ["    this.#left.release = graph.use.hold();\n", "", "Memory of the new graph is freed under it."],
    ["    release();\n", "", "Memory of the old graph is never given back."],
    ["    if (captureOf(stream) !== null) {\n", "    if (false) {\n", "A launch into a capture is a nameless error."],
  ]),
];
