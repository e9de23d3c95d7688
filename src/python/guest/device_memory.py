"""Memory for the copies that Python makes: on the host, and on a device by the driver itself."""

import contextlib
import ctypes
from types import SimpleNamespace

from .cuda_order import check, current

ALIGNMENT = 256  # bytes, as DLPack asks for
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

driver = None  # functions of the driver by name, from bind_memory() on


def bind_memory(*addresses):
    """Bind the driver's functions for memory of a device, by their addresses."""
    global driver
    pointer, size, address, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int
    types = {
        "allocate": (pointer, size),
        "free": (address,),
        "copy": (address, address, size, pointer),
        "wait": (pointer,),
        "exchange_mode": (pointer,),
        "retain": (pointer, number),
        "release": (number,),
    }
    functions = {name: ctypes.CFUNCTYPE(ctypes.c_int, *types[name])(at) for name, at in zip(types, addresses)}
    driver = SimpleNamespace(**functions)


# law python/allocating: python/copy
@contextlib.contextmanager
def allocating(context):
    """Make a context current in which this thread allocates and frees, also while a stream is captured."""
    with current(context):
        mode = ctypes.c_int(RELAXED)  # in any other mode the capture would be invalidated
        driver.exchange_mode(ctypes.byref(mode))
        try:
            yield
        finally:
            driver.exchange_mode(ctypes.byref(mode))


def transfer(context, to, start, size, stream, is_waited_for=False):
    """Copy bytes in the order of a stream."""
    with current(context):
        check(driver.copy(to, start, size, stream), f"copy {size} bytes")
        if is_waited_for:
            check(driver.wait(stream), "wait for a copy")


class OnHost:
    """Aligned memory of Python."""

    __slots__ = "memory", "address"

    def __init__(self, size):
        self.memory = (ctypes.c_char * (size + ALIGNMENT - 1))()
        self.address = (ctypes.addressof(self.memory) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


class OnDevice:
    """Memory of a device. It retains the primary context. To free it, the driver waits for the work that uses it."""

    __slots__ = "number", "context", "address"

    # law python/OnDevice.__init__: python/copy
    def __init__(self, number, context, size):
        self.number, self.context, self.address = number, context, 0
        retained, address = ctypes.c_void_p(), ctypes.c_uint64()
        check(driver.retain(ctypes.byref(retained), number), "retain a context")
        try:
            with allocating(context):
                check(driver.allocate(ctypes.byref(address), size), f"allocate {size} bytes")
            self.address = address.value
        finally:
            if not self.address:
                driver.release(number)

    # law python/OnDevice.__del__: python/copy
    def __del__(self):
        if not self.address:
            return
        try:
            with allocating(self.context):
                driver.free(self.address)
        finally:
            driver.release(self.number)
