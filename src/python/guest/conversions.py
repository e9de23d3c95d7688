"""What JavaScript asks of objects that takes several calls of the C API."""

import ctypes
import sys


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


def is_datetime_type(kind):
    """Whether instances of a type are moments of the module datetime, which is not loaded for that."""
    datetime = sys.modules.get("datetime")
    return datetime is not None and issubclass(kind, datetime.datetime)


def is_set_type(kind):
    """Whether instances of a type are sets."""
    return issubclass(kind, (set, frozenset))


# law python/is_keyed: python/conversions
def is_keyed(kind):
    """Whether a mapping's type has no attributes but those of its class, as far as it says."""
    return kind.__setattr__ is object.__setattr__ and not hasattr(kind, "__getattr__")


def datetime_of(milliseconds):
    """Return the moment so many milliseconds after the beginning of 1970, in UTC."""
    import datetime

    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return epoch + datetime.timedelta(milliseconds=milliseconds)


def local_seconds(moment):
    """Return the timestamp of a moment in local time, without its fraction."""
    import datetime

    def seconds(year):
        rest = moment.month, moment.day, moment.hour, moment.minute, moment.second
        return int(datetime.datetime(year, *rest, fold=moment.fold).timestamp())

    try:
        return seconds(moment.year)
    except (ValueError, OverflowError):  # it looks a day around the moment, beyond the first or the last year
        cycles = 1 if moment.year < 5000 else -1
        return seconds(moment.year + 400 * cycles) - cycles * 146097 * 86400


# law python/milliseconds_of: python/conversions, python/frame
def milliseconds_of(moment):
    """Return how many milliseconds after the beginning of 1970 a moment is; None for one that is missing (pandas' NaT).

    A moment without a time zone is local time, but of pandas in UTC, as in the timestamp() of each.
    """
    import datetime

    if moment != moment:
        return None
    if moment.tzinfo is None:
        if not hasattr(moment, "tz_localize"):  # astimezone() is an hour off in the one that clocks skip
            return local_seconds(moment) * 1000 + moment.microsecond // 1000
        moment = moment.tz_localize("UTC")
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    return (moment - epoch) // datetime.timedelta(milliseconds=1)


# law python/step_of: python/generators
def step_of(generator, method, value):
    """Call a method of a generator, and return a tuple of what it yields; an empty one at its end."""
    try:
        return (getattr(generator, method)(value),)
    except StopIteration:
        return ()


def run_with(manager, body):
    """Call a function with what a context manager gives."""
    with manager as value:
        body(value)


def call_special(value, name):
    """Call a method that Python looks up in the type."""
    return getattr(type(value), name)(value)


def exit_of(manager):
    """Return how a context manager is left. One that cannot be left is not entered."""
    kind = type(manager)
    if not hasattr(kind, "__enter__") or not hasattr(kind, "__exit__"):
        raise TypeError(f"'{kind.__qualname__}' object does not support the context manager protocol")
    return lambda *why: kind.__exit__(manager, *why)
