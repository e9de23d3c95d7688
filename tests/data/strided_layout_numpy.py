"""What NumPy answers for random chains of view operations: writes strided_layout_numpy.jsonl beside this file.

    python -m venv venv && venv/bin/pip install numpy && venv/bin/python tests/data/strided_layout_numpy.py

Each line: shape and order of a dense array of uint8 whose elements are their own offsets, the operations in turn, and
the result: shape, strides, offset of the first element and the sum of (k + 1) * element[k] in C order. An operation
that NumPy refuses (a reshape that would copy) ends a line with "refused".
"""

import json
import pathlib
import random

import numpy as np

LINES = 1500
random = random.Random(20261120)


def extent():
    return random.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])


def bound(n):
    return random.choice([None, None, random.randint(-n - 2, n + 2)])


def index(shape):
    items = []
    for n in shape:
        kind = random.random()
        if kind < 0.2 and n > 0:
            items.append(random.randint(-n, n - 1))
        else:
            items.append([bound(n), bound(n), random.choice([None, 1, 2, 3, -1, -2])])
    if random.random() < 0.3:
        cut = sorted(random.sample(range(len(items) + 1), 2)) if items else [0, 0]
        items[cut[0] : cut[1]] = ["..."]
    for _ in range(random.choice([0, 0, 1, 2])):
        items.insert(random.randint(0, len(items)), None)
    return items


def as_python(item):
    return slice(*item) if isinstance(item, list) else Ellipsis if item == "..." else item


def regroup(array):
    """A shape of the same size, made by splitting and joining extents."""
    factors = []
    for n in array.shape:
        for p in (2, 3, 5):
            while n > 1 and n % p == 0:
                factors.append(p)
                n //= p
        if n != 1:
            factors.append(n)
    shape = []
    for f in factors:
        if shape and random.random() < 0.5:
            shape[-1] *= f
        else:
            shape.append(f)
    for _ in range(random.choice([0, 0, 1])):
        shape.insert(random.randint(0, len(shape)), 1)
    if shape and array.size and random.random() < 0.3:
        shape[random.randrange(len(shape))] = -1
    return shape


def step(array):
    """One operation: its description and the view it gives, or None if NumPy would have to copy."""
    kind = random.choice(["sliced", "sliced", "permuted", "reshaped", "reshaped", "broadcastTo", "squeezed"])
    if kind == "sliced":
        items = index(array.shape)
        return [kind, items], array[tuple(as_python(item) for item in items)]
    if kind == "permuted":
        axes = list(range(array.ndim))
        random.shuffle(axes)
        return [kind, axes], array.transpose(axes)
    if kind == "broadcastTo":
        shape = [n if n != 1 or random.random() < 0.5 else random.randint(0, 3) for n in array.shape]
        shape = [random.randint(1, 2) for _ in range(random.choice([0, 0, 1]))] + shape
        return [kind, shape], np.broadcast_to(array, shape)
    if kind == "squeezed":
        # Without elements, this is the one operation that differs from NumPy's on purpose.
        return ([kind], array.squeeze()) if array.size else step(array)
    shape = regroup(array)
    try:
        return [kind, shape], array.reshape(shape, copy=False)
    except ValueError:
        return [kind, shape], None


def line():
    shape = [extent() for _ in range(random.randint(0, 4))]
    order = random.choice("CF")
    size = int(np.prod(shape))
    base = np.arange(size, dtype=np.int64)
    array = base.reshape(shape, order=order)
    steps = []
    for _ in range(random.randint(1, 4)):
        operation, result = step(array)
        steps.append(operation)
        if result is None:
            return {"shape": shape, "order": order, "steps": steps, "refused": True}
        # An array of no dimensions may come out as a scalar, which has no memory of its own.
        if not isinstance(result, np.ndarray) or result.size > 2000:
            steps.pop()
            break
        array = result
    flat = array.ravel().tolist()
    start = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // 8
    return {
        "shape": shape,
        "order": order,
        "steps": steps,
        "out": {
            "shape": list(array.shape),
            "strides": [s // 8 for s in array.strides],
            "offset": start if array.size else None,
            "checksum": sum((k + 1) * value for k, value in enumerate(flat)),
        },
    }


path = pathlib.Path(__file__).with_suffix(".jsonl")
path.write_text("".join(json.dumps(line(), separators=(",", ":")) + "\n" for _ in range(LINES)))
