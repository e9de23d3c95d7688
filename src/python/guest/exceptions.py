"""How an exception is described to JavaScript."""

import traceback


# law python/describe_exception: python/values
def describe_exception(error):
    """Return the name of an exception's type, its message as Python prints it, and its traceback."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
    try:
        lines = traceback.format_exception_only(kind, error)
        # The source of a syntax error stands before this line, and the notes of an exception stand after it.
        message = next((line for line in lines if line.startswith((name, kind.__qualname__))), lines[-1])
        return name, message.strip(), "".join(traceback.format_exception(kind, error, error.__traceback__))
    except Exception:  # some exceptions cannot be printed
        try:
            text = str(error)
        except Exception:
            text = "<exception str() failed>"
        return name, name + ": " + text, "".join(traceback.format_tb(error.__traceback__))
