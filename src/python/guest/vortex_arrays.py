"""What arrays of Vortex of ours are in Python: arrays of Arrow that describe their encodings as well.

Vortex describes its arrays by tuples, with a struct in a capsule for each buffer. Who takes the struct takes the
capsule's destructor away, and calls the struct's release callback when the buffer is not needed any more, long after
the capsule is gone.
"""

import ctypes
from ctypes import c_int32, c_size_t, c_uint32, c_void_p

from .arrow_arrays import ArrowProtocol
from .arrow_structs import struct
from .dlpack_structs import LEGACY
from .exports import append_unclaimed
from .interpreter_api import BUFFER_OF_VORTEX, does_nothing, new_capsule, release_code
from .release_counters import counters

VortexBufferExport = struct(
    "VortexBufferExport",
    ("version", c_uint32),
    ("kind", c_uint32),
    ("ptr", c_void_p),
    ("len", c_size_t),
    ("alignment", c_size_t),
    ("device_id", c_int32),
    ("sync_event", c_void_p),
    ("private_data", c_void_p),
    ("release", c_void_p),
)


class Vortex(ArrowProtocol):
    """An array of Vortex of ours: an ``Arrow`` with its elements, and the nodes that it is made of."""

    __slots__ = "arrow", "node", "__weakref__"

    def __init__(self, arrow, node):
        self.arrow, self.node = arrow, node

    def arrow_schema(self):
        return self.arrow.arrow_schema()

    def arrow_array(self):
        return self.arrow.arrow_array()

    def __vortex_array_metadata__(self):
        return described(self.node)

    def __len__(self):
        return self.node[2]

    def __repr__(self):
        return f"<Vortex array of {len(self)} elements, {self.node[0]}>"


def described(node):
    """Return a node as Vortex describes it: id, dtype, length, metadata, buffers, children."""
    id, dtype, length, metadata, buffers, children = node
    return (
        id,
        bytes.fromhex(dtype),
        length,
        bytes.fromhex(metadata),
        [hand_over(array, alignment) for array, alignment in buffers],
        [described(child) for child in children],
    )


# law python/hand_over: vortex/core/python
def hand_over(array, alignment):
    """Return a capsule with the bytes of an array. It keeps the array until it is released."""
    size = len(array)
    one = VortexBufferExport(
        version=1,
        ptr=array.__array_interface__["data"][0] if size else None,
        len=size,
        alignment=alignment,
        device_id=-1,
        # The machine code of DLPack's struct without a version finds its counter where this struct has it, too.
        release=release_code[LEGACY],
    )
    one.private_data = counters.retain((one, array))
    capsule = new_capsule(ctypes.addressof(one), BUFFER_OF_VORTEX, does_nothing)
    append_unclaimed(capsule)
    return capsule
