"""What an interpreter that is a guest in its process does first.

Nothing finalises it, so nothing would write out what a pipe's buffer holds at the end. And whatever imports ``signal``
first takes Ctrl-C away from the runtime, which this import undoes. A process that Python forks has no JavaScript: there
the runtime's handlers would only swallow the signals by which a pool ends its workers.
"""

# law python/prepare_process: python/guest, python/open
import os
import signal
import sys


def end_by_signals():
    """Let signals end this process, but for those that Python handles."""
    from signal import SIG_DFL, SIGHUP, SIGINT, SIGQUIT, SIGTERM, getsignal, signal

    for number in (SIGHUP, SIGINT, SIGQUIT, SIGTERM):
        if getsignal(number) in (None, SIG_DFL):  # as far as Python knows, which has not set it
            signal(number, SIG_DFL)


if sys.stdout:
    sys.stdout.reconfigure(line_buffering=True)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
os.register_at_fork(after_in_child=end_by_signals)
del end_by_signals, os, signal, sys
