/**
 * Copies that Python's side makes of arrays of ours, for consumers who ask for one: JavaScript, which copies otherwise,
 * cannot run then. A copy belongs to its consumer alone, and is freed when somebody looks after it was released.
 *
 * @module
 */

/** Python source, a part of the prelude. */
export const copyPrelude = `
import math
from struct import iter_unpack, pack, unpack
from types import SimpleNamespace

driver = None

def bind_memory(*addresses):
    "The driver's functions for memory of a device, by their addresses."
    global driver
    pointer, size, address, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int
    kinds = {"allocate": (pointer, size), "free": (address,), "copy": (address, address, size, pointer),
        "wait": (pointer,), "exchange_mode": (pointer,), "retain": (pointer, number), "release": (number,)}
    driver = SimpleNamespace(**{
        name: ctypes.CFUNCTYPE(ctypes.c_int, *kinds[name])(at) for name, at in zip(kinds, addresses)})

@contextlib.contextmanager
def allocating(context):
    "Makes a context current in which this thread allocates and frees, also while somebody captures a stream."
    with current(context):
        mode = ctypes.c_int(2) # relaxed: any other would spoil the capture
        driver.exchange_mode(ctypes.byref(mode))
        try: yield
        finally: driver.exchange_mode(ctypes.byref(mode))

class OnHost:
    "Memory of Python's, aligned as that of any array is."
    __slots__ = "memory", "address"

    def __init__(self, size):
        self.memory = (ctypes.c_char * (size + 255))()
        self.address = (ctypes.addressof(self.memory) + 255) // 256 * 256

class OnDevice:
    "Memory of a device, which keeps its primary context. To free it the driver waits for the work that may use it."
    __slots__ = "number", "context", "address"

    def __init__(self, number, context, size):
        self.number, self.context, self.address = number, context, 0
        held, address = ctypes.c_void_p(), ctypes.c_uint64()
        check(driver.retain(ctypes.byref(held), number), "kept a context")
        try:
            with allocating(context): check(driver.allocate(ctypes.byref(address), size), "allocated %d bytes" % size)
            self.address = address.value
        finally:
            if not self.address: driver.release(number)

    def __del__(self):
        if not self.address: return
        try:
            with allocating(self.context): driver.free(self.address)
        finally: driver.release(self.number)

TENSOR = "<QiiiBBHQQQ" # DLTensor: data, device, ndim, dtype, shape, strides, byte offset

def int64s(address, count):
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()

class Layout:
    "Where the elements of a versioned tensor lie."

    def __init__(self, tensor):
        flags, = unpack("<Q", ctypes.string_at(tensor + 24, 8))
        data, _, _, ndim, code, bits, lanes, shape, strides, offset = unpack(TENSOR, ctypes.string_at(tensor + 32, 48))
        self.type, self.padded = (code, bits, lanes), flags & PADDED
        self.start, self.shape = data + offset, int64s(shape, ndim)
        is_packed = lanes == 1 and not self.padded # less than a byte each, or whole bytes
        self.width = bits if is_packed else (bits * lanes + 7) // 8 * 8 # in bits
        self.count, self.dense = math.prod(self.shape), tuple(math.prod(self.shape[axis + 1:]) for axis in range(ndim))
        self.steps = int64s(strides, ndim) if strides else self.dense
        axes = list(zip(self.shape, self.steps, self.dense))
        self.is_dense = all(extent == 1 or step == dense for extent, step, dense in axes)
        self.size = (self.count * self.width + 7) // 8 # bytes of a dense copy
        ends = [step * (extent - 1) for extent, step, _ in axes]
        self.first = sum(min(end, 0) for end in ends) * self.width // 8 # bytes from the start to the lowest one
        self.end = ((sum(max(end, 0) for end in ends) + 1) * self.width + 7) // 8 # and to the end of the highest

    def overlaps(self):
        "Whether elements may share memory, as those of a broadcast array do."
        reach = 0
        for step, extent in sorted((abs(step), extent) for step, extent in zip(self.steps, self.shape) if extent > 1):
            if step <= reach: return True
            reach += step * (extent - 1)
        return False

def bytes_at(address, size):
    return (ctypes.c_char * size).from_address(address).raw # string_at ends at 2 GiB

def gathered(layout, start):
    "The elements in C order. The first one is at an address on the host."
    made = OnHost(layout.size)
    if layout.is_dense: ctypes.memmove(made.address, start, layout.size)
    elif layout.width % 8 == 0: gather(made.address, layout, layout.width // 8, start)
    else: # with a byte for each bit meanwhile
        span, chosen = layout.end - layout.first, OnHost(layout.count * layout.width)
        bits = int.from_bytes(bytes_at(start + layout.first, span), "little")
        text = ctypes.create_string_buffer(format(bits, "0%db" % (8 * span)).encode()[::-1])
        gather(chosen.address, layout, layout.width, ctypes.addressof(text) - 8 * layout.first)
        bits = int(bytes_at(chosen.address, layout.count * layout.width)[::-1], 2)
        ctypes.memmove(made.address, bits.to_bytes(layout.size, "little"), layout.size)
    return made

def gather(to, layout, itemsize, start):
    "Writes elements in C order, by the interpreter's own function for buffers, which is C."
    ndim, size = len(layout.shape), layout.count * itemsize
    axes = (ctypes.c_ssize_t * (2 * ndim))(*layout.shape, *(step * itemsize for step in layout.steps))
    at = ctypes.addressof(axes)
    view = pack("<QQqqiiQQQQQ", start, 0, size, itemsize, 1, ndim, 0, at, at + 8 * ndim, 0, 0) # Py_buffer
    to_contiguous(to, view, size, b"C")

def copy_of(array, layout, home, is_on_device):
    "Memory with a copy of an array, where its first element is, and its steps. On the host it is there on return."
    if array.device[0] != 2:
        made = gathered(layout, layout.start)
        return made, made.address, layout.dense
    (_, number), context = array.device, array.context
    lowest, span = layout.start + layout.first, layout.end - layout.first
    if is_on_device and not layout.overlaps(): # as it is, gaps and all: to leave them out takes a kernel
        made = OnDevice(number, context, span)
        transfer(context, made.address, lowest, span, home)
        return made, made.address - layout.first, layout.steps
    staged = OnHost(span)
    transfer(context, staged.address, lowest, span, home, True)
    if not layout.is_dense: staged = gathered(layout, staged.address - layout.first)
    if not is_on_device: return staged, staged.address, layout.dense
    made = OnDevice(number, context, layout.size)
    transfer(context, made.address, staged.address, layout.size, home, True) # which the staged bytes must outlive
    return made, made.address, layout.dense

def transfer(context, to, start, size, stream, is_waited_for=False):
    "Copies in the order of a stream."
    with current(context):
        check(driver.copy(to, start, size, stream), "copied %d bytes" % size)
        if is_waited_for: check(driver.wait(stream), "waited for a copy")

def copied_tensor(array, versioned, device, stream):
    "Address of a struct over a copy of an array, which is the consumer's alone."
    layout, home, consumer = Layout(array.tensor), array.home or 1, stream or 1
    is_on_device = device[0] == 2
    memory, data, steps = copy_of(array, layout, home, is_on_device) if layout.count else (None, 0, layout.dense)
    # The copy was made on the home stream: what the owner enqueues there next comes after it.
    if memory and is_on_device and stream != -1 and consumer != home: order(array.context, home, consumer)
    return tensor_over(memory, versioned, COPIED | layout.padded, data, device, layout.type, layout.shape, steps)

def tensor_over(memory, versioned, flags, data, device, type, shape, steps):
    "Address of a struct that keeps memory until its deleter is called."
    ndim = len(shape)
    axes = (ctypes.c_int64 * (2 * ndim))(*shape, *steps)
    at = ctypes.addressof(axes) if ndim else 0
    tensor = pack(TENSOR, data, *device, ndim, *type, at, at and at + 8 * ndim, 0)
    struct = ctypes.create_string_buffer(VERSIONED if versioned else LEGACY)
    counter, own = counters.keep((struct, axes, memory)), code[len(struct)]
    head = pack("<IIQQQ", 1, 3, counter, own, flags)
    ctypes.memmove(struct, head + tensor if versioned else tensor + pack("<QQ", counter, own), len(struct))
    return ctypes.addressof(struct)
`;
