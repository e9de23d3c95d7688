"""Times NumPy's `copyto` on the conversions of host_convert.ts: prints the versions, and then, for each case that it
reads, the processor's nanoseconds of a call in one round; all in JSON, a line each.

Run by host_convert.ts. Needs numpy and ml_dtypes.
"""

import functools
import json
import sys
import time
import warnings

import ml_dtypes
import numpy as np

warnings.filterwarnings("ignore")  # some of what is converted does not fit


def strided(shape, lie, dtype):
    """An array of a shape that lies in memory as `lie` says."""
    if lie == "dense":
        return np.zeros(shape, dtype)
    if lie == "turned":
        return np.zeros(shape[::-1], dtype).T
    if lie == "reversed":
        return np.zeros(shape, dtype)[..., ::-1]
    if lie == "stepped":
        return np.zeros((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
    if lie == "part":
        return np.zeros((*shape[:-1], shape[-1] + 16), dtype)[..., : shape[-1]]
    raise ValueError(lie)


@functools.lru_cache(maxsize=2)
def arrays(key):
    case = json.loads(key)
    shape = tuple(case["shape"])
    source, to = (
        strided(shape, case[lie], np.dtype(getattr(ml_dtypes, case[end], None) or case[end]))
        for lie, end in (("source", "from"), ("destination", "to"))
    )
    source[...] = (np.arange(source.size) % 100).reshape(shape).astype(source.dtype)
    return source, to


def measure(case):
    repeats = case.pop("repeats")
    source, to = arrays(json.dumps(case))
    begin = time.process_time_ns()
    for _ in range(repeats):
        np.copyto(to, source, casting="unsafe")
    return (time.process_time_ns() - begin) / repeats


print(json.dumps({"NumPy": np.__version__, "ml_dtypes": ml_dtypes.__version__}), flush=True)
for line in sys.stdin:
    print(json.dumps(measure(json.loads(line))), flush=True)
