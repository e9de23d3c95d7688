/** The protective lines of Arrow's part of the room `exchange`: who has an array, until when, and in what order. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const arrowMutations: readonly Mutation[] = [
  ...law("arrow/makeReader", [
    [
      "return new Set(names).size === names.length ?",
      "return true ?",
      "Fields of a struct that have one name are one.",
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
  ...law("arrow/decoder", [
    [
      'TextDecoder("utf-8", { ignoreBOM: true })',
      'TextDecoder("utf-8")',
      "A text loses the character that it begins with.",
    ],
  ]),
  ...law("arrow/decimalText", [
    ['${value === 0n ? "" : "0".repeat(-scale)}', '${"0".repeat(-scale)}', "Zero is written with many zeros."],
  ]),
  ...law("cdata/lenient", [
    [
      'const lenient = new TextDecoder("utf-8", { ignoreBOM: true });',
      'const lenient = new TextDecoder("utf-8");',
      "Two keys of metadata are one.",
    ],
  ]),
  ...law("cdata/strict", [
    [", fatal: true }", " }", "Metadata that is no text is changed on its way."],
  ]),
  ...law("cdata/equalTypes", [
    [
      "one.ordered === other.ordered &&\n      ",
      "",
      "A stream says that the words of a dictionary have an order, and they have none.",
    ],
    [
      '  if (one.kind === "map" && other.kind === "map" && one.keysSorted !== other.keysSorted) return false;\n',
      "",
      "A stream says that keys are sorted, and they are not.",
    ],
  ]),
  ...law("cdata/equalMetadata", [
    ["  if (one.size !== other.size) return false;\n", "", "A stream says what is said of some of its arrays only."],
  ]),
  ...law("arrow/ArrowStream.next", [
    [
      "this.#options,\n        ArrowArray.fromNode,\n        wasReleased,\n      )",
      "this.#options, ArrowArray.fromNode)",
      "An error says that the producer has an array that is gone.",
    ],
    ["    if (this.#closed) throw", "    if (false) throw", "A stream is used after it was released."],
    ["    if (out.array.release === 0n) return null;\n", "", "The end of a stream is taken for an array."],
    ["      releaseArray(out.$address); // it was made for this call\n", "", "An array that cannot be taken is lost."],
  ]),
  ...law("cdata/planRoot", [
    [
      "  if (!isAtStart && validity !== null && nullCount !== 0) return plan",
      "  if (false) return plan",
      "Nulls of a part are lost.",
    ],
    ["const hidden = isAtStart ? 0 : 1;", "const hidden = 0;", "Nulls of other elements are those of a part."],
    ["isAtStart ? 0 : offset, length), hidden", "0, length), hidden", "A part of a struct has its first elements."],
    ["offset === 0 || length === 0;", "offset === 0;", "What has no elements skips some."],
    ['where === "host" && !isAtStart', "false", "A part whose nulls nobody has counted is no batch in a stream."],
  ]),
  ...law("cdata/partOf", [
    ["offset: length === 0 ? 0 : offset + start", "offset: offset + start", "What has no elements skips some."],
    ['type.kind === "null" ? length : known', "known", "A column of nulls does not say how many."],
  ]),
  ...law("cdata/exportArrow", [
    ["  pollIfMany();\n", "", "Exports that nobody looks at pile up."],
    [
      "    const pins = [...memory].map((buffer) => buffer.pinned());\n",
      "    const pins: Disposable[] = [];\n",
      "Memory is freed under a consumer.",
    ],
    [
      'const event = where === "host" ? null : recordReady(memory);',
      'const event = where === "host" ? null : recordReady([]);',
      "A consumer reads before the producer has written.",
    ],
    [
      "    if (event !== null) observerOf(event.device.driver)?.closedByUser(event.handle); // its consumer destroys it\n",
      "",
      "An event that a consumer has is reported as lost.",
    ],
    [
      "    const retained = event?.device.retained();\n",
      "    const retained: Disposable | undefined = undefined as Disposable | undefined;\n",
      "The context goes, and with it the event that a consumer has.",
    ],
    ["      event?.close();\n", "", "Each export leaks an event."],
    [
      "[...memory].every((buffer) => order.add(buffer))",
      "memory !== undefined && order !== undefined",
      "Memory is freed while the consumer's work still uses it.",
    ],
    ["      for (const pin of pins) pin[Symbol.dispose]();\n", "", "Memory that was exported is never freed."],
    ["      retained?.[Symbol.dispose]();\n", "", "The context of an export is never given back."],
    [
      "    for (const one of undo) one();\n    throw error;\n",
      "    throw error;\n",
      "An export that fails keeps what it has taken.",
    ],
    [
      "    undo.push(...pins.map((pin) => () => pin[Symbol.dispose]()));\n",
      "",
      "An export that fails keeps the memory.",
    ],
    ["    if (event !== null) undo.push(() => event.close());\n", "", "An export that fails leaks its event."],
    [
      "    if (retained !== undefined) undo.push(() => retained[Symbol.dispose]());\n",
      "",
      "An export that fails keeps the context.",
    ],
  ]),
  ...law("cdata/onHost", [
    [
      "  for (const buffer of byHome.values()) hostWaits(buffer);\n",
      "",
      "A consumer on the host reads before a stream has written.",
    ],
    ["    if (!buffer.isHostAccessible) {\n", "    if (false) {\n", "A consumer on the host reads device memory."],
  ]),
  ...law("cdata/placeOf", [
    [
      "    if (place.type === one.type && place.id === one.id) continue;\n    throw",
      "    continue;\n    throw",
      "A consumer takes the memory of one device for that of another.",
    ],
  ]),
  ...law("cdata/ExportedTree.constructor", [
    ["    addExport(this);\n", "", "What is out is collected under its consumer."],
  ]),
  ...law("cdata/ExportedTree.finish", [
    ["    this.#memory.free();\n", "", "Each export leaks its structs."],
    ["    this.#owner.finish();\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("cdata/ExportedTree.order", [
    ["return this.#owner.order(order)", "return true", "Memory is freed while the consumer's work still uses it."],
  ]),
  ...law("cdata/isAlive", [
    ["(hasOwner || !hasRelease(words, node))", "hasOwner", "A child that was moved out is freed with its parent."],
    [" && (hasOwner || !hasRelease(words, node))", "", "A child that nobody has moved out keeps its parent for ever."],
    [
      "  for (const child of node.inner) if (isAlive(words, child, false)) return true;\n",
      "",
      "A child that was moved out is freed with its parent.",
    ],
  ]),
  ...law("cdata/ExportedTree.release", [
    ["this.index < 0 || ", "", "Who closes an export that is over releases what has its place now."],
    [" || !hasRelease(this.#memory.words, this.#root)", "", "What a consumer has released is released again."],
  ]),
  ...law("cdata/takeArray", [
    ["  waitFor(location, options);\n", "", "We read before the producer has written."],
    ["    imported.close(); // which releases nothing yet\n", "", "A refused import keeps its streams."],
  ]),
  ...law("cdata/returnToProducer", [
    ["  runAll([...orders, give]);\n", "  runAll([give]);\n", "Foreign memory is freed while our work still uses it."],
    [
      "  if (stream !== null && !streams.has(stream)) streams.set(stream, stream.retained());\n",
      "",
      "Foreign memory is freed while our work still uses it.",
    ],
    [
      "streams.set(stream, stream.retained());",
      "streams.set(stream, new DisposableStack());",
      "An array whose stream was closed before its last buffer is never released.",
    ],
    [
      "  for (const one of streams.values()) retained.use(one);\n",
      "",
      "Streams of imported arrays are never destroyed.",
    ],
    ["    if (moved === 0n) return;\n    releaseArray", "    releaseArray", "What was never taken is released."],
    ["  if (--shared.users > 0) return;\n", "", "The first buffer that is closed releases all."],
    ["    releaseArray(moved);\n", "", "Foreign memory is never freed."],
    ["    libc().loading.free(moved);\n", "", "Each import leaks a struct."],
  ]),
  ...law("cdata/moveOut", [
    ["  struct(ArrowArrayStruct).at(address).release = 0n;\n", "", "Two consumers release one array."],
  ]),
  ...law("cdata/takeStructs", [
    ["  releaseSchema(schema); // `field` has all that it says\n", "", "The schema of each import leaks."],
  ]),
  ...law("cdata/takeExport", [
    ["  exported.take(); // both have been moved: nothing is left to release\n", "", "Two consumers take one array."],
  ]),
  ...law("cdata/takeFromProducer", [
    ["    exported.close();\n", "", "What a refused source has made leaks."],
  ]),
  ...law("cdata/takeFreshStructs", [
    ["    releaseSchema(schema);\n    releaseArray(address);\n", "", "What a refused source has made leaks."],
    ['  new Walk("ArrowArray").pointer(address, "address");\n', "", "Structs are released that are nowhere."],
  ]),
  ...law("cdata/readLocation", [
    [
      "options.stream === undefined ? device.defaultStream : options.stream",
      "options.stream ?? null",
      "Whoever has the array next comes before what was enqueued on it.",
    ],
  ]),
  ...law("cdata/waitFor", [
    [
      "  if (stream === undefined) ready.synchronize();\n  else stream.wait(ready);\n",
      "  if (stream === undefined) ready.synchronize();\n",
      "We read before the producer has written.",
    ],
    [
      "  if (stream === undefined) ready.synchronize();\n  else stream.wait(ready);\n",
      "  stream?.wait(ready);\n",
      "We read before the producer has written.",
    ],
  ]),
  ...law("cdata/ArrowDeviceArray.constructor", [
    ["    finalizer.register(this, this.#state);\n", "", "An array that nobody takes is never released."],
  ]),
  ...law("cdata/ArrowDeviceArray.take", [
    ["    this.#state.closed = true;\n", "", "Two consumers take one array, and release it twice."],
    [
      "    this.#state.structs = null; // the collector may keep this for long\n",
      "",
      "An export that was taken is never collected, if its memory's owner knows it.",
    ],
  ]),
  ...law("cdata/ArrowDeviceArray.close", [
    ["    if (this.#state.closed) return;\n", "", "Closing twice is an error."],
  ]),
  ...law("cdata/ArrowDeviceArray.moveTo", [
    ["    struct(ArrowArrayStruct).at(taken.array).release = 0n;\n", "", "Two structs say that they own one array."],
    ["    struct(ArrowSchema).at(taken.schema).release = 0n;\n", "", "Two structs say that they own one schema."],
  ]),
  ...law("cdata/ArrowDeviceArray.checkTaken", [
    ["    if (this.#state.closed) {", "    if (false) {", "Two consumers take one array, and release it twice."],
  ]),
  ...law("arrow/ArrowStream.take", [
    ["    structOf(foreign).release = 0n;\n", "", "Two consumers release one stream."],
  ]),
  ...law("arrow/ArrowStream.close", [
    ["    if (this.#closed) return;\n", "", "A stream is released twice."],
    ["    this.#closed = true;\n", "", "A stream is released twice."],
    ["    finalizer.unregister(this);\n", "", "The collector releases a stream again."],
  ]),
  ...law("arrow/ArrowStream.constructor", [
    ["    finalizer.register(this, source, this);\n", "", "A stream that is dropped is never released."],
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
    ["    if (this.#taken) throw", "    if (false) throw", "Two consumers take one stream."],
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
];
