"""Stands in for JavaScript, so that Causeway's Python runs in a plain interpreter: structs are made with ctypes.

Python's files are imported as the package ``guest``. Release callbacks count, as the machine code does.
"""

import ctypes
import gc
import os
import sys
import unittest

sources = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "python")
sys.path.insert(0, sources)

from guest import interpreter_api  # noqa: E402
from guest.arrow_structs import ArrowArray, ArrowSchema  # noqa: E402

RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def counting(context, cleared=None):
    """Return a release callback: it increments the counter whose address is in a field, and may clear another field."""

    def release(address):
        counter = ctypes.c_void_p.from_address(address + context).value
        ctypes.c_int32.from_address(counter).value += 1
        if cleared is not None:
            ctypes.c_void_p.from_address(address + cleared).value = None

    return RELEASE(release)


def address_of(callback):
    return ctypes.cast(callback, ctypes.c_void_p).value


versioned, legacy = counting(8), counting(48)
schema = counting(ArrowSchema.private_data.offset, ArrowSchema.release.offset)
array = counting(ArrowArray.private_data.offset, ArrowArray.release.offset)
interpreter_api.bind(ctypes.pythonapi._handle, *map(address_of, (versioned, legacy, schema, array)))

# Imported only now: these modules use the functions that bind() has bound.
from guest.array import Array  # noqa: E402
from guest.exports import capsule_structs, poll_exports, unclaimed  # noqa: E402
from guest.release_counters import counters  # noqa: E402

set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", ctypes.pythonapi))

# DLPack's code, bits, and the type string of some types.
TYPES = {
    "int8": (0, 8, "|i1", "c"),
    "int32": (0, 32, "<i4", "i"),
    "float32": (2, 32, "<f4", "f"),
    "float64": (2, 64, "<f8", "g"),
    "complex64": (5, 64, "<c8", None),
    "bool": (6, 8, "|b1", None),
    "uint4": (1, 4, None, None),
}


class Tensor(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class Owner:
    """The owner of the elements of an array, which is JavaScript otherwise. The array is made by make()."""

    alive = []  # an array may be released after the test has lost its owner

    def __init__(self, data, shape, name="float32", strides=None, flags=0, device=(1, 0)):
        self.alive.append(self)
        self.data = (ctypes.c_char * max(len(data), 1)).from_buffer_copy(data or b"\0")
        self.counter, self.shape, self.name, self.flags, self.device = ctypes.c_int32(), shape, name, flags, device
        code, bits, self.typestr, self.format = TYPES[name]
        dense, count = [], 1
        for extent in reversed(shape):
            dense.insert(0, count)
            count *= extent
        self.strides = tuple(strides or dense)
        self.is_dense = self.strides == tuple(dense)
        self.itemsize = bits // 8
        ndim = len(shape)
        self.axes = (ctypes.c_int64 * (2 * ndim))(*shape, *self.strides)
        at = ctypes.addressof(self.axes)
        self.tensor = Tensor(
            major=1,
            minor=3,
            context=ctypes.addressof(self.counter),
            deleter=address_of(versioned),
            flags=flags,
            data=ctypes.addressof(self.data) if count else None,
            device_type=device[0],
            device_id=device[1],
            ndim=ndim,
            code=code,
            bits=bits,
            lanes=1,
            shape=at if ndim else None,
            strides=at + 8 * ndim if ndim else None,
        )

    @property
    def is_released(self):
        return self.counter.value != 0

    def make(self, kind=Array, context=None, home=None, arrow=None):
        address = self.tensor.data or 0
        in_bytes = None if self.is_dense else tuple(step * self.itemsize for step in self.strides)
        return kind(
            ctypes.addressof(self.tensor),
            self.name,
            self.format if self.is_dense else None,
            arrow,
            self.shape,
            in_bytes,
            self.typestr,
            address,
            bool(self.flags & 1),
            self.device,
            context,
            home,
        )


def take(capsule):
    """Take the struct of a DLPack capsule, as a consumer does: return its address and the function that releases it."""
    name = interpreter_api.capsule_name(capsule)
    address = interpreter_api.capsule_pointer(capsule, name)
    kept_names.append(b"used_" + name)
    set_name(capsule, kept_names[-1])
    at = address + (16 if name == b"dltensor_versioned" else 56)
    return address, RELEASE(ctypes.c_void_p.from_address(at).value)


kept_names = []  # a capsule keeps the address of its name


def move_out(capsule, kind, name):
    """Move an Arrow struct out of its capsule, as a consumer does. It must be released by release()."""
    source = kind.from_address(interpreter_api.capsule_pointer(capsule, name))
    moved = kind.from_buffer_copy(source)
    source.release = None
    return moved


def release(struct):
    """Release an Arrow struct."""
    RELEASE(struct.release)(ctypes.addressof(struct))


def poll():
    """Collect reference cycles, and poll."""
    gc.collect()
    poll_exports()


def kept():
    """Return how many structs are kept for consumers, how many capsules are unclaimed, and how many structs in them."""
    return len(counters.retained), len(unclaimed), len(capsule_structs)


class GuestTest(unittest.TestCase):
    """A test after which as many structs and capsules are kept as before."""

    def setUp(self):
        poll()
        self.before = kept()

    def tearDown(self):
        poll()
        self.assertEqual(kept(), self.before)
