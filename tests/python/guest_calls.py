"""The frame of calls, exceptions, and what JavaScript asks of foreign arrays, in plain Python."""

import sys
import unittest

import __main__
import embedder  # noqa: F401 -- sets the path
from guest.call_frames import call_framed, call_framed_by_name, next_call
from guest.conversions import call_method, integer_of, pairs_of
from guest.exceptions import describe_exception
from guest.foreign_arrays import check_elements, is_plain, request_capsule


def call(function, *arguments, **keywords):
    if keywords:
        next_call.append(keywords)
    next_call.append(arguments)
    next_call.append(function)
    return call_framed_by_name() if keywords else call_framed()


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
        self.assertEqual(next_call, [])


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
        self.assertEqual(self.described(lambda: compile("a b", "f", "exec"))[1].split(":")[0], "SyntaxError")

    def test_one_that_fails_to_describe_itself_is_described_all_the_same(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        Mute.__qualname__ = "Mute"

        def fail():
            raise Mute

        name, message, _ = self.described(fail)
        self.assertTrue(name.endswith("Mute") and message.startswith(name + ": "), message)


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
