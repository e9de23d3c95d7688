"""Times NumPy on the copies of host_copy.ts: prints its version, then answers each question in JSON, a line each.

Run by host_copy.ts. A question is ["open", spec] for the arrays of a case, or the nanoseconds to spend on it: the
answer is then how many one copy took. Of a spec, `to` and `from` say which memory there is and where the elements lie
in it, in bytes.
"""

import json
import sys
import time

import numpy as np

UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}


def array(side, shape):
    memory = np.full(side["bytes"], 1, np.uint8)  # written: all pages of fresh zeros are one and the same
    kind = np.dtype(side["dtype"] if "dtype" in side else UNSIGNED.get(side["itemsize"], f"V{side['itemsize']}"))
    return np.ndarray(tuple(shape), kind, memory, side["offset"], tuple(side["strides"]))


def copy(to, source):
    def run(times):
        start = time.perf_counter_ns()
        for _ in range(times):
            to[...] = source
        return time.perf_counter_ns() - start

    return run


def measured(run, enough):
    times, taken = 1, run(1)
    while taken < enough / 2:
        times = max(times * 2, int(times * enough / max(taken, 1) * 0.8))
        taken = run(times)
    return taken / times


run = None
print(json.dumps(np.__version__), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    if isinstance(question, list):
        spec = question[1]
        run = copy(array(spec["to"], spec["shape"]), array(spec["from"], spec["shape"]))
        answer = None
    else:
        answer = measured(run, question)
    print(json.dumps(answer), flush=True)
