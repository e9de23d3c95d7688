"""Times torch's copy_ on the copies of copy.ts, and prints one JSON object: gigabytes moved per second, read and write together.

Run by copy.ts. Needs a GPU and torch.
"""

import json
import sys

import torch

REPEATS, ROUNDS = 20, 7
DTYPES = {1: torch.uint8, 2: torch.int16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}


def rate(to, source):
    nbytes = 2 * to.numel() * to.element_size()
    to.copy_(source)
    times = []
    for _ in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(REPEATS):
            to.copy_(source)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / REPEATS)
    return nbytes / sorted(times)[len(times) // 2] / 1e6


def view(shape, axes, step, itemsize):
    """The source: a permuted or stepped part of a dense array, or a repeated row."""
    dtype = DTYPES[itemsize]
    if step == 0:
        return torch.zeros(shape[1:], dtype=dtype, device="cuda").expand(shape)
    room = [extent * (step if axis == len(shape) - 1 else 1) for axis, extent in enumerate(shape)]
    array = torch.zeros(room, dtype=dtype, device="cuda")[..., ::step]
    return array.permute(axes)


cases = json.loads(sys.argv[1])
rates = []
for case in cases:
    source = view(case["shape"], case["axes"], case["step"], case["itemsize"])
    to = torch.zeros(source.shape, dtype=source.dtype, device="cuda")
    rates.append(rate(to, source))
    del source, to
    torch.cuda.empty_cache()
print(json.dumps({"version": torch.__version__, "rates": rates}))
