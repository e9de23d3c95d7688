"""Times cuda.core and cuda.bindings on the operations of cuda.ts: prints what they are, and then, for each library and
name that it reads, the nanoseconds of a call, or null for what it does not do; all in JSON, a line each.

Run by cuda.ts. Needs a GPU, cuda-core and cuda-bindings. Work is enqueued in batches, and the device is waited for
between them, off the clock: so a full queue is never measured.
"""

import json
import sys
import time

import cuda.core
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, LaunchConfig, Program, ProgramOptions, launch

BATCH, SAMPLES, WARM = 200, 20, 3

device = Device(0)
device.set_current()
stream, idle, other = device.create_stream(), device.create_stream(), device.create_stream()
event = stream.record()
pool = DeviceMemoryResource(device)
buffer = pool.allocate(1 << 20, stream=stream)
stream.sync()
SOURCE = 'extern "C" __global__ void scale(float *y, const float *x, float a, int n) { if (n < 0) y[0] = a * x[0]; }'
arch = "".join(map(str, device.compute_capability))
kernel = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{arch}")).compile("cubin").get_kernel("scale")
config = LaunchConfig(grid=1, block=32)
handles = driver.CUstream(int(stream.handle)), driver.CUstream(int(other.handle)), driver.CUevent(int(event.handle))
idle_handle = driver.CUstream(int(idle.handle))
address, count, factor = int(buffer.handle), np.int32(7), np.float32(2)
from_handle = cuda.core.Buffer.from_handle


def record_wait():
    idle.record(event)
    other.wait(event)


def record_wait_after_allocation():
    stream.record(event)
    other.wait(event)


def bindings_record_wait():
    driver.cuEventRecord(handles[2], idle_handle)
    driver.cuStreamWaitEvent(handles[1], handles[2], 0)


def bindings_record_wait_after_allocation():
    driver.cuEventRecord(handles[2], handles[0])
    driver.cuStreamWaitEvent(handles[1], handles[2], 0)


def allocate_free():
    pool.allocate(1 << 20, stream=stream).close(stream)


def bindings_allocate_free():
    _, ptr = driver.cuMemAllocAsync(1 << 20, handles[0])
    driver.cuMemFreeAsync(ptr, handles[0])


def pointer_attributes():
    return from_handle(address, 1 << 20).device_id


def bindings_pointer_attributes():
    return driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)


def launch_four():
    launch(stream, config, kernel, buffer, buffer, factor, count)


def overhead():
    """An empty function in the same loop."""


def measure(run):
    """The median of batches, without what the loop takes."""
    times, empty = [], []
    for sample in range(SAMPLES + WARM):
        for found, one in (times, run), (empty, overhead):
            start = time.perf_counter_ns()
            for _ in range(BATCH):
                one()
            end = time.perf_counter_ns()
            device.sync()
            if sample >= WARM:
                found.append((end - start) / BATCH)
    return sorted(times)[SAMPLES // 2] - sorted(empty)[SAMPLES // 2]


operations = {
    ("cuda.core", "record + wait"): record_wait,
    ("cuda.core", "record + wait, after an allocation"): record_wait_after_allocation,
    ("cuda.core", "allocate + free"): allocate_free,
    ("cuda.core", "pointer attributes"): pointer_attributes,
    ("cuda.core", "launch, four arguments"): launch_four,
    ("cuda.bindings", "record + wait"): bindings_record_wait,
    ("cuda.bindings", "record + wait, after an allocation"): bindings_record_wait_after_allocation,
    ("cuda.bindings", "allocate + free"): bindings_allocate_free,
    ("cuda.bindings", "pointer attributes"): bindings_pointer_attributes,
}
print(json.dumps(f"cuda.core {cuda.core.__version__}, driver {driver.cuDriverGetVersion()[1]}"), flush=True)
for line in sys.stdin:
    run = operations.get(tuple(json.loads(line)))
    print(json.dumps(None if run is None else measure(run)), flush=True)
