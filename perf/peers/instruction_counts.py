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


def _counted(programs, rank, *options, collectives=(), launch_options=()):
    """The texts that callgrind wrote for groups of calls of this rank of two: (collective, text)."""
    program = str(programs / "ibcoll_count_instructions")
    with tempfile.TemporaryDirectory(prefix="ibcoll_instructions.") as folder:
        counted = ["valgrind", "--quiet", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/out",
                   *options, program]
        commands = [[program, str(rank), *collectives], [program, str(rank), *collectives]]
        commands[rank] = [*counted, str(rank), *collectives]
        words = [programs / "ibcoll_run", *launch_options, "-n", "1", *commands[0], ":", "-n", "1", *commands[1]]
        launch.text_of([str(word) for word in words], TIMEOUT, "counting instructions: ", env=beds.Bed().environment())
        for file in pathlib.Path(folder).glob("out.*"):
            text = file.read_text(encoding="ascii", errors="replace")
            if name := re.search(r"Client Request: (\w+)", text):
                yield name[1], text


def counts_of(programs, rank, over_verbs=False):
    """{collective: instructions of a call of this rank of two}, medians over groups of calls; rank 0 is the root.
    `over_verbs`: a rank on each of two nodes, joined by a device in memory, where posting a request is part of it."""
    counts = {}
    where = {"collectives": bounds(True), "launch_options": ["--rdma-in-memory", "--nodes", "2"]} if over_verbs else {}
    for name, text in _counted(programs, rank, **where):
        counts.setdefault(name, []).append(int(re.search(r"^totals: (\d+)", text, re.M)[1]) / GROUP)
    return {name: statistics.median(groups) for name, groups in counts.items()}


def _passed(text):
    file = ""
    for line in text.splitlines():
        if line.startswith("fl="):
            file = line[3:]
        elif line.startswith("fn=") and "runtime/" in file:
            yield file[file.index("runtime/"):], line[3:]


def walk_of(programs, collective):
    """{(file, function)} of runtime/ that a call of one rank of two passes through. A group of calls in which something was due
    that is not due in each call has more; the smallest counts. Where functions were inlined there are fewer."""
    groups = []
    for name, text in _counted(programs, 1, "--compress-strings=no"):
        if name == collective:
            groups.append(set(_passed(text)))
    return min(groups, key=len)


def bounds(over_verbs=False):
    """{collective: (of the root, of the other rank)}"""
    all_bounds = json.loads(BOUNDS.read_text(encoding="utf-8"))
    verbs = all_bounds.pop("over verbs")
    return verbs if over_verbs else all_bounds
