"""Times cuda.core's compiled layout and NumPy on the operations of layout.ts, and prints one JSON object.

Run by layout.ts. Needs `pip install cuda-core cuda-bindings numpy`; no GPU, no driver.

Every statement is compiled into timeit's own loop, so no call of a Python function is counted. The best of the repeats
is taken, as timeit advises.
"""

import json
import sys
import timeit

import numpy as np
from cuda.core._layout import _StridedLayout as Layout

SETUP = {
    "Layout": Layout,
    "layout": Layout((64, 32, 16), (512, 16, 1), 4),
    "row": Layout((64, 1, 16), (16, 16, 1), 4),
    "array": np.zeros((64, 32, 16), np.float32),
    "narrow": np.zeros((64, 1, 16), np.float32),
    "np": np,
    "data": np.zeros(64 * 32 * 16, np.float32),
}

CUDA_CORE = {
    "constructor": "Layout((64, 32, 16), (512, 16, 1), 4)",
    "constructor, implicit strides": "Layout((64, 32, 16), None, 4)",
    "dense": "Layout.dense((64, 32, 16), 4)",
    "permuted": "layout.permuted((2, 0, 1))",
    "reshaped": "layout.reshaped((2048, 16))",
    "sliced": "layout.sliced((slice(1, 60, 2), slice(None, None, -1), 3))",
    "broadcast": "row.broadcast_to((64, 32, 16))",
    "broadcast to four axes": "row.broadcast_to((8, 64, 32, 16))",
    "flattened": "layout.flattened()",
    "squeezed": "row.squeezed()",
    "unsqueezed": "layout.unsqueezed(1)",
    "permuted, then dense": "layout.permuted((2, 0, 1)).to_dense('C')",
    "repacked": "layout.repacked(16)",
    "constructor + contiguity + bounds + uniqueness": (
        "l = Layout((64, 32, 16), (512, 16, 1), 4); l.is_contiguous_c; l.offset_bounds; l.is_unique"
    ),
    "the same, permuted": (
        "l = Layout((16, 64, 32), (1, 512, 16), 4); l.is_contiguous_c; l.offset_bounds; l.is_unique"
    ),
    "uniqueness, asked again": "layout.is_unique",
}

NUMPY = {
    "constructor": "np.ndarray((64, 32, 16), np.float32, data, 0, (2048, 64, 4))",
    "constructor, implicit strides": "np.ndarray((64, 32, 16), np.float32, data)",
    "permuted": "array.transpose(2, 0, 1)",
    "reshaped": "array.reshape(2048, 16)",
    "sliced": "array[1:60:2, ::-1, 3]",
    "broadcast": "np.broadcast_to(narrow, (64, 32, 16))",
    "broadcast to four axes": "np.broadcast_to(narrow, (8, 64, 32, 16))",
    "flattened": "array.reshape(-1)",
    "squeezed": "narrow.squeeze()",
    "unsqueezed": "np.expand_dims(array, 1)",
    "constructor + contiguity + bounds + uniqueness": (
        "a = np.ndarray((64, 32, 16), np.float32, data, 0, (2048, 64, 4)); a.flags.c_contiguous; "
        "np.lib.array_utils.byte_bounds(a)"
    ),
}


def nanoseconds(statement):
    timer = timeit.Timer(statement, globals=SETUP)
    timer.timeit(10_000)
    return min(timer.repeat(repeat=15, number=20_000)) / 20_000 * 1e9


def version(package):
    from importlib.metadata import version

    return version(package)


json.dump(
    {
        "versions": {
            "python": sys.version.split()[0],
            "cuda-core": version("cuda-core"),
            "numpy": np.__version__,
        },
        "cudaCore": {name: nanoseconds(statement) for name, statement in CUDA_CORE.items()},
        "numpy": {name: nanoseconds(statement) for name, statement in NUMPY.items()},
    },
    sys.stdout,
)
