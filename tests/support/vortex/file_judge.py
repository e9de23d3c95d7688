"""PyVortex and PyArrow as judges of scans. file_judge.py SEED COUNT FOLDER

Writes COUNT files of random columns, each of several zones, and prints a line of JSON for each: its path, and filters
with the number of rows that PyVortex's own scan finds by them, and the SHA-256 of what these have in some column, as
wheel_judge.py writes rows. What PyArrow finds in the table that was written must be the same, or the judge says so.
"""

import base64
import datetime
import decimal
import hashlib
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import vortex as vx
import vortex.expr as ve
import vortex.io
from wheel_judge import rows

EDITIONS = ["core2025.10.0", "core2026.08.1", "core2026.08.3"]
COMPARE = {"==": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater}
COMPARE[">="] = pc.greater_equal
JUDGE = {"==": ve.eq, "!=": ve.not_eq, "<": ve.lt, "<=": ve.lt_eq, ">": ve.gt, ">=": ve.gt_eq}
INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def digest(array):
    return hashlib.sha256(base64.b64decode(rows(array))).hexdigest()


def column(rng, count):
    """Numbers that stay near to their neighbours, so that zones differ, as values of some type."""
    kind = rng.choice(["int", "float", "text", "bool", "date", "time", "decimal", "bytes"])
    span = int(rng.choice([3, 100, 30_000]))
    walk = np.abs(np.arange(count) * span // count + rng.integers(-span // 10 - 1, span // 10 + 1, count))
    if rng.random() < 0.3:
        walk = rng.permutation(walk)
    if kind == "int":
        of = INTS[rng.integers(len(INTS))]
        info = np.iinfo(of.to_pandas_dtype())
        walk = np.minimum(walk, min(info.max, 2**62)).astype(info.dtype)
        values = pa.array(walk if rng.random() < 0.5 else (info.max - walk).astype(info.dtype))
    elif kind == "float":
        values = pa.array((walk / 4 + 0.25).astype(rng.choice(["f4", "f8"])))
    elif kind == "text":
        texts = [f"{'ab'[v % 2]}{v:05}{'é' * (v % 3)}" + "z" * (70 * (v % 50 == 0)) for v in walk]
        values = pa.array(texts)
    elif kind == "bytes":
        values = pa.array([int(v).to_bytes(3, "big") + b"\xff" * (int(v) % 4) for v in walk], pa.binary())
    elif kind == "bool":
        values = pa.array(walk > span // 2)
    elif kind == "date":
        values = pa.array([datetime.date(2000, 1, 1) + datetime.timedelta(int(v)) for v in walk], pa.date32())
    elif kind == "time":
        values = pa.array(walk * 1_000_003, pa.timestamp(str(rng.choice(["s", "ms", "us", "ns"]))))
    else:
        values = pa.array([decimal.Decimal(int(v)) / 8 for v in walk], pa.decimal128(int(rng.choice([9, 18, 30])), 3))
    chance = rng.choice([0, 0, 0.1, 1])
    if chance > 0:
        # Some zones have no nulls, or nothing else.
        null = (rng.random(count) < chance) & (np.arange(count) // 5000 % 2 == 0)
        values = pc.if_else(pa.array(null), pa.scalar(None, values.type), values)
    return values


def stored(value):
    """A value as the test's language has it: [kind, text]."""
    if isinstance(value, pa.Scalar):
        kind = value.type
        if pa.types.is_boolean(kind):
            return ["bool", str(value.as_py())]
        if pa.types.is_decimal(kind):
            return ["decimal", str(value.as_py())]
        if pa.types.is_floating(kind):
            return ["float", repr(float(value.as_py()))]
        if pa.types.is_string(kind):
            return ["text", value.as_py()]
        if pa.types.is_binary(kind):
            return ["bytes", value.as_py().hex()]
        if pa.types.is_date32(kind):
            return ["int", str(value.cast(pa.int32()).as_py())]
        if pa.types.is_timestamp(kind):
            return ["int", str(value.cast(pa.int64()).as_py())]
        return ["int", str(value.as_py())]
    raise TypeError(value)


def filter_of(rng, table, depth=0):
    """A random filter: as the test writes it, as PyVortex's expression, and PyArrow's rows."""
    shape = rng.choice(["test"] * 4 + ["and", "or", "not"]) if depth < 2 else "test"
    if shape in ("and", "or"):
        parts = [filter_of(rng, table, depth + 1) for _ in range(int(rng.integers(1, 4)))]
        said, judged, found = parts[0]
        for _, expression, mask in parts[1:]:
            judged = (ve.and_ if shape == "and" else ve.or_)(judged, expression)
            found = (pc.and_kleene if shape == "and" else pc.or_kleene)(found, mask)
        return {shape: [one[0] for one in parts]}, judged, found
    if shape == "not":
        said, judged, found = filter_of(rng, table, depth + 1)
        return {"not": said}, ve.not_(judged), pc.invert(found)
    name = str(rng.choice(table.column_names))
    values = table[name].combine_chunks()
    op = str(rng.choice([*COMPARE, "is_null", "is_not_null", "in", "starts_with"]))
    judged = ve.column(name)
    if op in ("is_null", "is_not_null"):
        make = (ve.is_null, pc.is_null) if op == "is_null" else (ve.is_not_null, pc.is_valid)
        return {"column": name, "op": op}, make[0](judged), make[1](values)
    there = values.drop_null()
    if len(there) == 0:
        return filter_of(rng, table, depth)
    pick = [there[int(rng.integers(len(there)))] for _ in range(3)]
    if op == "starts_with" and pa.types.is_string(values.type):
        prefix = pick[0].as_py()[: int(rng.integers(1, 6))]
        said = {"column": name, "op": op, "value": ["text", prefix]}
        return said, ve.like(judged, ve.literal(vx.utf8(), prefix + "%")), pc.starts_with(values, prefix)
    literal = [literal_of(one) for one in pick]
    if op == "in":
        found, expression = pc.equal(values, pick[0]), ve.eq(judged, literal[0])
        for value, one in zip(pick[1:], literal[1:]):
            found, expression = pc.or_kleene(found, pc.equal(values, value)), ve.or_(expression, ve.eq(judged, one))
        return {"column": name, "op": "in", "value": [stored(one) for one in pick]}, expression, found
    op = op if op in COMPARE else "<"
    return (
        {"column": name, "op": op, "value": stored(pick[0])},
        JUDGE[op](judged, literal[0]),
        COMPARE[op](values, pick[0]),
    )


def literal_of(value):
    array = vx.array(pa.array([value], value.type))
    return ve.literal(array.dtype, array.scalar_at(0))


def judged(seed, folder):
    rng = np.random.default_rng(seed)
    count = int(rng.choice([1, 8191, 8193, 20_000, 33_000]))
    table = pa.table({f"c{i}": column(rng, count) for i in range(int(rng.integers(1, 5)))})
    path = f"{folder}/{seed}.vortex"
    writer = rng.choice([vx.io.VortexWriteOptions.compact, vx.io.VortexWriteOptions.default])()
    edition = str(rng.choice(EDITIONS))
    writer.with_edition(edition).write(table, path)
    file = vx.open(path)
    answers = []
    for _ in range(8):
        said, expression, found = filter_of(rng, table)
        name = str(rng.choice(table.column_names))
        got = file.scan([name], expr=expression).read_all().to_arrow_array()
        got = got.combine_chunks() if isinstance(got, pa.ChunkedArray) else got
        got = got.field(0)
        wanted = table[name].combine_chunks().filter(found.fill_null(False) if isinstance(found, pa.Array) else found)
        answer = {"filter": said, "column": name, "count": len(got), "rows": digest(got)}
        if digest(wanted.cast(got.type) if wanted.type != got.type else wanted) != answer["rows"]:
            answer["arrow"] = f"PyArrow finds {len(wanted)} rows, PyVortex {len(got)}"
        answers.append(answer)
    return {"path": path, "edition": edition, "rows": count, "schema": str(table.schema), "filters": answers}


if __name__ == "__main__":
    first, number, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    for seed in range(first, first + number):
        print(json.dumps(judged(seed, folder)))
