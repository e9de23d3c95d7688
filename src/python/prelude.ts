/**
 * The half of the exchange that is written in Python: what an array of ours is there.
 *
 * An `Array` holds a DLPack tensor of ours, whose deleter is machine code that marks it as released. All else is Python:
 * Python code runs on any thread of Python, which JavaScript cannot. So `__dlpack__` can be called at any time and as
 * often as a library likes: each call copies the tensor's struct. When the deleter of the copy was called, on whatever
 * thread, the `Array` is let go of at the next look; when nothing holds it any more, it releases our tensor.
 *
 * @module
 */

import { arrowPrelude } from "./prelude_arrow.ts";
import { copyPrelude } from "./prelude_copy.ts";
import { framePrelude } from "./prelude_frame.ts";
import { marksPrelude } from "./prelude_counters.ts";
import { membersPrelude, partPrelude } from "./prelude_members.ts";
import { numpyPrelude } from "./prelude_numpy.ts";

/** Python source, run once in a namespace of its own. */
export const prelude = `
import builtins, contextlib, ctypes, operator, sys, threading, traceback

def describe(error):
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
    try:
        lines = traceback.format_exception_only(kind, error)
        # After a syntax error's source and before an exception's notes.
        said = next((line for line in lines if line.startswith((name, kind.__qualname__))), lines[-1])
        return name, said.strip(), "".join(traceback.format_exception(kind, error, error.__traceback__))
    except Exception: # Python's own words fail for some
        try: text = str(error)
        except Exception: text = "<exception str() failed>"
        return name, name + ": " + text, "".join(traceback.format_tb(error.__traceback__))

def function(api, name, result, *arguments):
    found = getattr(api, name)
    found.restype, found.argtypes = result, arguments
    return found

def bind(handle, deleter_of_ours, legacy, schema, array):
    "What Python itself cannot call: functions of the interpreter, by the library's handle, and our machine code."
    global new_capsule, release
    release = deleter(deleter_of_ours)
    code.update({VERSIONED: deleter_of_ours, LEGACY: legacy, ArrowSchema: schema, ArrowArray: array})
    api = ctypes.PyDLL("libpython", handle=handle)
    new_capsule = function(api, "PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    global capsule_name, capsule_pointer, to_contiguous
    capsule_name = function(api, "PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
    capsule_pointer = function(api, "PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    to_contiguous = function(api, "PyBuffer_ToContiguous", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
        ctypes.c_ssize_t, ctypes.c_char)

cuda = None

def bind_cuda(*addresses):
    "The driver's functions that order two streams, by their addresses."
    global cuda
    pointer, unsigned = ctypes.c_void_p, ctypes.c_uint
    types = [(pointer,), (pointer,), (pointer, unsigned), (pointer,), (pointer, pointer), (pointer, pointer, unsigned)]
    cuda = [ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(at) for at, arguments in zip(addresses, types)]

def check(code, doing="ordered two streams"):
    if code == 0: return
    kind = MemoryError if code == 2 else RuntimeError
    raise kind("the CUDA driver returned error %d while it %s" % (code, doing))

@contextlib.contextmanager
def current(context):
    "Makes a context current, and then the one that was."
    push, pop, *_ = cuda
    check(push(context))
    try: yield
    finally: pop(ctypes.byref(ctypes.c_void_p()))

def order(context, home, consumer):
    "Makes the consumer's stream wait for what is enqueued on the home stream."
    _, _, create, destroy, record, wait = cuda
    event = ctypes.c_void_p()
    with current(context):
        check(create(ctypes.byref(event), 2)) # without timing
        try:
            check(record(event, home))
            check(wait(consumer, event, 0))
        finally:
            destroy(event)
    if ordered is not None: ordered.append((context, home, consumer))

ordered = None # what was ordered since somebody asked, if anybody does

def take_ordered():
    "What was ordered since this was last called, and begins to write it down."
    global ordered
    taken, ordered = ordered, []
    return taken or []

NOWHERE = 256
VERSIONED, LEGACY = 80, 64 # bytes of DLManagedTensorVersioned and DLManagedTensor
# Bits in the flags of a versioned struct: it is the consumer's alone; elements of less than a byte have one each.
READ_ONLY, COPIED, PADDED = 1, 2, 4
deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
code = {} # addresses of the machine code that releases structs of a kind
contexts = {} # of the devices on which arrays of ours have been, by number
offered = [] # capsules that nobody had taken when we last looked

def references(held):
    return [sys.getrefcount(one) for one in held]

alone = references([object()])[0] # of an object that only a list holds

def look():
    "Takes back what was in capsules that went unused, and lets go of what consumers have released."
    while look_once(): pass # what is let go of may have held something else of ours

def look_once():
    "Whether anything was let go of."
    gone = False
    with lock:
        for one, count in zip(list(offered), references(offered)):
            name = capsule_name(one)
            if name.startswith(b"used_"): offered.remove(one)
            elif count <= alone + 1: # the copy of the list
                gone = True
                offered.remove(one)
                take_back(name, capsule_pointer(one, name))
        for counter in counters.over():
            if counter not in counters.numbers: continue # it has ended with its parent
            end(counter)
            gone = True
    return gone

lock = threading.RLock()
${marksPrelude}
${arrowPrelude}
${copyPrelude}
${framePrelude}
${membersPrelude}
class Ours:
    "What torch's functions take as a tensor over the same memory."
    __slots__ = ()

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        "torch calls this for each of its functions that is given an array of ours."
        return function(*converted(arguments, tensor_of), **converted(keywords or {}, tensor_of))

def tensor_of(array):
    if min(array.strides or (), default=0) < 0: # for which torch.from_dlpack ends the process
        raise ValueError("torch has no tensors with negative strides: copy the array first, in JavaScript with toDense()")
    return sys.modules["torch"].from_dlpack(array)

class Array(Ours, SpeaksArrow, Members):
    "An array of another owner, for whoever speaks one of the protocols. What is an Arrow array of ours goes out as that."
    __slots__ = "tensor", "name", "format", "arrow", "interface", "device", "context", "made_on", "__weakref__"

    def __init__(self, tensor, name, format, arrow, shape, strides, typestr, address, readonly, device, context, home):
        self.tensor, self.name, self.format, self.arrow, self.device = tensor, name, format, arrow, device
        self.context, self.made_on = context, home
        if context is not None: contexts[device[1]] = context
        self.interface = {
            "shape": shape, "strides": strides, "typestr": typestr, "version": 3,
            # NumPy makes memory of its own for NULL, or refuses. Nobody reads an array without elements, wherever it is.
            "data": (address or NOWHERE if device[0] == 1 else address, readonly),
        }

    def __del__(self):
        release(self.tensor)

    @property
    def home(self):
        "The stream that consumers wait for, if they shall."
        return self.made_on

    def arrow_schema(self):
        return field_of(self) if self.arrow is None else self.arrow.arrow_schema()

    def arrow_array(self):
        return elements_of(self) if self.arrow is None else self.arrow.arrow_array()

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        device = self.device if dl_device is None else tuple(dl_device)
        self.check_request(device, copy, stream)
        versioned = max_version is not None and max_version[0] >= 1
        is_copy = copy or device != self.device
        if not versioned and not is_copy and self.interface["data"][1]:
            raise BufferError("cannot hand over a read-only array to a consumer of DLPack below 1.0, which cannot be told")
        if not versioned and ctypes.c_uint64.from_address(self.tensor + 24).value & PADDED:
            raise BufferError("cannot hand over %s to a consumer of DLPack below 1.0, which cannot be told that each element "
                "has a byte of its own" % self.name)
        if is_copy: address = copied_tensor(self, versioned, device, stream)
        else:
            self.order(stream)
            address = self.copied(versioned)
        capsule = new_capsule(address, b"dltensor_versioned" if versioned else b"dltensor", None)
        look()
        with lock: offered.append(capsule)
        return capsule

    def check_request(self, device, copy, stream):
        if device != self.device and device != (1, 0):
            raise BufferError("cannot hand over memory of device %r as memory of %r: only where it is, or as a copy on the "
                "host, (1, 0)" % (self.device, device))
        if device != self.device and copy is False:
            raise BufferError("cannot hand over memory of device %r on the host without a copy" % (self.device,))
        if self.device[0] == 1 and stream is not None and stream != -1:
            raise BufferError("cannot order host memory on a stream")
        if stream == 0: raise BufferError("stream 0 is ambiguous: pass 1 for the legacy default stream")

    def copied(self, versioned):
        "Address of a struct over the same memory, which keeps this array until its deleter is called."
        tensor = ctypes.string_at(self.tensor, VERSIONED)
        if not versioned: tensor = tensor[32:] + bytes(LEGACY - 48)
        struct = ctypes.create_string_buffer(tensor, len(tensor))
        address = ctypes.addressof(struct)
        context, at = (8, 16) if versioned else (48, 56)
        ctypes.c_void_p.from_address(address + context).value = counters.keep((self, struct))
        ctypes.c_void_p.from_address(address + at).value = code[len(tensor)]
        return address

    def order(self, stream):
        home, consumer = self.home, stream or 1
        if self.device[0] != 1 and stream != -1 and home is not None and consumer != home:
            order(self.context, home, consumer)

    @property
    def __array_interface__(self):
        if self.device[0] != 1 or self.interface["typestr"] is None: raise AttributeError("__array_interface__")
        return self.interface

    @property
    def __cuda_array_interface__(self):
        if self.device[0] == 1 or self.interface["typestr"] is None: raise AttributeError("__cuda_array_interface__")
        return dict(self.interface, stream=self.home)

    def __array__(self, dtype=None, copy=None):
        import numpy
        if self.device[0] != 1: raise TypeError("cannot make a NumPy array of device memory: copy it first")
        if self.interface["typestr"] is None:
            try: import ml_dtypes
            except ImportError: ml_dtypes = None
            if not hasattr(ml_dtypes, self.name):
                raise TypeError("cannot make a NumPy array of %s, which it has no type for: see the bytes as uint8%s"
                    % (self.name, "" if ml_dtypes else ", or install ml_dtypes, which may have one"))
            kind = numpy.dtype(getattr(ml_dtypes, self.name))
            array = numpy.asarray(Raw(self, "<u%d" % kind.itemsize if kind.itemsize > 1 else "|u1")).view(kind)
        else: array = numpy.asarray(Raw(self, self.interface["typestr"]))
        if dtype is None or dtype == array.dtype: return array.copy() if copy else array
        if copy is False: raise ValueError("cannot make an array of %s of one of %s without a copy" % (dtype, array.dtype))
        return array.astype(dtype)

    def __array_ufunc__(self, function, method, *arguments, **keywords):
        "NumPy calls this for each of its element-wise functions; it alone accepts an Array to write into."
        import numpy
        return getattr(function, method)(*converted(arguments, numpy.asarray), **converted(keywords, numpy.asarray))

    def __array_function__(self, function, types, arguments, keywords):
        "NumPy calls this for each of its other functions."
        import numpy
        if self.device[0] != 1 and not all(issubclass(one, Ours) for one in types): return NotImplemented
        return function(*converted(arguments, numpy.asarray), **converted(keywords, numpy.asarray))

    def __repr__(self):
        return "<array of shape %r and type %s>" % (self.interface["shape"], self.name)

def converted(value, convert):
    "A value in which each array of ours is converted."
    if isinstance(value, Ours): return convert(value)
    if type(value) in (list, tuple): return type(value)(converted(one, convert) for one in value)
    if type(value) is dict: return {key: converted(one, convert) for key, one in value.items()}
    return value

${partPrelude}
${numpyPrelude}
def check_elements(value):
    "Of a tensor, as torch has them: its elements must be what its memory says."
    for bit in "conj", "neg":
        resolve = "resolve_" + bit
        if hasattr(type(value), resolve) and getattr(value, "is_" + bit)():
            raise BufferError("cannot hand over a tensor with the bit %s, whose memory holds other numbers: call %s() first"
                % (bit, resolve))

def hand_over(value, stream):
    "The capsule of a foreign array: with a version if it can, and without if it knows of none."
    check_elements(value)
    on_host = value.__dlpack_device__()[0] in (1, 3) # kDLCPU and kDLCUDAHost, which no stream orders
    options = {} if stream is None or on_host else {"stream": stream}
    try: return value.__dlpack__(max_version=(1, 3), **options)
    except TypeError: return value.__dlpack__(**options)

def is_plain(value):
    "Whether a tensor, as torch has them, is no more than DLPack can say."
    return not (value.requires_grad or value.is_conj() or value.is_neg())

def method(value, name, *arguments): return getattr(value, name)(*arguments)
def integer(text): return int(text, 0)
def pairs(mapping): return list(mapping.items())
`;
