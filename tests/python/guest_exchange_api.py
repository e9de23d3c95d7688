"""DLPack's table of C functions in plain Python: its allocator, and tensors to objects and back."""

import ctypes
import struct
import unittest

from embedder import RELEASE, GuestTest, Owner, Tensor, poll
from guest import exchange_api
from guest.array import CausewayArray
from guest.interpreter_api import capsule_pointer

ALLOCATE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p, ctypes.c_void_p
)
REPORT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)

streams = (ctypes.c_uint64 * 2)(1, 0x77)
exchange_api.offer_exchange_api(
    [("float32", 2, 32, False, "<f4", "f"), ("uint4", 1, 4, False, None, None), ("uint4", 1, 4, True, None, None)],
    0x10,
    0x20,
    0x30,
    ctypes.addressof(streams),
    len(streams),
)


class ExchangeApi(GuestTest):
    def setUp(self):
        super().setUp()
        capsule = CausewayArray.__dlpack_c_exchange_api__
        table = capsule_pointer(capsule, b"dlpack_exchange_api")
        self.fields = struct.unpack("<IIQQQQQQ", ctypes.string_at(table, 56))
        self.errors = []

    def allocate(self, *shape, device=(1, 0), type=(2, 32)):
        axes = (ctypes.c_int64 * len(shape))(*shape)
        prototype = Tensor(device_type=device[0], device_id=device[1], ndim=len(shape), code=type[0], bits=type[1])
        prototype.lanes, prototype.shape = 1, ctypes.addressof(axes) if shape else None
        out, report = (
            ctypes.c_void_p(),
            REPORT(lambda _, kind, text: self.errors.append((kind.decode(), text.decode()))),
        )
        start = ctypes.addressof(prototype) + Tensor.data.offset
        code = ALLOCATE(self.fields[3])(start, out, None, ctypes.cast(report, ctypes.c_void_p))
        return out.value if code == 0 else None

    def test_the_table_has_its_version_and_no_borrowed_tensors(self):
        major, minor, previous, allocator, *functions = self.fields
        self.assertEqual((major, minor, previous, functions), (1, 3, 0, [0x10, 0x20, 0, 0x30]))
        self.assertNotEqual(allocator, 0)

    def test_host_memory_is_aligned_and_freed_by_its_deleter(self):
        for shape, strides in ((2, 3), [3, 1]), ((), []), ((0, 4), [4, 1]), ((5,), [1]):
            address = self.allocate(*shape)
            tensor = Tensor.from_address(address)
            self.assertEqual((tensor.data or 0) % 256, 0)
            self.assertEqual(list((ctypes.c_int64 * len(shape)).from_address(tensor.strides or 8)), strides)
            if tensor.data:
                ctypes.memset(tensor.data, 0xFF, 4)
            RELEASE(tensor.deleter)(address)
        self.assertEqual(self.errors, [])

    def test_what_cannot_be_allocated_is_reported_with_its_type(self):
        for shape, device, kind in ((-1,), (1, 0), "BufferError"), ((4,), (2, 9), "BufferError"):
            self.assertIsNone(self.allocate(*shape, device=device))
            self.assertEqual(self.errors.pop()[0], kind)
        self.assertIsNone(self.allocate(2**61))
        self.assertEqual(self.errors.pop()[0], "MemoryError")

    def test_a_foreign_tensor_is_an_array_that_releases_it(self):
        owner = Owner(struct.pack("<6f", *range(6)), (2, 3), strides=(1, 2))
        array = self.take(owner)
        self.assertEqual([list(row) for row in array], [[0, 2, 4], [1, 3, 5]])
        self.assertFalse(owner.is_released)
        del array
        poll()
        self.assertTrue(owner.is_released)

    def test_a_tensor_that_is_refused_stays_its_makers(self):
        for owner in Owner(bytes(8), (2,), "int32"), Owner(bytes(8), (2,), device=(2, 9)):
            with self.assertRaises(BufferError):
                self.take(owner)
            poll()
            self.assertFalse(owner.is_released)

    def take(self, owner):
        address = exchange_api.object_from_tensor(ctypes.addressof(owner.tensor))
        array = ctypes.cast(address, ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(array))  # the reference that the C function would return
        return array

    def test_an_array_of_ours_is_a_tensor_over_the_same_memory(self):
        owner = Owner(struct.pack("<6f", *range(6)), (6,))
        array = owner.make()
        address = exchange_api.tensor_from_object(id(array))
        tensor = Tensor.from_address(address)
        self.assertEqual(tensor.data, owner.tensor.data)
        del array
        poll()
        self.assertFalse(owner.is_released)
        RELEASE(tensor.deleter)(address)
        poll()
        self.assertTrue(owner.is_released)

    def test_the_stream_is_the_one_in_the_devices_word(self):
        self.assertEqual([exchange_api.work_stream(number) for number in range(3)], [1, 0x77, 1])


if __name__ == "__main__":
    unittest.main()
