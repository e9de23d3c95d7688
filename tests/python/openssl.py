"""Imports hashlib or ssl, and has the process end by SIGABRT if OpenSSL cleans up when it exits."""

import ctypes
import importlib
import sys


class Seen:
    """Asks another finder, as what measures imports does."""

    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, *what):
        """Return what the other one finds."""
        return self.finder.find_spec(*what)


name = sys.argv[-1]
finders = sys.meta_path
finders[:] = [Seen(finder) for finder in finders]
importlib.import_module(name)
assert sys.meta_path is finders, "programs hold this list, and add to it"
openssl = ctypes.CDLL(sys.modules[f"_{name}"].__file__)
openssl.OPENSSL_atexit.argtypes = [ctypes.c_void_p]
assert openssl.OPENSSL_atexit(ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p)) == 1
