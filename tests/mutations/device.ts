/** The protective lines of devices, streams and events. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const deviceMutations: readonly Mutation[] = [
  ...law("device/CudaDevice.memory", [
    [
      "this.#memory === undefined || this.#memory.pool.isClosed",
      "this.#memory === undefined",
      "Closing a device's memory resource closes it for all users.",
    ],
  ]),
  ...law("device/expectDevice", [
    ["!(device instanceof CudaDevice)", "device === null", "A number is accepted as a device."],
  ]),
  ...law("device/completion", [
    [
      "  if (state === CUresult.CUDA_SUCCESS && asked === driver) stream[internals].passed();\n",
      "",
      "Waiting for a stream does not release the memory that it has used.",
    ],
    ["const asked = innermost(driver)", "const asked = driver", "A wait orders work that was enqueued after it."],
    [
      "const watch = setInterval(() => hasFailed(stream, handle) && wakeup.abandon(), failureCheck);",
      "const watch = setInterval(() => {}, failureCheck);",
      "A failed context, which makes no callbacks any more, is awaited for ever.",
    ],
    [
      '  if (state !== CUresult.CUDA_ERROR_NOT_READY) checkCuda(driver, "cuStreamQuery", state);\n',
      "",
      "Work that has failed looks done.",
    ],
    [
      '\n    checkCuda(driver, "cuLaunchHostFunc", code);\n',
      "",
      "A refused callback looks like finished work.",
    ],
    ["\n    clearInterval(watch);\n", "", "The process never exits, because a timer keeps checking the stream."],
    ["\n    await wakeup.signalled;\n", "", "The promise of completed() settles before the work is done."],
    ["\n    if (!isTaken) wakeup.cancel();\n", "", "A callback that was not accepted keeps the process alive."],
    [
      "hasFailed(stream, handle) && wakeup.abandon()",
      "hasFailed(stream, handle) && wakeup.cancel()",
      "A file descriptor of the program is closed.",
    ],
  ]),
  ...law("device/query", [
    [
      "besideCaptures(stream.device.driver, () => stream.enqueue(() => driver.stream.cuStreamQuery(handle)))",
      "stream.enqueue(() => driver.stream.cuStreamQuery(handle))",
      "Querying a stream invalidates another library's capture.",
    ],
  ]),
  ...law("device/createEvent", [
    ["timing = false", "timing = true", "Every event measures time, which makes ordering more expensive."],
    ["  if (timing && interprocess) {\n", "  if (false) {\n", "An impossible event fails with an unexplained error."],
  ]),
  ...law("device/createStream", [
    [
      "adopt(device, out.value, (flags & CU_STREAM.NON_BLOCKING) !== 0, retained)",
      "adopt(device, out.value, true, retained)",
      "A copy reads memory that a default stream has yet to write.",
    ],
    [
      "nonBlocking = true,",
      "nonBlocking = false,",
      "Every stream waits for the legacy default stream.",
    ],
    [
      "  if (priority !== undefined) checkPriority(device, priority);\n",
      "",
      "An invalid priority silently becomes a different one.",
    ],
  ]),
  ...law("device/CudaDevice.isActive", [
    [
      "!this.#references.isDestroyed && ",
      "",
      "A device of a closed Cuda is asked for a context that it cannot provide.",
    ],
  ]),
  ...law("device/CudaDevice.context", [
    ["    this.#checkThere();\n", "", "A closed device retains its context again and never releases it."],
  ]),
  ...law("device/CudaDevice.withContext", [
    [
      'this.#check("cuCtxPushCurrent_v2", cuCtxPushCurrent_v2(this.context));',
      "",
      "Calls go to whatever context is current.",
    ],
    [
      "      cuCtxPopCurrent_v2(this.#out.$address);\n",
      "",
      "The caller's context is no longer current after a call.",
    ],
    [
      "      cuCtxPopCurrent_v2(this.#out.$address);\n      this.#references.release();\n",
      "      this.#references.release();\n      cuCtxPopCurrent_v2(this.#out.$address);\n",
      "A context is destroyed while it is current, and the driver writes to memory that is freed.",
    ],
  ]),
  ...law("device/CudaDevice.knownStream", [
    [" || this.#foreignHandle !== handle ||", " ||", "Asking for a stream by its handle returns a different stream."],
    [
      " || last.isClosed) return null",
      ") return null",
      "A closed stream is returned for the next stream with its handle.",
    ],
    [
      "    observerOf(this.driver)?.foreignStream(handle); // the handle may be another stream's by now\n",
      "",
      "A stream that reuses the handle of a destroyed one is reported.",
    ],
  ]),
  ...law("device/CudaDevice.createEvent", [
    [
      "    event[registerFinalizer]();\n    return event;\n",
      "    return event;\n",
      "Events that are dropped without being closed pile up.",
    ],
  ]),
  ...law("device/CudaDevice.synchronize", [
    [
      '    this.withContext(() => this.#check("cuCtxSynchronize"',
      '    (() => this.#check("cuCtxSynchronize"',
      "The wait applies to the context that happens to be current.",
    ],
  ]),
  ...law("device/CudaDevice.retained", [
    [
      "    if (options.evenClosed !== true) this.#checkOpen();\n",
      "",
      "A stream or a buffer of a closed Cuda can be created.",
    ],
  ]),
  ...law("device/CudaDevice.retainFor", [
    [
      "    const retained = this.retained();\n",
      "    const retained = this.retained({ evenClosed: true });\n",
      "A closed Cuda creates an object before it refuses it.",
    ],
    [
      "      retained[Symbol.dispose]();\n      throw error;\n",
      "      throw error;\n",
      "An object that cannot be created keeps its device alive.",
    ],
  ]),
  ...law("device/CudaDevice.retain", [
    [
      "    this.#checkOpen();\n    this.#references.retain();",
      "    this.#references.retain();",
      "A buffer of a closed Cuda can be created.",
    ],
    ["    this.#references.retain();\n", "", "The context is destroyed before memory that was allocated in it."],
  ]),
  ...law("device/device/CudaDevice.release", [
    ["    this.#references.release();\n", "", "A device is never released."],
  ]),
  ...law("device/CudaDevice.checkThere", [
    ["if (this.#references.isDestroyed) throw", "if (false) throw", "The driver writes to memory that is freed."],
  ]),
  ...law("device/CudaDevice.close", [
    ["      () => this.#references.close(),\n", "", "The primary context is never released."],
    [
      "      ...this.#beforeClose.splice(0),\n",
      "      () => this.#beforeClose.splice(0).forEach((work) => work()),\n",
      "An object that cannot be closed leaves others open.",
    ],
    [
      "      () => this.#closeSpareEvents(), // not with the context, which another user may keep\n",
      "",
      "Events pile up in a context that another library uses, too.",
    ],
  ]),
  ...law("device/CudaDevice.closeSpareEvents", [
    [" && this.#primary.isAlive) runAll", ") runAll", "The driver is called with events of a destroyed context."],
  ]),
  ...law("device/PrimaryContext.isAlive", [
    [" && this.#int.value !== 0;\n", ";\n", "A context that another library has destroyed is used."],
  ]),
  ...law("device/ProgramCache", [
    ["    programs.delete(key); // so that it comes last\n", "", "The most used program is unloaded."],
    ["programs.size > maxPrograms && ", "false && ", "Every program ever loaded stays loaded."],
    [" && !isCapturing(device.driver)", "", "A copy invalidates the capture that it belongs to."],
    [" && !isBlockedByCapture(device)", "", "A copy invalidates another library's capture."],
    [
      "    if (programs.size > 0) unload(device, [...programs.values()]);\n",
      "",
      "Programs outlive their device.",
    ],
    ["  waitForDevice(device);\n", "", "Code is unloaded while it runs."],
  ]),
  ...law("device/waitForDevice", [
    [
      "    if (!isSticky(error)) throw error;\n",
      "    throw error;\n",
      "After a fault, closing fails and leaves the remaining objects open.",
    ],
    [
      "    if (!isSticky(error)) throw error;\n",
      "",
      "Memory is freed although the driver could not wait for its users.",
    ],
  ]),
  ...law("device/CudaDevice.release", [
    [
      "      ...[...this.#freedOn].map((other) => () => other.#finish()),\n",
      "",
      "A context is destroyed while another device's stream has yet to free its memory.",
    ],
    [
      "      ...[...this.#freedOn].map((other) => () => other.#finish()),\n",
      "      () => this.#freedOn.forEach((other) => other.#finish()),\n",
      "A device is not waited for because another one could not be.",
    ],
    ["      () => this.#primary.release(),\n", "", "The primary context is never released."],
  ]),
  ...law("device/EventState.close", [
    ["    destroy(this.#device, this.#handle);\n", "", "Events that are dropped without being closed pile up."],
  ]),
  ...law("device/destroy", [
    [
      "  if (device.isGone) return; // the event was destroyed with its context\n",
      "",
      "Closing an object that is gone is an error.",
    ],
    [
      "  noteEventDestroyed(device.driver, handle);\n",
      "",
      "A new event that has the handle of a closed one is taken for one that was recorded in a capture.",
    ],
  ]),
  ...law("device/CudaEvent.there", [
    ["    if (device.isGone) {\n", "    if (false) {\n", "The driver is called with an event that is gone."],
  ]),
  ...law("device/CudaEvent.synchronize", [
    [
      "besideCaptures(driver, () => driver.event.cuEventSynchronize(handle))",
      "driver.event.cuEventSynchronize(handle)",
      "Waiting for an event invalidates another library's capture.",
    ],
    [
      '    checkCuda(driver, "cuEventSynchronize", besideCaptures(driver, () => driver.event.cuEventSynchronize(handle)));\n',
      "",
      "The host does not wait.",
    ],
  ]),
  ...law("device/CudaEvent.completed", [
    [
      "    observerOf(this.device.driver)?.closedByUser(stream.handle); // should the Cuda be closed meanwhile\n",
      "",
      "A program is told to close what it has not made.",
    ],
    ["    stream.wait(this);\n", "", "The promise of completed() settles before the event."],
    ["    await stream.completed();\n", "", "The promise of completed() settles before the event."],
  ]),
  ...law("device/CudaEvent.isDone", [
    [
      "besideCaptures(driver, () => driver.event.cuEventQuery(handle))",
      "driver.event.cuEventQuery(handle)",
      "Querying an event invalidates another library's capture.",
    ],
    [
      "if (code !== CUresult.CUDA_ERROR_NOT_READY) checkCuda",
      "if (false) checkCuda",
      "Work that has failed looks unfinished for ever.",
    ],
    ["return code === CUresult.CUDA_SUCCESS;", "return true;", "Work that is not done looks done."],
  ]),
  ...law("device/CudaEvent.close", [
    ["    if (this.#state !== null) this.#state.closed = true;\n", "", "An event is destroyed twice."],
    ["    if (this.#closed) return;\n", "", "Closing twice destroys an event twice."],
    ["    this.#closed = true;\n", "", "Closing twice destroys an event twice."],
  ]),
  ...law("device/checkReached", [
    [
      "code !== CUresult.CUDA_ERROR_INVALID_VALUE",
      "code !== CUresult.CUDA_SUCCESS",
      "The error does not say which memory is out of reach.",
    ],
    ["owner.ordinal === device.ordinal", "false", "Memory of the stream's own device is reported as out of reach."],
  ]),
  ...law("device/finalizer", [
    ["      state.close();\n", "", "Objects that are dropped without being closed pile up."],
    [
      "  afterCaptures(driver, () => { // most",
      "  (() => { // most",
      "Objects that the collector finds invalidate a capture.",
    ],
  ]),
  ...law("device/closeIfDropped", [
    ["  finalizer.register(object, state);\n", "", "Objects that are dropped without being closed pile up."],
  ]),
  ...law("device/closeOnce", [
    ["  if (state.closed) return;\n", "", "Closing twice destroys twice."],
    ["  state.closed = true;\n", "", "Closing twice destroys twice, as does the collector after a close."],
  ]),
  ...law("device/makeOrderExplicit", [
    [
      "  atNext(stream, (event) => stream.wait(event));\n",
      "",
      "A copy reads memory that a default stream has yet to write.",
    ],
    [
      "  atNext(stream, (event) => stream.wait(event));\n",
      "  atNext(stream, () => {});\n",
      "A copy reads memory that a default stream has yet to write.",
    ],
    ["bytes > readAtOnce || ", "bytes > 4096 || ", "A copy reads memory that a default stream has yet to write."],
    ['  stream.handleFor("copy on");\n', "", "A copy on a closed stream records an event in it."],
  ]),
  ...law("device/atNext", [
    [
      "    device.releaseEvent(event);\n",
      "",
      "Each wait leaks an event.",
    ],
    ['  stream.handleFor("wait for");\n', "", "A wait for a closed stream records an event in it."],
  ]),
  ...law("device/PrimaryContext.isActive", [
    ["return this.#int.value !== 0;", "return true;", "An unused context is mistaken for one in use."],
  ]),
  ...law("device/PrimaryContext.handle", [
    ["if (this.#handle === 0n) this", "this", "The context is retained at every use, but released only once."],
  ]),
  ...law("device/PrimaryContext.ensureCurrent", [
    ["if (current === 0n) checkCuda", "checkCuda", "The context that another library has made current is replaced."],
    ["    else if (count === 0) return;", "", "A context that another library has made current is taken from it."],
    ["    this.#isUser = true;\n", "", "A destroyed context stays current, and UCX crashes when it is opened."],
    ["counts.set(handle, count + 1)", "counts.set(handle, 1)", "Another Cuda's close takes the context from this one."],
  ]),
  ...law("device/PrimaryContext.release", [
    [
      "    if (this.#handle === 0n) return;\n",
      "",
      "A context that was not retained here is released, although another library holds it.",
    ],
    [
      "    if (this.#isLastUser()) this.#leaveThread();\n",
      "",
      "A destroyed context stays current, and UCX crashes when it is opened.",
    ],
    [
      "    while (cuCtxPopCurrent_v2(",
      "    if (cuCtxPopCurrent_v2(",
      "A destroyed context is current again after a call in which its Cuda was closed.",
    ],
    [
      "    for (const context of above.reverse()) cuCtxPushCurrent_v2(context);\n",
      "",
      "The context that another library has made current since is taken from it.",
    ],
  ]),
  ...law("device/DeviceProperties.uuid", [
    ['? "MIG" : "GPU"', '? "GPU" : "GPU"', "A slice of a GPU has a UUID that no tool knows."],
  ]),
  ...law("device/enqueueCopy", [
    [
      '  if (direction === "HtoD") makeOrderExplicit(stream, bytes);\n',
      "",
      "A copy reads memory that a default stream has yet to write.",
    ],
    [
      "const code = device.withContext(",
      "const code = (device.siblings[0] ?? device).withContext(",
      "A copy goes to the default stream of another device.",
    ],
  ]),
  ...law("device/recordWithin", [
    [
      'checkCuda(driver, "cuEventRecord", first === NEEDS_CONTEXT ? device.withContext(again) : first);',
      'checkCuda(driver, "cuEventRecord", device.withContext(again));',
      "A call that has failed is made again, and its error is lost.",
    ],
  ]),
  ...law("device/waitWithin", [
    [
      'checkCuda(driver, "cuStreamWaitEvent", first === NEEDS_CONTEXT ? device.withContext(again) : first);',
      'checkCuda(driver, "cuStreamWaitEvent", device.withContext(again));',
      "A call that has failed is made again, and its error is lost.",
    ],
  ]),
  ...law("device/ReferenceCount.retained", [
    ["    this.retain();\n", "", "An object is not kept for its remaining users."],
  ]),
  ...law("device/ReferenceCount.retain", [
    ["    this.#count++;\n", "", "An object is not kept for its remaining users."],
  ]),
  ...law("device/ReferenceCount.release", [
    ["    this.#count--;\n", "", "An object that was retained once is never destroyed."],
    [
      "    this.#count--;\n    this.#destroyIfUnused();\n",
      "    this.#count--;\n",
      "An object that is closed before its last release is never destroyed.",
    ],
  ]),
  ...law("device/ReferenceCount.close", [
    ["    this.#closed = true;\n", "", "Nothing is ever destroyed."],
    [
      "    this.#closed = true;\n    this.#destroyIfUnused();",
      "    this.#closed = true;",
      "Closing an object without users leaks it.",
    ],
  ]),
  ...law("device/ReferenceCount.destroyIfUnused", [
    ["!this.#closed || ", "", "The last user's release destroys an object that is still open."],
    ["this.#count > 0 || ", "", "Closing destroys an object that others still use."],
    [" || this.#destroyed) return;", ") return;", "Closing twice destroys twice."],
    ["    this.#destroyed = true;\n", "", "Closing twice destroys twice, and a destroyed object looks usable."],
    ["    this.#destroy();\n", "", "Nothing is released."],
  ]),
  ...law("device/Retained.Symbol.dispose", [
    ["    references?.release();\n", "", "An object that was retained once is never destroyed."],
    ["    this.#references = null;\n", "", "Releasing twice drops another user's reference."],
  ]),
  ...law("device/relaxThread", [
    [
      "CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : before;",
      "CU_STREAM_CAPTURE_MODE.RELAXED ? unchanged : unchanged;",
      "The thread stays in relaxed mode, and other libraries invalidate their captures without an error.",
    ],
  ]),
  ...law("device/relax", [
    [
      "return isCapturing(driver) ? unchanged : relaxThread(driver);",
      "return unchanged;",
      "Calls made meanwhile invalidate another library's capture.",
    ],
  ]),
  ...law("device/restore", [
    ["  slot.word[0] = mode;\n", "", "The thread gets a mode that it never had."],
  ]),
  ...law("device/isBlockedByCapture", [
    [
      "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;\n}\n",
      "CUDA_SUCCESS;\n}\n",
      "A free on the default stream invalidates another library's capture.",
    ],
    ["  if (device.isGone) return false;\n", "", "A context is requested, and created, for a device that is gone."],
  ]),
  ...law("device/isRefusedByCapture", [
    [
      "return error instanceof CudaError && refusals.has(error.code);",
      "return false;",
      "A release fails in the next caller that allocates.",
    ],
  ]),
  ...law("device/CudaStream.fromHandle", [
    [
      "return new CudaStream(new StreamState(device, handle, false, owner, null, CudaStream.#successors));",
      "return new CudaStream(new StreamState(device, handle, true, owner, null, CudaStream.#successors));",
      "A stream about which nothing is known is assumed to ignore default streams.",
    ],
  ]),
  ...law("device/CudaStream.adopt", [
    ["    closeIfDropped(stream, state);\n", "", "Streams that are dropped without being closed pile up."],
  ]),
  ...law("device/CudaStream.open", [
    [
      "    if (this.#isShut) throw this.#closed(doing);\n",
      "",
      "A destroyed handle is passed to the driver.",
    ],
  ]),
  ...law("device/CudaStream.orSuccessor", [
    [
      "return this.#isShut && !this.#references.isDestroyed ? this.#state.successor : this;",
      "return this;",
      "A buffer loses its home when that stream is closed.",
    ],
  ]),
  ...law("device/CudaStream.isLegacy", [
    [
      "return this.#handle <= CU_STREAM_LEGACY;",
      "return false;",
      "A free on the default stream invalidates another library's capture.",
    ],
  ]),
  ...law("device/CudaStream.enqueue", [
    ["    if (!this.needsContext) {\n", "    {\n", "A default stream is mistaken for that of the current context."],
    [
      "      if (code !== NEEDS_CONTEXT) return code;\n",
      "      return code;\n",
      "Every call fails in a driver that requires a current context.",
    ],
  ]),
  ...law("device/CudaEvent.millisecondsSince", [
    [
      "    if (start.#isUntimed || this.#isUntimed) throw",
      "    if (false) throw",
      "An event without timing is reported as never recorded.",
    ],
  ]),
  ...law("device/noTime", [
    ["from && to ?", "from || to ?", "An event that was recorded is reported as not recorded."],
  ]),
  ...law("device/CudaStream.record", [
    ["    event[registerFinalizer]();\n", "", "Events that are dropped without being closed pile up."],
    ['    if (this.#isShut) this.#open("record an event in");\n', "", "An event is recorded in a closed stream."],
    [
      'checkSameDevice(given, this.device, "Cannot record an event");',
      'checkSameCuda(given, this.device, "Cannot record an event");',
      "Only the driver may refuse to record an event of another device.",
    ],
    ["      if (!(given instanceof CudaEvent)) {\n", "      if (false) {\n", "A stream is accepted as an event."],
    ["      if (given.device !== this.device) {\n", "      if (false) {\n", "An event of another Cuda is recorded."],
    [
      '        given.argumentFor("record");',
      "       ",
      "The error for a closed event only says that it belongs to another device.",
    ],
  ]),
  ...law("device/CudaStream.recordNew", [
    [
      "      event.close();\n      throw error;\n",
      "      throw error;\n",
      "An event that could not be recorded leaks.",
    ],
  ]),
  ...law("device/CudaStream.wait", [
    ['    if (this.#isShut) this.#open("wait for anything in");\n', "", "A closed stream is made to wait."],
    ["    if (!(other instanceof CudaEvent)) throw", "    if (false) throw", "A buffer is accepted as an event."],
    ["    if (other.device !== this.device) {\n", "    if (false) {\n", "An event of another Cuda is waited for."],
    [
      '      other.argumentFor("wait for");\n',
      "",
      "The error for a closed event only says that it belongs to another Cuda.",
    ],
    ["handle === this.#handle && ", "", "Streams whose handles round to the same number are treated as one."],
    [
      "=== this.#handle && other.device === this.device",
      "=== this.#handle",
      "The default streams of two devices are treated as one.",
    ],
    [
      "        other.#mark(event);\n        this.#waitFor(event);",
      "      void other;",
      "A stream does not wait for another.",
    ],
  ]),
  ...law("device/CudaStream.mark", [
    [
      'this.needsContext ? NEEDS_CONTEXT : events.cuEventRecord(event.argumentFor("record"), this.#argument);',
      "0;",
      "An event marks nothing.",
    ],
    [
      "this.needsContext ? NEEDS_CONTEXT : events.cuEventRecord",
      "events.cuEventRecord",
      "An event is recorded on the default stream of another device.",
    ],
    [
      "    if (code !== CUresult.CUDA_SUCCESS) recordWithin(this, event, code);\n",
      "",
      "A default stream cannot be marked.",
    ],
  ]),
  ...law("device/CudaStream.waitFor", [
    [
      '      : streams.cuStreamWaitEvent(this.#argument, event.argumentFor("wait for"), 0);',
      "      : 0;",
      "A stream does not wait for an event.",
    ],
    [
      "    const code = this.needsContext\n      ? NEEDS_CONTEXT\n      : streams",
      "    const code = streams",
      "The default stream of another device waits instead.",
    ],
    ["    if (code !== CUresult.CUDA_SUCCESS) waitWithin(this, event, code);\n", "", "A default stream cannot wait."],
  ]),
  ...law("device/CudaStream.synchronize", [
    [
      "besideCaptures(driver, synchronize));\n    this.#state.passed();",
      "besideCaptures(driver, synchronize));",
      "Waiting for a stream does not release the memory that it has used.",
    ],
    [
      "besideCaptures(driver, synchronize)",
      "synchronize()",
      "Waiting for a stream invalidates another library's capture.",
    ],
    ["this.enqueue(() => driver.stream.cuStreamSynchronize(handle))", "0", "The host does not wait."],
  ]),
  ...law("device/CudaStream.waitUntilReady", [
    [
      "if (this.isKnownNonBlocking) return this.synchronize();",
      "return this.synchronize();",
      "The host does not wait for a default stream's work.",
    ],
    [
      "event.synchronize());\n    this.#state.watcher?.onPassed();",
      "event.synchronize());",
      "Waiting for a stream does not release the memory that it has used.",
    ],
  ]),
  ...law("device/CudaStream.isReady", [
    [
      "if (this.isKnownNonBlocking) return this.isDone;",
      "return this.isDone;",
      "A default stream's work is not waited for.",
    ],
  ]),
  ...law("device/CudaStream.isDone", [
    [
      "    if (driver === this.device.driver) this.#state.passed();\n",
      "",
      "Finding that a stream is done does not release the memory that it has used.",
    ],
    [
      '    checkCuda(this.device.driver, "cuStreamQuery", code);\n',
      "    if (code !== CUresult.CUDA_SUCCESS) return false;\n",
      "A stream that has failed looks busy for ever.",
    ],
    [
      "    if (code === CUresult.CUDA_ERROR_NOT_READY) return false;\n",
      "    if (code === CUresult.CUDA_ERROR_NOT_READY) return true;\n",
      "Work that is not done looks done.",
    ],
  ]),
  ...law("device/CudaStream.retain", [
    [
      '    this.#open("retain");\n    if (!this.#isOwned)',
      "    if (!this.#isOwned)",
      "A closed stream becomes the home of a buffer.",
    ],
    [
      "    if (!this.#isOwned) this.device.retain(); // a stream of our own retains its device anyway\n",
      "",
      "The context of a default stream is destroyed before memory is freed on it.",
    ],
    ["    this.#references.retain();\n", "", "A stream is destroyed before memory is freed on it."],
  ]),
  ...law("device/CudaStream.release", [
    ["    this.#references.release();\n", "", "A stream that was a home once is never destroyed."],
    ["    if (!this.#isOwned) this.device.release();\n", "", "The device of a default stream is never released."],
  ]),
  ...law("device/CudaStream.close", [
    ["    this.#isShut = true;\n    state.close", "    state.close", "A stream is used after its user has closed it."],
    [
      "    if (this.#isShut || this.#ignoresClose) return;\n",
      "    if (this.#isShut) return;\n",
      "Closing a stream that is the home of a buffer takes it from all other users.",
    ],
    ["    this.#isShut = true;\n    state.close();\n", "    this.#isShut = true;\n", "Streams pile up."],
  ]),
  ...law("device/StreamState.constructor", [
    [
      "if (retainedDevice === null) return;",
      "// a foreign",
      "Closing a foreign stream destroys it while its owner uses it.",
    ],
    ["        retainedDevice[Symbol.dispose]();\n", "", "A device whose streams are closed is never released."],
    ["device.withContext(() => driver.stream.cuStreamDestroy_v2(handle))", "0", "Streams pile up."],
    [
      "      if (this.#successor !== null) successors.shut(this.#successor);\n",
      "",
      "The stream that a buffer keeps as its home passes a destroyed handle to the driver.",
    ],
  ]),
  ...law("device/StreamState.isHandleStable", [
    [
      "(this.isOwned || this.isDefault)",
      "true",
      "The end of a foreign stream is marked after its owner has destroyed it.",
    ],
    [" && !this.isClosedByUser;", ";", "The end of a stream is marked after the stream was destroyed."],
  ]),
  ...law("device/StreamState.passed", [
    ["this.isIdle = !this.isShared;", "this.isIdle = true;", "Work that others enqueue on a stream is not waited for."],
    ["this.isIdle = !this.isShared;", "", "The driver is queried about a stream that is known to be idle."],
  ]),
  ...law("device/CudaStream.handle", [
    ["this.#state.isShared = true;\n    ", "", "Work that others enqueue on a stream is not waited for."],
    [
      'this.#open("use");\n    this.#state.isIdle = false;',
      'this.#open("use");',
      "Work that is enqueued on the fast path is not waited for.",
    ],
  ]),
  ...law("device/CudaStream.isKnownIdle", [
    ["this.isKnownNonBlocking && ", "", "A blocking stream does not wait for the legacy default stream."],
    [" && !this.#isShut", "", "A closed stream counts as ready."],
  ]),
  ...law("device/StreamState.close", [
    ["    this.watcher?.onClosing();\n", "", "The end of a stream is marked after the stream was destroyed, or never."],
  ]),
  ...law("device/writtenFile", [
    ["using _descriptor = ", "", "Every drawing leaks a descriptor."],
    ["BigInt(size), 0n)", "BigInt(Math.min(size, 4096)), 0n)", "Only a part of a large graph is drawn."],
  ]),
  ...law("device/describeDevice", [
    ["  if (!device.isActive)", "  if (false)", "Printing a device creates a context."],
  ]),
];
