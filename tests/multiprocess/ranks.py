# SPDX-License-Identifier: BSD-3-Clause
"""Starts ranks for the tests of this folder."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120  # no job may take longer
SWEEP = os.environ.get("IBCOLL_TEST_SWEEP") == "all"  # every combination, and not only some that cover all
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"


def tool(name):
    return str(BIN / name)


def job(ranks, nodes, *words, seconds=SECONDS):
    """The words of a command: `ibcoll_run` with the ranks on emulated nodes."""
    net = ["--net", "ucx"] if nodes > 1 else []
    return [str(word) for word in [tool("ibcoll_run"), "-n", ranks, "--nodes", nodes, "--timeout", seconds, *net, *words]]


def environment(more=None):
    """Between nodes TCP; a collective that hangs is given up before the job is."""
    return {**os.environ, "UCX_TLS": "tcp", "IBCOLL_TIMEOUT": "40", **(more or {})}


def run(command, env=None, seconds=SECONDS, folder=None):
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=False,
                          stdin=subprocess.DEVNULL, env=environment(env), cwd=folder)


def story(done):
    return f"{' '.join(done.args)}\nexit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"


def descendants(pid):
    """Process ids of what `pid` started, and of what these did."""
    found, queue = [], [pid]
    while queue:
        for task in pathlib.Path(f"/proc/{queue.pop()}/task").glob("*/children"):
            try:
                children = [int(child) for child in task.read_text(encoding="ascii").split()]
            except OSError:  # gone meanwhile
                continue
            found += children
            queue += children
    return found
