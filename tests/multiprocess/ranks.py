# SPDX-License-Identifier: BSD-3-Clause
"""Starts ranks for the tests of this folder, and the end of their main programs."""

import argparse
import os
import pathlib
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 120  # no job may take longer
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"


def tool(name):
    return str(BIN / name)


def job(ranks, nodes, *words, seconds=SECONDS):
    """The words of a command: `ibcoll_run` with the ranks on so many emulated nodes."""
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


def cpu_of_children():
    now = os.times()
    return now.children_user + now.children_system


class Timed(unittest.TextTestResult):
    """Says at the end of each test what it took: seconds of the clock, and of all cores for the processes it started."""

    def startTest(self, test):
        self.begun = (time.monotonic(), cpu_of_children())
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        clock, cpu = (now - then for now, then in zip((time.monotonic(), cpu_of_children()), self.begun))
        print(f"\n{clock:8.2f} s {cpu:8.2f} s of CPU  {test.id()}", file=sys.stderr)


class Part(unittest.TestLoader):
    """Of the tests of each class every `parts`-th, from `first` on."""

    def __init__(self, first, parts):
        super().__init__()
        self.first, self.parts = first, parts

    def getTestCaseNames(self, test_case_class):
        return super().getTestCaseNames(test_case_class)[self.first::self.parts]


def main(needed):
    """unittest.main with options before its own: --bin BUILD/bin, --part 1/2, --durations."""
    global BIN  # pylint: disable=global-statement
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--bin", default=BIN, help="folder of the programs")
    parser.add_argument("--part", metavar="K/N", help="of the tests every N-th, from the K-th on")
    parser.add_argument("--durations", action="store_true", help="say what each test takes")
    options, rest = parser.parse_known_args()
    BIN = pathlib.Path(options.bin).resolve()
    for name in needed:
        if not (BIN / name).exists():
            sys.exit(f"{BIN / name} is not built")
    loader = unittest.defaultTestLoader
    if options.part:
        number, parts = map(int, options.part.split("/"))
        loader = Part(number - 1, parts)
    runner = unittest.TextTestRunner(resultclass=Timed) if options.durations else None
    unittest.main(module="__main__", argv=[sys.argv[0], *rest], testRunner=runner, testLoader=loader)
