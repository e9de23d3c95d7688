"""What the C library's snprintf() writes: writes printf_facts.json beside this file.

    python3 tests/data/printf_facts.py

A list of [format, arguments, text]. An argument is ["i", int], ["q", long long as a string], ["d", the bits of a double
as a string] or ["s", string].
"""

import ctypes
import json
import pathlib
import random
import struct

libc = ctypes.CDLL(None)
chance = random.Random(16)
FLAGS = ["", "-", "0", "+", " ", "#", "-#", "0+", "#0", "+#", "0 ", "-+"]
WIDTHS = ["", "", "1", "7", "24"]
PRECISIONS = ["", "", ".", ".0", ".1", ".3", ".12", ".25"]
DOUBLES = [
    *[
        0.0,
        -0.0,
        0.5,
        1.5,
        2.5,
        -2.5,
        0.125,
        9.5,
        99.5,
        999999.5,
        9.9999995,
        1e22,
        1e23,
        5e-324,
        2.2250738585072014e-308,
    ],
    *[1.7976931348623157e308, 3.141592653589793, -1e-5, 0.0001, 123456789.0, 1e15, float("inf"), float("-inf")],
    *[float("nan"), -float("nan"), 1 / 3, 0.1, 255.9375, 1e6, 999999.0],
]
INTEGERS = [0, 1, -1, 7, 8, 255, -256, 65535, 2147483647, -2147483648]
LONGS = [*INTEGERS, 2**63 - 1, -(2**63), 123456789012345]


def case(spec, kind, value, before=()):
    passed, written = [], []
    for each in before:
        passed.append(ctypes.c_int(each))
        written.append(["i", each])
    if kind == "i":
        passed.append(ctypes.c_int(value))
        written.append(["i", value])
    elif kind == "q":
        passed.append(ctypes.c_longlong(value))
        written.append(["q", str(value)])
    elif kind == "d":
        passed.append(ctypes.c_double(value))
        written.append(["d", str(struct.unpack("<Q", struct.pack("<d", value))[0])])
    else:
        passed.append(ctypes.c_char_p(value.encode()))
        written.append(["s", value])
    room = ctypes.create_string_buffer(4096)
    text = f"<{spec}>"
    libc.snprintf(room, len(room), text.encode(), *passed)
    return [text, written, room.value.decode()]


def spec(length, letter):
    precision = "" if letter in "cp" else chance.choice(PRECISIONS)
    flags = chance.choice(FLAGS if letter not in "csp" else ["", "-"])
    return f"%{flags}{chance.choice(WIDTHS)}{precision}{length}{letter}"


cases = []
for letter in "eEfFgGaA":
    for value in DOUBLES:
        cases.append(case(spec("", letter), "d", value))
        cases.append(case("%" + letter, "d", value))
for letter in "diouxX":
    for value in INTEGERS:
        cases.append(case(spec(chance.choice(["", "h", "hh"]), letter), "i", value))
    for value in LONGS:
        cases.append(case(spec(chance.choice(["l", "ll", "z"]), letter), "q", value))
for value in ["", "text", "a longer text than most"]:
    cases += [case(spec("", "s"), "s", value) for _ in range(4)]
cases += [case(spec("", "c"), "i", value) for value in [65, 122, 32]]
cases += [case("%p", "q", value) for value in [0, 255, 2**52]]
cases += [case("%*d|", "i", 42, [width]) for width in [0, 5, -5]]
cases += [case("%.*f|", "d", 2.71828, [precision]) for precision in [0, 3, -1]]
cases += [case("%-*.*s|", "s", "abcdef", [8, 3]), case("100%% of %d%%", "i", 3)]

# For %#g glibc forgets zeros where rounding makes a number one digit longer: 999999.5 becomes 1.e+06, not 1.00000e+06.
carries = {json.dumps(case("", "d", value)[1]) for value in (999999.5, 9.9999995, 9.5, 99.5)}
cases = [one for one in cases if not ("#" in one[0] and one[0][-2] in "gG" and json.dumps(one[1]) in carries)]

path = pathlib.Path(__file__).with_name("printf_facts.json")
path.write_text("[\n" + ",\n".join("  " + json.dumps(one) for one in cases) + "\n]\n")
