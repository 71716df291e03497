# SPDX-License-Identifier: BSD-3-Clause
"""One line on a terminal that says how far a long run is."""

import os
import sys


def show(text=""):
    """Overwrites the last text. Only on a terminal that can: elsewhere nothing is written."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "") in ("", "dumb"):
        return
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    print(f"\r\033[K{text[:columns - 1]}", end="", file=sys.stderr, flush=True)
