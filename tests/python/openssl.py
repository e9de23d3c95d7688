"""Imports hashlib or ssl, and has the process end by SIGABRT if OpenSSL cleans up when it exits."""

import ctypes
import importlib
import sys

name = sys.argv[-1]
importlib.import_module(name)
openssl = ctypes.CDLL(sys.modules[f"_{name}"].__file__)
openssl.OPENSSL_atexit.argtypes = [ctypes.c_void_p]
assert openssl.OPENSSL_atexit(ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p)) == 1
