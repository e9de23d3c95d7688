"""An array of ours where NumPy is loaded, in plain Python: whose memory it is, and what consumers of it get.

A run of its own: the other tests are of a Python without NumPy.
"""

import ctypes
import gc
import itertools
import pickle
import random
import struct
import types
import unittest
import unittest.mock

import numpy

from embedder import TYPES, GuestTest, Owner, Tensor, take
from guest import exchange_api
from guest.array import Array, CausewayArray
from guest.dlpack_structs import READ_ONLY
from guest.numpy_array import export_array, for_numpy, made_by_numpy, plain_array, takes_tensors

FLOATS = struct.pack("<6f", *range(6))

exchange_api.dtypes = {(2, 32, 1, False): ("float32", "<f4", "f")}


def elements(address):
    """Return the elements of a DLPack tensor by their indices, one by one, as an oracle reads them."""
    tensor = Tensor.from_address(address)
    shape = list((ctypes.c_int64 * tensor.ndim).from_address(tensor.shape)) if tensor.ndim else []
    strides = list((ctypes.c_int64 * tensor.ndim).from_address(tensor.strides)) if tensor.ndim else []
    size = tensor.bits // 8
    return {
        index: ctypes.string_at(tensor.data + size * sum(map(int.__mul__, index, strides)), size)
        for index in itertools.product(*map(range, shape))
    }


class HostArrays(GuestTest):
    def test_it_is_numpys_over_the_same_memory_and_keeps_its_owner_as_long_as_numpy_sees_it(self):
        owner = Owner(FLOATS, (2, 3))
        array = owner.make(export_array)
        self.assertIsInstance(array, (numpy.ndarray, CausewayArray))
        self.assertEqual(array.__array_interface__["data"], (owner.tensor.data, False))
        array[1, 2] = 50
        self.assertEqual(owner.data[20:24], struct.pack("<f", 50))
        part = array[1:, ::2]
        del array
        self.assertFalse(owner.is_released)
        self.assertEqual(part.tolist(), [[3, 50]])
        del part
        self.assertTrue(owner.is_released)

    def test_a_tensor_of_which_numpy_makes_nothing_stays_its_makers(self):
        owner = Owner(FLOATS, (2, 3))
        makers = (
            lambda: owner.make(export_array),
            lambda: exchange_api.object_from_tensor(ctypes.addressof(owner.tensor)),
        )
        for make in makers:
            with unittest.mock.patch("numpy.asarray", side_effect=KeyboardInterrupt):
                self.assertRaises(KeyboardInterrupt, make)
            gc.collect()
            self.assertFalse(owner.is_released)

    def test_any_layout_is_seen_as_it_lies(self):
        chance = random.Random(1)
        for name in [name for name, (*_, typestr, _) in TYPES.items() if typestr is not None]:
            size = TYPES[name][1] // 8
            for _ in range(20):
                shape = tuple(chance.randrange(1, 4) for _ in range(chance.randrange(1, 4)))
                axes = chance.sample(range(len(shape)), len(shape))
                strides, count = [0] * len(shape), 1
                for axis in axes:
                    strides[axis], count = count, count * shape[axis]
                data = bytes(chance.randrange(2) for _ in range(count * size))
                array = Owner(data, shape, name, strides).make(for_any)
                for index in numpy.ndindex(*shape):
                    at = size * sum(map(int.__mul__, index, strides))
                    self.assertEqual(array[index].tobytes(), data[at : at + size], (name, shape, strides))

    def test_what_numpy_has_no_type_for_and_what_is_on_a_device_stays_as_it_is(self):
        for owner in Owner(b"\x21", (2,), "uint4"), Owner(FLOATS, (6,), device=(2, 0)):
            array = owner.make()
            self.assertIs(for_numpy(array), array)

    def test_what_is_read_only_cannot_be_written_to(self):
        array = Owner(FLOATS, (6,), flags=READ_ONLY).make(export_array)
        with self.assertRaises(ValueError):
            array[0] = 1
        address, deleter = take(array.__dlpack__(max_version=(1, 0)))
        self.assertEqual(Tensor.from_address(address).flags & READ_ONLY, READ_ONLY)
        deleter(address)

    def test_what_numpy_computes_belongs_to_nobody_else(self):
        array = Owner(FLOATS, (6,)).make(export_array)
        self.assertIs(type(array + 1), numpy.ndarray)
        self.assertIs(type(array.sum()), numpy.float32)
        self.assertIs(type(numpy.add(array, 1)), numpy.ndarray)
        before = array
        array += 1
        self.assertIs(array, before)
        self.assertEqual(array.tolist(), [1, 2, 3, 4, 5, 6])

    def test_older_numpys_which_know_no_versions_are_given_no_tensors(self):
        for version, expected in ("1.26.4", False), ("2.0.2", False), ("2.1.0", True), ("2.10.0rc1", True):
            self.assertEqual(takes_tensors(types.SimpleNamespace(__version__=version)), expected)

    def test_it_is_pickled_as_numpys_own(self):
        copy = pickle.loads(pickle.dumps(Owner(FLOATS, (2, 3)).make(export_array)))
        self.assertIs(type(copy), numpy.ndarray)
        self.assertEqual(copy.tolist(), [[0, 1, 2], [3, 4, 5]])


class Consumers(GuestTest):
    def test_consumers_of_dlpack_get_the_memory_of_the_array_and_of_every_part(self):
        owner = Owner(FLOATS, (2, 3))
        array = owner.make(export_array)
        self.assertEqual(array.__dlpack_device__(), (1, 0))
        for part in array, array[:, 1:], array[::-1], array.T, array.reshape(3, 2), array[0, 1:2]:
            address, deleter = take(part.__dlpack__(max_version=(1, 0)))
            expected = {index: part[index].tobytes() for index in numpy.ndindex(*part.shape)}
            self.assertEqual(elements(address), expected)
            deleter(address)

    def test_only_an_array_that_is_as_it_was_made_is_the_one_behind_it(self):
        array = Owner(FLOATS, (2, 3)).make(export_array)
        behind = plain_array(array)
        self.assertIs(type(behind), Array)
        self.assertIs(plain_array(array), behind)
        self.assertIs(plain_array(behind), behind)
        self.assertIsNot(plain_array(array[1:]), behind)
        array.shape = (3, 2)
        self.assertIsNot(plain_array(array), behind)

    def test_arrow_is_spoken_by_the_array_as_it_was_made_and_of_types_that_arrow_has(self):
        array = Owner(FLOATS, (6,)).make(export_array)
        self.assertTrue(hasattr(array, "__arrow_c_array__"))
        for other in array[1:], Owner(b"\0" * 16, (2,), "complex64").make(export_array):
            for name in "__arrow_c_schema__", "__arrow_c_array__", "__arrow_c_device_array__":
                self.assertFalse(hasattr(other, name))

    def test_what_dlpack_has_no_type_or_strides_for_is_refused(self):
        fields = numpy.zeros(2, [("a", "<i1"), ("b", "<f4")])
        refused = [
            ("type", numpy.zeros(2, "<M8[s]")),
            ("type", numpy.zeros(2, ">f4")),
            ("type", numpy.zeros(2, "S3")),
            ("type", numpy.zeros(2, "g")),  # long double
            ("strides of \\(5,\\) bytes", fields["b"]),
        ]
        for words, array in refused:
            with self.assertRaisesRegex(BufferError, words):
                made_by_numpy(array)


def for_any(*fields):
    """Return what export_array() does, which must be an array of NumPy's."""
    array = export_array(*fields)
    assert isinstance(array, numpy.ndarray)
    return array


if __name__ == "__main__":
    unittest.main()
