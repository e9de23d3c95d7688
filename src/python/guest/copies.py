"""Copies of our arrays, for consumers that ask for one. JavaScript makes all other copies, but it cannot run then.

A copy belongs to its consumer alone. It is freed at the first poll after its release.
"""

import ctypes
from struct import pack

from .cuda_order import order_streams
from .device_memory import OnDevice, OnHost, transfer
from .dlpack_structs import COPIED, CUDA, LEGACY, TENSOR, VERSIONED, Layout
from .interpreter_api import release_code, to_contiguous
from .release_counters import counters


def bytes_at(address, size):
    """Return bytes at an address. ctypes.string_at() takes no more than 2 GiB."""
    return (ctypes.c_char * size).from_address(address).raw


def gathered(layout, start):
    """Return host memory with the elements in C order. The first one is at an address on the host."""
    made = OnHost(layout.size)
    if layout.is_dense:
        ctypes.memmove(made.address, start, layout.size)
    elif layout.width % 8 == 0:
        gather(made.address, layout, layout.width // 8, start)
    else:  # elements share bytes: meanwhile each bit takes a byte
        span, chosen = layout.end - layout.first, OnHost(layout.count * layout.width)
        bits = int.from_bytes(bytes_at(start + layout.first, span), "little")
        text = ctypes.create_string_buffer(format(bits, f"0{8 * span}b").encode()[::-1])
        gather(chosen.address, layout, layout.width, ctypes.addressof(text) - 8 * layout.first)
        bits = int(bytes_at(chosen.address, layout.count * layout.width)[::-1], 2)
        ctypes.memmove(made.address, bits.to_bytes(layout.size, "little"), layout.size)
    return made


def gather(to, layout, itemsize, start):
    """Write elements in C order, by the interpreter's own function for buffers, which is written in C."""
    ndim, size = len(layout.shape), layout.count * itemsize
    axes = (ctypes.c_ssize_t * (2 * ndim))(*layout.shape, *(step * itemsize for step in layout.steps))
    at = ctypes.addressof(axes)
    # Py_buffer: buf, obj, len, itemsize, readonly, ndim, format, shape, strides, suboffsets, internal
    view = pack("<QQqqiiQQQQQ", start, 0, size, itemsize, 1, ndim, 0, at, at + 8 * ndim, 0, 0)
    to_contiguous(to, view, size, b"C")


# law python/copy_of: python/copy
def copy_of(array, layout, home, is_on_device):
    """Return memory with a copy of an array, the address of its first element, and its steps.

    A copy on the host is complete on return, and one on the device in the order of the home stream.
    """
    if array.device[0] != CUDA:
        made = gathered(layout, layout.start)
        return made, made.address, layout.dense
    (_, number), context = array.device, array.context
    lowest, span = layout.start + layout.first, layout.end - layout.first
    if is_on_device and not layout.overlaps():  # as it is, gaps and all: to leave them out takes a kernel
        made = OnDevice(number, context, span)
        transfer(context, made.address, lowest, span, home)
        return made, made.address - layout.first, layout.steps
    staged = OnHost(span)
    transfer(context, staged.address, lowest, span, home, True)
    if not layout.is_dense:
        staged = gathered(layout, staged.address - layout.first)
    if not is_on_device:
        return staged, staged.address, layout.dense
    made = OnDevice(number, context, layout.size)
    transfer(context, made.address, staged.address, layout.size, home, True)  # the staged bytes must outlive it
    return made, made.address, layout.dense


# law python/copy_tensor: python/copy
def copy_tensor(array, is_versioned, device, stream):
    """Return the address of a struct over a copy of an array, which is the consumer's alone."""
    layout, home, consumer = Layout(array.tensor), array.home or 1, stream or 1
    is_on_device = device[0] == CUDA
    memory, data, steps = copy_of(array, layout, home, is_on_device) if layout.count else (None, 0, layout.dense)
    # The copy is made on the home stream: what the owner enqueues there next comes after it.
    if memory and is_on_device and stream != -1 and consumer != home:
        order_streams(array.context, home, consumer)
    return make_tensor(memory, is_versioned, COPIED | layout.padded, data, device, layout.type, layout.shape, steps)


# law python/make_tensor: python/copy
def make_tensor(memory, is_versioned, flags, data, device, type, shape, steps):
    """Return the address of a struct that keeps memory until its deleter is called."""
    ndim = len(shape)
    axes = (ctypes.c_int64 * (2 * ndim))(*shape, *steps)
    at = ctypes.addressof(axes) if ndim else 0
    tensor = pack(TENSOR, data, *device, ndim, *type, at, at and at + 8 * ndim, 0)
    struct = ctypes.create_string_buffer(VERSIONED if is_versioned else LEGACY)
    counter, deleter = counters.retain((struct, axes, memory)), release_code[len(struct)]
    if is_versioned:
        whole = pack("<IIQQQ", 1, 3, counter, deleter, flags) + tensor
    else:
        whole = tensor + pack("<QQ", counter, deleter)
    ctypes.memmove(struct, whole, len(struct))
    return ctypes.addressof(struct)
