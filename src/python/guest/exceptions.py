"""How an exception is described to JavaScript.

To format a traceback takes a hundred times as long as to raise the exception, and few programs read it. So most
exceptions are described by what their traceback is made of, which is formatted when it is asked for.
"""

import ast
import builtins
import itertools
import linecache
import sys
import traceback
import weakref

from .javascript_functions import JavaScriptError

GUEST = "<causeway>"  # the file of all sources here, as frames name it

MAX_CAUSES = 32  # an exception may be its own cause

GROUP = getattr(builtins, "BaseExceptionGroup", ())  # since Python 3.11

# Exceptions with a text that is more than their str(): a place in a source, a suggestion, other exceptions.
WITH_MORE_TEXT = (SyntaxError, NameError, AttributeError, ImportError, GROUP)

# The names of all others that are built in: to ask a type for its name or its module makes a string each time.
BUILT_IN = {
    kind: name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, BaseException) and not issubclass(kind, WITH_MORE_TEXT)
    if kind.__name__ == name
}


# law python/is_plain_exception: python/guest
def is_plain_exception(error):
    """Whether nothing is printed of an exception but its traceback, its type and its str()."""
    return not (
        (type(error) not in BUILT_IN and isinstance(error, WITH_MORE_TEXT))
        or error.__cause__ is not None
        or (error.__context__ is not None and not error.__suppress_context__)
        or getattr(error, "__notes__", None) is not None
        or "tracebacklimit" in sys.__dict__
    )


def outline_exception(error, most=MAX_CAUSES):
    """Return an exception's type, its message, its traceback, two texts, and what it was raised from.

    The message is the last line as Python prints it. The traceback is None if it is to be formatted from the texts,
    which keep nothing alive. The cause is another such list, the key of a JavaScriptError, or None.
    """
    kind = type(error)
    try:
        if is_plain_exception(error):
            name = shown = BUILT_IN.get(kind)
            if name is None:
                name = kind.__module__ + "." + kind.__qualname__
                shown = kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else name
                if kind.__module__ == "builtins":
                    name = shown
            text = str(error)
            last = shown + ": " + text if text else shown
            return [name, last.strip(), None, last, places_of(error.__traceback__), None]
    except Exception:  # it cannot be printed
        pass
    cause = error.__cause__
    if isinstance(cause, JavaScriptError):
        cause = cause.key
    elif cause is not None:
        cause = outline_exception(cause, most - 1) if most > 0 else None
    return [*describe_exception(error), None, places_of(error.__traceback__), cause]


# law python/brief_exception: python/guest, python/values
def brief_exception(error):
    """Return what outline_exception() does, as one text if that is all there is: type, message and places.

    There is a NUL between each two. One text is read in a third of the time that the list takes.
    """
    outline = outline_exception(error)
    name, message, trace, last, places, _ = outline
    if trace is None and message == last and "\0" not in name and "\0" not in message:
        return name + "\0" + message + "\0" + places
    return outline


# law python/lone_count: python/raised
lone_count = 0  # what sys.getrefcount() returns in the two functions below for an exception that only JavaScript has


def learn_lone_count(error):
    """Learn the count from an exception that only JavaScript has."""
    global lone_count
    lone_count = sys.getrefcount(error)


def brief_and_drop_traces(error):
    """Return what brief_exception() does, and then do what drop_traces_if_lone() does."""
    is_lone = sys.getrefcount(error) <= lone_count
    brief = brief_exception(error)
    if is_lone:
        drop_traces(error)
    return brief


# law python/drop_traces: python/raised
def drop_traces_if_lone(error):
    """Drop the traceback of an exception that only JavaScript has, and of those behind it that nothing else refers to.

    A traceback keeps the variables of its frames alive. What a future, a task or a handler has is raised again with it.
    """
    if sys.getrefcount(error) <= lone_count:
        drop_traces(error)


def drop_traces(error):
    """Drop an exception's traceback, and those behind it that nothing else refers to."""
    drop_traceback(error, None)
    if cause_of(error) is None and context_of(error) is None and not isinstance(error, GROUP):
        return  # as most have nothing behind them
    for one, count in exceptions_behind(error):
        if count <= lone_count_behind:
            drop_traceback(one, None)


def exceptions_behind(error):
    """Return the exceptions behind one, directly or not, and in it, each with a count of what else refers to it."""
    found, uses, left = [], {}, [error]
    current = one = None
    while left:
        current = left.pop()
        for one in (cause_of(current), context_of(current), *members_of(current)):
            if one is None:
                continue
            uses[id(one)] = uses.get(id(one), 0) + 1
            if uses[id(one)] == 1:
                found.append(one)
                left.append(one)
    del current, one
    return [(one, sys.getrefcount(one) - uses[id(one)]) for one in found]


def members_of(error):
    """Return the exceptions in a group, each as often as the group refers to it."""
    if not isinstance(error, GROUP):
        return ()
    given = next((one for one in args_of(error) if isinstance(one, list)), ())  # what it was made from
    return (*exceptions_of(error), *(one for one in given if isinstance(one, BaseException)))


# By the base class: a class of exceptions may have its own attributes of these names, or forbid to set any.
drop_traceback = BaseException.with_traceback
cause_of, context_of = BaseException.__cause__.__get__, BaseException.__context__.__get__
args_of, exceptions_of = BaseException.args.__get__, GROUP.exceptions.__get__ if GROUP else None


def count_behind():
    """Return the count of an exception that only another one refers to."""
    effect = Exception()
    effect.__cause__ = Exception()
    return exceptions_behind(effect)[0][1]


lone_count_behind = count_behind()


# law python/without_guest: python/guest, python/async
def without_guest(trace):
    """Return a traceback without the frames that it begins with and that only make the call."""
    while trace is not None and trace.tb_frame.f_code.co_filename == GUEST:
        trace = trace.tb_next
    return trace


# What stands in tracebacks, by the identity of the code, and by the instruction and line. It goes when the code does.
known_places = {}


# law python/places_of: python/guest
def places_of(trace):
    """Return of each frame its file, line and name, and the end line and columns of what it was doing, or None.

    They are Python's text of a tuple of tuples. Most exceptions are raised at a few places, again and again.
    """
    texts = ""
    trace = without_guest(trace)
    while trace is not None:
        frame = trace.tb_frame
        code = frame.f_code
        file = code.co_filename
        if file not in linecache.cache and not file.startswith("<"):
            linecache.lazycache(file, frame.f_globals)  # for a source that is in no file
        known = known_places.get(id(code)) or remember(code)
        at = trace.tb_lasti, trace.tb_lineno
        text = known[1].get(at)
        if text is None:
            text = known[1][at] = ascii(place_of(code, *at)) + ","
        texts += text
        trace = trace.tb_next
    return texts


# law python/remember: python/guest
def remember(code):
    """Return a new entry of known_places."""
    key = id(code)
    known = known_places[key] = (weakref.ref(code, lambda _: known_places.pop(key, None)), {})
    return known


def place_of(code, instruction, line):
    """Return what places_of() tells of a frame."""
    end, first, last = None, None, None
    if hasattr(code, "co_positions"):  # since Python 3.11
        found = next(itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
        line = line if found[0] is None else found[0]
        _, end, first, last = found
    return code.co_filename, line, code.co_name, end, first, last


# law python/format_traceback: python/guest
def format_traceback(last, places):
    """Return the traceback of an exception as Python prints it."""
    if not places:
        return last + "\n"
    frames = []
    for file, line, name, *positions in ast.literal_eval(places):
        # Python 3.9 and 3.10 know no positions, and would not take them.
        known = {} if None in positions else dict(zip(("end_lineno", "colno", "end_colno"), positions))
        frames.append(traceback.FrameSummary(file, line, name, lookup_line=False, **known))
    for file in {frame.filename for frame in frames}:
        linecache.checkcache(file)
    text = "".join(traceback.StackSummary.from_list(frames).format())
    return "Traceback (most recent call last):\n" + text + last + "\n"


# law python/format_frames: python/generators
def format_frames(places):
    """Return the frames of a traceback as lines of a stack of JavaScript's, the innermost first."""
    frames = [place[:3] for place in ast.literal_eval(places)] if places else []
    lines = [f"    at {name} ({file}:{line})" for file, line, name in frames if file != "<JavaScript>"]
    return "\n".join(reversed(lines))


# law python/describe_exception: python/values
def describe_exception(error):
    """Return the name of an exception's type, its message as Python prints it, and its traceback."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
    try:
        lines = traceback.format_exception_only(kind, error)
        # The source of a syntax error stands before this line, and the notes of an exception stand after it.
        message = next((line for line in lines if line.startswith((name, kind.__qualname__))), lines[-1])
        message = message.strip()
        if isinstance(error, SyntaxError):
            message += place_in_source(error)
        return name, message, "".join(traceback.format_exception(kind, error, without_guest(error.__traceback__)))
    except Exception:  # some exceptions cannot be printed
        try:
            text = str(error)
        except Exception:
            text = "<exception str() failed>"
        return name, name + ": " + text, "".join(traceback.format_tb(without_guest(error.__traceback__)))


def place_in_source(error):
    """Return what the str() of a syntax error says behind what is wrong: its file and line."""
    text, said = str(error), str(error.msg)
    return text[len(said) :] if text.startswith(said) else ""
