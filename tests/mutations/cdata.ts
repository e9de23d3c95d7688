/**
 * The protective lines of Arrow's C structs: who owns them, for how long, and what is checked before they are trusted.
 */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const cdataMutations: readonly Mutation[] = [
  ...law("cdata/readArray", [
    ["  walk.enter(address, depth);\n", "", "A struct that contains itself is followed without end."],
    ["  if (raw.release === 0n) throw", "  if (false) throw", "A released struct is accepted."],
    [
      "  if (!Number.isSafeInteger(start + length)) {\n",
      "  if (false) {\n",
      "An end that is not an exact number is accepted.",
    ],
    ["  if ((values === null) !== (raw.dictionary === 0n)) {\n", "  if (false) {\n", "A dictionary at NULL is read."],
  ]),
  ...law("cdata/readNullCount", [
    ["value >= -1n && value <= length", "true", "More nulls than elements are accepted."],
  ]),
  ...law("cdata/readBuffers", [
    [
      "  if (hasViews(type) ? n < expected : n !== expected) {\n",
      "  if (false) {\n",
      "Buffers that do not exist are read.",
    ],
    ['  if (type.kind === "null" && n === 1) return [];', "", "Columns of nothing but nulls in Polars are refused."],
  ]),
  ...law("cdata/readChildren", [
    ["  if (n !== fields.length) throw", "  if (false) throw", "Children that do not exist are read."],
  ]),
  ...law("cdata/probe", [
    ["    if (pointer === 0n) throw", "    if (false) throw", "Offsets at NULL are read."],
  ]),
  ...law("cdata/makeBuffer", [
    ["  if (ptr === 0n) throw", "  if (false) throw", "Elements at NULL are accepted."],
    [
      "  if (ptr + BigInt(size) > 1n << 64n) {\n",
      "  if (false) {\n",
      "Memory beyond the end of the address space is accepted.",
    ],
  ]),
  ...law("cdata/hostBytes", [
    ["  hostWaitsToRead(array, call);\n", "", "Offsets and nulls are read before they are written."],
  ]),
  ...law("cdata/offsetBytes", [
    ["(end + 1) * (bits / 8)", "end * (bits / 8)", "The last offset is read past the end of its buffer."],
  ]),
  ...law("cdata/lastOffset", [
    ["  if (first < 0n || last < first) {\n", "  if (false) {\n", "Decreasing offsets are accepted."],
  ]),
  ...law("cdata/safe", [
    [
      "  if (Number.isSafeInteger(value) && value >= 0) return value;\n",
      "  return value;\n",
      "Sizes that are not exact numbers are accepted.",
    ],
  ]),
  ...law("cdata/ArrowDeviceArray.constructor", [
    ["    finalizer.register(this, this.#state);\n", "", "An array that is never taken is never released."],
  ]),
  ...law("cdata/ArrowDeviceArray.take", [
    ["    this.#state.closed = true;\n", "", "Two consumers take one array, and release it twice."],
    [
      "    this.#state.structs = null; // the garbage collector may keep this for long\n",
      "",
      "An export that was taken is never collected if the owner of its memory references it.",
    ],
    [", deviceArray: array.address }", " }", "Device memory is mistaken for host memory."],
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
    ["  pollIfMany();\n", "", "Exports that are never polled pile up."],
    [
      "  for (const buffer of memory) held.use(buffer.pinned());\n",
      "",
      "Memory is freed while a consumer still uses it.",
    ],
    [
      'const event = where === "host" ? null : recordReady(memory);',
      'const event = where === "host" ? null : recordReady([]);',
      "A consumer reads before the producer has written.",
    ],
    [
      "    observerOf(event.device.driver)?.closedByUser(event.handle); // its consumer destroys it\n",
      "",
      "An event that a consumer owns is reported as lost.",
    ],
    [
      "    held.use(event.device.retained());\n",
      "",
      "The context is destroyed, and with it an event that a consumer owns.",
    ],
    ["    held.use(own.move()); // disposed of first\n", "    own.move();\n", "Each export leaks an event."],
    [
      "[...memory].every((buffer) => order.add(buffer))",
      "memory !== undefined && order !== undefined",
      "Memory is freed while the consumer's work still uses it.",
    ],
    ["const finish = () => held.dispose();", "const finish = () => {};", "Memory that was exported is never freed."],
    ["  using undo =", "  const undo =", "A failed export keeps what it has retained."],
    [
      "undo.use(new DisposableStack())",
      "new DisposableStack()",
      "A failed export keeps the memory, its event and the context.",
    ],
    ["  undo.move();\n", "", "An export is released before its consumer has it."],
    [
      "  if (ending.length > 0) {\n",
      "  if (false) {\n",
      "Buffers of Arrow arrays that end with their Worker are exported in place.",
    ],
    [
      'event = where === "host" ? null : recordReady(memory)',
      'event = where === "host" ? null : recordReady([...memory].slice(-1))',
      "Only the work of one home stream is marked.",
    ],
  ]),
  ...law("cdata/partOf", [
    ["offset: length === 0 ? 0 : offset + start", "offset: offset + start", "An empty part has an offset."],
    ['type.kind === "null" ? length : known', "known", "A column of nulls does not report its null count."],
  ]),
  ...law("cdata/planRoot", [
    [
      "  if (!isAtStart && validity !== null && nullCount !== 0) return plan",
      "  if (false) return plan",
      "Nulls of a part are lost.",
    ],
    ["const hidden = isAtStart ? 0 : 1;", "const hidden = 0;", "A part gets the nulls of other elements."],
    ["isAtStart ? 0 : offset, length), hidden", "0, length), hidden", "A part of a struct gets its first elements."],
    ["offset === 0 || length === 0;", "offset === 0;", "An empty part has an offset."],
    [
      'where === "host" && !isAtStart',
      "false",
      "A part whose nulls have not been counted cannot be a batch of a stream.",
    ],
  ]),
  ...law("cdata/placeOf", [
    [
      "    if (place.type === one.type && place.id === one.id) continue;\n    throw",
      "    continue;\n    throw",
      "A consumer mistakes the memory of one device for that of another.",
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
      "Only one of several home streams is waited for.",
    ],
  ]),
  ...law("cdata/exportNumbers", [
    [
      "  if (buffer.endsWithWorker) return",
      "  if (false) return",
      "Arrow data that ends with its Worker is exported in place.",
    ],
    [
      "  if (!layout.isContiguousC || ",
      "  if (",
      "Elements that are out of order are exported as if they were in order.",
    ],
  ]),
  ...law("cdata/NumbersExport.constructor", [
    ["    buffer.pin();\n", "", "Memory is freed while a consumer still uses it."],
    [
      "      pool.free(this.#slot);\n      throw",
      "      throw",
      "An export that the driver refuses leaks its structs.",
    ],
  ]),
  ...law("cdata/NumbersExport.free", [
    ["    if (--this.#trees === 0) this.#pool.free(this.#slot);\n", "", "Each export leaks its structs."],
    ["--this.#trees === 0", "true", "Structs that a consumer still holds are reused."],
  ]),
  ...law("cdata/NumbersExport.order", [
    [
      "    return order.add(this.#buffer);\n",
      "    return true;\n",
      "Memory is freed while the consumer's work still uses it.",
    ],
  ]),
  ...law("cdata/NumbersExport.finish", [
    ["      this.#buffer.unpin();\n", "", "Memory that was exported is never freed."],
    [
      "    } finally {\n      this.#buffer.unpin();\n    }\n",
      "      this.#buffer.unpin();\n    } finally {}\n",
      "Memory whose export's event cannot be destroyed is never freed.",
    ],
  ]),
  ...law("cdata/releaseReadyEvent", [
    ["    event.device.releaseEvent(event);\n", "", "Each export leaks an event."],
    ["    event.device.release();\n", "", "Each export leaks a context."],
    [
      "  } finally {\n    event.device.release();\n  }\n",
      "    event.device.release();\n  } finally {}\n",
      "An event that cannot be destroyed keeps its context for ever.",
    ],
  ]),
  ...law("cdata/acquireReadyEvent", [
    ["    stream.record(event);\n", "", "A consumer reads before the producer has written."],
  ]),
  ...law("cdata/ExportedTree.constructor", [
    ["    addExport(this);\n", "", "An export is collected while its consumer still uses it."],
  ]),
  ...law("cdata/ExportedTree.release", [
    ["this.index < 0 || ", "", "Closing an export that has ended releases the export that now has its place."],
    [
      " || !hasRelease(this.#memory.words, this.#root)",
      "",
      "An export that its consumer has released is released again.",
    ],
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
    [" && (hasOwner || !hasRelease(words, node))", "", "A child that was not moved out keeps its parent for ever."],
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
      "A stream declares an order of a dictionary's values that does not exist.",
    ],
    [
      '  if (one.kind === "map" && other.kind === "map" && one.keysSorted !== other.keysSorted) return false;\n',
      "",
      "A stream declares sorted keys that are not sorted.",
    ],
  ]),
  ...law("cdata/equalMetadata", [
    [
      "  if (one.size !== other.size) return false;\n",
      "",
      "A stream declares metadata that only some of its arrays have.",
    ],
  ]),
  ...law("cdata/importArrow", [
    [
      '  if (requestedSchema !== null) throw tooLate("array");\n',
      "",
      "A request that cannot be honoured is ignored.",
    ],
    [
      '  checkPlace(options, "Cannot import an Arrow array", fromArrowOptionNames);\n',
      "",
      "A number given as the device is ignored.",
    ],
  ]),
  ...law("cdata/takeFromProducer", [
    ["    exported.close();\n", "", "An export made by a refused source leaks."],
  ]),
  ...law("cdata/takeFreshStructs", [
    ["    releaseSchema(schema);\n    releaseArray(address);\n", "", "Structs made by a refused source leak."],
    ['  new Walk("ArrowArray").pointer(address, "address");\n', "", "Structs at an invalid address are released."],
    ["isOfOtherCopy(exported)", "false", "Arrow arrays of another copy of the package are refused."],
  ]),
  ...law("cdata/takeExport", [
    ["  exported.take(); // both have been moved: nothing is left to release\n", "", "Two consumers take one array."],
  ]),
  ...law("cdata/takeStructs", [
    ["  releaseSchema(schema); // `field` is a complete copy\n", "", "The schema of each import leaks."],
  ]),
  ...law("cdata/takeArray", [
    ["  waitFor(location, options);\n", "", "We read before the producer has written."],
    ["    imported.close(); // releases nothing yet\n", "", "A refused import keeps its streams alive."],
  ]),
  ...law("cdata/moveOut", [
    ["  struct(ArrowArrayStruct).at(address).release = 0n;\n", "", "Two consumers release one array."],
  ]),
  ...law("cdata/returnToProducer", [
    ["runAll([...orders, give,", "runAll([give,", "Foreign memory is freed while our work still uses it."],
    [
      "  if (stream !== null) streams.getOrInsertComputed(stream, () => stream.retained());\n",
      "",
      "Foreign memory is freed while our work still uses it.",
    ],
    [
      "=> stream.retained());",
      "=> new DisposableStack());",
      "An array whose stream was closed before its last buffer is never released.",
    ],
    [
      ", ...[...streams.values()].map((one) => () => one[Symbol.dispose]())",
      "",
      "Streams of imported arrays are never destroyed.",
    ],
    [
      "    if (moved === 0n) return;\n    releaseArray",
      "    releaseArray",
      "An array that was never taken is released.",
    ],
    ["  if (--shared.users > 0) return;\n", "", "Closing the first buffer releases all."],
    ["    releaseArray(moved);\n", "", "Foreign memory is never freed."],
    ["    libc().loading.free(moved);\n", "", "Each import leaks a struct."],
  ]),
  ...law("cdata/readLocation", [
    [
      "options.stream === undefined ? device.defaultStream : options.stream",
      "options.stream ?? null",
      "The next user of the array is not ordered after work enqueued on it.",
    ],
  ]),
  ...law("cdata/readEvent", [
    ['  walk.pointer(address, "event");\n', "", "An event at an unaligned address is read."],
  ]),
  ...law("cdata/waitFor", [
    [
      "  consumerWaitsForEvent(ready, stream ?? null);\n",
      "",
      "The event is not waited for.",
    ],
  ]),
  ...law("cdata/integerReader", [
    [
      "      hostWaitsForCopy(copyStream);\n      return",
      "      return",
      "A length is read before it has reached the host.",
    ],
    [
      "    hostWaitsFor(copyStream); // it waits for the producer",
      "    // it waits for the producer",
      "A length is read too early.",
    ],
  ]),
  ...law("cdata/lenient", [
    [
      'const lenient = new TextDecoder("utf-8", { ignoreBOM: true });',
      'const lenient = new TextDecoder("utf-8");',
      "Two different metadata keys become one.",
    ],
  ]),
  ...law("cdata/strict", [
    [", fatal: true }", " }", "Metadata that is not text is altered."],
  ]),
  ...law("cdata/readMetadata", [
    ["    if (value >= 0) return value;\n", "    return value;\n", "Texts of negative length are read."],
    ["  if (count > maxPairs) {\n", "  if (false) {\n", "The pair count of a broken schema is trusted."],
  ]),
  ...law("cdata/valuesOf", [
    [
      "hasNulls(child) && hasNullsIn(child, first, length)",
      "hasNulls(child)",
      "A list is refused because of nulls in other lists.",
    ],
  ]),
  ...law("cdata/hasNullsIn", [
    [
      "if (isNullAt(array, i)) return true;",
      "if (isNullAt(array, i - first)) return true;",
      "The nulls of other lists are checked.",
    ],
  ]),
  ...law("cdata/nodeOfNumbers", [
    [
      "  if (!layout.isContiguousC) return refuse",
      "  if (false) return refuse",
      "Elements that are out of order are exported as if they were in order.",
    ],
  ]),
  ...law("cdata/importNumbers", [
    [
      "    checkTree(node);\n",
      "",
      "A view of bit lists that are shorter than declared extends past their bits.",
    ],
  ]),
  ...law("cdata/numbersOf", [
    ["  if (hasNulls(array)) throw nullsInView(array);\n", "", "Nulls are read as values."],
  ]),
  ...law("cdata/applyRequestedSchema", [
    [
      "  if (ours === undefined || theirs === undefined) return field;\n",
      "  return field;\n",
      "A consumer gets a type that it cannot use.",
    ],
  ]),
  ...law("cdata/renamed", [
    [
      "type.children.map((one) => renamedLike(one, theirs))",
      "type.children.map(child)",
      "Columns get each other's names.",
    ],
  ]),
  ...law("cdata/clash", [
    [
      "const other = wanted[areNamed ? indexOfName(wanted, child.name) : i];",
      "const other = wanted[i];",
      "Columns that are requested in another order are refused.",
    ],
  ]),
  ...law("cdata/indexOfName", [
    ["entries.reverse()", "entries", "Of columns with the same name another one is found if there are many."],
    ["fields.findIndex((field)", "fields.findLastIndex((field)", "The same, if there are few."],
    ["?? -1", "?? 0", "A column that does not exist is found."],
  ]),
  ...law("cdata/readField", [
    ["  if (schema.release === 0n) throw", "  if (false) throw", "A released struct is accepted."],
    ["  if (schema.format === 0n) throw", "  if (false) throw", "A format at NULL is read."],
  ]),
  ...law("cdata/readType", [
    [
      '  if (type.kind !== "int" && type.kind !== "uint") {\n',
      "  if (false) {\n",
      "Indices that are not integers are read.",
    ],
  ]),
  ...law("cdata/StructCopy.write", [
    ["    this.#live.set(this.#fresh);\n", "", "A consumer gets the structs as the previous consumer left them."],
  ]),
  ...law("cdata/StructCopy.writeArray", [
    [
      "    bytes.setBigUint64(deviceAt.sync_event, this.#eventAddress, littleEndian);\n",
      "",
      "A consumer gets no event to wait for.",
    ],
  ]),
  ...law("cdata/checkNode", [
    [
      "    if (!Number.isSafeInteger(value) || value < 0) refuse",
      "    if (false) refuse",
      "Negative lengths are exported.",
    ],
    [
      "  if (nullCount > 0 && count > 0 && (buffers[0] ?? null) === null) {\n",
      "  if (false) {\n",
      "Nulls are exported without a validity buffer.",
    ],
  ]),
  ...law("cdata/checkSizes", [
    [
      "    if (size < bytes && !(i === 0 && buffer === null)) {\n",
      "    if (false) {\n",
      "A consumer reads past the end of a buffer.",
    ],
    [
      "    if (child.length < needs.childLength) {\n",
      "    if (false) {\n",
      "A consumer reads past the end of a child.",
    ],
    [
      "  if (sizes !== null && !sizes.buffer.isHostAccessible) {\n",
      "  if (false) {\n",
      "A consumer on the host reads device memory.",
    ],
  ]),
  ...law("cdata/Walk.enter", [
    ['    this.pointer(address, "address");\n', "", "A struct at NULL, or at an unaligned address, is read."],
    ["    if (depth > maxDepth) throw", "    if (false) throw", "Structs are followed without end."],
    [
      "    if (this.#seen.has(address)) throw",
      "    if (false) throw",
      "A struct that contains itself is followed without end.",
    ],
    ["    this.#seen.add(address);\n", "", "A struct that contains itself is followed without end."],
  ]),
  ...law("cdata/Walk.pointer", [
    ["    if (address === 0n) throw", "    if (false) throw", "Memory at NULL is read."],
    ["    if (address % 8n !== 0n) throw", "    if (false) throw", "A misaligned pointer is followed."],
    ["    if (!isAddress(address)) {\n", "    if (false) {\n", "An address outside the address space is read."],
  ]),
  ...law("cdata/Walk.count", [
    ["    if (value >= 0n) return", "    return", "Negative counts are accepted."],
  ]),
  ...law("cdata/Walk.pointers", [
    ["    if (count > maxStructs) throw", "    if (false) throw", "The count of a broken struct is trusted."],
  ]),
  ...law("cdata/runEndEncoded", [
    [
      'runEnds.type.kind === "int" && runEnds.type.bits > 8',
      'runEnds.type.kind === "int"',
      "Run ends of a type that Arrow does not allow are passed on.",
    ],
  ]),
];
