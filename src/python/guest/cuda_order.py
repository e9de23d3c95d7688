"""The order between CUDA streams, by the driver itself: no JavaScript can run when a library asks for an array."""

import contextlib
import ctypes
from ctypes import c_void_p

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
WITHOUT_TIMING = 2  # CU_EVENT_DISABLE_TIMING

cuda = None  # functions of the driver, from bind_cuda() on
orders = None  # what was ordered since JavaScript asked; None until it asks for the first time


def bind_cuda(*addresses):
    """Bind the functions of the driver that order two streams, by their addresses."""
    global cuda
    pointer, unsigned = c_void_p, ctypes.c_uint
    types = [(pointer,), (pointer,), (pointer, unsigned), (pointer,), (pointer, pointer), (pointer, pointer, unsigned)]
    cuda = [ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(at) for at, arguments in zip(addresses, types)]


def check(code, action="order two streams"):
    """Raise an exception if a call of the driver has failed."""
    if code == 0:
        return
    kind = MemoryError if code == OUT_OF_MEMORY else RuntimeError
    raise kind(f"the CUDA driver returned error {code} when asked to {action}")


@contextlib.contextmanager
def current(context):
    """Make a context current for a while, and afterwards the one that was current before."""
    push, pop, *_ = cuda
    check(push(context))
    try:
        yield
    finally:
        pop(ctypes.byref(c_void_p()))


def order_streams(context, home, consumer):
    """Make the consumer's stream wait for what is enqueued on the home stream."""
    _, _, create, destroy, record, wait = cuda
    event = c_void_p()
    with current(context):
        check(create(ctypes.byref(event), WITHOUT_TIMING))
        try:
            check(record(event, home))
            check(wait(consumer, event, 0))
        finally:
            destroy(event)
    if orders is not None:
        orders.append((context, home, consumer))


def take_orders():
    """Return what was ordered since the last call. The first call returns nothing, and starts the list."""
    global orders
    taken, orders = orders, []
    return taken or []


class RecordedEvent:
    """An event after all that is enqueued on a stream now."""

    def __init__(self, context, stream):
        _, _, create, _, record, _ = cuda
        self.context, self.event = context, c_void_p()
        with current(context):
            check(create(ctypes.byref(self.event), WITHOUT_TIMING))
            check(record(self.event, stream))

    def __del__(self):
        push, pop, _, destroy, _, _ = cuda
        if self.event and push(self.context) == 0:
            destroy(self.event)
            pop(ctypes.byref(c_void_p()))
