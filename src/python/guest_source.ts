/**
 * Python's sources: made of src/python/guest/*.py by tools/embed_python.ts. Change those, and run `deno task embed`.
 *
 * @module
 */

/** Run once, in a namespace of its own. */
export const guestSource = `
import ast
import builtins
import itertools
import linecache
import sys
import traceback
import weakref


GUEST = "<causeway>"  # the file of all sources here, as frames name it

MAX_CAUSES = 32  # an exception may be its own cause

GROUP = getattr(builtins, "BaseExceptionGroup", ())  # since Python 3.11

# Exceptions with a text that is more than their str(): a place in a source, a suggestion, other exceptions.
WITH_MORE_TEXT = (SyntaxError, NameError, AttributeError, ImportError, GROUP)

# The names of all others that are built in: to ask a type for its name or its module makes a string each time.
BUILT_IN = {
    kind: name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, WITH_MORE_TEXT)
    if kind.__name__ == name
}


# law python/is_plain_exception: python/guest
def is_plain_exception(error):
    """Whether nothing is printed of an exception but its traceback, its type and its str()."""
    return not (
        (type(error) not in BUILT_IN and isinstance(error, WITH_MORE_TEXT))
        or error.__cause__ is not None
        or (error.__context__ is not None and not error.__suppress_context__)
        or getattr(error, "__notes__", None) is not None
        or "tracebacklimit" in sys.__dict__
    )


def outline_exception(error, most=MAX_CAUSES):
    """Return an exception's type, its message, its traceback, two texts, and what it was raised from.

    The message is the last line as Python prints it. The traceback is None if it is to be formatted from the texts,
    which keep nothing alive. The cause is another such list, the key of a JavaScriptError, or None.
    """
    kind = type(error)
    try:
        if is_plain_exception(error):
            name = shown = BUILT_IN.get(kind)
            if name is None:
                name = kind.__module__ + "." + kind.__qualname__
                shown = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else name
                if kind.__module__ == "builtins":
                    name = shown
            text = str(error)
            last = shown + ": " + text if text else shown
            return [name, last.strip(), None, last, places_of(error.__traceback__), None]
    except Exception:  # it cannot be printed
        pass
    cause = error.__cause__
    if isinstance(cause, JavaScriptError):
        cause = cause.key
    elif cause is not None:
        cause = outline_exception(cause, most - 1) if most > 0 else None
    return [*describe_exception(error), None, places_of(error.__traceback__), cause]


# law python/brief_exception: python/guest, python/values
def brief_exception(error):
    """Return what outline_exception() does, as one text if that is all there is: type, message and places.

    There is a NUL between each two. One text is read in a third of the time that the list takes.
    """
    outline = outline_exception(error)
    name, message, trace, last, places, _ = outline
    if trace is None and message == last and "\\0" not in name and "\\0" not in message:
        return name + "\\0" + message + "\\0" + places
    return outline


# law python/lone_count: python/raised
lone_count = 0  # what sys.getrefcount() returns in the two functions below for an exception that only JavaScript has


def learn_lone_count(error):
    """Learn the count from an exception that only JavaScript has."""
    global lone_count
    lone_count = sys.getrefcount(error)


def brief_and_drop_traces(error):
    """Return what brief_exception() does, and then do what drop_traces_if_lone() does."""
    is_lone = sys.getrefcount(error) <= lone_count
    brief = brief_exception(error)
    if is_lone:
        drop_traces(error)
    return brief


# law python/drop_traces: python/raised
def drop_traces_if_lone(error):
    """Drop the traceback of an exception that only JavaScript has, and of those behind it that nothing else refers to.

    A traceback keeps the variables of its frames alive. What a future, a task or a handler has is raised again with it.
    """
    if sys.getrefcount(error) <= lone_count:
        drop_traces(error)


def drop_traces(error):
    """Drop an exception's traceback, and those behind it that nothing else refers to."""
    drop_traceback(error, None)
    if cause_of(error) is None and context_of(error) is None and not isinstance(error, GROUP):
        return  # as most have nothing behind them
    for one, count in exceptions_behind(error):
        if count <= lone_count_behind:
            drop_traceback(one, None)


def exceptions_behind(error):
    """Return the exceptions behind one, directly or not, and in it, each with a count of what else refers to it."""
    found, uses, left = [], {}, [error]
    current = one = None
    while left:
        current = left.pop()
        for one in (cause_of(current), context_of(current), *members_of(current)):
            if one is None:
                continue
            uses[id(one)] = uses.get(id(one), 0) + 1
            if uses[id(one)] == 1:
                found.append(one)
                left.append(one)
    del current, one
    return [(one, sys.getrefcount(one) - uses[id(one)]) for one in found]


def members_of(error):
    """Return the exceptions in a group, each as often as the group refers to it."""
    if not isinstance(error, GROUP):
        return ()
    given = next((one for one in args_of(error) if isinstance(one, list)), ())  # what it was made from
    return (*exceptions_of(error), *(one for one in given if isinstance(one, BaseException)))


# By the base class: a class of exceptions may have its own attributes of these names, or forbid to set any.
drop_traceback = BaseException.with_traceback
cause_of, context_of = BaseException.__cause__.__get__, BaseException.__context__.__get__
args_of, exceptions_of = BaseException.args.__get__, GROUP.exceptions.__get__ if GROUP else None


def count_behind():
    """Return the count of an exception that only another one refers to."""
    effect = Exception()
    effect.__cause__ = Exception()
    return exceptions_behind(effect)[0][1]


lone_count_behind = count_behind()


# law python/without_guest: python/guest, python/async
def without_guest(trace):
    """Return a traceback without the frames that it begins with and that only make the call."""
    while trace is not None and trace.tb_frame.f_code.co_filename == GUEST:
        trace = trace.tb_next
    return trace


# What stands in tracebacks, by the identity of the code, and by the instruction and line. It goes when the code does.
known_places = {}


# law python/places_of: python/guest
def places_of(trace):
    """Return of each frame its file, line and name, and the end line and columns of what it was doing, or None.

    They are Python's text of a tuple of tuples. Most exceptions are raised at a few places, again and again.
    """
    texts = ""
    trace = without_guest(trace)
    while trace is not None:
        frame = trace.tb_frame
        code = frame.f_code
        file = code.co_filename
        if file not in linecache.cache and not file.startswith("<"):
            linecache.lazycache(file, frame.f_globals)  # for a source that is in no file
        known = known_places.get(id(code)) or remember(code)
        at = trace.tb_lasti, trace.tb_lineno
        text = known[1].get(at)
        if text is None:
            text = known[1][at] = ascii(place_of(code, *at)) + ","
        texts += text
        trace = trace.tb_next
    return texts


# law python/remember: python/guest
def remember(code):
    """Return a new entry of known_places."""
    key = id(code)
    known = known_places[key] = (weakref.ref(code, lambda _: known_places.pop(key, None)), {})
    return known


def place_of(code, instruction, line):
    """Return what places_of() tells of a frame."""
    end, first, last = None, None, None
    if hasattr(code, "co_positions"):  # since Python 3.11
        found = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
        line = line if found[0] is None else found[0]
        _, end, first, last = found
    return code.co_filename, line, code.co_name, end, first, last


# law python/format_traceback: python/guest
def format_traceback(last, places):
    """Return the traceback of an exception as Python prints it."""
    if not places:
        return last + "\\n"
    frames = []
    for file, line, name, *positions in ast.literal_eval(places):
        # Python 3.9 and 3.10 know no positions, and would not take them.
        known = {} if None in positions else dict(zip(("end_lineno", "colno", "end_colno"), positions))
        frames.append(traceback.FrameSummary(file, line, name, lookup_line=False, **known))
    for file in {frame.filename for frame in frames}:
        linecache.checkcache(file)
    text = "".join(traceback.StackSummary.from_list(frames).format())
    return "Traceback (most recent call last):\\n" + text + last + "\\n"


# law python/format_frames: python/generators
def format_frames(places):
    """Return the frames of a traceback as lines of a stack of JavaScript's, the innermost first."""
    frames = [place[:3] for place in ast.literal_eval(places)] if places else []
    lines = [f"    at {name} ({file}:{line})" for file, line, name in frames if file != "<JavaScript>"]
    return "\\n".join(reversed(lines))


# law python/describe_exception: python/values
def describe_exception(error):
    """Return the name of an exception's type, its message as Python prints it, and its traceback."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
    try:
        lines = traceback.format_exception_only(kind, error)
        # The source of a syntax error stands before this line, and the notes of an exception stand after it.
        message = next((line for line in lines if line.startswith((name, kind.__qualname__))), lines[-1])
        message = message.strip()
        if isinstance(error, SyntaxError):
            message += place_in_source(error)
        return name, message, "".join(traceback.format_exception(kind, error, without_guest(error.__traceback__)))
    except Exception:  # some exceptions cannot be printed
        try:
            text = str(error)
        except Exception:
            text = "<exception str() failed>"
        return name, name + ": " + text, "".join(traceback.format_tb(without_guest(error.__traceback__)))


def place_in_source(error):
    """Return what the str() of a syntax error says behind what is wrong: its file and line."""
    text, said = str(error), str(error.msg)
    return text[len(said) :] if text.startswith(said) else ""

import ctypes
import threading

lock = threading.RLock()  # held while the counters or the list of unclaimed capsules change


class Counters:
    """Counters for machine code. Each keeps one object alive until it is not zero."""

    SLAB = 256  # counters in one piece of memory, which never moves

    def __init__(self):
        self.slabs, self.free = [], []
        self.numbers_for_javascript = (ctypes.c_int32 * 3)()  # of pieces, of counters in use, of unclaimed capsules
        self.retained, self.numbers = {}, {}  # the objects by number, the numbers by address

    def retain(self, thing):
        """Keep an object alive, and return the address of its counter, which is zero."""
        with lock:
            if not self.free:
                slab, first = (ctypes.c_int32 * self.SLAB)(), len(self.slabs) * self.SLAB
                self.slabs.append((slab, memoryview(slab).cast("B")))
                self.free.extend(range(first, first + self.SLAB))
                self.numbers_for_javascript[0] += 1
            number = self.free.pop()
            slab, _ = self.slabs[number // self.SLAB]
            address = ctypes.addressof(slab) + 4 * (number % self.SLAB)
            self.retained[number], self.numbers[address] = thing, number
            self.numbers_for_javascript[1] = len(self.retained)
            return address

    def is_released(self, address):
        """Whether the counter at an address is not zero."""
        return ctypes.c_int32.from_address(address).value != 0

    # law python/Counters.take_back: python/export_array, python/arrow_capsules
    def take_back(self, address):
        """Return the object that a counter has retained. The counter can be used again."""
        number = self.numbers.pop(address)
        ctypes.c_int32.from_address(address).value = 0
        self.free.append(number)
        thing = self.retained.pop(number)
        self.numbers_for_javascript[1] = len(self.retained)
        return thing

    def released(self):
        """Return the addresses of all counters that are not zero."""
        found = []
        for slab, view in self.slabs:
            counts = bytes(view)
            at = len(counts) - len(counts.lstrip(b"\\0"))  # lstrip is written in C: it skips runs of zeros quickly
            while at < len(counts):
                found.append(ctypes.addressof(slab) + at // 4 * 4)
                rest = counts[at // 4 * 4 + 4 :]
                at = len(counts) - len(rest.lstrip(b"\\0"))
        return found


counters = Counters()

# JavaScript looks at the counters itself, and polls only if one of them is not zero, or a capsule was not taken yet.
counter_slab_bytes, counter_numbers = 4 * Counters.SLAB, ctypes.addressof(counters.numbers_for_javascript)


def counter_addresses():
    """Return where the pieces of memory with counters are."""
    return [ctypes.addressof(slab) for slab, _ in counters.slabs]

import ctypes
import math
from struct import unpack

VERSIONED, LEGACY = 80, 64  # bytes of DLManagedTensorVersioned and of DLManagedTensor
HOST, CUDA, CUDA_HOST = 1, 2, 3  # kDLCPU, kDLCUDA, kDLCUDAHost

# Bits in the flags of a versioned struct: its memory is read-only; its memory is the consumer's alone; each element of
# less than a byte has a byte of its own.
READ_ONLY, COPIED, PADDED = 1, 2, 4

TENSOR = "<QiiiBBHQQQ"  # DLTensor: data, device, ndim, dtype, shape, strides, byte offset


def flags_of(tensor):
    """Return the flags of a versioned tensor."""
    return ctypes.c_uint64.from_address(tensor + 24).value


def tensor_fields(dl_tensor):
    """Return the fields of a DLTensor: data, device (2), ndim, type (code, bits, lanes), shape, strides, offset."""
    return unpack(TENSOR, ctypes.string_at(dl_tensor, 48))


def int64s(address, count):
    """Return integers of 64 bits, as a tuple."""
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()


class Layout:
    """Where the elements of a versioned tensor lie. Steps count elements, as DLPack's strides do."""

    def __init__(self, tensor):
        data, _, _, ndim, code, bits, lanes, shape, strides, offset = tensor_fields(tensor + 32)
        self.type, self.padded = (code, bits, lanes), flags_of(tensor) & PADDED
        self.start, self.shape = data + offset, int64s(shape, ndim)
        # Elements take their bits, so that some share a byte; padded ones and those of several lanes take whole bytes.
        is_packed = lanes == 1 and not self.padded
        self.width = bits if is_packed else (bits * lanes + 7) // 8 * 8  # in bits
        self.count = math.prod(self.shape)
        self.dense = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(ndim))  # steps in C order without gaps
        self.steps = int64s(strides, ndim) if strides else self.dense
        axes = list(zip(self.shape, self.steps, self.dense))
        self.is_dense = all(extent == 1 or step == dense for extent, step, dense in axes)
        self.size = (self.count * self.width + 7) // 8  # bytes of a copy without gaps
        ends = [step * (extent - 1) for extent, step, _ in axes]
        # In bytes from the start: the beginning of the lowest element, and the end of the highest.
        self.first = sum(min(end, 0) for end in ends) * self.width // 8
        self.end = ((sum(max(end, 0) for end in ends) + 1) * self.width + 7) // 8

    # law python/Layout.overlaps: python/copy
    def overlaps(self):
        """Whether elements may share memory, as those of a broadcast array do."""
        reach = 0
        for step, extent in sorted((abs(step), extent) for step, extent in zip(self.steps, self.shape) if extent > 1):
            if step <= reach:
                return True
            reach += step * (extent - 1)
        return False

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

import ctypes


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

import contextlib
import ctypes
from ctypes import c_void_p

OUT_OF_MEMORY = 2  # CUDA_ERROR_OUT_OF_MEMORY
WITHOUT_TIMING = 2  # CU_EVENT_DISABLE_TIMING

cuda = None  # functions of the driver, from bind_cuda() on
orders = None  # what was ordered since JavaScript asked; None until it asks for the first time


def bind_cuda(*addresses):
    """Bind the functions of the driver that order two streams, by their addresses."""
    global cuda
    pointer, unsigned = c_void_p, ctypes.c_uint
    types = [(pointer,), (pointer,), (pointer, unsigned), (pointer,), (pointer, pointer), (pointer, pointer, unsigned)]
    cuda = [ctypes.CFUNCTYPE(ctypes.c_int, *arguments)(at) for at, arguments in zip(addresses, types)]


def check(code, action="order two streams"):
    """Raise an exception if a call of the driver has failed."""
    if code == 0:
        return
    kind = MemoryError if code == OUT_OF_MEMORY else RuntimeError
    raise kind(f"the CUDA driver returned error {code} when asked to {action}")


@contextlib.contextmanager
def current(context):
    """Make a context current for a while, and afterwards the one that was current before."""
    push, pop, *_ = cuda
    check(push(context))
    try:
        yield
    finally:
        pop(ctypes.byref(c_void_p()))


def order_streams(context, home, consumer):
    """Make the consumer's stream wait for what is enqueued on the home stream."""
    _, _, create, destroy, record, wait = cuda
    event = c_void_p()
    with current(context):
        check(create(ctypes.byref(event), WITHOUT_TIMING))
        try:
            check(record(event, home))
            check(wait(consumer, event, 0))
        finally:
            destroy(event)
    if orders is not None:
        orders.append((context, home, consumer))


def take_orders():
    """Return what was ordered since the last call. The first call returns nothing, and starts the list."""
    global orders
    taken, orders = orders, []
    return taken or []


class RecordedEvent:
    """An event after all that is enqueued on a stream now."""

    def __init__(self, context, stream):
        _, _, create, _, record, _ = cuda
        self.context, self.event = context, c_void_p()
        with current(context):
            check(create(ctypes.byref(self.event), WITHOUT_TIMING))
            check(record(self.event, stream))

    def __del__(self):
        push, pop, _, destroy, _, _ = cuda
        if self.event and push(self.context) == 0:
            destroy(self.event)
            pop(ctypes.byref(c_void_p()))

import ctypes
import sys
from ctypes import c_void_p


unclaimed = []  # capsules whose struct was not taken yet at the last poll; append_unclaimed() adds one
capsule_structs = {}  # Arrow structs in capsules, by address


class Node:
    """An Arrow struct that a consumer holds, what it keeps alive, and the nodes of the structs inside it."""

    __slots__ = "struct", "owner", "table", "inner", "counter"


def make_node(one, owner, children, dictionary=None):
    """Make a struct ready for a consumer, and return its node. Its owner is kept alive until it is released."""
    node = Node()
    node.struct, node.owner = one, owner
    node.inner = list(children) if dictionary is None else [*children, dictionary]
    addresses = [ctypes.addressof(child.struct) for child in children]
    node.table = (c_void_p * len(children))(*addresses)
    one.n_children, one.children = len(children), ctypes.addressof(node.table) if children else None
    one.dictionary = None if dictionary is None else ctypes.addressof(dictionary.struct)
    one.release = release_code[type(one)]
    one.private_data = node.counter = counters.retain(node)
    return node


def copy_struct(kind, address, owner):
    """Return the node of a copy of an Arrow struct, with those inside it. Texts and buffers are the original's."""
    one = kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(kind)))
    children = (c_void_p * one.n_children).from_address(one.children) if one.n_children else ()
    return make_node(
        one,
        owner,
        [copy_struct(kind, child, owner) for child in children],
        copy_struct(kind, one.dictionary, owner) if one.dictionary else None,
    )


# law python/end_export: python/arrow_capsules
def end_export(counter):
    """Take back what a released struct has retained, and what the structs inside it have: they end with it."""
    owned = counters.take_back(counter)
    if type(owned) is not Node:
        return
    for child in owned.inner:
        if child.counter not in counters.numbers:
            continue  # it has ended before
        if child.struct.release or counters.is_released(child.counter):
            end_export(child.counter)
        # else the consumer has moved it out of its parent: it lives until its own callback is called


def put_in_capsule(one, name):
    """Return a capsule with an Arrow struct. No consumer need take it: it is released when the capsule is gone."""
    address = ctypes.addressof(one)
    capsule_structs[address] = one
    capsule = new_capsule(address, name, None)
    append_unclaimed(capsule)
    return capsule


# law python/append_unclaimed: python/export_array, python/arrow_capsules
def append_unclaimed(capsule):
    """Let polls look after a capsule until its struct is taken."""
    poll_exports()
    with lock:
        unclaimed.append(capsule)
        counters.numbers_for_javascript[2] = len(unclaimed)


# law python/release_unclaimed: python/arrow_capsules
def release_unclaimed(name, address):
    """Release the struct of a capsule that no consumer took it from, unless one has moved it out meanwhile."""
    if name.startswith(b"dltensor") or name == BUFFER_OF_VORTEX:
        deleter = address + (16 if name == b"dltensor_versioned" else 56)
        return Release(c_void_p.from_address(deleter).value)(address)
    one = capsule_structs.pop(address)
    if type(one) is ArrowDeviceArray:
        one = one.array
    if one.release:
        Release(one.release)(address)


def reference_counts(objects):
    """Return how many references there are to each object, with those that asking takes."""
    return [sys.getrefcount(one) for one in objects]


listed_only = reference_counts([object()])[0]  # the count of an object that only a list holds


# law python/poll_exports: python/offered_exchange_api
def poll_exports():
    """Take back the structs that consumers have released, and those in capsules that are gone unused."""
    while poll_once():
        pass  # what has ended may have held something else of ours


# law python/poll_once: python/export_array, python/offered_exchange_api
def poll_once():
    """Poll once, and return whether anything has ended."""
    has_ended = False
    with lock:
        for capsule, count in zip(list(unclaimed), reference_counts(unclaimed)):
            name = capsule_name(capsule)
            is_taken = name == BUFFER_OF_VORTEX and not capsule_destructor(capsule)
            if is_taken or name.startswith(b"used_"):
                unclaimed.remove(capsule)
            elif count <= listed_only + 1:  # the copy of the list
                has_ended = True
                unclaimed.remove(capsule)
                release_unclaimed(name, capsule_pointer(capsule, name))
        counters.numbers_for_javascript[2] = len(unclaimed)
        for counter in counters.released():
            if counter not in counters.numbers:
                continue  # it has ended with its parent
            end_export(counter)
            has_ended = True
    return has_ended

import ctypes
from ctypes import c_void_p


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

import ctypes

TIME_UNITS = {"s": "s", "m": "ms", "u": "us", "n": "ns"}


def time_type(format):
    """Return the types of an Arrow format's stored integers and of NumPy's times; None where NumPy has none."""
    if format == "tdD":
        return "<i4", "datetime64[D]"
    if format == "tdm":
        return "<i8", "datetime64[ms]"
    kind = {"ts": "datetime64", "tD": "timedelta64"}.get(format[:2])
    return None if kind is None else ("<i8", f"{kind}[{TIME_UNITS[format[2]]}]")


# law python/times_of: python/arrow_capsules
def times_of(numpy, array, stored, wanted):
    """Return a copy of an ArrowArray as NumPy's times, in UTC. A null is NaT."""
    length, offset = array.length, array.offset
    if length == 0:
        return numpy.empty(0, wanted)
    validity, data = (ctypes.c_void_p * 2).from_address(array.buffers)

    def elements(at, kind, count):
        size = numpy.dtype(kind).itemsize * count
        return numpy.frombuffer((ctypes.c_char * size).from_address(at), kind)

    made = elements(data, stored, offset + length)[offset:].astype("<i8").view(wanted)
    if validity is not None:
        bits = numpy.unpackbits(elements(validity, "u1", (offset + length + 7) // 8), bitorder="little")
        made[bits[offset : offset + length] == 0] = "NaT"
    return made

import ctypes
import itertools
from ctypes import c_void_p



class ArrowProtocol:
    """The protocol's methods, for classes that have \`\`arrow_schema()\`\` and \`\`arrow_array()\`\`."""

    __slots__ = ()

    def __arrow_c_schema__(self):
        return put_in_capsule(self.arrow_schema(), b"arrow_schema")

    # law python/ArrowProtocol.__arrow_c_array__: python/arrow_capsules
    def __arrow_c_array__(self, requested_schema=None):
        check_request(requested_schema, self.arrow_schema)
        one = self.arrow_array()
        if one.device_type != HOST:
            Release(one.array.release)(ctypes.addressof(one))
            raise BufferError("cannot export device memory as an array of the host: ask for __arrow_c_device_array__")
        return self.__arrow_c_schema__(), put_in_capsule(one.array, b"arrow_array")

    # law python/ArrowProtocol.__arrow_c_device_array__: python/arrow_capsules
    def __arrow_c_device_array__(self, requested_schema=None, **options):
        check_options(options)
        check_request(requested_schema, self.arrow_schema)
        one = self.arrow_array()
        return self.__arrow_c_schema__(), put_in_capsule(one, b"arrow_device_array")


class Arrow(ArrowProtocol):
    """An Arrow array of ours: it owns an ArrowSchema and an ArrowDeviceArray, by their addresses."""

    __slots__ = "schema", "array", "__weakref__"

    def __init__(self, schema, array):
        self.schema, self.array = schema, array

    # law python/Arrow.__del__: python/arrow_capsules
    def __del__(self):
        for kind, address in (ArrowSchema, self.schema), (ArrowArray, self.array):
            Release(kind.from_address(address).release)(address)

    def arrow_schema(self):
        return copy_struct(ArrowSchema, self.schema, self).struct

    def arrow_array(self):
        one = ArrowDeviceArray.from_buffer_copy(ctypes.string_at(self.array, ctypes.sizeof(ArrowDeviceArray)))
        one.array = copy_struct(ArrowArray, self.array, self).struct
        return one

    # law python/Arrow.__array__: python/arrow_capsules
    def __array__(self, dtype=None, copy=None):
        """Return dates and times as NumPy's. Of anything else NumPy would make an array of one object."""
        one, types = ArrowDeviceArray.from_address(self.array), time_type(self.format)
        if types is None or one.device_type != HOST:
            what = f"format {self.format}" if one.device_type == HOST else f"format {self.format} on a device"
            raise TypeError(f"cannot make a NumPy array of an Arrow array of {what}: import it by pyarrow.array()")
        if copy is False:
            raise ValueError("NumPy's times are a copy of Arrow's")
        import numpy  # NumPy has asked, or what iterates needs it

        made = times_of(numpy, one.array, *types)
        return made if dtype is None else made.astype(dtype)

    def __len__(self):
        return ArrowDeviceArray.from_address(self.array).array.length

    def __iter__(self):
        return iter(self.__array__())

    @property
    def format(self):
        return ctypes.string_at(ArrowSchema.from_address(self.schema).format).decode()

    def __repr__(self):
        return f"<Arrow array of format {self.format}>"


def arrow_type_of(array):
    """Return what an Array is in Arrow's terms: its format, its shape, and how many elements each axis has in all."""
    shape, format = array.interface["shape"], array.format
    if format is None:
        raise BufferError(
            f"cannot export {array.name} to Arrow: it has no such type, or none with gaps between elements"
        )
    if len(shape) == 0:
        raise BufferError("cannot export an array without axes to Arrow: reshape it to (1,)")
    return format.encode(), shape, list(itertools.accumulate(shape, lambda count, extent: count * extent))


def schema_of(array):
    """Return the ArrowSchema of an Array: lists of fixed size for all axes but the first."""
    format, shape, _ = arrow_type_of(array)
    inner = None
    for axis in reversed(range(len(shape))):
        is_last = axis == len(shape) - 1
        texts = [
            ctypes.create_string_buffer(text)
            for text in (format if is_last else b"+w:%d" % shape[axis + 1], b"item" if axis else b"")
        ]
        one = ArrowSchema(format=ctypes.addressof(texts[0]), name=ctypes.addressof(texts[1]))
        inner = make_node(one, texts, [] if is_last else [inner])
    return inner.struct


# law python/elements_of: python/arrow_capsules
def elements_of(array):
    """Return the ArrowDeviceArray of an Array. On a device its event is recorded on the home stream."""
    _, shape, counts = arrow_type_of(array)
    event = None if array.home is None else RecordedEvent(array.context, array.home)
    address = array.interface["data"][0] if counts[-1] else None
    inner = None
    for axis in reversed(range(len(shape))):
        is_last = axis == len(shape) - 1
        buffers = (c_void_p * 2)(None, address)
        one = ArrowArray(length=counts[axis], n_buffers=2 if is_last else 1, buffers=ctypes.addressof(buffers))
        inner = make_node(one, (array, buffers, event), [] if is_last else [inner])
    kind, number = array.device
    return ArrowDeviceArray(
        array=inner.struct,
        device_id=-1 if kind == HOST else number,
        device_type=kind,
        sync_event=None if event is None else ctypes.addressof(event.event),
    )

import ctypes
from ctypes import c_void_p



class StreamSchema:
    """The schema of a stream of ours, which is asked for once: a stream makes it anew only a few times."""

    __slots__ = ("struct",)

    def __init__(self, stream):
        self.struct = ArrowSchema()
        get_schema = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p)(stream.get_schema)
        if get_schema(ctypes.addressof(stream), ctypes.addressof(self.struct)) != 0:
            raise BufferError("cannot export an Arrow stream: its get_schema has failed")

    def __del__(self):
        if self.struct.release:
            Release(self.struct.release)(ctypes.addressof(self.struct))


class ArrowStream:
    """An Arrow stream of ours, which is read once: it owns a copy of the stream's struct, which no other code uses.

    It is empty until JavaScript gives the stream away by \`\`fill()\`\`.
    """

    __slots__ = "stream", "stream_schema", "__weakref__"

    def __init__(self):
        self.stream = self.stream_schema = None

    def fill(self, address):
        self.stream = self.kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(self.kind)))
        self.stream_schema = StreamSchema(self.stream)

    # law python/ArrowStream.__del__: python/arrow_capsules
    def __del__(self):
        if self.stream is not None:
            Release(self.stream.release)(ctypes.addressof(self.stream))

    # law python/ArrowStream.__arrow_c_schema__: python/arrow_capsules
    def __arrow_c_schema__(self):
        return put_in_capsule(self.schema(), b"arrow_schema")

    def schema(self):
        return copy_struct(ArrowSchema, ctypes.addressof(self.stream_schema.struct), self.stream_schema).struct

    # law python/ArrowStream.export: python/arrow_capsules
    def export(self, requested):
        if self.stream is None:
            raise BufferError("cannot export an Arrow stream twice: it is read once")
        check_request(requested, self.schema)
        stream, self.stream = self.stream, None
        return put_in_capsule(stream, self.name)


class HostStream(ArrowStream):
    """A stream of arrays on the host."""

    __slots__ = ()
    kind, name = ArrowArrayStream, b"arrow_array_stream"

    def __arrow_c_stream__(self, requested_schema=None):
        return self.export(requested_schema)


class DeviceStream(ArrowStream):
    """A stream of arrays on a device."""

    __slots__ = ()
    kind, name = ArrowDeviceArrayStream, b"arrow_device_array_stream"

    def __arrow_c_device_stream__(self, requested_schema=None, **options):
        check_options(options)
        return self.export(requested_schema)

import ctypes
from ctypes import c_int32, c_size_t, c_uint32, c_void_p


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
    """An array of Vortex of ours: an \`\`Arrow\`\` with its elements, and the nodes that it is made of."""

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

import contextlib
import ctypes
from types import SimpleNamespace


ALIGNMENT = 256  # bytes, as DLPack asks for
RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED

driver = None  # functions of the driver by name, from bind_memory() on


def bind_memory(*addresses):
    """Bind the driver's functions for memory of a device, by their addresses."""
    global driver
    pointer, size, address, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_int
    types = {
        "allocate": (pointer, size),
        "free": (address,),
        "copy": (address, address, size, pointer),
        "wait": (pointer,),
        "exchange_mode": (pointer,),
        "retain": (pointer, number),
        "release": (number,),
    }
    functions = {name: ctypes.CFUNCTYPE(ctypes.c_int, *types[name])(at) for name, at in zip(types, addresses)}
    driver = SimpleNamespace(**functions)


# law python/allocating: python/copy
@contextlib.contextmanager
def allocating(context):
    """Make a context current in which this thread allocates and frees, also while a stream is captured."""
    with current(context):
        mode = ctypes.c_int(RELAXED)  # in any other mode the capture would be invalidated
        driver.exchange_mode(ctypes.byref(mode))
        try:
            yield
        finally:
            driver.exchange_mode(ctypes.byref(mode))


def transfer(context, to, start, size, stream, is_waited_for=False):
    """Copy bytes in the order of a stream."""
    with current(context):
        check(driver.copy(to, start, size, stream), f"copy {size} bytes")
        if is_waited_for:
            check(driver.wait(stream), "wait for a copy")


class OnHost:
    """Aligned memory of Python."""

    __slots__ = "memory", "address"

    def __init__(self, size):
        self.memory = (ctypes.c_char * (size + ALIGNMENT - 1))()
        self.address = (ctypes.addressof(self.memory) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


class OnDevice:
    """Memory of a device. It retains the primary context. To free it, the driver waits for the work that uses it."""

    __slots__ = "number", "context", "address"

    # law python/OnDevice.__init__: python/copy
    def __init__(self, number, context, size):
        self.number, self.context, self.address = number, context, 0
        retained, address = ctypes.c_void_p(), ctypes.c_uint64()
        check(driver.retain(ctypes.byref(retained), number), "retain a context")
        try:
            with allocating(context):
                check(driver.allocate(ctypes.byref(address), size), f"allocate {size} bytes")
            self.address = address.value
        finally:
            if not self.address:
                driver.release(number)

    # law python/OnDevice.__del__: python/copy
    def __del__(self):
        if not self.address:
            return
        try:
            with allocating(self.context):
                driver.free(self.address)
        finally:
            driver.release(self.number)

import ctypes
from struct import pack



def bytes_at(address, size):
    """Return bytes at an address. ctypes.string_at() takes no more than 2 GiB."""
    return (ctypes.c_char * size).from_address(address).raw


def gathered(layout, start):
    """Return host memory with the elements in C order. The first one is at an address on the host."""
    made = OnHost(layout.size)
    if layout.is_dense:
        ctypes.memmove(made.address, start, layout.size)
    elif layout.width % 8 == 0:
        gather(made.address, layout, layout.width // 8, start)
    else:  # elements share bytes: meanwhile each bit takes a byte
        span, chosen = layout.end - layout.first, OnHost(layout.count * layout.width)
        bits = int.from_bytes(bytes_at(start + layout.first, span), "little")
        text = ctypes.create_string_buffer(format(bits, f"0{8 * span}b").encode()[::-1])
        gather(chosen.address, layout, layout.width, ctypes.addressof(text) - 8 * layout.first)
        bits = int(bytes_at(chosen.address, layout.count * layout.width)[::-1], 2)
        ctypes.memmove(made.address, bits.to_bytes(layout.size, "little"), layout.size)
    return made


def gather(to, layout, itemsize, start):
    """Write elements in C order, by the interpreter's own function for buffers, which is written in C."""
    ndim, size = len(layout.shape), layout.count * itemsize
    axes = (ctypes.c_ssize_t * (2 * ndim))(*layout.shape, *(step * itemsize for step in layout.steps))
    at = ctypes.addressof(axes)
    # Py_buffer: buf, obj, len, itemsize, readonly, ndim, format, shape, strides, suboffsets, internal
    view = pack("<QQqqiiQQQQQ", start, 0, size, itemsize, 1, ndim, 0, at, at + 8 * ndim, 0, 0)
    to_contiguous(to, view, size, b"C")


# law python/copy_of: python/copy
def copy_of(array, layout, home, is_on_device):
    """Return memory with a copy of an array, the address of its first element, and its steps.

    A copy on the host is complete on return, and one on the device in the order of the home stream.
    """
    if array.device[0] != CUDA:
        made = gathered(layout, layout.start)
        return made, made.address, layout.dense
    (_, number), context = array.device, array.context
    lowest, span = layout.start + layout.first, layout.end - layout.first
    if is_on_device and not layout.overlaps():  # as it is, gaps and all: to leave them out takes a kernel
        made = OnDevice(number, context, span)
        transfer(context, made.address, lowest, span, home)
        return made, made.address - layout.first, layout.steps
    staged = OnHost(span)
    transfer(context, staged.address, lowest, span, home, True)
    if not layout.is_dense:
        staged = gathered(layout, staged.address - layout.first)
    if not is_on_device:
        return staged, staged.address, layout.dense
    made = OnDevice(number, context, layout.size)
    transfer(context, made.address, staged.address, layout.size, home, True)  # the staged bytes must outlive it
    return made, made.address, layout.dense


# law python/copy_tensor: python/copy
def copy_tensor(array, is_versioned, device, stream):
    """Return the address of a struct over a copy of an array, which is the consumer's alone."""
    layout, home, consumer = Layout(array.tensor), array.home or 1, stream or 1
    is_on_device = device[0] == CUDA
    memory, data, steps = copy_of(array, layout, home, is_on_device) if layout.count else (None, 0, layout.dense)
    # The copy is made on the home stream: what the owner enqueues there next comes after it.
    if memory and is_on_device and stream != -1 and consumer != home:
        order_streams(array.context, home, consumer)
    return make_tensor(memory, is_versioned, COPIED | layout.padded, data, device, layout.type, layout.shape, steps)


# law python/make_tensor: python/copy
def make_tensor(memory, is_versioned, flags, data, device, type, shape, steps):
    """Return the address of a struct that keeps memory until its deleter is called."""
    ndim = len(shape)
    axes = (ctypes.c_int64 * (2 * ndim))(*shape, *steps)
    at = ctypes.addressof(axes) if ndim else 0
    tensor = pack(TENSOR, data, *device, ndim, *type, at, at and at + 8 * ndim, 0)
    struct = ctypes.create_string_buffer(VERSIONED if is_versioned else LEGACY)
    counter, deleter = counters.retain((struct, axes, memory)), release_code[len(struct)]
    if is_versioned:
        whole = pack("<IIQQQ", 1, 3, counter, deleter, flags) + tensor
    else:
        whole = tensor + pack("<QQ", counter, deleter)
    ctypes.memmove(struct, whole, len(struct))
    return ctypes.addressof(struct)

import builtins
import operator
import sys
import types


# law python/framed: python/object, python/frame, python/leaks
def framed(call):
    """Return a function whose frame is one of the module __main__, like its statements': its locals are its globals."""
    import __main__

    code = call.__code__
    optimized_or_newlocals = 3  # CO_OPTIMIZED | CO_NEWLOCALS
    code = code.replace(
        co_flags=code.co_flags & ~optimized_or_newlocals,
        co_filename="<JavaScript>",
        co_name="<module>",
        co_firstlineno=1,
    )
    return types.FunctionType(code, __main__.__dict__, "<module>", None, call.__closure__)


def make_frames():
    """Return three cells for the next call, and three functions that make the call.

    One is for arguments by position, one for a single argument, and one for arguments by name as well. The cells are
    for what is called, for the arguments by position or the single one, and for those by name: a frame of __main__ has
    no variables of its own. They are empty but while a call is made.
    """
    function = arguments = keywords = None
    frames = (
        framed(lambda: function(*arguments)),
        framed(lambda: function(arguments)),
        framed(lambda: function(*arguments, **keywords)),
    )
    cells = dict(zip(frames[2].__code__.co_freevars, frames[2].__closure__))
    for cell in cells.values():
        del cell.cell_contents
    return (cells["function"], cells["arguments"], cells["keywords"], *frames)


(
    function_cell,
    arguments_cell,
    keywords_cell,
    call_framed,
    call_framed_with_one,
    call_framed_by_name,
) = make_frames()


def call_in_frame(function, arguments, keywords):
    """Call a function from such a frame, on any thread."""
    import __main__

    code = call_framed_by_name.__code__
    values = {"function": function, "arguments": arguments, "keywords": keywords}
    cells = [types.CellType(values.pop(name)) for name in code.co_freevars]
    function = arguments = keywords = None
    try:
        return types.FunctionType(code, __main__.__dict__, "<module>", None, tuple(cells))()
    finally:
        for cell in cells:  # a traceback keeps them
            cell.cell_contents = None


# JavaScript compares types with these.
builtin_function, bound_method, module_type = types.BuiltinFunctionType, types.MethodType, types.ModuleType
generator_type = types.GeneratorType

# Called from a frame: pandas looks at who sets an item.
set_item, delete_item = operator.setitem, operator.delitem

# Functions written in C do not inspect frames, but for those of these two modules.
modules_with_frames = builtins, sys

import collections
import contextlib
import ctypes
import inspect
import os
import sys
import threading
import time
import weakref

PATIENCE = 5.0  # seconds that JavaScript may stay in one call of Python while a thread waits for it
LOOK = 0.25  # how often a thread that waits looks whether JavaScript can still answer, in seconds
LOOKS = 400  # of all threads together in a second: thousands would leave JavaScript no time to answer

RETURNED, RAISED = 1, 2  # what entering JavaScript returns
ENDED = "JavaScript has ended: its functions cannot be called any more"

# From bind_javascript() on: the thread of JavaScript, and the descriptor that wakes it. From bind_entrance() on: the C
# function that enters it.
javascript_thread = bell = enter = None

began = None  # when JavaScript's modules began to be loaded: the same in all copies of this package among them

ended = threading.Event()  # set at the end of a Worker, and of modules that were loaded again
bell_lock = threading.RLock()  # the descriptor is closed then, and its number may become another file's
when_ended = []  # functions that are called then
at_thread_end = None  # the C function that is called then

# The processor's flags of floating-point exceptions, which JavaScript's engines leave set for what is no error, such as
# a test whether a number is an integer. NumPy looks at them after a loop, and would warn of an invalid value.
# They are cleared after each function, also those of what the loop has done before: that is calls of Python, too.
clear_flags = ctypes.PyDLL("libm.so.6").feclearexcept
ALL_FLAGS = 0x3D if os.uname().machine == "x86_64" else 0x1F  # FE_ALL_EXCEPT

# For JavaScript to look at: a number that is odd while it is inside a call of Python, another one in each; and how many
# keys are dead. For JavaScript to set: that its modules are given up; and to reset: that it was rung.
numbers_for_javascript = (ctypes.c_int32 * 4)()
javascript_numbers = ctypes.addressof(numbers_for_javascript)

# The contexts in which a thread waits for JavaScript.
while_waiting = []
waiting = [0]  # how many threads do

live = {}  # weak references to what JavaScript keeps something for, by its key
dead = []  # keys of what is gone
# That JavaScript has not taken. Handlers of signals run on its thread, within code of Python's, and may raise. So it
# takes and answers requests by functions written in C: none is lost then.
requests = collections.deque()
take_request = requests.popleft


class Watched(weakref.ref):
    """A weak reference that knows its key."""

    __slots__ = ("key",)


def gone(reference):
    """Note that JavaScript need not keep what it has kept for an object."""
    if live.get(reference.key) is reference:
        del live[reference.key]
        dead.append(reference.key)
        numbers_for_javascript[1] = len(dead)


def watch(key, thing):
    """Have JavaScript keep something as long as an object lives; returns the object."""
    reference = Watched(thing, gone)
    reference.key = key
    live[key] = reference
    return thing


# law python/take_dead: python/functions
def take_dead():
    """Return the keys of what JavaScript need not keep any more. An object may have been made again for one."""
    keys = dead[:]
    del dead[: len(keys)]
    numbers_for_javascript[1] = len(dead)
    return [key for key in keys if key not in live]


class JavaScriptError(Exception):
    """An exception of JavaScript. If nobody catches it here, JavaScript gets the one that it has thrown."""

    __module__ = "causeway"

    def __init__(self, message, key):
        super().__init__(message)
        self.key = key


def error_of(message, key):
    """Return a new exception for one of JavaScript, which is kept by its key."""
    return watch(key, JavaScriptError(message, key))


# law python/runs_loop: python/coroutine_functions
def coroutine_marks():
    """Return the attributes by which inspect.iscoroutinefunction() recognizes a function, since Python 3.12."""

    def marked():
        pass

    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(marked)
    return vars(marked)


COROUTINE_MARKS = coroutine_marks()


def runs_loop():
    """Whether this thread runs a loop of asyncio's, which stands still while a function waits."""
    running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    return running is not None and running() is not None


# law python/signature_of: python/functions, python/coroutine_functions
def signature_of(count):
    """Return the signature of a function with so many parameters, whose names JavaScript does not tell."""
    kind = inspect.Parameter.POSITIONAL_ONLY
    return inspect.Signature([inspect.Parameter(f"argument{number}", kind) for number in range(1, count + 1)])


class JavaScriptFunction:
    """A function of JavaScript."""

    # As of a function of Python's, all attributes but the key can be set: libraries keep notes there, and
    # functools.wraps() copies them. The key is not among them, which would be copied to another function.
    __slots__ = ("key", "count", "is_async", "__dict__", "__weakref__")
    __module__ = "causeway"

    def __init__(self, key, name, count, is_async):
        self.key, self.count, self.is_async = key, count, is_async
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name):
        if name == "__signature__" and self.count:  # 0 is the length of one that takes any number, too
            return signature_of(self.count)
        if self.is_async and name in COROUTINE_MARKS:
            return COROUTINE_MARKS[name]
        if self.is_async and name == "_is_coroutine":  # asyncio.iscoroutinefunction() looks for that
            return getattr(sys.modules.get("asyncio.coroutines"), name, None)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    # law python/JavaScriptFunction: python/worker_end
    def __call__(self, *arguments, **keywords):
        if ended.is_set():  # the thread's number may be another one's by now
            raise RuntimeError(ENDED)
        if threading.get_native_id() == javascript_thread:
            return call_here(self.key, arguments, keywords)
        if self.is_async and runs_loop():

            return await_answer(self, Request(self.key, arguments, keywords))
        return ask_for(self.key, arguments, keywords, self.__name__)

    def __repr__(self):
        return f"<function {self.__name__ or '(anonymous)'} of JavaScript>"

    def __copy__(self):
        return self  # as a function of Python's is

    def __deepcopy__(self, _):
        return self

    def __reduce__(self):
        raise TypeError(f"cannot pickle {self!r}: another process could not call it")


def function_of(key, name, count, is_async):
    """Return the object for a function of JavaScript: always the same one, as long as it lives."""
    known = live.get(key)
    function = None if known is None else known()
    return watch(key, JavaScriptFunction(key, name, count, is_async)) if function is None else function


def bind_entrance(address):
    """Bind the function of JavaScript's that calls another one."""
    global enter
    # PYFUNCTYPE keeps the interpreter's lock: JavaScript is inside a call of Python, and goes on in it.
    anything = ctypes.py_object
    enter = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int64, anything, anything, anything)(address)


# law python/bind_javascript: python/worker_end
def bind_javascript(descriptor, endings, is_worker):
    """Bind the thread of JavaScript, which calls this, and the descriptor that wakes it.

    The endings are C calls of one argument that end the watch of the descriptor; None if nobody will say when.
    """
    global javascript_thread, bell, at_thread_end
    javascript_thread, bell = threading.get_native_id(), descriptor
    if endings is None:
        return
    if not is_worker:
        sides_of_process().append(lambda thread, others: end_if_given_up(endings, thread, others))
    else:
        # However the Worker ends, its thread runs this, and takes the interpreter's lock for it.
        at_thread_end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: (clear_error(), end(endings)))
        getattr(ctypes.CDLL(None), "__cxa_thread_atexit_impl")(at_thread_end, None, None)


# A Worker that ends within a function that Python has called leaves the exception of that call behind.
clear_error = ctypes.pythonapi.PyErr_Clear
clear_error.restype = None


# law python/end: python/worker_end, python/guest
def end(endings):
    """End what serves JavaScript that has ended: nothing of it may be called any more."""
    with bell_lock:
        ended.set()
        os.write(bell, b"\\1\\0\\0\\0\\0\\0\\0\\0")  # the watch's thread no longer waits then
        for address, argument in endings:
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_size_t)(address)(argument)
        os.close(bell)
    for function in when_ended:
        function()


def sides_of_process():
    """Return the list, of all copies of this package, of functions that end what serves JavaScript that is given up."""
    return vars(sys).setdefault("_causeway_javascript", [])


# law python/end_if_given_up: python/reloaded, python/guest
def end_if_given_up(endings, thread, others):
    """End what serves JavaScript whose modules were given up: the runtime has said so, or their thread has others."""
    with bell_lock:
        is_replaced = thread == javascript_thread and others != began
        if (numbers_for_javascript[2] or is_replaced) and not ended.is_set():
            end(endings)


# law python/end_given_up: python/reloaded
def end_given_up(now):
    """End what serves JavaScript that this one replaces, whose modules began to be loaded now.

    A program that is loaded again, as by \`\`deno run --watch\`\`, has the thread of the one before, whose functions
    are gone: entering one would end the process. Of a program that has failed, Deno does not say that it ends.
    """
    global began
    began = now
    for end_side in sides_of_process()[:]:
        end_side(threading.get_native_id(), now)


# law python/call_here: python/functions
def call_here(key, arguments, keywords):
    """Call a function of JavaScript on its thread."""
    box = [None]
    outcome = enter(key, arguments, keywords, box)
    if "numpy" in sys.modules:
        clear_flags(ALL_FLAGS)
    return open_box(outcome, box)


def open_box(outcome, box):
    """Return or raise what JavaScript has put into a box. It is taken out, so that no traceback keeps it."""
    if outcome == RETURNED:
        return box.pop()
    if outcome == RAISED:
        raise box.pop()
    raise RuntimeError(
        "JavaScript cannot answer: it has ended, or no stack is left, because functions of both languages call each "
        "other too deeply"
    )


# law python/ring: python/guest
def ring():
    """Wake JavaScript, unless it was woken already and has not come yet."""
    with bell_lock:
        if not numbers_for_javascript[3] and not ended.is_set():
            numbers_for_javascript[3] = 1
            os.write(bell, b"\\1\\0\\0\\0\\0\\0\\0\\0")


class Request:
    """A call of a function of JavaScript that another thread asks for."""

    def __init__(self, key, arguments, keywords):
        self.key, self.arguments, self.keywords, self.when_answered = key, arguments, keywords, None
        self.box, self.answered = [], threading.Lock()
        self.answered.acquire()
        self.put, self.tell = self.box.append, self.answered.release  # JavaScript puts a value, and an outcome
        # Who claims it first, without blocking, decides: JavaScript makes the call, or the thread has given it up.
        self.claim = threading.Lock().acquire

    def result(self):
        """Return or raise what JavaScript has answered."""
        self.arguments = self.keywords = None
        return open_box(self.box.pop(), self.box)


# law python/ask_for: python/async
def ask_for(key, arguments, keywords, name):
    """Have JavaScript call a function on its own thread, and wait for the result."""
    with contextlib.ExitStack() as stack:
        for context in while_waiting:
            stack.enter_context(context())
        stack.enter_context(counted())
        return answer_to(Request(key, arguments, keywords), name)


@contextlib.contextmanager
def counted():
    """Count this thread among those that wait for JavaScript."""
    with bell_lock:
        waiting[0] += 1
    try:
        yield
    finally:
        with bell_lock:
            waiting[0] -= 1


def answer_to(request, name):
    """Wait for what JavaScript answers."""
    patience = Patience(request, name)
    put_down(request)
    while not request.answered.acquire(timeout=patience.pause()):
        patience.look()
    return request.result()


def put_down(request):
    """Have JavaScript take a request."""
    requests.append(request)
    ring()


class Patience:
    """How long a request is waited for."""

    def __init__(self, request, name):
        self.request, self.name = request, name
        self.call, self.since = None, 0.0

    def pause(self):
        """Return after how many seconds to look whether JavaScript can still answer."""
        return max(LOOK, waiting[0] / LOOKS)

    # law python/Patience.look: python/functions, python/coroutine_functions, python/worker_end, python/reloaded
    def look(self):
        """Give the request up, by an error, if JavaScript cannot answer it."""
        now = numbers_for_javascript[0]
        if now != self.call or not now & 1:
            self.call, self.since = now, time.monotonic()
        elif time.monotonic() - self.since >= PATIENCE and self.request.claim(False):
            raise RuntimeError(
                f"cannot call the function {self.name or '(anonymous)'} of JavaScript from this thread: JavaScript has "
                f"been inside one call of Python for {PATIENCE:g} seconds, which may be waiting for this thread. "
                "Make that call by py.async, so that JavaScript can answer meanwhile"
            )
        if ended.is_set() or numbers_for_javascript[2]:
            raise RuntimeError(ENDED)


def run_handlers():
    """Let handlers of signals run: the interpreter calls them when it begins to run a function of Python's."""

import contextlib



# law python/await_answer: python/coroutine_functions
async def await_answer(function, request):
    """Await what JavaScript answers to the request for a function, which stays alive meanwhile."""
    import asyncio

    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits it any more
            loop.call_soon_threadsafe(woken.set_result, None)

    request.when_answered = wake
    patience = Patience(request, function.__name__)
    with counted():
        put_down(request)
        try:
            # Also if a signal's handler has kept JavaScript from waking the loop.
            while not request.answered.acquire(blocking=False):
                if not (await asyncio.wait([woken], timeout=patience.pause()))[0]:
                    patience.look()
        finally:
            request.claim(False)  # a call that nobody awaits any more does not begin
    return request.result()

import collections
import contextlib
import ctypes
import inspect
import queue
import threading


MAX_THREADS = 32  # calls that run at the same time, not counting those that wait for JavaScript; others wait for one
TO_THREAD = 128  # functions of asyncio.to_thread, which asyncio would run a few of: any may wait for JavaScript

jobs = queue.SimpleQueue()
END = object()  # for one thread, instead of a job
threads_lock = threading.Lock()
thread_count = waiting_count = 0
calls_made = (ctypes.c_int64 * 2)()  # how many threads make one, and the address of _exit(), for bind_exit()
# Numbers of calls that are over, whether each has returned, and what it has returned or raised. JavaScript takes these
# as it takes requests.
finished = collections.deque()
take_finished = finished.popleft
loop = None  # asyncio's, once there was a coroutine
is_loop_over = False


class Job:
    """A call that was begun."""

    def __init__(self, number, function, arguments, keywords):
        self.number, self.call = number, (function, arguments, keywords)
        self.task, self.is_cancelled, self.end = None, False, None

    def take(self):
        """Return what to call, which the job forgets; None if nobody wants it any more."""
        call, self.call = self.call, None
        return call

    def drop(self):
        """Forget what to call, if it has not begun. Return whether there was anything."""
        call = self.take()
        if call is not None and call[0] is wait_for:
            close_unawaited(*call[1])
        return call is not None

    def finish(self, has_returned, value):
        """Keep what the call has returned or raised."""
        self.end = self.number, has_returned, value

    def do(self):
        """Make the call. What it was given is released before JavaScript learns of its end."""
        call = self.take()
        if call is None:
            return
        try:
            function, arguments, keywords = call
            call = None
            try:
                result = call_in_frame(function, arguments, keywords)
            finally:
                function = arguments = keywords = None
        except BaseException as error:  # also SystemExit: it would end a thread that has other jobs
            self.finish(False, error)
        else:
            if is_awaitable(result):
                await_result(self, result)
                return
            self.finish(True, result)
            result = None
        self.tell()

    # law python/Job.tell: python/raised, python/guest
    def tell(self):
        """Tell JavaScript, which then has the only reference to what the call has returned or raised."""
        if ended.is_set():
            self.end = None
            return
        finished.append(self.take_end())
        ring()

    def take_end(self):
        """Return how the call has ended, which the job forgets: no variable may have it when JavaScript gets it."""
        end, self.end = self.end, None
        return end

    # law python/Job.cancel: python/async
    def cancel(self):
        """Cancel a call that has not begun, and a coroutine, which gets a CancelledError where it waits."""
        self.is_cancelled = True
        self.drop()
        if self.task is not None:
            loop.call_soon_threadsafe(self.task.cancel)


def begin_call(number, function, arguments, keywords):
    """Begin a call, and return its job."""
    job = Job(number, function, arguments, keywords or {})
    if inspect.iscoroutinefunction(function):
        run_in_loop(job)
    else:
        enqueue(job)
    return job


def enqueue(job):
    """Have a thread do a job."""
    global thread_count, waiting_count
    with threads_lock:
        is_needed = waiting_count <= 0 and thread_count < MAX_THREADS
        try:
            if is_needed:
                start_thread()
                thread_count += 1
        except RuntimeError:  # the system has no more
            if thread_count <= 0:
                raise
            is_needed = False
        if not is_needed:
            waiting_count -= 1  # a thread that waits takes it, or one that becomes free
    jobs.put(job)


def bind_exit(code):
    """Have the C library call machine code when the process exits, which ends it at once while calls are made."""
    process = ctypes.CDLL(None)
    calls_made[1] = ctypes.cast(process["_exit"], ctypes.c_void_p).value
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(calls_made))  # the C library forgets nothing
    process.on_exit(ctypes.c_void_p(code), ctypes.c_void_p(ctypes.addressof(calls_made)))


def start_thread():
    """Start a thread of the pool."""
    threading.Thread(target=work, name="causeway", daemon=True).start()


# law python/work: python/async, python/worker_end, python/exit
def work():
    """Do jobs, one after the other."""
    global thread_count, waiting_count
    while True:
        job = jobs.get()
        if ended.is_set():
            jobs.put(None)  # for the next thread
            return
        if job is END:
            return
        with threads_lock:
            calls_made[0] += 1
        try:
            job.do()
        except BaseException as error:  # there may be no thread for asyncio; this one would be missed for ever
            job.finish(False, error)
            job.tell()
        job = None
        with threads_lock:
            calls_made[0] -= 1
            if thread_count > MAX_THREADS:  # others have begun while it waited for JavaScript
                thread_count -= 1
                return
            waiting_count += 1


# law python/replaced: python/async
@contextlib.contextmanager
def replaced():
    """Let another thread do jobs while this one waits for JavaScript: what it waits for may be one of them.

    This one may be a thread of the program's own: nobody knows whether one of the pool waits for it.
    """
    global thread_count, waiting_count
    with threads_lock:
        is_of_pool = thread_count > 0
        is_needed = is_of_pool and waiting_count < 0
        if is_needed:
            with contextlib.suppress(RuntimeError):  # the system has no more threads: the next that is free takes it
                start_thread()
                thread_count += 1
                waiting_count += 1
        if is_of_pool:
            thread_count -= 1
    try:
        yield
    finally:
        if is_of_pool:
            with threads_lock:
                thread_count += 1
                if thread_count > MAX_THREADS and waiting_count > 0:  # one of those that wait for jobs ends
                    thread_count -= 1
                    waiting_count -= 1
                    jobs.put(END)


while_waiting.append(replaced)


# law python/is_awaitable: python/async
def is_awaitable(result):
    """Whether a result can be awaited. Some cannot be asked, such as a weak reference to what is gone."""
    try:
        return inspect.isawaitable(result)
    except BaseException:  # whatever its class does when it is asked
        return False


# law python/await_result: python/guest
def await_result(job, awaitable):
    """Await what a call has returned."""
    job.call = wait_for, (awaitable,), {}
    if job.is_cancelled or ended.is_set():
        job.call = None
        close_unawaited(awaitable)
    else:
        run_in_loop(job)


def close_unawaited(awaitable):
    """Close a coroutine that nobody will await: Python complains about one that is dropped without it."""
    if inspect.iscoroutine(awaitable):
        with contextlib.suppress(BaseException):
            awaitable.close()


async def wait_for(awaitable):
    """Return what an awaitable gives."""
    return await awaitable


def run_in_loop(job):
    """Run a coroutine on the thread of asyncio's loop."""
    global loop
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    with threads_lock:
        if loop is None:
            loop = asyncio.new_event_loop()
            loop.set_default_executor(ThreadPoolExecutor(TO_THREAD, "causeway-to-thread"))
            try:
                threading.Thread(target=run_for_ever, name="causeway-asyncio", daemon=True).start()
            except BaseException:
                loop = None  # one without a thread would never run anything
                raise

    async def run():
        job.task = asyncio.current_task()
        call = job.take()
        if call is None:
            return
        try:
            function, arguments, keywords = call
            call = None
            try:
                result = await function(*arguments, **keywords)
            finally:
                function = arguments = keywords = None
        except BaseException as error:
            job.finish(False, error)
        else:
            job.finish(True, result)
            result = None
        finally:
            job.task = None
        job.tell()

    # law python/tell_unbegun: python/async
    def tell_unbegun(_):
        """Tell of a call that the program has cancelled before it began: its coroutine has done nothing."""
        if job.drop():
            job.finish(False, asyncio.CancelledError())
            job.tell()

    asyncio.run_coroutine_threadsafe(run(), loop).add_done_callback(tell_unbegun)


# law python/run_for_ever: python/async
def run_for_ever():
    """Run the loop. A task's SystemExit and KeyboardInterrupt also leave it, and stop() ends it: others wait in it."""
    global is_loop_over
    while not ended.is_set():
        with contextlib.suppress(BaseException):  # who awaits the task has it, too
            loop.run_forever()
    is_loop_over = True
    with contextlib.suppress(BaseException):
        loop.run_until_complete(cancel_all())
    loop.close()


# law python/cancel_all: python/guest
async def cancel_all():
    """Cancel the loop's coroutines, wait for them, and close its generators."""
    import asyncio

    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await loop.shutdown_asyncgens()


def stop_loop():
    """Stop the loop, on its thread, unless it runs for the last time."""
    if not is_loop_over:
        loop.stop()


# law python/end_threads: python/worker_end, python/guest
def end_threads():
    """End the threads of a Worker that has ended, after the calls that they make. Those not yet begun are dropped."""
    finished.clear()
    jobs.put(None)
    if loop is not None:
        loop.call_soon_threadsafe(stop_loop)


when_ended.append(end_threads)


async def next_of(iterator, method="__anext__", *given):
    """Return a tuple of an asynchronous iterator's next item; None at its end."""
    try:
        return (await getattr(iterator, method)(*given),)
    except StopAsyncIteration:
        return None


async def close_iterator(iterator):
    """Close an asynchronous generator; other iterators cannot be closed."""
    if hasattr(iterator, "aclose"):
        await iterator.aclose()

import math
import operator
import sys
from struct import iter_unpack, unpack



# law python/loaded: python/numpy
def loaded(name):
    """Return a module if a program has imported it and it is loaded in full; else None."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module


def numpy_type(array):
    """Return the type of an array's elements in NumPy or ml_dtypes, if they are loaded and have it; else None."""
    numpy, ml_dtypes = loaded("numpy"), loaded("ml_dtypes")
    if numpy is None:
        return None
    if array.interface["typestr"] is not None:
        return numpy.dtype(array.interface["typestr"])
    return numpy.dtype(getattr(ml_dtypes, array.name)) if hasattr(ml_dtypes, array.name) else None


# How struct reads an element, by what its type string ends in. A complex number is read as two.
ELEMENT_FORMATS = {
    "b1": "?",
    "i1": "b",
    "u1": "B",
    "i2": "<h",
    "u2": "<H",
    "i4": "<i",
    "u4": "<I",
    "i8": "<q",
    "u8": "<Q",
    "f2": "<e",
    "f4": "<f",
    "f8": "<d",
    "c8": "<ff",
    "c16": "<dd",
}


class ArrayMembers:
    """Shape, type and elements."""

    __slots__ = ()

    @property
    def shape(self):
        return self.interface["shape"]

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def dtype(self):
        """The type in NumPy, if it is loaded and has it; else the type's name."""
        type = numpy_type(self)
        return self.name if type is None else type

    @property
    def itemsize(self):
        return (self.layout.width + 7) // 8

    @property
    def nbytes(self):
        return self.layout.size

    @property
    def strides(self):
        """Strides in bytes; None where elements share bytes."""
        layout = self.layout
        return None if layout.width % 8 else tuple(step * layout.width // 8 for step in layout.steps)

    @property
    def T(self):  # noqa: N802 -- as NumPy's arrays call it

        layout = self.layout
        return Part(self, layout, layout.start, layout.shape[::-1], layout.steps[::-1])

    @property
    def layout(self):
        return Layout(self.tensor)

    def __len__(self):
        if not self.shape:
            raise TypeError("cannot tell the length of an array without axes")
        return self.shape[0]

    # law python/ArrayMembers.__bool__: python/numpy
    def __bool__(self):
        if self.size != 1:
            raise ValueError(f"the truth of an array of {self.size} elements is ambiguous")
        return bool(self[(0,) * self.ndim])

    # law python/ArrayMembers.__iter__: python/numpy
    def __iter__(self):
        length, layout, element_format = len(self), self.layout, self.element_format
        if len(layout.shape) > 1 or element_format is None or self.device[0] != HOST:
            return (self[i] for i in range(length))
        dense = gathered(layout, layout.start)
        return map(value_of, iter_unpack(element_format, bytes_at(dense.address, layout.size)))

    # law python/ArrayMembers.__getitem__: python/numpy
    def __getitem__(self, key):

        layout, keys = self.layout, key if type(key) is tuple else (key,)
        if layout.width % 8:
            raise TypeError(f"cannot take elements of {self.name} one by one: they share bytes. See the bytes as uint8")
        start, shape, steps = select(layout, keys)
        if shape or any(key is Ellipsis for key in keys):
            return Part(self, layout, start, shape, steps)
        if self.device[0] != HOST:
            raise TypeError("cannot read an element of device memory on the host: copy the array to the host first")
        if self.element_format is None:
            return Part(self, layout, start, (), ()).__array__()[()]
        return value_of(unpack(self.element_format, bytes_at(start, layout.width // 8)))

    @property
    def element_format(self):
        return ELEMENT_FORMATS.get((self.interface["typestr"] or "")[1:])


def value_of(numbers):
    """Return an element of the one or two numbers that it consists of."""
    return numbers[0] if len(numbers) == 1 else complex(*numbers)


# law python/select: python/numpy
def select(layout, keys):
    """Return the address of the first element that keys select, the shape and the steps: as NumPy's basic indexing."""
    ellipses = [at for at, key in enumerate(keys) if key is Ellipsis]
    indexed = sum(key is not None and key is not Ellipsis for key in keys)
    if len(ellipses) > 1:
        raise IndexError("cannot index an array by more than one ellipsis")
    if indexed > len(layout.shape):
        raise IndexError(f"cannot index {len(layout.shape)} axes by {indexed} keys")
    at = ellipses[0] if ellipses else len(keys)
    keys = (*keys[:at], *[slice(None)] * (len(layout.shape) - indexed), *keys[at + 1 :])
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
        else:
            first = position(key, extent)
        start += first * step * layout.width // 8
    return start, tuple(shape), tuple(steps)


# law python/position: python/numpy
def position(key, extent):
    """Return the position that an integer means on an axis: negative ones count from the end."""
    try:
        at = None if isinstance(key, bool) else operator.index(key)
    except TypeError:
        at = None
    if at is None:
        raise TypeError(
            f"cannot index an array by {key!r}: expected integers, slices, None and an ellipsis. numpy.asarray(array) "
            "takes all that NumPy knows"
        )
    if not -extent <= at < extent:
        raise IndexError(f"index {at} is out of bounds for an axis of {extent}")
    return at % extent

import ctypes
import math
import sys


NOWHERE = 256  # the address of an array without elements on the host, which is never read
LEGACY_STREAM = 1  # how DLPack calls CUDA's legacy default stream
contexts = {}  # of the devices on which arrays of ours have been, by the device's number


class CausewayArray:
    """All arrays of ours. torch's functions take them as tensors over the same memory."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        """Call a function of torch that was given an array of ours."""
        return function(*convert_arrays(arguments, tensor_of), **convert_arrays(keywords or {}, tensor_of))


# law python/tensor_of: peers/torch
def tensor_of(array):
    """Return torch's tensor over the memory of an array."""
    if min(array.strides or (), default=0) < 0:  # torch.from_dlpack would end the process
        raise ValueError(
            "torch has no tensors with negative strides: copy the array first, in JavaScript with toDense()"
        )
    return sys.modules["torch"].from_dlpack(array)


# law python/convert_arrays: python/guest, python/export_array
def convert_arrays(value, convert):
    """Return a value in which each array of ours is converted."""
    if isinstance(value, CausewayArray):
        return convert(value)
    if type(value) in (list, tuple):
        return type(value)(convert_arrays(one, convert) for one in value)
    if type(value) is dict:
        return {key: convert_arrays(one, convert) for key, one in value.items()}
    return value


class Array(CausewayArray, ArrowProtocol, ArrayMembers):
    """An array of JavaScript, for consumers of any of the protocols.

    If it was an Arrow array (\`\`arrow\`\`), consumers of Arrow get it as that.
    """

    __slots__ = "tensor", "name", "format", "arrow", "interface", "device", "context", "home_stream", "__weakref__"

    # law python/Array.__init__: python/numpy, python/export_array
    def __init__(self, tensor, name, format, arrow, shape, strides, typestr, address, readonly, device, context, home):
        self.tensor, self.name, self.format, self.arrow, self.device = tensor, name, format, arrow, device
        self.context, self.home_stream = context, home
        if context is not None:
            contexts[device[1]] = context
        self.interface = {
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
            # Given NULL, NumPy allocates memory of its own, or refuses.
            "data": (address or NOWHERE if device[0] == HOST else address, readonly),
        }

    def __del__(self):
        if self.tensor is not None:
            release_tensor(self.tensor)

    @property
    def home(self):
        """The stream that consumers must wait for, or None."""
        return self.home_stream

    def arrow_schema(self):
        return schema_of(self) if self.arrow is None else self.arrow.arrow_schema()

    def arrow_array(self):
        return elements_of(self) if self.arrow is None else self.arrow.arrow_array()

    def __dlpack_device__(self):
        return self.device

    # law python/Array.__dlpack__: python/export_array
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        device = self.device if dl_device is None else tuple(dl_device)
        self.check_request(device, copy, stream)
        is_versioned = max_version is not None and max_version[0] >= 1
        is_copy = copy or device != self.device
        if not is_versioned and not is_copy and self.interface["data"][1]:
            raise BufferError(
                "cannot export a read-only array to a consumer of DLPack below 1.0, which has no flag that says so"
            )
        if not is_versioned and flags_of(self.tensor) & PADDED:
            raise BufferError(
                f"cannot export {self.name} to a consumer of DLPack below 1.0, which has no flag that says that "
                "each element has a byte of its own"
            )
        if is_copy:
            address = copy_tensor(self, is_versioned, device, stream)
        else:
            self.order_consumer(stream)
            address = self.share_tensor(is_versioned)
        capsule = new_capsule(address, b"dltensor_versioned" if is_versioned else b"dltensor", None)
        append_unclaimed(capsule)
        return capsule

    # law python/Array.check_request: python/guest, python/export_array
    def check_request(self, device, copy, stream):
        """Raise an exception if a consumer asks for what is not supported."""
        if device != self.device and device != (HOST, 0):
            raise BufferError(
                f"cannot export memory of device {self.device!r} as memory of {device!r}: only where it is, or as a "
                "copy on the host, (1, 0)"
            )
        if device != self.device and copy is False:
            raise BufferError(f"cannot export memory of device {self.device!r} on the host without a copy")
        if self.device[0] == HOST and stream is not None and stream != -1:
            raise BufferError("cannot order host memory on a stream")
        if stream == 0:
            raise BufferError("stream 0 is ambiguous: pass 1 for the legacy default stream")

    def share_tensor(self, is_versioned):
        """Return the address of a struct over the same memory, which keeps this array until its deleter is called."""
        tensor = ctypes.string_at(self.tensor, VERSIONED)
        if not is_versioned:
            tensor = tensor[32:] + bytes(LEGACY - 48)
        struct = ctypes.create_string_buffer(tensor, len(tensor))
        address = ctypes.addressof(struct)
        context, deleter = (8, 16) if is_versioned else (48, 56)  # where manager_ctx and deleter lie
        ctypes.c_void_p.from_address(address + context).value = counters.retain((self, struct))
        ctypes.c_void_p.from_address(address + deleter).value = release_code[len(tensor)]
        return address

    def order_consumer(self, stream):
        """Make a consumer's stream wait for the home stream. With -1 the consumer wants no order."""
        home, consumer = self.home, stream or LEGACY_STREAM
        if self.device[0] != HOST and stream != -1 and home is not None and consumer != home:
            order_streams(self.context, home, consumer)

    @property
    def __array_interface__(self):
        if self.device[0] != HOST or self.interface["typestr"] is None:
            raise AttributeError("__array_interface__")
        return self.interface

    @property
    def __cuda_array_interface__(self):
        if self.device[0] == HOST or self.interface["typestr"] is None:
            raise AttributeError("__cuda_array_interface__")
        return dict(self.interface, stream=self.home)

    # law python/Array.__array__: python/guest, python/export_array
    def __array__(self, dtype=None, copy=None):
        import numpy

        if self.device[0] != HOST:
            raise TypeError("cannot make a NumPy array of device memory: copy it first")
        if self.interface["typestr"] is None:
            try:
                import ml_dtypes
            except ImportError:
                ml_dtypes = None
            if not hasattr(ml_dtypes, self.name):
                raise TypeError(
                    f"cannot make a NumPy array of {self.name}, which NumPy has no type for: see the bytes as uint8"
                    + ("" if ml_dtypes else ", or install ml_dtypes, which may have one")
                )
            kind = numpy.dtype(getattr(ml_dtypes, self.name))
            bits = f"<u{kind.itemsize}" if kind.itemsize > 1 else "|u1"
            array = numpy.asarray(MemoryAs(self, bits)).view(kind)
        else:
            array = numpy.asarray(MemoryAs(self, self.interface["typestr"]))
        if dtype is None or dtype == array.dtype:
            return array.copy() if copy else array
        if copy is False:
            raise ValueError(f"cannot make an array of {dtype} from one of {array.dtype} without a copy")
        return array.astype(dtype)

    def __array_ufunc__(self, function, method, *arguments, **keywords):
        """Call an element-wise function of NumPy, which writes into an Array (\`\`out=\`\`) through this method alone."""
        import numpy

        return getattr(function, method)(
            *convert_arrays(arguments, numpy.asarray), **convert_arrays(keywords, numpy.asarray)
        )

    # law python/Array.__array_function__: python/numpy, python/export_array
    def __array_function__(self, function, types, arguments, keywords):
        """Call any other function of NumPy."""
        import numpy

        if self.device[0] != HOST and not all(issubclass(one, CausewayArray) for one in types):
            return NotImplemented
        return function(*convert_arrays(arguments, numpy.asarray), **convert_arrays(keywords, numpy.asarray))

    def __repr__(self):
        return f"<array of shape {self.shape!r} and type {self.name}>"


class MemoryAs:
    """The memory of an Array under another type string, for NumPy."""

    def __init__(self, array, typestr):
        self.array, self.__array_interface__ = array, dict(array.interface, typestr=typestr)


class Part(Array):
    """Some of the elements of an array, which it keeps."""

    __slots__ = ("whole",)

    # law python/Part.__init__: python/numpy
    def __init__(self, whole, layout, start, shape, steps):
        tensor = make_tensor(
            whole,
            True,
            flags_of(whole.tensor) & (READ_ONLY | PADDED),
            start if math.prod(shape) else 0,
            whole.device,
            layout.type,
            shape,
            steps,
        )
        own = Layout(tensor)
        self.whole = whole
        super().__init__(
            tensor,
            whole.name,
            whole.format if own.is_dense else None,
            None,
            shape,
            None if own.is_dense else tuple(step * own.width // 8 for step in steps),
            whole.interface["typestr"],
            start,
            whole.interface["data"][1],
            whole.device,
            whole.context,
            None,
        )

    # law python/Part.home: python/numpy
    @property
    def home(self):
        return self.whole.home



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



# law python/check_elements: python/malformed, peers/torch
def check_elements(value):
    """Raise an exception for a torch tensor whose elements are not what its memory says."""
    for bit in "conj", "neg":
        resolve = "resolve_" + bit
        if hasattr(type(value), resolve) and getattr(value, "is_" + bit)():
            raise BufferError(
                f"cannot export a tensor with the bit {bit}, whose memory holds other numbers: call {resolve}() first"
            )


newest_version, by_version = (1, 3), ("max_version",)  # what NumPy's arrays are asked for, and the argument's name


# law python/request_capsule: python/malformed, peers/torch
def request_capsule(value, stream):
    """Return the DLPack capsule of an array: a versioned one, or one without a version from a library that has none."""
    check_elements(value)
    on_host = value.__dlpack_device__()[0] in (HOST, CUDA_HOST)  # which no stream orders
    options = {} if stream is None or on_host else {"stream": stream}
    try:
        return value.__dlpack__(max_version=newest_version, **options)
    except TypeError:
        return value.__dlpack__(**options)


# law python/split_interface: python/interface_buffers
def split_interface(array, described):
    """Return what describes an array, and the bytes of the buffer that it names as its data, or None.

    The data of an array interface are an address, or an object with a buffer, or nothing: then the array has one.
    """
    data = described.get("data") if isinstance(described, dict) else ()
    if isinstance(data, tuple):
        return described, None
    try:
        buffer = memoryview(array if data is None else data)
        return {**described, "data": None}, buffer.cast("B") if buffer.nbytes > 0 else memoryview(b"")
    except (TypeError, ValueError, BufferError):  # it has no buffer, or one that was released, or has gaps
        return {**described, "data": None if data is None else repr(data)[:100]}, None


def is_plain(value):
    """Whether a torch tensor is no more than DLPack can say."""
    return not (value.requires_grad or value.is_conj() or value.is_neg())

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
`;

/** Run in the same namespace before the first array goes to Python. */
export const exchangeApiSource = `
import ctypes
from struct import pack


work_streams = None  # the address of the handles of streams, one for each device, and how many there are
dtypes = None  # name, type string and Arrow format, by DLPack's code, bits, lanes, and whether elements are padded
table = None  # the struct with the functions


def work_stream(number):
    """Return the stream on which consumers of the table work on a device."""
    address, count = work_streams
    return ctypes.c_uint64.from_address(address + 8 * number).value if number < count else LEGACY_STREAM


# law python/tensor_from_object: python/current_work_streams
def tensor_from_object(address):
    """Return a tensor over an array of ours, ready for work on the stream that the table names."""
    array, ordered = plain_array(ctypes.cast(address, ctypes.py_object).value), None
    kind, number = array.device
    # The driver is called without the interpreter's lock: another stream may be named meanwhile.
    while kind != HOST and work_stream(number) != ordered:
        ordered = work_stream(number)
        array.order_consumer(ordered)
    return array.share_tensor(True)


class Foreign(Array):
    """An array over a tensor that a library has made: it has the library's deleter."""

    __slots__ = ()

    # law python/Foreign.__init__: python/offered_exchange_api
    def __init__(self, address):
        self.tensor = None  # it is not ours to release before nothing is left that may fail
        data, kind, number, ndim, code, bits, lanes, shape, strides, offset = tensor_fields(address + 32)
        flags = flags_of(address)
        key = (code, bits, lanes, bool(flags & PADDED))
        if key not in dtypes:
            raise BufferError(f"cannot take elements of the DLPack type ({code}, {bits}, {lanes})")
        if kind != HOST and (kind != CUDA or number not in contexts):
            raise BufferError(f"cannot take memory of device ({kind}, {number}): no array of ours was ever there")
        name, typestr, format = dtypes[key]
        extents = int64s(shape, ndim)
        dense, step = [], 1
        for extent in reversed(extents):
            dense.insert(0, step)
            step *= max(extent, 1)
        steps = int64s(strides, ndim) if strides else tuple(dense)
        is_dense = 0 in extents or all(a == b for a, b, extent in zip(steps, dense, extents) if extent != 1)
        width = 8 if flags & PADDED else bits * lanes
        in_bytes = None if is_dense else tuple(step * width // 8 for step in steps)
        Array.__init__(
            self,
            None,
            name,
            format if is_dense else None,
            None,
            extents,
            in_bytes,
            typestr,
            data + offset,
            bool(flags & READ_ONLY),
            (kind, number),
            contexts.get(number) if kind == CUDA else None,
            None,
        )

    # law python/Foreign.home: python/current_work_streams
    @property
    def home(self):
        """The stream that the table names: the library made the array on it, or on one that was named before.

        What is done on a stream comes after all that was done on those named before it.
        """
        kind, number = self.device
        return None if kind == HOST else work_stream(number)

    # law python/Foreign.__del__: python/offered_exchange_api
    def __del__(self):
        if self.tensor is None:
            return
        deleter = ctypes.c_uint64.from_address(self.tensor + 16).value
        if deleter:
            Release(deleter)(self.tensor)


# law python/object_from_tensor: python/guest
def object_from_tensor(address):
    """Return the address of a new reference to an array over a tensor, which the array releases."""
    foreign = Foreign(address)
    array = for_numpy(foreign)
    foreign.tensor = address  # from here on it is ours to release
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(array))
    return id(array)


c_library = ctypes.CDLL(None)
malloc = function(c_library, "malloc", ctypes.c_void_p, ctypes.c_size_t)
free_address = ctypes.cast(c_library.free, ctypes.c_void_p).value


# law python/allocate_tensor: python/offered_exchange_api
def allocate_tensor(prototype):
    """Return a new tensor like a DLTensor. On the host it is one block of malloc(), and its deleter is free()."""
    _, kind, number, ndim, code, bits, lanes, shape, _, _ = tensor_fields(prototype)
    is_on_device = kind == CUDA and number in contexts
    if kind != HOST and not is_on_device:
        raise BufferError(
            f"cannot allocate on device ({kind}, {number}): only on the host, and on CUDA devices where arrays of ours "
            "have been"
        )
    extents = int64s(shape, ndim)
    if min(extents, default=0) < 0:
        raise BufferError(f"cannot allocate an array of shape {extents!r}")
    steps, count = [], 1
    for extent in reversed(extents):
        steps.insert(0, count)
        count *= extent
    head, size = VERSIONED + 16 * ndim, (count * bits * lanes + 7) // 8
    if size >= 2**62:
        raise MemoryError(f"cannot allocate {size} bytes")
    if is_on_device:
        poll_exports()  # what was released is freed first: a consumer may allocate in a loop
        memory = OnDevice(number, contexts[number], size) if size else None
        data = memory.address if size else 0
        return make_tensor(memory, True, 0, data, (CUDA, number), (code, bits, lanes), extents, steps)
    block = malloc(head + ALIGNMENT - 1 + size)
    if not block:
        raise MemoryError(f"cannot allocate {size} bytes")
    data = (block + head + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT if size else 0
    at = block + VERSIONED if ndim else 0
    tensor = pack("<IIQQQ", 1, 3, 0, free_address, 0)
    tensor += pack(TENSOR, data, HOST, 0, ndim, code, bits, lanes, at, at and at + 8 * ndim, 0)
    ctypes.memmove(block, tensor + pack(f"<{2 * ndim}q", *extents, *steps), head)
    return block


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p)
def managed_tensor_allocator(prototype, out, context, set_error):
    """The table's function that allocates. A callback reports errors: an exception's type and its message."""
    try:
        out[0] = allocate_tensor(prototype)
        return 0
    except BaseException as error:
        report = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)(set_error)
        report(context, type(error).__name__.encode(), str(error).encode())
        return -1


def offer_exchange_api(known, from_object, to_object, current_work_stream, *streams):
    """Let libraries find the table, whose other functions are machine code, on the type of our arrays."""
    global dtypes, table, work_streams
    work_streams = streams
    dtypes = {(code, bits, 1, padded): (name, typestr, format) for name, code, bits, padded, typestr, format in known}
    allocator = ctypes.cast(managed_tensor_allocator, ctypes.c_void_p).value
    # DLPackExchangeAPI: version, prev_api, allocator, from and to object, the DLTensor's function, the current stream
    functions = (0, allocator, from_object, to_object, 0, current_work_stream)
    table = ctypes.create_string_buffer(pack("<IIQQQQQQ", 1, 3, *functions))
    capsule = new_capsule(ctypes.addressof(table), b"dlpack_exchange_api", None)
    CausewayArray.__dlpack_c_exchange_api__ = capsule
`;

/** Run in `__main__` when the interpreter was started. */
export const prepareProcessSource = `
import os
import signal
import sys


# law python/BeforeOpenSSL: python/openssl
class BeforeOpenSSL:
    """Finds the modules that load OpenSSL, and tells it first to leave its memory as it is when the process exits.

    Unlike Python, Deno exits while threads on which Python ran are ending. What OpenSSL does at the end of a thread
    then meets its cleanup: of some 210 runs of \`\`deno test\`\` with asyncio, three crashed after all tests had passed.
    """

    def __init__(self):
        self.names = ["_hashlib", "_ssl"]

    def find_spec(self, name, path=None, target=None):
        """Return where the module is, for those modules, the first time."""
        if name not in self.names:
            return None
        import contextlib
        import ctypes
        from importlib.util import find_spec

        self.names.remove(name)  # to ask the others; it stays in sys.meta_path, which others may read or hold meanwhile
        spec = find_spec(name)
        with contextlib.suppress(AttributeError, OSError):  # no such module, one that is built in, or no OpenSSL
            library = ctypes.CDLL(spec.origin)
            library.OPENSSL_init_crypto(ctypes.c_uint64(0x80000), None)  # OPENSSL_INIT_NO_ATEXIT
        return spec


# law python/prepare_process: python/guest, python/open
def end_by_signals():
    """Let signals end this process, but for those that Python handles."""
    from signal import SIG_DFL, SIGHUP, SIGINT, SIGQUIT, SIGTERM, getsignal, signal

    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM):
        if getsignal(number) in (None, SIG_DFL):  # as far as Python knows, which has not set it
            signal(number, SIG_DFL)


sys.meta_path.insert(0, BeforeOpenSSL())
if sys.stdout:
    sys.stdout.reconfigure(line_buffering=True)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
os.register_at_fork(after_in_child=end_by_signals)
del BeforeOpenSSL, end_by_signals, os, signal, sys
`;

/** Run by an interpreter in a process of its own. */
export const describeInstallationSource = `
import json
import os
import sys
import sysconfig

version = f"{sys.version_info.major}.{sys.version_info.minor}"
soname = f"libpython{version}{sys.abiflags}.so.1.0"
folders = [sysconfig.get_config_var("LIBDIR") or "", os.path.join(sys.base_prefix, "lib")]
found = [os.path.join(folder, soname) for folder in folders if os.path.exists(os.path.join(folder, soname))]
print(json.dumps({"executable": sys.executable, "version": version, "libraries": [*found, soname]}))
`;

/** Run by an interpreter in a process of its own, with the names of packages as arguments. */
export const listPackagesSource = `
import importlib.metadata
import json
import platform
import sys


def version_of(name):
    """Return the version of a package; None if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


packages = {name: version_of(name) for name in sys.argv[1:]}
print(json.dumps({"path": sys.executable, "version": platform.python_version(), "packages": packages}))
`;
