/**
 * The half of the exchange with Arrow that is written in Python: what a view, an Arrow array and an Arrow stream of ours
 * are there.
 *
 * A consumer of Arrow takes structs over and gives each back by its release callback, on whatever thread. As with DLPack
 * no JavaScript can run then: each time a library asks, the structs are copied or made here. What is copied keeps the
 * original alive, which is ours and is released when nothing holds it any more.
 *
 * @module
 */

/** Python source, a part of the prelude. */
export const arrowPrelude = `
import itertools

def struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": fields})

pointer, long = ctypes.c_void_p, ctypes.c_int64
ArrowSchema = struct("ArrowSchema", ("format", pointer), ("name", pointer), ("metadata", pointer), ("flags", long),
    ("n_children", long), ("children", pointer), ("dictionary", pointer), ("release", pointer), ("private_data", pointer))
ArrowArray = struct("ArrowArray", ("length", long), ("null_count", long), ("offset", long), ("n_buffers", long),
    ("n_children", long), ("buffers", pointer), ("children", pointer), ("dictionary", pointer), ("release", pointer),
    ("private_data", pointer))
ArrowDeviceArray = struct("ArrowDeviceArray", ("array", ArrowArray), ("device_id", long),
    ("device_type", ctypes.c_int32), ("sync_event", pointer), ("reserved", long * 3))
ArrowArrayStream = struct("ArrowArrayStream", ("get_schema", pointer), ("get_next", pointer),
    ("get_last_error", pointer), ("release", pointer), ("private_data", pointer))
ArrowDeviceArrayStream = struct("ArrowDeviceArrayStream", ("device_type", ctypes.c_int32), ("get_schema", pointer),
    ("get_next", pointer), ("get_last_error", pointer), ("release", pointer), ("private_data", pointer))

class Node:
    "A struct that a consumer has, what it keeps alive, and the nodes of the structs inside it."
    __slots__ = "struct", "owner", "table", "inner", "counter"

def handed(one, owner, children, dictionary=None):
    "The node of a struct for a consumer: until it is released its owner is kept alive."
    node = Node()
    node.struct, node.owner = one, owner
    node.inner = list(children) if dictionary is None else [*children, dictionary]
    addresses = [ctypes.addressof(child.struct) for child in children]
    node.table = (pointer * len(children))(*addresses)
    one.n_children, one.children = len(children), ctypes.addressof(node.table) if children else None
    one.dictionary = None if dictionary is None else ctypes.addressof(dictionary.struct)
    one.release = code[type(one)]
    one.private_data = node.counter = counters.keep(node)
    return node

def end(counter):
    "Lets go of what was kept for a struct that is released, or for one inside it, which ends with it."
    kept = counters.forget(counter)
    if type(kept) is not Node: return
    for child in kept.inner:
        if child.counter not in counters.numbers: continue # it is over already
        if child.struct.release or counters.is_over(child.counter): end(child.counter)
        # else it was moved out, and lives on until its own callback is called

def copied(kind, address, owner):
    "The node of a copy of a struct of ours, and of those inside it. The texts and buffers are the original's."
    one = kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(kind)))
    children = (pointer * one.n_children).from_address(one.children) if one.n_children else ()
    return handed(one, owner, [copied(kind, child, owner) for child in children],
        copied(kind, one.dictionary, owner) if one.dictionary else None)

offered_structs = {} # structs in capsules, by address

def offer(one, name):
    "A capsule that nobody need use: what is not moved out of it is released when it has gone."
    address = ctypes.addressof(one)
    offered_structs[address] = one
    capsule = new_capsule(address, name, None)
    look()
    with lock: offered.append(capsule)
    return capsule

def take_back(name, address):
    "Releases what is still in a capsule that has gone."
    if name.startswith(b"dltensor"):
        at = address + (16 if name == b"dltensor_versioned" else 56)
        return deleter(ctypes.c_void_p.from_address(at).value)(address)
    one = offered_structs.pop(address)
    if type(one) is ArrowDeviceArray: one = one.array
    if one.release: deleter(one.release)(address)

def only_known(options):
    unknown = [name for name, value in options.items() if value is not None]
    if unknown: raise NotImplementedError("cannot hand over with the option %s: it is not known" % unknown[0])

FAMILIES = (("number", ("b", "c", "C", "s", "S", "i", "I", "l", "L", "e", "f", "g", "d:")),
    ("bytes", ("u", "U", "z", "Z", "vu", "vz", "w:")), ("time", ("td", "ts")), ("time of day", ("tt",)),
    ("duration", ("tD",)), ("interval", ("ti",)), ("list", ("+l", "+L", "+v", "+w", "+m")))

def family(format):
    "Types whose values can be said in each other's terms have the same one."
    return next((name for name, begins in FAMILIES if format.startswith(begins)), format)

def compare(ours, wanted):
    "Fails if nobody could convert values of ours to the wanted type."
    if ours.dictionary: return compare(ArrowSchema.from_address(ours.dictionary), wanted)
    if wanted.dictionary: return compare(ours, ArrowSchema.from_address(wanted.dictionary))
    formats = [ctypes.string_at(one.format).decode() for one in (ours, wanted)]
    if formats[0] == "n": return # nulls are values of every type
    if family(formats[0]) != family(formats[1]) or ours.n_children != wanted.n_children:
        raise BufferError("cannot hand over an Arrow array of format %s as the requested %s: values of the one are none of "
            "the other" % tuple(formats))
    mine, theirs = ([ArrowSchema.from_address(child) for child in (pointer * ours.n_children).from_address(each.children or 8)]
        for each in (ours, wanted))
    named = {child.name and ctypes.string_at(child.name): child for child in theirs}
    names = [child.name and ctypes.string_at(child.name) for child in mine]
    if formats[0] == "+s" and all(name in named for name in names): theirs = [named[name] for name in names]
    for one, other in zip(mine, theirs): compare(one, other)

def check_request(requested, make):
    "Of a schema that is requested. What the consumer can convert is left to it: the data goes out as it is."
    if requested is None: return
    wanted, ours = ArrowSchema.from_address(capsule_pointer(requested, b"arrow_schema")), make()
    try:
        if not wanted.release: raise ValueError("cannot read the requested schema: it is released")
        compare(ours, wanted)
    finally: deleter(ours.release)(ctypes.addressof(ours))

class SpeaksArrow:
    "The protocol's methods."
    __slots__ = ()

    def __arrow_c_schema__(self):
        return offer(self.arrow_schema(), b"arrow_schema")

    def __arrow_c_array__(self, requested_schema=None):
        check_request(requested_schema, self.arrow_schema)
        one = self.arrow_array()
        if one.device_type != 1:
            deleter(one.array.release)(ctypes.addressof(one))
            raise BufferError("cannot hand over device memory as an array of the host: ask for __arrow_c_device_array__")
        return self.__arrow_c_schema__(), offer(one.array, b"arrow_array")

    def __arrow_c_device_array__(self, requested_schema=None, **options):
        only_known(options)
        check_request(requested_schema, self.arrow_schema)
        one = self.arrow_array()
        return self.__arrow_c_schema__(), offer(one, b"arrow_device_array")

class Arrow(SpeaksArrow):
    "An Arrow array of ours: the addresses of its two structs, which are released at the end."
    __slots__ = "schema", "array", "__weakref__"

    def __init__(self, schema, array):
        self.schema, self.array = schema, array

    def __del__(self):
        for kind, address in (ArrowSchema, self.schema), (ArrowArray, self.array):
            deleter(kind.from_address(address).release)(address)

    def arrow_schema(self):
        return copied(ArrowSchema, self.schema, self).struct

    def arrow_array(self):
        one = ArrowDeviceArray.from_buffer_copy(ctypes.string_at(self.array, ctypes.sizeof(ArrowDeviceArray)))
        one.array = copied(ArrowArray, self.array, self).struct
        return one

    def __repr__(self):
        return "<Arrow array of format %s>" % ctypes.string_at(ArrowSchema.from_address(self.schema).format).decode()

class Recorded:
    "An event after all that is enqueued on a home stream now."
    def __init__(self, context, home):
        push, pop, create, destroy, record, wait = cuda
        self.context, self.event = context, pointer()
        check(push(context))
        try:
            check(create(ctypes.byref(self.event), 2)) # without timing
            check(record(self.event, home))
        finally:
            pop(ctypes.byref(pointer()))

    def __del__(self):
        push, pop, create, destroy, record, wait = cuda
        if self.event and push(self.context) == 0:
            destroy(self.event)
            pop(ctypes.byref(pointer()))

def described(array):
    "What an Array is in Arrow's terms: its format, and its shape with the number of elements down to each axis."
    shape, format = array.interface["shape"], array.format
    if format is None:
        raise BufferError("cannot hand over %s to Arrow: it has no such type, or none with gaps between elements" % array.name)
    if len(shape) == 0: raise BufferError("cannot hand over an array without axes to Arrow: reshape it to (1,)")
    return format.encode(), shape, list(itertools.accumulate(shape, lambda count, extent: count * extent))

def field_of(array):
    format, shape, counts = described(array)
    inner = None
    for axis in reversed(range(len(shape))):
        last = axis == len(shape) - 1
        texts = [ctypes.create_string_buffer(text) for text in (
            format if last else b"+w:%d" % shape[axis + 1], b"item" if axis else b"")]
        one = ArrowSchema(format=ctypes.addressof(texts[0]), name=ctypes.addressof(texts[1]))
        inner = handed(one, texts, [] if last else [inner])
    return inner.struct

def elements_of(array):
    format, shape, counts = described(array)
    event = None if array.home is None else Recorded(array.context, array.home)
    address = array.interface["data"][0] if counts[-1] else None
    inner = None
    for axis in reversed(range(len(shape))):
        last = axis == len(shape) - 1
        buffers = (pointer * 2)(None, address)
        one = ArrowArray(length=counts[axis], n_buffers=2 if last else 1, buffers=ctypes.addressof(buffers))
        inner = handed(one, (array, buffers, event), [] if last else [inner])
    kind, ordinal = array.device
    return ArrowDeviceArray(array=inner.struct, device_id=-1 if kind == 1 else ordinal, device_type=kind,
        sync_event=None if event is None else ctypes.addressof(event.event))

class Schema:
    "The schema of a stream of ours, which gives it out a few times only."
    __slots__ = "struct",

    def __init__(self, stream):
        self.struct = ArrowSchema()
        ask = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer)(stream.get_schema)
        if ask(ctypes.addressof(stream), ctypes.addressof(self.struct)) != 0: raise BufferError("it does not tell its schema")

    def __del__(self):
        if self.struct.release: deleter(self.struct.release)(ctypes.addressof(self.struct))

class ArrowStream:
    "An Arrow stream of ours, which is read once: a copy of its struct, which nobody else uses."
    __slots__ = "stream", "told", "__weakref__"

    def __init__(self):
        self.stream = self.told = None

    def fill(self, address):
        self.stream = self.kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(self.kind)))
        self.told = Schema(self.stream)

    def __del__(self):
        if self.stream is not None: deleter(self.stream.release)(ctypes.addressof(self.stream))

    def __arrow_c_schema__(self):
        return offer(self.schema(), b"arrow_schema")

    def schema(self):
        return copied(ArrowSchema, ctypes.addressof(self.told.struct), self.told).struct

    def give(self, requested):
        if self.stream is None: raise BufferError("cannot hand over an Arrow stream twice: it is read once")
        check_request(requested, self.schema)
        stream, self.stream = self.stream, None
        return offer(stream, self.name)

class HostStream(ArrowStream):
    __slots__ = ()
    kind, name = ArrowArrayStream, b"arrow_array_stream"

    def __arrow_c_stream__(self, requested_schema=None):
        return self.give(requested_schema)

class DeviceStream(ArrowStream):
    __slots__ = ()
    kind, name = ArrowDeviceArrayStream, b"arrow_device_array_stream"

    def __arrow_c_device_stream__(self, requested_schema=None, **options):
        only_known(options)
        return self.give(requested_schema)
`;
