/**
 * The protective lines of Arrow's C structs: who has them, until when, and what is checked before they are believed.
 */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const cdataMutations: readonly Mutation[] = [
  ...law("cdata/readArray", [
    ["  walk.enter(address, depth);\n", "", "A struct that contains itself is followed without end."],
    ["  if (raw.release === 0n) throw", "  if (false) throw", "What was released is taken."],
    ["  if (!Number.isSafeInteger(start + length)) {\n", "  if (false) {\n", "An end that is no number is believed."],
    ["  if ((values === null) !== (raw.dictionary === 0n)) {\n", "  if (false) {\n", "A dictionary at NULL is read."],
  ]),
  ...law("cdata/readNullCount", [
    ["value >= -1n && value <= length", "true", "More nulls than elements are believed."],
  ]),
  ...law("cdata/readBuffers", [
    [
      "  if (hasViews(type) ? n < expected : n !== expected) {\n",
      "  if (false) {\n",
      "Buffers that are not there are read.",
    ],
  ]),
  ...law("cdata/readChildren", [
    ["  if (n !== fields.length) throw", "  if (false) throw", "Children that are not there are read."],
  ]),
  ...law("cdata/probe", [
    ["    if (pointer === 0n) throw", "    if (false) throw", "Offsets at NULL are read."],
  ]),
  ...law("cdata/makeBuffer", [
    ["  if (ptr === 0n) throw", "  if (false) throw", "Elements at NULL are believed."],
    ["  if (ptr + BigInt(size) > 1n << 64n) {\n", "  if (false) {\n", "Memory beyond the end of memory is believed."],
  ]),
  ...law("cdata/hostBytes", [
    ["  hostWaitsToRead(array, call);\n", "", "Offsets and nulls are read before they are written."],
  ]),
  ...law("cdata/offsetBytes", [
    ["(end + 1) * (bits / 8)", "end * (bits / 8)", "The last offset is read behind its buffer."],
  ]),
  ...law("cdata/lastOffset", [
    ["  if (first < 0n || last < first) {\n", "  if (false) {\n", "Offsets that decrease are believed."],
  ]),
  ...law("cdata/safe", [
    [
      "  if (Number.isSafeInteger(value) && value >= 0) return value;\n",
      "  return value;\n",
      "Sizes that are no numbers are believed.",
    ],
  ]),
  ...law("cdata/ArrowDeviceArray.constructor", [
    ["    finalizer.register(this, this.#state);\n", "", "An array that nobody takes is never released."],
  ]),
  ...law("cdata/ArrowDeviceArray.take", [
    ["    this.#state.closed = true;\n", "", "Two consumers take one array, and release it twice."],
    [
      "    this.#state.structs = null; // the garbage collector may keep this for long\n",
      "",
      "An export that was taken is never collected, if its memory's owner knows it.",
    ],
    [", deviceArray: array.address }", " }", "Memory of a device is taken for the host's."],
  ]),
  ...law("cdata/ArrowDeviceArray.moveTo", [
    ["    struct(ArrowArrayStruct).at(taken.array).release = 0n;\n", "", "Two structs say that they own one array."],
    ["    struct(ArrowSchema).at(taken.schema).release = 0n;\n", "", "Two structs say that they own one schema."],
  ]),
  ...law("cdata/ArrowDeviceArray.close", [
    ["    if (this.#state.closed) return;\n", "", "Closing twice is an error."],
  ]),
  ...law("cdata/ArrowDeviceArray.checkTaken", [
    ["    if (this.#state.closed) {", "    if (false) {", "Two consumers take one array, and release it twice."],
  ]),
  ...law("cdata/exportArrow", [
    ["  pollIfMany();\n", "", "Exports that nobody looks at pile up."],
    [
      "  for (const buffer of memory) held.use(buffer.pinned());\n",
      "",
      "Memory is freed under a consumer.",
    ],
    [
      'const event = where === "host" ? null : recordReady(memory);',
      'const event = where === "host" ? null : recordReady([]);',
      "A consumer reads before the producer has written.",
    ],
    [
      "    observerOf(event.device.driver)?.closedByUser(event.handle); // its consumer destroys it\n",
      "",
      "An event that a consumer has is reported as lost.",
    ],
    [
      "    held.use(event.device.retained());\n",
      "",
      "The context goes, and with it the event that a consumer has.",
    ],
    ["    held.use(own.move()); // disposed of first\n", "    own.move();\n", "Each export leaks an event."],
    [
      "[...memory].every((buffer) => order.add(buffer))",
      "memory !== undefined && order !== undefined",
      "Memory is freed while the consumer's work still uses it.",
    ],
    ["const finish = () => held.dispose();", "const finish = () => {};", "Memory that was exported is never freed."],
    ["  using undo =", "  const undo =", "An export that fails keeps what it has taken."],
    [
      "undo.use(new DisposableStack())",
      "new DisposableStack()",
      "An export that fails keeps the memory, its event and the context.",
    ],
    ["  undo.move();\n", "", "An export is released before its consumer has it."],
    ["  if (ending.length > 0) {\n", "  if (false) {\n", "Buffers of Arrow arrays are lent in place."],
    [
      'event = where === "host" ? null : recordReady(memory)',
      'event = where === "host" ? null : recordReady([...memory].slice(-1))',
      "Only one home's work is marked.",
    ],
  ]),
  ...law("cdata/partOf", [
    ["offset: length === 0 ? 0 : offset + start", "offset: offset + start", "What has no elements skips some."],
    ['type.kind === "null" ? length : known', "known", "A column of nulls does not say how many."],
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
  ...law("cdata/placeOf", [
    [
      "    if (place.type === one.type && place.id === one.id) continue;\n    throw",
      "    continue;\n    throw",
      "A consumer takes the memory of one device for that of another.",
    ],
  ]),
  ...law("cdata/onHost", [
    [
      "  for (const buffer of byHome.values()) hostWaits(buffer);\n",
      "",
      "A consumer on the host reads before a stream has written.",
    ],
    ["    if (!buffer.isHostAccessible) {\n", "    if (false) {\n", "A consumer on the host reads device memory."],
    [
      "    byHome.set(buffer.stream, buffer);\n",
      "    byHome.set(null, buffer);\n",
      "One home is waited for of several.",
    ],
  ]),
  ...law("cdata/exportNumbers", [
    ["  if (buffer.endsWithWorker) return", "  if (false) return", "Arrow is lent in place."],
    ["  if (!layout.isContiguousC || ", "  if (", "Elements out of order go out as if they were in it."],
  ]),
  ...law("cdata/NumbersExport.constructor", [
    ["    buffer.pin();\n", "", "Memory is freed under a consumer."],
    [
      "      pool.free(this.#slot);\n      throw",
      "      throw",
      "An export that the driver refuses leaks its structs.",
    ],
  ]),
  ...law("cdata/NumbersExport.free", [
    ["    if (--this.#trees === 0) this.#pool.free(this.#slot);\n", "", "Each export leaks its structs."],
    ["--this.#trees === 0", "true", "Structs that a consumer has are another's."],
  ]),
  ...law("cdata/NumbersExport.order", [
    [
      "    return order.add(this.#buffer);\n",
      "    return true;\n",
      "Memory is freed while the consumer's work still uses it.",
    ],
  ]),
  ...law("cdata/NumbersExport.finish", [
    ["      ready.device.releaseEvent(ready);\n", "", "Each export leaks an event."],
    ["      ready.device.release();\n", "", "Each export leaks a context."],
    ["    }\n    this.#buffer.unpin();\n", "    }\n", "Memory that was exported is never freed."],
  ]),
  ...law("cdata/recordReady", [
    ["    stream.record(event);\n", "", "A consumer reads before the producer has written."],
  ]),
  ...law("cdata/ExportedTree.constructor", [
    ["    addExport(this);\n", "", "What is out is collected under its consumer."],
  ]),
  ...law("cdata/ExportedTree.release", [
    ["this.index < 0 || ", "", "Who closes an export that is over releases what has its place now."],
    [" || !hasRelease(this.#memory.words, this.#root)", "", "What a consumer has released is released again."],
  ]),
  ...law("cdata/ExportedTree.order", [
    ["return this.#owner.order(order)", "return true", "Memory is freed while the consumer's work still uses it."],
  ]),
  ...law("cdata/ExportedTree.finish", [
    ["    this.#memory.free();\n", "", "Each export leaks its structs."],
    ["    this.#owner.finish();\n", "", "Memory that was exported is never freed."],
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
  ...law("cdata/importArrow", [
    [
      '  if (requestedSchema !== null) throw tooLate("array");\n',
      "",
      "A request that nobody can honour is left aside.",
    ],
    [
      '  checkPlace(options, "Cannot import an Arrow array", fromArrowOptionNames);\n',
      "",
      "A number for a device is none.",
    ],
  ]),
  ...law("cdata/takeFromProducer", [
    ["    exported.close();\n", "", "What a refused source has made leaks."],
  ]),
  ...law("cdata/takeFreshStructs", [
    ["    releaseSchema(schema);\n    releaseArray(address);\n", "", "What a refused source has made leaks."],
    ['  new Walk("ArrowArray").pointer(address, "address");\n', "", "Structs are released that are nowhere."],
  ]),
  ...law("cdata/takeExport", [
    ["  exported.take(); // both have been moved: nothing is left to release\n", "", "Two consumers take one array."],
  ]),
  ...law("cdata/takeStructs", [
    ["  releaseSchema(schema); // `field` is a complete copy\n", "", "The schema of each import leaks."],
  ]),
  ...law("cdata/takeArray", [
    ["  waitFor(location, options);\n", "", "We read before the producer has written."],
    ["    imported.close(); // releases nothing yet\n", "", "A refused import keeps its streams."],
  ]),
  ...law("cdata/moveOut", [
    ["  struct(ArrowArrayStruct).at(address).release = 0n;\n", "", "Two consumers release one array."],
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
  ...law("cdata/readLocation", [
    [
      "options.stream === undefined ? device.defaultStream : options.stream",
      "options.stream ?? null",
      "Whoever has the array next comes before what was enqueued on it.",
    ],
  ]),
  ...law("cdata/readEvent", [
    ['  walk.pointer(address, "event");\n', "", "An event is read between addresses."],
  ]),
  ...law("cdata/waitFor", [
    [
      "  consumerWaitsForEvent(ready, stream ?? null);\n",
      "",
      "Nobody waits for the event.",
    ],
  ]),
  ...law("cdata/integerReader", [
    [
      "      hostWaitsForCopy(order);\n      return",
      "      return",
      "A length is read before it has come to the host.",
    ],
    [
      "    hostWaitsFor(order); // it waits for the producer",
      "    // it waits for the producer",
      "A length is read early.",
    ],
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
  ...law("cdata/readMetadata", [
    ["    if (value >= 0) return value;\n", "    return value;\n", "Texts of negative length are read."],
    ["  if (count > maxPairs) {\n", "  if (false) {\n", "As many pairs are read as a broken schema says."],
  ]),
  ...law("cdata/valuesOf", [
    [
      "hasNulls(child) && hasNullsIn(child, first, length)",
      "hasNulls(child)",
      "Nulls of other lists are held against one.",
    ],
  ]),
  ...law("cdata/hasNullsIn", [
    [
      "if (isNullAt(array, i)) return true;",
      "if (isNullAt(array, i - first)) return true;",
      "Nulls of other lists are asked.",
    ],
  ]),
  ...law("cdata/nodeOfNumbers", [
    [
      "  if (!layout.isContiguousC) return refuse",
      "  if (false) return refuse",
      "Elements out of order go out as if they were in it.",
    ],
  ]),
  ...law("cdata/importNumbers", [
    [
      "    checkTree(node);\n",
      "",
      "Lists of bits with fewer inside than they say are a view of what lies behind them.",
    ],
  ]),
  ...law("cdata/numbersOf", [
    ["  if (hasNulls(array)) throw nullsInView(array);\n", "", "Nulls are taken for values."],
  ]),
  ...law("cdata/applyRequestedSchema", [
    [
      "  if (ours === undefined || theirs === undefined) return field;\n",
      "  return field;\n",
      "A consumer gets what it cannot use.",
    ],
  ]),
  ...law("cdata/renamed", [
    [
      "type.children.map((one) => renamedLike(one, theirs))",
      "type.children.map(child)",
      "Columns are given each other's names.",
    ],
  ]),
  ...law("cdata/clash", [
    [
      "const other = areNamed ? wanted.find(({ name }) => name === child.name) : wanted[i];",
      "const other = wanted[i];",
      "Columns that are requested in another order are refused.",
    ],
  ]),
  ...law("cdata/readField", [
    ["  if (schema.release === 0n) throw", "  if (false) throw", "What was released is taken."],
    ["  if (schema.format === 0n) throw", "  if (false) throw", "A format at NULL is read."],
  ]),
  ...law("cdata/readType", [
    [
      '  if (type.kind !== "int" && type.kind !== "uint") {\n',
      "  if (false) {\n",
      "Indices are read that are no integers.",
    ],
  ]),
  ...law("cdata/StructCopy.write", [
    ["    this.#live.set(this.#fresh);\n", "", "A consumer gets what the one before has written into its structs."],
  ]),
  ...law("cdata/StructCopy.writeArray", [
    [
      "    bytes.setBigUint64(deviceAt.sync_event, this.#eventAddress, littleEndian);\n",
      "",
      "A consumer is not told to wait.",
    ],
  ]),
  ...law("cdata/checkNode", [
    ["    if (!Number.isSafeInteger(value) || value < 0) refuse", "    if (false) refuse", "Negative lengths go out."],
    [
      "  if (nullCount > 0 && count > 0 && (buffers[0] ?? null) === null) {\n",
      "  if (false) {\n",
      "Nulls go out that nobody can find.",
    ],
  ]),
  ...law("cdata/checkSizes", [
    [
      "    if (size < bytes && !(i === 0 && buffer === null)) {\n",
      "    if (false) {\n",
      "A consumer reads behind a buffer.",
    ],
    ["    if (child.length < needs.childLength) {\n", "    if (false) {\n", "A consumer reads behind a child."],
  ]),
  ...law("cdata/Walk.enter", [
    ['    this.pointer(address, "address");\n', "", "A struct at NULL, or between two words, is read."],
    ["    if (depth > maxDepth) throw", "    if (false) throw", "Structs are followed without end."],
    [
      "    if (this.#seen.has(address)) throw",
      "    if (false) throw",
      "A struct that contains itself is followed without end.",
    ],
    ["    this.#seen.add(address);\n", "", "A struct that contains itself is followed without end."],
  ]),
  ...law("cdata/Walk.pointer", [
    ["    if (address === 0n) throw", "    if (false) throw", "What is at NULL is read."],
    ["    if (address % 8n !== 0n) throw", "    if (false) throw", "A wild pointer is followed."],
    ["    if (!isAddress(address)) {\n", "    if (false) {\n", "An address that no memory has is read."],
  ]),
  ...law("cdata/Walk.count", [
    ["    if (value >= 0n) return", "    return", "Negative counts are believed."],
  ]),
  ...law("cdata/Walk.pointers", [
    ["    if (count > maxStructs) throw", "    if (false) throw", "As much is read as a broken struct says."],
  ]),
  ...law("cdata/runEndEncoded", [
    [
      'runEnds.type.kind === "int" && runEnds.type.bits > 8',
      'runEnds.type.kind === "int"',
      "Ends of types that Arrow does not have for them are passed on.",
    ],
  ]),
];
