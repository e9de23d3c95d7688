/** The protective lines of the exchange with Python's libraries. */
import { inFile, type Mutation } from "./mutation.ts";

const arrow = ["tests/exchange/python_arrow_test.ts"];
const arrays = ["tests/exchange/python_arrays_test.ts"];

/** What can be broken there. */
export const pythonMutations: readonly Mutation[] = [
  ...inFile("src/exchange/python/prelude_arrow.ts", arrow, [
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
  ...inFile("src/exchange/python/prelude_marks.ts", [...arrays, ...arrow], [
    ["        self.free.append(number)\n", "", "Each array that is lent takes another counter."],
    [
      "        ctypes.c_int32.from_address(address).value = 0\n",
      "",
      "What is lent next is let go of at once, under its consumer.",
    ],
  ]),
  ...inFile("src/exchange/python/prelude.ts", ["tests/exchange/python_offer_test.ts"], [
    [
      "    while look_once(): pass",
      "    look_once()",
      "What the library has held that somebody has let go of is kept until somebody looks again.",
    ],
  ]),
  ...inFile("src/exchange/python/prelude.ts", arrays, [
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
  ...inFile("src/exchange/python/prelude_copy.ts", ["tests/exchange/python_copy_test.ts"], [
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
  ...inFile("src/exchange/python/prelude_table.ts", ["tests/exchange/python_offer_test.ts"], [
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
  ...inFile("src/exchange/python/prelude_table.ts", ["tests/exchange/python_work_stream_test.ts"], [
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
  ...inFile("src/exchange/python/work_stream.ts", ["tests/exchange/python_work_stream_test.ts"], [
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
  ...inFile("src/exchange/python/exchange_table.ts", arrays, [
    ["  if (maskedAs.every(has)) {\n", "  if (false) {\n", "The mask of an array is lost."],
  ]),
  ...inFile("src/exchange/python/interpreter.ts", ["tests/exchange/python_values_test.ts", ...arrays], [
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
  ...inFile("src/exchange/python/object.ts", ["tests/exchange/python_values_test.ts", ...arrays], [
    [
      '    if (this.#isClosed) throw new TypeError("Cannot use a closed PyObject");\n',
      "",
      "An object is used that Python has freed.",
    ],
    ["    forgotten.register(this, { python, object }, this);\n", "", "What is dropped is never given back to Python."],
    ["    forgotten.unregister(this);\n", "", "A reference that was closed is given up again."],
    ["    if (this.#isClosed) return;\n", "", "A reference that was closed is given up again."],
  ]),
  ...inFile("src/exchange/python/values.ts", ["tests/exchange/python_values_test.ts", ...arrays], [
    [
      "    made.forEach((object) => python.drop(object));\n",
      "",
      "What goes with a value that is refused is never freed.",
    ],
    ["    if (!isKept) python.drop(object);\n", "", "What comes back from Python is never freed there."],
    ["  if (above.includes(value)) throw", "  if (false) throw", "A container in itself is followed without end."],
    [
      "    if (error instanceof PythonError || error instanceof ExchangeError) return undefined;\n",
      "",
      "A result that is more than an array is an error.",
    ],
  ]),
  ...inFile("src/exchange/python/start.ts", ["tests/exchange/python_open_test.ts"], [
    ["    checkAlone(opened);\n", "", "The extension modules of one Python call functions of another."],
    [
      "  if (installation !== null && !version.startsWith(`${installation.version}.`)) {\n",
      "  if (false) {\n",
      "A library is started with packages of another version.",
    ],
  ]),
  ...inFile("src/exchange/python/arrow_lend.ts", arrow, [
    [
      '  if (array.type.kind === "dictionary") return null;\n',
      "",
      "NumPy counts with the indices of a dictionary.",
    ],
  ]),
  ...inFile("src/exchange/python/arrays.ts", arrow, [
    [
      "text(layout.isContiguousC ? dtype.arrowFormat : null)",
      "text(dtype.arrowFormat)",
      "Elements with gaps between them go out as if they had none.",
    ],
  ]),
  ...inFile("src/exchange/python/arrays.ts", arrays, [
    [
      "  if (device === null) orderHost(view.buffer); // whoever reads it there has no stream\n",
      "",
      "Python reads page-locked memory before it is written.",
    ],
    [
      "handle(device === null ? undefined : homeOf(stream, device)),",
      "handle(stream?.handle),",
      "Page-locked memory cannot be handed to Arrow.",
    ],
  ]),
  ...inFile("src/exchange/python/arrays.ts", ["tests/exchange/python_order_test.ts"], [
    ["  take(); // which begins it\n", "", "What Python orders first is not told to the checker."],
    ["      checks.get(context)?.ordered(context, home, consumer);\n", "", "A checker is not told what Python orders."],
  ]),
  ...inFile("src/exchange/python/arrays.ts", ["tests/exchange/python_malformed_test.ts"], [
    [
      "  if (nameAt === 0n) errors.PyErr_Clear();",
      "",
      "What is no capsule leaves an exception behind, and the next call ends the process.",
    ],
  ]),
  ...inFile("src/exchange/python/arrow.ts", arrow, [
    [
      "    if (schema !== null) releaseSchema(schema.address);",
      "",
      "A schema that was asked for is never released.",
    ],
  ]),
  ...inFile("src/exchange/live_exports.ts", arrays, [
    [
      "  for (const lookElsewhere of others) lookElsewhere();\n",
      "",
      "What a thread of Python has let go of stays until JavaScript calls Python.",
    ],
  ]),
  ...inFile("src/exchange/arrow_import.ts", arrow, [
    [
      '  if (requestedSchema !== null) throw tooLate("array");\n',
      "",
      "A request that nobody can honour is left aside.",
    ],
  ]),
  ...inFile("src/exchange/arrow_stream.ts", arrow, [
    [
      '    if (opened === null && requestedSchema !== null) throw tooLate("stream");\n',
      "",
      "A request that nobody can honour is left aside.",
    ],
  ]),
  ...inFile("src/exchange/arrow_reader.ts", ["tests/exchange/arrow_view_test.ts"], [
    [
      "    if (start >= 0 && length >= 0) return [start, start + length];\n",
      "    return [start, start + length];\n",
      "A view of a list before the child's first element is read.",
    ],
  ]),
  ...inFile("src/exchange/arrow_location.ts", ["tests/exchange/arrow_fuzz_test.ts"], [
    [
      '  walk.pointer(address, "event");\n',
      "",
      "An event is read between addresses.",
    ],
  ]),
];
