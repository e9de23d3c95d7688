"""DLPack's table of C functions: arrays of ours are exported, and those of others imported, without ``__dlpack__``.

Borrowed tensors are not in the table: nothing would say when the consumer's work on them is done.
"""

import ctypes
from struct import pack

from .array import LEGACY_STREAM, Array, CausewayArray, contexts
from .copies import make_tensor
from .device_memory import ALIGNMENT, OnDevice
from .dlpack_structs import CUDA, HOST, PADDED, READ_ONLY, TENSOR, VERSIONED, flags_of, int64s, tensor_fields
from .exports import poll_exports
from .interpreter_api import Release, function, new_capsule
from .numpy_array import for_numpy, plain_array

work_streams = None  # the address of the handles of streams, one for each device, and how many there are
dtypes = None  # name, type string and Arrow format, by DLPack's code, bits, lanes, and whether elements are padded
table = None  # the struct with the functions


def work_stream(number):
    """Return the stream on which consumers of the table work on a device."""
    address, count = work_streams
    return ctypes.c_uint64.from_address(address + 8 * number).value if number < count else LEGACY_STREAM


# law python/tensor_from_object: python/current_work_streams
def tensor_from_object(address):
    """Return a tensor over an array of ours, ready for work on the stream that the table names."""
    array, ordered = plain_array(ctypes.cast(address, ctypes.py_object).value), None
    kind, number = array.device
    # The driver is called without the interpreter's lock: another stream may be named meanwhile.
    while kind != HOST and work_stream(number) != ordered:
        ordered = work_stream(number)
        array.order_consumer(ordered)
    return array.share_tensor(True)


class Foreign(Array):
    """An array over a tensor that a library has made: it has the library's deleter."""

    __slots__ = ()

    # law python/Foreign.__init__: python/offered_exchange_api
    def __init__(self, address):
        self.tensor = None  # it is not ours to release before nothing is left that may fail
        data, kind, number, ndim, code, bits, lanes, shape, strides, offset = tensor_fields(address + 32)
        flags = flags_of(address)
        key = (code, bits, lanes, bool(flags & PADDED))
        if key not in dtypes:
            raise BufferError(f"cannot take elements of the DLPack type ({code}, {bits}, {lanes})")
        if kind != HOST and (kind != CUDA or number not in contexts):
            raise BufferError(f"cannot take memory of device ({kind}, {number}): no array of ours was ever there")
        name, typestr, format = dtypes[key]
        extents = int64s(shape, ndim)
        dense, step = [], 1
        for extent in reversed(extents):
            dense.insert(0, step)
            step *= max(extent, 1)
        steps = int64s(strides, ndim) if strides else tuple(dense)
        is_dense = 0 in extents or all(a == b for a, b, extent in zip(steps, dense, extents) if extent != 1)
        width = 8 if flags & PADDED else bits * lanes
        in_bytes = None if is_dense else tuple(step * width // 8 for step in steps)
        Array.__init__(
            self,
            None,
            name,
            format if is_dense else None,
            None,
            extents,
            in_bytes,
            typestr,
            data + offset,
            bool(flags & READ_ONLY),
            (kind, number),
            contexts.get(number) if kind == CUDA else None,
            None,
        )

    # law python/Foreign.home: python/current_work_streams
    @property
    def home(self):
        """The stream that the table names: the library made the array on it, or on one that was named before.

        What is done on a stream comes after all that was done on those named before it.
        """
        kind, number = self.device
        return None if kind == HOST else work_stream(number)

    # law python/Foreign.__del__: python/offered_exchange_api
    def __del__(self):
        if self.tensor is None:
            return
        deleter = ctypes.c_uint64.from_address(self.tensor + 16).value
        if deleter:
            Release(deleter)(self.tensor)


# law python/object_from_tensor: python/guest
def object_from_tensor(address):
    """Return the address of a new reference to an array over a tensor, which the array releases."""
    foreign = Foreign(address)
    array = for_numpy(foreign)
    foreign.tensor = address  # from here on it is ours to release
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    return id(array)


c_library = ctypes.CDLL(None)
malloc = function(c_library, "malloc", ctypes.c_void_p, ctypes.c_size_t)
free_address = ctypes.cast(c_library.free, ctypes.c_void_p).value


# law python/allocate_tensor: python/offered_exchange_api
def allocate_tensor(prototype):
    """Return a new tensor like a DLTensor. On the host it is one block of malloc(), and its deleter is free()."""
    _, kind, number, ndim, code, bits, lanes, shape, _, _ = tensor_fields(prototype)
    is_on_device = kind == CUDA and number in contexts
    if kind != HOST and not is_on_device:
        raise BufferError(
            f"cannot allocate on device ({kind}, {number}): only on the host, and on CUDA devices where arrays of ours "
            "have been"
        )
    extents = int64s(shape, ndim)
    if min(extents, default=0) < 0:
        raise BufferError(f"cannot allocate an array of shape {extents!r}")
    steps, count = [], 1
    for extent in reversed(extents):
        steps.insert(0, count)
        count *= extent
    head, size = VERSIONED + 16 * ndim, (count * bits * lanes + 7) // 8
    if size >= 2**62:
        raise MemoryError(f"cannot allocate {size} bytes")
    if is_on_device:
        poll_exports()  # what was released is freed first: a consumer may allocate in a loop
        memory = OnDevice(number, contexts[number], size) if size else None
        data = memory.address if size else 0
        return make_tensor(memory, True, 0, data, (CUDA, number), (code, bits, lanes), extents, steps)
    block = malloc(head + ALIGNMENT - 1 + size)
    if not block:
        raise MemoryError(f"cannot allocate {size} bytes")
    data = (block + head + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT if size else 0
    at = block + VERSIONED if ndim else 0
    tensor = pack("<IIQQQ", 1, 3, 0, free_address, 0)
    tensor += pack(TENSOR, data, HOST, 0, ndim, code, bits, lanes, at, at and at + 8 * ndim, 0)
    ctypes.memmove(block, tensor + pack(f"<{2 * ndim}q", *extents, *steps), head)
    return block


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p)
def managed_tensor_allocator(prototype, out, context, set_error):
    """The table's function that allocates. A callback reports errors: an exception's type and its message."""
    try:
        out[0] = allocate_tensor(prototype)
        return 0
    except BaseException as error:
        report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(set_error)
        report(context, type(error).__name__.encode(), str(error).encode())
        return -1


def offer_exchange_api(known, from_object, to_object, current_work_stream, *streams):
    """Let libraries find the table, whose other functions are machine code, on the type of our arrays."""
    global dtypes, table, work_streams
    work_streams = streams
    dtypes = {(code, bits, 1, padded): (name, typestr, format) for name, code, bits, padded, typestr, format in known}
    allocator = ctypes.cast(managed_tensor_allocator, ctypes.c_void_p).value
    # DLPackExchangeAPI: version, prev_api, allocator, from and to object, the DLTensor's function, the current stream
    functions = (0, allocator, from_object, to_object, 0, current_work_stream)
    table = ctypes.create_string_buffer(pack("<IIQQQQQQ", 1, 3, *functions))
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    CausewayArray.__dlpack_c_exchange_api__ = capsule
