"""The frame that calls from JavaScript stand in.

A function that inspects its caller's frame (``globals()``, ``eval()``, ``dir()``, ``sys._getframe(1)``) finds none if C
calls it: it fails, or crashes with the process.
"""

import builtins
import sys
import types


# law python/framed: python/object, python/frame, python/leaks
def framed(call):
    """Return a function whose frame is one of the module __main__, like its statements': its locals are its globals."""
    import __main__

    code = call.__code__
    optimized_or_newlocals = 3  # CO_OPTIMIZED | CO_NEWLOCALS
    code = code.replace(
        co_flags=code.co_flags & ~optimized_or_newlocals,
        co_filename="<JavaScript>",
        co_name="<module>",
        co_firstlineno=1,
    )
    return types.FunctionType(code, __main__.__dict__, "<module>", None, call.__closure__)


def make_frames():
    """Return a list for the next call, and three functions that make the call.

    One is for arguments by position, one for a single argument, and one for arguments by name as well. The list takes
    the arguments by name if there are any, the arguments by position or the single one, and what is called, in this
    order: a frame of __main__ has no variables of its own.
    """
    next_call = []
    take = next_call.pop
    return (
        next_call,
        framed(lambda: take()(*take())),
        framed(lambda: take()(take())),
        framed(lambda: take()(*take(), **take())),
    )


next_call, call_framed, call_framed_with_one, call_framed_by_name = make_frames()
# JavaScript compares types with these.
builtin_function, bound_method, module_type = types.BuiltinFunctionType, types.MethodType, types.ModuleType

# Functions written in C do not inspect frames, but for those of these two modules.
modules_with_frames = builtins, sys
