"""The frame of calls, exceptions, and JavaScript's requests to foreign arrays, in plain Python."""

import asyncio
import functools
import gc
import importlib
import inspect
import os
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
import weakref

import __main__
import embedder  # noqa: F401 -- sets the path
from guest.call_frames import arguments_cell, call_framed, call_framed_by_name, function_cell, keywords_cell
from guest.conversions import call_method, integer_of, pairs_of
from guest.exceptions import (
    GUEST,
    brief_exception,
    describe_exception,
    format_traceback,
    known_places,
    outline_exception,
)
from guest.foreign_arrays import check_elements, is_plain, request_capsule


def call(function, *arguments, **keywords):
    keywords_cell.cell_contents = keywords
    arguments_cell.cell_contents = arguments
    function_cell.cell_contents = function
    try:
        return call_framed_by_name() if keywords else call_framed()
    finally:
        del function_cell.cell_contents, arguments_cell.cell_contents, keywords_cell.cell_contents


class Frames(unittest.TestCase):
    def test_a_call_has_the_frame_of_a_statement_in_main(self):
        frame = call(sys._getframe)
        code = frame.f_code
        self.assertEqual((code.co_filename, code.co_name, code.co_firstlineno), ("<JavaScript>", "<module>", 1))
        self.assertIs(call(globals), __main__.__dict__)
        self.assertIs(call(locals), __main__.__dict__)
        __main__.limit = 2
        self.assertEqual(call(eval, "limit + 1"), 3)

    def test_arguments_are_those_of_the_call(self):
        self.assertEqual(call(max, 1, 3), 3)
        self.assertEqual(call(dict, [(1, 2)], x=3), {1: 2, "x": 3})
        with self.assertRaises(ZeroDivisionError):
            call(divmod, 1, 0)


def fresh_worker():
    """Return modules as a Worker has them that has not ended, whose descriptor is closed or written to unseen."""
    names = ["guest.javascript_functions", "guest.async_calls"]
    before = {name: sys.modules.pop(name, None) for name in names}
    functions, calls = map(importlib.import_module, names)
    sys.modules.update({name: module for name, module in before.items() if module is not None})
    functions.bell = os.open("/dev/null", os.O_WRONLY)
    return functions, calls


class EndOfWorkers(unittest.TestCase):
    def test_nothing_is_written_to_the_descriptor_once_it_is_closed(self):
        functions, _ = fresh_worker()
        functions.end([])
        with tempfile.TemporaryFile() as file:
            is_reused = file.fileno() == functions.bell
            if not is_reused:
                os.dup2(file.fileno(), functions.bell)
            functions.ring()
            self.assertEqual(os.fstat(functions.bell).st_size, 0)
            if not is_reused:
                os.close(functions.bell)

    def test_who_rings_while_the_descriptor_is_closed_waits(self):
        # os.write lets other threads run between the check and the system call.
        functions, _ = fresh_worker()
        begun, goes_on, has_ended = threading.Event(), threading.Event(), []

        def slow(descriptor, data):
            begun.set()
            goes_on.wait(5)
            has_ended.append(functions.ended.is_set())

        with unittest.mock.patch.object(os, "write", slow):
            ringing = threading.Thread(target=functions.ring)
            ringing.start()
            begun.wait(5)
            ending = threading.Thread(target=functions.end, args=([],))
            ending.start()
            ending.join(0.1)
            goes_on.set()
            ringing.join()
            ending.join()
        self.assertEqual(has_ended, [False, True])  # the ring, and then the end's own

    def test_what_serves_javascript_ends_once_its_modules_were_given_up(self):
        # Whether the runtime has said so; and the thread, and the beginning of the modules, of who opens Python.
        for is_told, thread, began, is_over in [
            (False, 1, 10, False),  # another copy of the package
            (False, 2, 20, False),  # a Worker
            (False, 1, 20, True),  # the program, loaded again after it has failed
            (True, 1, 20, True),
            (True, 2, 20, True),  # another file of deno test
        ]:
            functions, _ = fresh_worker()
            functions.javascript_thread, functions.began = 1, 10
            functions.numbers_for_javascript[2] = is_told
            for _ in range(2):
                functions.end_if_given_up([], thread, began)
                self.assertEqual(functions.ended.is_set(), is_over)

    def test_results_that_nobody_takes_are_dropped(self):
        functions, calls = fresh_worker()
        results = [set(), set()]
        dropped = [weakref.ref(one) for one in results]
        jobs = [calls.Job(number, None, (), None) for number in range(2)]
        for job in jobs:
            job.finish(True, results.pop())
        jobs[0].tell()
        functions.end([])
        jobs[1].tell()
        self.assertEqual([one() for one in dropped], [None, None])

    def test_coroutines_are_cancelled_and_generators_closed(self):
        functions, calls = fresh_worker()
        events, begun = [], threading.Event()

        async def generates():
            try:
                yield 1
            finally:
                events.append("closed")

        kept = generates()

        async def waits():
            await kept.__anext__()
            begun.set()
            try:
                await asyncio.sleep(1e9)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise

        calls.begin_call(1, waits, (), None)
        begun.wait(5)
        functions.end([])
        while not calls.loop.is_closed():
            time.sleep(0.01)
        self.assertEqual(events, ["cancelled", "closed"])

    def test_a_loop_that_ends_by_itself_is_not_stopped_before_its_coroutines_are_cancelled(self):
        functions, calls = fresh_worker()
        calls.loop = asyncio.new_event_loop()
        task = calls.loop.create_task(asyncio.sleep(1e9))
        functions.end([])  # before the loop's thread looks whether it has ended
        calls.run_for_ever()
        self.assertTrue(task.cancelled())

    def test_a_coroutine_that_a_call_returns_later_is_closed(self):
        functions, calls = fresh_worker()
        functions.end([])
        coroutine = asyncio.sleep(0)
        calls.await_result(calls.Job(1, None, (), None), coroutine)
        self.assertEqual((inspect.getcoroutinestate(coroutine), calls.loop), ("CORO_CLOSED", None))


class Exceptions(unittest.TestCase):
    def described(self, run):
        try:
            run()
        except BaseException as error:
            return describe_exception(error)

    def test_an_exception_is_described_as_python_prints_it(self):
        name, message, traceback = self.described(lambda: int("x"))
        self.assertEqual(name, "ValueError")
        self.assertEqual(message, "ValueError: invalid literal for int() with base 10: 'x'")
        self.assertTrue(traceback.startswith("Traceback") and traceback.endswith(message + "\n"))
        message = self.described(lambda: compile("\na b", "f", "exec"))[1]
        self.assertTrue(message.startswith("SyntaxError: invalid syntax") and message.endswith(" (f, line 2)"), message)
        own = self.described(lambda: exec("raise SyntaxError('own')"))
        self.assertEqual(own[1], "SyntaxError: own")

    def test_frames_that_only_make_a_call_are_not_in_a_traceback(self):
        space = {}
        exec(compile("def calls(f): return inner(f)\ndef inner(f): return f()", GUEST, "exec"), space)
        for run in lambda: int("x"), lambda: undefined, lambda: space["calls"](lambda: int("x")):  # noqa: F821
            try:
                space["calls"](run)
            except Exception as error:
                outline = outline_exception(error.with_traceback(error.__traceback__.tb_next))
                places = outline[4]
                text = outline[2] or format_traceback(outline[3], places)
                middle = 2 if text.count("<lambda>") == 2 else 0
                self.assertEqual((text.count(GUEST), places.count(GUEST)), (middle, middle), text)
                self.assertIn("<lambda>", text)

    def test_one_that_fails_to_describe_itself_is_described_all_the_same(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        Mute.__qualname__ = "Mute"

        def fail():
            raise Mute

        name, message, _ = self.described(fail)
        self.assertTrue(name.endswith("Mute") and message.startswith(name + ": "), message)


class Outlines(unittest.TestCase):
    """An exception is outlined as it is described, also when its traceback is formatted later."""

    def raised(self, run):
        try:
            run()
        except BaseException as error:
            return error

    def check(self, error, is_plain):
        name, message, traceback, last, places, cause = outline_exception(error)
        self.assertEqual(traceback is None, is_plain)
        expected = describe_exception(error)
        brief = brief_exception(error)
        if isinstance(brief, str):
            self.assertEqual(brief.split("\0"), [name, message, places])
            self.assertEqual((traceback, last), (None, message))
        else:
            self.assertEqual(brief, [name, message, traceback, last, places, cause])
            self.assertTrue(traceback or last != message or "\0" in name + message)
        del error
        self.assertEqual((name, message, traceback or format_traceback(last, places)), expected)

    def test_plain_ones_of_any_type_depth_and_text(self):
        class Own(Exception):
            pass

        class Main(Exception):
            pass

        Main.__module__, Main.__qualname__ = "__main__", "Main"

        def deep(error, depth):
            if depth > 0:
                deep(error, depth - 1)
            raise error

        texts = [(), ("",), ("a",), ("two\nlines",), ("  spaces \x1f",), ("half \udc80",), (1, 2), (None,)]
        texts += [("a\0NUL",), ("ends\0",)]
        for kind in ValueError, KeyError, OSError, ZeroDivisionError, Own, Main, SystemExit, KeyboardInterrupt:
            for text in texts:
                for depth in 0, 1, 2, 7:  # many frames that are the same are counted
                    self.check(self.raised(functools.partial(deep, kind(*text), depth)), True)
        self.check(ValueError("was never raised"), True)

    def test_places_are_those_of_the_code_and_forgotten_with_it(self):
        for i in range(20):  # another code may get the same address
            names = {}
            exec(compile("\n" * i + f"def fail{i}(): raise ValueError", f"<source {i}>", "exec"), names)
            self.check(self.raised(names[f"fail{i}"]), True)
            self.check(self.raised(names[f"fail{i}"]), True)
            del names
            gc.collect()
        files = [code().co_filename for code, _ in known_places.values()]
        self.assertEqual([file for file in files if file.startswith("<source")], [])
        self.check(self.raised(lambda: exec(compile("def f():\n    (1 +\n 1 // 0)\nf()", "<no file>", "exec"))), True)
        self.check(self.raised(lambda: [1, *(1 // value for value in (1, 0))]), True)

    def test_what_has_more_to_say_is_described_at_once(self):
        def chained(cause):
            try:
                raise KeyError("first")
            except KeyError as error:
                raise ValueError("second") from (error if cause else None)

        def in_context():
            try:
                raise KeyError("first")
            except KeyError:
                raise ValueError("second")  # noqa: B904 -- what is tried

        self.check(self.raised(lambda: chained(True)), False)
        self.check(self.raised(lambda: chained(False)), True)
        self.check(self.raised(in_context), False)
        for run in (
            lambda: compile("a b", "f", "exec"),
            lambda: no_such_name,  # noqa: F821
            lambda: [].no_such_attribute,
            lambda: __import__("no_such_module"),
        ):
            self.check(self.raised(run), False)
        noted = ValueError("noted")
        noted.__notes__ = ["a note"]
        self.check(noted, False)
        if sys.version_info >= (3, 11):
            self.check(ExceptionGroup("several", [ValueError("one")]), False)  # noqa: F821
        error = self.raised(lambda: 1 // 0)
        sys.tracebacklimit = 0
        try:
            self.check(error, False)
        finally:
            del sys.tracebacklimit


class ForeignArrays(unittest.TestCase):
    class Producer:
        def __init__(self, device, knows_versions=True):
            self.device, self.knows_versions, self.asked = device, knows_versions, []

        def __dlpack_device__(self):
            return self.device

        def __dlpack__(self, **options):
            self.asked.append(options)
            if "max_version" in options and not self.knows_versions:
                raise TypeError
            return "capsule"

    def test_a_producer_is_asked_with_a_version_if_it_knows_of_one_and_for_a_stream_if_it_has_any(self):
        for device, version, stream, expected in (
            ((1, 0), True, 7, [{"max_version": (1, 3)}]),
            ((3, 0), True, 7, [{"max_version": (1, 3)}]),
            ((2, 0), True, 7, [{"max_version": (1, 3), "stream": 7}]),
            ((2, 0), True, None, [{"max_version": (1, 3)}]),
            ((2, 0), False, 7, [{"max_version": (1, 3), "stream": 7}, {"stream": 7}]),
        ):
            producer = self.Producer(device, version)
            self.assertEqual(request_capsule(producer, stream), "capsule")
            self.assertEqual(producer.asked, expected)

    def test_a_tensor_whose_memory_holds_other_numbers_is_refused(self):
        class Tensor:
            requires_grad = False

            def __init__(self, *bits):
                self.bits = bits

            def is_conj(self):
                return "conj" in self.bits

            def is_neg(self):
                return "neg" in self.bits

            resolve_conj = resolve_neg = None

        check_elements(Tensor())
        for bit in "conj", "neg":
            with self.assertRaisesRegex(BufferError, f"call resolve_{bit}"):
                check_elements(Tensor(bit))
            self.assertFalse(is_plain(Tensor(bit)))
        self.assertTrue(is_plain(Tensor()))


class Conversions(unittest.TestCase):
    def test_what_takes_several_calls_of_the_c_api(self):
        self.assertEqual(call_method([3, 1, 3], "count", 3), 2)
        self.assertEqual([integer_of(text) for text in ("0x10", "-0xffffffffffffffffffff")], [16, -(2**80 - 1)])
        self.assertEqual(pairs_of({1: 2}), [(1, 2)])


if __name__ == "__main__":
    unittest.main()
