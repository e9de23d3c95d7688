"""An array of ours in plain Python: the array interface, DLPack with its arguments, and how long objects live."""

import array as flat_array
import ctypes
import gc
import struct
import sys
import threading
import unittest

from embedder import GuestTest, Owner, Tensor, kept, poll, take
from guest.array import NOWHERE, Part, convert_arrays
from guest.dlpack_structs import COPIED, PADDED, READ_ONLY, Layout, tensor_fields
from guest.interpreter_api import capsule_name

FLOATS = struct.pack("<6f", *range(6))


class Protocols(GuestTest):
    def test_the_array_interface_describes_the_memory(self):
        owner = Owner(FLOATS, (2, 3))
        array = owner.make()
        interface = array.__array_interface__
        self.assertEqual(
            interface,
            {"shape": (2, 3), "strides": None, "typestr": "<f4", "version": 3, "data": (owner.tensor.data, False)},
        )
        with self.assertRaises(AttributeError):
            _ = array.__cuda_array_interface__
        self.assertEqual(repr(array), "<array of shape (2, 3) and type float32>")

    def test_strides_are_told_in_bytes_and_what_is_read_only_is_told(self):
        interface = Owner(FLOATS, (3, 2), strides=(1, 3), flags=READ_ONLY).make().__array_interface__
        self.assertEqual((interface["strides"], interface["data"][1]), ((4, 12), True))

    def test_an_array_without_elements_on_the_host_is_somewhere(self):
        self.assertEqual(Owner(b"", (0, 3)).make().__array_interface__["data"], (NOWHERE, False))

    def test_a_type_that_interfaces_cannot_name_has_none(self):
        array = Owner(b"\x21", (2,), "uint4").make()
        for name in "__array_interface__", "__cuda_array_interface__":
            self.assertFalse(hasattr(array, name))

    def test_an_array_of_a_device_has_the_other_interface_with_the_stream_to_wait_for(self):
        array = Owner(FLOATS, (6,), device=(2, 0)).make(context=0xC0, home=0x77)
        self.assertFalse(hasattr(array, "__array_interface__"))
        self.assertEqual(array.__cuda_array_interface__["stream"], 0x77)

    def test_the_owner_gets_its_tensor_back_when_the_array_is_gone(self):
        owner = Owner(FLOATS, (6,))
        array = owner.make()
        self.assertFalse(owner.is_released)
        del array
        gc.collect()
        self.assertTrue(owner.is_released)


class Dlpack(Protocols):
    def test_a_consumer_gets_the_same_memory_and_keeps_the_array(self):
        for version in None, (0, 8), (1, 0), (2, 0):
            owner = Owner(FLOATS, (2, 3))
            array = owner.make()
            capsule = array.__dlpack__(max_version=version)
            is_versioned = version is not None and version[0] >= 1
            self.assertEqual(capsule_name(capsule), b"dltensor_versioned" if is_versioned else b"dltensor")
            address, deleter = take(capsule)
            data, kind, number, ndim, code, bits, lanes, shape, strides, offset = tensor_fields(
                address + (32 if is_versioned else 0)
            )
            self.assertEqual((data, kind, number), (owner.tensor.data, 1, 0))
            self.assertEqual((ndim, code, bits, lanes, offset), (2, 2, 32, 1, 0))
            self.assertEqual(list((ctypes.c_int64 * 2).from_address(shape)), [2, 3])
            self.assertEqual(list((ctypes.c_int64 * 2).from_address(strides)), [3, 1])
            del array, capsule
            poll()
            self.assertFalse(owner.is_released)
            deleter(address)
            self.assertFalse(owner.is_released)  # before the poll
            poll()
            self.assertTrue(owner.is_released)

    def test_it_can_be_asked_as_often_as_one_likes_on_any_thread(self):
        owner = Owner(FLOATS, (6,))
        arrays = [owner.make()]
        taken = []

        def ask():
            taken.extend([take(arrays[0].__dlpack__(max_version=(1, 0))) for _ in range(50)])

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len({address for address, _ in taken}), 200)
        for at, (address, deleter) in enumerate(taken):
            if at % 50 == 0:
                poll()
            deleter(address)
        poll()
        self.assertFalse(owner.is_released)
        arrays.clear()
        poll()
        self.assertTrue(owner.is_released)

    def test_a_capsule_that_nobody_takes_is_given_back(self):
        owner = Owner(FLOATS, (6,))
        array = owner.make()
        for version in None, (1, 0):
            capsule = array.__dlpack__(max_version=version)
            poll()
            self.assertEqual(kept()[0], self.before[0] + 1)  # it might be taken still
            del capsule
            poll()
            self.assertEqual(kept(), self.before)

    def test_a_consumer_without_versions_gets_nothing_that_it_could_misread(self):
        with self.assertRaisesRegex(BufferError, "read-only"):
            Owner(FLOATS, (6,), flags=READ_ONLY).make().__dlpack__()
        with self.assertRaisesRegex(BufferError, "a byte of its own"):
            Owner(b"\1\2", (2,), "uint4", flags=PADDED).make().__dlpack__()
        Owner(FLOATS, (6,), flags=READ_ONLY).make().__dlpack__(copy=True)  # a copy may be written to

    def test_flags_go_to_a_consumer_with_versions(self):
        array = Owner(b"\1\2", (2,), "uint4", flags=PADDED | READ_ONLY).make()
        address, deleter = take(array.__dlpack__(max_version=(1, 3)))
        self.assertEqual(Tensor.from_address(address).flags, PADDED | READ_ONLY)
        deleter(address)

    def test_streams_and_devices_that_cannot_be_had_are_refused(self):
        host, device = Owner(FLOATS, (6,)).make(), Owner(FLOATS, (6,), device=(2, 1)).make()
        self.assertEqual((host.__dlpack_device__(), device.__dlpack_device__()), ((1, 0), (2, 1)))
        for array, options in (
            (host, {"stream": 1}),
            (host, {"dl_device": (2, 0)}),
            (device, {"stream": 0}),
            (device, {"dl_device": (2, 0)}),
            (device, {"dl_device": (1, 0), "copy": False}),
        ):
            with self.assertRaises(BufferError, msg=str(options)):
                array.__dlpack__(**options)
        for options in {"stream": -1}, {"stream": None}, {"dl_device": (1, 0)}, {"copy": False}:
            host.__dlpack__(max_version=(1, 0), **options)
        device.__dlpack__(max_version=(1, 0), stream=2)  # without a home stream there is nothing to wait for

    def test_a_copy_is_the_consumers_alone(self):
        owner = Owner(FLOATS, (3, 2), strides=(1, 3))
        array = owner.make()
        for version in None, (1, 0):
            address, deleter = take(array.__dlpack__(max_version=version, copy=True))
            data, *_ = tensor_fields(address + (32 if version else 0))
            self.assertNotEqual(data, owner.tensor.data)
            self.assertEqual(data % 256, 0)
            self.assertEqual(list((ctypes.c_float * 6).from_address(data)), [0, 3, 1, 4, 2, 5])
            if version:
                self.assertEqual(Tensor.from_address(address).flags, COPIED)
            deleter(address)
        del array
        poll()
        self.assertTrue(owner.is_released)


class Functions(Protocols):
    """What functions of torch and NumPy are called with."""

    def test_arrays_are_converted_in_lists_tuples_and_dicts(self):
        one, other = Owner(FLOATS, (6,)).make(), Owner(FLOATS, (6,)).make()
        numbers = {id(one): 1, id(other): 2}
        value = (one, [other, "text", (one,)], {"out": (other, None), one: 3})
        self.assertEqual(
            convert_arrays(value, lambda array: numbers[id(array)]), (1, [2, "text", (1,)], {"out": (2, None), one: 3})
        )

    def test_torch_gets_tensors_and_never_negative_strides(self):
        class Torch:
            from_dlpack = staticmethod(id)

        array = Owner(FLOATS, (2, 3)).make()
        flipped = array[::-1]
        sys.modules["torch"] = Torch
        try:
            self.assertEqual(array.__torch_function__(max, (), (array, 0), {"key": None}), id(array))
            with self.assertRaisesRegex(ValueError, "negative strides"):
                array.__torch_function__(max, (), (flipped, 0))
        finally:
            del sys.modules["torch"]


class Elements(Protocols):
    """Without NumPy. memoryview knows the elements of several axes, too."""

    def test_an_array_tells_what_it_is(self):
        array = Owner(FLOATS, (2, 3)).make()
        self.assertEqual(
            (array.shape, array.ndim, array.size, array.itemsize, array.nbytes, array.strides, len(array)),
            ((2, 3), 2, 6, 4, 24, (12, 4), 2),
        )
        self.assertEqual(str(array.dtype), "float32")
        self.assertIsNone(Owner(b"\x21", (2,), "uint4").make().strides)

    def test_elements_are_read_wherever_they_lie(self):
        for strides in None, (3, 1), (1, 2), (-3, -1):
            owner = Owner(FLOATS, (2, 3), strides=strides)
            if strides == (-3, -1):
                owner.tensor.data += 20
            array, steps = owner.make(), owner.strides
            first = 5 if strides == (-3, -1) else 0
            expected = [[float(first + i * steps[0] + j * steps[1]) for j in range(3)] for i in range(2)]
            self.assertEqual([[array[i, j] for j in range(3)] for i in range(2)], expected)
            self.assertEqual([list(row) for row in array], expected)
            self.assertEqual([list(column) for column in array.T], [list(column) for column in zip(*expected)])
            self.assertEqual(list(array[-1]), expected[1])
            self.assertEqual(list(array[..., 1]), [row[1] for row in expected])
            self.assertEqual([list(row) for row in array[:, ::-2]], [row[::-2] for row in expected])
            self.assertEqual(array[None, 1, ..., None, 0:2].shape, (1, 1, 2))

    def test_elements_of_every_type_are_what_they_are(self):
        self.assertEqual(list(Owner(b"\xff\x01", (2,), "int8").make()), [-1, 1])
        self.assertEqual(list(Owner(b"\0\1", (2,), "bool").make()), [False, True])
        self.assertEqual(list(Owner(struct.pack("<2f", 1, -2), (1,), "complex64").make()), [1 - 2j])
        many = flat_array.array("d", range(1000))
        self.assertEqual(list(Owner(many.tobytes(), (1000,), "float64").make()), list(many))

    def test_what_cannot_be_indexed_is_refused(self):
        array = Owner(FLOATS, (2, 3)).make()
        for key, error in (
            (2, IndexError),
            (-3, IndexError),
            ((0, 0, 0), IndexError),
            ((..., ...), IndexError),
            (True, TypeError),
            ("name", TypeError),
            (1.0, TypeError),
        ):
            with self.assertRaises(error, msg=repr(key)):
                array[key]
        with self.assertRaisesRegex(TypeError, "share bytes"):
            Owner(b"\x21", (2,), "uint4").make()[0]
        with self.assertRaisesRegex(TypeError, "device memory"):
            Owner(FLOATS, (6,), device=(2, 0)).make()[0]

    def test_a_part_keeps_its_array_and_is_handed_over_itself(self):
        owner = Owner(FLOATS, (2, 3), flags=READ_ONLY)
        part = owner.make()[1, ::2]
        self.assertIs(type(part), Part)
        address, deleter = take(part.__dlpack__(max_version=(1, 0)))
        layout = Layout(address)
        self.assertEqual((layout.start, layout.shape, layout.steps), (owner.tensor.data + 12, (2,), (2,)))
        self.assertEqual(Tensor.from_address(address).flags, READ_ONLY)
        del part
        poll()
        self.assertFalse(owner.is_released)
        deleter(address)
        poll()
        self.assertTrue(owner.is_released)

    def test_only_one_element_is_true_or_false(self):
        self.assertEqual([bool(Owner(bytes([value]), (1, 1), "int8").make()) for value in (0, 3)], [False, True])
        with self.assertRaisesRegex(ValueError, "ambiguous"):
            bool(Owner(FLOATS, (6,)).make())
        with self.assertRaises(TypeError):
            len(Owner(b"\1", (), "int8").make())


if __name__ == "__main__":
    unittest.main()
