/** The protective lines of order: which side waits for which, loans, exports and deferred frees. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const orderMutations: readonly Mutation[] = [
  ...law("order/canReach", [
    [
      '  if (kind !== "device") return true;\n',
      "",
      "Pinned and managed memory is freed while a consumer on another device uses it.",
    ],
    [
      "pool === null ? peer.canAccessPeer(owner) : pool.isReachedBy(peer)",
      "false",
      "Memory is freed while a consumer on a peer uses it.",
    ],
  ]),
  ...law("order/hasAccess", [
    ["(pool?.isReachedBy(device) ?? false)", "true", "A kernel uses memory to which it has no access."],
  ]),
  ...law("order/pollDeferred", [
    [
      "  freeWhere(isOver);\n  retryBlocked(isBlockedByCapture);\n",
      "  freeWhere(isOver);\n",
      "Frees that a capture has delayed are never done.",
    ],
  ]),
  ...law("order/retryBlocked", [
    ["  blocked = still;\n", "  blocked = [];\n", "Frees that are still delayed are forgotten."],
    [
      "(isStillBlocked(one.device) ? still : due).push(one);",
      "due.push(one);",
      "A free on the default stream invalidates another library's capture.",
    ],
  ]),
  ...law("order/whenUnblocked", [
    [
      "  if (stream.isLegacy && isBlockedByCapture(stream.device)) block(stream.device, work);\n  else work();\n",
      "  work();\n",
      "A free on the default stream invalidates another library's capture.",
    ],
  ]),
  ...law("order/freeWhere", [
    ["mayFree(one.passed)", "true", "Memory is freed while work still uses it."],
    ["        pending.push(one);\n", "", "Memory that is still in use at a poll is never freed."],
    [
      "throwFirst(failuresOf(waiting, (one) => {",
      "waiting.forEach(((one) => {",
      "Frees after one that fails are never done.",
    ],
    ["throwFirst(failuresOf(waiting,", "(failuresOf(waiting,", "A failed free goes unnoticed."],
    ["busy.add(stream)", "one", "A poll queries every mark of a stream, not only the first one."],
  ]),
  ...law("order/isOver", [
    ["return work[isDoneByPoll];", "return work.isDone;", "What a poll finds done orders other work for the checker."],
    ["    return isSticky(error);\n", "    throw error;\n", "A lost context makes every allocation fail."],
    ["    return isSticky(error);\n", "    return false;\n", "Memory of a lost context is waited for."],
    ["    return isSticky(error);\n", "    return true;\n", "A failed query frees memory that work still uses."],
    [
      "  if (isCapturing(work.device.driver)) return false; // nothing may be queried meanwhile\n",
      "",
      "A query invalidates a capture.",
    ],
  ]),
  ...law("order/finish", [
    ["    passed.close();\n", "", "Events pile up."],
    ["    free();\n  } finally {", "  } finally {", "Memory is never freed."],
    ["      device[Symbol.dispose]();\n", "", "A device is never released."],
  ]),
  ...law("order/defer", [
    [" || bytes >= pollAtBytes", "", "Copies that are not awaited keep more and more memory."],
  ]),
  ...law("order/pollAfterClose", [
    [
      "  else polledAtClose.of(device);\n",
      "",
      "Work that is not done when everything is closed keeps its context until the next allocation.",
    ],
    [
      "  if (device.isClosed) pollPending();\n",
      "  if (device.isClosed) return;\n",
      "An object that is closed after its Cuda keeps its context until the next allocation.",
    ],
  ]),
  ...law("order/freeAfter", [
    [
      "if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();",
      "if (stream === null) return free();",
      "Memory that could be freed immediately is kept until the next allocation.",
    ],
    [
      "if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();",
      "return free();",
      "Memory is freed while work still uses it.",
    ],
    [
      "(stream.isKnownNonBlocking && isOver(stream))",
      "isOver(stream)",
      "Memory is freed while a default stream still uses it.",
    ],
    [
      "  whenUnblocked(stream, () => freeAtEnd(stream, free, size));\n",
      "  freeAtEnd(stream, free, size);\n",
      "A capture is invalidated.",
    ],
  ]),
  ...law("order/freeAtEnd", [
    [
      "device: stream.device.retained({ evenClosed: true })",
      "device: new DisposableStack()",
      "The context is destroyed before the event that says when to free.",
    ],
  ]),
  ...law("order/waitIfElsewhere", [
    ["stream[internals].isOwned || ", "", "Each free on a stream of our own makes one more call to the driver."],
    [" || stream.needsContext", "", "Each free on a default stream makes the host wait."],
    ["    stream.synchronize();\n", "", "A pool is destroyed before a free in another context is done."],
    [
      "  if (code === CUresult.CUDA_SUCCESS && outParameter.value === device.context) return;\n",
      "",
      "The host waits at every free on a foreign stream.",
    ],
    ["if (!isSticky(error)) throw error", "throw error", "Closing hides the error that lost the context."],
    ["if (!isSticky(error)) throw error", "return", "A free that is not awaited goes unnoticed."],
  ]),
  ...law("order/waitForEnd", [
    [
      "    stream.synchronize(); // reports the error, if the cause is something else\n",
      "",
      "Without an event, memory is freed while work still uses it.",
    ],
    [
      "  if (!stream.isKnownNonBlocking) waitForDevice(stream.device);\n",
      "",
      "Without an event, memory is freed before earlier work of the default stream is done.",
    ],
  ]),
  ...law("order/freeAfterAll", [
    [
      "  if (device.isGone) return next(); // its context went away during the wait for another device\n",
      "",
      "A free that waits for a device whose Cuda is closed meanwhile is never done.",
    ],
    [
      "const next = () => freeAfterAll(others, free);",
      "const next = free;",
      "A pool is destroyed while one device still uses it.",
    ],
  ]),
  ...law("order/markAll", [
    [
      'if (isBlockedByCapture(device)) return "blocked";\n',
      "",
      "Closing a pool invalidates another library's capture.",
    ],
    [
      '    event?.close();\n    if (isRefusedByCapture(error)) return "blocked";\n',
      "    event?.close();\n",
      "Closing a pool fails during a capture, and the pool is never destroyed.",
    ],
    [
      '    if (isRefusedByCapture(error)) return "blocked";\n    throw error;\n',
      "    throw error;\n",
      "A capture that cannot be detected keeps a pool from ever being destroyed.",
    ],
  ]),
  ...law("order/drainFrees", [
    ["    if (!isOver(passed)) passed.synchronize();\n", "", "Draining frees memory while work still uses it."],
  ]),
  ...law("order/addExport", [
    ["  one.index = live.push(one) - 1;\n", "", "An export is collected while its consumer still uses it."],
    ["  if (!isWatched) watchEnd();\n", "", "Exports that consumers have never released are not reported."],
  ]),
  ...law("order/end", [
    ["  const last = live.pop();\n", "  const last = live.at(-1);\n", "A released export is polled for ever."],
    ["  live[one.index] = last;\n", "", "An export is collected while its consumer still uses it."],
    ["  last.index = one.index;\n", "", "An export is collected while its consumer still uses it."],
    ["  if (one.index < 0 || !one", "  if (!one", "A released export is released again."],
    ["one.index < 0 || !one.order(order)", "one.index < 0", "Memory is freed while the consumer's work still uses it."],
    ["  one.index = -1;\n", "", "A released export is released again at every poll."],
    [
      "  one.index = -1;\n  one.finish();\n",
      "  one.finish();\n  one.index = -1;\n",
      "A released export is released twice if there is a poll meanwhile.",
    ],
    ["  one.index = -1;\n", "  one.index = 0;\n", "Polling a released export removes another one from the list."],
    ["  one.finish();\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("order/pollAll", [
    [
      "if (one.isReleasedByConsumer()) gone.push(one);",
      "one.isReleasedByConsumer();",
      "There is no check whether a consumer has released an export.",
    ],
    [
      "    const gone: ExportEntry[] = [];\n    for (const one of live) if (one.isReleasedByConsumer()) gone.push(one);\n",
      "    const gone = (function* () {\n      for (const one of [...live]) if (one.isReleasedByConsumer()) yield one;\n    })();\n",
      "Memory is freed while work of a consumer that released after the shared wait still uses it.",
    ],
    [
      "        (one.index < 0 ? failedToFree : failedToOrder).push(error);\n",
      "        throw error;\n",
      "One failed release delays all others.",
    ],
    ["one.index < 0 ? failedToFree : failedToOrder", "failedToOrder", "A failure to free memory is not reported."],
    ["  throwFirst([...failedToFree, ...failedToOrder]);\n", "", "A failed release is not reported."],
    [
      "  } while (live.length < before);",
      "  } while (false);",
      "The producer of an import that has just ended is not polled.",
    ],
  ]),
  ...law("order/pollIfMany", [
    ["  if (live.length < enough) return;\n  pollAll();\n", "", "Exports that are never polled pile up."],
  ]),
  ...law("order/loan/end", [
    ["  state.closed = true;\n", "", "A loan is ended more than once."],
    [
      "producerWaits(stream.orSuccessor, home);\n",
      "producerWaits(stream, home);\n",
      "The host waits for a borrower that has closed its stream.",
    ],
    [
      "    if (home !== null) producerWaits(stream.orSuccessor, home);\n",
      "",
      "The owner writes or frees memory that the borrower still reads.",
    ],
    ["    buffer.unpin();\n    stream.release();\n", "    stream.release();\n", "Memory that was lent is never freed."],
    [
      "    buffer.unpin();\n    stream.release();\n",
      "    buffer.unpin();\n",
      "A borrower's stream is never destroyed.",
    ],
    [
      "producerWaits(stream.orSuccessor, home)",
      "producerWaits(stream, home)",
      "The owner does not wait for work of a closed stream.",
    ],
  ]),
  ...law("order/Loan.constructor", [
    [" isPinned = false;\n", "", "A second release frees memory that another consumer uses."],
    [
      "    stream.retain(); // a closed stream must fail before anything is enqueued\n",
      "",
      "A borrower's stream is destroyed before the loan has ended.",
    ],
    ["      buffer.pin();\n", "", "Memory is freed while a borrower uses it."],
    ["      consumerWaits(buffer, stream);\n", "", "A borrower reads before the owner has written."],
    ["      if (isPinned) buffer.unpin();\n", "", "A loan that cannot begin keeps the memory."],
    [
      "      stream.release();\n      throw error;\n",
      "      throw error;\n",
      "A loan that cannot begin keeps the stream.",
    ],
    ["    finalizer.register(this, this.#state);\n", "", "Memory whose lease is dropped is lent for ever."],
  ]),
  ...law("order/Loan.end", [
    ["if (!this.#state.closed) end", "end", "A loan is ended more than once."],
  ]),
  ...law("order/consumerWaits", [
    [
      "  orderStreams(buffer.stream, stream);\n",
      "",
      "A consumer reads before the producer has written.",
    ],
  ]),
  ...law("order/orderStreams", [
    ["after.wait(before);", "before.wait(after);", "The consumer writes before the producer has read."],
  ]),
  ...law("order/consumerWaitsForEvent", [
    ["  if (stream === null) ready.synchronize();\n", "", "The host reads before the producer has written."],
    ["  else stream.wait(ready);\n", "", "A stream reads before the producer has written."],
  ]),
  ...law("order/hostWaits", [
    ["  hostWaitsFor(stream);\n", "", "A consumer on the host reads before a stream has written."],
  ]),
  ...law("order/hostWaitsFor", [
    ["stream?.waitUntilReady()", "stream?.synchronize()", "The host reads what a default stream has not written yet."],
  ]),
  ...law("order/hostWaitsToRead", [
    [
      "  noteElementAccess(elements, false, call);\n",
      "",
      "A consumer on the host that reads too early is not reported.",
    ],
  ]),
  ...law("order/producerWaits", [
    [
      "    producer.wait(consumer);\n",
      "",
      "The owner writes or frees memory that the consumer still reads.",
    ],
  ]),
  ...law("order/ReleaseOrder.add", [
    [
      "    if (stream === null) return true;\n",
      "    if (stream === null || buffer.device === null) return true;\n",
      "Pinned memory is freed while a consumer uses it.",
    ],
    [
      "!waits.has(peer) && mayHaveUsed",
      "waits.size === 1 && mayHaveUsed",
      "Of two buffers with one home, the second is freed while a consumer on its peers uses it.",
    ],
    [
      "    if (isCapturing(stream.device.driver)) return false;\n    const",
      "    const",
      "Noticing a release during a capture invalidates the capture.",
    ],
    [
      "    if (!waits.has(owner) && !waitOnce(stream, owner, waits)) return false;\n",
      "",
      "Memory is freed while a consumer still uses it.",
    ],
    [
      "mayHaveUsed(peer, buffer, owner) && !waitOnce(stream, peer, waits)",
      "false && !waitOnce(stream, peer, waits)",
      "Memory is freed while a consumer on a peer uses it.",
    ],
  ]),
  ...law("order/waitOnce", [
    ["  if (!waitForContext(stream, device)) return false;\n", "", "Memory is freed while a consumer still uses it."],
    ["  waits.add(device);\n", "", "Each of many buffers that are released together makes its own driver calls."],
  ]),
  ...law("order/waitForContext", [
    [
      "  if (\n    isBlockedByCapture(device) || (",
      "  if ((",
      "A release by a consumer invalidates another library's capture.",
    ],
    [
      "  } catch (error) {\n    if (isRefusedByCapture(error)) return false;\n    // Otherwise",
      "  } catch {\n    // Otherwise",
      "A consumer's release is carried out before its work is done, or fails in an unrelated call.",
    ],
    ["  if (device.isGone) return true;\n", "", "After one Cuda was closed, memory can no longer be allocated."],
    [
      "        return true;\n      }\n",
      "      }\n      return true;\n",
      "On older drivers memory is freed while a consumer uses it.",
    ],
    [
      "        stream.wait(event);\n        return true;\n",
      "        return true;\n",
      "Memory is freed while a consumer still uses it.",
    ],
    ["      device.releaseEvent(event);\n", "", "Events pile up."],
    [
      "  try {\n    waitForDevice(device);\n",
      "  try {\n",
      "If the driver can create no event, memory is freed while a consumer uses it.",
    ],
    [
      "    if (isRefusedByCapture(error)) return false;\n    throw error;\n",
      "    throw error;\n",
      "A release during a capture that cannot be detected fails in an unrelated call.",
    ],
  ]),
  ...law("order/comeAfter", [
    [
      "    stream.wait(event);\n",
      "",
      "Memory of another process is unmapped or freed while it is in use.",
    ],
    [
      "    waitInstead(waitForEvent, event);\n",
      "",
      "If the driver refuses to order, memory is freed while the other process uses it.",
    ],
  ]),
  ...law("order/waitInstead", [
    ["    wait(work);\n", "", "If the driver can create no event, memory is freed while a consumer uses it."],
    [
      "    if (!isSticky(error)) throw error;\n",
      "    throw error;\n",
      "In a lost context foreign memory is never released.",
    ],
    [
      "    if (!isSticky(error)) throw error;\n",
      "",
      "An error that lets memory be freed while a consumer uses it is not reported.",
    ],
  ]),
  ...law("order/waitForAll", [
    [
      "  stream.synchronize();\n  stream.device",
      "  stream.device",
      "Foreign memory is freed while a stream of another context uses it.",
    ],
    [
      "  stream.synchronize();\n  stream.device.synchronize();\n",
      "  stream.synchronize();\n",
      "Foreign memory is freed while the default stream still uses it.",
    ],
  ]),
  ...law("order/mayHaveUsed", [
    [
      "  if (!peer.isActive) return false;\n",
      "",
      "A release retains the contexts of unused devices.",
    ],
    [
      "buffer.owner !== undefined || ",
      "",
      "Managed memory imported as device memory is freed while a consumer on another device uses it.",
    ],
  ]),
  ...law("order/hostWaitsBeforeReturn", [
    [
      "    stream.waitUntilReady();\n",
      "    stream.synchronize();\n",
      "Foreign memory is freed while the default stream, which the home stream waits for, still uses it.",
    ],
  ]),
  ...law("order/recordReady", [
    [
      "  if (others.length === 0) return first.recordNew();\n",
      "",
      "A stream is created for every export that has only one home.",
    ],
    [
      "  for (const stream of [first, ...others]) joined.wait(stream);\n",
      "",
      "A consumer reads before the producers have written.",
    ],
    ["  using joined =", "  const joined =", "Streams pile up."],
    [
      "[first, ...others]) joined.wait(stream)",
      "others) joined.wait(stream)",
      "The joined event omits the first home.",
    ],
  ]),
  ...law("order/markClosed", [
    ["  isWanted = false;\n", "", "Every allocation marks all streams."],
  ]),
  ...law("order/InFlight.constructor", [
    ["    open.add(this);\n", "", "Memory that a stream has used is not released after its Cuda is closed."],
    [
      "    this.#stream = stream[internals].successor;\n",
      "    this.#stream = stream;\n",
      "A stream that copies have used is never collected.",
    ],
  ]),
  ...law("order/InFlight.onDeviceClosing", [
    [
      "if (this.#stream.device === device) this.onClosing();",
      "",
      "Memory that a default stream has used is kept for ever.",
    ],
  ]),
  ...law("order/markedAtClose", [
    ["  pollPending();\n", "", "After its Cuda is closed, memory that a stream has used is never polled."],
  ]),
  ...law("order/InFlight.add", [
    ["Math.max(buffer.size, share)", "buffer.size", "Thousands of small arrays are kept."],
    ["Math.max(buffer.size, share)", "share", "Copies keep 64 arrays of any size."],
    ["this.#weight >= eventBytes || ", "", "Copies that are not awaited keep more and more memory."],
    [" || !stream[internals].isHandleStable", "", "The end of a stream is marked after the stream was destroyed."],
    [" || stream.device.isClosed", "", "Memory that was used after its Cuda was closed is kept for ever."],
  ]),
  ...law("order/InFlight.onClosing", [
    ["captureOf(this.#stream) === null", "true", "A mark becomes part of a graph, and memory is kept for ever."],
    ["free, this.#weight", "free", "Memory that other copies have used is never polled."],
  ]),
  ...law("order/InFlight.end", [
    ["    this.#stream[internals].watcher = null;\n", "", "Memory is released twice."],
  ]),
  ...law("order/InFlight.free", [
    ["quietly(() => buffer.unpin())", "buffer.unpin()", "One failed free prevents the others."],
  ]),
  ...law("order/pinWhileInFlight", [
    ["  buffer.pin();\n", "", "Memory is freed before a copy is done."],
  ]),
  ...law("order/noteClosed", [
    [
      "  isWanted = open.size > 0;",
      "",
      "Memory that was used and closed is not released until much more has been used.",
    ],
  ]),
  ...law("order/reclaim", [
    ["  pollDeferred();\n", "", "Memory that is released later is never reclaimed."],
    ["  markClosed();\n", "", "Memory that is released later is never reclaimed."],
    ["  pollAll();\n", "", "Allocating does not reclaim memory that consumers have released."],
  ]),
  ...law("order/liveExports", [
    ["  pollOthers();\n", "", "Exports that a Python thread has released are kept until JavaScript calls Python."],
  ]),
];
