/** The protective lines of the exchange with Python's libraries. */
import { inFile, type Mutation } from "./mutation.ts";

const arrow = ["tests/python/arrow_capsules_test.ts"];
const arrays = ["tests/python/export_array_test.ts"];
const numpy = ["tests/python/numpy_test.ts"];
const objects = ["object", "frame", "leaks"].map((name) => `tests/python/${name}_test.ts`);

const workers = ["tests/order/worker_end_test.ts"];

/** What can be broken there. */
export const pythonMutations: readonly Mutation[] = [
  ...inFile("src/memory/memory_buffer.ts", workers, [
    [
      "if (!ffiPort().isWorker || this.#holding.ptr === 0n) return false;",
      "return false;",
      "What a Worker has lent ends with it.",
    ],
    [
      "memory instanceof ArrayBuffer && !(buffers.get(memory)?.endsWithWorker === false);",
      "memory instanceof ArrayBuffer;",
      "Memory of a resource is copied, if it is seen as a typed array.",
    ],
  ]),
  ...inFile("src/cdata/export_numbers.ts", workers, [
    [
      "  if (buffer.endsWithWorker) return",
      "  if (false) return",
      "Arrow is lent in place.",
    ],
  ]),
  ...inFile("src/cdata/export.ts", workers, [
    ["  if (ending.length > 0) {\n", "  if (false) {\n", "Buffers of Arrow arrays are lent in place."],
  ]),
  ...inFile("src/dlpack/export.ts", workers, [
    ["  if (mustOutlive && copy === false) {", "  if (false) {", "Who wants no copy gets one."],
    ["mustMove || mustOutlive || copy", "mustMove || copy", "Tensors are lent in place."],
  ]),
  ...inFile("src/dlpack/copy_for_consumer.ts", workers, [
    [
      "shape, dtype, readonly: true }",
      "shape, dtype }",
      "What Python writes to a copy is lost without a word.",
    ],
  ]),
  ...inFile("src/python/thread_end.ts", ["tests/python/current_stream_thunk_test.ts"], [
    ["    ...[0x74, 0x08], // jz", "    ...[0x90, 0x90], // jz", "A thread gives up a lock that it does not hold."],
    ["    0x34000080, // cbz", "    0xd503201f, // cbz", "On arm64, too."],
  ]),
  ...inFile("src/python/start_interpreter.ts", workers, [
    [
      "    if (ffiPort().isWorker) giveUpLockAtEnd(opened.handle);\n",
      "",
      "A Worker that is ended in a call keeps the lock for ever (Bun).",
    ],
  ]),
  ...inFile("src/python/prelude_arrow.ts", arrow, [
    [
      "        if child.struct.release or counters.is_over(child.counter): end(child.counter)\n",
      "        pass\n",
      "Children are never released with their parent.",
    ],
    [
      "if child.struct.release or counters.is_over(child.counter): end",
      "if True: end",
      "A child that was moved out ends with its parent.",
    ],
    ["    if one.release: deleter(one.release)(address)\n", "", "What nobody took out of a capsule is kept."],
    [
      "    if one.release: deleter(one.release)(address)\n",
      "    deleter(one.release)(address)\n",
      "What was taken out of a capsule is released in it too, at NULL.",
    ],
    [
      "        for kind, address in (ArrowSchema, self.schema), (ArrowArray, self.array):\n",
      "        for kind, address in ((ArrowArray, self.array),):\n",
      "Schemas are never released.",
    ],
    [
      "    if unknown: raise NotImplementedError",
      "    if False: raise NotImplementedError",
      "What a consumer asks for is left aside without a word.",
    ],
    [
      "        check_request(requested_schema, self.arrow_schema)\n        one = self.arrow_array()\n        if one",
      "        one = self.arrow_array()\n        if one",
      "A consumer gets numbers where it wants texts.",
    ],
    [
      "        check_request(requested_schema, self.arrow_schema)\n        one = self.arrow_array()\n        return",
      "        one = self.arrow_array()\n        return",
      "A consumer gets numbers where it wants texts.",
    ],
    ["        check_request(requested, self.schema)\n", "", "A consumer gets numbers where it wants texts."],
    [
      "    finally: deleter(ours.release)(ctypes.addressof(ours))\n",
      "    finally: pass\n",
      "A schema that was compared is never released.",
    ],
    [" or ours.n_children != wanted.n_children", "", "Children that are not there are read."],
    [
      "        if self.stream is not None: deleter(self.stream.release)(ctypes.addressof(self.stream))\n",
      "        pass\n",
      "A stream that nobody reads is never released.",
    ],
    [
      "        stream, self.stream = self.stream, None\n",
      "        stream = self.stream\n",
      "A stream is handed over twice.",
    ],
    [
      '    address = array.interface["data"][0] if counts[-1] else None\n',
      "    address = None\n",
      "Numbers go out without their elements.",
    ],
  ]),
  ...inFile("src/python/prelude_counters.ts", [...arrays, ...arrow], [
    ["        self.free.append(number)\n", "", "Each array that is lent takes another counter."],
    [
      "        ctypes.c_int32.from_address(address).value = 0\n",
      "",
      "What is lent next is let go of at once, under its consumer.",
    ],
  ]),
  ...inFile("src/python/prelude.ts", ["tests/python/offered_exchange_api_test.ts"], [
    [
      "    while look_once(): pass",
      "    look_once()",
      "What the library has held that somebody has let go of is kept until somebody looks again.",
    ],
  ]),
  ...inFile("src/python/prelude.ts", arrays, [
    [
      "            end(counter)\n",
      "            counters.numbers.pop(counter)\n",
      "What consumers have released is kept for ever.",
    ],
    [
      "        if not versioned and ctypes.c_uint64.from_address(self.tensor + 24).value & PADDED:\n",
      "        if False:\n",
      "A consumer takes elements of four bits that have a byte each for packed ones.",
    ],
  ]),
  ...inFile("src/python/prelude_copy.ts", ["tests/python/copy_test.ts"], [
    [
      "        try: yield\n        finally: driver.exchange_mode(ctypes.byref(mode))\n",
      "        yield\n",
      "After a copy the thread may spoil captures.",
    ],
    [
      "            if not self.address: driver.release(number)\n",
      "            pass\n",
      "A context is kept for no memory.",
    ],
    ["        finally: driver.release(self.number)\n", "        finally: pass\n", "A context is kept for ever."],
    [" and not layout.overlaps():", ":", "What is written to one element of a copy is written to others."],
    [
      "            if step <= reach: return True\n",
      "",
      "What is written to one element of a copy is written to others.",
    ],
    ["made.address - layout.first, layout.steps", "made.address, layout.steps", "A copy is read beside its elements."],
    ["lowest, span, home, True)", "lowest, span, home)", "A copy is read before it is there."],
    [
      "    transfer(context, made.address, staged.address, layout.size, home, True)",
      "    transfer(context, made.address, staged.address, layout.size, home)",
      "Bytes are freed that the driver still copies.",
    ],
    [
      "    if memory and is_on_device and stream != -1 and consumer != home: order(array.context, home, consumer)\n",
      "",
      "A consumer reads a copy before it is made.",
    ],
    [
      "counters.keep((struct, axes, memory))",
      "counters.keep((struct, memory))",
      "A copy's shape is freed under its consumer.",
    ],
    [
      "COPIED | layout.padded",
      "COPIED",
      "A consumer takes elements of four bits that have a byte each for packed ones.",
    ],
  ]),
  ...inFile("src/python/prelude_table.ts", ["tests/python/offered_exchange_api_test.ts"], [
    [
      "        if own: deleter(own)(self.tensor)\n",
      "        pass\n",
      "A tensor that came by the table is never released.",
    ],
    [
      "        if kind != 1 and (kind != 2 or number not in contexts):\n",
      "        if False:\n",
      "Memory of a device that nobody here knows is taken.",
    ],
    [
      "    if kind != 1 and not is_on_device: raise",
      "    if False: raise",
      "Memory of the host is given out for a device's.",
    ],
    ["    if min(extents, default=0) < 0: raise", "    if False: raise", "Arrays of negative size are allocated."],
  ]),
  ...inFile("src/python/prelude_table.ts", ["tests/python/current_work_streams_test.ts"], [
    [
      "        array.order(ordered)\n",
      "        array.order(1)\n",
      "A consumer is ordered on a stream that it does not use.",
    ],
    [
      "        return None if kind == 1 else work_stream(number)\n",
      "        return None if kind == 1 else 1\n",
      "What a consumer has made is read before it is.",
    ],
  ]),
  ...inFile("src/python/current_work_streams.ts", ["tests/python/current_work_streams_test.ts"], [
    [
      "  orderBack(consumerStream(device, before), following);\n",
      "",
      "What was made on the stream before is read before it is.",
    ],
    [
      "      if (!isCapturing(device.driver)) orderBack(stream, device.defaultStream);\n",
      "",
      "What was made on a closed stream is read before it is.",
    ],
    ["      Atomics.store(handles, ordinal, CU_STREAM_LEGACY);\n", "", "A stream is named that is gone."],
    [" && isLasting(stream)", "", "A stream is named that somebody else may destroy."],
    [
      "      if (handles[ordinal] !== handle) return; // another one was named since\n",
      "",
      "Closing a stream ends the naming of another.",
    ],
    ["  if (isReal(stream.device)) change", "  change", "A stream is named that the driver has never heard of."],
  ]),
  ...inFile("src/python/dlpack_exchange_api.ts", arrays, [
    ["  if (maskedAs.every(has)) {\n", "  if (false) {\n", "The mask of an array is lost."],
  ]),
  ...inFile("src/python/interpreter.ts", ["tests/python/values_test.ts", ...arrays], [
    [
      "        this.#depth--;\n        PyGILState_Release(state);\n",
      "        this.#depth--;\n",
      "Python's threads wait for ever.",
    ],
    [
      "      if (this.#dropped.length > 0) this.release(...this.#dropped.splice(0));\n",
      "",
      "What the collector has found is never given back to Python.",
    ],
    [
      '    if (this.hasLent) this.drop(this.callHelper("look", []));\n',
      "",
      "What Python's consumers have released is kept.",
    ],
  ]),
  ...inFile("src/python/interpreter.ts", objects, [
    ["    if (keywords !== 0n) PyList_Append(given, keywords);\n", "", "Arguments by name are those of another call."],
    [
      "    if (this.api.errors.PyErr_Occurred() === 0n) {\n",
      "    if (false) {\n",
      "A call that fails without an exception ends the process.",
    ],
    [
      "    this.#int.value = -1;",
      "    this.#int.value = 0;",
      "A mark at the start of a text is taken for the order of its bytes.",
    ],
    [
      "      for (const kept of this.#names.values()) this.drop(kept);\n",
      "",
      "Names of attributes are kept for ever.",
    ],
    ["      this.#names.clear();\n", "", "An attribute is looked for by a name that Python has freed."],
    ["    this.drop(encoded);\n", "", "Texts with half a surrogate pair are never freed."],
    [
      "    if (value.isWellFormed()) {\n",
      "    if (true) {\n",
      "Half a surrogate pair goes to Python as another character.",
    ],
    [
      "      if (!(error instanceof PythonError)) throw error;\n      return `<",
      "      throw error;\n      return `<",
      "An error about an object that cannot say what it is says something else.",
    ],
    ["    if (start !== 0n) return", "    if (true) return", "A file name that is no UTF-8 is read at address 0."],
    ["    this.drop(digits);\n", "", "The digits of large integers are never freed."],
    [
      "      this.drop(tuple);\n      if (keywords !== 0n) this.drop(keywords);\n    }\n  }\n\n  /**\n",
      "    }\n  }\n\n  /**\n",
      "Arguments are never freed.",
    ],
  ]),
  ...inFile("src/python/object.ts", ["tests/python/values_test.ts", ...arrays], [
    [
      '    if (this.#isClosed) throw new TypeError("Cannot use a closed PyObject");\n',
      "",
      "An object is used that Python has freed.",
    ],
    [
      "    forgotten.register(this, { python, object }, this);\n  }\n\n  /** The object; borrowed. */\n",
      "  }\n\n  /** The object; borrowed. */\n",
      "What is dropped is never given back to Python.",
    ],
    [
      "    this.#isClosed = true;\n    forgotten.unregister(this);\n",
      "    this.#isClosed = true;\n",
      "A reference that was closed is given up again.",
    ],
    [
      "    if (this.#isClosed) return;\n    this.#isClosed",
      "    this.#isClosed",
      "A reference that was closed is given up again.",
    ],
  ]),
  ...inFile("src/python/object.ts", objects, [
    ["    handle.endCall();\n", "", "A method that was looked up for a call keeps its object."],
    ["    if (owner.isClosed) return; //", "    //", "A method of a closed object is looked up in it."],
    [
      "    if (functionOf(python, object, owner.object) !== this.#function) {\n",
      "    if (false) {\n",
      "Who has kept a method calls another one.",
    ],
    ["    this.#function = functionOf(", "    functionOf(", "What is kept and called is never the same method again."],
    [
      "    forgotten.unregister(this);\n    this.python.drop(this.#object);\n",
      "    this.python.drop(this.#object);\n",
      "A method that was called is given up again when it is collected.",
    ],
    [
      "return PyMethod_Self(object) === self ? PyMethod_Function(object) : 0n;",
      "return PyMethod_Function(object);",
      "A method of another object is looked up where it was found.",
    ],
    [
      "const isFramed = handle.looksAtFrame || isNamed || args.some(isPyObject);",
      "const isFramed = handle.looksAtFrame;",
      "What a function in C calls finds no frame.",
    ],
    ['  if (!python.isExactly(object, "builtin_function")) return true;\n', "", "Python's functions find no frame."],
    [
      'self === python.helper("builtins") || self === python.helper("sys")',
      'self === python.helper("builtins")',
      "Without it sys._getframe finds no frame.",
    ],
    ["    if (isMapping) found =", "    if (false) found =", "To ask a dict for a key makes an item of it."],
    [
      "    errors.PyErr_Clear();\n    python.drop(key);\n",
      "    python.drop(key);\n",
      "What is not there makes the next call fail.",
    ],
    ["      if (found) python.drop(item);\n", "", "Items that are asked for are never freed."],
    ["if (Object.hasOwn(members, key)", "if (key in members", "Every object has a constructor."],
    ["    defineProperty: () => false,\n", "", "A property is defined beside Python's object, and nobody sees it."],
    ["    preventExtensions: () => false,\n", "", "An object is frozen that is not."],
    ['  if (!key.startsWith("$")) return key;\n', "  return key;\n", "A name that nobody can read is set."],
    [
      'handle.isClosed ? "PyObject (closed)" : ',
      "",
      "A closed object cannot be printed.",
    ],
    [
      "if (error instanceof PythonError && mayMistake.has(error.type)) ",
      "if (error instanceof PythonError) ",
      "Every error after a plain object speaks of arguments by name.",
    ],
    [
      "  python.drop(key);\n  return python.check(found);\n",
      "  return python.check(found);\n",
      "Keys are never freed.",
    ],
    ["    python.drop(valueObject);\n", "", "What is set as an item is never freed."],
    ["    python.drop(made);\n", "", "What is set as an attribute is never freed."],
    ["    iterator.close();\n", "", "Iterators are kept until they are collected."],
    [
      "isNamed ? [...args.slice(0, -1), { ...last.values }] : args",
      "isNamed ? [...args.slice(0, -1)] : args",
      "Arguments by name are lost.",
    ],
  ]),
  ...inFile("src/python/values.ts", ["tests/python/values_test.ts", ...arrays], [
    [
      "      made.forEach((object) => this.#python.drop(object));\n",
      "",
      "What goes with a value that is refused is never freed.",
    ],
    ["    if (!isKept) python.drop(object);\n", "", "What comes back from Python is never freed there."],
    [
      "    if (this.#above.includes(container)) throw",
      "    if (false) throw",
      "A container in itself is followed without end.",
    ],
    ["      this.#above.pop();\n", "", "The same list twice is a loop."],
    [
      "    if (error instanceof PythonError || error instanceof ExchangeError) return undefined;\n",
      "",
      "A result that is more than an array is an error.",
    ],
  ]),
  ...inFile("src/python/values.ts", objects, [
    ["    if (stream.taken) stream.take(); // which throws\n", "", "A stream is given away with one that was."],
    [
      "    if (streams.has(stream)) {",
      "    if (false) {",
      "A stream that is passed twice is given away, and nobody gets it.",
    ],
    [
      "      using view = StridedMemoryView.from(value);",
      "      const view = StridedMemoryView.from(value);",
      "An array of another owner is kept until it is collected.",
    ],
    ["        objects.forEach((object) => python.drop(object));\n", "", "What is in a dict is never freed."],
    [
      "  try {\n    return new Map(copyOut(python, pairs, options) as [unknown, unknown][]); // a list of pairs, says the helper\n  } finally {\n    python.drop(pairs);\n  }\n",
      "  return new Map(copyOut(python, pairs, options) as [unknown, unknown][]);\n",
      "The pairs of a dict are never freed.",
    ],
    [
      "      python.drop(made);\n      throw error;\n",
      "      throw error;\n",
      "A dict that is refused is never freed.",
    ],
  ]),
  ...inFile("src/python/prelude.ts", ["tests/python/values_test.ts"], [
    ["line.startswith((name, kind.__qualname__))", "True", "The source of a syntax error stands for the error."],
    [
      "        except Exception: text =",
      "        except ArithmeticError: text =",
      "An exception that cannot say what it is is lost.",
    ],
  ]),
  ...inFile("src/python/prelude_frame.ts", objects, [
    [
      "    optimized_or_newlocals = 3\n",
      "    optimized_or_newlocals = 0\n",
      "What locals() gives is not what __main__ has.",
    ],
  ]),
  ...inFile("src/python/interpreter.ts", objects, [
    ["    this.drop(type.value);\n", "", "Types of exceptions are never freed."],
    ["      this.drop(traceback.value);\n", "", "Tracebacks are never freed, nor what their frames hold."],
    ["    this.drop(type);\n    return has;\n", "    return has;\n", "Types of objects are never freed."],
    ["    this.drop(type);\n    return flags;\n", "    return flags;\n", "Types of objects are never freed."],
    ["    this.drop(itsType);\n", "", "Types of objects are never freed."],
    ["    this.drop(args);\n", "", "Exceptions are never freed."],
    ["    this.drop(description);\n", "", "Descriptions of exceptions are never freed."],
  ]),
  ...inFile("src/python/object.ts", ["tests/python/values_test.ts", ...objects], [
    ['"toJSON", ', "", "An object of Python in another one cannot be written as JSON."],
    ["/^(0|-?[1-9]\\d*)$/", "/^-?(0|[1-9]\\d*)$/", "An attribute with the name -0 is an item."],
    [' || key === "toString") return true;', ") return true;", "A member that can be read is said to be missing."],
    ["return members.$item(BigInt(key));", "return members.$item(Number(key));", "A large key is another one."],
  ]),
  ...inFile("src/python/values.ts", [
    "tests/python/values_test.ts",
    "tests/python/leaks_test.ts",
  ], [
    [
      "isScalar(python, item) ? undefined : simpleValue(python, item)",
      "simpleValue(python, item)",
      "A longdouble is asked for its item without end.",
    ],
    [
      "Number.isSafeInteger(value) && !Object.is(value, -0)",
      "Number.isSafeInteger(value)",
      "Minus zero loses its sign.",
    ],
    ["    python.drop(item);\n", "", "Values of scalars are never freed."],
  ]),
  ...inFile("src/python/start_interpreter.ts", ["tests/python/open_test.ts", ...objects], [
    [
      "  if (!isSaid) unsetenv(",
      "  if (false) unsetenv(",
      "Programs that are started later are told which encoding to use.",
    ],
    ["  if (!isSaid) setenv(", "  if (false) setenv(", "File names that are no ASCII are read as if they were none."],
    [
      "problem ??= error;",
      "problem = error;",
      "What is to be installed is for the worst Python, and not for the best.",
    ],
    ["Py_InitializeEx(0)", "Py_InitializeEx(1)", "Python takes the signals."],
    ["if sys.stdout: sys.stdout.reconfigure(line_buffering=True)\n", "", "What is printed last is never written out."],
    [
      "if signal.getsignal(signal.SIGINT) is signal.default_int_handler: signal.signal(signal.SIGINT, signal.SIG_DFL)\n",
      "",
      "Ctrl-C ends nothing any more.",
    ],
  ]),
  ...inFile("src/python/prelude.ts", [...arrays, "tests/python/offered_exchange_api_test.ts"], [
    [
      "        if stream == 0: raise BufferError",
      "        if False: raise BufferError",
      "An ambiguous stream is taken for another one.",
    ],
    [
      "            elif count <= alone + 1:",
      "            elif count <= alone + 2:",
      "What a library is about to take is taken back.",
    ],
    ["    if type(value) is dict: return", "    if False: return", "An array among arguments in a dict is none."],
    [
      "    if type(value) in (list, tuple): return type(value)",
      "    if type(value) in (list, tuple): return list",
      "A tuple of arrays is a list.",
    ],
    [
      '        if copy is False: raise ValueError("cannot make an array',
      '        if False: raise ValueError("cannot make an array',
      "An array that must not be copied is.",
    ],
    ["        if device != self.device and copy is False:", "        if False:", "A copy is made that was forbidden."],
  ]),
  ...inFile("src/python/current_stream_thunk.ts", ["tests/python/current_stream_thunk_test.ts"], [
    ["...[0x73, 0x10], // jae", "...[0x77, 0x10], // ja", "The word behind the last is read."],
    ["0x54000002 | 3 << 5", "0x54000008 | 3 << 5", "The word behind the last is read."],
    [
      "    ...[0x74, called.length + succeeded.length], // jz fail\n",
      "",
      "An address that cannot be made an object is used all the same.",
    ],
    ["    ...[0x31, 0xd2], // xor edx, edx: the end of the arguments\n", "", "A call has arguments that nobody gave."],
    ["    0xd2800002, // mov x2, #0: the end of the arguments\n", "", "A call has arguments that nobody gave."],
    [
      "    ...[0x31, 0xc0], // xor eax, eax: a variadic function is told of no floating-point argument\n",
      "",
      "A variadic function reads registers that hold nothing.",
    ],
    ["    0xa90153f3, // stp x19, x20, [sp, #16]\n", "    0xd503201f,\n", "Registers of the caller are lost."],
    ["    ...[0x31, 0xc0], // xor eax, eax\n    ...end,\n", "    ...end,\n", "A call that succeeds fails."],
  ]),
  ...inFile("src/python/start_interpreter.ts", ["tests/python/open_test.ts"], [
    ["    checkAlone(opened);\n", "", "The extension modules of one Python call functions of another."],
    [
      "  if (installation !== null && !version.startsWith(`${installation.version}.`)) {\n",
      "  if (false) {\n",
      "A library is started with packages of another version.",
    ],
  ]),
  ...inFile("src/python/prelude_numpy.ts", [...numpy, ...arrow], [
    ["            if array is self: return array\n", "", "What is written into an array of ours is another array."],
    ["return array[()] if is_scalar else array.view", "return array.view", "A sum is an array without axes."],
    [
      "return self.view(numpy.ndarray).__reduce__()",
      "return super().__reduce__()",
      "An array cannot be sent to a process.",
    ],
    [
      "    return lent if said == array.__array_interface__ else None\n",
      "    return lent\n",
      "An array that was given another type goes to Arrow as what it was.",
    ],
    [
      " or lent.format is None and lent.arrow is None: raise AttributeError(name)",
      ": raise AttributeError(name)",
      "PyArrow refuses what has gaps, instead of copying it.",
    ],
    ["READ_ONLY if readonly else 0", "0", "A part of what is read-only is written to."],
    ["address if array.size else 0", "address", "An array without elements says that it is somewhere."],
    [
      "    if type.kind not in KINDS or not type.isnative or width >",
      "    if type.kind not in KINDS or width >",
      "Bytes are read in the wrong order.",
    ],
    [
      "    if any(step % width for step in array.strides):\n",
      "    if False:\n",
      "Elements between others are read at the wrong places.",
    ],
  ]),
  ...inFile("src/python/prelude_members.ts", numpy, [
    ["_initializing", "_initialized", "NumPy is used while it is being loaded."],
    ["    if layout.width % 8: raise", "    if False: raise", "Elements that share bytes are read at wrong places."],
    [
      "        if self.device[0] != 1: raise TypeError",
      "        if False: raise TypeError",
      "The host reads memory of a device, and crashes.",
    ],
    ["code is None or self.device[0] != 1:", "code is None:", "The host reads memory of a device, and crashes."],
    [
      "        start += first * step * layout.width // 8\n",
      "        start += first * step\n",
      "Other elements are read.",
    ],
    ["    if at is None: raise", "    if False: raise", "A truth value is an index."],
    [
      "    if not -extent <= at < extent: raise",
      "    if False: raise",
      "An index beyond the end counts from the other side.",
    ],
    ["flags & (READ_ONLY | PADDED)", "flags & PADDED", "A part of what is read-only is written to."],
    [
      "    def home(self): return self.whole.home\n",
      "    def home(self): return None\n",
      "A part of device memory is read before it is written.",
    ],
    ["        self.whole = whole\n", "        self.whole = None\n", "A part has no home."],
    [
      "        if self.size != 1: raise ValueError",
      "        if False: raise ValueError",
      "An array of many elements is as true as the first of them.",
    ],
  ]),
  ...inFile("src/python/prelude.ts", [...numpy, ...arrays], [
    [
      "address or NOWHERE if device[0] == 1 else address",
      "address",
      "NumPy has an array without elements somewhere else.",
    ],
    [
      "        if self.device[0] != 1 and not all(issubclass(one, Ours) for one in types): return NotImplemented\n",
      "",
      "Functions of CuPy fail for arrays of ours among its own.",
    ],
  ]),
  ...inFile(
    "src/python/prelude.ts",
    ["tests/python/malformed_test.ts", "tests/peers/torch_test.ts"],
    [
      ["    check_elements(value)\n", "", "A tensor to be negated comes with the wrong sign."],
      [
        '    for bit in "conj", "neg":\n',
        '    for bit in ("conj",):\n',
        "A tensor to be negated comes with the wrong sign.",
      ],
      [
        "    if min(array.strides or (), default=0) < 0:",
        "    if False:",
        "The process ends in torch for strides that it lacks.",
      ],
    ],
  ),
  ...inFile("src/python/export_array.ts", ["tests/python/malformed_test.ts"], [
    [
      '  python.drop(python.callHelper("check_elements", [python.share(object)]));\n',
      "",
      "An array that is described comes with the wrong sign.",
    ],
  ]),
  ...inFile("src/python/interpreter.ts", arrow, [
    [
      "return this.typeHas(object, name) && this.api.objects.PyObject_HasAttrString(object, cString(name)) === 1;",
      "return this.typeHas(object, name);",
      "What one object of a type cannot is an error, and not said to be missing.",
    ],
  ]),
  ...inFile("src/python/prelude_arrow.ts", arrow, [
    [
      '        return offer(self.schema(), b"arrow_schema")\n',
      "        return self.give(None)\n",
      "A stream is given away by who asks for its schema.",
    ],
  ]),
  ...inFile("src/python/export_arrow.ts", arrow, [
    [
      '  if (array.type.kind === "dictionary") return null;\n',
      "",
      "NumPy counts with the indices of a dictionary.",
    ],
  ]),
  ...inFile("src/python/export_array.ts", arrow, [
    [
      "text(layout.isContiguousC ? dtype.arrowFormat : null)",
      "text(dtype.arrowFormat)",
      "Elements with gaps between them go out as if they had none.",
    ],
  ]),
  ...inFile("src/python/export_array.ts", arrays, [
    [
      '  if (device === null) orderHostView(view, "giving to Python"); // whoever reads it there has no stream\n',
      "",
      "Python reads page-locked memory before it is written.",
    ],
    [
      "handle(device === null ? undefined : homeOf(stream, device)),",
      "handle(stream?.handle),",
      "Page-locked memory cannot be handed to Arrow.",
    ],
  ]),
  ...inFile("src/python/export_array.ts", ["tests/python/order_test.ts"], [
    ["  take(); // which begins it\n", "", "What Python orders first is not told to the checker."],
    [
      "      checks.get(context)?.orderedElsewhere(context, home, consumer);\n",
      "",
      "A checker is not told what Python orders.",
    ],
  ]),
  ...inFile("src/python/export_array.ts", ["tests/python/malformed_test.ts"], [
    [
      "  if (nameAt === 0n) errors.PyErr_Clear();",
      "",
      "What is no capsule leaves an exception behind, and the next call ends the process.",
    ],
  ]),
  ...inFile("src/python/arrow_capsules.ts", arrow, [
    [
      "    if (schema !== null) releaseSchema(schema.address);",
      "",
      "A schema that was asked for is never released.",
    ],
  ]),
  ...inFile("src/order/exports.ts", arrays, [
    [
      "  for (const lookElsewhere of others) lookElsewhere();\n",
      "",
      "What a thread of Python has let go of stays until JavaScript calls Python.",
    ],
  ]),
  ...inFile("src/cdata/import.ts", arrow, [
    [
      '  if (requestedSchema !== null) throw tooLate("array");\n',
      "",
      "A request that nobody can honour is left aside.",
    ],
  ]),
  ...inFile("src/arrow/stream.ts", arrow, [
    [
      '    if (opened === null && requestedSchema !== null) throw tooLate("stream");\n',
      "",
      "A request that nobody can honour is left aside.",
    ],
  ]),
  ...inFile("src/arrow/element_reader.ts", ["tests/view/arrow_test.ts"], [
    [
      "    if (start >= 0 && length >= 0) return [start, start + length];\n",
      "    return [start, start + length];\n",
      "A view of a list before the child's first element is read.",
    ],
  ]),
  ...inFile("src/cdata/location.ts", ["tests/cdata/fuzz_test.ts"], [
    [
      '  walk.pointer(address, "event");\n',
      "",
      "An event is read between addresses.",
    ],
  ]),
];
