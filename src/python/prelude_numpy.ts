/**
 * What an array of ours is to NumPy, where a program has loaded it: one of its own, over the same memory.
 *
 * What NumPy makes of it is an array like any other, which keeps the memory as long as it sees it. The array itself goes on
 * to speak as `Array` does, by which it also tells Arrow and torch what NumPy's arrays do not.
 *
 * @module
 */

/** Python source, a part of the prelude. */
export const numpyPrelude = `
class Raw:
    "The memory of an Array under another type string."
    def __init__(self, array, typestr):
        self.array, self.__array_interface__ = array, dict(array.interface, typestr=typestr)

def lend(*given):
    "An array of ours, for Python's code."
    return for_numpy(Array(*given))

def for_numpy(array):
    "The same as one of NumPy's, if it is on the host, and NumPy is loaded and has the type."
    numpy, typestr = loaded("numpy"), array.interface["typestr"]
    if numpy is None or typestr is None or array.device[0] != 1: return array
    made = numpy.asarray(Raw(array, typestr)).view(host_array_of(numpy))
    made.lent = array, made.__array_interface__
    return made

def plain(array):
    "The Array behind one of NumPy's; a new one over what NumPy has made of it. Any other Array is itself."
    if isinstance(array, Array): return array
    lent = whole(array)
    return made_by_numpy(array) if lent is None else lent

def whole(array):
    "The Array behind one of NumPy's, if it still says the same."
    lent, said = getattr(array, "lent", (None, None))
    return lent if said == array.__array_interface__ else None

KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6} # DLPack's, by NumPy's

def made_by_numpy(array):
    type, width = array.dtype, array.dtype.itemsize
    if type.kind not in KINDS or not type.isnative or width > (16 if type.kind == "c" else 8):
        raise BufferError("cannot hand over elements of NumPy's type %s by DLPack, which has none like it" % type)
    if any(step % width for step in array.strides):
        raise BufferError("cannot hand over by DLPack what lies at strides of %r bytes: expected multiples of %d"
            % (array.strides, width))
    said = array.__array_interface__
    address, readonly = said["data"]
    tensor = tensor_over(array, True, READ_ONLY if readonly else 0, address if array.size else 0, (1, 0),
        (KINDS[type.kind], 8 * width, 1), array.shape, [step // width for step in array.strides])
    return Array(tensor, type.name, None, None, array.shape, said["strides"], said["typestr"], address, readonly, (1, 0),
        None, None)

host_array = None

def host_array_of(numpy):
    "The class of our arrays that are NumPy's, made when it is first needed."
    global host_array
    if host_array is not None: return host_array

    def of_whole(name):
        def find(self):
            lent = whole(self)
            # What is NumPy's, and what Arrow has no words for, consumers take as they take NumPy's arrays: with a copy.
            if lent is None or lent.format is None and lent.arrow is None: raise AttributeError(name)
            return getattr(lent, name)
        return property(find)

    class HostArray(Ours, numpy.ndarray):
        "An array of another owner, on the host."
        __slots__ = "lent",

        def __array_wrap__(self, array, context=None, return_scalar=None):
            "What NumPy computes is nobody's but its own."
            if array is self: return array
            is_scalar = return_scalar or return_scalar is None and array.ndim == 0
            return array[()] if is_scalar else array.view(numpy.ndarray) # which before 2.0 it is not

        def __reduce__(self):
            return self.view(numpy.ndarray).__reduce__()

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **options):
            return plain(self).__dlpack__(**options)

        __arrow_c_schema__ = of_whole("__arrow_c_schema__")
        __arrow_c_array__ = of_whole("__arrow_c_array__")
        __arrow_c_device_array__ = of_whole("__arrow_c_device_array__")

    host_array = HostArray
    return host_array
`;
