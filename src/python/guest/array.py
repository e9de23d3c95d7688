"""An array of JavaScript in Python.

An ``Array`` owns a versioned DLPack tensor, whose deleter is machine code that counts its release. Each call of
``__dlpack__`` copies the struct of the tensor, as often as a library likes. Once the deleter of a copy was called, on
whatever thread, that copy keeps the ``Array`` alive only until the next poll. When nothing keeps it alive any more, it
releases the tensor that it owns.
"""

import ctypes
import math
import sys

from .array_members import ArrayMembers
from .arrow_arrays import ArrowProtocol, elements_of, schema_of
from .copies import copy_tensor, make_tensor
from .cuda_order import order_streams
from .dlpack_structs import HOST, LEGACY, PADDED, READ_ONLY, VERSIONED, Layout, flags_of
from .exports import append_unclaimed
from .interpreter_api import new_capsule, release_code, release_tensor
from .release_counters import counters

NOWHERE = 256  # the address of an array without elements on the host, which is never read
LEGACY_STREAM = 1  # how DLPack calls CUDA's legacy default stream
contexts = {}  # of the devices on which arrays of ours have been, by the device's number


class CausewayArray:
    """All arrays of ours. torch's functions take them as tensors over the same memory."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        """Call a function of torch that was given an array of ours."""
        return function(*convert_arrays(arguments, tensor_of), **convert_arrays(keywords or {}, tensor_of))


# law python/tensor_of: peers/torch
def tensor_of(array):
    """Return torch's tensor over the memory of an array."""
    if min(array.strides or (), default=0) < 0:  # torch.from_dlpack would end the process
        raise ValueError(
            "torch has no tensors with negative strides: copy the array first, in JavaScript with toDense()"
        )
    return sys.modules["torch"].from_dlpack(array)


# law python/convert_arrays: python/guest, python/export_array
def convert_arrays(value, convert):
    """Return a value in which each array of ours is converted."""
    if isinstance(value, CausewayArray):
        return convert(value)
    if type(value) in (list, tuple):
        return type(value)(convert_arrays(one, convert) for one in value)
    if type(value) is dict:
        return {key: convert_arrays(one, convert) for key, one in value.items()}
    return value


class Array(CausewayArray, ArrowProtocol, ArrayMembers):
    """An array of JavaScript, for consumers of any of the protocols.

    If it was an Arrow array (``arrow``), consumers of Arrow get it as that.
    """

    __slots__ = "tensor", "name", "format", "arrow", "interface", "device", "context", "home_stream", "__weakref__"

    # law python/Array.__init__: python/numpy, python/export_array
    def __init__(self, tensor, name, format, arrow, shape, strides, typestr, address, readonly, device, context, home):
        self.tensor, self.name, self.format, self.arrow, self.device = tensor, name, format, arrow, device
        self.context, self.home_stream = context, home
        if context is not None:
            contexts[device[1]] = context
        self.interface = {
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
            # Given NULL, NumPy allocates memory of its own, or refuses.
            "data": (address or NOWHERE if device[0] == HOST else address, readonly),
        }

    def __del__(self):
        if self.tensor is not None:
            release_tensor(self.tensor)

    @property
    def home(self):
        """The stream that consumers must wait for, or None."""
        return self.home_stream

    def arrow_schema(self):
        return schema_of(self) if self.arrow is None else self.arrow.arrow_schema()

    def arrow_array(self):
        return elements_of(self) if self.arrow is None else self.arrow.arrow_array()

    def __dlpack_device__(self):
        return self.device

    # law python/Array.__dlpack__: python/export_array
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        device = self.device if dl_device is None else tuple(dl_device)
        self.check_request(device, copy, stream)
        is_versioned = max_version is not None and max_version[0] >= 1
        is_copy = copy or device != self.device
        if not is_versioned and not is_copy and self.interface["data"][1]:
            raise BufferError(
                "cannot export a read-only array to a consumer of DLPack below 1.0, which has no flag that says so"
            )
        if not is_versioned and flags_of(self.tensor) & PADDED:
            raise BufferError(
                f"cannot export {self.name} to a consumer of DLPack below 1.0, which has no flag that says that "
                "each element has a byte of its own"
            )
        if is_copy:
            address = copy_tensor(self, is_versioned, device, stream)
        else:
            self.order_consumer(stream)
            address = self.share_tensor(is_versioned)
        capsule = new_capsule(address, b"dltensor_versioned" if is_versioned else b"dltensor", None)
        append_unclaimed(capsule)
        return capsule

    # law python/Array.check_request: python/guest, python/export_array
    def check_request(self, device, copy, stream):
        """Raise an exception if a consumer asks for what is not supported."""
        if device != self.device and device != (HOST, 0):
            raise BufferError(
                f"cannot export memory of device {self.device!r} as memory of {device!r}: only where it is, or as a "
                "copy on the host, (1, 0)"
            )
        if device != self.device and copy is False:
            raise BufferError(f"cannot export memory of device {self.device!r} on the host without a copy")
        if self.device[0] == HOST and stream is not None and stream != -1:
            raise BufferError("cannot order host memory on a stream")
        if stream == 0:
            raise BufferError("stream 0 is ambiguous: pass 1 for the legacy default stream")

    def share_tensor(self, is_versioned):
        """Return the address of a struct over the same memory, which keeps this array until its deleter is called."""
        tensor = ctypes.string_at(self.tensor, VERSIONED)
        if not is_versioned:
            tensor = tensor[32:] + bytes(LEGACY - 48)
        struct = ctypes.create_string_buffer(tensor, len(tensor))
        address = ctypes.addressof(struct)
        context, deleter = (8, 16) if is_versioned else (48, 56)  # where manager_ctx and deleter lie
        ctypes.c_void_p.from_address(address + context).value = counters.retain((self, struct))
        ctypes.c_void_p.from_address(address + deleter).value = release_code[len(tensor)]
        return address

    def order_consumer(self, stream):
        """Make a consumer's stream wait for the home stream. With -1 the consumer wants no order."""
        home, consumer = self.home, stream or LEGACY_STREAM
        if self.device[0] != HOST and stream != -1 and home is not None and consumer != home:
            order_streams(self.context, home, consumer)

    @property
    def __array_interface__(self):
        if self.device[0] != HOST or self.interface["typestr"] is None:
            raise AttributeError("__array_interface__")
        return self.interface

    @property
    def __cuda_array_interface__(self):
        if self.device[0] == HOST or self.interface["typestr"] is None:
            raise AttributeError("__cuda_array_interface__")
        return dict(self.interface, stream=self.home)

    # law python/Array.__array__: python/guest, python/export_array
    def __array__(self, dtype=None, copy=None):
        import numpy

        if self.device[0] != HOST:
            raise TypeError("cannot make a NumPy array of device memory: copy it first")
        if self.interface["typestr"] is None:
            try:
                import ml_dtypes
            except ImportError:
                ml_dtypes = None
            if not hasattr(ml_dtypes, self.name):
                raise TypeError(
                    f"cannot make a NumPy array of {self.name}, which NumPy has no type for: see the bytes as uint8"
                    + ("" if ml_dtypes else ", or install ml_dtypes, which may have one")
                )
            kind = numpy.dtype(getattr(ml_dtypes, self.name))
            bits = f"<u{kind.itemsize}" if kind.itemsize > 1 else "|u1"
            array = numpy.asarray(MemoryAs(self, bits)).view(kind)
        else:
            array = numpy.asarray(MemoryAs(self, self.interface["typestr"]))
        if dtype is None or dtype == array.dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"cannot make an array of {dtype} from one of {array.dtype} without a copy")
        return array.astype(dtype)

    def __array_ufunc__(self, function, method, *arguments, **keywords):
        """Call an element-wise function of NumPy, which writes into an Array (``out=``) through this method alone."""
        import numpy

        return getattr(function, method)(
            *convert_arrays(arguments, numpy.asarray), **convert_arrays(keywords, numpy.asarray)
        )

    # law python/Array.__array_function__: python/numpy, python/export_array
    def __array_function__(self, function, types, arguments, keywords):
        """Call any other function of NumPy."""
        import numpy

        if self.device[0] != HOST and not all(issubclass(one, CausewayArray) for one in types):
            return NotImplemented
        return function(*convert_arrays(arguments, numpy.asarray), **convert_arrays(keywords, numpy.asarray))

    def __repr__(self):
        return f"<array of shape {self.shape!r} and type {self.name}>"


class MemoryAs:
    """The memory of an Array under another type string, for NumPy."""

    def __init__(self, array, typestr):
        self.array, self.__array_interface__ = array, dict(array.interface, typestr=typestr)


class Part(Array):
    """Some of the elements of an array, which it keeps."""

    __slots__ = ("whole",)

    # law python/Part.__init__: python/numpy
    def __init__(self, whole, layout, start, shape, steps):
        tensor = make_tensor(
            whole,
            True,
            flags_of(whole.tensor) & (READ_ONLY | PADDED),
            start if math.prod(shape) else 0,
            whole.device,
            layout.type,
            shape,
            steps,
        )
        own = Layout(tensor)
        self.whole = whole
        super().__init__(
            tensor,
            whole.name,
            whole.format if own.is_dense else None,
            None,
            shape,
            None if own.is_dense else tuple(step * own.width // 8 for step in steps),
            whole.interface["typestr"],
            start,
            whole.interface["data"][1],
            whole.device,
            whole.context,
            None,
        )

    # law python/Part.home: python/numpy
    @property
    def home(self):
        return self.whole.home
