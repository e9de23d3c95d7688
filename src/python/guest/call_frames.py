"""The frame that calls from JavaScript stand in.

A function that inspects its caller's frame (``globals()``, ``eval()``, ``dir()``, ``sys._getframe(1)``) finds none if C
calls it: it fails, or crashes with the process.
"""

import builtins
import operator
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
    """Return three cells for the next call, and three functions that make the call.

    One is for arguments by position, one for a single argument, and one for arguments by name as well. The cells are
    for what is called, for the arguments by position or the single one, and for those by name: a frame of __main__ has
    no variables of its own. They are empty but while a call is made.
    """
    function = arguments = keywords = None
    frames = (
        framed(lambda: function(*arguments)),
        framed(lambda: function(arguments)),
        framed(lambda: function(*arguments, **keywords)),
    )
    cells = dict(zip(frames[2].__code__.co_freevars, frames[2].__closure__))
    for cell in cells.values():
        del cell.cell_contents
    return (cells["function"], cells["arguments"], cells["keywords"], *frames)


(
    function_cell,
    arguments_cell,
    keywords_cell,
    call_framed,
    call_framed_with_one,
    call_framed_by_name,
) = make_frames()


def call_in_frame(function, arguments, keywords):
    """Call a function from such a frame, on any thread."""
    import __main__

    code = call_framed_by_name.__code__
    values = {"function": function, "arguments": arguments, "keywords": keywords}
    cells = [types.CellType(values.pop(name)) for name in code.co_freevars]
    function = arguments = keywords = None
    try:
        return types.FunctionType(code, __main__.__dict__, "<module>", None, tuple(cells))()
    finally:
        for cell in cells:  # a traceback keeps them
            cell.cell_contents = None


# JavaScript compares types with these.
builtin_function, bound_method, module_type = types.BuiltinFunctionType, types.MethodType, types.ModuleType
generator_type = types.GeneratorType

# Called from a frame: pandas looks at who sets an item.
set_item, delete_item = operator.setitem, operator.delitem

# Functions written in C do not inspect frames, but for those of these two modules.
modules_with_frames = builtins, sys
