"""Writes a small file as an old version of PyVortex does: old_files.py FILE, with that version on PYTHONPATH.

tests/vortex/file/old_files_test.ts has the same rows by the same formulas. What a version cannot write is left out.
"""

import datetime
import decimal
import sys
from importlib.metadata import version

import pyarrow as pa
import vortex as vx
import vortex.io

ROWS = 9000  # a zone of 8192 rows, and a part of one


def some(i, value):
    return None if i % 5 == 3 else value


def table(minor):
    rows = range(ROWS)
    columns = {
        "row": pa.array(rows, pa.int64()),
        "few": pa.array([some(i, i * 7 % 100) for i in rows], pa.int32()),
        "runs": pa.array([i // 50 for i in rows], pa.uint16()),
        "price": pa.array([some(i, i % 1000 / 100) for i in rows], pa.float64()),
        "odd": pa.array([float("nan") if i % 97 == 0 else i * 0.5 for i in rows], pa.float32()),
        "word": pa.array([some(i, ["one", "two", "three"][i % 3]) for i in rows], pa.string()),
        "url": pa.array([f"https://example.org/{i % 7}/{i // 100}" for i in rows], pa.string()),
        "code": pa.array([f"{i * i * 7919 % 65536:x}" for i in rows], pa.string()),
        "flag": pa.array([some(i, i // 10 % 2 == 0) for i in rows], pa.bool_()),
        "day": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(i % 500) for i in rows], pa.date32()),
        "at": pa.array([some(i, i // 10 * 1_000_000) for i in rows], pa.timestamp("us")),
        "money": pa.array([some(i, decimal.Decimal(i) / 4) for i in rows], pa.decimal128(10, 2)),
        "list": pa.array([some(i, list(range(i % 4))) for i in rows], pa.list_(pa.int16())),
        "pair": pa.array(
            [{"a": i % 11, "b": f"{i % 13}"} for i in rows], pa.struct({"a": pa.int8(), "b": pa.string()})
        ),
        "none": pa.array([None for i in rows], pa.int8()),
    }
    if minor >= 54:
        columns["fixed"] = pa.array([[i % 3, i % 5] for i in rows], pa.list_(pa.int32(), 2))
    return pa.table(columns)


def write(path):
    minor = int(version("vortex-data").split(".")[1])
    rows = table(minor)
    if minor >= 76:
        vx.io.write(rows, path)
    elif minor >= 54:
        vx.io.VortexWriteOptions.default().write_path(rows, path)
    else:
        vx.io.write(vx.array(rows), path)


if __name__ == "__main__":
    write(sys.argv[1])
