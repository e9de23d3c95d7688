"""PyVortex on the messages of vortex_messages.ts: arrays of many nodes, as files in a folder, and how long each takes.

Needs `pip install vortex-data pyarrow`. Answers with the arrays' names and messages; then each line that names one is
answered with the seconds of some runs: of reading its message, or of that and making an array of Arrow of it.
"""

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version

import pyarrow as pa
import vortex as vx
from vortex._lib import serde


def arrays():
    columns = {f"c{i}": pa.array([i, i + 1, 7], pa.int64()) for i in range(999)}
    yield "a struct of 999 columns: 1,000 nodes", vx.array(pa.table(columns))
    for chunks, rows in ((1000, 10), (100, 100)):
        parts = [
            pa.array([f"row number {i} of chunk {j} is long" for i in range(rows)], pa.string_view())
            for j in range(chunks)
        ]
        yield f"string views in {chunks} chunks of {rows}", vx.array(pa.chunked_array(parts))


def plain(array):
    """Make one array of Arrow of it, as there."""
    made = array.to_arrow_array()
    return made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made


def main():
    sys.stdin.readline()
    folder = tempfile.mkdtemp(prefix="causeway-vortex-")
    messages, answers = {}, []
    for name, array in arrays():
        pair = [b"".join(bytes(part) for part in parts) for parts in serde.encode_ipc_array_buffers(array)]
        paths = [os.path.join(folder, f"{len(answers)}.{kind}") for kind in ("array", "dtype")]
        for path, message in zip(paths, pair):
            with open(path, "wb") as file:
                file.write(message)
        messages[name] = pair
        answers.append({"name": name, "array": paths[0], "dtype": paths[1]})
    versions = {"python": sys.version.split()[0], "vortex-data": version("vortex-data"), "pyarrow": pa.__version__}
    print(json.dumps({"folder": folder, "versions": versions, "arrays": answers}), flush=True)
    for line in sys.stdin:
        ask = json.loads(line)
        pair, times = messages[ask["name"]], []
        for _ in range(ask["times"]):
            array = serde.decode_ipc_array(*pair)
            start = time.perf_counter()
            if ask["what"] == "read":
                serde.decode_ipc_array(*pair)
            else:
                plain(array)
            times.append(time.perf_counter() - start)
        print(json.dumps(times), flush=True)


main()
