/** The protective lines of Arrow arrays and streams. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const arrowMutations: readonly Mutation[] = [
  ...law("arrow/ArrowArray.constructor", [
    ["    checkNode(this);\n", "", "A consumer reads behind a buffer of an array of ours."],
  ]),
  ...law("arrow/ArrowArray.isNull", [
    ["    this.#check(index);\n", "", "Elements beyond the end are read."],
  ]),
  ...law("arrow/ArrowArray.get", [
    ["    else this.#prepare();\n", "", "Elements are read before they are written."],
  ]),
  ...law("arrow/describeArray", [
    ["  if (buffers.some((buffer) => buffer.isClosed)) return `${head}, closed`;\n", "", "A closed array looks open."],
    [
      "map((place) => inShort(textOf(array.get(place))))",
      "map((place) => textOf(array.get(place)))",
      "A console is flooded by one element.",
    ],
  ]),
  ...law("arrow/ArrowArray.sliced", [
    [
      "    if (!(Number.isInteger(start) && Number.isInteger(end) && 0 <= start && start <= end && end <= this.length)) {\n",
      "    if (false) {\n",
      "A slice reaches beyond its array.",
    ],
    ["this.#nullCount === 0 ? 0 : -1", "this.#nullCount", "A slice tells of the nulls of the whole array."],
  ]),
  ...law("arrow/ArrowArray.close", [
    ["    this.#onClose?.();\n", "", "An imported array is never given back."],
  ]),
  ...law("arrow/ArrowArray.prepare", [
    ["      void view.buffer.ptr; // throws if it is closed\n", "", "A closed array gives the engine's words."],
  ]),
  ...law("arrow/decoder", [
    [
      'TextDecoder("utf-8", { ignoreBOM: true })',
      'TextDecoder("utf-8")',
      "A text loses the character that it begins with.",
    ],
  ]),
  ...law("arrow/makeReader", [
    [
      "return new Set(names).size === names.length ?",
      "return true ?",
      "Fields of a struct that have one name are one.",
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
      "Offsets that go back are not noticed.",
    ],
  ]),
  ...law("arrow/elements", [
    ["  if (end > child.length) {\n", "  if (false) {\n", "A list has elements behind the last of its child."],
  ]),
  ...law("arrow/mapReader", [
    ["    if (end > entries.length) {\n", "    if (false) {\n", "A map has entries behind the last of its child."],
  ]),
  ...law("arrow/ArrowStream.constructor", [
    ["    finalizer.register(this, source, this);\n", "", "A stream that is dropped is never released."],
  ]),
  ...law("arrow/ArrowStream.from", [
    [
      '    if (opened === null && requestedSchema !== null) throw tooLate("stream");\n',
      "",
      "A request that nobody can honour is left aside.",
    ],
    [
      '    checkPlace(options, "Cannot import an Arrow stream", fromArrowOptionNames);\n',
      "",
      "An address is read, whatever the options are.",
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
      "An error says that the producer has an array that is gone.",
    ],
    ["    if (this.#closed) throw", "    if (false) throw", "A stream is used after it was released."],
    ["    if (out.array.release === 0n) return null;\n", "", "The end of a stream is taken for an array."],
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
    ["    finalizer.register(this, stream, this);\n", "", "A stream that nobody takes is never released."],
  ]),
  ...law("arrow/ArrowStreamExport.take", [
    ["    this.#checkTaken();\n    this", "    this", "Two consumers take one stream."],
    ["    this.#taken = true;\n", "", "Two consumers take one stream."],
    ["    finalizer.unregister(this);\n", "", "The collector releases what a consumer has."],
  ]),
  ...law("arrow/ArrowStreamExport.close", [
    ["    if (this.#taken) return;\n", "", "Closing takes what a consumer has."],
  ]),
  ...law("arrow/ExportedStream.constructor", [
    ["    addExport(this);\n", "", "What is out is collected under its consumer."],
  ]),
  ...law("arrow/ExportedStream.finish", [
    [
      "    for (let at = next_array; at < end_of_arrays; at += BigInt(this.#itemBytes)) releaseArray(at);\n",
      "",
      "Arrays that a consumer has not asked for are never released.",
    ],
    [
      "    for (let at = next_schema; at < end_of_schemas; at += BigInt(schemaBytes)) releaseSchema(at);\n",
      "",
      "Schemas that a consumer has not asked for are never released.",
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
      "The first element of a run is one of the run before.",
    ],
    [
      "    if (low < ends.length) return values.get(low);\n",
      "    return values.get(low);\n",
      "An array whose runs end too early complains of an element that nobody asked for.",
    ],
  ]),
];
