"""PyVortex as the judge of decoders. Reads a line of JSON from standard input, answers a line of JSON.

{"built": [{"dtype": base64 of the flatbuffer, "length": n, "tree": tree}]}: each tree as a message of Vortex's IPC,
written by the flatbuffers package and decoded by PyVortex. A tree is {"id", "metadata", "buffers", "children"}, bytes
in base64, buffers with their alignment. Answers a list of {"rows"} or {"error"}.

{"compressed": seed, "count": n}: n random columns as PyVortex compresses them. Answers a list of {"name", "dtype" and
"array": messages in base64, "rows"}.

{"written": seed, "count": n}: n random columns of text and of numbers that compress badly, as they stand in files that
PyVortex writes today and wrote earlier, small and fast. Answers the same.

Rows are base64 of, for each row, a byte that says whether it is there, and its value: zeros if it is not, decimals as
32 bytes, text and bytes after their size in 4.
"""

import base64
import decimal
import json
import struct
import sys
import tempfile

import flatbuffers
import numpy as np
import pyarrow as pa
import vortex as vx
import vortex.io
from vortex._lib import serde

TEXTS = [
    *[pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view],
    *[pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view],
]


def encoded(data):
    return base64.b64encode(bytes(data)).decode()


def rows(array):
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    count = len(array)
    valid = np.asarray(array.is_valid()) if count else np.zeros(0, bool)
    kind = array.type
    if pa.types.is_decimal(kind):
        values = array.to_pylist()
        ints = [0 if v is None else int(v.scaleb(kind.scale, decimal.Context(prec=100))) for v in values]
        data = np.frombuffer(b"".join(i.to_bytes(32, "little", signed=True) for i in ints), np.uint8).reshape(count, 32)
    elif pa.types.is_boolean(kind):
        data = np.asarray(array.fill_null(False)).astype(np.uint8).reshape(count, 1)
    elif any(is_kind(kind) for is_kind in TEXTS):
        parts = []
        for value in array.to_pylist():
            raw = b"" if value is None else value.encode() if isinstance(value, str) else value
            parts.append(struct.pack("<BI", value is not None, len(raw)) + raw)
        return encoded(b"".join(parts))
    else:
        width = kind.byte_width
        buffer = array.buffers()[1]
        raw = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
        data = raw[array.offset * width : (array.offset + count) * width].reshape(count, width)
    data = np.where(valid[:, None], data, 0).astype(np.uint8)
    return encoded(np.concatenate([valid.astype(np.uint8)[:, None], data], axis=1).tobytes())


def finished(builder, root):
    builder.Finish(root)
    return bytes(builder.Output())


def array_message(length, tree):
    """The message: its size, its header and its body, which is the buffers and then the nodes."""
    builder = flatbuffers.Builder(1024)
    ids, buffers = [], []

    def node(tree):
        children = [node(child) for child in tree["children"]]
        if tree["id"] not in ids:
            ids.append(tree["id"])
        own = []
        for data in tree["buffers"]:
            own.append(len(buffers))
            buffers.append((base64.b64decode(data[0]), data[1].bit_length() - 1))
        metadata = builder.CreateByteVector(base64.b64decode(tree["metadata"]))
        builder.StartVector(4, len(children), 4)
        for child in reversed(children):
            builder.PrependUOffsetTRelative(child)
        child_vector = builder.EndVector()
        builder.StartVector(2, len(own), 2)
        for index in reversed(own):
            builder.PrependUint16(index)
        buffer_vector = builder.EndVector()
        builder.StartObject(5)
        builder.PrependUint16Slot(0, ids.index(tree["id"]), 0)
        builder.PrependUOffsetTRelativeSlot(1, metadata, 0)
        builder.PrependUOffsetTRelativeSlot(2, child_vector, 0)
        builder.PrependUOffsetTRelativeSlot(3, buffer_vector, 0)
        return builder.EndObject()

    root = node(tree)
    body, paddings = b"", []
    for data, _ in buffers:
        paddings.append(-len(body) % 8)
        body += bytes(paddings[-1]) + data
    builder.StartVector(8, len(buffers), 4)
    for (data, exponent), padding in zip(reversed(buffers), reversed(paddings)):
        builder.Prep(4, 8)
        builder.PrependUint32(len(data))
        builder.PrependUint8(0)
        builder.PrependUint8(exponent)
        builder.PrependUint16(padding)
    sizes = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, root, 0)
    builder.PrependUOffsetTRelativeSlot(1, sizes, 0)
    nodes = finished(builder, builder.EndObject())
    body += nodes + struct.pack("<I", len(nodes))
    builder = flatbuffers.Builder(256)
    texts = [builder.CreateString(one) for one in ids]
    builder.StartVector(4, len(texts), 4)
    for text in reversed(texts):
        builder.PrependUOffsetTRelative(text)
    names = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUint32Slot(0, length, 0)
    builder.PrependUOffsetTRelativeSlot(1, names, 0)
    return framed(builder, 1, builder.EndObject(), body)


def dtype_message(data):
    builder = flatbuffers.Builder(256)
    builder.StartObject(0)
    return framed(builder, 3, builder.EndObject(), data)


def framed(builder, kind, header, body):
    builder.StartObject(4)
    builder.PrependUint8Slot(1, kind, 0)
    builder.PrependUOffsetTRelativeSlot(2, header, 0)
    builder.PrependUint64Slot(3, len(body), 0)
    message = finished(builder, builder.EndObject())
    message += bytes(-len(message) % 8)
    return struct.pack("<I", len(message)) + message + body


def judged(case):
    try:
        message = array_message(case["length"], case["tree"])
        array = serde.decode_ipc_array(message, dtype_message(base64.b64decode(case["dtype"])))
        return {"rows": rows(array.to_arrow_array())}
    except BaseException as error:  # a Rust panic is not an Exception
        return {"error": str(error).split("\n")[0]}


def column(rng, count):
    """A column that the compressor has something to do with."""
    ints = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    kind = ints[rng.integers(len(ints))]
    info = np.iinfo(kind.to_pandas_dtype())
    few = int(rng.integers(1, 8))
    shape = rng.choice(
        [
            *["small", "signed", "outliers", "far", "runs", "bools", "rare", "rare of a value", "any"],
            *["fractions", "fractions32", "near", "near32", "instants", "dates", "decimals", "long decimals"],
        ]
    )
    spread = rng.integers(0, min(info.max, 1000), count)
    draw = None
    if shape == "small":
        draw = pa.array(spread.astype(info.dtype))
    elif shape == "signed":
        kind = ints[few % 4]
        draw = pa.array(rng.integers(-100, 27, count).astype(kind.to_pandas_dtype()))
    elif shape == "outliers":
        odd = rng.integers(0, info.max, count, dtype=np.uint64, endpoint=True).astype(info.dtype)
        draw = pa.array(np.where(rng.random(count) < 0.02, odd, (spread % 50).astype(info.dtype)))
    elif shape == "far":
        draw = pa.array((info.max - spread.astype(np.uint64)).astype(info.dtype))
    elif shape == "runs":
        draw = pa.array(np.repeat(spread, few)[:count].astype(info.dtype))
    elif shape == "bools":
        draw = pa.array(np.repeat(spread % 2 == 0, few * 5)[:count])
    elif shape == "rare":
        draw = pa.array([int(v) if i % 60 == 0 else None for i, v in enumerate(spread)], kind)
    elif shape == "rare of a value":
        draw = pa.array([int(v) if i % 60 == 0 else 77 for i, v in enumerate(spread)], kind)
    elif shape == "any":
        draw = pa.array(rng.integers(0, info.max, count, dtype=np.uint64, endpoint=True).astype(info.dtype))
    elif shape.startswith("fractions"):
        odd = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-300, np.pi])[rng.integers(0, 6, count)]
        values = np.where(rng.random(count) < 0.02, odd, np.round(rng.normal(0, 100, count), 2))
        draw = pa.array(values.astype(np.float32 if shape.endswith("32") else np.float64))
    elif shape.startswith("near"):
        values = rng.normal(0, 1, count) + 1000
        values[rng.random(count) < 0.01] *= -1e9
        draw = pa.array(values.astype(np.float32 if shape.endswith("32") else np.float64))
    elif shape == "instants":
        unit = ["s", "ms", "us", "ns"][few % 4]
        second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        whole = rng.integers(-(10**9), 10**9, count) * second + (spread if few > 4 else 0)
        draw = pa.array(whole, pa.timestamp(unit, None if few % 2 else "UTC"))
    elif shape == "dates":
        draw = pa.array(rng.integers(10_000, 20_000, count).astype(np.int32), pa.date32())
    else:
        digits, factor = (10, 1) if shape == "decimals" else (30, 10**18)
        scaled = [decimal.Decimal(int(v) * factor).scaleb(-2) for v in rng.integers(-(10**9), 10**9, count)]
        draw = pa.array(scaled, pa.decimal128(digits, 2))
    if rng.random() < 0.5:
        some = pa.array(rng.random(len(draw)) < rng.choice([0.05, 0.5]))
        draw = pa.compute.if_else(some, pa.scalar(None, draw.type), draw)
    return str(shape), draw


def compressed(seed, count):
    rng = np.random.default_rng(seed)
    answers = []
    for _ in range(count):
        name, drawn = column(rng, int(rng.choice([1, 100, 1024, 3000, 5000])))
        array = vx.compress(vx.array(drawn))
        parts, dtype = serde.encode_ipc_array_buffers(array)
        message = [encoded(b"".join(bytes(part) for part in some)) for some in (parts, dtype)]
        answers.append({"name": name, "array": message[0], "dtype": message[1], "rows": rows(array.to_arrow_array())})
    return answers


def any_text(rng, count):
    """Text and bytes for compressors that look for what strings share."""
    shape = rng.choice(["urls", "hex", "words", "any bytes", "letters of all sizes", "one letter"])
    numbers = rng.integers(0, 2 ** int(rng.integers(1, 60)), count)
    if shape == "urls":
        texts = [f"https://example.org/{v % 7}/{v}" for v in numbers]
    elif shape == "hex":
        texts = [f"{v:x}" for v in numbers]
    elif shape == "words":
        words = ["Vortex", "für", "jede", "Zeile", "東京", "🌍", "of", "many", "words"]
        texts = [" ".join(rng.choice(words, int(v % 9))) for v in numbers]
    elif shape == "any bytes":
        return str(shape), pa.array([rng.bytes(int(v % 40)) for v in numbers], pa.binary())
    elif shape == "letters of all sizes":
        texts = ["".join(chr(int(c)) for c in rng.integers(0x20, 0xD7FF, int(v % 20))) for v in numbers]
    else:
        texts = ["a" * int(v % 300) for v in numbers]
    as_bytes = rng.random() < 0.2
    return str(shape), pa.array(
        [t.encode() if as_bytes else t for t in texts], pa.binary() if as_bytes else pa.string()
    )


def any_numbers(rng, count):
    """Numbers of every type that pco has, which have something in common."""
    kind = np.dtype(rng.choice(["u2", "u4", "u8", "i2", "i4", "i8", "f2", "f4", "f8"]))
    shape = rng.choice(["walk", "multiples", "noise", "few", "wave"])
    walk = np.cumsum(rng.normal(0, 3, count))
    if shape == "walk":
        values = walk
    elif shape == "multiples":
        values = rng.integers(0, 90, count) * (0.01 if kind.kind == "f" else 37) + (rng.random(count) < 0.01)
    elif shape == "noise":
        values = np.frombuffer(rng.bytes(count * kind.itemsize), kind)
    elif shape == "few":
        values = rng.choice(rng.integers(0, 30000, 5), count)
    else:
        values = np.sin(np.arange(count) / 20) * 100 + rng.normal(0, 1, count)
    if shape != "noise" and kind.kind == "u":
        values = np.abs(values)
    with np.errstate(all="ignore"):
        return f"{shape} of {kind}", pa.array(values.astype(kind))


def written(seed, count):
    rng = np.random.default_rng(seed)
    answers = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/columns.vortex"
        for _ in range(count):
            name, drawn = rng.choice([any_text, any_numbers])(rng, int(rng.choice([1, 10, 1000, 9000])))
            if rng.random() < 0.5:
                some = pa.array(rng.random(len(drawn)) < rng.choice([0.02, 0.5, 1]))
                drawn = pa.compute.if_else(some, pa.scalar(None, drawn.type), drawn)
            writer = rng.choice([vx.io.VortexWriteOptions.compact, vx.io.VortexWriteOptions.default])()
            edition = rng.choice(["core2025.06.0", "core2025.10.0", "core2026.08.1", "core2026.08.3"])
            try:
                writer.with_edition(str(edition)).write(pa.table({"a": drawn}), path)
            except RuntimeError as error:
                if "not permitted by ctx" in str(error):
                    continue  # it has chosen what that edition did not have yet
                raise
            array = vx.open(path).scan(["a"]).read_all().field("a")
            if "vortex.shared" in array.display_tree():
                continue  # values of a dictionary of the file: they have no form outside of it
            try:
                parts, dtype = serde.encode_ipc_array_buffers(array)
            except RuntimeError as error:
                if "cannot serialize sliced" in str(error):
                    continue
                raise
            message = [encoded(b"".join(bytes(part) for part in some)) for some in (parts, dtype)]
            answers.append(
                {"name": name, "array": message[0], "dtype": message[1], "rows": rows(array.to_arrow_array())}
            )
    return answers


if __name__ == "__main__":
    import pyarrow.compute

    ask = json.loads(sys.stdin.readline())
    if "built" in ask:
        answer = [judged(one) for one in ask["built"]]
    elif "written" in ask:
        answer = written(ask["written"], ask["count"])
    else:
        answer = compressed(ask["compressed"], ask["count"])
    print(json.dumps(answer))
