/**
 * What an array of ours says of itself to Python's code, and its elements: as NumPy's arrays do, without NumPy.
 *
 * @module
 */

/** Python source, a part of the prelude. */
export const membersPrelude = `
def loaded(name):
    "A module, if a program has imported it, all of it."
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module

def numpy_type(array):
    "NumPy's type for the elements of an array, or that of ml_dtypes, if they are loaded; else None."
    numpy, ml_dtypes = loaded("numpy"), loaded("ml_dtypes")
    if numpy is None: return None
    if array.interface["typestr"] is not None: return numpy.dtype(array.interface["typestr"])
    return numpy.dtype(getattr(ml_dtypes, array.name)) if hasattr(ml_dtypes, array.name) else None

# How an element is read, by what its type string ends in. A complex number is two.
ELEMENTS = {"b1": "?", "i1": "b", "u1": "B", "i2": "<h", "u2": "<H", "i4": "<i", "u4": "<I", "i8": "<q", "u8": "<Q",
    "f2": "<e", "f4": "<f", "f8": "<d", "c8": "<ff", "c16": "<dd"}

class Members:
    "Shape, type and elements."
    __slots__ = ()

    @property
    def shape(self): return self.interface["shape"]

    @property
    def ndim(self): return len(self.shape)

    @property
    def size(self): return math.prod(self.shape)

    @property
    def dtype(self):
        "NumPy's, if it is loaded and has one; else the name of the type."
        type = numpy_type(self)
        return self.name if type is None else type

    @property
    def itemsize(self): return (self.layout.width + 7) // 8

    @property
    def nbytes(self): return self.layout.size

    @property
    def strides(self):
        "In bytes; None where elements share them."
        layout = self.layout
        return None if layout.width % 8 else tuple(step * layout.width // 8 for step in layout.steps)

    @property
    def T(self):
        layout = self.layout
        return Part(self, layout, layout.start, layout.shape[::-1], layout.steps[::-1])

    @property
    def layout(self): return Layout(self.tensor)

    def __len__(self):
        if not self.shape: raise TypeError("cannot tell the length of an array without axes")
        return self.shape[0]

    def __bool__(self):
        if self.size != 1: raise ValueError("the truth of an array of %d elements is ambiguous" % self.size)
        return bool(self[(0,) * self.ndim])

    def __iter__(self):
        length, layout, code = len(self), self.layout, self.element
        if len(layout.shape) > 1 or code is None or self.device[0] != 1: return (self[i] for i in range(length))
        dense = gathered(layout, layout.start)
        return map(value_of, iter_unpack(code, bytes_at(dense.address, layout.size)))

    def __getitem__(self, key):
        layout, keys = self.layout, key if type(key) is tuple else (key,)
        if layout.width % 8: raise TypeError("cannot take elements of %s one by one: they share bytes. See the bytes as uint8"
            % self.name)
        start, shape, steps = selected(layout, keys)
        if shape or any(key is Ellipsis for key in keys): return Part(self, layout, start, shape, steps)
        if self.device[0] != 1: raise TypeError("cannot read an element of device memory on the host: copy the array to "
            "the host first")
        if self.element is None: return Part(self, layout, start, (), ()).__array__()[()]
        return value_of(unpack(self.element, bytes_at(start, layout.width // 8)))

    @property
    def element(self): return ELEMENTS.get((self.interface["typestr"] or "")[1:])

def value_of(numbers):
    return numbers[0] if len(numbers) == 1 else complex(*numbers)

def selected(layout, keys):
    "Where the first one of the elements for an index is, their shape and their steps: as NumPy's basic indexing."
    around = [at for at, key in enumerate(keys) if key is Ellipsis]
    taken = sum(key is not None and key is not Ellipsis for key in keys)
    if taken > len(layout.shape) or len(around) > 1:
        raise IndexError("cannot index %d axes by %d keys" % (len(layout.shape), taken) if len(around) < 2 else
            "cannot index an array by more than one ellipsis")
    at = around[0] if around else len(keys)
    keys = (*keys[:at], *[slice(None)] * (len(layout.shape) - taken), *keys[at + 1:])
    start, shape, steps, axes = layout.start, [], [], zip(layout.shape, layout.steps)
    for key in keys:
        if key is None:
            shape.append(1)
            steps.append(0)
            continue
        extent, step = next(axes)
        if isinstance(key, slice):
            chosen = range(extent)[key]
            shape.append(len(chosen))
            steps.append(step * chosen.step)
            first = chosen.start if chosen else 0
        else: first = position(key, extent)
        start += first * step * layout.width // 8
    return start, tuple(shape), tuple(steps)

def position(key, extent):
    try: at = None if isinstance(key, bool) else operator.index(key)
    except TypeError: at = None
    if at is None: raise TypeError("cannot index an array by %r: expected integers, slices, None and an ellipsis. "
        "numpy.asarray(array) takes all that NumPy knows" % (key,))
    if not -extent <= at < extent: raise IndexError("index %d is out of bounds for an axis of %d" % (at, extent))
    return at % extent
`;

/** Python source, which needs the class of arrays. */
export const partPrelude = `
class Part(Array):
    "Some of the elements of an array, which it keeps."
    __slots__ = "whole",

    def __init__(self, whole, layout, start, shape, steps):
        flags, = unpack("<Q", ctypes.string_at(whole.tensor + 24, 8))
        tensor = tensor_over(whole, True, flags & (READ_ONLY | PADDED), start if math.prod(shape) else 0, whole.device,
            layout.type, shape, steps)
        of = Layout(tensor)
        strides = None if of.is_dense else tuple(step * of.width // 8 for step in steps)
        self.whole = whole
        super().__init__(tensor, whole.name, whole.format if of.is_dense else None, None, shape, strides,
            whole.interface["typestr"], start, whole.interface["data"][1], whole.device, whole.context, None)

    @property
    def home(self): return self.whole.home
`;
