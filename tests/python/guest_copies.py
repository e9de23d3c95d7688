"""Copies in plain Python, on the host and by a fake driver, and the order between streams."""

import ctypes
import random
import unittest

from embedder import TYPES, GuestTest, Owner, poll, take
from guest import cuda_order, device_memory
from guest.copies import bytes_at, gathered
from guest.dlpack_structs import Layout, tensor_fields


class Driver:
    """A CUDA driver whose memory is the host's. It records its calls, and fails where a test requests it."""

    def __init__(self):
        self.log, self.failing, self.blocks = [], None, {}
        int_, void, unsigned, size, address = (
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_uint,
            ctypes.c_size_t,
            ctypes.c_uint64,
        )
        self.callbacks = [
            ctypes.CFUNCTYPE(int_, *types)(function)
            for function, types in (
                (self.call("push"), (void,)),
                (self.call("pop", False), (void,)),
                (self.create, (void, unsigned)),
                (self.call("destroy"), (void,)),
                (self.call("record"), (void, void)),
                (self.call("wait"), (void, void, unsigned)),
                (self.allocate, (void, size)),
                (self.free, (address,)),
                (self.copy, (address, address, size, void)),
                (self.call("synchronize"), (void,)),
                (self.call("exchange", False), (void,)),
                (self.retain, (void, int_)),
                (self.call("release"), (int_,)),
            )
        ]
        addresses = [ctypes.cast(callback, ctypes.c_void_p).value for callback in self.callbacks]
        cuda_order.bind_cuda(*addresses[:6])
        device_memory.bind_memory(*addresses[6:])

    def note(self, name, *arguments):
        self.log.append((name, *arguments))
        return 2 if name == self.failing else 0

    def call(self, name, is_telling=True):
        return lambda *arguments: self.note(name, *(arguments if is_telling else ()))

    def create(self, out, flags):
        ctypes.c_void_p.from_address(out).value = 0xE0
        return self.note("create", flags)

    def allocate(self, out, size):
        block = (ctypes.c_char * size)()
        self.blocks[ctypes.addressof(block)] = block
        ctypes.c_uint64.from_address(out).value = ctypes.addressof(block)
        if self.failing == "allocate":
            ctypes.c_uint64.from_address(out).value = 0
        return self.note("allocate", size)

    def free(self, address):
        self.blocks.pop(address)
        return self.note("free")

    def copy(self, to, start, size, stream):
        ctypes.memmove(to, start, size)
        return self.note("copy", size, stream)

    def retain(self, out, number):
        return self.note("retain", number)

    def names(self):
        names = [name for name, *_ in self.log]
        self.log.clear()
        return names


class Gathering(unittest.TestCase):
    def test_elements_are_gathered_in_c_order_wherever_they_lie_also_those_that_share_bytes(self):
        chance = random.Random(7)
        for _ in range(300):
            name = chance.choice(["int8", "int32", "complex64", "uint4"])
            bits = TYPES[name][1]
            shape = tuple(chance.randint(1, 4) for _ in range(chance.randint(1, 3)))
            steps = tuple(chance.randint(-6, 6) for _ in shape)
            lowest = sum(min(step * (extent - 1), 0) for step, extent in zip(steps, shape))
            highest = sum(max(step * (extent - 1), 0) for step, extent in zip(steps, shape))
            lowest -= lowest % (8 // min(bits, 8))  # the first element is at a whole byte
            memory = chance.getrandbits(bits * (highest - lowest + 2))
            size = (bits * (highest - lowest + 2) + 7) // 8
            owner = Owner(memory.to_bytes(size, "little"), shape, name, strides=steps)
            owner.tensor.data -= lowest * bits // 8
            positions = [0]
            for step, extent in zip(steps, shape):
                positions = [at + i * step for at in positions for i in range(extent)]
            expected = sum(
                (memory >> (bits * (at - lowest)) & ((1 << bits) - 1)) << (bits * i) for i, at in enumerate(positions)
            )
            layout = Layout(ctypes.addressof(owner.tensor))
            made = gathered(layout, layout.start)
            found = int.from_bytes(bytes_at(made.address, layout.size), "little")
            self.assertEqual(found % (1 << (bits * layout.count)), expected, (name, shape, steps))
            # It may report elements as overlapping that are not, but must not miss any that are.
            self.assertTrue(layout.overlaps() or len(set(positions)) == len(positions), (shape, steps))

    def test_dense_arrays_do_not_overlap_and_broadcast_ones_do(self):
        for strides, expected in ((3, 1), False), ((1, 2), False), ((0, 1), True), ((1, 1), True):
            owner = Owner(bytes(24), (2, 3), strides=strides)
            self.assertEqual(Layout(ctypes.addressof(owner.tensor)).overlaps(), expected)


class OnDevice(GuestTest):
    def setUp(self):
        super().setUp()
        self.driver = Driver()

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.driver.blocks, {})

    def make(self, **options):
        data = bytes(range(24))
        return Owner(data, (2, 3), device=(2, 5), **options).make(context=0xC0, home=0x77)

    def test_a_consumers_stream_waits_for_the_home_stream(self):
        array = self.make()
        array.__dlpack__(max_version=(1, 0), stream=0x99)
        self.assertEqual(
            self.driver.log,
            [
                ("push", 0xC0),
                ("create", 2),
                ("record", 0xE0, 0x77),
                ("wait", 0x99, 0xE0, 0),
                ("destroy", 0xE0),
                ("pop",),
            ],
        )
        self.driver.log.clear()
        for stream in -1, 0x77:  # no order wanted, and none needed
            array.__dlpack__(max_version=(1, 0), stream=stream)
        self.assertEqual(self.driver.log, [])

    def test_what_is_ordered_is_written_down_from_the_first_question_on(self):
        array = self.make()
        array.__dlpack__(max_version=(1, 0), stream=0x99)
        self.assertEqual(cuda_order.take_orders(), [])
        array.__dlpack__(max_version=(1, 0), stream=0x99)
        array.__dlpack__(max_version=(1, 0))
        self.assertEqual(cuda_order.take_orders(), [(0xC0, 0x77, 0x99), (0xC0, 0x77, 1)])
        self.assertEqual(cuda_order.take_orders(), [])
        cuda_order.orders = None

    def test_an_event_is_destroyed_and_the_context_restored_where_the_driver_fails(self):
        for failing, error in ("record", MemoryError), ("wait", MemoryError):
            self.driver.failing = failing
            with self.assertRaisesRegex(error, "when asked to order two streams"):
                self.make().__dlpack__(max_version=(1, 0), stream=0x99)
            self.assertEqual(self.driver.names()[-2:], ["destroy", "pop"])

    def test_a_copy_on_the_device_keeps_its_strides_and_is_ordered_for_the_consumer(self):
        address, deleter = take(self.make(strides=(1, 2)).__dlpack__(max_version=(1, 0), stream=0x99, copy=True))
        layout = Layout(address)
        self.assertEqual((layout.steps, bytes_at(layout.start, 24)), ((1, 2), bytes(range(24))))
        names = self.driver.names()
        self.assertEqual((names.count("allocate"), names.count("copy"), names.count("synchronize")), (1, 1, 0))
        self.assertLess(names.index("copy"), names.index("wait"))
        deleter(address)
        poll()
        self.assertEqual([name for name in self.driver.names() if name in ("free", "release")], ["free", "release"])

    def test_a_copy_on_the_host_is_complete_on_return(self):
        address, deleter = take(self.make().__dlpack__(dl_device=(1, 0)))
        data, kind, number, *_ = tensor_fields(address)
        self.assertEqual((kind, number, bytes_at(data, 24)), (1, 0, bytes(range(24))))
        names = self.driver.names()
        self.assertEqual((names.count("allocate"), names.count("synchronize")), (0, 1))
        deleter(address)

    def test_elements_that_overlap_are_copied_one_by_one(self):
        address, deleter = take(self.make(strides=(0, 1)).__dlpack__(max_version=(1, 0), copy=True))
        layout = Layout(address)
        self.assertEqual((layout.steps, bytes_at(layout.start, 24)), ((3, 1), bytes(range(12)) * 2))
        self.assertEqual(self.driver.names().count("synchronize"), 2)  # the staged bytes outlive both
        deleter(address)

    def test_memory_that_cannot_be_had_leaves_no_context_behind(self):
        self.driver.failing = "allocate"
        with self.assertRaisesRegex(MemoryError, "when asked to allocate 24 bytes"):
            self.make().__dlpack__(copy=True)
        self.assertEqual(self.driver.names().count("release"), 1)
        self.driver.blocks.clear()

    def test_arrow_gets_an_event_on_the_home_stream_which_is_destroyed_with_the_array(self):
        capsules = self.make().__arrow_c_device_array__()
        self.assertIn(("record", 0xE0, 0x77), self.driver.log)
        self.assertNotIn("destroy", self.driver.names())
        del capsules
        poll()
        self.assertEqual(self.driver.names(), ["push", "destroy", "pop"])
        with self.assertRaisesRegex(BufferError, "__arrow_c_device_array__"):
            self.make().__arrow_c_array__()


if __name__ == "__main__":
    unittest.main()
