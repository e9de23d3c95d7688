"""Times in Python itself what python.ts does from JavaScript: prints its versions, and then, for each name that it
reads, the nanoseconds of a call, or null for what it does not know; all in JSON, a line each.

Run by python.ts. Needs NumPy.
"""

import json
import math
import platform
import sys
import timeit

import numpy as np

REPEATS = 5

# What python.ts calls, too: it runs this text.
SHARED = """
class Counter:
    def __init__(self):
        self.n = 3
    def method(self, value):
        return self.n + value

def take(value):
    return 1

def fail():
    raise ValueError("no")
"""


def iterate(values):
    """Go through values and do nothing with them."""
    for _ in values:
        pass


def catch(fail):
    """Call a function, and return what it raises."""
    try:
        fail()
    except ValueError as error:
        return error


names = {"math": math, "np": np, "sqrt": math.sqrt, "iterate": iterate, "catch": catch}
exec(SHARED, names)
names |= {
    "obj": names["Counter"](),
    "a": np.zeros(100),
    "ints": list(range(1000)),
    "floats": [value + 0.5 for value in range(1000)],
    "v": [0.5] * 5,
    "keyed": {},
    "one": ["only"],
}

# What is timed, and how much of it there is in one run.
statements = {
    "sqrt": ("sqrt(2)", 1),
    "math.sqrt": ("math.sqrt(2)", 1),
    "obj.n": ("obj.n", 1),
    "obj.method": ("obj.method(4)", 1),
    "item": ("ints[500]", 1),
    "has": ("hasattr(obj, 'n')", 1),
    "set attribute": ("obj.n = 3", 1),
    "set key": ("keyed['key'] = 1; del keyed['key']", 1),
    "iterate one": ("iterate(one)", 1),
    "text": ("take('abcdefghij' 'klmnopqrst')", 1),
    "dict": ("take({'a': 1, 'b': 2, 'c': 3, 'd': 4, 'e': 5})", 1),
    "list": ("take(floats[:100])", 1),
    "sum": ("np.sum(a)", 1),
    "add": ("np.add(a, a)", 1),
    "ones": ("np.ones(100)", 1),
    "iterate list": ("iterate(ints)", 1000),
    "iterate range": ("iterate(range(1000))", 1000),
    "value": ("list(floats)", 1000),
    "exception": ("catch(fail)", 1),
    "from_dlpack": ("np.from_dlpack(a)", 1),
}
timers = {name: (timeit.Timer(statement, globals=names), each) for name, (statement, each) in statements.items()}

print(json.dumps({"CPython": platform.python_version(), "NumPy": np.__version__, "shared": SHARED}), flush=True)
for line in sys.stdin:
    timer, each = timers.get(json.loads(line), (None, 1))
    number = max(1, 2000 // each)
    times = sorted(timer.repeat(repeat=REPEATS, number=number)) if timer else []
    print(json.dumps(times[REPEATS // 2] / number / each * 1e9 if times else None), flush=True)
