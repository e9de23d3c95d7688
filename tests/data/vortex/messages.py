"""Arrays of every kind as messages of Vortex's IPC, small ones, as PyVortex writes them: messages.json.

Needs `pip install vortex-data==0.93.0 flatbuffers numpy`. Run as `python messages.py > messages.json`. What is damaged
in tests/vortex/fuzz, where there may be no PyVortex.
"""

import datetime
import decimal
import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute
import vortex as vx
from vortex._lib import serde

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "support/vortex"))

from wheel_judge import any_numbers, any_text, column, encoded  # noqa: E402


def as_messages(name, array):
    parts, dtype = serde.encode_ipc_array_buffers(array)
    bodies = [encoded(b"".join(bytes(part) for part in some)) for some in (parts, dtype)]
    return {"name": name, "dtype": bodies[1], "array": bodies[0]}


def nested(rng):
    count = 30
    words = ["a", "words that no view has room for", None, "\u00fc"]
    texts = pa.array([words[i % 4] for i in range(count)])
    lists = pa.array([None if i % 5 == 1 else list(range(i % 4)) for i in range(count)], pa.list_(pa.int32()))
    yield "struct", pa.StructArray.from_arrays([texts, lists], names=["a", "b"])
    yield "list of text", pa.array([["x" * i] * (i % 3) for i in range(count)], pa.list_(pa.string()))
    yield "nulls", pa.nulls(7)
    yield "bools", pa.array([i % 3 == 0 for i in range(count)])
    yield "dates", pa.array([datetime.date(2020, 1, 1 + i) for i in range(count)])
    yield "long decimals", pa.array([decimal.Decimal(7**i % 10**30) for i in range(count)], pa.decimal128(38, 0))
    pairs = [[("k", i), ("l", i + 1)] if i % 2 else [] for i in range(count)]
    yield "maps", pa.array(pairs, pa.map_(pa.string(), pa.int64()))
    yield "fixed", pa.array([[float(i), 0.5] for i in range(count)], pa.list_(pa.float32(), 2))
    yield "dictionary", pa.array([words[i % 4] for i in range(count)]).dictionary_encode()
    yield "bytes", pa.array([b"\x00" * i for i in range(count)], pa.binary())
    yield "halves", pa.array(rng.normal(size=count).astype(np.float16))


def written(name, drawn, rng):
    """As it stands in a small file."""
    path = "/dev/shm/messages.vortex"
    vx.io.VortexWriteOptions.compact().write(pa.table({"a": drawn}), path)
    array = vx.open(path).scan(["a"]).read_all().field("a")
    return None if "vortex.shared" in array.display_tree() else as_messages(name, array)


def messages():
    rng = np.random.default_rng(19)
    for name, drawn in nested(rng):
        try:
            array = vx.array(drawn)
        except Exception:
            print("not taken:", name, file=sys.stderr)
            continue
        yield as_messages(name, array)
        yield as_messages(f"{name}, compressed", vx.compress(array))
    for _ in range(40):
        name, drawn = column(rng, int(rng.choice([50, 300])))
        yield as_messages(name, vx.compress(vx.array(drawn)))
    for i in range(24):
        name, drawn = (any_text if i % 2 else any_numbers)(rng, 300)
        one = written(name, drawn, rng)
        if one is not None:
            yield one
        yield as_messages(name, vx.compress(vx.array(drawn)))


seen = set()
kept = []
for one in messages():
    if one["array"] not in seen and len(one["array"]) < 9000:
        seen.add(one["array"])
        kept.append(json.dumps(one))
print("[\n" + ",\n".join(kept) + "\n]")
