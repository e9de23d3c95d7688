/**
 * The Python half of the table of C functions by which arrays of ours can be handed over without a call of `__dlpack__`, and
 * arrays of others become ours.
 *
 * @module
 */

/** Python source, run once in the namespace of the prelude, if arrays are offered by a table. */
export const tablePrelude = `
def work_stream(number):
    "The stream on which consumers of the table work on a device."
    address, count = work_streams
    return ctypes.c_uint64.from_address(address + 8 * number).value if number < count else 1

def hand_out(address):
    "A tensor over an array of ours, for whoever works on the stream that the table names."
    array, ordered = plain(ctypes.cast(address, ctypes.py_object).value), None
    kind, number = array.device
    while kind != 1 and work_stream(number) != ordered: # another may be named while the driver is called without the lock
        ordered = work_stream(number)
        array.order(ordered)
    return array.copied(True)

class Foreign(Array):
    "An array that somebody else has made for us, by DLPack: its tensor has a deleter of its own."
    __slots__ = ()

    def __init__(self, address):
        self.tensor = None # not ours before all is known to be right
        flags, = unpack("<Q", ctypes.string_at(address + 24, 8))
        data, kind, number, ndim, code, bits, lanes, shape, strides, offset = unpack(
            TENSOR, ctypes.string_at(address + 32, 48))
        if (code, bits, lanes, bool(flags & PADDED)) not in types:
            raise BufferError("cannot take elements of the DLPack type (%d, %d, %d)" % (code, bits, lanes))
        if kind != 1 and (kind != 2 or number not in contexts):
            raise BufferError("cannot take memory of device (%d, %d): no array of ours was ever there" % (kind, number))
        name, typestr, format = types[code, bits, lanes, bool(flags & PADDED)]
        extents = int64s(shape, ndim)
        dense, step = [], 1
        for extent in reversed(extents): dense.insert(0, step); step *= max(extent, 1)
        steps = int64s(strides, ndim) if strides else tuple(dense)
        is_dense = 0 in extents or all(a == b for a, b, extent in zip(steps, dense, extents) if extent != 1)
        width = 8 if flags & PADDED else bits * lanes
        in_bytes = None if is_dense else tuple(step * width // 8 for step in steps)
        Array.__init__(self, None, name, format if is_dense else None, None, extents, in_bytes, typestr, data + offset,
            bool(flags & 1), (kind, number), contexts.get(number) if kind == 2 else None, None)
        self.tensor = address # from here on it is ours to release

    @property
    def home(self):
        "Whoever has made it works on the stream that the table names, which comes after all that it has named before."
        kind, number = self.device
        return None if kind == 1 else work_stream(number)

    def __del__(self):
        if self.tensor is None: return
        own, = unpack("<Q", ctypes.string_at(self.tensor + 16, 8))
        if own: deleter(own)(self.tensor)

def take_in(address):
    "A new reference to an array over a tensor, which is released when the array goes."
    array = for_numpy(Foreign(address))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    return id(array)

c_library = ctypes.CDLL(None)
malloc = function(c_library, "malloc", ctypes.c_void_p, ctypes.c_size_t)
free_address = ctypes.cast(c_library.free, ctypes.c_void_p).value

def allocated(prototype):
    "A new tensor. In host memory it is one piece of the C allocator, so that its deleter is the C library's free."
    _, kind, number, ndim, code, bits, lanes, shape, _, _ = unpack(TENSOR, ctypes.string_at(prototype, 48))
    is_on_device = kind == 2 and number in contexts
    if kind != 1 and not is_on_device: raise BufferError("cannot allocate on device (%d, %d): only on the host, and on CUDA "
        "devices where arrays of ours have been" % (kind, number))
    extents = int64s(shape, ndim)
    if min(extents, default=0) < 0: raise BufferError("cannot allocate an array of shape %r" % (extents,))
    steps, count = [], 1
    for extent in reversed(extents): steps.insert(0, count); count *= extent
    head, size = VERSIONED + 16 * ndim, (count * bits * lanes + 7) // 8
    if size >= 2 ** 62: raise MemoryError("cannot allocate %d bytes" % size)
    if is_on_device:
        look() # what was let go of comes first: a consumer may allocate in a loop
        memory = OnDevice(number, contexts[number], size) if size else None
        data = memory.address if size else 0
        return tensor_over(memory, True, 0, data, (2, number), (code, bits, lanes), extents, steps)
    block = malloc(head + 255 + size)
    if not block: raise MemoryError("cannot allocate %d bytes" % size)
    data = (block + head + 255) // 256 * 256 if size else 0
    at = block + VERSIONED if ndim else 0
    tensor = pack("<IIQQQ", 1, 3, 0, free_address, 0) + pack(
        TENSOR, data, 1, 0, ndim, code, bits, lanes, at, at and at + 8 * ndim, 0)
    ctypes.memmove(block, tensor + pack("<%dq" % (2 * ndim), *extents, *steps), head)
    return block

@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p)
def allocate(prototype, out, context, set_error):
    try:
        out[0] = allocated(prototype)
        return 0
    except BaseException as error:
        say = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(set_error)
        say(context, type(error).__name__.encode(), str(error).encode())
        return -1

def offer_table(known, give, take, stream, *words):
    "Makes the table known. Borrowed tensors are not in it: nobody would say when their consumer's work is done."
    global types, table, work_streams
    work_streams = words # where the handles of streams are, one for each device, and how many
    types = {(code, bits, 1, padded): (name, typestr, format) for name, code, bits, padded, typestr, format in known}
    table = ctypes.create_string_buffer(pack(
        "<IIQQQQQQ", 1, 3, 0, ctypes.cast(allocate, ctypes.c_void_p).value, give, take, 0, stream))
    Ours.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
`;
