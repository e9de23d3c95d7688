/** The protective lines of Arrow arrays and streams. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const arrowMutations: readonly Mutation[] = [
  ...law("arrow/ArrowStream.run", [
    [
      "      if (this.#closed) release(this.#stream);\n",
      "",
      "A stream that is closed inside its producer is never released.",
    ],
    ["    if (this.#isRunning) throw", "    if (false) throw", "A producer is asked for an array while it makes one."],
  ]),
  ...law("arrow/checkArguments", [
    ["!(array instanceof ArrowArray)", "false", "A view, in place of an array, fails with an error of the engine."],
    [
      'typeof arrow?.Vector === "function" && typeof arrow.makeData === "function"',
      "true",
      "Without the package, the error is one of the engine.",
    ],
  ]),
  ...law("arrow/partOf", [
    ["length === 0 && field !== undefined", "false", "A table without rows cannot be taken if it has a list."],
    ["chunks.length === 0 && length === 0 && ", "", "A dictionary in several chunks is taken for one without values."],
  ]),
  ...law("arrow/toData", [
    ["offset: isViews ? 0 : offset,", "offset,", "Nobody can read what the package writes of a slice of views."],
    ["isViews ? bitsFrom(bitmap, offset, length) : all(bitmap)", "all(bitmap)", "Other texts of a slice are null."],
  ]),
  ...law("arrow/ArrowArray.constructor", [
    ["    checkNode(this);\n", "", "A consumer reads past the end of one of our buffers."],
  ]),
  ...law("arrow/ArrowArray.isNull", [
    ["this.#place(index)", "index", "Elements beyond the end are read."],
  ]),
  ...law("arrow/ArrowArray.get", [
    ["    else this.#prepare();\n", "", "Elements are read before they are written."],
  ]),
  ...law("arrow/ArrowArray.child", [
    ["isWhole ? child", "true ? child", "A child of a slice has the elements of the whole."],
  ]),
  ...law("arrow/describeArray", [
    ["  if (buffers.some((buffer) => buffer.isClosed)) return `${head}, closed`;\n", "", "A closed array looks open."],
    [".map(inShort)", "", "One element floods the console."],
  ]),
  ...law("arrow/ArrowArray.sliced", [
    [
      "    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {\n",
      "    if (false) {\n",
      "A slice reaches beyond its array.",
    ],
    ["this.#nullCount === 0 ? 0 : -1", "this.#nullCount", "A slice reports the null count of the whole array."],
  ]),
  ...law("arrow/arrayAt", [
    [
      "undo.use(new DisposableStack());",
      "new DisposableStack();",
      "Copies of an array that cannot be copied whole are never freed.",
    ],
    [", onClose: () => copies.dispose() }", " }", "Copies on a device are never freed."],
    ["length, offset, knownNullCount", "length, knownNullCount", "A slice begins at the first element elsewhere."],
    ["i === last ? view.copy() : ", "", "The sizes that the host reads are on a device."],
    ["dictionary === null ? null : new ArrowArray(at(dictionary))", "dictionary", "Dictionaries stay where they were."],
  ]),
  ...law("arrow/ArrowArray.close", [
    ["    this.#onClose();\n", "", "An imported array is never released."],
  ]),
  ...law("arrow/ArrowArray.checkOpen", [
    ["    if (this.#isClosed) throw", "    if (false) throw", "An array of nulls is read although it is closed."],
  ]),
  ...law("arrow/ArrowArray.prepare", [
    ["      void view.buffer.ptr; // throws if it is closed\n", "", "A closed array gives the engine's error."],
  ]),
  ...law("arrow/makeReader", [
    [
      "return new Set(names).size === names.length ?",
      "return true ?",
      "Struct fields with the same name become one.",
    ],
  ]),
  ...law("arrow/decimalText", [
    ['${value === 0n ? "" : "0".repeat(-scale)}', '${"0".repeat(-scale)}', "Zero is written with many zeros."],
  ]),
  ...law("arrow/viewedRanges", [
    [
      "    if (start >= 0 && length >= 0) return [start, start + length];\n",
      "    return [start, start + length];\n",
      "A view of a list before the child's first element is read.",
    ],
  ]),
  ...law("arrow/ranges", [
    [
      "    if (start >= 0 && start <= end) return [start, end];\n",
      "    return [start, end];\n",
      "Decreasing offsets are not noticed.",
    ],
  ]),
  ...law("arrow/elements", [
    ["  if (end > child.length) {\n", "  if (false) {\n", "A list has elements past the end of its child."],
  ]),
  ...law("arrow/checkCount", [
    ["  if (count < 2 ** 32) return;\n", "  return;\n", "Very many values of Arrow are an engine's error."],
  ]),
  ...law("arrow/mapReader", [
    ["    if (end > entries.length) {\n", "    if (false) {\n", "A map has entries past the end of its child."],
  ]),
  ...law("arrow/ArrowStream.constructor", [
    ["    finalizer.register(this, source, this);\n", "", "A stream that is dropped is never released."],
  ]),
  ...law("arrow/ArrowStream.from", [
    [
      '    if (opened === null && requestedSchema !== null) throw tooLate("stream");\n',
      "",
      "A request that cannot be honoured is ignored.",
    ],
    [
      '    checkPlace(options, "Cannot import an Arrow stream", fromArrowOptionNames);\n',
      "",
      "An address is imported, whatever the options are.",
    ],
    [
      "      source.take();",
      "     ",
      "An export that was imported can be taken by another consumer.",
    ],
  ]),
  ...law("arrow/ArrowStream.take", [
    ["    structOf(foreign).release = 0n;\n", "", "Two consumers release one stream."],
  ]),
  ...law("arrow/ArrowStream.next", [
    [
      "this.#options,\n        arrayOf,\n        wasReleased,\n      )",
      "this.#options, arrayOf)",
      "An error says that the producer still has an array that is gone.",
    ],
    ["    if (this.#closed) throw", "    if (false) throw", "A stream is used after it was released."],
    ["    if (out.array.release === 0n) return null;\n", "", "The end of a stream is mistaken for an array."],
    ["      releaseArray(out.$address); // made for this call only\n", "", "An array that cannot be taken is lost."],
  ]),
  ...law("arrow/ArrowStream.close", [
    ["    if (this.#closed) return;\n", "", "A stream is released twice."],
    ["    this.#closed = true;\n", "", "A stream is released twice."],
    ["    finalizer.unregister(this);\n", "", "The collector releases a stream again."],
  ]),
  ...law("arrow/release", [
    ["  callRelease(structOf(source).release, source.address);\n", "", "A stream is never released."],
    ["  libc().loading.free(source.address);\n", "", "Each stream leaks a struct."],
  ]),
  ...law("arrow/schemaOf", [
    ["    releaseSchema(schema.$address);\n", "", "The schema of each stream leaks."],
  ]),
  ...law("arrow/ArrowStreamExport.constructor", [
    ["    finalizer.register(this, stream, this);\n", "", "A stream that is never taken is never released."],
  ]),
  ...law("arrow/ArrowStreamExport.take", [
    ["    this.#checkTaken();\n    this", "    this", "Two consumers take one stream."],
    ["    this.#taken = true;\n", "", "Two consumers take one stream."],
    ["    finalizer.unregister(this);\n", "", "The collector releases a stream that a consumer owns."],
  ]),
  ...law("arrow/ArrowStreamExport.close", [
    ["    if (this.#taken) return;\n", "", "Closing releases a stream that a consumer owns."],
  ]),
  ...law("arrow/ExportedStream.constructor", [
    ["    addExport(this);\n", "", "An export is collected while its consumer still uses it."],
  ]),
  ...law("arrow/ExportedStream.finish", [
    [
      "    for (let at = next_array; at < end_of_arrays; at += BigInt(this.#itemBytes)) releaseArray(at);\n",
      "",
      "Arrays that a consumer has not requested are never released.",
    ],
    [
      "    for (let at = next_schema; at < end_of_schemas; at += BigInt(schemaBytes)) releaseSchema(at);\n",
      "",
      "Schemas that a consumer has not requested are never released.",
    ],
    ["    this.#block.free();\n", "", "Each stream leaks its block."],
  ]),
  ...law("arrow/exportArrowStream", [
    ["    for (const one of made) one.close();\n", "", "A refused stream keeps the arrays that it has exported."],
  ]),
  ...law("arrow/writeStream", [
    ["    releaseSchema(schema); // the stream has its own\n", "", "The schema of each array leaks."],
  ]),
  ...law("arrow/runReader", [
    [
      "Number(ends.get(middle)) > at",
      "Number(ends.get(middle)) >= at",
      "The first element of a run gets the value of the run before.",
    ],
    [
      "    if (low < ends.length) return values.get(low);\n",
      "    return values.get(low);\n",
      "An array whose runs end too early reports an element that was not requested.",
    ],
  ]),
];
