/** The protective lines of order: who waits for whom, loans, exports and deferred frees. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const orderMutations: readonly Mutation[] = [
  ...law("order/canReach", [
    [
      '  if (kind !== "device") return true;\n',
      "",
      "Pinned and managed memory is freed under a consumer on another device.",
    ],
    [
      "pool === null ? peer.canAccessPeer(owner) : pool.isReachedBy(peer)",
      "false",
      "Memory is freed under a consumer on a peer.",
    ],
  ]),
  ...law("order/hasAccess", [
    ["(pool?.isReachedBy(device) ?? false)", "true", "A kernel uses memory without access."],
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
  ...law("order/freeWhere", [
    ["mayFree(one.passed)", "true", "Memory is freed while work still uses it."],
    ["        pending.push(one);\n", "", "What is not done when somebody looks is never freed."],
    [
      "throwFirst(failuresOf(waiting, (one) => {",
      "waiting.forEach(((one) => {",
      "What stands behind a free that fails is never freed.",
    ],
    ["throwFirst(failuresOf(waiting,", "(failuresOf(waiting,", "A free that fails goes unnoticed."],
    ["busy.add(stream)", "one", "Whoever looks asks after every mark of a stream, not only after its first."],
  ]),
  ...law("order/isOver", [
    ["    return isSticky(error);\n", "    throw error;\n", "A context that is lost makes every allocation fail."],
    ["    return isSticky(error);\n", "    return false;\n", "Memory of a context that is lost is waited for."],
    ["    return isSticky(error);\n", "    return true;\n", "A question that fails frees memory that work still uses."],
    [
      "  if (isCapturing(work.device.driver)) return false; // nothing may be queried meanwhile\n",
      "",
      "Asking spoils a capture.",
    ],
  ]),
  ...law("order/finish", [
    ["    passed.close();\n", "", "Events pile up."],
    ["    free();\n  } finally {", "  } finally {", "Memory is never freed."],
    ["      device[Symbol.dispose]();\n", "", "A device is never given back."],
  ]),
  ...law("order/defer", [
    [" || bytes >= enoughBytes", "", "Copies that nobody waits for keep ever more memory."],
  ]),
  ...law("order/pollAfterClose", [
    [
      "  else polledAtClose.of(device);\n",
      "",
      "What is not done when all is closed keeps its context until somebody allocates.",
    ],
    [
      "  if (device.isClosed) pollPending();\n",
      "  if (device.isClosed) return;\n",
      "What is closed after its Cuda keeps its context until somebody allocates.",
    ],
  ]),
  ...law("order/freeAfter", [
    [
      "if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();",
      "if (stream === null) return free();",
      "What could be freed at once stays until the next allocation.",
    ],
    [
      "if (stream === null || (stream.isKnownNonBlocking && isOver(stream))) return free();",
      "return free();",
      "Memory is freed while work still uses it.",
    ],
    [
      "(stream.isKnownNonBlocking && isOver(stream))",
      "isOver(stream)",
      "Memory is freed that a default stream still uses.",
    ],
    [
      "  whenUnblocked(stream, () => freeAtEnd(stream, free, size));\n",
      "  freeAtEnd(stream, free, size);\n",
      "A capture is spoiled.",
    ],
  ]),
  ...law("order/freeAtEnd", [
    [
      "device: stream.device.retained({ evenClosed: true })",
      "device: new DisposableStack()",
      "The context goes before the event that tells when to free.",
    ],
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
      "Without an event, memory is freed before the default stream's work, which comes first.",
    ],
  ]),
  ...law("order/freeAfterAll", [
    [
      "  if (device.isGone) return next(); // its context went away during the wait for another device\n",
      "",
      "What waits for a device whose Cuda is closed meanwhile is never freed.",
    ],
    [
      "const next = () => freeAfterAll(others, free);",
      "const next = free;",
      "A pool is destroyed while one device is still at work with it.",
    ],
  ]),
  ...law("order/markAll", [
    ['if (isBlockedByCapture(device)) return "blocked";\n', "", "Closing a pool spoils another library's capture."],
    [
      '    event?.close();\n    if (isRefusedByCapture(error)) return "blocked";\n',
      "    event?.close();\n",
      "Closing a pool fails while somebody captures, and it is never destroyed.",
    ],
    [
      '    if (isRefusedByCapture(error)) return "blocked";\n    throw error;\n',
      "    throw error;\n",
      "A capture that cannot be seen keeps a pool from ever being destroyed.",
    ],
  ]),
  ...law("order/drainFrees", [
    ["    if (!isOver(passed)) passed.synchronize();\n", "", "Draining frees memory while work still uses it."],
  ]),
  ...law("order/addExport", [
    ["  one.index = live.push(one) - 1;\n", "", "What is out is collected under its consumer."],
    ["  if (!isWatched) watchEnd();\n", "", "Nobody is told what consumers have never released."],
  ]),
  ...law("order/end", [
    ["  const last = live.pop();\n", "  const last = live.at(-1);\n", "What was released is looked at for ever."],
    ["  live[one.index] = last;\n", "", "What is out is collected under its consumer."],
    ["  last.index = one.index;\n", "", "What is out is collected under its consumer."],
    ["  if (one.index < 0 || !one", "  if (!one", "What is released is given back again."],
    ["one.index < 0 || !one.order(order)", "one.index < 0", "Memory is freed while the consumer's work still uses it."],
    ["  one.index = -1;\n", "", "What is released is given back again at every look."],
    [
      "  one.index = -1;\n  one.finish();\n",
      "  one.finish();\n  one.index = -1;\n",
      "What is released is given back twice if somebody asks meanwhile.",
    ],
    ["  one.index = -1;\n", "  one.index = 0;\n", "Asking after what is released takes another export off the list."],
    ["  one.finish();\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("order/pollAll", [
    [
      "if (one.isReleasedByConsumer()) gone.push(one);",
      "one.isReleasedByConsumer();",
      "Nobody looks whether a consumer has released.",
    ],
    [
      "    const gone: ExportEntry[] = [];\n    for (const one of live) if (one.isReleasedByConsumer()) gone.push(one);\n",
      "    const gone = (function* () {\n      for (const one of [...live]) if (one.isReleasedByConsumer()) yield one;\n    })();\n",
      "Memory is freed under a consumer who let go after the wait that was ordered for others.",
    ],
    [
      "        (one.index < 0 ? failedToFree : failedToOrder).push(error);\n",
      "        throw error;\n",
      "One release that fails holds up all others.",
    ],
    ["one.index < 0 ? failedToFree : failedToOrder", "failedToOrder", "Nobody learns that memory was not freed."],
    ["  throwFirst([...failedToFree, ...failedToOrder]);\n", "", "Nobody learns that a release fails."],
    [
      "  } while (live.length < before);",
      "  } while (false);",
      "The producer of an import that has just gone is not looked at.",
    ],
  ]),
  ...law("order/pollIfMany", [
    ["  if (live.length < enough) return;\n  pollAll();\n", "", "Exports that nobody looks at pile up."],
  ]),
  ...law("order/loan/end", [
    ["  state.closed = true;\n", "", "A loan is ended again and again."],
    [
      "producerWaits(stream.orSuccessor, home);\n",
      "producerWaits(stream, home);\n",
      "The host waits for a borrower that has closed its stream.",
    ],
    [
      "    if (home !== null) producerWaits(stream.orSuccessor, home);\n",
      "",
      "The owner writes, or frees, what the borrower still reads.",
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
      "The owner waits for no work of a stream that was closed.",
    ],
  ]),
  ...law("order/Loan.constructor", [
    [" isPinned = false;\n", "", "A release that comes twice frees memory under another consumer."],
    [
      "    stream.retain(); // a closed stream must fail before anything is enqueued\n",
      "",
      "A borrower's stream is destroyed before the loan has ended.",
    ],
    ["      buffer.pin();\n", "", "Memory is freed under a borrower."],
    ["      consumerWaits(buffer, stream);\n", "", "A borrower reads before the owner has written."],
    ["      if (isPinned) buffer.unpin();\n", "", "A loan that cannot begin keeps the memory."],
    [
      "      stream.release();\n      throw error;\n",
      "      throw error;\n",
      "A loan that cannot begin keeps the stream.",
    ],
    ["    finalizer.register(this, this.#state);\n", "", "What was lent to whoever drops the lease is lent for ever."],
  ]),
  ...law("order/Loan.end", [
    ["if (!this.#state.closed) end", "end", "A loan is ended again and again."],
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
    ["  noteElementAccess(elements, false, call);\n", "", "Nobody hears that a consumer on the host came too early."],
  ]),
  ...law("order/producerWaits", [
    [
      "    producer.wait(consumer);\n",
      "",
      "The owner writes, or frees, what the consumer still reads.",
    ],
  ]),
  ...law("order/ReleaseOrder.add", [
    [
      "    if (stream === null) return true;\n",
      "    if (stream === null || buffer.device === null) return true;\n",
      "Pinned memory is freed under a consumer.",
    ],
    [
      "!waits.has(peer) && mayHaveUsed",
      "waits.size === 1 && mayHaveUsed",
      "Of two buffers with one home, the second is freed under a consumer on its peers.",
    ],
    [
      "    if (isCapturing(stream.device.driver)) return false;\n    const",
      "    const",
      "A release that is seen during a capture spoils it.",
    ],
    [
      "    if (!waits.has(owner) && !waitOnce(stream, owner, waits)) return false;\n",
      "",
      "Memory is freed under a consumer.",
    ],
    [
      "mayHaveUsed(peer, buffer, owner) && !waitOnce(stream, peer, waits)",
      "false && !waitOnce(stream, peer, waits)",
      "Memory is freed under a consumer on a peer.",
    ],
  ]),
  ...law("order/waitOnce", [
    ["  if (!waitForContext(stream, device)) return false;\n", "", "Memory is freed under a consumer."],
    ["  waits.add(device);\n", "", "Each of many buffers that are released together costs the driver's calls."],
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
    ["  if (device.isGone) return true;\n", "", "After one Cuda was closed no memory is allocated any more."],
    [
      "        return true;\n      }\n",
      "      }\n      return true;\n",
      "On older drivers memory is freed under a consumer.",
    ],
    [
      "        stream.wait(event);\n        return true;\n",
      "        return true;\n",
      "Memory is freed under a consumer.",
    ],
    ["      device.releaseEvent(event);\n", "", "Events pile up."],
    [
      "  try {\n    waitForDevice(device);\n",
      "  try {\n",
      "Where the driver has no event to give, memory is freed under a consumer.",
    ],
    [
      "    if (isRefusedByCapture(error)) return false;\n    throw error;\n",
      "    throw error;\n",
      "What is released beside a capture that cannot be seen fails for somebody else.",
    ],
  ]),
  ...law("order/comeAfter", [
    [
      "    stream.wait(event);\n",
      "",
      "Memory of another process is unmapped, or freed, while it is in use.",
    ],
    [
      "    waitInstead(waitForEvent, event);\n",
      "",
      "Where the driver refuses to order, memory is freed under the other process.",
    ],
  ]),
  ...law("order/waitInstead", [
    ["    wait(work);\n", "", "Where the driver has no event to give, memory is freed under a consumer."],
    [
      "    if (!isSticky(error)) throw error;\n",
      "    throw error;\n",
      "In a lost context foreign memory is never given back.",
    ],
    ["    if (!isSticky(error)) throw error;\n", "", "Nobody learns that memory is freed under a consumer."],
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
      "peer === owner || !peer.isActive",
      "peer === owner",
      "A release takes up the contexts of devices that nobody uses.",
    ],
    [
      "buffer.owner !== undefined || ",
      "",
      "Managed memory that came as a device's own is freed under a consumer on another device.",
    ],
    [" || !peer.isActive", "", "A release makes contexts on devices that nobody uses."],
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
      "A stream is made for every export that has one home only.",
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
    ["    open.add(this);\n", "", "What a stream has used is not given back after its Cuda is closed."],
    [
      "    this.#stream = stream[internals].successor;\n",
      "    this.#stream = stream;\n",
      "A stream that copies have used is never found.",
    ],
  ]),
  ...law("order/InFlight.onDeviceClosing", [
    ["if (this.#stream.device === device) this.onClosing();", "", "What a default stream has used is kept for ever."],
  ]),
  ...law("order/markedAtClose", [
    ["  pollPending();\n", "", "After its Cuda is closed nobody looks for what a stream has used."],
  ]),
  ...law("order/InFlight.add", [
    ["Math.max(buffer.size, share)", "buffer.size", "Thousands of small arrays are kept."],
    ["Math.max(buffer.size, share)", "share", "Copies keep 64 arrays of whatever size."],
    ["this.#weight >= much || ", "", "Copies that nobody waits for keep ever more memory."],
    [" || !stream[internals].isHandleStable", "", "The end of a stream is marked after it was destroyed."],
    [" || stream.device.isClosed", "", "What was used after its Cuda was closed is kept for ever."],
  ]),
  ...law("order/InFlight.onClosing", [
    ["captureOf(this.#stream) === null", "true", "A mark becomes part of a graph, and memory is kept for ever."],
    ["free, this.#weight", "free", "Nobody looks for what other copies have used."],
  ]),
  ...law("order/InFlight.end", [
    ["    this.#stream[internals].watcher = null;\n", "", "Memory is given back twice."],
  ]),
  ...law("order/InFlight.free", [
    ["quietly(() => buffer.unpin())", "buffer.unpin()", "One free that fails keeps others from being done."],
  ]),
  ...law("order/pinWhileInFlight", [
    ["  buffer.pin();\n", "", "Memory is freed before a copy is done."],
  ]),
  ...law("order/noteClosed", [
    ["  isWanted = open.size > 0;", "", "Memory that was used and closed is not given back before much else is used."],
  ]),
  ...law("order/reclaim", [
    ["  pollDeferred();\n", "", "Nothing that is released later is ever given back."],
    ["  markClosed();\n", "", "Nothing that is released later is ever given back."],
    ["  pollAll();\n", "", "Allocating does not give back what consumers have released."],
  ]),
  ...law("order/liveExports", [
    ["  pollOthers();\n", "", "What a thread of Python has let go of stays until JavaScript calls Python."],
  ]),
];
