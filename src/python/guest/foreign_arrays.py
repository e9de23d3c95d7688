"""Arrays of other libraries, which JavaScript will see."""

from .dlpack_structs import CUDA_HOST, HOST


# law python/check_elements: python/malformed, peers/torch
def check_elements(value):
    """Raise an exception for a torch tensor whose elements are not what its memory says."""
    for bit in "conj", "neg":
        resolve = "resolve_" + bit
        if hasattr(type(value), resolve) and getattr(value, "is_" + bit)():
            raise BufferError(
                f"cannot export a tensor with the bit {bit}, whose memory holds other numbers: call {resolve}() first"
            )


newest_version, by_version = (1, 3), ("max_version",)  # what NumPy's arrays are asked for, and the argument's name


# law python/request_capsule: python/malformed, peers/torch
def request_capsule(value, stream):
    """Return the DLPack capsule of an array: a versioned one, or one without a version from a library that has none."""
    check_elements(value)
    on_host = value.__dlpack_device__()[0] in (HOST, CUDA_HOST)  # which no stream orders
    options = {} if stream is None or on_host else {"stream": stream}
    try:
        return value.__dlpack__(max_version=newest_version, **options)
    except TypeError:
        return value.__dlpack__(**options)


# law python/split_interface: python/interface_buffers
def split_interface(array, described):
    """Return what describes an array, and the bytes of the buffer that it names as its data, or None.

    The data of an array interface are an address, or an object with a buffer, or nothing: then the array has one.
    """
    data = described.get("data") if isinstance(described, dict) else ()
    if isinstance(data, tuple):
        return described, None
    try:
        buffer = memoryview(array if data is None else data)
        return {**described, "data": None}, buffer.cast("B") if buffer.nbytes > 0 else memoryview(b"")
    except (TypeError, ValueError, BufferError):  # it has no buffer, or one that was released, or has gaps
        return {**described, "data": None if data is None else repr(data)[:100]}, None


def is_plain(value):
    """Whether a torch tensor is no more than DLPack can say."""
    return not (value.requires_grad or value.is_conj() or value.is_neg())
