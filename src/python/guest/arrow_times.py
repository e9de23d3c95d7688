"""Arrow arrays of ours whose elements are dates and times: to NumPy, datetime64 and timedelta64.

They are none of NumPy's arrays: pandas and Polars, which have dates and times as Arrow does, would take those for
numbers, and so would PyArrow a time zone for none.
"""

import ctypes

from .array_members import loaded
from .arrow_arrays import Arrow
from .arrow_structs import ArrowDeviceArray, ArrowSchema
from .dlpack_structs import HOST

TIME_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def time_type(format):
    """Return the types of an Arrow format's stored integers and of NumPy's times; None where NumPy has none."""
    if format == "tdD":
        return "<i4", "datetime64[D]"
    if format == "tdm":
        return "<i8", "datetime64[ms]"
    kind = {"ts": "datetime64", "tD": "timedelta64"}.get(format[:2])
    return None if kind is None else ("<i8", f"{kind}[{TIME_UNITS[format[2]]}]")


class ArrowTimes(Arrow):
    """An Arrow array of dates or times."""

    __slots__ = ()

    # law python/ArrowTimes.__array__: python/arrow_capsules
    def __array__(self, dtype=None, copy=None):
        """Return a copy, with times in UTC. A null is NaT."""
        if copy is False:
            raise ValueError("NumPy's times are a copy of Arrow's")
        format = ctypes.string_at(ArrowSchema.from_address(self.schema).format).decode()
        one, types = ArrowDeviceArray.from_address(self.array), time_type(format)
        if types is None or one.device_type != HOST:
            what = f"format {format}" if one.device_type == HOST else f"format {format} on a device"
            raise TypeError(f"NumPy has no type for an Arrow array of {what}: import it by pyarrow.array()")
        made = times_of(loaded("numpy"), one.array, *types)
        return made if dtype is None else made.astype(dtype)

    def __len__(self):
        return ArrowDeviceArray.from_address(self.array).array.length

    def __iter__(self):
        return iter(self.__array__())


# law python/times_of: python/arrow_capsules
def times_of(numpy, array, stored, wanted):
    """Return a copy of an ArrowArray as NumPy's times."""
    length, offset = array.length, array.offset
    if length == 0:
        return numpy.empty(0, wanted)
    validity, data = (ctypes.c_void_p * 2).from_address(array.buffers)

    def elements(at, kind, count):
        size = numpy.dtype(kind).itemsize * count
        return numpy.frombuffer((ctypes.c_char * size).from_address(at), kind)

    made = elements(data, stored, offset + length)[offset:].astype("<i8").view(wanted)
    if validity is not None:
        bits = numpy.unpackbits(elements(validity, "u1", (offset + length + 7) // 8), bitorder="little")
        made[bits[offset : offset + length] == 0] = "NaT"
    return made
