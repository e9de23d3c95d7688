"""The structs of Arrow's C data, C device and C stream interfaces."""

import ctypes
from ctypes import c_int32, c_int64, c_void_p


def struct(name, *fields):
    """Return the type of a C struct."""
    return type(name, (ctypes.Structure,), {"_fields_": fields})


ArrowSchema = struct(
    "ArrowSchema",
    ("format", c_void_p),
    ("name", c_void_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", c_void_p),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
)
ArrowArray = struct(
    "ArrowArray",
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", c_void_p),
    ("children", c_void_p),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
)
ArrowDeviceArray = struct(
    "ArrowDeviceArray",
    ("array", ArrowArray),
    ("device_id", c_int64),
    ("device_type", c_int32),
    ("sync_event", c_void_p),
    ("reserved", c_int64 * 3),
)
ArrowArrayStream = struct(
    "ArrowArrayStream",
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
)
ArrowDeviceArrayStream = struct(
    "ArrowDeviceArrayStream",
    ("device_type", c_int32),
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
)
