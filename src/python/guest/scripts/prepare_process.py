"""What an interpreter that is a guest in its process does first.

Nothing finalises it, so nothing would write out what a pipe's buffer holds at the end. And whatever imports ``signal``
first takes Ctrl-C away from the runtime, which this import undoes.
"""

# law python/prepare_process: python/guest, python/open
import signal
import sys

if sys.stdout:
    sys.stdout.reconfigure(line_buffering=True)
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
del signal, sys
