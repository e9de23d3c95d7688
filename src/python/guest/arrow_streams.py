"""What Arrow streams of ours are to consumers of Arrow."""

import ctypes
from ctypes import c_void_p

from .arrow_requests import check_options, check_request
from .arrow_structs import ArrowArrayStream, ArrowDeviceArrayStream, ArrowSchema
from .exports import copy_struct, put_in_capsule
from .interpreter_api import Release


class StreamSchema:
    """The schema of a stream of ours, which is asked for once: a stream makes it anew only a few times."""

    __slots__ = ("struct",)

    def __init__(self, stream):
        self.struct = ArrowSchema()
        get_schema = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p)(stream.get_schema)
        if get_schema(ctypes.addressof(stream), ctypes.addressof(self.struct)) != 0:
            raise BufferError("cannot export an Arrow stream: its get_schema has failed")

    def __del__(self):
        if self.struct.release:
            Release(self.struct.release)(ctypes.addressof(self.struct))


class ArrowStream:
    """An Arrow stream of ours, which is read once: it owns a copy of the stream's struct, which no other code uses.

    It is empty until JavaScript gives the stream away by ``fill()``.
    """

    __slots__ = "stream", "stream_schema", "__weakref__"

    def __init__(self):
        self.stream = self.stream_schema = None

    def fill(self, address):
        self.stream = self.kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(self.kind)))
        self.stream_schema = StreamSchema(self.stream)

    # law python/ArrowStream.__del__: python/arrow_capsules
    def __del__(self):
        if self.stream is not None:
            Release(self.stream.release)(ctypes.addressof(self.stream))

    # law python/ArrowStream.__arrow_c_schema__: python/arrow_capsules
    def __arrow_c_schema__(self):
        return put_in_capsule(self.schema(), b"arrow_schema")

    def schema(self):
        return copy_struct(ArrowSchema, ctypes.addressof(self.stream_schema.struct), self.stream_schema).struct

    # law python/ArrowStream.export: python/arrow_capsules
    def export(self, requested):
        if self.stream is None:
            raise BufferError("cannot export an Arrow stream twice: it is read once")
        check_request(requested, self.schema)
        stream, self.stream = self.stream, None
        return put_in_capsule(stream, self.name)


class HostStream(ArrowStream):
    """A stream of arrays on the host."""

    __slots__ = ()
    kind, name = ArrowArrayStream, b"arrow_array_stream"

    def __arrow_c_stream__(self, requested_schema=None):
        return self.export(requested_schema)


class DeviceStream(ArrowStream):
    """A stream of arrays on a device."""

    __slots__ = ()
    kind, name = ArrowDeviceArrayStream, b"arrow_device_array_stream"

    def __arrow_c_device_stream__(self, requested_schema=None, **options):
        check_options(options)
        return self.export(requested_schema)
