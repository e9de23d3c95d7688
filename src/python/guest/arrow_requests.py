"""What a consumer of Arrow may request: a type, and options.

What the consumer can convert is left to it: the data is exported as it is. What no consumer could convert is refused.
"""

import ctypes
from ctypes import c_void_p

from .arrow_structs import ArrowSchema
from .interpreter_api import Release, capsule_pointer

# Formats by what their values are. Any type of a family can be converted to any other.
FAMILIES = (
    ("number", ("b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "d:")),
    ("bytes", ("u", "U", "z", "Z", "vu", "vz", "w:")),
    ("time", ("td", "ts")),
    ("time of day", ("tt",)),
    ("duration", ("tD",)),
    ("interval", ("ti",)),
    ("list", ("+l", "+L", "+v", "+w", "+m")),
)


# law python/check_options: python/arrow_capsules
def check_options(options):
    """Raise an exception if a consumer asks for something that is not known."""
    unknown = [name for name, value in options.items() if value is not None]
    if unknown:
        raise NotImplementedError(f"cannot export with the option {unknown[0]}: it is unknown")


def family_of(format):
    """Return the family of a format, or the format itself if no other can be converted to it."""
    return next((name for name, prefixes in FAMILIES if format.startswith(prefixes)), format)


# law python/check_convertible: python/arrow_capsules
def check_convertible(ours, wanted):
    """Raise an exception if no consumer could convert values of our schema to the wanted one."""
    if ours.dictionary:
        return check_convertible(ArrowSchema.from_address(ours.dictionary), wanted)
    if wanted.dictionary:
        return check_convertible(ours, ArrowSchema.from_address(wanted.dictionary))
    formats = [ctypes.string_at(one.format).decode() for one in (ours, wanted)]
    if formats[0] == "n":
        return  # nulls are values of every type
    if family_of(formats[0]) != family_of(formats[1]) or ours.n_children != wanted.n_children:
        raise BufferError(
            f"cannot export an Arrow array of format {formats[0]} as the requested {formats[1]}: no value of the "
            "one type is a value of the other"
        )
    mine, theirs = children_of(ours), children_of(wanted)
    theirs_by_name = {name_of(child): child for child in theirs}
    names = [name_of(child) for child in mine]
    if formats[0] == "+s" and all(name in theirs_by_name for name in names):
        theirs = [theirs_by_name[name] for name in names]
    for one, other in zip(mine, theirs):
        check_convertible(one, other)


def children_of(schema):
    """Return the schemas inside a schema."""
    if not schema.n_children:
        return []
    addresses = (c_void_p * schema.n_children).from_address(schema.children)
    return [ArrowSchema.from_address(child) for child in addresses]


def name_of(schema):
    """Return the name of a field in bytes, or None."""
    return schema.name and ctypes.string_at(schema.name)


# law python/check_request: python/arrow_capsules
def check_request(requested, make_schema):
    """Check the capsule with a requested schema, or None, against a schema of ours that is made for this."""
    if requested is None:
        return
    wanted, ours = ArrowSchema.from_address(capsule_pointer(requested, b"arrow_schema")), make_schema()
    try:
        if not wanted.release:
            raise ValueError("cannot read the requested schema: it was released before")
        check_convertible(ours, wanted)
    finally:
        Release(ours.release)(ctypes.addressof(ours))
