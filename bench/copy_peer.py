"""Times torch's copy_ on the copies of copy.ts: prints its version, and then, for each section and case that it reads,
the gigabytes per second, of small copies the nanoseconds of a call; all in JSON, a line each.

Run by copy.ts. Needs a GPU and torch, and two GPUs for the sections `devices` and `matrix`.
"""

import functools
import json
import sys
import time

import torch

REPEATS, ROUNDS, WARM_UP = 20, 7, 0.05
DTYPES = {1: torch.uint8, 2: torch.int16, 4: torch.float32, 8: torch.float64, 16: torch.complex128}


def device_rate(nbytes, enqueue):
    """Of something that is enqueued, by the device's clock."""
    warm = time.perf_counter() + WARM_UP
    while time.perf_counter() < warm:
        enqueue()
    times = []
    for _ in range(ROUNDS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(REPEATS):
            enqueue()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / REPEATS)
    return nbytes / sorted(times)[len(times) // 2] / 1e6


def host_rate(nbytes, work):
    """Of something that is over when it returns, by the host's clock."""
    work()
    times = []
    for _ in range(5):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return nbytes / sorted(times)[len(times) // 2] / 1e9


def layout_rate(case):
    shape, step, dtype = case["shape"], case["step"], DTYPES[case["itemsize"]]
    if step == 0:
        source = torch.zeros(shape[1:], dtype=dtype, device="cuda").expand(shape)
    else:
        room = [extent * (step if axis == len(shape) - 1 else 1) for axis, extent in enumerate(shape)]
        source = torch.zeros(room, dtype=dtype, device="cuda")[..., ::step].permute(case["axes"])
    to = torch.zeros(source.shape, dtype=source.dtype, device="cuda")
    return device_rate(2 * to.numel() * to.element_size(), lambda: to.copy_(source))


def conversion_rate(case):
    source = torch.zeros((8192, 4096), dtype=getattr(torch, case["from"]), device="cuda").permute(case["axes"])
    to = torch.zeros(source.shape, dtype=getattr(torch, case["to"]), device="cuda")
    return device_rate(to.numel() * (source.element_size() + to.element_size()), lambda: to.copy_(source))


@functools.lru_cache(maxsize=1)
def host_arrays(nbytes, is_pinned):
    device, host = (torch.ones(nbytes, dtype=torch.uint8, device=where) for where in ("cuda", "cpu"))
    return device, host.pin_memory() if is_pinned else host


def to_and_from_host(case):
    device, host = host_arrays(case["bytes"], case["isPinned"])
    to, source = (device, host) if case["isUp"] else (host, device)

    def copy():
        to.copy_(source, non_blocking=case["isPinned"])
        torch.cuda.synchronize()

    return host_rate(case["bytes"], copy)


def small_copy(case):
    device, host = host_arrays(case["bytes"], case["isPinned"])
    for _ in range(100):
        device.copy_(host, non_blocking=True)
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            device.copy_(host, non_blocking=True)
        times.append(time.perf_counter() - start)
    return sorted(times)[10] / 100 * 1e9


def between_rate(case):
    def array(kind, device):
        if kind == "stepped":
            return torch.zeros((8192, 2 * 8192), device=device)[:, ::2]
        dense = torch.zeros((8192, 8192), device=device)
        return dense.t() if kind == "turned" else dense

    source, to = array(case["from"], "cuda:0"), array(case["to"], "cuda:1")

    def copies():
        for _ in range(10):
            to.copy_(source)
        torch.cuda.synchronize(0)
        torch.cuda.synchronize(1)

    return host_rate(10 * to.numel() * to.element_size(), copies)


@functools.lru_cache(maxsize=1)
def matrix_pairs(devices, nbytes):
    def array(device):
        return torch.ones(nbytes, dtype=torch.uint8, device=f"cuda:{device}")

    return [(array(to), array(source), torch.cuda.Stream(f"cuda:{source}")) for source, to in devices]


def matrix_rate(case):
    pairs = matrix_pairs(tuple(tuple(pair) for pair in case["pairs"]), case["bytes"])

    def copies():
        for _ in range(10):
            for to, source, stream in pairs:
                with torch.cuda.stream(stream):
                    to.copy_(source, non_blocking=True)
        for device in range(torch.cuda.device_count()):
            torch.cuda.synchronize(device)

    return host_rate(10 * len(pairs) * case["bytes"], copies)


SECTIONS = {
    "layouts": layout_rate,
    "conversions": conversion_rate,
    "host": to_and_from_host,
    "small": small_copy,
    "devices": between_rate,
    "matrix": matrix_rate,
}
print(json.dumps(torch.__version__), flush=True)
for line in sys.stdin:
    section, case = json.loads(line)
    print(json.dumps(SECTIONS[section](case)), flush=True)
    if section not in ("host", "small"):
        torch.cuda.empty_cache()
