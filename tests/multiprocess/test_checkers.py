# SPDX-License-Identifier: BSD-3-Clause
"""Programs under a checker of memory, which pays for each byte that is mapped. Part of test_api.py."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import ranks

SECONDS = 5  # of processor time, for all ranks; the machine may have other things to do
MEGABYTES = 200  # of each


def peak_megabytes(pid):
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) // 1024
    return 0


@unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
@unittest.skipIf("asan" in str(ranks.BIN), "sanitizers have their own shadow memory")
class Checkers(unittest.TestCase):
    def test_valgrind(self):
        command = ranks.job(4, 1, "valgrind", "-q", ranks.tool("ibcoll_api_ranks"), "little_or_nothing")
        before = os.times()
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, env=ranks.environment())
        peaks = {}
        while job.poll() is None:
            for pid in ranks.descendants(job.pid):
                peaks[pid] = max(peaks.get(pid, 0), peak_megabytes(pid))
            time.sleep(0.02)
        _, errors = job.communicate(timeout=60)
        after = os.times()
        self.assertEqual(job.returncode, 0, errors)
        self.assertGreaterEqual(len([peak for peak in peaks.values() if peak > 20]), 4, peaks)
        self.assertLess(max(peaks.values()), MEGABYTES)
        cost = after.children_user + after.children_system - before.children_user - before.children_system
        self.assertLess(cost, 4 * SECONDS, "seconds of processor time")
        self.assertNotIn("Invalid", errors)
        self.assertNotIn("uninitialised", errors)
