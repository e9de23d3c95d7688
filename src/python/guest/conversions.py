"""What JavaScript asks of objects that takes several calls of the C API."""

import ctypes


def call_method(value, name, *arguments):
    """Call a method by its name."""
    return getattr(value, name)(*arguments)


def integer_of(text):
    """Return an integer of any size."""
    return int(text, 0)


def pairs_of(mapping):
    """Return the items of a dict as a list, which JavaScript reads by index."""
    return list(mapping.items())


def lists_of_doubles(address, most):
    """Return a function that makes a list of the first floats of some memory."""
    doubles = memoryview((ctypes.c_double * most).from_address(address)).cast("B").cast("d")
    return lambda count: doubles[:count].tolist()
