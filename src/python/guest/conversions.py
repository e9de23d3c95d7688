"""What JavaScript asks of objects that takes several calls of the C API."""


def call_method(value, name, *arguments):
    """Call a method by its name."""
    return getattr(value, name)(*arguments)


def integer_of(text):
    """Return an integer of any size."""
    return int(text, 0)


def pairs_of(mapping):
    """Return the items of a dict as a list, which JavaScript reads by index."""
    return list(mapping.items())
