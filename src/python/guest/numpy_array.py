"""What an array of ours is where a program has loaded NumPy: one of NumPy's, over the same memory.

What NumPy makes of it is an array like any other, which keeps the memory as long as it sees it. To Arrow and torch it
still speaks as the ``Array`` behind it does, because NumPy's arrays do not.

NumPy makes it of a tensor of ours, which it takes as from any other library, and knows what it stands for by a
``Spec``. An array that was an Arrow array is made of an ``Array`` that keeps it, and so are all with an older NumPy.
"""

from .array import Array, CausewayArray, MemoryAs
from .array_members import loaded
from .copies import make_tensor
from .dlpack_structs import HOST, READ_ONLY


# law python/numpy_array.export_array: python/guest
def export_array(tensor, *fields):
    """Return an array of ours, for Python's code. The fields are those of an Array.

    A tensor is not the array's to release before there is nothing left that may fail: its maker does so then.
    """
    array = Array(None, *fields)
    made = for_numpy(array)
    array.tensor = tensor
    return made


def for_numpy(array):
    """Return an Array as one of NumPy's, if it is on the host and NumPy is loaded and has the type; else as it is."""
    numpy, typestr = loaded("numpy"), array.interface["typestr"]
    if numpy is None or typestr is None or array.device[0] != HOST:
        return array
    made = numpy.asarray(MemoryAs(array, typestr)).view(host_array_class(numpy))
    made.exported = array, made.__array_interface__
    return made


class Spec:
    """What arrays over different memory have in common. It is made once for each layout, type and access."""

    __slots__ = "name", "format", "shape", "strides", "typestr", "readonly"

    def __init__(self, name, format, shape, strides, typestr, readonly):
        self.name, self.format, self.shape, self.strides = name, format, shape, strides
        self.typestr, self.readonly = typestr, readonly

    # law python/Spec.describes: python/numpy, python/arrow_capsules, python/host_exports
    def describes(self, array, address):
        """Whether an array of NumPy's still is what was made of this at an address."""
        interface = array.__array_interface__
        return (self.shape, self.strides, self.typestr, (address, self.readonly)) == (
            interface["shape"],
            interface["strides"],
            interface["typestr"],
            interface["data"],
        )


def spec_of(*fields):
    """Return a Spec, by which arrays are exported faster; None where NumPy is not loaded, or takes no such tensors."""
    numpy = loaded("numpy")
    if numpy is None or not takes_tensors(numpy):
        return None
    host_array_class(numpy)
    return Spec(*fields)


# law python/takes_tensors: python/guest
def takes_tensors(numpy):
    """Whether NumPy takes versioned tensors: older ones, which have no flags, are all read-only to it."""
    return tuple(int(part) for part in numpy.__version__.split(".")[:2]) >= (2, 1)


class Handover:
    """Gives a tensor to NumPy, which takes it out of its capsule, and releases it with the last array over it."""

    capsule = None

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return self.capsule

    def __dlpack_device__(self):
        return HOST, 0


handover = Handover()


# law python/export_tensor: python/host_exports, python/numpy
def export_tensor(spec, capsule, address):
    """Return an array of NumPy's over the memory of a tensor, which starts at an address. None: NumPy is gone."""
    numpy = loaded("numpy")
    if numpy is None:
        return None
    handover.capsule = capsule
    try:
        array = numpy.from_dlpack(handover).view(host_array)
    finally:
        handover.capsule = None
    array.exported = spec, address
    return array


def plain_array(array):
    """Return the Array behind one of NumPy's, or a new one over what NumPy has made of it. An Array is returned."""
    if isinstance(array, Array):
        return array
    exported = unchanged(array)
    return made_by_numpy(array) if exported is None else exported


# law python/unchanged: python/guest, python/numpy, python/arrow_capsules
def unchanged(array):
    """Return an Array for one of NumPy's that still describes the elements that it was made for; else None."""
    exported, made_for = getattr(array, "exported", (None, None))
    if type(exported) is Spec:
        return made_by_numpy(array, exported.name, exported.format) if exported.describes(array, made_for) else None
    return exported if made_for == array.__array_interface__ else None


TYPE_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's code for each kind of NumPy's types


# law python/made_by_numpy: python/guest, python/numpy, python/arrow_capsules
def made_by_numpy(array, name=None, format=None):
    """Return an Array over what NumPy has made. Without a format Arrow has no type for it."""
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
        name or type.name,
        format,
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
