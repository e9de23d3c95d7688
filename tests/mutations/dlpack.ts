/** The protective lines of DLPack and the array interfaces. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const dlpackMutations: readonly Mutation[] = [
  ...law("dlpack/toArrayInterface", [
    [
      '  hostWaitsToRead(array, "__array_interface__");\n',
      "",
      "A consumer on the host reads before a stream has written.",
    ],
  ]),
  ...law("dlpack/handleFor", [
    ["handle || CU_STREAM_LEGACY", "handle", "A consumer is given stream 0, which the protocol forbids."],
    ["  if (device !== consumer) {\n", "  if (false) {\n", "A consumer waits for another device's stream."],
  ]),
  ...law("dlpack/fromArrayInterface", [
    ["size, null, source)", "size, null, undefined)", "Foreign memory is collected while a view uses it."],
  ]),
  ...law("dlpack/fromCudaArrayInterface", [
    [
      '  checkPlace(options, "Cannot import by the CUDA Array Interface");\n',
      "",
      "A number given as the device is ignored.",
    ],
    [
      "producer ?? device.defaultStream",
      "producer",
      "The next user of the array is not ordered after work enqueued on it.",
    ],
    [
      "  orderStreams(producer, home);\n",
      "",
      "We read before the producer has written.",
    ],
    ["home, source, producer", "home, undefined, producer", "Foreign memory is collected while a view uses it."],
    [
      "size, device, source)",
      "size, device, undefined)",
      "Foreign memory is collected while a view uses it.",
    ],
  ]),
  ...law("dlpack/array_interface/returnToProducer", [
    [
      "  if (producer !== null && stream !== null) producerWaits(stream, producer);\n",
      "",
      "The producer overwrites what our work still reads.",
    ],
  ]),
  ...law("dlpack/returnAndRelease", [
    ["  returnToProducer(ptr, stream, producer);\n", "", "The producer continues before its consumer is done."],
  ]),
  ...law("dlpack/producerStream", [
    [
      "  if (handle === 0n) throw",
      "  if (false) throw",
      "Stream 0, which the protocol forbids, is mistaken for the default stream.",
    ],
  ]),
  ...law("dlpack/readInterface", [
    ["  if (mask !== undefined && mask !== null) throw", "  if (false) throw", "A mask is silently dropped."],
  ]),
  ...law("dlpack/Export.constructor", [
    ["    buffer.pin();\n", "", "Memory is freed while a consumer still uses it."],
    ["    addExport(this);\n", "", "An export is collected while its consumer still uses it."],
  ]),
  ...law("dlpack/Export.order", [
    ["return order.add(this.#buffer)", "return true", "Memory is freed while the consumer's work still uses it."],
  ]),
  ...law("dlpack/Export.finish", [
    ["    this.#slot.content.checkReleases();\n", "", "A second release is not reported."],
    ["    this.#pool.free(this.#slot);\n", "", "Each export leaks its struct."],
    ["    this.#buffer.unpin();\n", "", "Memory that was exported is never freed."],
  ]),
  ...law("dlpack/Export.drop", [
    ["if (this.index >= 0) ", "", "A tensor that is closed late releases one that another consumer has."],
    ["this.#slot.content.release();", "", "A tensor that is never taken is never released."],
  ]),
  ...law("dlpack/toDlpack", [
    [
      '  if (plan.hostWaits) hostWaitsToRead(array, "toDlpack()");\n',
      "",
      "A consumer on the host reads before a stream has written.",
    ],
    ["array.readonly ? flag.readOnly : 0", "0", "A consumer writes read-only memory."],
    [
      "    return exportInOrder(copied, plan, flag.isCopied);\n",
      "    return exportInOrder(copied, { ...plan, consumer: null }, flag.isCopied);\n",
      "A consumer reads a copy before it is made.",
    ],
    ["    copied.buffer.close(); // the export keeps it pinned\n", "", "Each copy leaks."],
    ["  pollIfMany();\n", "", "Exports that are never polled pile up."],
  ]),
  ...law("dlpack/exportInOrder", [
    [
      "  if (device !== null && consumer !== null) consumerWaits(buffer, consumerStream(device, consumer));\n",
      "",
      "A consumer reads before the producer has written.",
    ],
  ]),
  ...law("dlpack/foreignStart", [
    ["  if (data === 0n) throw", "  if (false) throw", "Elements at NULL are accepted."],
    ["(before !== 0 && ptr <= 0n) || ", "", "Memory before the start of the address space is accepted."],
    [" || endsBeyondMemory(ptr, size)", "", "Memory beyond the end of the address space is accepted."],
  ]),
  ...law("dlpack/fromDlpack", [
    [
      '  checkPlace(options, "Cannot import by DLPack");\n',
      "",
      "A number given as the device is treated as an unknown device.",
    ],
  ]),
  ...law("dlpack/ask", [
    ["    tensor.close(); // made for this import only\n", "", "A tensor made by a refused source leaks."],
    ["  if (isOfOtherCopy(made)) {", "  if (false) {", "Views of another copy of the package are refused."],
  ]),
  ...law("dlpack/streamFor", [
    [
      "  if (type !== undefined && !usable.has(type)) throw wrongType(type);\n",
      "",
      "A producer on ROCm is given a CUDA stream.",
    ],
    [
      "isOnHost || stream === undefined",
      "stream === undefined",
      "A producer on the host is asked for order, and refuses.",
    ],
  ]),
  ...law("dlpack/take", [
    ["(flags & readOnly) !== 0", "false", "Read-only memory can be written."],
    ["  tensor?.take(); // only now", "  // only now", "Two consumers take one tensor."],
    [
      "  const owner = tensor ?? undefined;\n",
      "  const owner = tensor ?? undefined;\n  tensor?.take();\n  tensor = null;\n",
      "A tensor is lost if its buffer cannot be created.",
    ],
    ["const owner = tensor ?? undefined;", "const owner = undefined;", "An import does not name its source."],
    [
      "device === null ? null : stream === undefined ? device.defaultStream : stream",
      "null",
      "Foreign memory is freed while our work still uses it.",
    ],
    [
      "stream === undefined ? device.defaultStream : stream",
      "stream ?? null",
      "An import without a stream has no home.",
    ],
  ]),
  ...law("dlpack/checkAddress", [
    [" || !isAddress(address)", "", "An address outside the address space is read."],
    ["address === 0n || ", "", "A struct at NULL is read."],
    [
      '  if ((low & 7) !== 0) throw misaligned("address", address);\n',
      "",
      "A struct at an unaligned address is read.",
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
    [" || device.ordinal !== deviceId", "", "Memory is used on a device that does not have it."],
    [
      "why = device === undefined",
      "why = false",
      "Memory of a device that was not given fails with an unexplained error.",
    ],
  ]),
  ...law("dlpack/planExport", [
    [
      "isElsewhere || endsWithWorker || copy",
      "isElsewhere || copy",
      "Tensors that end with their Worker are exported in place.",
    ],
    ["  if (endsWithWorker && copy === false) {", "  if (false) {", "A consumer that does not allow a copy gets one."],
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
      "A consumer that requests no order gets an error.",
    ],
    ["isOnHost || stream === null", "stream === null", "A stream is made to wait for a copy that is on the host."],
    [
      "buffer.device === null && stream === undefined;",
      "stream === undefined;",
      "The host waits although a consumer's stream does.",
    ],
    [
      "buffer.device === null && stream === undefined;",
      "buffer.device === null;",
      "The host waits although no order is requested.",
    ],
    [
      "  if (array.readonly && !isVersioned && !isCopied) {\n",
      "  if (false) {\n",
      "A consumer writes read-only memory.",
    ],
    [
      "array.readonly && !isVersioned && !isCopied",
      "array.readonly && !isVersioned",
      "A copy is refused because the original is read-only.",
    ],
    [
      "  if (!isVersioned && dtype.dlpack.padded) {\n",
      "  if (false) {\n",
      "A consumer mistakes padded elements for packed ones.",
    ],
    ["?? newest)[0] >= 1", "?? newest)[1] >= 1", "A consumer gets a struct that it cannot read."],
  ]),
  ...law("dlpack/checkRequest", [
    ["  checkOptions(options, toDlpackOptionNames);\n", "", "Unknown options are ignored."],
  ]),
  ...law("dlpack/isWantedElsewhere", [
    [
      "wanted[0] !== type || wanted[1] !== id",
      "wanted[0] !== type",
      "A consumer of one device gets the memory of another.",
    ],
    [
      "  return wanted[0] !== type || wanted",
      "  return wanted",
      "A consumer on the host gets device memory.",
    ],
  ]),
  ...law("dlpack/checkStream", [
    ["  if (buffer.device === null && !isElsewhere) {\n", "  if (false) {\n", "Host memory silently gets no order."],
    [
      "  if (stream === 0n) throw",
      "  if (false) throw",
      "Stream 0, which DLPack forbids, is mistaken for the default stream.",
    ],
  ]),
  ...law("dlpack/planCopy", [
    [
      "type === DLDeviceType.kDLCPU && id === 0",
      "type === DLDeviceType.kDLCPU",
      "A host that does not exist is mistaken for this one.",
    ],
  ]),
  ...law("dlpack/findDevice", [
    ["known.ordinal === id ? known : known.siblings[id]", "known", "A copy is made on the device that has the array."],
  ]),
  ...law("dlpack/homeOn", [
    [
      "  if (buffer.stream?.device === device) return buffer.stream;\n",
      "",
      "A copy on the array's own device is ordered differently than the array.",
    ],
    [
      "return stream instanceof CudaStream && stream.device === device ? stream : device",
      "return device",
      "A copy is made on the default stream, where it waits for other work.",
    ],
    [
      "return stream instanceof CudaStream && stream.device === device ? stream",
      "return stream instanceof CudaStream ? stream",
      "A copy's home stream belongs to another device.",
    ],
  ]),
  ...law("dlpack/readTensor", [
    [
      "  if ((low & offsetInPage) > lastWhole) checkVersion(readForeign(ptr, versionBytes));\n",
      "",
      "A struct of another version is read beyond its end.",
    ],
  ]),
  ...law("dlpack/checkVersion", [
    [
      "  if (major === DLPACK_MAJOR_VERSION) return;\n",
      "  if (true) return;\n",
      "A struct of another version is read as if it were ours.",
    ],
  ]),
  ...law("dlpack/stridesAfterShape", [
    [
      " && behind + 8 * ndim <= maxForeignBytes",
      "",
      "Strides that are too far away are read together with the shape.",
    ],
    [
      "  if (bytes.getInt32(shapeAt + 4, littleEndian) !== bytes.getInt32(stridesAt + 4, littleEndian)) return 0;\n",
      "",
      "Strides that are far away are read from behind the shape.",
    ],
    ["behind > 0 && behind", "behind", "Strides before the shape are read from behind it."],
  ]),
  ...law("dlpack/checkPointers", [
    ["  if (ndim < 0 || ndim > MAX_NDIM) {\n", "  if (false) {\n", "The axis count of a broken struct is trusted."],
  ]),
  ...law("dlpack/checkPointer", [
    ["  if (isNull(bytes, pointerAt)) throw", "  if (false) throw", "A shape at NULL is read."],
    [
      "  if ((bytes.getUint32(pointerAt, littleEndian) & 7) === 0) return;\n",
      "  return;\n",
      "A shape at an unaligned address is read.",
    ],
  ]),
  ...law("dlpack/TensorBlock.write", [
    ["    this.checkReleases(); // by the previous consumer\n", "", "A late second release is not reported."],
    ["head.shape, ndim === 0 ? nullPointer : pointers.shape", "head.shape, pointers.shape", "A scalar has a shape."],
    ["    writeInt64(words, this.#counter, 0);\n", "", "A new export counts as released, like the one before it."],
    [
      "    writeWords(words, head.deleter, pointers.deleter);\n",
      "",
      "A consumer calls the deleter that the previous consumer left.",
    ],
  ]),
  ...law("dlpack/tensorPool", [
    ["ndim <= fewAxes ? small : large", "small", "A tensor of many axes overwrites the next one."],
  ]),
  ...law("dlpack/DlpackTensor.constructor", [
    ["    finalizer.register(this, state);\n", "", "A tensor that is never taken is never released."],
  ]),
  ...law("dlpack/DlpackTensor.ptr", [
    ["    if (closed) throw", "    if (false) throw", "Two consumers take one tensor, and release it twice."],
  ]),
  ...law("dlpack/DlpackTensor.take", [
    ["    this.#state.closed = true;\n", "", "Two consumers take one tensor, and release it twice."],
  ]),
  ...law("dlpack/DlpackTensor.close", [
    ["    if (this.#state.closed) return;\n", "", "Closing releases a tensor that a consumer has."],
  ]),
  ...law("dlpack/callDeleter", [
    [
      "  if (deleter !== 0n) callRelease(deleter, ptr);",
      "  callRelease(deleter, ptr);",
      "A tensor without a deleter crashes.",
    ],
  ]),
];
