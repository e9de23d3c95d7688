"""What ml_dtypes and NumPy make of every small number: writes dtype_facts.json beside this file.

    python -m venv venv && venv/bin/pip install numpy ml_dtypes && venv/bin/python tests/data/dtype_facts.py

For every type, by name:

- values: what each code stands for, as float32, which holds all of them exactly.
- codes: what numbers round to. Between any two neighbouring finite values lie three inputs that decide how rounding
  goes: the midpoint, and the numbers just below and just above it. They are not stored: the test computes them from the
  values (sorted, zero once), in the precision of `inputs`. Stored are the codes of (below, midpoint, above) for each
  pair.
- extras: [input, code] for what lies beyond the last value, and for zeros, infinities and NaN (null).

Arrays are little-endian words, each less the one before (modulo the word), zlib-compressed, base64. float32 inputs are
used where ml_dtypes converts float64 by way of float32 and so rounds twice.
"""

import base64
import json
import pathlib
import zlib

import ml_dtypes
import numpy as np

FLOATS = ["float16", "bfloat16"] + [
    f"float{name}"
    for name in [
        "8_e3m4",
        "8_e4m3",
        "8_e4m3b11fnuz",
        "8_e4m3fn",
        "8_e4m3fnuz",
        "8_e5m2",
        "8_e5m2fnuz",
        "8_e8m0fnu",
        "6_e2m3fn",
        "6_e3m2fn",
        "4_e2m1fn",
    ]
]
BITS = {"float16": 16, "bfloat16": 16, "float6_e2m3fn": 6, "float6_e3m2fn": 6, "float4_e2m1fn": 4}


def packed(array):
    """Differences from each word to the next compress far better than the words, which mostly count up."""
    words = array.view(f"<u{array.itemsize}")
    return base64.b64encode(zlib.compress(np.diff(words, prepend=words[:1] * 0).tobytes(), 9)).decode()


def dtype_of(name):
    return np.dtype(name if name == "float16" else getattr(ml_dtypes, name))


def encode(inputs, dtype):
    with np.errstate(all="ignore"):
        cast = inputs.astype(dtype)
    return cast.view(np.uint16 if dtype.itemsize == 2 else np.uint8).astype("<u2")


def number(value):
    """JSON has no infinities and no NaN."""
    return None if np.isnan(value) else str(float(value)) if np.isinf(value) else float(value)


def float_facts(name):
    dtype = dtype_of(name)
    bits = BITS.get(name, 8)
    codes = np.arange(2**bits, dtype=np.uint16 if dtype.itemsize == 2 else np.uint8)
    with np.errstate(all="ignore"):
        values = codes.view(dtype).astype("<f4")
    precision = np.float64 if name == "float16" else np.float32
    finite = np.unique(values[np.isfinite(values)].astype(np.float64))
    middles = ((finite[:-1] + finite[1:]) / 2).astype(precision)
    assert np.array_equal(middles.astype(np.float64) * 2, finite[:-1] + finite[1:]), "midpoints must be exact"
    inputs = np.stack(
        [np.nextafter(middles, precision(-np.inf)), middles, np.nextafter(middles, precision(np.inf))], axis=1
    )
    # Beyond the last value: the midpoint to where the next one would be, and its neighbours, on either side.
    gap = finite[-1] - finite[-2]
    if name == "float8_e8m0fnu":
        gap = finite[-1]  # the next power of two
    edge = precision(finite[-1] + gap / 2)
    beyond = [np.nextafter(edge, precision(0)), edge, np.nextafter(edge, precision(np.inf)), np.finfo(precision).max]
    extras = [precision(x) for x in (0.0, -0.0, np.inf, np.nan)] + [-precision(np.inf)]
    extras += beyond + [-x for x in beyond]
    if name == "float8_e8m0fnu":
        extras += [precision(finite[0] * f) for f in (0.25, 0.5, 0.625, 0.75, 0.875)] + [precision(-1.0)]
    codes_of_extras = encode(np.array(extras, dtype=precision), dtype).tolist()
    return {
        "inputs": np.dtype(precision).name,
        "values": packed(values),
        "codes": packed(encode(inputs.reshape(-1), dtype)),
        # A string for -0.0, which JSON readers may lose the sign of.
        "extras": [["-0" if x == 0 and np.signbit(x) else number(x), code] for x, code in zip(extras, codes_of_extras)],
    }


def integer_facts(name):
    """Sub-byte integers are stored one per byte; only the low bits count."""
    dtype = np.dtype(getattr(ml_dtypes, name))
    values = np.arange(256, dtype=np.uint8).view(dtype).astype(np.int64)
    bits = int(name[-1])
    low, high = (0, 2**bits - 1) if name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    writes = np.arange(low, high + 1)
    return {"values": values.tolist(), "writes": [[int(v), int(c)] for v, c in zip(writes, encode(writes, dtype))]}


facts = {
    "ml_dtypes": ml_dtypes.__version__,
    "numpy": np.__version__,
    "floats": {name: float_facts(name) for name in FLOATS},
    "integers": {name: integer_facts(name) for name in ("int1", "int2", "int4", "uint1", "uint2", "uint4")},
}
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text(json.dumps(facts, indent=1) + "\n")
