"""What an array of ours is where a program has loaded NumPy: one of NumPy's, over the same memory.

What NumPy makes of it is an array like any other, which keeps the memory as long as it sees it. To Arrow and torch it
still speaks as the ``Array`` behind it does, because NumPy's arrays do not.
"""

from .array import Array, CausewayArray, MemoryAs
from .array_members import loaded
from .copies import make_tensor
from .dlpack_structs import HOST, READ_ONLY


def export_array(*fields):
    """Return an array of ours, for Python's code. The fields are those of an Array."""
    return for_numpy(Array(*fields))


def for_numpy(array):
    """Return an Array as one of NumPy's, if it is on the host and NumPy is loaded and has the type; else as it is."""
    numpy, typestr = loaded("numpy"), array.interface["typestr"]
    if numpy is None or typestr is None or array.device[0] != HOST:
        return array
    made = numpy.asarray(MemoryAs(array, typestr)).view(host_array_class(numpy))
    made.exported = array, made.__array_interface__
    return made


def plain_array(array):
    """Return the Array behind one of NumPy's, or a new one over what NumPy has made of it. An Array is returned."""
    if isinstance(array, Array):
        return array
    exported = unchanged(array)
    return made_by_numpy(array) if exported is None else exported


# law python/unchanged: python/guest, python/numpy, python/arrow_capsules
def unchanged(array):
    """Return the Array behind one of NumPy's, if it still describes the same elements; else None."""
    exported, interface = getattr(array, "exported", (None, None))
    return exported if interface == array.__array_interface__ else None


TYPE_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's code for each kind of NumPy's types


# law python/made_by_numpy: python/guest, python/numpy, python/arrow_capsules
def made_by_numpy(array):
    """Return an Array over what NumPy has made."""
    type, width = array.dtype, array.dtype.itemsize
    if type.kind not in TYPE_CODES or not type.isnative or width > (16 if type.kind == "c" else 8):
        raise BufferError(f"cannot export elements of NumPy's type {type} by DLPack, which has none like it")
    if any(step % width for step in array.strides):
        raise BufferError(
            f"cannot export elements at strides of {array.strides!r} bytes by DLPack: expected multiples of {width}"
        )
    interface = array.__array_interface__
    address, readonly = interface["data"]
    tensor = make_tensor(
        array,
        True,
        READ_ONLY if readonly else 0,
        address if array.size else 0,
        (HOST, 0),
        (TYPE_CODES[type.kind], 8 * width, 1),
        array.shape,
        [step // width for step in array.strides],
    )
    return Array(
        tensor,
        type.name,
        None,
        None,
        array.shape,
        interface["strides"],
        interface["typestr"],
        address,
        readonly,
        (HOST, 0),
        None,
        None,
    )


host_array = None  # the class, once it is made


def host_array_class(numpy):
    """Return the class of our arrays that are NumPy's. It is made when it is first needed."""
    global host_array
    if host_array is not None:
        return host_array

    # law python/host_array_class.of_exported: python/guest, python/numpy, python/arrow_capsules
    def of_exported(name):
        """Return an attribute that the Array behind an array answers."""

        def find(self):
            exported = unchanged(self)
            # An array that NumPy has made, or for which Arrow has no type, consumers take as any of NumPy's: by a copy.
            if exported is None or (exported.format is None and exported.arrow is None):
                raise AttributeError(name)
            return getattr(exported, name)

        return property(find)

    # law python/host_array_class.HostArray: python/guest, python/numpy, python/arrow_capsules
    class HostArray(CausewayArray, numpy.ndarray):
        """An array of another owner, on the host."""

        __slots__ = ("exported",)

        def __array_wrap__(self, array, context=None, return_scalar=None):
            """Return what NumPy has computed, which has no other owner."""
            if array is self:
                return array
            is_scalar = return_scalar or (return_scalar is None and array.ndim == 0)  # NumPy tells which since 2.0
            return array[()] if is_scalar else array.view(numpy.ndarray)

        def __reduce__(self):
            return self.view(numpy.ndarray).__reduce__()

        def __dlpack_device__(self):
            return HOST, 0

        def __dlpack__(self, **options):
            return plain_array(self).__dlpack__(**options)

        __arrow_c_schema__ = of_exported("__arrow_c_schema__")
        __arrow_c_array__ = of_exported("__arrow_c_array__")
        __arrow_c_device_array__ = of_exported("__arrow_c_device_array__")

    host_array = HostArray
    return host_array
