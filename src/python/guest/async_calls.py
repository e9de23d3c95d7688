"""Calls that JavaScript does not wait for: on threads of Python's, and coroutines on a loop of asyncio's."""

import collections
import contextlib
import ctypes
import inspect
import queue
import threading

from .call_frames import call_in_frame
from .javascript_functions import ended, ring, when_ended, while_waiting

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
