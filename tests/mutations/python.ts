/** The protective lines of the exchange with Python's libraries, except those written in Python. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const pythonMutations: readonly Mutation[] = [
  ...law("python/ask", [
    ["withoutCurrentFolder + script", "script", "Where a program has a json.py no Python is found."],
  ]),
  ...law("python/whereMissing", [
    [
      'typeof program === "string" && program !== ""',
      "program === 0",
      "With several Pythons, the error does not say which one lacks a module.",
    ],
    [
      '  if (!message.startsWith("ModuleNotFoundError: No module named ")) return "";',
      "",
      "An error about a program's own module is followed by wrong advice.",
    ],
  ]),
  ...law("python/withObjects", [
    ["value.map(withObjects)", "value", "A dict in a list is a Map although objects were asked for."],
  ]),
  ...law("python/jsonOf", [
    ["if (value instanceof Set) return Array.from(value, jsonOf);", "", "A set is written as {}."],
    ["value.toJSON() : value", "value : value", "A date is written as {}."],
  ]),
  ...law("python/json", [
    [
      'if (typeof value !== "function") return jsonOf(value);',
      "return jsonOf(value);",
      "A module is silently left out.",
    ],
  ]),
  ...law("python/thenOf", [
    [
      '  if (!python.locked(() => python.typeHas(handle.object, "__await__"))) return undefined;\n',
      "",
      "Every Python object that an async function returns is awaited, and fails.",
    ],
  ]),
  ...law("python/Handle.withObject", [
    [
      "    const object = this.python.retain(this.object);\n    try {\n      return work(object);\n    } finally {\n" +
      "      this.python.release(object);\n    }\n",
      "    return work(this.object);\n",
      "An object that a getter of an argument closes is used after it is gone.",
    ],
  ]),
  ...law("python/callMethod", [
    ["    schema?.release();", "", "A requested schema is never released."],
  ]),
  ...law("python/currentStreamCode", [
    ["...[0x73, 0x10], // jae", "...[0x77, 0x10], // ja", "The word past the last one is read."],
    ["0x54000002 | 3 << 5", "0x54000008 | 3 << 5", "The word past the last one is read."],
  ]),
  ...law("python/exitCode", [
    [
      "...[0x75, 0x01], // jne",
      "...[0x74, 0x01], // je",
      "A process that makes no calls skips what it would do at exit.",
    ],
    ["0xb4000062, // cbz", "0xb5000062, // cbnz", "A process that makes no calls skips what it would do at exit."],
    ["0x48, 0x83, 0x3e, 0x00", "0x90, 0x83, 0x3e, 0x00", "Only half of the number of calls is looked at."],
  ]),
  ...law("python/setWorkStream", [
    [
      "  if (!stream.device.isSimulated) switchWorkStream",
      "  switchWorkStream",
      "A stream that the driver does not know is set.",
    ],
  ]),
  ...law("python/switchWorkStream", [
    [
      "  producerWaits(consumerStream(device, before), following);\n",
      "",
      "Results of the previous stream are read too early.",
    ],
    [
      "      if (!isCapturing(device.driver)) producerWaits(successor, device.defaultStream);\n",
      "",
      "Results of a closed stream are read too early.",
    ],
    ["      Atomics.store(handles, ordinal, CU_STREAM_LEGACY);\n", "", "A destroyed stream stays set."],
    [" && stream[internals].isHandleStable", "", "A stream that its owner may destroy is set."],
    [
      "      if (handles[ordinal] !== handle) return; // another stream has been set since\n",
      "",
      "Closing a stream unsets another one.",
    ],
    ["  current.set(ordinal, stream);\n", "", "The stream that Python's libraries use is destroyed."],
  ]),
  ...law("python/importArray", [
    ["  } else if (!isAsked && ", "  } else if (false && ", "The unit of a quantity is lost."],
    ["!isAsked && membersOf", "membersOf", "The numbers of a quantity cannot be viewed."],
  ]),
  ...law("python/findExchangeApi", [
    ["  if (membersOfMasked.every(has)) {\n", "  if (false) {\n", "The mask of an array is lost."],
    [
      "capsules.PyCapsule_IsValid(capsule, cString(DLPACK_CAPSULE.EXCHANGE_API)) !== 1",
      "false",
      "Any capsule is accepted as a table.",
    ],
  ]),
  ...law("python/readExchangeApi", [
    [
      "    if (version.major === DLPACK_MAJOR_VERSION) {\n",
      "    if (true) {\n",
      "A table of another version is called.",
    ],
  ]),
  ...law("python/importByExchangeApi", [
    ["(exchangeApi.mustAsk && !isPlain(python, object))", "false", "A conjugated tensor is read as it lies in memory."],
    [
      "    orderAfterProducer(python, exchangeApi, out, view, options);\n",
      "",
      "We read before the producer has written.",
    ],
  ]),
  ...law("python/orderAfterProducer", [
    [
      "  if (device === null || stream === null) return;\n",
      "  if (device === null) return;\n",
      "Order is made that was not requested.",
    ],
    ["out.value || 1n", "out.value || 2n", "Work on the default stream is not waited for."],
  ]),
  ...law("python/exportArray", [
    [
      "text(layout.isContiguousC ? dtype.arrowFormat : null)",
      "text(dtype.arrowFormat)",
      "Elements with gaps between them are exported as contiguous.",
    ],
    [
      '  if (device === null) hostWaitsToRead(view, "giving to Python"); // consumers there have no stream\n',
      "",
      "Python reads page-locked memory before it is written.",
    ],
    [
      "handle(device === null ? undefined : homeHandle(stream, device)),",
      "handle(stream?.handle),",
      "Page-locked memory cannot be handed to Arrow.",
    ],
  ]),
  ...law("python/reportOrders", [
    [
      "  take(); // the first call starts the list\n",
      "",
      "The first order that Python makes is not reported to the checker.",
    ],
    [
      "      checks.get(context)?.orderedElsewhere(context, home, consumer);\n",
      "",
      "Orders that Python makes are not reported to the checker.",
    ],
  ]),
  ...law("python/exportVortex", [
    ["    python.release(node);\n", "", "The buffers of an array that Python has released are kept for ever."],
  ]),
  ...law("python/numbersOf", [
    ['array.type.kind === "dictionary" || ', "", "NumPy computes with the indices of a dictionary."],
    [" || isTime(array.type)", "", "Dates are integers to pandas and Polars."],
  ]),
  ...law("python/functionOf", [
    [
      "return PyMethod_Self(object) === self ? PyMethod_Function(object) : 0n;",
      "return PyMethod_Function(object);",
      "A method of another object is looked up on the object where it was found.",
    ],
  ]),
  ...law("python/takeFromCapsule", [
    [
      "  if (nameAt === 0n) errors.PyErr_Clear();",
      "",
      "A value that is not a capsule leaves an exception pending, and the next call ends the process.",
    ],
  ]),
  ...law("python/isImmutable", [
    ["return modulesOfImmutable.test(", "return false && modulesOfImmutable.test(", "An array of JAX is written to."],
  ]),
  ...law("python/importDescribed", [
    [
      '  python.release(python.callHelper("check_elements", [python.retain(object)]));\n',
      "",
      "An array imported by its description has the wrong sign.",
    ],
    ["[object, attribute].map(", "[object].map(", "A view of a NumPy scalar is of memory that was freed."],
    ["[object, attribute].map(", "[attribute].map(", "A view that has no other owner is of memory that was freed."],
  ]),
  ...law("python/importBuffer", [
    [
      "StridedMemoryView[makeView], () => owner.close());",
      "StridedMemoryView[makeView], () => {});",
      "A bytearray that was viewed once can never be resized again.",
    ],
    ["data: [buf, readonly !== 0],", "data: [buf, false],", "Python's constants are written."],
    ["    PyBuffer_Release(buffer.$address);\n", "", "A buffer is kept for ever."],
  ]),
  ...law("python/typestrOf", [
    ['order === ">" || order === "!"', 'order === ">"', "Numbers in network order are read in the wrong byte order."],
    ['itemsize === 1 ? "|" : isBig', "isBig", "Single bytes get a byte order."],
  ]),
  ...law("python/Interpreter.callFramed", [
    [
      "    if (isNamed) PyCell_Set(frames.keywords, keywords);\n",
      "",
      "Keyword arguments are missing.",
    ],
    ["    PyCell_Set(frames.function, 0n);\n", "", "The function that was called last is kept."],
    ["    PyCell_Set(frames.arguments, 0n);\n", "", "The arguments of the last call are kept."],
    ["    if (isNamed) PyCell_Set(frames.keywords, 0n);\n", "", "Keyword arguments of the last such call are kept."],
  ]),
  ...law("python/Interpreter.readInteger", [
    ["      this.release(digits);\n", "", "The digits of large integers are never freed."],
  ]),
  ...law("python/Interpreter.hasProtocol", [
    [
      "return this.typeHas(object, name) && this.api.objects.PyObject_HasAttrString(object, cString(name)) === 1;",
      "return this.typeHas(object, name);",
      "A protocol that one object of a type lacks is an error instead of being reported as missing.",
    ],
  ]),
  ...law("python/Interpreter.display", [
    [
      "      if (!(error instanceof PythonError)) throw error;\n",
      "      throw error;\n",
      "An error about an object whose repr fails is replaced by another error.",
    ],
  ]),
  ...law("python/fromPython", [
    ["    if (!isAdopted) python.release(object);\n", "", "Results from Python are never freed there."],
  ]),
  ...law("python/askedByJavaScript", [
    ['"toJSON", ', "", "A Python object cannot be written as JSON."],
  ]),
  ...law("python/index", [
    ["/^(0|-?[1-9]\\d*)$/", "/^-?(0|[1-9]\\d*)$/", "An attribute with the name -0 is treated as an item."],
  ]),
  ...law("python/nameOf", [
    [
      '  if (!key.startsWith("$")) return key;\n',
      "  return key;\n",
      "An attribute is set under a name that cannot be read.",
    ],
  ]),
  ...law("python/inspect", [
    ['handle.isClosed ? "PyObject (closed)" : ', "", "A closed object cannot be printed."],
  ]),
  ...law("python/has", [
    ["    if (isMapping) found =", "    if (false) found =", "Testing a dict for a key creates an item."],
    [
      "    errors.PyErr_Clear();\n    python.release(key);\n",
      "    python.release(key);\n",
      "A missing member makes the next call fail.",
    ],
    ["      if (found) python.release(item);\n", "", "Items that are tested for are never freed."],
  ]),
  ...law("python/setAttribute", [
    ["  python.release(value);\n", "", "Values that are set as attributes are never freed."],
  ]),
  ...law("python/itemFor", [
    [
      "  python.release(key);\n  return python.check(found);\n",
      "  return python.check(found);\n",
      "Keys are never freed.",
    ],
  ]),
  ...law("python/keysOfDict", [
    [
      "  if (odd === undefined && new Set(names).size === names.length) return names;\n",
      "  return names;\n",
      "A copy of a dict lacks items, or has others.",
    ],
    [
      'return hasAttribute(handle, name) || (askedByJavaScript.has(name) && name !== "constructor");',
      "return false;",
      "A copy of a dict has methods for items.",
    ],
    ["new Set(names).size === names.length", "true", "A copy of a dict has one item of two."],
  ]),
  ...law("python/checkNotAwaited", [
    [
      "!thens.has(proxy) || !args.every(isFunctionOfPromise)",
      "true",
      "An object with a method then is never delivered.",
    ],
    [" || !args.every(isFunctionOfPromise)", "", "A program cannot call a method then."],
  ]),
  ...law("python/offersArray", [
    [
      "  if (python.typeFlags(object) & Py_TPFLAGS.TYPE_SUBCLASS) return false;\n",
      "",
      "A class is taken for its arrays.",
    ],
    [
      "    (isAsked && python.api.objects.PyObject_HasAttrString(object, cString(name)) === 1);",
      "    false;",
      "A namespace with an array interface is no array.",
    ],
  ]),
  ...law("python/signature_of", [
    ['name == "_is_coroutine"', "False", "Frameworks do not see that a function is async."],
    [
      "range(1, count + 1)",
      "range(0)",
      "What counts parameters, such as DuckDB, refuses each function of JavaScript.",
    ],
    [
      '"is_async", "__dict__", ',
      '"is_async", "__name__", "__qualname_", ',
      "LightGBM, which numbers its callbacks, takes no function of JavaScript.",
    ],
  ]),
  ...law("python/JavaScriptFunction", [
    ["        if ended.is_set():", "        if False:", "A function of a Worker that has ended is entered."],
  ]),
  ...law("python/bind_javascript", [
    ["(clear_error(), end(endings))", "end(endings)", "A Worker that ends inside a function ends nothing of its own."],
  ]),
  ...law("python/end", [
    ["        ended.set()\n", "", "A function of a Worker that has ended is called all the same."],
    [
      "            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t)(address)(argument)\n",
      "            pass\n",
      "A Worker leaves descriptors behind, and in Bun a thread.",
    ],
    ["        os.close(bell)\n", "", "A Worker leaves a descriptor behind."],
  ]),
  ...law("python/end_if_given_up", [
    [
      "(numbers_for_javascript[2] or is_replaced) and",
      "numbers_for_javascript[2] and",
      "A function of a program that has failed is entered: the process ends.",
    ],
    ["numbers_for_javascript[2] or is_replaced", "True", "A copy of the package ends what serves another one."],
    [" and others != began", "", "A copy of the package ends what serves another one."],
    ["thread == javascript_thread and ", "", "A Worker ends what serves the program that has started it."],
    ["(numbers_for_javascript[2] or is_replaced)", "is_replaced", "Each file of deno test leaves its threads behind."],
    [" and not ended.is_set()", "", "What serves a program that was loaded again is ended each time that is."],
  ]),
  ...law("python/end_given_up", [
    ["        end_side(", "        (", "A function of a program that was loaded again is entered: the process ends."],
  ]),
  ...law("python/cancel_all", [
    ["    await loop.shutdown_asyncgens()\n", "", "A generator of a Worker that has ended is never closed."],
    ["    if not is_loop_over:\n", "    if True:\n", "Coroutines of a Worker that has ended are not cancelled."],
  ]),
  ...law("python/await_result", [
    [" or ended.is_set()", "", "A coroutine is run although its Worker has ended."],
  ]),
  ...law("python/ring", [
    ["    with bell_lock:\n", "    if True:\n", "A bell is rung whose number another file has by now."],
    [" and not ended.is_set()", "", "A bell is rung that was closed."],
  ]),
  ...law("python/end_threads", [
    ["    finished.clear()\n", "", "What a call has returned outlives its Worker."],
    ["    jobs.put(None)\n", "", "A Worker leaves the threads of its calls behind."],
    ["        loop.call_soon_threadsafe(stop_loop)\n", "        pass\n", "A Worker leaves asyncio's thread behind."],
  ]),
  ...law("python/work", [
    ["            calls_made[0] += 1\n", "            pass\n", "A process does not end while a call is made."],
    ["            calls_made[0] -= 1\n", "", "A process that has made a call skips what it would do at exit."],
    ["            jobs.put(None)  # for the next thread\n", "", "Of a Worker's threads one ends."],
  ]),
  ...law("python/replaced", [
    [
      "while_waiting.append(replaced)\n",
      "",
      "Calls that wait for JavaScript, which waits for others, wait for ever.",
    ],
    [
      "is_of_pool and waiting_count < 0\n",
      "False\n",
      "Calls that had begun to wait for a thread wait for ever.",
    ],
    [
      "            with threads_lock:\n                thread_count += 1\n",
      "            with threads_lock:\n",
      "There are ever more threads.",
    ],
  ]),
  ...law("python/indexKey", [
    ["python.integer(BigInt(name))", "python.integer(BigInt(Number(name)))", "A large key becomes a different one."],
    [
      "!python.isKeyed(object) || contains(python, object, integer)",
      "true",
      "A dict that was read from JSON has no item for a key of digits.",
    ],
    ["contains(python, object, text)", "true", "A missing key is reported as a string."],
    ["  python.release(isText ? integer : text);\n", "", "Keys are never freed."],
    ["  if (found < 0) errors.PyErr_Clear();", "", "A dict's own test for a key that fails makes the next call fail."],
  ]),
  ...law("python/setItem", [
    ["keys.length === 1 ? first : ", "true ? first : ", "A value for two keys is set for the first alone."],
    ["if (args.length < 2) throw", "if (false) throw", "An item without a value becomes None."],
    [
      "python.release(python.check(python.tryCallFramed(python.helper(helper), call, 0n)))",
      "python.release(python.check(python.tryCall(python.helper(helper), call)))",
      "Columns of pandas cannot be set.",
    ],
  ]),
  ...law("python/rawCall", [
    ["    handle.endCall();\n", "", "A method that was read for a call keeps its object alive."],
    [
      "const isFramed = inspectsFrame || named !== 0n || hasPyObject(args);",
      "const isFramed = inspectsFrame;",
      "A function that C code calls back finds no frame.",
    ],
  ]),
  ...law("python/x8664Call", [
    [
      "    ...[0x31, 0xc0], // xor eax, eax: the variadic call has no floating-point argument\n",
      "",
      "A variadic function reads registers that were not set.",
    ],
    [
      "    ...[0x31, 0xc0], // xor eax, eax\n    ...end,\n",
      "    ...end,\n",
      "A successful call is reported as failed.",
    ],
    [
      "    ...[0x31, 0xd2], // xor edx, edx: the end of the arguments\n",
      "",
      "A call gets arguments that were not given.",
    ],
    [
      "    ...[0x74, called.length + succeeded.length], // jz fail\n",
      "",
      "An address that cannot be converted to an object is used anyway.",
    ],
  ]),
  ...law("python/aarch64Call", [
    ["    0xa90153f3, // stp x19, x20, [sp, #16]\n", "    0xd503201f,\n", "Registers of the caller are not restored."],
    ["    0xd2800002, // mov x2, #0: the end of the arguments\n", "", "A call gets arguments that were not given."],
  ]),
  ...law("python/oneAtATime", [
    ["=== -errno.EADDRINUSE", "=== 1", "Workers that open Python at the same time crash the process."],
    ["    files.close(socket);\n", "", "Only the first thread that opens Python can do so."],
  ]),
  ...law("python/start", [
    ["[0] = 1;", ";", "Text that is not ASCII cannot be printed where no locale is set."],
    [' && ffiPort().env("PYTHONUTF8") !== "0"', "", "The environment cannot turn UTF-8 off."],
    ["Py_InitializeEx(0)", "Py_InitializeEx(1)", "Python handles the signals."],
    [
      "  if (installation !== null && !version.startsWith(`${installation.version}.`)) {\n",
      "  if (false) {\n",
      "A library is started with packages of another version.",
    ],
  ]),
  ...law("python/setProgram", [
    [
      "character.codePointAt(0)",
      "character.charCodeAt(0) & 0xff",
      "A path that is not ASCII is another one in Python.",
    ],
  ]),
  ...law("python/openInterpreter", [
    [
      "    if (ffiPort().isWorker) releaseLockAtThreadEnd(opened.handle);\n",
      "",
      "A Worker that is terminated during a call keeps the lock for ever (Bun).",
    ],
    [
      '    checkDescriptorsLeft(descriptorsToStart, "open Python");\n',
      "",
      "Python that finds too few descriptors to start ends the process.",
    ],
    ["    checkOnlyLibrary(opened);\n", "", "The extension modules of one Python call functions of another."],
  ]),
  ...law("python/find", [
    [
      "problem ??= error;",
      "problem = error;",
      "The advice on what to install is for the least suitable Python, not for the best.",
    ],
  ]),
  ...law("python/x8664ReleaseLock", [
    ["    ...[0x74, 0x08], // jz", "    ...[0x90, 0x90], // jz", "A thread releases a lock that it does not hold."],
  ]),
  ...law("python/aarch64ReleaseLock", [
    ["    0x34000080, // cbz", "    0xd503201f, // cbz", "On arm64 a thread releases a lock that it does not hold."],
  ]),
  ...law("python/Conversion.all", [
    [
      "      made.forEach((object) => this.#python.release(object));\n",
      "",
      "Objects made together with a refused value are never freed.",
    ],
  ]),
  ...law("python/Conversion.object", [
    [
      "    if (isOfOtherCopy(value)) throw ofOtherCopy(value);\n",
      "",
      "An object of another copy of the package is passed as a function.",
    ],
    [
      "      using view = StridedMemoryView.from(value);",
      "      const view = StridedMemoryView.from(value);",
      "An array of another owner is kept until it is collected.",
    ],
  ]),
  ...law("python/Conversion.stream", [
    [
      "    if (stream.taken) stream.take(); // throws\n",
      "",
      "A stream is handed over together with one that was taken before.",
    ],
    [
      "    if (streams.has(stream)) {",
      "    if (false) {",
      "A stream that is passed twice is handed over, but never received.",
    ],
  ]),
  ...law("python/pointerOf", [
    [
      "        capsules.PyCapsule_SetDestructor(object, 0n);\n",
      "",
      "A pointer that was taken out of a capsule is freed again with the capsule.",
    ],
    [
      "        capsules.PyCapsule_SetName(object, capsuleName(`used_${name}`));\n",
      "",
      "A pointer is taken out of its capsule twice.",
    ],
  ]),
  ...law("python/scalarValue", [
    [
      "return isScalar(python, item) ? notSimple : simpleValue(",
      "return simpleValue(",
      "The item of a longdouble is requested without end.",
    ],
    ["    python.release(item);\n", "", "Values of scalars are never freed."],
  ]),
  ...law("python/simpleValue", [
    ["      return object === python.singletons.true;\n", "      return true;\n", "False becomes true."],
    [
      "      return integerValue(python, object);\n",
      "      return python.api.numbers.PyFloat_AsDouble(object);\n",
      "A large integer of NumPy is rounded.",
    ],
    ["    python.release(int);\n", "", "Integers of NumPy are never freed."],
  ]),
  ...law("python/copyOut", [
    ["  if (kind === Kind.bytes) return python.texts.readBytes(object);\n", "", "Bytes arrive as an object."],
  ]),
  ...law("python/copyItems", [
    ["      python.release(item);\n", "", "Items of containers are never freed."],
    ["    python.release(pairs);\n", "", "The pairs of a dict are never freed."],
  ]),
  ...law("python/pendingError", [
    [
      "  if (errors.PyErr_Occurred() === 0n) {\n",
      "  if (false) {\n",
      "A call that fails without an exception ends the process.",
    ],
  ]),
  ...law("python/toNumber", [
    [
      'if (!python.typeHas(handle.object, "__float__")) {',
      "if (false) {",
      "Multiplying two columns reports an attribute that was never requested.",
    ],
  ]),
  ...law("python/takeException", [
    ["  python.release(type.value);\n", "", "Types of exceptions are never freed."],
    ["    python.release(traceback.value);\n", "", "Tracebacks are never freed, nor what their frames hold."],
  ]),
  ...law("python/exportTensor", [
    [
      "  python.hasExports = true; // its consumers may export it further\n",
      "",
      "Memory that consumers of NumPy's array have released is kept.",
    ],
    ["    python.release(capsule);\n", "", "Capsules are never freed."],
    [
      "  if (capsule === 0n) callDeleter(tensor, true);",
      "",
      "A tensor for which there is no capsule is kept for ever.",
    ],
    ["  python.check(capsule);\n", "", "Where Python has no memory for a capsule, the process ends."],
    [
      "    if (capsules.PyCapsule_GetName(capsule) === name) callDeleter(tensor, true); // NumPy has not taken it\n",
      "",
      "A tensor that NumPy does not take is kept for ever.",
    ],
  ]),
  ...law("python/Handle.constructor", [
    ["    finalizer.register(this, this.#reference);\n", "", "Dropped objects are never released to Python."],
  ]),
  ...law("python/Handle.object", [
    ["object === 0n ? this.#lookUp() : object", "object", "A method that was called before is called at NULL."],
  ]),
  ...law("python/Handle.cacheAttribute", [
    [
      "    if (attributes.size === maxCached) attributes.clear();\n    attributes.set(name, attribute);\n",
      "",
      "A method that is read again is a different object.",
    ],
    [
      "attribute.#function !== 0n || isMemberOfModule",
      "attribute.#function === 0n || isMemberOfModule",
      "Members of a module are kept after the module has dropped them.",
    ],
  ]),
  ...law("python/Handle.isAgain", [
    [
      "      ? this.#reference.object === object\n",
      "      ? true\n",
      "A replaced member of a module keeps its old value.",
    ],
    [" === this.#function;\n", " !== 0n;\n", "A replaced method keeps its old value."],
    [
      "    if (!isReleased) python.release(object); // last: the caller releases it if anything is thrown\n",
      "",
      "Methods that are read again are never freed.",
    ],
  ]),
  ...law("python/Handle.reuse", [
    ["    this.#users++;\n", "", "Closing a method closes it for all other users."],
    ["    this.#uncalled++;\n", "", "A method that has not been called yet is released."],
  ]),
  ...law("python/Handle.takeForCall", [
    [
      "    this.#reference.object = 0n;\n    return object;",
      "    return object;",
      "A released method is used.",
    ],
    [
      "    if (this.#uncalled > 0) this.#uncalled--;\n",
      "",
      "A method that was read for a call keeps its object alive.",
    ],
    [
      "    if (this.#origin?.owner.isClosed) return 0n; //",
      "    //",
      "A method of a closed object is looked up in it.",
    ],
    [
      "    if (this.#isCalledAgain || this.#uncalled > 0) return 0n;\n",
      "    if (this.#isCalledAgain) return 0n;\n",
      "A method that was read and not called is released.",
    ],
  ]),
  ...law("python/Handle.close", [
    [
      "      if (this.#function === 0n || --this.#uncalled > 0) return;\n",
      "",
      "A member of a module is closed while others use it.",
    ],
    ["      this.#attributes = null;\n", "", "A closed object's methods are kept."],
    [
      "    if (python.isCalledBack) return python.releaseLater(object);\n",
      "",
      "What has called a function goes on with an object that the function has freed.",
    ],
  ]),
  ...law("python/Handle.lookUp", [
    [
      "    if (functionOf(python, object, owner.object, python.kindOf(object)) !== this.#function) {\n",
      "    if (false) {\n",
      "A method that was kept calls a different one.",
    ],
    [
      '    if (this.#isClosed || this.#origin === null) throw new TypeError("Cannot use a closed PyObject");\n',
      '    if (this.#origin === null) throw new TypeError("Cannot use a closed PyObject");\n',
      "A closed method is looked up again.",
    ],
  ]),
  ...law("python/inspectsFrame", [
    [
      "  if (python.kindOf(object) !== Kind.builtin) return true;\n",
      "  if (python.kindOf(object) !== Kind.builtin) return false;\n",
      "Python's functions find no frame.",
    ],
    [
      'self === python.helper("builtins") || self === python.helper("sys")',
      'self === python.helper("builtins")',
      "Without it sys._getframe finds no frame.",
    ],
  ]),
  ...law("python/isMemberOfModule", [
    [
      "  if (kind < Kind.object || python.kindOf(object) !== Kind.module) return false;\n",
      "  if (kind < Kind.object) return false;\n",
      "Members of any object are kept after the object has dropped them.",
    ],
    [
      "return self !== 0n && python.kindOf(self) === Kind.module;",
      "return self !== 0n;",
      "A method in a module keeps its object alive.",
    ],
  ]),
  ...law("python/HostSpecs.of", [
    ["last.readonly === readonly &&", "", "Read-only memory is written."],
    [" || layout.volume === 0) return 0n;", ") return 0n;", "An array without elements has an address."],
    [" &&\n      last.generation === this.#generation;", ";", "A freed description is used."],
  ]),
  ...law("python/HostSpecs.make", [
    [
      "      for (const { object } of this.#byText.values()) python.release(object);\n      this.#byText.clear();\n      this.#generation++;\n",
      "      for (const { object } of this.#byText.values()) python.release(object);\n",
      "A freed description is used.",
    ],
    [
      "layout.isContiguousC && dtype.arrowFormat !== null",
      "dtype.arrowFormat !== null",
      "Elements with gaps between them are passed to Arrow as contiguous.",
    ],
  ]),
  ...law("python/viewOf", [
    [
      "{ ...given, ...handle.options } : given",
      "given : given",
      "An array on a GPU that stays an object cannot be sent.",
    ],
  ]),
  ...law("python/importTensor", [
    ["    callDeleter(managedTensorVersioned, true);\n", "", "A tensor that cannot be imported is never freed."],
  ]),
  ...law("python/importFromNumpy", [
    [
      '    capsules.PyCapsule_SetName(capsule, capsuleName("used_dltensor_versioned"));\n',
      "",
      "A tensor is released twice.",
    ],
    [
      "    python.release(capsule);\n  }\n}\n\nfunction importFromProducer",
      "  }\n}\n\nfunction importFromProducer",
      "Capsules of NumPy's tensors are never freed.",
    ],
  ]),
  ...law("python/Interpreter.enter", [
    [
      "    if (this.#toRelease.length === 0) return;\n",
      "    return;\n",
      "Objects that the collector has found are never released to Python.",
    ],
  ]),
  ...law("python/checkHome", [
    ["folderOf(executable) === folderOf(program)", "true", "Another Python than the wanted one runs."],
  ]),
  ...law("python/Interpreter.leave", [
    ["      this.api.threads.PyGILState_Release(this.#state);\n", "", "Python's threads wait for ever."],
    ["      this.#forgetError();\n      this.api", "      this.api", "A call fails with an earlier one's error."],
    [
      "        this.#forgetError();\n        this.before",
      "        this.before",
      "Where the stack ends, the error of a call is that of the events that are recorded when Python is left.",
    ],
  ]),
  ...law("python/run_for_ever", [
    [
      "    while not ended.is_set():\n        with contextlib",
      "    if True:\n        with contextlib",
      "A coroutine that exits ends all others.",
    ],
  ]),
  ...law("python/Interpreter.poll", [
    [
      '    if (hasChanged) this.release(this.callHelper("poll_exports", []));\n',
      "",
      "Memory that Python's consumers have released is kept.",
    ],
  ]),
  ...law("python/Interpreter.pollWithoutLock", [
    [
      "    if (!isQuiet) this.locked(() => this.poll());\n",
      "",
      "Memory that a call has released is kept until the next call.",
    ],
    ["this.#javascript?.hasDead !== true && ", "", "Functions that a call has released are kept."],
    [
      " && this.#releases?.mayHaveChanged() === false",
      "",
      "Arrays that a call has released are kept.",
    ],
  ]),
  ...law("python/Interpreter.call", [
    [
      "    this.#releaseAll(args, keywords);\n    return result;\n",
      "    return result;\n",
      "Arguments are never freed.",
    ],
  ]),
  ...law("python/Interpreter.callByTuple", [
    ["    this.#releaseAll([tuple], keywords);\n", "", "Many arguments are never freed."],
  ]),
  ...law("python/iterateAny", [
    ["    iterator.close();\n", "", "Iterators are kept until they are collected."],
    [
      "if (python.api.errors.PyErr_Occurred() !== 0n) python.check(0n);",
      "if (false) python.check(0n);",
      "A loop that fails ends without an error.",
    ],
  ]),
  ...law("python/iterateSequence", [
    [
      "queueMicrotask(python.endTurn);",
      "",
      "A loop misses what another thread has replaced while JavaScript waited.",
    ],
    [" && python.turn !== turn", " && false", "A loop misses what it has replaced itself."],
    ["    sequence.close();\n", "", "A list is kept until its loop is collected."],
  ]),
  ...law("python/Kinds.of", [
    [
      "this.#recent[place] === type",
      "this.#recent[place] !== 0",
      "A type is mistaken for another one with the same cache slot.",
    ],
  ]),
  ...law("python/Kinds.look", [
    [
      "    if ((flags & Py_TPFLAGS.HEAPTYPE) && !(flags & Py_TPFLAGS.IMMUTABLETYPE)) return Kind.unknown;\n",
      "",
      "A class that becomes an array class keeps its old kind.",
    ],
    ["    if (python.isScalarType(type)) return this.#scalar(type);\n", "", "A NumPy scalar is treated as an array."],
  ]),
  ...law("python/traps", [
    ["members.has(key) || ", "", "A member that can be read is reported as missing."],
    ["  defineProperty: () => false,\n", "", "A property is defined outside Python's object, where it cannot be seen."],
    ["  preventExtensions: () => false,\n", "", "An object that is not frozen is reported as frozen."],
    [' || key === "toString") return true;', ") return true;", "A member that can be read is reported as missing."],
    [
      "  ownKeys: (target) => keysOfDict(handleIn(target)),\n",
      "",
      "A copy of an object has Causeway's own properties.",
    ],
  ]),
  ...law("python/copyOf", [
    [
      "    if (!(cause instanceof RangeError)) throw cause;\n",
      "    throw cause;\n",
      "The stack ends without a reason.",
    ],
  ]),
  ...law("python/importFromBytes", [
    ["ptr >= start && ", "", "An array may begin before its buffer."],
    ["ptr + BigInt(size) <= start + BigInt(length)", "true", "An array may end behind its buffer."],
    ["!Number.isSafeInteger(offset)", "false", "An offset that is no integer is an error of the engine's."],
  ]),
  ...law("python/importIfPossible", [
    [
      "    if (error instanceof PythonError) exceptionBehind(error).release?.();\n",
      "    throw error;\n",
      "A result that is more than an array causes an error.",
    ],
  ]),
  ...law("python/attributeOf", [
    ["    if (!isAdopted) python.release(object);\n", "", "Values of attributes are never freed."],
    ["    if (known !== undefined) return known.proxy;\n", "", "A method that is read again is a different object."],
  ]),
  ...law("python/attributeValue", [
    [
      "    if (!cached.isClosed) {\n",
      "    if (cached !== null) {\n",
      "An attribute that was closed meanwhile is returned again.",
    ],
    ["    python.leave();\n", "", "The lock is kept after reading an attribute that is an object."],
    ["adopts ? native.result : 0n;", "0n;", "The reference to a method that is returned again is never freed."],
  ]),
  ...law("python/call", [
    [
      "  const afterwards = handle.takeForCall();\n",
      "  const afterwards = 0n;\n",
      "A method that was read for a call keeps its object alive.",
    ],
    [
      "status, native, afterwards);\n  } finally {\n    python.leave();\n  }\n",
      "status, native, afterwards);\n  } finally {}\n",
      "The lock is kept after a call whose result is an object.",
    ],
  ]),
  ...law("python/readAsFloat", [
    ["if (python.retainsType(type)) native", "native", "An object of a new class is read as a float."],
  ]),
  ...law("python/withHint", [
    [
      " && mayTakeForKeywords.has(error.type)) {",
      ") {",
      "Every error after a plain object mentions keyword arguments.",
    ],
  ]),
  ...law("python/Interpreter.nativeCalls", [
    [
      "if (this.#programs === undefined) this.#programs =",
      "this.#programs ??=",
      "Where machine code is refused, every call asks for it anew.",
    ],
  ]),
  ...law("python/Interpreter.runNatively", [
    ["      if (status >= Status.object) this.#depth++;\n", "", "The lock is released in the middle of a call."],
    [
      "      this.leave();\n",
      "      this.#depth = 0;\n",
      "The lock is kept for ever after work that a call had delayed.",
    ],
    ["    this.turn++;\n", "", "Values read before a call are mistaken for the values after it."],
  ]),
  ...law("python/NativeCalls.take", [
    ["    if (count > maxArguments) return false;\n", "", "Arguments are written past the end of their memory."],
  ]),
  ...law("python/NativeCalls.takeObjects", [
    ["    if (made > maxArguments) return Taken.no;\n", "", "Arguments are written past the end of their memory."],
    ["named === null ? count : count + 1", "count", "Keyword arguments are missing from those that are created."],
    [
      "    if (this.#python.turn !== turn) return Taken.no;",
      "   ",
      "A getter that calls Python changes the arguments.",
    ],
    ["    ints[2 * entryCountWord] = entries;\n", "", "Dicts are empty, or have the entries of the previous call."],
    [
      "this.#hasObjects ? Taken.framed : Taken.yes",
      "Taken.yes",
      "A Python function that is called back has no caller.",
    ],
  ]),
  ...law("python/NativeCalls.takeSimple", [
    [" && !Object.is(value, -0)", "", "Negative zero becomes an integer."],
    ["this.#usedText = used + value.length", "this.#usedText = used", "Two texts become one."],
  ]),
  ...law("python/NativeCalls.copyAscii", [
    ["      if (unit >= 0x80) return false;\n", "", "Text that is not ASCII is damaged."],
    ["value.length > textBytes - used", "value.length > textBytes", "Text is written past the end of its memory."],
  ]),
  ...law("python/NativeCalls.takeEntries", [
    ["    if (values.length !== names.length) return false;", "   ", "A dict has an entry of another call."],
    [
      "    if (names.length > maxEntries - this.#entries) return false;\n",
      "",
      "Entries are written past the end of their memory.",
    ],
    [
      "entriesWord + this.#entries * entryWords",
      "entriesWord",
      "Entries of one dict are overwritten by those of another.",
    ],
    ["this.#places[index]", "this.#places[0]", "Entries are in the first dict, or in no dict."],
  ]),
  ...law("python/NativeCalls.value", [
    ["Number.isSafeInteger(number) ? number :", "number === number ? number :", "Large integers are rounded."],
    [">>> 0);", "| 0);", "Integers beyond 31 bits become different ones."],
  ]),
  ...law("python/itemProgram", [
    [
      '["copy", "first", "keptTo"], ["call", "kept", itemOffsets.Py_DecRef]',
      "",
      "Numbers of a range are never freed.",
    ],
    ['      ["ifZero", "keptTo", "other"],\n', "", "The end of an iterator is mistaken for an item."],
  ]),
  ...law("python/tellKinds", [
    ['    ...ifSame("keptTo", at.minusNone, "none"),\n', "", "None becomes an object."],
  ]),
  ...law("python/readKinds", [
    ['    ["ifZero", "rows", "integer"],\n    ["go", other],\n', "", "Integers of more than 64 bits are truncated."],
  ]),
  ...law("python/ItemReader.run", [
    [
      "Number.isSafeInteger(number) ? number : this.#view.getBigInt64(8 * at + 8, littleEndian)",
      "number",
      "Large integers are rounded.",
    ],
  ]),
  ...law("python/makeArguments", [
    [
      '    ["copy", "first", "keptTo"],\n    ["call", "kept", offsets.Py_DecRef],\n',
      "",
      "The values of a dict are kept for ever.",
    ],
    [
      '  ["ifZero", "first", "made"],\n  ["label", "not made"],',
      '  ["go", "made"],\n  ["label", "not made"],',
      "A call is made without an entry.",
    ],
  ]),
  ...law("python/callProgram", [
    [
      '    ["get", "first", "kept", offsets.afterwards],\n    ["call", "kept", offsets.Py_DecRef],\n',
      "",
      "A method that was read for a call keeps its object alive.",
    ],
    ['    ["ifZero", "keptTo", "raised"],\n', "", "An exception is mistaken for an object."],
  ]),
  ...law("python/attributeProgram", [
    [
      '    ...ifSame("rows", offsets.minusSelf, "of this object"),\n    ["go", "another"],\n',
      "",
      "A method of another object is returned.",
    ],
    [
      '    ["ifZero", "rows", "simple"],\n    ["go", "done"],\n',
      '    ["go", "done"],\n',
      "Attributes that are read again are never freed.",
    ],
  ]),
  ...law("python/ObjectHeads.constructor", [
    ["    if (found === undefined) throw", "    if (false) throw", "Types are read from a wrong place."],
    ["samples.every(", "samples.some(", "Types are read from a wrong place."],
  ]),
  ...law("python/Python.locked", [
    [
      "    if (goesOnLater.has(Object.prototype.toString.call(work))) throw",
      "    if (false) throw",
      "An async function is started before it is refused.",
    ],
    [
      "    if (isPromise(result)) throw",
      "    if (false) throw",
      "Work continues after the lock was released, without an error.",
    ],
    ["this.#python.locked(work)", "work()", "Python's threads run between calls under one lock."],
  ]),
  ...law("python/ReleaseMemory.hasChanged", [
    ["    if (numbers[2] !== 0) return true;\n", "", "A capsule that was never taken is kept."],
    [
      "    if (numbers[0] !== this.#addresses.length) this.#addresses = this.#find();\n",
      "",
      "The counters are never read.",
    ],
  ]),
  ...law("python/ReleaseMemory.mayHaveChanged", [
    ["    if (numbers[2] !== 0) return true;\n", "", "A capsule that was never taken is kept."],
    ["numbers[0] !== this.#addresses.length || ", "", "New counters are not read."],
    [
      "!== 0) return true;\n    }\n    return false;",
      "!== 0) return false;\n    }\n    return false;",
      "Memory that consumers have released is kept.",
    ],
  ]),
  ...law("python/Sequences.constructor", [
    ["start > 0xffffn", "start > 0n", "The length of a list is read as an address."],
  ]),
  ...law("python/Sequences.itemAt", [
    [
      "return python.retain(python.check(item));",
      "return python.check(item);",
      "An item that the list still has is released.",
    ],
  ]),
  ...law("python/Sequences.readValues", [
    [
      "        if (value === notSimple) return;\n",
      "",
      "Placeholders are returned for items that take longer to read.",
    ],
    ["Number.isSafeInteger(number) ? number : notSimple", "number", "Large integers are rounded."],
    [
      "        python.api.errors.PyErr_Clear(); // it may be too large for a double\n",
      "",
      "An integer that is too large for a double makes the next call fail.",
    ],
  ]),
  ...law("python/decoder", [
    ["{ ignoreBOM: true }", "{ ignoreBOM: false }", "A text loses its first character if that is U+FEFF."],
  ]),
  ...law("python/Texts.make", [
    [
      "    this.#int.value = -1;",
      "    this.#int.value = 0;",
      "A byte order mark at the start of a text is interpreted.",
    ],
    [
      "    if (value.isWellFormed()) {\n",
      "    if (true) {\n",
      "Half a surrogate pair reaches Python as another character.",
    ],
    [
      "      if (3 * value.length <= keptBytes) {\n",
      "      if (value.length <= keptBytes) {\n",
      "A text that needs more bytes than characters is truncated.",
    ],
  ]),
  ...law("python/Texts.cache", [
    [
      "      for (const one of known.values()) this.#python.releaseLater(one);\n",
      "",
      "Names of attributes are kept for ever.",
    ],
    ["      known.clear();\n", "", "An attribute is looked up by a name that Python has freed."],
  ]),
  ...law("python/Texts.read", [
    ["    python.release(encoded);\n", "", "Texts with half a surrogate pair are never freed."],
    ["    if (start !== 0n) return", "    if (true) return", "A file name that is not UTF-8 is read at address 0."],
  ]),
  ...law("python/Texts.readUtf8", [
    [
      "    if (length > keptBytes) return readString(start, length);\n",
      "",
      "A long text overwrites other memory.",
    ],
    ["        if (byte >= 0x80) return", "        if (false) return", "Every byte of a text becomes a character."],
  ]),
  ...law("python/toPython", [
    [
      "if (!(error instanceof RangeError && isStackOverflow(error))) throw",
      "if (true) throw",
      "The engine's error says nothing.",
    ],
    [
      "    for (const object of made) python.release(object);\n",
      "",
      "Objects made together with a refused value are never freed.",
    ],
    ["    conversion?.exportStreams();\n", "", "A stream arrives empty."],
  ]),
  ...law("python/simpleObject", [
    [
      "Number.isSafeInteger(value) && !Object.is(value, -0)",
      "Number.isSafeInteger(value)",
      "Minus zero loses its sign.",
    ],
  ]),
  ...law("python/Conversion.enter", [
    [
      "    if (this.#above.includes(container)) throw",
      "    if (false) throw",
      "A container that contains itself is followed without end.",
    ],
  ]),
  ...law("python/Conversion.leave", [
    ["    this.#above.pop();\n", "", "A list that occurs twice is mistaken for a cycle."],
  ]),
  ...law("python/FloatLists.make", [
    [" || Number.isSafeInteger(item)) return", ") return", "An integer in a list becomes a float in Python."],
    [" || count > most)", ")", "A list is truncated at the end of the memory."],
  ]),
  ...law("python/Conversion.filled", [
    ["this.#python.check(make())", "make()", "A container for which there is no memory ends the process."],
    [
      "      this.#python.release(made);\n      throw error;\n",
      "      throw error;\n",
      "A container that is refused is never freed.",
    ],
  ]),
  ...law("python/Conversion.dict", [
    ["        for (const object of objects) python.release(object);\n", "", "The contents of a dict are never freed."],
    ["if (PyDict_Size(made) === BigInt(pairs.size)) return;", "return;", "A pair of a Map is lost."],
  ]),
  ...law("python/Conversion.plain", [
    ["        python.release(value);\n", "", "The contents of a plain object are never freed."],
  ]),
];
