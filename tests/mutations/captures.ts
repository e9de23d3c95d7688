/** The protective lines of what is done while another library captures. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const captureMutations: readonly Mutation[] = [
  ...law("device/relax", [
    [
      "return isCapturing(driver) ? unchanged : relaxThread(driver);",
      "return unchanged;",
      "Whatever is done meanwhile spoils another library's capture.",
    ],
  ]),
  ...law("device/relaxThread", [
    [
      "CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : before;",
      "CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : unchanged;",
      "The thread stays relaxed, and other libraries spoil what they capture without a word.",
    ],
  ]),
  ...law("device/restore", [
    ["  slot.word[0] = mode;\n", "", "The thread gets a mode that it never had."],
  ]),
  ...law("device/isBlockedByCapture", [
    [
      "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;\n}\n",
      "CUDA_SUCCESS;\n}\n",
      "What is freed on the default stream spoils another library's capture.",
    ],
    ["  if (device.isGone) return false;\n", "", "Of a device that is gone a context is asked for, and made."],
  ]),
  ...law("device/isRefusedByCapture", [
    [
      "return error instanceof CudaError && refusals.has(error.code);",
      "return false;",
      "A release fails for whoever allocates next.",
    ],
  ]),
  ...law("device/CudaEvent.synchronize", [
    [
      "besideCaptures(driver, () => driver.event.cuEventSynchronize(handle))",
      "driver.event.cuEventSynchronize(handle)",
      "To wait for an event spoils another library's capture.",
    ],
  ]),
  ...law("device/CudaEvent.isDone", [
    [
      "besideCaptures(driver, () => driver.event.cuEventQuery(handle))",
      "driver.event.cuEventQuery(handle)",
      "To ask an event spoils another library's capture.",
    ],
  ]),
  ...law("device/CudaStream.synchronize", [
    ["besideCaptures(driver, synchronize)", "synchronize()", "To wait for a stream spoils another library's capture."],
  ]),
  ...law("device/CudaStream.isLegacy", [
    [
      "return this.#handle <= CU_STREAM_LEGACY;",
      "return false;",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...law("device/query", [
    [
      "besideCaptures(driver, () => stream.enqueue(() => driver.stream.cuStreamQuery(handle)))",
      "stream.enqueue(() => driver.stream.cuStreamQuery(handle))",
      "To ask a stream spoils another library's capture.",
    ],
  ]),
  ...law("device/unload", [
    ["besideCaptures(driver, take)", "take()", "Unloading code spoils another library's capture."],
  ]),
  ...law("device/GraphExecState.close", [
    [
      "besideCaptures(driver, () => driver.graph.cuGraphExecDestroy(this.#handle))",
      "driver.graph.cuGraphExecDestroy(this.#handle)",
      "Closing a graph spoils another library's capture.",
    ],
    [
      "    afterCaptures(driver, () => { // it would invalidate a capture\n",
      "    ((_: unknown, work: () => void) => work())(driver, () => { // it would invalidate a capture\n",
      "Closing a graph during a capture spoils it.",
    ],
  ]),
  ...law("memory/destroyOnce", [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolDestroy(handle))",
      "driver.pool.cuMemPoolDestroy(handle)",
      "Closing a pool spoils another library's capture.",
    ],
  ]),
  ...law("memory/MemoryPool.create", [
    ["const create = () => besideCaptures(driver, make);", "const create = make;", "A new pool spoils a capture."],
  ]),
  ...law("memory/MemoryPool.get", [
    ["const code = besideCaptures(driver, get);", "const code = get();", "To ask a pool spoils a capture."],
  ]),
  ...law("memory/MemoryPool.set", [
    ["const code = besideCaptures(driver, set);", "const code = set();", "A new pool spoils a capture."],
  ]),
  ...law("memory/MemoryPool.trim", [
    [
      "besideCaptures(driver, () => driver.pool.cuMemPoolTrimTo(handle, BigInt(keep)))",
      "driver.pool.cuMemPoolTrimTo(handle, BigInt(keep))",
      "Trimming a pool spoils another library's capture.",
    ],
  ]),
  ...law("memory/MemoryPool.current", [
    [
      "besideAllCaptures(driver, () => {\n",
      "((_: unknown, work: () => void) => work())(driver, () => {\n",
      "Who asks for a device's memory first while something is captured is refused.",
    ],
  ]),
  ...law("memory/MemoryPool.constructor", [
    [
      "      afterCaptures(driver, () => freeAfterAll([...users.keys()], end));\n",
      "      freeAfterAll([...users.keys()], end);\n",
      "Closing a pool during a capture spoils it.",
    ],
  ]),
  ...law("memory/DeviceMemoryResource.allocate", [
    ["    const mode = relax(driver);\n", "    const mode = -1;\n", "Allocating spoils another library's capture."],
  ]),
  ...law("memory/freeInOrder", [
    [
      "  let code = NEEDS_CONTEXT;\n  const mode = relax(driver);\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "  let code = NEEDS_CONTEXT;\n  const mode = -1;\n  try {\n    if (!stream.needsContext) code = driver.pool.cuMemFreeAsync",
      "Freeing spoils another library's capture.",
    ],
  ]),
  ...law("memory/returnToPool", [
    [
      "  if (last.isLegacy) whenUnblocked(last, () => returnOn(last, ptr, pool));\n  else returnOn",
      "  returnOn",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...law("memory/DriverMemoryResource.make", [
    [
      "besideCaptures(device.driver, () => device.withContext(() => release(device, at)))",
      "device.withContext(() => release(device, at))",
      "Freeing page-locked memory spoils another library's capture.",
    ],
  ]),
  ...law("memory/DriverMemoryResource.allocate", [
    [
      "besideCaptures(device.driver, () => device.withContext(acquire))",
      "device.withContext(acquire)",
      "Allocating page-locked memory spoils another library's capture.",
    ],
  ]),
  ...law("order/pollDeferred", [
    [
      "  freeWhere(isOver);\n  retryBlocked(isBlockedByCapture);\n",
      "  freeWhere(isOver);\n",
      "What a capture has held up is never freed.",
    ],
  ]),
  ...law("order/retryBlocked", [
    ["  blocked = still;\n", "  blocked = [];\n", "What is still held up is forgotten."],
    [
      "(isStillBlocked(one.device) ? still : due).push(one);",
      "due.push(one);",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...law("order/whenUnblocked", [
    [
      "  if (stream.isLegacy && isBlockedByCapture(stream.device)) block(stream.device, work);\n  else work();\n",
      "  work();\n",
      "What is freed on the default stream spoils another library's capture.",
    ],
  ]),
  ...law("order/freeAfter", [
    [
      "  whenUnblocked(stream, () => freeAtEnd(stream, free, size));\n",
      "  freeAtEnd(stream, free, size);\n",
      "A capture is spoiled.",
    ],
  ]),
  ...law("order/markAll", [
    ['if (isBlockedByCapture(device)) return "blocked";\n', "", "Closing a pool spoils another library's capture."],
    [
      '    if (isRefusedByCapture(error)) return "blocked";\n',
      "",
      "Closing a pool fails while somebody captures, and it is never destroyed.",
    ],
  ]),
  ...law("order/waitForContext", [
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
