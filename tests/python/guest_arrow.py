"""Arrow's capsules in plain Python: views, Arrow arrays and streams of ours, and when each side releases them."""

import ctypes
import struct
import unittest

from embedder import GuestTest, Owner, address_of, array, kept, move_out, poll, release, schema
from guest.array import NOWHERE
from guest.arrow_arrays import Arrow
from guest.arrow_streams import DeviceStream, HostStream
from guest.arrow_structs import ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowSchema
from guest.interpreter_api import capsule_pointer, new_capsule

FLOATS = struct.pack("<6f", *range(6))


def text(address):
    return ctypes.string_at(address).decode()


def children(one):
    kind = type(one)
    return [kind.from_address(at) for at in (ctypes.c_void_p * one.n_children).from_address(one.children)]


def requested(format):
    """Return a capsule with a schema that a consumer asks for, and the schema, which must live as long."""
    one = ArrowSchema(format=ctypes.cast(ctypes.c_char_p(format), ctypes.c_void_p).value, release=1)
    one.kept = format
    return new_capsule(ctypes.addressof(one), b"arrow_schema", None), one


class Views(GuestTest):
    def test_a_view_is_numbers_with_a_list_of_fixed_size_for_each_axis_after_the_first(self):
        owner = Owner(FLOATS, (2, 3))
        capsules = owner.make().__arrow_c_array__()
        one = move_out(capsules[0], ArrowSchema, b"arrow_schema")
        (item,) = children(one)
        self.assertEqual(
            [text(one.format), text(one.name), text(item.format), text(item.name)], ["+w:3", "", "f", "item"]
        )
        elements = move_out(capsules[1], ArrowArray, b"arrow_array")
        (inner,) = children(elements)
        self.assertEqual((elements.length, elements.n_buffers, inner.length, inner.n_buffers), (2, 1, 6, 2))
        self.assertEqual(list((ctypes.c_void_p * 2).from_address(inner.buffers)), [None, owner.tensor.data])
        del capsules
        poll()
        release(one)
        self.assertFalse(owner.is_released)
        release(elements)
        poll()
        self.assertTrue(owner.is_released)

    def test_capsules_that_nobody_takes_are_given_back(self):
        owner = Owner(FLOATS, (6,))
        for name in "__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_device_array__":
            getattr(owner.make(), name)()
            poll()
            self.assertEqual(kept(), self.before, name)
        self.assertTrue(owner.is_released)

    def test_a_child_that_is_moved_out_outlives_its_parent(self):
        owner = Owner(FLOATS, (2, 3))
        capsules = owner.make().__arrow_c_array__()
        parent = move_out(capsules[1], ArrowArray, b"arrow_array")
        source = children(parent)[0]
        child = ArrowArray.from_buffer_copy(source)
        source.release = None
        del capsules
        release(parent)
        poll()
        self.assertFalse(owner.is_released)
        self.assertEqual(child.length, 6)
        release(child)
        poll()
        self.assertTrue(owner.is_released)

    def test_without_elements_there_is_no_buffer(self):
        capsules = Owner(b"", (0,)).make().__arrow_c_device_array__()
        one = ArrowDeviceArray.from_address(capsule_pointer(capsules[1], b"arrow_device_array"))
        self.assertEqual((one.device_type, one.device_id, one.sync_event), (1, -1, None))
        self.assertNotIn(NOWHERE, list((ctypes.c_void_p * 2).from_address(one.array.buffers)))

    def test_what_arrow_has_no_words_for_is_refused(self):
        for owner in Owner(FLOATS, (3, 2), strides=(1, 3)), Owner(b"\0\1", (2,), "bool"), Owner(b"\1", (), "int8"):
            with self.assertRaisesRegex(BufferError, "to Arrow"):
                owner.make().__arrow_c_array__()

    def test_options_that_nobody_knows_are_refused_unless_they_are_none(self):
        one = Owner(FLOATS, (6,)).make()
        one.__arrow_c_device_array__(None, something=None)
        with self.assertRaises(NotImplementedError):
            one.__arrow_c_device_array__(None, something=1)

    def test_a_requested_schema_is_refused_only_if_nobody_could_convert_to_it(self):
        one = Owner(FLOATS, (6,)).make()
        for format, is_possible in (b"g", True), (b"i", True), (b"d:5,2", True), (b"u", False), (b"+l", False):
            capsule, _schema = requested(format)
            for name in "__arrow_c_array__", "__arrow_c_device_array__":
                if is_possible:
                    getattr(one, name)(capsule)
                else:
                    with self.assertRaises(BufferError):
                        getattr(one, name)(capsule)
            poll()
        capsule, released = requested(b"g")
        released.release = None
        with self.assertRaises(ValueError):
            one.__arrow_c_array__(capsule)


class Arrays(GuestTest):
    """An ArrowSchema and an ArrowDeviceArray that JavaScript has made: texts with nulls, say."""

    def setUp(self):
        super().setUp()
        self.counters = (ctypes.c_int32 * 2)()
        at = ctypes.addressof(self.counters)
        self.names = ctypes.create_string_buffer(b"u"), ctypes.create_string_buffer(b"words")
        self.schema = ArrowSchema(
            format=ctypes.addressof(self.names[0]),
            name=ctypes.addressof(self.names[1]),
            release=address_of(schema),
            private_data=at,
        )
        elements = ArrowArray(length=3, null_count=1, n_buffers=3, release=address_of(array), private_data=at + 4)
        self.array = ArrowDeviceArray(array=elements, device_id=-1, device_type=1)

    def make(self):
        return Arrow(ctypes.addressof(self.schema), ctypes.addressof(self.array))

    def test_it_is_handed_over_as_often_as_one_likes_and_the_original_ends_with_the_last(self):
        one = self.make()
        self.assertEqual(repr(one), "<Arrow array of format u>")
        taken = [move_out(one.__arrow_c_array__()[1], ArrowArray, b"arrow_array") for _ in range(3)]
        self.assertEqual([(each.length, each.null_count) for each in taken], [(3, 1)] * 3)
        del one
        for each in taken:
            poll()
            self.assertEqual(list(self.counters), [0, 0])
            release(each)
        poll()
        self.assertEqual(list(self.counters), [1, 1])

    def test_an_array_that_is_numbers_too_goes_to_arrow_as_what_it_is(self):
        owner = Owner(FLOATS, (6,))
        both = owner.make(arrow=self.make())
        one = move_out(both.__arrow_c_schema__(), ArrowSchema, b"arrow_schema")
        self.assertEqual(text(one.name), "words")
        release(one)
        del both
        poll()
        self.assertEqual((list(self.counters), owner.is_released), ([1, 1], True))


class Streams(GuestTest):
    def make(self, kind=HostStream):
        """A stream whose get_schema gives a schema with a counter, and whose release counts."""
        self.counters = (ctypes.c_int32 * 2)()
        at = ctypes.addressof(self.counters)
        format = ctypes.create_string_buffer(b"i")

        @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        def get_schema(_, out):
            one = ArrowSchema.from_address(out)
            one.format, one.name = ctypes.addressof(format), ctypes.addressof(format)
            one.release, one.private_data = address_of(schema), at
            return self.fails

        @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        def end(_):
            self.counters[1] += 1

        self.fails, self.callbacks = 0, (format, get_schema, end)
        self.struct = kind.kind(get_schema=address_of(get_schema), release=address_of(end))
        return kind()

    def test_it_is_read_once_and_tells_its_schema_as_often_as_one_likes(self):
        stream = self.make()
        stream.fill(ctypes.addressof(self.struct))
        for _ in range(3):
            stream.__arrow_c_schema__()
        moved = move_out(stream.__arrow_c_stream__(), ArrowArrayStream, b"arrow_array_stream")
        with self.assertRaisesRegex(BufferError, "twice"):
            stream.__arrow_c_stream__()
        stream.__arrow_c_schema__()
        del stream
        poll()
        self.assertEqual(list(self.counters), [1, 0])
        release(moved)
        self.assertEqual(list(self.counters), [1, 1])

    def test_a_stream_that_nobody_reads_is_released(self):
        for kind in HostStream, DeviceStream:
            stream = self.make(kind)
            stream.fill(ctypes.addressof(self.struct))
            self.assertEqual(hasattr(stream, "__arrow_c_stream__"), kind is HostStream)
            del stream
            poll()
            self.assertEqual(list(self.counters), [1, 1])
        stream = self.make()
        del stream  # one that was never filled owns nothing
        poll()
        self.assertEqual(list(self.counters), [0, 0])

    def test_a_capsule_with_a_stream_that_nobody_moves_out_is_given_back(self):
        stream = self.make(DeviceStream)
        stream.fill(ctypes.addressof(self.struct))
        capsule = stream.__arrow_c_device_stream__()
        poll()
        self.assertEqual(self.counters[1], 0)
        del capsule
        poll()
        self.assertEqual(self.counters[1], 1)

    def test_a_request_that_is_refused_leaves_the_stream_to_be_read(self):
        stream = self.make()
        stream.fill(ctypes.addressof(self.struct))
        capsule, _schema = requested(b"u")
        with self.assertRaises(BufferError):
            stream.__arrow_c_stream__(capsule)
        stream.__arrow_c_stream__()


if __name__ == "__main__":
    unittest.main()
