# SPDX-License-Identifier: BSD-3-Clause
"""The binary interface of libibcoll.so: its description by abidw, and what abidiff says of two."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "tests/abi/libibcoll.abi"
REMOVED = 8  # of abidiff's exit status: what programs call is gone


def describe(library, file, headers=ROOT / "runtime/include"):
    """Writes the description of a library that has debug information. Only types of the public headers count."""
    words = ("--drop-private-types --exported-interfaces-only --type-id-style hash --no-show-locs --no-comp-dir-path "
             "--no-corpus-path --no-architecture --no-elf-needed").split()
    subprocess.run(["abidw", *words, "--headers-dir", headers, "--out-file", file, library], check=True, timeout=50)


def differences(kept, now):
    """The exit status of abidiff (0: none), and its text."""
    done = subprocess.run(["abidiff", "--no-show-locs", kept, now], capture_output=True, text=True, timeout=50, check=False)
    return done.returncode, done.stdout + done.stderr


def soname(file):
    return Path(file).read_text().split("soname='", 1)[1].split("'", 1)[0]
