/** The protective lines of the exchange with Python's libraries, but for those in Python itself. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const pythonMutations: readonly Mutation[] = [
  ...law("python/callMethod", [
    ["    if (schema !== null) releaseSchema(schema.address);", "", "A schema that was asked for is never released."],
  ]),
  ...law("python/scalarValue", [
    [
      "isScalar(python, item) ? undefined : simpleValue(python, item)",
      "simpleValue(python, item)",
      "A longdouble is asked for its item without end.",
    ],
    ["    python.release(item);\n", "", "Values of scalars are never freed."],
  ]),
  ...law("python/copyOut", [
    [
      "  try {\n    return new Map(copyOut(python, pairs, other) as [unknown, unknown][]); // the helper returns a list of pairs\n  } finally {\n    python.release(pairs);\n  }\n",
      "  return new Map(copyOut(python, pairs, other) as [unknown, unknown][]);\n",
      "The pairs of a dict are never freed.",
    ],
  ]),
  ...law("python/currentStreamCode", [
    ["...[0x73, 0x10], // jae", "...[0x77, 0x10], // ja", "The word behind the last is read."],
    ["0x54000002 | 3 << 5", "0x54000008 | 3 << 5", "The word behind the last is read."],
  ]),
  ...law("python/setWorkStream", [
    [
      "  if (isOfDriver(stream.device)) switchWorkStream",
      "  switchWorkStream",
      "A stream is named that the driver has never heard of.",
    ],
  ]),
  ...law("python/switchWorkStream", [
    [
      "  producerWaits(consumerStream(device, before), following);\n",
      "",
      "What was made on the stream before is read before it is.",
    ],
    [
      "      if (!isCapturing(device.driver)) producerWaits(successor, device.defaultStream);\n",
      "",
      "What was made on a closed stream is read before it is.",
    ],
    ["      Atomics.store(handles, ordinal, CU_STREAM_LEGACY);\n", "", "A stream is named that is gone."],
    [" && stream[internals].isHandleStable", "", "A stream is named that somebody else may destroy."],
    [
      "      if (handles[ordinal] !== handle) return; // another one was set since\n",
      "",
      "Closing a stream ends the naming of another.",
    ],
    ["  current.set(ordinal, stream);\n", "", "The stream that Python's libraries work on is destroyed under them."],
  ]),
  ...law("python/findExchangeApi", [
    ["  if (membersOfMasked.every(has)) {\n", "  if (false) {\n", "The mask of an array is lost."],
    [
      "capsules.PyCapsule_IsValid(capsule, cString(DLPACK_CAPSULE.EXCHANGE_API)) !== 1",
      "false",
      "Any capsule is a table.",
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
    ["(exchangeApi.mustAsk && !isPlain(python, object))", "false", "A conjugate is taken for what lies in memory."],
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
      "Order is made that nobody wants.",
    ],
    ["out.value || 1n", "out.value || 2n", "Work on the default stream is not waited for."],
  ]),
  ...law("python/exportArray", [
    [
      "text(layout.isContiguousC ? dtype.arrowFormat : null)",
      "text(dtype.arrowFormat)",
      "Elements with gaps between them go out as if they had none.",
    ],
    [
      '  if (device === null) hostWaitsToRead(view, "giving to Python"); // its consumers there have no stream\n',
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
    ["  take(); // the first call starts the list\n", "", "What Python orders first is not told to the checker."],
    [
      "      checks.get(context)?.orderedElsewhere(context, home, consumer);\n",
      "",
      "A checker is not told what Python orders.",
    ],
  ]),
  ...law("python/exportVortex", [
    ["    python.release(node);\n", "", "The buffers of an array that Python has no more are kept for good."],
  ]),
  ...law("python/numbersOf", [
    ['  if (array.type.kind === "dictionary") return null;\n', "", "NumPy counts with the indices of a dictionary."],
  ]),
  ...law("python/Handle.constructor", [
    [
      "    finalizer.register(this, { python, object }, this);\n  }\n",
      "  }\n",
      "What is dropped is never given back to Python.",
    ],
  ]),
  ...law("python/Handle.object", [
    [
      '    if (this.#isClosed) throw new TypeError("Cannot use a closed PyObject");\n',
      "",
      "An object is used that Python has freed.",
    ],
  ]),
  ...law("python/Handle.endCall", [
    ["    if (owner.isClosed) return; //", "    //", "A method of a closed object is looked up in it."],
    ["    this.#function = functionOf(", "    functionOf(", "What is kept and called is never the same method again."],
    [
      "    finalizer.unregister(this);\n    this.python.release(this.#object);\n",
      "    this.python.release(this.#object);\n",
      "A method that was called is given up again when it is collected.",
    ],
  ]),
  ...law("python/Handle.close", [
    [
      "    if (this.#isClosed) return;\n    this.#isClosed",
      "    this.#isClosed",
      "A reference that was closed is given up again.",
    ],
    [
      "    this.#isClosed = true;\n    finalizer.unregister(this);\n",
      "    this.#isClosed = true;\n",
      "A reference that was closed is given up again.",
    ],
  ]),
  ...law("python/Handle.lookUp", [
    [
      "    if (functionOf(python, object, owner.object) !== this.#function) {\n",
      "    if (false) {\n",
      "Who has kept a method calls another one.",
    ],
  ]),
  ...law("python/inspectsFrame", [
    ['  if (!python.isExactly(object, "builtin_function")) return true;\n', "", "Python's functions find no frame."],
    [
      'self === python.helper("builtins") || self === python.helper("sys")',
      'self === python.helper("builtins")',
      "Without it sys._getframe finds no frame.",
    ],
  ]),
  ...law("python/functionOf", [
    [
      "return PyMethod_Self(object) === self ? PyMethod_Function(object) : 0n;",
      "return PyMethod_Function(object);",
      "A method of another object is looked up where it was found.",
    ],
  ]),
  ...law("python/takeFromCapsule", [
    [
      "  if (nameAt === 0n) errors.PyErr_Clear();",
      "",
      "What is no capsule leaves an exception behind, and the next call ends the process.",
    ],
  ]),
  ...law("python/importDescribed", [
    [
      '  python.release(python.callHelper("check_elements", [python.retain(object)]));\n',
      "",
      "An array that is described comes with the wrong sign.",
    ],
  ]),
  ...law("python/importBuffer", [
    [
      "StridedMemoryView[makeView], () => owner.close());",
      "StridedMemoryView[makeView], () => {});",
      "A bytearray that was viewed once can never be resized again.",
    ],
    ["data: [buf, readonly !== 0],", "data: [buf, false],", "Python's constants are written to."],
    ["    PyBuffer_Release(buffer.$address);\n", "", "A buffer is held for ever."],
  ]),
  ...law("python/typestrOf", [
    ['order === ">" || order === "!"', 'order === ">"', "Numbers in network order are read backwards."],
    ['itemsize === 1 ? "|" : isBig', "isBig", "Bytes have an order."],
  ]),
  ...law("python/Interpreter.locked", [
    [
      "        this.#depth--;\n        PyGILState_Release(state);\n",
      "        this.#depth--;\n",
      "Python's threads wait for ever.",
    ],
    [
      "      if (this.#toRelease.length > 0) this.releaseAndPoll(...this.#toRelease.splice(0));\n",
      "",
      "What the collector has found is never given back to Python.",
    ],
  ]),
  ...law("python/Interpreter.releaseAndPoll", [
    [
      '    if (this.hasExports) this.release(this.callHelper("poll_exports", []));\n',
      "",
      "What Python's consumers have released is kept.",
    ],
  ]),
  ...law("python/Interpreter.call", [
    [
      "      this.release(tuple);\n      if (keywords !== 0n) this.release(keywords);\n    }\n  }\n",
      "    }\n  }\n",
      "Arguments are never freed.",
    ],
  ]),
  ...law("python/Interpreter.callFramed", [
    [
      "    if (keywords !== 0n) PyList_Append(nextCall, keywords);\n",
      "",
      "Arguments by name are those of another call.",
    ],
  ]),
  ...law("python/Interpreter.text", [
    [
      "    this.#int.value = -1;",
      "    this.#int.value = 0;",
      "A mark at the start of a text is taken for the order of its bytes.",
    ],
    [
      "    if (value.isWellFormed()) {\n",
      "    if (true) {\n",
      "Half a surrogate pair goes to Python as another character.",
    ],
  ]),
  ...law("python/Interpreter.name", [
    [
      "      for (const kept of this.#names.values()) this.release(kept);\n",
      "",
      "Names of attributes are kept for ever.",
    ],
    ["      this.#names.clear();\n", "", "An attribute is looked for by a name that Python has freed."],
  ]),
  ...law("python/Interpreter.readInteger", [
    ["    this.release(digits);\n", "", "The digits of large integers are never freed."],
  ]),
  ...law("python/Interpreter.readText", [
    ["    this.release(encoded);\n", "", "Texts with half a surrogate pair are never freed."],
    ["    if (start !== 0n) return", "    if (true) return", "A file name that is no UTF-8 is read at address 0."],
  ]),
  ...law("python/Interpreter.typeHas", [
    ["    this.release(type);\n    return has;\n", "    return has;\n", "Types of objects are never freed."],
  ]),
  ...law("python/Interpreter.hasProtocol", [
    [
      "return this.typeHas(object, name) && this.api.objects.PyObject_HasAttrString(object, cString(name)) === 1;",
      "return this.typeHas(object, name);",
      "What one object of a type cannot is an error, and not said to be missing.",
    ],
  ]),
  ...law("python/Interpreter.typeFlags", [
    ["    this.release(type);\n    return flags;\n", "    return flags;\n", "Types of objects are never freed."],
  ]),
  ...law("python/Interpreter.show", [
    [
      "      if (!(error instanceof PythonError)) throw error;\n      return `<",
      "      throw error;\n      return `<",
      "An error about an object that cannot say what it is says something else.",
    ],
  ]),
  ...law("python/Interpreter.isExactly", [
    ["    this.release(itsType);\n", "", "Types of objects are never freed."],
  ]),
  ...law("python/Interpreter.error", [
    [
      "    if (this.api.errors.PyErr_Occurred() === 0n) {\n",
      "    if (false) {\n",
      "A call that fails without an exception ends the process.",
    ],
    ["    this.release(args);\n", "", "Exceptions are never freed."],
    ["    this.release(description);\n", "", "Descriptions of exceptions are never freed."],
  ]),
  ...law("python/Interpreter.takeException", [
    ["    this.release(type.value);\n", "", "Types of exceptions are never freed."],
    ["      this.release(traceback.value);\n", "", "Tracebacks are never freed, nor what their frames hold."],
  ]),
  ...law("python/fromPython", [
    ["    if (!isKept) python.release(object);\n", "", "What comes back from Python is never freed there."],
  ]),
  ...law("python/importIfPossible", [
    [
      "    if (error instanceof PythonError || error instanceof ExchangeError) return undefined;\n",
      "",
      "A result that is more than an array is an error.",
    ],
  ]),
  ...law("python/askedByJavaScript", [
    ['"toJSON", ', "", "An object of Python in another one cannot be written as JSON."],
  ]),
  ...law("python/index", [
    ["/^(0|-?[1-9]\\d*)$/", "/^-?(0|[1-9]\\d*)$/", "An attribute with the name -0 is an item."],
  ]),
  ...law("python/wrap", [
    ["if (Object.hasOwn(members, key)", "if (key in members", "Every object has a constructor."],
    ["    defineProperty: () => false,\n", "", "A property is defined beside Python's object, and nobody sees it."],
    ["    preventExtensions: () => false,\n", "", "An object is frozen that is not."],
    [' || key === "toString") return true;', ") return true;", "A member that can be read is said to be missing."],
    ["return members.$item(BigInt(key));", "return members.$item(Number(key));", "A large key is another one."],
  ]),
  ...law("python/nameOf", [
    ['  if (!key.startsWith("$")) return key;\n', "  return key;\n", "A name that nobody can read is set."],
  ]),
  ...law("python/inspect", [
    ['handle.isClosed ? "PyObject (closed)" : ', "", "A closed object cannot be printed."],
  ]),
  ...law("python/has", [
    ["    if (isMapping) found =", "    if (false) found =", "To ask a dict for a key makes an item of it."],
    [
      "    errors.PyErr_Clear();\n    python.release(key);\n",
      "    python.release(key);\n",
      "What is not there makes the next call fail.",
    ],
    ["      if (found) python.release(item);\n", "", "Items that are asked for are never freed."],
  ]),
  ...law("python/setAttribute", [
    ["    python.release(made);\n", "", "What is set as an attribute is never freed."],
  ]),
  ...law("python/item", [
    [
      "  python.release(key);\n  return python.check(found);\n",
      "  return python.check(found);\n",
      "Keys are never freed.",
    ],
  ]),
  ...law("python/setItem", [
    ["    python.release(valueObject);\n", "", "What is set as an item is never freed."],
  ]),
  ...law("python/rawCall", [
    ["    handle.endCall();\n", "", "A method that was looked up for a call keeps its object."],
    [
      "const isFramed = handle.inspectsFrame || isNamed || args.some(isPyObject);",
      "const isFramed = handle.inspectsFrame;",
      "What a function in C calls finds no frame.",
    ],
    [
      "if (error instanceof PythonError && mayTakeForKeywords.has(error.type)) ",
      "if (error instanceof PythonError) ",
      "Every error after a plain object speaks of arguments by name.",
    ],
    [
      "isNamed ? [...args.slice(0, -1), { ...last.values }] : args",
      "isNamed ? [...args.slice(0, -1)] : args",
      "Arguments by name are lost.",
    ],
  ]),
  ...law("python/iterate", [
    ["    iterator.close();\n", "", "Iterators are kept until they are collected."],
  ]),
  ...law("python/x8664Call", [
    [
      "    ...[0x31, 0xc0], // xor eax, eax: the variadic call has no floating-point argument\n",
      "",
      "A variadic function reads registers that hold nothing.",
    ],
    ["    ...[0x31, 0xc0], // xor eax, eax\n    ...end,\n", "    ...end,\n", "A call that succeeds fails."],
    ["    ...[0x31, 0xd2], // xor edx, edx: the end of the arguments\n", "", "A call has arguments that nobody gave."],
    [
      "    ...[0x74, called.length + succeeded.length], // jz fail\n",
      "",
      "An address that cannot be made an object is used all the same.",
    ],
  ]),
  ...law("python/aarch64Call", [
    ["    0xa90153f3, // stp x19, x20, [sp, #16]\n", "    0xd503201f,\n", "Registers of the caller are lost."],
    ["    0xd2800002, // mov x2, #0: the end of the arguments\n", "", "A call has arguments that nobody gave."],
  ]),
  ...law("python/start", [
    [
      "  if (!isSaid) unsetenv(",
      "  if (false) unsetenv(",
      "Programs that are started later are told which encoding to use.",
    ],
    ["  if (!isSaid) setenv(", "  if (false) setenv(", "File names that are no ASCII are read as if they were none."],
    ["Py_InitializeEx(0)", "Py_InitializeEx(1)", "Python takes the signals."],
    [
      "  if (installation !== null && !version.startsWith(`${installation.version}.`)) {\n",
      "  if (false) {\n",
      "A library is started with packages of another version.",
    ],
  ]),
  ...law("python/openInterpreter", [
    [
      "    if (ffiPort().isWorker) releaseLockAtThreadEnd(opened.handle);\n",
      "",
      "A Worker that is ended in a call keeps the lock for ever (Bun).",
    ],
    ["    checkOnlyLibrary(opened);\n", "", "The extension modules of one Python call functions of another."],
  ]),
  ...law("python/find", [
    [
      "problem ??= error;",
      "problem = error;",
      "What is to be installed is for the worst Python, and not for the best.",
    ],
  ]),
  ...law("python/x8664ReleaseLock", [
    ["    ...[0x74, 0x08], // jz", "    ...[0x90, 0x90], // jz", "A thread gives up a lock that it does not hold."],
  ]),
  ...law("python/aarch64ReleaseLock", [
    ["    0x34000080, // cbz", "    0xd503201f, // cbz", "On arm64, too."],
  ]),
  ...law("python/Conversion.all", [
    [
      "      made.forEach((object) => this.#python.release(object));\n",
      "",
      "What goes with a value that is refused is never freed.",
    ],
  ]),
  ...law("python/Conversion.value", [
    [
      "Number.isSafeInteger(value) && !Object.is(value, -0)",
      "Number.isSafeInteger(value)",
      "Minus zero loses its sign.",
    ],
  ]),
  ...law("python/Conversion.object", [
    [
      "      using view = StridedMemoryView.from(value);",
      "      const view = StridedMemoryView.from(value);",
      "An array of another owner is kept until it is collected.",
    ],
  ]),
  ...law("python/Conversion.inside", [
    [
      "    if (this.#above.includes(container)) throw",
      "    if (false) throw",
      "A container in itself is followed without end.",
    ],
    ["      this.#above.pop();\n", "", "The same list twice is a loop."],
  ]),
  ...law("python/Conversion.dict", [
    ["        objects.forEach((object) => python.release(object));\n", "", "What is in a dict is never freed."],
    [
      "      python.release(made);\n      throw error;\n",
      "      throw error;\n",
      "A dict that is refused is never freed.",
    ],
  ]),
  ...law("python/Conversion.stream", [
    ["    if (stream.taken) stream.take(); // throws\n", "", "A stream is given away with one that was."],
    [
      "    if (streams.has(stream)) {",
      "    if (false) {",
      "A stream that is passed twice is given away, and nobody gets it.",
    ],
  ]),
  ...law("python/pointerOf", [
    [
      "        capsules.PyCapsule_SetDestructor(object, 0n);\n",
      "",
      "What was taken out of a capsule is freed once more when the capsule goes.",
    ],
    ["        capsules.PyCapsule_SetName(object, capsuleName(`used_${name}`));\n", "", "A pointer is taken out of its capsule twice."],
  ]),
];
