"""What an interpreter that is a guest in its process does first.

Nothing finalises it, so nothing would write out what a pipe's buffer holds at the end. And whatever imports ``signal``
first takes Ctrl-C away from the runtime, which this import undoes. A process that Python forks has no JavaScript: there
the runtime's handlers would only swallow the signals by which a pool ends its workers. OpenSSL is kept from cleaning up
while the runtime's threads end.
"""

import os
import signal
import sys


# law python/BeforeOpenSSL: python/openssl
class BeforeOpenSSL:
    """Finds the modules that load OpenSSL, and tells it first to leave its memory as it is when the process exits.

    Unlike Python, Deno exits while threads on which Python ran are ending. What OpenSSL does at the end of a thread
    then meets its cleanup: of some 210 runs of ``deno test`` with asyncio, three crashed after all tests had passed.
    """

    def __init__(self):
        self.names = ["_hashlib", "_ssl"]

    def find_spec(self, name, path=None, target=None):
        """Return where the module is, for those modules, the first time."""
        if name not in self.names:
            return None
        import contextlib
        import ctypes
        from importlib.util import find_spec

        self.names.remove(name)  # to ask the others; it stays in sys.meta_path, which others may read or hold meanwhile
        spec = find_spec(name)
        with contextlib.suppress(AttributeError, OSError):  # no such module, one that is built in, or no OpenSSL
            library = ctypes.CDLL(spec.origin)
            library.OPENSSL_init_crypto(ctypes.c_uint64(0x80000), None)  # OPENSSL_INIT_NO_ATEXIT
        return spec


# law python/prepare_process: python/guest, python/open
def end_by_signals():
    """Let signals end this process, but for those that Python handles."""
    from signal import SIG_DFL, SIGHUP, SIGINT, SIGQUIT, SIGTERM, getsignal, signal

    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM):
        if getsignal(number) in (None, SIG_DFL):  # as far as Python knows, which has not set it
            signal(number, SIG_DFL)


sys.meta_path.insert(0, BeforeOpenSSL())
if sys.stdout:
    sys.stdout.reconfigure(line_buffering=True)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
os.register_at_fork(after_in_child=end_by_signals)
del BeforeOpenSSL, end_by_signals, os, signal, sys
