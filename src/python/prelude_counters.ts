/**
 * How Python's side learns that a consumer has let go of a struct. The deleters and release callbacks in the structs that it
 * hands out are our machine code, which increments a counter and does nothing else: a callback in Python would be run
 * wherever a library lets go, also while it unwinds an exception, and that exception would be lost.
 *
 * @module
 */

/** Python source, a part of the prelude. */
export const marksPrelude = `
class Counters:
    "Counters for machine code, each of one thing that is kept until its counter is not zero."
    SLAB = 256 # counters in a piece of memory, which never moves

    def __init__(self):
        self.slabs, self.free, self.kept, self.numbers = [], [], {}, {}

    def keep(self, thing):
        "Address of a counter that is zero."
        with lock:
            if not self.free:
                slab, first = (ctypes.c_int32 * self.SLAB)(), len(self.slabs) * self.SLAB
                self.slabs.append((slab, memoryview(slab).cast("B")))
                self.free.extend(range(first, first + self.SLAB))
            number = self.free.pop()
            slab, _ = self.slabs[number // self.SLAB]
            address = ctypes.addressof(slab) + 4 * (number % self.SLAB)
            self.kept[number], self.numbers[address] = thing, number
            return address

    def is_over(self, address):
        return ctypes.c_int32.from_address(address).value != 0

    def forget(self, address):
        "What was kept under a counter, which can be used again."
        number = self.numbers.pop(address)
        ctypes.c_int32.from_address(address).value = 0
        self.free.append(number)
        return self.kept.pop(number)

    def over(self):
        "Addresses of the counters that are not zero."
        found = []
        for slab, view in self.slabs:
            marked = bytes(view)
            at = len(marked) - len(marked.lstrip(b"\\0")) # the runs of zeros are skipped by code in C
            while at < len(marked):
                found.append(ctypes.addressof(slab) + at // 4 * 4)
                rest = marked[at // 4 * 4 + 4:]
                at = len(marked) - len(rest.lstrip(b"\\0"))
        return found

counters = Counters()
`;
