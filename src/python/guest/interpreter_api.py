"""Functions of the interpreter's C API, and the machine code that releases structs."""

import ctypes

from .arrow_structs import ArrowArray, ArrowSchema
from .dlpack_structs import LEGACY, VERSIONED

Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)  # a deleter or release callback: it takes the address of its struct

# Addresses of the machine code for structs that Python exports, by the struct's type or, for DLPack's, its size.
release_code = {}

BUFFER_OF_VORTEX = b"vortex_buffer_export"  # the name of such capsules, which keep its address

# Functions, from bind() on.
release_tensor = new_capsule = capsule_name = capsule_pointer = capsule_destructor = to_contiguous = None

# The address of a function that does nothing to its argument, from bind() on. A capsule whose consumer says by taking
# its destructor away that it takes what is inside needs one, and no code of ours may run as a destructor.
does_nothing = None


def function(library, name, result, *arguments):
    """Return a function of a C library, with its types."""
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found


def bind(handle, versioned, legacy, schema, array):
    """Bind what JavaScript knows: the interpreter's library, by its handle, and the machine code, by its addresses."""
    global release_tensor, new_capsule, capsule_name, capsule_pointer, capsule_destructor, to_contiguous, does_nothing
    release_tensor = Release(versioned)
    release_code.update({VERSIONED: versioned, LEGACY: legacy, ArrowSchema: schema, ArrowArray: array})
    api = ctypes.PyDLL("libpython", handle=handle)
    text, pointer, any_object = ctypes.c_char_p, ctypes.c_void_p, ctypes.py_object
    new_capsule = function(api, "PyCapsule_New", any_object, pointer, text, pointer)
    capsule_name = function(api, "PyCapsule_GetName", text, any_object)
    capsule_pointer = function(api, "PyCapsule_GetPointer", pointer, any_object, text)
    capsule_destructor = function(api, "PyCapsule_GetDestructor", pointer, any_object)
    does_nothing = ctypes.cast(api.Py_GetVersion, pointer).value
    to_contiguous = function(api, "PyBuffer_ToContiguous", ctypes.c_int, pointer, text, ctypes.c_ssize_t, ctypes.c_char)
