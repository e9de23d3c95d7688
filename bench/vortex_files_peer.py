"""PyVortex on the files of vortex_files.ts: writes them to a folder, and says how long scans of them take.

Needs `pip install vortex-data pyarrow numpy`. Answers with the files; then each line that names one and its columns is
answered with the seconds of some scans to one table of Arrow.
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
import vortex.io

ROWS = 2_000_000


def tables():
    rng = np.random.default_rng(7)
    words = np.array(["Paris", "Lyon", "Nice", "a city with a long name"])
    yield (
        "2,000,000 rows of 6 columns",
        pa.table(
            {
                "id": np.arange(ROWS),
                "small": rng.integers(0, 1000, ROWS).astype(np.int32),
                "price": np.round(rng.normal(20, 5, ROWS), 2),
                "time": pa.array(np.cumsum(rng.integers(0, 50, ROWS)), pa.timestamp("us")),
                "city": words[rng.integers(0, 4, ROWS)],
                "url": pa.array([f"https://example.org/{v % 97}/{v}" for v in rng.integers(0, 10**9, ROWS)]),
            }
        ),
    )
    yield (
        "200,000 rows of 50 columns",
        pa.table({f"c{i}": rng.integers(0, 2**40, 200_000) for i in range(50)}),
    )


def main():
    sys.stdin.readline()
    folder = tempfile.mkdtemp(prefix="causeway-vortex-")
    files = {}
    for name, table in tables():
        files[name] = os.path.join(folder, f"{len(files)}.vortex")
        vx.io.write(table, files[name])
    versions = {"python": sys.version.split()[0], "vortex-data": version("vortex-data"), "pyarrow": pa.__version__}
    answer = {
        "folder": folder,
        "versions": versions,
        "files": files,
        "sizes": [os.path.getsize(p) for p in files.values()],
    }
    print(json.dumps(answer), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        times = []
        for _ in range(ask["times"]):
            start = time.perf_counter()
            vx.open(files[ask["name"]]).to_arrow(ask["columns"]).read_all()
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


main()
