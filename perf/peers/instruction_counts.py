# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a short call, counted by callgrind: they do not depend on what else the machine does."""

import json
import pathlib
import re
import shutil
import statistics
import tempfile

import beds
import launch

GROUP = 10  # calls that ibcoll_count_instructions counts together
BOUNDS = pathlib.Path(__file__).resolve().parents[1] / "measures/instruction_bounds.json"
TIMEOUT = 120


def available(programs):
    return shutil.which("valgrind") is not None and (programs / "ibcoll_count_instructions").exists()


def counts_of(programs, rank):
    """{collective: instructions of a call of this rank of two}, medians over groups of calls; rank 0 is the root."""
    program = str(programs / "ibcoll_count_instructions")
    with tempfile.TemporaryDirectory(prefix="ibcoll_instructions.") as folder:
        counted = ["valgrind", "--quiet", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out", program]
        commands = [[program, str(rank)], [program, str(rank)]]
        commands[rank] = [*counted, str(rank)]
        words = [programs / "ibcoll_run", "-n", "1", *commands[0], ":", "-n", "1", *commands[1]]
        launch.text_of([str(word) for word in words], TIMEOUT, "counting instructions: ", env=beds.Bed().environment())
        counts = {}
        for file in pathlib.Path(folder).glob("out.*"):
            text = file.read_text(encoding="ascii", errors="replace")
            name, total = re.search(r"Client Request: (\w+)", text), re.search(r"^totals: (\d+)", text, re.M)
            if name and total:
                counts.setdefault(name[1], []).append(int(total[1]) / GROUP)
        return {name: statistics.median(groups) for name, groups in counts.items()}


def bounds():
    """{collective: (of the root, of the other rank)}"""
    return json.loads(BOUNDS.read_text(encoding="utf-8"))
