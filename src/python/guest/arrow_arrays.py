"""What views and Arrow arrays of ours are to consumers of Arrow.

A consumer takes the structs over, and gives each back by its release callback, on whatever thread. Each time a library
asks, the structs are copied or made anew. A copy keeps the original alive, which is released when nothing holds it.
"""

import ctypes
import itertools
from ctypes import c_void_p

from .arrow_requests import check_options, check_request
from .arrow_structs import ArrowArray, ArrowDeviceArray, ArrowSchema
from .arrow_times import time_type, times_of
from .cuda_order import RecordedEvent
from .dlpack_structs import HOST
from .exports import copy_struct, make_node, put_in_capsule
from .interpreter_api import Release


class ArrowProtocol:
    """The protocol's methods, for classes that have ``arrow_schema()`` and ``arrow_array()``."""

    __slots__ = ()

    def __arrow_c_schema__(self):
        return put_in_capsule(self.arrow_schema(), b"arrow_schema")

    # law python/ArrowProtocol.__arrow_c_array__: python/arrow_capsules
    def __arrow_c_array__(self, requested_schema=None):
        check_request(requested_schema, self.arrow_schema)
        one = self.arrow_array()
        if one.device_type != HOST:
            Release(one.array.release)(ctypes.addressof(one))
            raise BufferError("cannot export device memory as an array of the host: ask for __arrow_c_device_array__")
        return self.__arrow_c_schema__(), put_in_capsule(one.array, b"arrow_array")

    # law python/ArrowProtocol.__arrow_c_device_array__: python/arrow_capsules
    def __arrow_c_device_array__(self, requested_schema=None, **options):
        check_options(options)
        check_request(requested_schema, self.arrow_schema)
        one = self.arrow_array()
        return self.__arrow_c_schema__(), put_in_capsule(one, b"arrow_device_array")


class Arrow(ArrowProtocol):
    """An Arrow array of ours: it owns an ArrowSchema and an ArrowDeviceArray, by their addresses."""

    __slots__ = "schema", "array", "__weakref__"

    def __init__(self, schema, array):
        self.schema, self.array = schema, array

    # law python/Arrow.__del__: python/arrow_capsules
    def __del__(self):
        for kind, address in (ArrowSchema, self.schema), (ArrowArray, self.array):
            Release(kind.from_address(address).release)(address)

    def arrow_schema(self):
        return copy_struct(ArrowSchema, self.schema, self).struct

    def arrow_array(self):
        one = ArrowDeviceArray.from_buffer_copy(ctypes.string_at(self.array, ctypes.sizeof(ArrowDeviceArray)))
        one.array = copy_struct(ArrowArray, self.array, self).struct
        return one

    # law python/Arrow.__array__: python/arrow_capsules
    def __array__(self, dtype=None, copy=None):
        """Return dates and times as NumPy's. Of anything else NumPy would make an array of one object."""
        one, types = ArrowDeviceArray.from_address(self.array), time_type(self.format)
        if types is None or one.device_type != HOST:
            what = f"format {self.format}" if one.device_type == HOST else f"format {self.format} on a device"
            raise TypeError(f"cannot make a NumPy array of an Arrow array of {what}: import it by pyarrow.array()")
        if copy is False:
            raise ValueError("NumPy's times are a copy of Arrow's")
        import numpy  # NumPy has asked, or what iterates needs it

        made = times_of(numpy, one.array, *types)
        return made if dtype is None else made.astype(dtype)

    def __len__(self):
        return ArrowDeviceArray.from_address(self.array).array.length

    def __iter__(self):
        return iter(self.__array__())

    @property
    def format(self):
        return ctypes.string_at(ArrowSchema.from_address(self.schema).format).decode()

    def __repr__(self):
        return f"<Arrow array of format {self.format}>"


def arrow_type_of(array):
    """Return what an Array is in Arrow's terms: its format, its shape, and how many elements each axis has in all."""
    shape, format = array.interface["shape"], array.format
    if format is None:
        raise BufferError(
            f"cannot export {array.name} to Arrow: it has no such type, or none with gaps between elements"
        )
    if len(shape) == 0:
        raise BufferError("cannot export an array without axes to Arrow: reshape it to (1,)")
    return format.encode(), shape, list(itertools.accumulate(shape, lambda count, extent: count * extent))


def schema_of(array):
    """Return the ArrowSchema of an Array: lists of fixed size for all axes but the first."""
    format, shape, _ = arrow_type_of(array)
    inner = None
    for axis in reversed(range(len(shape))):
        is_last = axis == len(shape) - 1
        texts = [
            ctypes.create_string_buffer(text)
            for text in (format if is_last else b"+w:%d" % shape[axis + 1], b"item" if axis else b"")
        ]
        one = ArrowSchema(format=ctypes.addressof(texts[0]), name=ctypes.addressof(texts[1]))
        inner = make_node(one, texts, [] if is_last else [inner])
    return inner.struct


# law python/elements_of: python/arrow_capsules
def elements_of(array):
    """Return the ArrowDeviceArray of an Array. On a device its event is recorded on the home stream."""
    _, shape, counts = arrow_type_of(array)
    event = None if array.home is None else RecordedEvent(array.context, array.home)
    address = array.interface["data"][0] if counts[-1] else None
    inner = None
    for axis in reversed(range(len(shape))):
        is_last = axis == len(shape) - 1
        buffers = (c_void_p * 2)(None, address)
        one = ArrowArray(length=counts[axis], n_buffers=2 if is_last else 1, buffers=ctypes.addressof(buffers))
        inner = make_node(one, (array, buffers, event), [] if is_last else [inner])
    kind, number = array.device
    return ArrowDeviceArray(
        array=inner.struct,
        device_id=-1 if kind == HOST else number,
        device_type=kind,
        sync_event=None if event is None else ctypes.addressof(event.event),
    )
