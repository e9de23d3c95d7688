"""Times cuda.core's StridedMemoryView on the operations of exchange.ts: prints what it is, and then, for each name that
it reads, the nanoseconds of a call, or null for what it cannot do here; all in JSON, a line each.

Run by exchange.ts. Needs cuda-core, cuda-bindings and numpy. "Ordered" is with a stream of the consumer's as
stream_ptr, the rest with -1, which orders nobody. cuda.core knows torch's tensors, and asks them by no protocol; "cuda
array interface" is of an object that is not torch's, and answers at once.
"""

import json
import sys
import timeit
from importlib.metadata import version

import numpy as np
from cuda.core.utils import StridedMemoryView

BATCH, REPEATS = 1000, 5

try:
    import torch

    tensor = torch.zeros(64, 32, device="cuda") if torch.cuda.is_available() else None
except ImportError:
    tensor = None


class Described:
    """An object whose interface is made beforehand."""

    def __init__(self, pointer):
        self.__cuda_array_interface__ = {
            "shape": (64, 32),
            "typestr": "<f4",
            "data": (pointer, False),
            "strides": None,
            "version": 3,
            "stream": None,
        }


def device_pointer():
    """An address of device memory, or None without a GPU."""
    if tensor is not None:
        return tensor.data_ptr()
    try:
        from cuda.core import Device

        device = Device(0)
        device.set_current()
        global allocation
        allocation = device.allocate(64 * 32 * 4)
        return int(allocation.handle)
    except Exception:
        return None


array = np.zeros((64, 32), np.float32)
pointer = device_pointer()
names = {"view": StridedMemoryView, "array": array, "tensor": tensor}

# Each statement is compiled into timeit's own loop, so no call of a Python function is counted.
statements = {
    "dlpack, NumPy": "view.from_dlpack(array, stream_ptr=-1)",
    "array": "view.from_any_interface(array, stream_ptr=-1)",
}
if tensor is not None:
    names["consumer"] = torch.cuda.Stream().cuda_stream
    statements["torch"] = "view.from_dlpack(tensor, stream_ptr=-1)"
    statements["torch, ordered"] = "view.from_dlpack(tensor, stream_ptr=consumer)"
    statements["torch by the interface, ordered"] = "view.from_cuda_array_interface(tensor, stream_ptr=consumer)"
if pointer is not None:
    names["described"] = Described(pointer)
    statements["cuda array interface"] = "view.from_cuda_array_interface(described, stream_ptr=-1)"

timers = {name: timeit.Timer(statement, globals=names) for name, statement in statements.items()}
for timer in timers.values():
    timer.timeit(BATCH)
versions = [f"cuda.core {version('cuda-core')}", f"numpy {np.__version__}"]
if tensor is not None:
    versions.append(f"torch {torch.__version__}")
print(json.dumps(", ".join(versions)), flush=True)
for line in sys.stdin:
    timer = timers.get(json.loads(line))
    times = sorted(timer.repeat(repeat=REPEATS, number=BATCH)) if timer else []
    print(json.dumps(times[REPEATS // 2] / BATCH * 1e9 if times else None), flush=True)
