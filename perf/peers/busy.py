# SPDX-License-Identifier: BSD-3-Clause
"""Processes that compute all the time, as another user of the machine would."""

import contextlib
import subprocess
import sys

# Ends with the process that started it, also where that is killed: its standard input is then at its end.
SPIN = """import threading, sys, os
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
while True: sum(range(1000))
"""


@contextlib.contextmanager
def processes(count):
    """`count` processes, while the context is open."""
    running = [subprocess.Popen([sys.executable, "-c", SPIN], stdin=subprocess.PIPE) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()
            process.stdin.close()
