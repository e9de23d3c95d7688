"""Times cuda.core's StridedMemoryView on the operations of exchange.ts, and prints one JSON object.

Run by exchange.ts. Needs cuda-core, cuda-bindings and numpy. With torch and a GPU the arrays are torch's, as its users
have them; without torch an object that answers at once stands for one with the CUDA Array Interface. "Ordered" is with a
stream of the consumer's as stream_ptr, the rest with -1, which orders nobody.
"""

import json
import timeit
from importlib.metadata import version

import numpy as np
from cuda.core.utils import StridedMemoryView

BATCH, REPEATS = 2000, 51

try:
    import torch

    tensor = torch.zeros(64, 32, device="cuda") if torch.cuda.is_available() else None
except ImportError:
    tensor = None


class Described:
    """An object whose interface is made beforehand."""

    def __init__(self, pointer):
        self.__cuda_array_interface__ = {
            "shape": (64, 32), "typestr": "<f4", "data": (pointer, False), "strides": None, "version": 3, "stream": None,
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
described = None if pointer is None else tensor if tensor is not None else Described(pointer)
names = {"view": StridedMemoryView, "array": array, "tensor": tensor, "described": described}

# Each statement is compiled into timeit's own loop, so no call of a Python function is counted.
statements = {
    "dlpack, NumPy": "view.from_dlpack(array, stream_ptr=-1)",
    "array": "view.from_any_interface(array, stream_ptr=-1)",
}
if tensor is not None:
    consumer = torch.cuda.Stream()
    names["consumer"] = consumer.cuda_stream
    statements["dlpack"] = "view.from_dlpack(tensor, stream_ptr=-1)"
    statements["dlpack, ordered"] = "view.from_dlpack(tensor, stream_ptr=consumer)"
    statements["cuda array interface, ordered"] = "view.from_cuda_array_interface(described, stream_ptr=consumer)"
if described is not None:
    statements["cuda array interface"] = "view.from_cuda_array_interface(described, stream_ptr=-1)"


def nanoseconds(statement):
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(BATCH)
    times = sorted(timer.repeat(repeat=REPEATS, number=BATCH))
    return times[REPEATS // 2] / BATCH * 1e9


versions = {"cuda-core": version("cuda-core"), "numpy": np.__version__}
if tensor is not None:
    versions["torch"] = torch.__version__
print(json.dumps({"versions": versions, "core": {name: nanoseconds(one) for name, one in statements.items()}}))
