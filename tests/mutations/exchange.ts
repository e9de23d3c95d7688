/** The protective lines of the room `exchange`. */
import { law, type Mutation } from "./mutation.ts";

/** What can be broken there. */
export const exchangeMutations: readonly Mutation[] = [
  ...law("dlpack/fromDlpack", [
    [
      '  checkPlace(options, "Cannot import by DLPack");\n',
      "",
      "A number for a device is one that nothing is known of.",
    ],
  ]),
  ...law("dlpack/fromCudaArrayInterface", [
    ['  checkPlace(options, "Cannot import by the CUDA Array Interface");\n', "", "A number for a device is none."],
    [
      "producer ?? device.defaultStream",
      "producer",
      "Whoever has the array next comes before what was enqueued on it.",
    ],
    [
      "  if (home !== null && producer !== null) home.wait(producer);\n",
      "",
      "We read before the producer has written.",
    ],
    ["home, source, producer", "home, undefined, producer", "Foreign memory is collected while a view uses it."],
    [
      "{ owner: source, device, stream: null }",
      "{ device, stream: null }",
      "Foreign memory is collected while a view uses it.",
    ],
  ]),
  ...law("cdata/importArrow", [
    [
      '  checkPlace(options, "Cannot import an Arrow array", fromArrowOptionNames);\n',
      "",
      "A number for a device is none.",
    ],
  ]),
  ...law("arrow/ArrowStream.from", [
    [
      '    checkPlace(options, "Cannot import an Arrow stream", fromArrowOptionNames);\n',
      "",
      "An address is read, whatever the options are.",
    ],
  ]),
  ...law("view/StridedMemoryView.from", [
    ['    checkPlace(options, "Cannot view an array");\n', "", "A number for a device is none."],
    [
      "return isUsableAt(source, options) ? source : fromDlpack(source, options, StridedMemoryView.fromImport);",
      "return source;",
      "We read before the owner of a view has written.",
    ],
  ]),
  ...law("device/checkDevice", [
    ["  if (device instanceof CudaDevice) return;\n", "  if (device !== null) return;\n", "A number is a device."],
  ]),
  ...law("order/addExport", [
    ["  one.index = live.push(one) - 1;\n", "", "What is out is collected under its consumer."],
    ["  if (!isWatched) watchEnd();\n", "", "Nobody is told what consumers have never released."],
  ]),
  ...law("order/end", [
    ["  const last = live.pop();\n", "  const last = live.at(-1);\n", "What was released is looked at for ever."],
    ["  live[one.index] = last;\n", "", "What is out is collected under its consumer."],
    ["  last.index = one.index;\n", "", "What is out is collected under its consumer."],
    ["  if (one.index < 0 || !one", "  if (!one", "What is released is given back again."],
    ["one.index < 0 || !one.order(order)", "one.index < 0", "Memory is freed while the consumer's work still uses it."],
    ["  one.index = -1;\n", "", "What is released is given back again at every look."],
    [
      "  one.index = -1;\n  one.finish();\n",
      "  one.finish();\n  one.index = -1;\n",
      "What is released is given back twice if somebody asks meanwhile.",
    ],
    ["  one.index = -1;\n", "  one.index = 0;\n", "Asking after what is released takes another export off the list."],
    ["  one.finish();\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("order/pollAll", [
    [
      "if (one.isReleasedByConsumer()) gone.push(one);",
      "one.isReleasedByConsumer();",
      "Nobody looks whether a consumer has released.",
    ],
    [
      "    const gone: ExportEntry[] = [];\n    for (const one of live) if (one.isReleasedByConsumer()) gone.push(one);\n",
      "    const gone = (function* () {\n      for (const one of [...live]) if (one.isReleasedByConsumer()) yield one;\n    })();\n",
      "Memory is freed under a consumer who let go after the wait that was ordered for others.",
    ],
    ["        errors.push(error);\n", "        throw error;\n", "One release that fails holds up all others."],
    ["  if (errors.length > 0) throw errors[0];\n", "", "Nobody learns that a release fails."],
    [
      "  } while (live.length < before);",
      "  } while (false);",
      "The producer of an import that has just gone is not looked at.",
    ],
  ]),
  ...law("order/pollIfMany", [
    ["  if (live.length < enough) return;\n  pollAll();\n", "", "Exports that nobody looks at pile up."],
  ]),
  ...law("copy/copyToDevice", [
    [
      "  if (device === null) home.synchronize(); // what is on the host may change as soon as this returns\n",
      "",
      "A copy has what the host has written after it was asked for.",
    ],
    [
      "    using _memory = staged.buffer;",
      "    void staged.buffer;",
      "Memory on the way between two devices stays for ever.",
    ],
    ["  if (device === null) home.synchronize();", "", "What changes on the host after the export changes the copy."],
  ]),
  ...law("copy/copyToHost", [
    ["  order?.synchronize(); // a consumer", "  // a consumer", "The host reads a copy before it is made."],
  ]),
  ...law("dlpack/Export.constructor", [
    ["    buffer.pin();\n", "", "Memory is freed under a consumer."],
    ["    addExport(this);\n", "", "What is out is collected under its consumer."],
  ]),
  ...law("dlpack/Export.finish", [
    ["    this.#tensor.free();\n", "", "Each export leaks its struct."],
    ["    this.#buffer.unpin();\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("dlpack/toDlpack", [
    [
      '  if (plan.hostWaits) hostWaitsToRead(array, "toDlpack()");\n',
      "",
      "A consumer on the host reads before a stream has written.",
    ],
    ["array.readonly ? flag.readOnly : 0", "0", "A consumer writes what is read-only."],
    [
      "    return exportInOrder(copied, plan, flag.isCopied);\n",
      "    return exportInOrder(copied, { ...plan, consumer: null }, flag.isCopied);\n",
      "A consumer reads a copy before it is made.",
    ],
    ["    copied.buffer.close(); // the export has pinned it\n", "", "Each copy leaks."],
    ["  pollIfMany();\n", "", "Exports that nobody looks at pile up."],
  ]),
  ...law("dlpack/Export.order", [
    ["return order.add(this.#buffer)", "return true", "Memory is freed while the consumer's work still uses it."],
  ]),
  ...law("dlpack/exportInOrder", [
    [
      "  if (device !== null && consumer !== null) consumerWaits(buffer, consumerStream(device, consumer));\n",
      "",
      "A consumer reads before the producer has written.",
    ],
  ]),
  ...law("dlpack/checkRequest", [
    ["  checkOptions(options, toDlpackOptionNames);\n", "", "Options that mean nothing are left aside."],
  ]),
  ...law("dlpack/planExport", [
    [
      "stream ?? DEFAULT_STREAM",
      "stream ?? 2n",
      "A consumer on the default stream reads before the producer has written.",
    ],
    [
      "  if (isElsewhere && copy === false) {\n",
      "  if (false) {\n",
      "A copy is made that the consumer does not allow.",
    ],
    [
      "stream === null || stream === -1n ? null",
      "stream === null ? null",
      "A consumer that wants no order gets an error.",
    ],
    ["isOnHost || stream === null", "stream === null", "A stream is to wait for a copy that is on the host."],
    [
      "buffer.device === null && stream === undefined,",
      "stream === undefined,",
      "The host waits for what a consumer's stream waits for.",
    ],
    [
      "buffer.device === null && stream === undefined,",
      "buffer.device === null,",
      "The host waits, and no order is wanted.",
    ],
    [
      "  if (array.readonly && !isVersioned && !isCopied) {\n",
      "  if (false) {\n",
      "A consumer writes what is read-only.",
    ],
    [
      "array.readonly && !isVersioned && !isCopied",
      "array.readonly && !isVersioned",
      "A copy is refused because something else is read-only.",
    ],
    [
      "  if (!isVersioned && dtype.dlpack.padded) {\n",
      "  if (false) {\n",
      "A consumer takes padded elements for packed ones.",
    ],
    ["?? newest)[0] >= 1", "?? newest)[1] >= 1", "A consumer gets a struct that it cannot read."],
  ]),
  ...law("dlpack/checkStream", [
    ["  if (buffer.device === null && !isElsewhere) {\n", "  if (false) {\n", "Host memory is silently not ordered."],
    [
      "  if (stream === 0n) throw",
      "  if (false) throw",
      "Stream 0, which DLPack forbids, is taken for the default stream.",
    ],
  ]),
  ...law("dlpack/isWantedElsewhere", [
    [
      "wanted[0] !== type || wanted[1] !== id",
      "wanted[0] !== type",
      "A consumer of one device is handed the memory of another.",
    ],
    [
      "  return wanted[0] !== type || wanted",
      "  return wanted",
      "A consumer on the host is handed memory of a device.",
    ],
  ]),
  ...law("dlpack/planCopy", [
    [
      "type === DLDeviceType.kDLCPU && id === 0",
      "type === DLDeviceType.kDLCPU",
      "A host that does not exist is taken for this one.",
    ],
  ]),
  ...law("dlpack/findDevice", [
    ["known.ordinal === id ? known : known.siblings[id]", "known", "A copy is made on the device where the array is."],
  ]),
  ...law("dlpack/homeOn", [
    [
      "  if (buffer.stream?.device === device) return buffer.stream;\n",
      "",
      "A copy on its own device is made in another order than the array's.",
    ],
    [
      "return stream instanceof CudaStream && stream.device === device ? stream : device",
      "return device",
      "A copy is made on the default stream, where it waits for others.",
    ],
    [
      "return stream instanceof CudaStream && stream.device === device ? stream",
      "return stream instanceof CudaStream ? stream",
      "A copy's home stream is one of another device.",
    ],
  ]),
  ...law("dlpack/TensorBlock.write", [
    ["    this.checkReleases(); // by the consumer before\n", "", "Nobody is told of a late second release."],
    ["at.shape, shape.length === 0 ? 0n : this.#shapeAddress", "at.shape, this.#shapeAddress", "A scalar has a shape."],
    ["    setInt64(bytes, this.#counter, 0);\n", "", "What is out counts as released, as what was there before it."],
    [
      "    bytes.setBigUint64(offsets.deleter, deleter, littleEndian);\n",
      "",
      "A consumer calls what the one before has left as deleter.",
    ],
  ]),
  ...law("dlpack/ExportedStruct.free", [
    ["    this.#slot.content.checkReleases();\n", "", "Nobody is told of a second release."],
    ["    this.#pool.free(this.#slot);\n", "", "Each export leaks its struct."],
  ]),
  ...law("dlpack/ExportedStruct.constructor", [
    ["shape.length <= fewAxes ? small : large", "small", "A tensor of many axes overwrites the next one."],
  ]),
  ...law("dlpack/checkVersion", [
    [
      "  if (major === DLPACK_MAJOR_VERSION) return;\n",
      "  if (true) return;\n",
      "A struct of another version is read as if it were ours.",
    ],
  ]),
  ...law("dlpack/checkPointers", [
    ["  if (ndim < 0 || ndim > MAX_NDIM) {\n", "  if (false) {\n", "As much is read as a broken struct says."],
  ]),
  ...law("dlpack/readTensor", [
    [
      "  if ((ptr & offsetInPage) > lastWhole) checkVersion(readForeign(ptr, versionBytes));\n",
      "",
      "A struct of another version is read beyond its end.",
    ],
  ]),
  ...law("dlpack/stridesBehind", [
    [" && behind + 8 * ndim <= mostForeignBytes", "", "Strides further away than can be read are read with the shape."],
    [
      "  if (bytes.getInt32(shapeAt + 4, littleEndian) !== bytes.getInt32(stridesAt + 4, littleEndian)) return 0;\n",
      "",
      "Strides far away are read behind the shape.",
    ],
    ["behind > 0 && behind", "behind", "Strides before the shape are read behind it."],
  ]),
  ...law("dlpack/checkPointer", [
    ["  if (isNull(bytes, pointerAt)) throw", "  if (false) throw", "A shape at NULL is read."],
    [
      "  if ((bytes.getUint32(pointerAt, littleEndian) & 7) === 0) return;\n",
      "  return;\n",
      "A shape between two addresses is read.",
    ],
  ]),
  ...law("dlpack/ask", [
    ["    tensor.close(); // it was made for this import\n", "", "What a refused source has made leaks."],
  ]),
  ...law("dlpack/streamFor", [
    [
      "  if (type !== undefined && !usable.has(type)) throw wrongType(type);\n",
      "",
      "A producer on ROCm is given a stream of CUDA's.",
    ],
    [
      "isOnHost || stream === undefined",
      "stream === undefined",
      "A producer on the host is asked for order, and refuses.",
    ],
  ]),
  ...law("dlpack/checkAddress", [
    ["  if (address === 0n) throw", "  if (false) throw", "A struct at NULL is read."],
    [
      '  if ((address & 7n) !== 0n) throw misaligned("address", address);\n',
      "",
      "A struct between two addresses is read.",
    ],
  ]),
  ...law("dlpack/take", [
    ["(fields.flags & readOnly) !== 0", "false", "What is read-only can be written."],
    ["  tensor?.take(); // only now", "  // only now", "Two consumers take one tensor."],
    [
      "= { tensor: address, deleter: fields.deleter };\n",
      "= { tensor: tensor?.take() ?? address, deleter: fields.deleter };\n",
      "A tensor is lost if its buffer cannot be made.",
    ],
    [
      "home,\n    tensor ?? undefined,\n    imported",
      "home, undefined, imported",
      "An import does not say what it comes from.",
    ],
    [
      "device === null ? null : stream === undefined ? device.defaultStream : stream",
      "null",
      "Foreign memory is freed while our work still uses it.",
    ],
    [
      "stream === undefined ? device.defaultStream : stream",
      "stream ?? null",
      "What came without a stream has no home.",
    ],
  ]),
  ...law("dlpack/returnToProducer", [
    [
      "  if (stream !== null) hostWaitsBeforeReturn(stream);\n",
      "",
      "Foreign memory is freed while our work still uses it.",
    ],
    ["  if (deleter !== 0n) callRelease(deleter, tensor);\n", "", "Foreign memory is never freed."],
    [
      "  if (deleter !== 0n) callRelease(deleter, tensor);\n",
      "  callRelease(deleter, tensor);\n",
      "A tensor without a deleter crashes.",
    ],
  ]),
  ...law("dlpack/readDevice", [
    [
      "      if (device.ordinal !== deviceId) {\n",
      "      if (false) {\n",
      "Memory is used on a device where it is not.",
    ],
    [
      "      if (device === undefined) {\n",
      "      if (false) {\n",
      "Memory of a device that nobody named is a nameless error.",
    ],
  ]),
  ...law("dlpack/DlpackTensor.constructor", [
    ["    finalizer.register(this, this.#state);\n", "", "A tensor that nobody takes is never released."],
  ]),
  ...law("dlpack/DlpackTensor.ptr", [
    ["    if (closed) throw", "    if (false) throw", "Two consumers take one tensor, and release it twice."],
  ]),
  ...law("dlpack/DlpackTensor.take", [
    ["    this.#state.closed = true;\n", "", "Two consumers take one tensor, and release it twice."],
  ]),
  ...law("dlpack/DlpackTensor.close", [
    ["    if (!this.#state.closed) callDeleter", "    callDeleter", "Closing releases what a consumer has."],
  ]),
  ...law("dlpack/callDeleter", [
    [
      "  if (deleter !== 0n) callRelease(deleter, ptr);",
      "  callRelease(deleter, ptr);",
      "A tensor without a deleter crashes.",
    ],
  ]),
  ...law("dlpack/cachedLayout", [
    ["found.hasStrides !== (strides !== null)", "false", "An array without strides gets those of one that had some."],
    ["layout.itemsize !== itemsize || ", "", "An array gets the element size of another one."],
    [" || layout.shape.length !== ndim", "", "An array of fewer axes is taken for one of more."],
    ["    if (layout.shape[axis] !== shape[axis]) return null;\n", "", "An array gets the shape of another one."],
    [" * unit !== strides[axis]", " === null", "An array gets the strides of another one."],
    ["(layout.strides[axis] ?? 0) * unit", "(layout.strides[axis] ?? 0)", "Strides in bytes are taken for elements."],
  ]),
  ...law("cdata/NumbersExport.free", [
    ["    if (--this.#trees === 0) this.#pool.free(this.#slot);\n", "", "Each export leaks its structs."],
    ["--this.#trees === 0", "true", "Structs that a consumer has are another's."],
  ]),
  ...law("cdata/NumbersExport.constructor", [
    ["    buffer.pin();\n", "", "Memory is freed under a consumer."],
    [
      "      pool.free(this.#slot);\n      throw",
      "      throw",
      "An export that the driver refuses leaks its structs.",
    ],
  ]),
  ...law("cdata/NumbersExport.finish", [
    ["      ready.device.releaseEvent(ready);\n", "", "Each export leaks an event."],
    ["      ready.device.release();\n", "", "Each export leaks a context."],
    ["    }\n    this.#buffer.unpin();\n", "    }\n", "Memory that was exported is never freed."],
  ]),
  ...law("cdata/NumbersExport.order", [
    [
      "    return order.add(this.#buffer);\n",
      "    return true;\n",
      "Memory is freed while the consumer's work still uses it.",
    ],
  ]),
  ...law("cdata/recordReady", [
    ["    stream.record(event);\n", "", "A consumer reads before the producer has written."],
  ]),
  ...law("cdata/exportNumbers", [
    ["  if (!layout.isContiguousC || ", "  if (", "Elements out of order go out as if they were in it."],
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
  ...law("dlpack/foreignRange", [
    ["  if (data === 0n) {\n", "  if (false) {\n", "Elements at NULL are believed."],
    ["(before !== 0 && ptr <= 0n) || ", "", "Memory before the beginning of memory is believed."],
    [" || (data > farEnough && ptr + BigInt(size) > addressEnd)", "", "Memory beyond the end of memory is believed."],
    [
      "const before = min === 0 ? 0 : 0 - wholeBytes(min, layout.itemsize);",
      "const before = 0;",
      "Elements before the first one lie outside of the memory that is vouched for.",
    ],
  ]),
  ...law("dlpack/wholeBytes", [
    [
      "  return eights * (8 * itemsize) + Math.floor((elements - 8 * eights) * itemsize);\n",
      "  return Math.floor(elements * itemsize);\n",
      "The end of very many packed elements is rounded off.",
    ],
  ]),
  ...law("dlpack/array_interface/returnToProducer", [
    [
      "  if (producer !== null && stream !== null) producerWaits(stream, producer);\n",
      "",
      "The producer overwrites what our work still reads.",
    ],
  ]),
  ...law("dlpack/producerStream", [
    [
      "  if (handle === 0n) {\n",
      "  if (false) {\n",
      "Stream 0, which the protocol forbids, is taken for the default stream.",
    ],
  ]),
  ...law("dlpack/handleFor", [
    ["handle || CU_STREAM_LEGACY", "handle", "A consumer is told stream 0, which the protocol forbids."],
    ["  if (device !== consumer) {\n", "  if (false) {\n", "A consumer waits for another device's stream."],
  ]),
  ...law("dlpack/toArrayInterface", [
    [
      '  hostWaitsToRead(array, "__array_interface__");\n',
      "",
      "A consumer on the host reads before a stream has written.",
    ],
  ]),
  ...law("dlpack/readInterface", [
    ["  if (mask !== undefined && mask !== null) {\n", "  if (false) {\n", "A mask is silently dropped."],
  ]),
  ...law("dlpack/fromArrayInterface", [
    ["{ owner: source }", "{}", "Foreign memory is collected while a view uses it."],
  ]),
  ...law("copy/readElements", [
    [
      "  } else if (stream !== null) {\n",
      "  } else if (stream !== null && !stream.isDone) {\n",
      "Page-locked memory is read before the default stream has written what comes before its home stream's next work.",
    ],
  ]),
  ...law("copy/copyOnHost", [
    [
      "  for (const order of new Set([stream, from.buffer.stream, to.buffer.stream])) order?.waitUntilReady();\n",
      "",
      "The host copies page-locked memory before a stream has written it.",
    ],
  ]),
  ...law("order/Loan.constructor", [
    [
      "    stream.retain(); // a closed stream is an error before anything is enqueued\n",
      "",
      "A borrower's stream is destroyed before the loan has ended.",
    ],
    ["      buffer.pin();\n", "", "Memory is freed under a borrower."],
    ["      consumerWaits(buffer, stream);\n", "", "A borrower reads before the owner has written."],
    ["      if (isPinned) buffer.unpin();\n", "", "A loan that cannot begin keeps the memory."],
    [
      "      stream.release();\n      throw error;\n",
      "      throw error;\n",
      "A loan that cannot begin keeps the stream.",
    ],
    ["    finalizer.register(this, this.#state);\n", "", "What was lent to whoever drops the lease is lent for ever."],
  ]),
  ...law("order/Loan.end", [
    ["if (!this.#state.closed) end", "end", "A loan is ended again and again."],
  ]),
  ...law("order/loan/end", [
    ["  state.closed = true;\n", "", "A loan is ended again and again."],
    [
      "producerWaits(stream.orSuccessor, home);\n",
      "producerWaits(stream, home);\n",
      "The host waits for a borrower that has closed its stream.",
    ],
    [
      "    if (home !== null) producerWaits(stream.orSuccessor, home);\n",
      "",
      "The owner writes, or frees, what the borrower still reads.",
    ],
    ["    buffer.unpin();\n    stream.release();\n", "    stream.release();\n", "Memory that was lent is never freed."],
    [
      "    buffer.unpin();\n    stream.release();\n",
      "    buffer.unpin();\n",
      "A borrower's stream is never destroyed.",
    ],
    [
      "producerWaits(stream.orSuccessor, home)",
      "producerWaits(stream, home)",
      "The owner waits for no work of a stream that was closed.",
    ],
  ]),
  ...law("order/waitForContext", [
    ["  if (device.isGone) return true;\n", "", "After one Cuda was closed no memory is allocated any more."],
    [
      "        return true;\n      }\n",
      "      }\n      return true;\n",
      "On older drivers memory is freed under a consumer.",
    ],
    [
      "        stream.wait(event);\n        return true;\n",
      "        return true;\n",
      "Memory is freed under a consumer.",
    ],
    ["      device.releaseEvent(event);\n", "", "Events pile up."],
    [
      "  try {\n    device.synchronize();\n",
      "  try {\n",
      "Where the driver has no event to give, memory is freed under a consumer.",
    ],
    [
      "    if (isRefusedByCapture(error)) return false;\n    if (!isSticky(error)) throw error;\n",
      "    throw error;\n",
      "In a lost context memory is never freed.",
    ],
  ]),
  ...law("order/consumerWaits", [
    [
      "  if (stream !== null && buffer.stream !== null) stream.wait(buffer.stream);\n",
      "",
      "A consumer reads before the producer has written.",
    ],
  ]),
  ...law("order/ReleaseOrder.add", [
    [
      "    if (stream === null) return true;\n",
      "    if (stream === null || buffer.device === null) return true;\n",
      "Pinned memory is freed under a consumer.",
    ],
    [
      "!waits.has(peer) && mayHaveUsed",
      "waits.size === 1 && mayHaveUsed",
      "Of two buffers with one home, the second is freed under a consumer on its peers.",
    ],
    [
      "    if (isCapturing(stream.device.driver)) return false;\n    const",
      "    const",
      "A release that is seen during a capture spoils it.",
    ],
    [
      "    if (!waits.has(owner) && !wait(stream, owner, waits)) return false;\n",
      "",
      "Memory is freed under a consumer.",
    ],
    [
      "mayHaveUsed(peer, buffer, owner) && !wait(stream, peer, waits)",
      "false && !wait(stream, peer, waits)",
      "Memory is freed under a consumer on a peer.",
    ],
  ]),
  ...law("order/wait", [
    ["  if (!waitForContext(stream, device)) return false;\n", "", "Memory is freed under a consumer."],
    ["  waits.add(device);\n", "", "Each of many buffers that are released together costs the driver's calls."],
  ]),
  ...law("order/waitForAll", [
    [
      "  stream.synchronize();\n  stream.device",
      "  stream.device",
      "Foreign memory is freed while a stream of another context uses it.",
    ],
    [
      "  stream.synchronize();\n  stream.device.synchronize();\n",
      "  stream.synchronize();\n",
      "Foreign memory is freed while the default stream still uses it.",
    ],
  ]),
  ...law("order/orderOrElse", [
    ["      wait();\n", "", "Where the driver has no event to give, memory is freed under a consumer."],
    [
      "      if (!isSticky(error)) throw error;\n",
      "      throw error;\n",
      "In a lost context foreign memory is never given back.",
    ],
    ["      if (!isSticky(error)) throw error;\n", "", "Nobody learns that memory is freed under a consumer."],
  ]),
  ...law("order/mayHaveUsed", [
    [
      "peer === owner || !peer.isActive",
      "peer === owner",
      "A release takes up the contexts of devices that nobody uses.",
    ],
    [
      "buffer.owner !== undefined || ",
      "",
      "Managed memory that came as a device's own is freed under a consumer on another device.",
    ],
    [" || !peer.isActive", "", "A release makes contexts on devices that nobody uses."],
  ]),
  ...law("order/recordReady", [
    [
      "  if (others.length === 0) return first.recordNew();\n",
      "",
      "A stream is made for every export that has one home only.",
    ],
    [
      "  for (const stream of [first, ...others]) joined.wait(stream);\n",
      "",
      "A consumer reads before the producers have written.",
    ],
    ["  using joined =", "  const joined =", "Streams pile up."],
    [
      "[first, ...others]) joined.wait(stream)",
      "others) joined.wait(stream)",
      "The joined event omits the first home.",
    ],
  ]),
  ...law("order/hostWaitsBeforeReturn", [
    [
      "orderOrElse(() => stream.waitUntilReady(),",
      "orderOrElse(() => stream.synchronize(),",
      "Foreign memory is freed while the default stream, which the home stream waits for, still uses it.",
    ],
  ]),
  ...law("order/hostWaits", [
    ["  stream?.waitUntilReady();\n", "", "A consumer on the host reads before a stream has written."],
  ]),
  ...law("order/producerWaits", [
    [
      "  orderOrElse(() => producer.wait(consumer), () => waitForAll(consumer));\n",
      "",
      "The owner writes, or frees, what the consumer still reads.",
    ],
  ]),
  ...law("order/canReach", [
    [
      '  if (kind !== "device") return true;\n',
      "",
      "Pinned and managed memory is freed under a consumer on another device.",
    ],
    [
      "pool === null ? peer.canAccessPeer(owner) : pool.isReachedBy(peer)",
      "false",
      "Memory is freed under a consumer on a peer.",
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
  ...law("python/readExchangeApi", [
    [
      "    if (version.major === DLPACK_MAJOR_VERSION) {\n",
      "    if (true) {\n",
      "A table of another version is called.",
    ],
  ]),
  ...law("python/findExchangeApi", [
    [
      "capsules.PyCapsule_IsValid(capsule, cString(DLPACK_CAPSULE.EXCHANGE_API)) !== 1",
      "false",
      "Any capsule is a table.",
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
  ...law("cdata/onHost", [
    [
      "    byHome.set(buffer.stream, buffer);\n",
      "    byHome.set(null, buffer);\n",
      "One home is waited for of several.",
    ],
  ]),
  ...law("cdata/exportArrow", [
    [
      'event = where === "host" ? null : recordReady(memory)',
      'event = where === "host" ? null : recordReady([...memory].slice(-1))',
      "Only one home's work is marked.",
    ],
  ]),
  ...law("cdata/integerReader", [
    ["      order.synchronize();\n      return", "      return", "A length is read before it has come to the host."],
    [
      "    order.synchronize(); // it waits for the producer",
      "    // it waits for the producer",
      "A length is read early.",
    ],
  ]),
  ...law("cdata/waitFor", [
    [
      "  if (stream === undefined) ready.synchronize();\n  else stream.wait(ready);\n",
      "",
      "Nobody waits for the event.",
    ],
  ]),
  ...law("dlpack/returnAndRelease", [
    ["  returnToProducer(ptr, stream, producer);\n", "", "The producer goes on before its consumer is done."],
  ]),
  ...law("order/reclaim", [
    ["  pollAll();\n", "", "Allocating does not give back what consumers have released."],
  ]),
];
