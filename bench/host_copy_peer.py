"""Times NumPy on the copies of host_copy.ts: prints its version, then answers each question in JSON, a line each.

Run by host_copy.ts. A question is ["open", spec] for the arrays of a case, or the nanoseconds to spend on it: the
answer is then how many one copy took. Of a spec, `to` and `from` say which memory there is and where the elements lie
in it, in bytes. For ["slices", spec] the copy is a statement with `m`, `v`, `w` and `i`, made once for each row `i`.
"""

import json
import sys
import time
import timeit

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


def slices(spec):
    m = np.ones(spec["shape"], spec["matrix"])
    v, w = (np.ones(spec["count"], spec["vectors"]) for _ in range(2))
    rows = spec["rows"]
    statement = f"for i in range({rows}):\n    {spec['copy']}"
    timer = timeit.Timer(statement, "m, v, w = arrays", globals={"arrays": (m, v, w)})
    return lambda times: timer.timeit(times) * 1e9, rows


def measured(run, enough):
    times, taken = 1, run(1)
    while taken < enough / 2:
        times = max(times * 2, int(times * enough / max(taken, 1) * 0.8))
        taken = run(times)
    return taken / times


run, copies = None, 1
print(json.dumps(np.__version__), flush=True)
for line in sys.stdin:
    question = json.loads(line)
    if isinstance(question, list):
        kind, spec = question
        if kind == "slices":
            run, copies = slices(spec)
        else:
            run, copies = copy(array(spec["to"], spec["shape"]), array(spec["from"], spec["shape"])), 1
        answer = None
    else:
        answer = measured(run, question) / copies
    print(json.dumps(answer), flush=True)
