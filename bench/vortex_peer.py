"""PyVortex on the arrays of vortex.ts: what it has compressed, as messages in a folder, and how long decoding takes it.

Run by vortex.ts, which says how many rows in the first line. Needs `pip install vortex-data pyarrow numpy`. Answers
with the arrays' names, messages, sizes and encodings; then each line that names one is answered with the seconds of
some decodes of it.
"""

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version

import numpy as np
import pyarrow as pa
import vortex as vx
from vortex._lib import serde


def columns(rows, rng):
    words = np.array(["apple", "pear", "quince", "a fruit with a long name", "plum"])
    yield "bitpacked u32", rng.integers(0, 1000, rows, dtype=np.uint32)
    outliers = rng.integers(0, 1000, rows, dtype=np.uint32)
    outliers[rng.random(rows) < 0.01] = 2**31
    yield "bitpacked u32, 1% patches", outliers
    yield "bitpacked + for i64", rng.integers(2**40, 2**40 + 100_000, rows, dtype=np.int64)
    yield "signed small i32", rng.integers(-500, 500, rows, dtype=np.int32)
    yield "alp f64", np.round(rng.normal(0, 100, rows), 2)
    yield "alprd f64", rng.normal(0, 1, rows) + 1000
    yield "runend i64", np.repeat(rng.integers(0, 2**40, rows // 50, dtype=np.int64), 50)
    yield "dict f64", rng.choice(rng.normal(0, 1, 300), rows)
    yield "sparse i64", pa.array(np.arange(rows), mask=np.arange(rows) % 50 != 0)
    yield "dict utf8", pa.array(words[rng.integers(0, len(words), rows)])
    few = max(1, rows // 10)
    yield "hexadecimal utf8, a tenth of the rows", pa.array([f"{one:016x}" for one in rng.integers(0, 2**63, few)])
    urls = [f"https://example.org/{one % 997}/page-{one % 10_007}?id={one}" for one in rng.integers(0, 10**6, few)]
    yield "urls utf8, a tenth of the rows", pa.array(urls)
    short = [f"https://example.org/{one % 97}/{one}" for one in rng.integers(0, 10**9, few)]
    yield "urls utf8 that repeat more, a tenth of the rows", pa.array(short)


def encodings(array):
    def ids(tree):
        return [tree[0], *(one for child in tree[5] for one in ids(child))]

    return list(dict.fromkeys(ids(array.__vortex_array_metadata__())))


def main():
    rows = json.loads(sys.stdin.readline())
    folder = tempfile.mkdtemp(prefix="causeway-vortex-")
    arrays, answers = {}, []
    for name, column in columns(rows, np.random.default_rng(1)):
        array = vx.compress(vx.array(pa.array(column)))
        parts, dtype = serde.encode_ipc_array_buffers(array)
        paths = []
        for kind, some in (("dtype", dtype), ("array", parts)):
            paths.append(os.path.join(folder, f"{len(arrays)}.{kind}"))
            with open(paths[-1], "wb") as file:
                for part in some:
                    file.write(part)
        arrays[name] = array
        decoded = array.to_arrow_array()
        size = {"name": name, "rows": len(array), "decoded": decoded.nbytes, "encoded": array.nbytes}
        answers.append({**size, "dtype": paths[0], "array": paths[1], "encodings": encodings(array)})
    versions = {"python": sys.version.split()[0], "vortex-data": version("vortex-data"), "pyarrow": pa.__version__}
    print(json.dumps({"folder": folder, "versions": versions, "arrays": answers}), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        times = []
        for _ in range(ask["times"]):
            start = time.perf_counter()
            arrays[ask["name"]].to_arrow_array()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


main()
