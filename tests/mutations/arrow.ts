/** The protective lines of Arrow's part of the room `exchange`: who has an array, until when, and in what order. */
import { inFile, type Mutation } from "./mutation.ts";

const host = "tests/dlpack/host_consumers_test.ts";
const refusals = "tests/order/refusals_test.ts";
const upkeep = "tests/order/reclaim_test.ts";
const programs = "tests/order/programs_test.ts";
const releases = "tests/arrow/release_test.ts";
const streams = "tests/arrow/stream_test.ts";

/** What can be broken there. */
export const arrowMutations: readonly Mutation[] = [
  ...inFile("src/arrow/element_reader.ts", ["tests/arrow/array_test.ts", "tests/view/arrow_test.ts"], [
    [
      "return new Set(names).size === names.length ?",
      "return true ?",
      "Fields of a struct that have one name are one.",
    ],
    [
      "    if (start >= 0 && start <= end) return [start, end];\n",
      "    return [start, end];\n",
      "Offsets that go back are not noticed.",
    ],
    ["  if (end > child.length) {\n", "  if (false) {\n", "A list has elements behind the last of its child."],
    ["    if (end > entries.length) {\n", "    if (false) {\n", "A map has entries behind the last of its child."],
    [
      'TextDecoder("utf-8", { ignoreBOM: true })',
      'TextDecoder("utf-8")',
      "A text loses the character that it begins with.",
    ],
    ['${value === 0n ? "" : "0".repeat(-scale)}', '${"0".repeat(-scale)}', "Zero is written with many zeros."],
  ]),
  ...inFile("src/cdata/metadata.ts", ["tests/arrow/array_test.ts"], [
    [
      'const lenient = new TextDecoder("utf-8", { ignoreBOM: true });',
      'const lenient = new TextDecoder("utf-8");',
      "Two keys of metadata are one.",
    ],
    [", fatal: true }", " }", "Metadata that is no text is changed on its way."],
  ]),
  ...inFile("src/cdata/field.ts", [streams, "tests/python/arrow_capsules_test.ts"], [
    [
      "one.ordered === other.ordered &&\n      ",
      "",
      "A stream says that the words of a dictionary have an order, and they have none.",
    ],
    ["  if (one.size !== other.size) return false;\n", "", "A stream says what is said of some of its arrays only."],
    [
      '  if (one.kind === "map" && other.kind === "map" && one.keysSorted !== other.keysSorted) return false;\n',
      "",
      "A stream says that keys are sorted, and they are not.",
    ],
  ]),
  ...inFile("src/arrow/stream.ts", [streams], [
    [
      "this.#options,\n        ArrowArray.fromNode,\n        wasReleased,\n      )",
      "this.#options, ArrowArray.fromNode)",
      "An error says that the producer has an array that is gone.",
    ],
  ]),
  ...inFile("src/cdata/export.ts", ["tests/arrow/array_test.ts"], [
    [
      "  if (!isAtStart && validity !== null && nullCount !== 0) return plan",
      "  if (false) return plan",
      "Nulls of a part are lost.",
    ],
    ["const hidden = isAtStart ? 0 : 1;", "const hidden = 0;", "Nulls of other elements are those of a part."],
    ["isAtStart ? 0 : offset, length), hidden", "0, length), hidden", "A part of a struct has its first elements."],
    ["offset: length === 0 ? 0 : offset + start", "offset: offset + start", "What has no elements skips some."],
    ["offset === 0 || length === 0;", "offset === 0;", "What has no elements skips some."],
    ['type.kind === "null" ? length : known', "known", "A column of nulls does not say how many."],
  ]),
  ...inFile("src/cdata/export.ts", ["tests/python/arrow_capsules_test.ts"], [
    ['where === "host" && !isAtStart', "false", "A part whose nulls nobody has counted is no batch in a stream."],
  ]),
  ...inFile("src/cdata/export.ts", [
    refusals,
    upkeep,
    host,
    "tests/sim/behaviours_test.ts",
    releases,
    "tests/arrow/array_test.ts",
    programs,
  ], [
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
    [
      "  for (const buffer of byHome.values()) hostWaits(buffer);\n",
      "",
      "A consumer on the host reads before a stream has written.",
    ],
    ["    if (!buffer.isHostAccessible) {\n", "    if (false) {\n", "A consumer on the host reads device memory."],
    [
      "    if (place.type === one.type && place.id === one.id) continue;\n    throw",
      "    continue;\n    throw",
      "A consumer takes the memory of one device for that of another.",
    ],
  ]),
  ...inFile("src/cdata/exported_tree.ts", [releases, upkeep, programs], [
    ["    addExport(this);\n", "", "What is out is collected under its consumer."],
    ["    this.#memory.free();\n", "", "Each export leaks its structs."],
    ["    this.#owner.finish();\n", "", "Memory that was exported is never freed."],
    ["return this.#owner.order(order)", "return true", "Memory is freed while the consumer's work still uses it."],
    ["(hasOwner || !hasRelease(words, node))", "hasOwner", "A child that was moved out is freed with its parent."],
    [" && (hasOwner || !hasRelease(words, node))", "", "A child that nobody has moved out keeps its parent for ever."],
    ["this.index < 0 || ", "", "Who closes an export that is over releases what has its place now."],
    [" || !hasRelease(this.#memory.words, this.#root)", "", "What a consumer has released is released again."],
    [
      "  for (const child of node.inner) if (isAlive(words, child, false)) return true;\n",
      "",
      "A child that was moved out is freed with its parent.",
    ],
  ]),
  ...inFile("src/cdata/import.ts", [
    refusals,
    upkeep,
    releases,
    "tests/view/arrow_test.ts",
    "tests/arrow/array_test.ts",
    "tests/device/late_streams_test.ts",
    programs,
  ], [
    ["  waitFor(location, options);\n", "", "We read before the producer has written."],
    [
      "  runAll([...orders, give]);\n",
      "  runAll([give]);\n",
      "Foreign memory is freed while our work still uses it.",
    ],
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
    [
      "    if (moved === 0n) return;\n    releaseArray",
      "    releaseArray",
      "What was never taken is released.",
    ],
    [
      "  if (--shared.users > 0) return;\n",
      "",
      "The first buffer that is closed releases all.",
    ],
    ["    releaseArray(moved);\n", "", "Foreign memory is never freed."],
    ["    libc().loading.free(moved);\n", "", "Each import leaks a struct."],
    ["  struct(ArrowArrayStruct).at(address).release = 0n;\n", "", "Two consumers release one array."],
    ["  releaseSchema(schema); // `field` has all that it says\n", "", "The schema of each import leaks."],
    [
      "  exported.take(); // both have been moved: nothing is left to release\n",
      "",
      "Two consumers take one array.",
    ],
    ["    exported.close();\n", "", "What a refused source has made leaks."],
    ["    releaseSchema(schema);\n    releaseArray(address);\n", "", "What a refused source has made leaks."],
    [
      '  new Walk("ArrowArray").pointer(address, "address");\n',
      "",
      "Structs are released that are nowhere.",
    ],
    ["    imported.close(); // which releases nothing yet\n", "", "A refused import keeps its streams."],
  ]),
  ...inFile("src/cdata/location.ts", ["tests/order/default_home_test.ts"], [
    [
      "options.stream === undefined ? device.defaultStream : options.stream",
      "options.stream ?? null",
      "Whoever has the array next comes before what was enqueued on it.",
    ],
  ]),
  ...inFile("src/cdata/location.ts", ["tests/arrow/array_test.ts", programs], [
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
  ...inFile("src/cdata/device_array.ts", [releases, upkeep, "tests/arrow/array_test.ts", programs], [
    ["    finalizer.register(this, this.#state);\n", "", "An array that nobody takes is never released."],
    ["    this.#state.closed = true;\n", "", "Two consumers take one array, and release it twice."],
    ["    if (this.#state.closed) return;\n", "", "Closing twice is an error."],
    [
      "    this.#state.structs = null; // the collector may keep this for long\n",
      "",
      "An export that was taken is never collected, if its memory's owner knows it.",
    ],
    [
      "    struct(ArrowArrayStruct).at(taken.array).release = 0n;\n",
      "",
      "Two structs say that they own one array.",
    ],
    ["    struct(ArrowSchema).at(taken.schema).release = 0n;\n", "", "Two structs say that they own one schema."],
    [
      "    if (this.#state.closed) {",
      "    if (false) {",
      "Two consumers take one array, and release it twice.",
    ],
  ]),
  ...inFile("src/arrow/stream.ts", [streams, upkeep, programs], [
    ["    structOf(foreign).release = 0n;\n", "", "Two consumers release one stream."],
    ["    if (this.#closed) throw", "    if (false) throw", "A stream is used after it was released."],
    ["    if (out.array.release === 0n) return null;\n", "", "The end of a stream is taken for an array."],
    [
      "      releaseArray(out.$address); // it was made for this call\n",
      "",
      "An array that cannot be taken is lost.",
    ],
    ["    if (this.#closed) return;\n", "", "A stream is released twice."],
    ["    this.#closed = true;\n", "", "A stream is released twice."],
    ["    finalizer.register(this, source, this);\n", "", "A stream that is dropped is never released."],
    ["    finalizer.unregister(this);\n", "", "The collector releases a stream again."],
    ["  callRelease(structOf(source).release, source.address);\n", "", "A stream is never released."],
    ["  libc().loading.free(source.address);\n", "", "Each stream leaks a struct."],
    ["    releaseSchema(schema.$address);\n", "", "The schema of each stream leaks."],
  ]),
  ...inFile("src/arrow/stream_export.ts", [streams, upkeep, programs], [
    ["    finalizer.register(this, stream, this);\n", "", "A stream that nobody takes is never released."],
    ["    if (this.#taken) throw", "    if (false) throw", "Two consumers take one stream."],
    ["    this.#taken = true;\n", "", "Two consumers take one stream."],
    ["    finalizer.unregister(this);\n", "", "The collector releases what a consumer has."],
    ["    if (this.#taken) return;\n", "", "Closing takes what a consumer has."],
    ["    addExport(this);\n", "", "What is out is collected under its consumer."],
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
    ["    for (const one of made) one.close();\n", "", "A refused stream keeps the arrays that it has exported."],
    ["    releaseSchema(schema); // the stream has its own\n", "", "The schema of each array leaks."],
  ]),
];
