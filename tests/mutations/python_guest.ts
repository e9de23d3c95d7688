/** The protective lines of the files written in Python. */
import { law, type Mutation } from "./mutation.ts";

/** Their mutations. */
export const pythonGuestMutations: readonly Mutation[] = [
  ...law("python/tensor_of", [
    [
      "    if min(array.strides or (), default=0) < 0:",
      "    if False:",
      "The process ends in torch because of negative strides, which torch lacks.",
    ],
  ]),
  ...law("python/convert_arrays", [
    ["    if type(value) is dict:\n", "    if False:\n", "An array in a dict argument is not converted."],
    [
      "        return type(value)(convert_arrays(",
      "        return list(convert_arrays(",
      "A tuple of arrays becomes a list.",
    ],
  ]),
  ...law("python/numpy_array.export_array", [
    [
      "    made = for_numpy(array)\n    array.tensor = tensor\n",
      "    array.tensor = tensor\n    made = for_numpy(array)\n",
      "A tensor that NumPy refuses is released by its maker and here.",
    ],
  ]),
  ...law("python/Array.__init__", [
    [
      "address or NOWHERE if device[0] == HOST else address",
      "address",
      "NumPy gets a different address for an array without elements.",
    ],
  ]),
  ...law("python/Array.__dlpack__", [
    [
      "        if not is_versioned and flags_of(self.tensor) & PADDED:\n",
      "        if False:\n",
      "A consumer mistakes elements of four bits that have a byte each for packed ones.",
    ],
  ]),
  ...law("python/Array.check_request", [
    ["        if stream == 0:\n", "        if False:\n", "An ambiguous stream is mistaken for another one."],
    ["        if device != self.device and copy is False:", "        if False:", "A forbidden copy is made."],
  ]),
  ...law("python/Array.__array__", [
    ["        if copy is False:\n", "        if False:\n", "An array that must not be copied is copied."],
  ]),
  ...law("python/Array.__array_function__", [
    [
      "        if self.device[0] != HOST and not all(issubclass(one, CausewayArray) for one in types):\n",
      "        if False:\n",
      "CuPy's functions fail for our arrays among its own.",
    ],
  ]),
  ...law("python/Part.__init__", [
    [
      "flags_of(whole.tensor) & (READ_ONLY | PADDED)",
      "flags_of(whole.tensor) & PADDED",
      "A read-only part is written.",
    ],
    ["        self.whole = whole\n", "        self.whole = None\n", "A part has no home."],
  ]),
  ...law("python/Part.home", [
    [
      "        return self.whole.home\n",
      "        return None\n",
      "A part of device memory is read before it is written.",
    ],
  ]),
  ...law("python/loaded", [
    ["_initializing", "_initialized", "NumPy is used while it is being loaded."],
  ]),
  ...law("python/ArrayMembers.__bool__", [
    [
      "        if self.size != 1:\n",
      "        if False:\n",
      "The truth of an array of many elements is that of the first.",
    ],
  ]),
  ...law("python/ArrayMembers.__iter__", [
    [
      "element_format is None or self.device[0] != HOST:",
      "element_format is None:",
      "The host reads device memory.",
    ],
  ]),
  ...law("python/ArrayMembers.__getitem__", [
    ["        if layout.width % 8:\n", "        if False:\n", "Elements that share bytes are read from wrong places."],
    ["        if self.device[0] != HOST:\n", "        if False:\n", "The host reads device memory, and crashes."],
  ]),
  ...law("python/select", [
    [
      "        start += first * step * layout.width // 8\n",
      "        start += first * step\n",
      "Wrong elements are read.",
    ],
  ]),
  ...law("python/position", [
    ["    if at is None:\n", "    if False:\n", "A truth value is accepted as an index."],
    ["    if not -extent <= at < extent:\n", "    if False:\n", "An index beyond the end counts from the other side."],
  ]),
  ...law("python/ArrowProtocol.__arrow_c_array__", [
    [
      "        check_request(requested_schema, self.arrow_schema)\n        one = self.arrow_array()\n        if one",
      "        one = self.arrow_array()\n        if one",
      "A consumer gets numbers although it requested text.",
    ],
  ]),
  ...law("python/ArrowProtocol.__arrow_c_device_array__", [
    [
      "        check_request(requested_schema, self.arrow_schema)\n        one = self.arrow_array()\n        return",
      "        one = self.arrow_array()\n        return",
      "A consumer gets numbers although it requested text.",
    ],
  ]),
  ...law("python/Arrow.__array__", [
    ["        if copy is False:\n", "        if False:\n", "NumPy is given a copy where it forbade one."],
    ["if types is None or", "if False and", "Times of the day are an error of ours."],
  ]),
  ...law("python/times_of", [
    ["[offset:].astype", ".astype", "A part of an array of times is the whole."],
    ["bits[offset : offset + length] == 0", "bits[:length] == 0", "Other times are null than in the array."],
  ]),
  ...law("python/Arrow.__del__", [
    [
      "        for kind, address in (ArrowSchema, self.schema), (ArrowArray, self.array):\n",
      "        for kind, address in ((ArrowArray, self.array),):\n",
      "Schemas are never released.",
    ],
  ]),
  ...law("python/elements_of", [
    [
      '    address = array.interface["data"][0] if counts[-1] else None\n',
      "    address = None\n",
      "Numbers are exported without their elements.",
    ],
  ]),
  ...law("python/check_options", [
    ["    if unknown:\n", "    if False:\n", "Options that a consumer passes are silently ignored."],
  ]),
  ...law("python/check_convertible", [
    [" or ours.n_children != wanted.n_children", "", "Children that do not exist are read."],
  ]),
  ...law("python/check_request", [
    [
      "        Release(ours.release)(ctypes.addressof(ours))\n",
      "        pass\n",
      "A schema that was compared is never released.",
    ],
  ]),
  ...law("python/ArrowStream.__del__", [
    [
      "            Release(self.stream.release)(ctypes.addressof(self.stream))\n",
      "            pass\n",
      "A stream that is never taken is never released.",
    ],
  ]),
  ...law("python/ArrowStream.__arrow_c_schema__", [
    [
      '        return put_in_capsule(self.schema(), b"arrow_schema")\n',
      "        return self.export(None)\n",
      "Requesting the schema of a stream consumes the stream.",
    ],
  ]),
  ...law("python/ArrowStream.export", [
    ["        check_request(requested, self.schema)\n", "", "A consumer gets numbers although it requested text."],
    [
      "        stream, self.stream = self.stream, None\n",
      "        stream = self.stream\n",
      "A stream is handed over twice.",
    ],
  ]),
  ...law("python/framed", [
    [
      "    optimized_or_newlocals = 3 ",
      "    optimized_or_newlocals = 0 ",
      "The locals() of a function are not those of __main__.",
    ],
  ]),
  ...law("python/copy_of", [
    [" and not layout.overlaps():", ":", "A write to one element of a copy changes others."],
    ["made.address - layout.first, layout.steps", "made.address, layout.steps", "A copy is read outside its elements."],
    ["lowest, span, home, True)", "lowest, span, home)", "A copy is read before it is complete."],
    [
      "    transfer(context, made.address, staged.address, layout.size, home, True)",
      "    transfer(context, made.address, staged.address, layout.size, home)",
      "Bytes that the driver is still copying are freed.",
    ],
  ]),
  ...law("python/copy_tensor", [
    [
      "        order_streams(array.context, home, consumer)\n",
      "        pass\n",
      "A consumer reads a copy before it is made.",
    ],
    [
      "COPIED | layout.padded",
      "COPIED",
      "A consumer mistakes elements of four bits that have a byte each for packed ones.",
    ],
  ]),
  ...law("python/make_tensor", [
    [
      "counters.retain((struct, axes, memory))",
      "counters.retain((struct, memory))",
      "A copy's shape is freed while its consumer uses it.",
    ],
  ]),
  ...law("python/allocating", [
    [
      "        try:\n            yield\n        finally:\n            driver.exchange_mode(ctypes.byref(mode))\n",
      "        yield\n",
      "After a copy, the thread may invalidate captures.",
    ],
  ]),
  ...law("python/OnDevice.__init__", [
    [
      "            if not self.address:\n                driver.release(number)\n",
      "            pass\n",
      "A context is retained without any memory.",
    ],
  ]),
  ...law("python/OnDevice.__del__", [
    ["            driver.release(self.number)\n", "            pass\n", "A context is retained for ever."],
  ]),
  ...law("python/Layout.overlaps", [
    [
      "            if step <= reach:\n                return True\n",
      "",
      "A write to one element of a copy changes others.",
    ],
  ]),
  ...law("python/without_guest", [
    [
      "        trace = trace.tb_next\n    return trace",
      "        break\n    return trace",
      "A traceback begins with Causeway's own frames.",
    ],
  ]),
  ...law("python/describe_exception", [
    [
      "            message += place_in_source(error)\n",
      "            pass\n",
      "A syntax error does not say where it is.",
    ],
    ["line.startswith((name, kind.__qualname__))", "True", "The source line of a syntax error replaces its message."],
    [
      "        except Exception:\n            text =",
      "        except ArithmeticError:\n            text =",
      "An exception that cannot be converted to text is lost.",
    ],
  ]),
  ...law("python/tensor_from_object", [
    [
      "        array.order_consumer(ordered)\n",
      "        array.order_consumer(1)\n",
      "A consumer is ordered on a stream that it does not use.",
    ],
  ]),
  ...law("python/Foreign.__init__", [
    [
      "        if kind != HOST and (kind != CUDA or number not in contexts):\n",
      "        if False:\n",
      "Memory of an unknown device is accepted.",
    ],
  ]),
  ...law("python/object_from_tensor", [
    [
      "    array = for_numpy(foreign)\n    foreign.tensor = address  # from here on it is ours to release\n",
      "    foreign.tensor = address\n    array = for_numpy(foreign)\n",
      "A tensor that NumPy refuses is released by its maker and here.",
    ],
  ]),
  ...law("python/Foreign.home", [
    [
      "        return None if kind == HOST else work_stream(number)\n",
      "        return None if kind == HOST else 1\n",
      "Results of a consumer are read before they are written.",
    ],
  ]),
  ...law("python/Foreign.__del__", [
    [
      "            Release(deleter)(self.tensor)\n",
      "            pass\n",
      "A tensor that was imported by the table is never released.",
    ],
  ]),
  ...law("python/allocate_tensor", [
    [
      "    if kind != HOST and not is_on_device:\n",
      "    if False:\n",
      "Host memory is returned for a device.",
    ],
    ["    if min(extents, default=0) < 0:\n", "    if False:\n", "Arrays of negative size are allocated."],
  ]),
  ...law("python/end_export", [
    [
      "            end_export(child.counter)\n        # else",
      "            pass\n        # else",
      "Children are never released with their parent.",
    ],
    [
      "        if child.struct.release or counters.is_released(child.counter):\n",
      "        if True:\n",
      "A child that was moved out is released with its parent.",
    ],
  ]),
  ...law("python/release_unclaimed", [
    [
      "        Release(one.release)(address)\n",
      "        pass\n",
      "An object that was never taken out of a capsule is kept.",
    ],
    [
      "    if one.release:\n",
      "    if True:\n",
      "An object that was taken out of a capsule is also released in it, at NULL.",
    ],
  ]),
  ...law("python/poll_exports", [
    [
      "    while poll_once():\n        pass",
      "    poll_once()",
      "Memory that a released export has held is kept until the next poll.",
    ],
  ]),
  ...law("python/poll_once", [
    [
      "            end_export(counter)\n            has_ended",
      "            counters.numbers.pop(counter)\n            has_ended",
      "Exports that consumers have released are kept for ever.",
    ],
    [
      "            elif count <= listed_only + 1:",
      "            elif count <= listed_only + 2:",
      "An export that a library is about to take is taken back.",
    ],
  ]),
  ...law("python/check_elements", [
    ['    for bit in "conj", "neg":\n', '    for bit in ("conj",):\n', "A tensor arrives with the wrong sign."],
  ]),
  ...law("python/request_capsule", [
    ["    check_elements(value)\n", "", "A tensor that is yet to be negated arrives with the wrong sign."],
  ]),
  ...law("python/unchanged", [
    [
      "    return exported if made_for == array.__array_interface__ else None\n",
      "    return exported\n",
      "An array whose type was changed is passed to Arrow with the old type.",
    ],
  ]),
  ...law("python/made_by_numpy", [
    ["READ_ONLY if readonly else 0", "0", "A part of a read-only array is written."],
    ["address if array.size else 0", "address", "An array without elements reports an address."],
    [
      "    if type.kind not in TYPE_CODES or not type.isnative or width >",
      "    if type.kind not in TYPE_CODES or width >",
      "Bytes are read in the wrong order.",
    ],
    [
      "    if any(step % width for step in array.strides):\n",
      "    if False:\n",
      "Elements with strides that are not a multiple of their size are read from wrong places.",
    ],
  ]),
  ...law("python/host_array_class.of_exported", [
    [
      " or (exported.format is None and exported.arrow is None):\n",
      ":\n",
      "PyArrow refuses an array with gaps instead of copying it.",
    ],
  ]),
  ...law("python/host_array_class.HostArray", [
    [
      "            if array is self:\n                return array\n",
      "",
      "Writing into one of our arrays returns a different array.",
    ],
    [
      "return array[()] if is_scalar else array.view",
      "return array.view",
      "A sum is an array without axes instead of a scalar.",
    ],
    [
      "return self.view(numpy.ndarray).__reduce__()",
      "return super().__reduce__()",
      "An array cannot be sent to another process.",
    ],
  ]),
  ...law("python/Counters.take_back", [
    ["        self.free.append(number)\n", "", "Each array that is exported takes another counter."],
    [
      "        ctypes.c_int32.from_address(address).value = 0\n",
      "",
      "The next export ends immediately, while its consumer uses it.",
    ],
  ]),
  ...law("python/BeforeOpenSSL", [
    ["ctypes.c_uint64(0x80000)", "ctypes.c_uint64(0)", "OpenSSL cleans up while threads end."],
    ['["_hashlib", "_ssl"]', '["_ssl"]', "OpenSSL comes along with hashlib unnoticed."],
    ['["_hashlib", "_ssl"]', '["_hashlib"]', "OpenSSL comes along with ssl unnoticed."],
    ["        self.names.remove(name)", "        pass", "The finder asks itself where the module is, without end."],
  ]),
  ...law("python/prepare_process", [
    ["    sys.stdout.reconfigure(line_buffering=True)\n", "    pass\n", "The last output is never written."],
    ["    signal.signal(signal.SIGINT, signal.SIG_DFL)\n", "    pass\n", "Ctrl-C no longer ends the process."],
    ["            signal(number, SIG_DFL)\n", "            pass\n", "A pool cannot end its workers."],
    ["        if getsignal(number) in (None, SIG_DFL):", "        if True:", "A worker loses Python's own handlers."],
  ]),
  ...law("python/hand_over", [
    [
      "BUFFER_OF_VORTEX, does_nothing)",
      "BUFFER_OF_VORTEX, None)",
      "A buffer that is never taken is kept for ever.",
    ],
    [
      "counters.retain((one, array))",
      "counters.retain(object())",
      "A consumer's struct is overwritten while it is in use.",
    ],
  ]),
  ...law("python/is_plain_exception", [
    ["        or error.__cause__ is not None\n", "", "The cause of an exception is not reported."],
    ["isinstance(error, WITH_MORE_TEXT))\n", "False)\n", "The place of a syntax error is not reported."],
  ]),
  ...law("python/brief_exception", [
    [' and "\\0" not in message', "", "A message is truncated at its first NUL."],
    [" and message == last", "", "A traceback ends with a stripped text."],
  ]),
  ...law("python/split_interface", [
    ["array if data is None else data", "data", "An array that has its buffer itself is refused."],
    [
      'buffer.cast("B") if buffer.nbytes > 0 else memoryview(b"")',
      "buffer",
      "The size of a buffer is that of its elements.",
    ],
  ]),
  ...law("python/call_here", [
    [
      "        clear_flags(ALL_FLAGS)\n",
      "        pass\n",
      "NumPy warns of invalid values after a function of JavaScript.",
    ],
  ]),
  ...law("python/drop_traces", [
    ["    drop_traceback(error, None)\n", "", "An exception keeps the variables of its frames alive."],
    [
      "cause_of(current), context_of(current), ",
      "",
      "What an exception was raised from keeps the variables of its frames.",
    ],
    ["*members_of(current)", "", "The exceptions of a group keep the variables of their frames."],
  ]),
  ...law("python/lone_count", [
    ["    if is_lone:\n", "    if True:\n", "An exception that a future has loses its traceback."],
    ["<= lone_count\n    brief", "< lone_count\n    brief", "An exception keeps the variables of its frames alive."],
  ]),
  ...law("python/places_of", [
    [
      "        trace = trace.tb_next\n    return texts",
      "        break\n    return texts",
      "A traceback ends at its first frame.",
    ],
  ]),
  ...law("python/remember", [
    [
      "lambda _: known_places.pop(key, None)",
      "lambda _: None",
      "A traceback shows the places of code that is gone.",
    ],
  ]),
  ...law("python/format_traceback", [
    ["    if not places:\n", "    if False:\n", "An exception that was never raised has a traceback."],
  ]),
  ...law("python/append_unclaimed", [
    ["        counters.numbers_for_javascript[2] = len(unclaimed)\n", "", "A capsule that was never taken is kept."],
  ]),
  ...law("python/Spec.describes", [
    [
      '            interface["shape"],\n',
      "            self.shape,\n",
      "An array whose shape was changed is passed to Arrow with the old shape.",
    ],
  ]),
  ...law("python/takes_tensors", [
    [">= (2, 1)", ">= (2, 0)", "NumPy 2.0 gets memory that it does not write to."],
  ]),
  ...law("python/export_tensor", [
    [
      '    numpy = loaded("numpy")\n    if numpy is None:\n        return None\n',
      '    numpy = sys.modules["numpy"]\n',
      "NumPy is used before it is loaded.",
    ],
  ]),
];
