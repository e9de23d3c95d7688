"""DLPack's tensors: where their fields and their elements lie."""

import ctypes
import math
from struct import unpack

VERSIONED, LEGACY = 80, 64  # bytes of DLManagedTensorVersioned and of DLManagedTensor
HOST, CUDA, CUDA_HOST = 1, 2, 3  # kDLCPU, kDLCUDA, kDLCUDAHost

# Bits in the flags of a versioned struct: its memory is read-only; its memory is the consumer's alone; each element of
# less than a byte has a byte of its own.
READ_ONLY, COPIED, PADDED = 1, 2, 4

TENSOR = "<QiiiBBHQQQ"  # DLTensor: data, device, ndim, dtype, shape, strides, byte offset


def flags_of(tensor):
    """Return the flags of a versioned tensor."""
    return ctypes.c_uint64.from_address(tensor + 24).value


def tensor_fields(dl_tensor):
    """Return the fields of a DLTensor: data, device (2), ndim, type (code, bits, lanes), shape, strides, offset."""
    return unpack(TENSOR, ctypes.string_at(dl_tensor, 48))


def int64s(address, count):
    """Return integers of 64 bits, as a tuple."""
    return tuple((ctypes.c_int64 * count).from_address(address)) if count else ()


class Layout:
    """Where the elements of a versioned tensor lie. Steps count elements, as DLPack's strides do."""

    def __init__(self, tensor):
        data, _, _, ndim, code, bits, lanes, shape, strides, offset = tensor_fields(tensor + 32)
        self.type, self.padded = (code, bits, lanes), flags_of(tensor) & PADDED
        self.start, self.shape = data + offset, int64s(shape, ndim)
        # Elements take their bits, so that some share a byte; padded ones and those of several lanes take whole bytes.
        is_packed = lanes == 1 and not self.padded
        self.width = bits if is_packed else (bits * lanes + 7) // 8 * 8  # in bits
        self.count = math.prod(self.shape)
        self.dense = tuple(math.prod(self.shape[axis + 1 :]) for axis in range(ndim))  # steps in C order without gaps
        self.steps = int64s(strides, ndim) if strides else self.dense
        axes = list(zip(self.shape, self.steps, self.dense))
        self.is_dense = all(extent == 1 or step == dense for extent, step, dense in axes)
        self.size = (self.count * self.width + 7) // 8  # bytes of a copy without gaps
        ends = [step * (extent - 1) for extent, step, _ in axes]
        # In bytes from the start: the beginning of the lowest element, and the end of the highest.
        self.first = sum(min(end, 0) for end in ends) * self.width // 8
        self.end = ((sum(max(end, 0) for end in ends) + 1) * self.width + 7) // 8

    # law python/Layout.overlaps: python/copy
    def overlaps(self):
        """Whether elements may share memory, as those of a broadcast array do."""
        reach = 0
        for step, extent in sorted((abs(step), extent) for step, extent in zip(self.steps, self.shape) if extent > 1):
            if step <= reach:
                return True
            reach += step * (extent - 1)
        return False
