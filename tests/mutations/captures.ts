/** The protective lines of what is done while another library captures. */
import { inFile, type Mutation } from "./mutation.ts";

const beside = ["tests/memory/beside_captures_test.ts"];
const all = [...beside, "tests/device/graph/active_captures_test.ts"];

/** What can be broken there. */
export const captureMutations: readonly Mutation[] = [
  ...inFile("src/device/relaxed_capture.ts", all, [
    [
      "return isCapturing(driver) ? unchanged : relaxThread(driver);",
      "return unchanged;",
      "Whatever is done meanwhile spoils another library's capture.",
    ],
    [
      "CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : before;",
      "CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : unchanged;",
      "The thread stays relaxed, and other libraries spoil what they capture without a word.",
    ],
    ["  slot.word[0] = mode;\n", "", "The thread gets a mode that it never had."],
    [
      "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;\n}\n\n/** Whether a call",
      "CUDA_SUCCESS;\n}\n\n/** Whether a call",
      "What is freed on the default stream spoils another library's capture.",
    ],
    [
      "return error instanceof CudaError && refusals.has(error.code);",
      "return false;",
      "A release fails for whoever allocates next.",
    ],
  ]),
  ...inFile("src/device/relaxed_capture.ts", ["tests/order/default_home_test.ts"], [
    ["  if (device.isGone) return false;\n", "", "Of a device that is gone a context is asked for, and made."],
  ]),
  ...inFile("src/device/event.ts", beside, [
    [
      "besideCaptures(driver, () => driver.event.cuEventSynchronize(handle))",
      "driver.event.cuEventSynchronize(handle)",
      "To wait for an event spoils another library's capture.",
    ],
    [
      "besideCaptures(driver, () => driver.event.cuEventQuery(handle))",
      "driver.event.cuEventQuery(handle)",
      "To ask an event spoils another library's capture.",
    ],
  ]),
  ...inFile("src/device/stream.ts", beside, [
    ["besideCaptures(driver, synchronize)", "synchronize()", "To wait for a stream spoils another library's capture."],
    [
      "return this.#handle <= CU_STREAM_LEGACY;",
      "return false;",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...inFile("src/device/completion.ts", beside, [[
    "besideCaptures(driver, () => stream.enqueue(() => driver.stream.cuStreamQuery(handle)))",
    "stream.enqueue(() => driver.stream.cuStreamQuery(handle))",
    "To ask a stream spoils another library's capture.",
  ]]),
  ...inFile("src/device/kernel/program.ts", beside, [
    ["besideCaptures(driver, take)", "take()", "Unloading code spoils another library's capture."],
  ]),
  ...inFile("src/device/graph/graph_exec.ts", all, [
    [
      "besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle))",
      "driver.graph.cuGraphExecDestroy(this.#handle)",
      "Closing a graph spoils another library's capture.",
    ],
    [
      "    afterCaptures(driver, () => { // it would spoil a capture\n",
      "    ((_: unknown, work: () => void) => work())(driver, () => { // it would spoil a capture\n",
      "Closing a graph during a capture spoils it.",
    ],
  ]),
  ...inFile("src/memory/memory_pool.ts", all, [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle))",
      "driver.pool.cuMemPoolDestroy(handle)",
      "Closing a pool spoils another library's capture.",
    ],
    ["const create = () => besideCaptures(driver, make);", "const create = make;", "A new pool spoils a capture."],
    ["const code = besideCaptures(driver, get);", "const code = get();", "To ask a pool spoils a capture."],
    ["const code = besideCaptures(driver, set);", "const code = set();", "A new pool spoils a capture."],
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolTrimTo(handle, BigInt(keep)))",
      "driver.pool.cuMemPoolTrimTo(handle, BigInt(keep))",
      "Trimming a pool spoils another library's capture.",
    ],
    [
      "besideAllCaptures(driver, () => {\n",
      "((_: unknown, work: () => void) => work())(driver, () => {\n",
      "Who asks for a device's memory first while something is captured is refused.",
    ],
    [
      "      afterCaptures(driver, () => freeAfterAll([...users.keys()], end));\n",
      "      freeAfterAll([...users.keys()], end);\n",
      "Closing a pool during a capture spoils it.",
    ],
  ]),
  ...inFile("src/memory/device_memory_resource.ts", beside, [
    [
      "    const mode = relax(driver);\n",
      "    const mode = -1;\n",
      "Allocating spoils another library's capture.",
    ],
    [
      "  let code = NEEDS_CONTEXT;\n  const mode = relax(driver);\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "  let code = NEEDS_CONTEXT;\n  const mode = -1;\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "Freeing spoils another library's capture.",
    ],
    [
      "  if (last.isLegacy) whenUnblocked(last, () => returnOn(last, ptr, pool));\n  else returnOn",
      "  returnOn",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...inFile("src/memory/driver_memory_resource.ts", beside, [
    [
      "besideCaptures(device.driver, () => device.withContext(() => release(device, at)))",
      "device.withContext(() => release(device, at))",
      "Freeing page-locked memory spoils another library's capture.",
    ],
    [
      "besideCaptures(device.driver, () => device.withContext(acquire))",
      "device.withContext(acquire)",
      "Allocating page-locked memory spoils another library's capture.",
    ],
  ]),
  ...inFile("src/order/deferred_free.ts", beside, [
    [
      "  freeWhere(isOver);\n  retryBlocked(isBlockedByCapture);\n",
      "  freeWhere(isOver);\n",
      "What a capture has held up is never freed.",
    ],
    ["  blocked = still;\n", "  blocked = [];\n", "What is still held up is forgotten."],
    [
      "  if (stream.isLegacy && isBlockedByCapture(stream.device)) block(stream.device, work);\n  else work();\n",
      "  work();\n",
      "What is freed on the default stream spoils another library's capture.",
    ],
    [
      "  whenUnblocked(stream, () => freeAtEnd(stream, free, size));\n",
      "  freeAtEnd(stream, free, size);\n",
      "A capture is spoiled.",
    ],
    [
      'if (isBlockedByCapture(device)) return "blocked";\n',
      "",
      "Closing a pool spoils another library's capture.",
    ],
    [
      '    if (isRefusedByCapture(error)) return "blocked";\n',
      "",
      "Closing a pool fails while somebody captures, and it is never destroyed.",
    ],
    [
      "(isStillBlocked(one.device) ? still : due).push(one);",
      "due.push(one);",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...inFile("src/order/order.ts", beside, [
    [
      "  if (\n    isBlockedByCapture(device) || (",
      "  if ((",
      "What a consumer has released spoils another library's capture.",
    ],
    [
      "  } catch (error) {\n    if (isRefusedByCapture(error)) return false;\n    // Otherwise",
      "  } catch {\n    // Otherwise",
      "What a consumer has released is given back before its work is done, or fails for somebody else.",
    ],
  ]),
];
