"""How Python learns that a consumer has released a struct.

The deleters and release callbacks in the structs that are handed out are machine code, which increments a counter and
does nothing else. A callback written in Python would run wherever a library releases a struct, also while it unwinds an
exception, and that exception would be lost.
"""

import ctypes
import threading

lock = threading.RLock()  # held while the counters or the list of unclaimed capsules change


class Counters:
    """Counters for machine code. Each keeps one object alive until it is not zero."""

    SLAB = 256  # counters in one piece of memory, which never moves

    def __init__(self):
        self.slabs, self.free = [], []
        self.numbers_for_javascript = (ctypes.c_int32 * 3)()  # of pieces, of counters in use, of unclaimed capsules
        self.retained, self.numbers = {}, {}  # the objects by number, the numbers by address

    def retain(self, thing):
        """Keep an object alive, and return the address of its counter, which is zero."""
        with lock:
            if not self.free:
                slab, first = (ctypes.c_int32 * self.SLAB)(), len(self.slabs) * self.SLAB
                self.slabs.append((slab, memoryview(slab).cast("B")))
                self.free.extend(range(first, first + self.SLAB))
                self.numbers_for_javascript[0] += 1
            number = self.free.pop()
            slab, _ = self.slabs[number // self.SLAB]
            address = ctypes.addressof(slab) + 4 * (number % self.SLAB)
            self.retained[number], self.numbers[address] = thing, number
            self.numbers_for_javascript[1] = len(self.retained)
            return address

    def is_released(self, address):
        """Whether the counter at an address is not zero."""
        return ctypes.c_int32.from_address(address).value != 0

    # law python/Counters.take_back: python/export_array, python/arrow_capsules
    def take_back(self, address):
        """Return the object that a counter has retained. The counter can be used again."""
        number = self.numbers.pop(address)
        ctypes.c_int32.from_address(address).value = 0
        self.free.append(number)
        thing = self.retained.pop(number)
        self.numbers_for_javascript[1] = len(self.retained)
        return thing

    def released(self):
        """Return the addresses of all counters that are not zero."""
        found = []
        for slab, view in self.slabs:
            counts = bytes(view)
            at = len(counts) - len(counts.lstrip(b"\0"))  # lstrip is written in C: it skips runs of zeros quickly
            while at < len(counts):
                found.append(ctypes.addressof(slab) + at // 4 * 4)
                rest = counts[at // 4 * 4 + 4 :]
                at = len(counts) - len(rest.lstrip(b"\0"))
        return found


counters = Counters()

# JavaScript looks at the counters itself, and polls only if one of them is not zero, or a capsule was not taken yet.
counter_slab_bytes, counter_numbers = 4 * Counters.SLAB, ctypes.addressof(counters.numbers_for_javascript)


def counter_addresses():
    """Return where the pieces of memory with counters are."""
    return [ctypes.addressof(slab) for slab, _ in counters.slabs]
