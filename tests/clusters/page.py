# SPDX-License-Identifier: BSD-3-Clause
"""The lines of docs/clusters.md that a reader types, and the program `sum` that they start."""

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()


def lines(heading):
    """The indented lines of a section, without comments."""
    text = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", (ROOT / "docs/clusters.md").read_text(), re.M | re.S)[1]
    return [re.sub(r"  +#.*", "", line[4:]) for line in text.splitlines() if line.startswith("    ")]


def make_sum(folder):
    """The program of docs/first_program.md as sum in a folder."""
    source = re.search(r"```c\n(#include <ibcoll.h>.*?)```", (ROOT / "docs/first_program.md").read_text(), re.S)[1]
    (folder / "sum.c").write_text(source)
    subprocess.run(["gcc", "sum.c", "-o", "sum", f"-I{ROOT}/runtime/include", f"-L{BUILD}/lib", "-libcoll",
                    f"-Wl,-rpath,{BUILD}/lib"], cwd=folder, check=True, timeout=60)


def sums(ranks):
    """What that many ranks print, sorted."""
    return sorted(f"rank {rank} of {ranks}: sum {ranks * (ranks + 1) // 2}" for rank in range(ranks))
