"""Arrow's dates and times as NumPy's: datetime64 and timedelta64.

In an array of NumPy's integers, pandas and Polars, which have dates and times as Arrow does, would take them for
numbers.
"""

import ctypes

TIME_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def time_type(format):
    """Return the types of an Arrow format's stored integers and of NumPy's times; None where NumPy has none."""
    if format == "tdD":
        return "<i4", "datetime64[D]"
    if format == "tdm":
        return "<i8", "datetime64[ms]"
    kind = {"ts": "datetime64", "tD": "timedelta64"}.get(format[:2])
    return None if kind is None else ("<i8", f"{kind}[{TIME_UNITS[format[2]]}]")


# law python/times_of: python/arrow_capsules
def times_of(numpy, array, stored, wanted):
    """Return a copy of an ArrowArray as NumPy's times, in UTC. A null is NaT."""
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
