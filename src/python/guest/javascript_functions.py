"""Functions of JavaScript as objects of Python.

JavaScript runs on one thread, and only that one may enter it: a runtime that is entered from another thread hangs or
ends the process. So a function is called at once where its caller is that thread, which is inside a call of Python
then. On any other thread it is asked for: the request is put down, the event loop is rung, and the thread waits,
without the interpreter's lock, until JavaScript has answered it between other things that it does.

JavaScript cannot answer while it is inside a call of Python itself, and such a call may be waiting for the very
thread that asks, as ``thread.join()`` does. Nobody can know which one is. But a call that waits for this thread does
not end while it asks, so that a request that JavaScript has not begun is given up, with an error that says so, when
JavaScript has been inside one and the same call for PATIENCE seconds. One that has begun is waited for: a function
that joins the very thread that asked for it waits for ever, as one of Python's would. In calls that are made by
``py.async`` nothing of this happens: JavaScript is free, and answers. Only a coroutine waits for ever, for a function
that is not async, and whose promise waits for another coroutine: it blocks the loop that both run on. It awaits async
functions: see awaited_functions.py.
"""

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
            from .awaited_functions import await_answer

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
        os.write(bell, b"\1\0\0\0\0\0\0\0")  # the watch's thread no longer waits then
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

    A program that is loaded again, as by ``deno run --watch``, has the thread of the one before, whose functions
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
            os.write(bell, b"\1\0\0\0\0\0\0\0")


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
