"""Counters that machine code increments."""

import ctypes
import random
import threading
import unittest

import embedder  # noqa: F401 -- sets the path
from guest.release_counters import Counters


def increment(address):
    ctypes.c_int32.from_address(address).value += 1


class CountersTest(unittest.TestCase):
    def test_what_is_kept_is_alive_until_its_counter_is_forgotten(self):
        counters, kept = Counters(), object()
        address = counters.retain(kept)
        self.assertFalse(counters.is_released(address))
        self.assertEqual(counters.released(), [])
        increment(address)
        self.assertTrue(counters.is_released(address))
        self.assertEqual(counters.released(), [address])
        self.assertIs(counters.take_back(address), kept)
        self.assertEqual((counters.released(), counters.retained, counters.numbers), ([], {}, {}))

    def test_counters_are_used_again_so_that_they_take_no_more_memory(self):
        counters = Counters()
        for _ in range(10 * Counters.SLAB):
            counters.take_back(counters.retain(object()))
        self.assertEqual(len(counters.slabs), 1)

    def test_all_that_were_incremented_are_found_and_no_others_however_often_and_wherever_they_lie(self):
        chance = random.Random(1)
        counters = Counters()
        addresses = [counters.retain(number) for number in range(3 * Counters.SLAB - 5)]
        self.assertEqual((len(set(addresses)), len(counters.slabs)), (len(addresses), 3))
        for share in 0, 0.01, 0.5, 1:
            chosen = {address for address in addresses if chance.random() < share}
            for address in chosen:
                # Each byte of the counter alone: a value of 256 has its lowest byte zero.
                ctypes.c_int32.from_address(address).value = 1 << chance.choice([0, 8, 16, 24])
            self.assertEqual(set(counters.released()), chosen)
            self.assertEqual(len(counters.released()), len(chosen))
            for address in chosen:
                ctypes.c_int32.from_address(address).value = 0

    def test_a_counter_that_is_used_again_starts_at_zero(self):
        counters = Counters()
        address = counters.retain("first")
        increment(address)
        counters.take_back(address)
        self.assertEqual(counters.retain("second"), address)
        self.assertFalse(counters.is_released(address))

    def test_threads_get_counters_of_their_own(self):
        counters, found = Counters(), []

        def keep():
            found.extend([counters.retain(None) for _ in range(500)])

        threads = [threading.Thread(target=keep) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(found), len(set(found))), (2000, 2000))


if __name__ == "__main__":
    unittest.main()
