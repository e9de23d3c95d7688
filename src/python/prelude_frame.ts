/**
 * The frame that calls from JavaScript stand in. What looks at its caller's frame (`globals()`, `eval()`, `dir()`,
 * `sys._getframe(1)`) finds none under a call from C: it fails, or crashes with the process.
 *
 * @module
 */

/** Python source, a part of the prelude. */
export const framePrelude = `
def framed(call):
    "A function whose frame is one of the module __main__, as those of its statements are: its locals are its globals."
    import __main__, types
    code = call.__code__
    optimized_or_newlocals = 3
    code = code.replace(co_flags=code.co_flags & ~optimized_or_newlocals, co_filename="<JavaScript>",
        co_name="<module>", co_firstlineno=1)
    return types.FunctionType(code, __main__.__dict__, "<module>", None, call.__closure__)

def frames():
    given = [] # the callable, its arguments, and those by name if there are any, last first: a frame has no names of its own
    take = given.pop
    return given, framed(lambda: take()(*take())), framed(lambda: take()(*take(), **take()))

given, call_framed, call_framed_by_name = frames()
builtin_function, bound_method, module_type = type(len), type(counters.keep), type(sys)
`;
