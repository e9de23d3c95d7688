"""Chunks that pco's own library has written, one for each type, mode and kind of differences: pco_chunks.json.

Needs `pip install pcodec==1.1.0 numpy`. Run as `python pco_chunks.py > pco_chunks.json`. What is kept of the numbers is
the SHA-256 of their bytes.
"""

import base64
import hashlib
import json

import numpy as np
from pcodec import ChunkConfig, DeltaSpec, ModeSpec, PagingSpec, wrapped

DELTAS = {
    "none": DeltaSpec.no_op(),
    "consecutive 1": DeltaSpec.try_consecutive(1),
    "consecutive 3": DeltaSpec.try_consecutive(3),
    "lookback": DeltaSpec.try_lookback(),
    "conv1": DeltaSpec.try_conv1(4),
    "conv1 of 6": DeltaSpec.try_conv1(6),
}


def modes(dtype):
    yield "classic", ModeSpec.classic()
    yield "dict", ModeSpec.try_dict()
    if dtype.kind == "f":
        yield "floatMult", ModeSpec.try_float_mult(0.1)
        yield "floatQuant", ModeSpec.try_float_quant(7)
    else:
        yield "intMult", ModeSpec.try_int_mult(7)


def numbers(dtype, rng):
    wave = np.sin(np.arange(530) / 20) * 800 + rng.normal(size=530) * 5
    if dtype.kind == "f":
        values = np.round(wave, 1).astype(dtype)
        values[::97] = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-7, 1e4], dtype)
        return values
    values = (np.round(wave) * 7 + (7000 if dtype.kind == "u" else 0)).astype(np.int64)
    if dtype.itemsize == 8:
        values = values * 1_000_003
    return values.astype(dtype)


def text(data):
    return base64.b64encode(data).decode()


def chunk(dtype, mode, delta, rng):
    values = numbers(dtype, rng)
    config = ChunkConfig(
        compression_level=6, mode_spec=mode, delta_spec=delta, paging_spec=PagingSpec.exact_page_sizes([300, 7, 223])
    )
    compressor = wrapped.FileCompressor()
    one = compressor.chunk_compressor(values, config)
    pages = [text(one.write_page(i)) for i in range(3)]
    digest = hashlib.sha256(values.tobytes()).hexdigest()
    return {
        "header": text(compressor.write_header()),
        "meta": text(one.write_meta()),
        "pages": pages,
        "lengths": one.n_per_page(),
        "sha256": digest,
    }


def all_chunks():
    rng = np.random.default_rng(7)
    for name in ("uint16", "uint32", "uint64", "int16", "int32", "int64", "float16", "float32", "float64"):
        dtype = np.dtype(name)
        for mode, spec in modes(dtype):
            for delta, differences in DELTAS.items():
                if delta.startswith("conv1") and dtype.itemsize == 8:
                    continue  # pco's own encoder does not do it
                type_name = f"{dtype.kind}{dtype.itemsize * 8}"
                yield {"type": type_name, "mode": mode, "delta": delta, **chunk(dtype, spec, differences, rng)}


print("[\n" + ",\n".join(json.dumps(one) for one in all_chunks()) + "\n]")
