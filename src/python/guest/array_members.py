"""What an array of ours tells Python's code about itself, and its elements: as NumPy's arrays do, without NumPy."""

import math
import operator
import sys
from struct import iter_unpack, unpack

from .copies import bytes_at, gathered
from .dlpack_structs import HOST, Layout


# law python/loaded: python/numpy
def loaded(name):
    """Return a module if a program has imported it and it is loaded in full; else None."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def numpy_type(array):
    """Return the type of an array's elements in NumPy or ml_dtypes, if they are loaded and have it; else None."""
    numpy, ml_dtypes = loaded("numpy"), loaded("ml_dtypes")
    if numpy is None:
        return None
    if array.interface["typestr"] is not None:
        return numpy.dtype(array.interface["typestr"])
    return numpy.dtype(getattr(ml_dtypes, array.name)) if hasattr(ml_dtypes, array.name) else None


# How struct reads an element, by what its type string ends in. A complex number is read as two.
ELEMENT_FORMATS = {
    "b1": "?",
    "i1": "b",
    "u1": "B",
    "i2": "<h",
    "u2": "<H",
    "i4": "<i",
    "u4": "<I",
    "i8": "<q",
    "u8": "<Q",
    "f2": "<e",
    "f4": "<f",
    "f8": "<d",
    "c8": "<ff",
    "c16": "<dd",
}


class ArrayMembers:
    """Shape, type and elements."""

    __slots__ = ()

    @property
    def shape(self):
        return self.interface["shape"]

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def dtype(self):
        """The type in NumPy, if it is loaded and has it; else the type's name."""
        type = numpy_type(self)
        return self.name if type is None else type

    @property
    def itemsize(self):
        return (self.layout.width + 7) // 8

    @property
    def nbytes(self):
        return self.layout.size

    @property
    def strides(self):
        """Strides in bytes; None where elements share bytes."""
        layout = self.layout
        return None if layout.width % 8 else tuple(step * layout.width // 8 for step in layout.steps)

    @property
    def T(self):  # noqa: N802 -- as NumPy's arrays call it
        from .array import Part

        layout = self.layout
        return Part(self, layout, layout.start, layout.shape[::-1], layout.steps[::-1])

    @property
    def layout(self):
        return Layout(self.tensor)

    def __len__(self):
        if not self.shape:
            raise TypeError("cannot tell the length of an array without axes")
        return self.shape[0]

    # law python/ArrayMembers.__bool__: python/numpy
    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of an array of {self.size} elements is ambiguous")
        return bool(self[(0,) * self.ndim])

    # law python/ArrayMembers.__iter__: python/numpy
    def __iter__(self):
        length, layout, element_format = len(self), self.layout, self.element_format
        if len(layout.shape) > 1 or element_format is None or self.device[0] != HOST:
            return (self[i] for i in range(length))
        dense = gathered(layout, layout.start)
        return map(value_of, iter_unpack(element_format, bytes_at(dense.address, layout.size)))

    # law python/ArrayMembers.__getitem__: python/numpy
    def __getitem__(self, key):
        from .array import Part

        layout, keys = self.layout, key if type(key) is tuple else (key,)
        if layout.width % 8:
            raise TypeError(f"cannot take elements of {self.name} one by one: they share bytes. See the bytes as uint8")
        start, shape, steps = select(layout, keys)
        if shape or any(key is Ellipsis for key in keys):
            return Part(self, layout, start, shape, steps)
        if self.device[0] != HOST:
            raise TypeError("cannot read an element of device memory on the host: copy the array to the host first")
        if self.element_format is None:
            return Part(self, layout, start, (), ()).__array__()[()]
        return value_of(unpack(self.element_format, bytes_at(start, layout.width // 8)))

    @property
    def element_format(self):
        return ELEMENT_FORMATS.get((self.interface["typestr"] or "")[1:])


def value_of(numbers):
    """Return an element of the one or two numbers that it consists of."""
    return numbers[0] if len(numbers) == 1 else complex(*numbers)


# law python/select: python/numpy
def select(layout, keys):
    """Return the address of the first element that keys select, the shape and the steps: as NumPy's basic indexing."""
    ellipses = [at for at, key in enumerate(keys) if key is Ellipsis]
    indexed = sum(key is not None and key is not Ellipsis for key in keys)
    if len(ellipses) > 1:
        raise IndexError("cannot index an array by more than one ellipsis")
    if indexed > len(layout.shape):
        raise IndexError(f"cannot index {len(layout.shape)} axes by {indexed} keys")
    at = ellipses[0] if ellipses else len(keys)
    keys = (*keys[:at], *[slice(None)] * (len(layout.shape) - indexed), *keys[at + 1 :])
    start, shape, steps, axes = layout.start, [], [], zip(layout.shape, layout.steps)
    for key in keys:
        if key is None:
            shape.append(1)
            steps.append(0)
            continue
        extent, step = next(axes)
        if isinstance(key, slice):
            chosen = range(extent)[key]
            shape.append(len(chosen))
            steps.append(step * chosen.step)
            first = chosen.start if chosen else 0
        else:
            first = position(key, extent)
        start += first * step * layout.width // 8
    return start, tuple(shape), tuple(steps)


# law python/position: python/numpy
def position(key, extent):
    """Return the position that an integer means on an axis: negative ones count from the end."""
    try:
        at = None if isinstance(key, bool) else operator.index(key)
    except TypeError:
        at = None
    if at is None:
        raise TypeError(
            f"cannot index an array by {key!r}: expected integers, slices, None and an ellipsis. numpy.asarray(array) "
            "takes all that NumPy knows"
        )
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for an axis of {extent}")
    return at % extent
