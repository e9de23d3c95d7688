"""What consumers hold of our arrays, and how it comes back.

A consumer gets a struct in a capsule. Each keeps our object alive, until the consumer calls the struct's release
callback, on whatever thread. That only counts (see ``release_counters``), and JavaScript polls what was released.
If no consumer has taken the struct out of a capsule, the poll releases it once nothing else refers to the capsule:
capsules have no destructor, for the same reason.
"""

import ctypes
import sys
from ctypes import c_void_p

from .arrow_structs import ArrowDeviceArray
from .interpreter_api import (
    BUFFER_OF_VORTEX,
    Release,
    capsule_destructor,
    capsule_name,
    capsule_pointer,
    new_capsule,
    release_code,
)
from .release_counters import counters, lock

unclaimed = []  # capsules whose struct was not taken yet at the last poll; append_unclaimed() adds one
capsule_structs = {}  # Arrow structs in capsules, by address


class Node:
    """An Arrow struct that a consumer holds, what it keeps alive, and the nodes of the structs inside it."""

    __slots__ = "struct", "owner", "table", "inner", "counter"


def make_node(one, owner, children, dictionary=None):
    """Make a struct ready for a consumer, and return its node. Its owner is kept alive until it is released."""
    node = Node()
    node.struct, node.owner = one, owner
    node.inner = list(children) if dictionary is None else [*children, dictionary]
    addresses = [ctypes.addressof(child.struct) for child in children]
    node.table = (c_void_p * len(children))(*addresses)
    one.n_children, one.children = len(children), ctypes.addressof(node.table) if children else None
    one.dictionary = None if dictionary is None else ctypes.addressof(dictionary.struct)
    one.release = release_code[type(one)]
    one.private_data = node.counter = counters.retain(node)
    return node


def copy_struct(kind, address, owner):
    """Return the node of a copy of an Arrow struct, with those inside it. Texts and buffers are the original's."""
    one = kind.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(kind)))
    children = (c_void_p * one.n_children).from_address(one.children) if one.n_children else ()
    return make_node(
        one,
        owner,
        [copy_struct(kind, child, owner) for child in children],
        copy_struct(kind, one.dictionary, owner) if one.dictionary else None,
    )


# law python/end_export: python/arrow_capsules
def end_export(counter):
    """Take back what a released struct has retained, and what the structs inside it have: they end with it."""
    owned = counters.take_back(counter)
    if type(owned) is not Node:
        return
    for child in owned.inner:
        if child.counter not in counters.numbers:
            continue  # it has ended before
        if child.struct.release or counters.is_released(child.counter):
            end_export(child.counter)
        # else the consumer has moved it out of its parent: it lives until its own callback is called


def put_in_capsule(one, name):
    """Return a capsule with an Arrow struct. No consumer need take it: it is released when the capsule is gone."""
    address = ctypes.addressof(one)
    capsule_structs[address] = one
    capsule = new_capsule(address, name, None)
    append_unclaimed(capsule)
    return capsule


# law python/append_unclaimed: python/export_array, python/arrow_capsules
def append_unclaimed(capsule):
    """Let polls look after a capsule until its struct is taken."""
    poll_exports()
    with lock:
        unclaimed.append(capsule)
        counters.numbers_for_javascript[2] = len(unclaimed)


# law python/release_unclaimed: python/arrow_capsules
def release_unclaimed(name, address):
    """Release the struct of a capsule that no consumer took it from, unless one has moved it out meanwhile."""
    if name.startswith(b"dltensor") or name == BUFFER_OF_VORTEX:
        deleter = address + (16 if name == b"dltensor_versioned" else 56)
        return Release(c_void_p.from_address(deleter).value)(address)
    one = capsule_structs.pop(address)
    if type(one) is ArrowDeviceArray:
        one = one.array
    if one.release:
        Release(one.release)(address)


def reference_counts(objects):
    """Return how many references there are to each object, with those that asking takes."""
    return [sys.getrefcount(one) for one in objects]


listed_only = reference_counts([object()])[0]  # the count of an object that only a list holds


# law python/poll_exports: python/offered_exchange_api
def poll_exports():
    """Take back the structs that consumers have released, and those in capsules that are gone unused."""
    while poll_once():
        pass  # what has ended may have held something else of ours


# law python/poll_once: python/export_array, python/offered_exchange_api
def poll_once():
    """Poll once, and return whether anything has ended."""
    has_ended = False
    with lock:
        for capsule, count in zip(list(unclaimed), reference_counts(unclaimed)):
            name = capsule_name(capsule)
            is_taken = name == BUFFER_OF_VORTEX and not capsule_destructor(capsule)
            if is_taken or name.startswith(b"used_"):
                unclaimed.remove(capsule)
            elif count <= listed_only + 1:  # the copy of the list
                has_ended = True
                unclaimed.remove(capsule)
                release_unclaimed(name, capsule_pointer(capsule, name))
        counters.numbers_for_javascript[2] = len(unclaimed)
        for counter in counters.released():
            if counter not in counters.numbers:
                continue  # it has ended with its parent
            end_export(counter)
            has_ended = True
    return has_ended
