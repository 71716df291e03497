# SPDX-License-Identifier: BSD-3-Clause
"""A short call takes no more instructions than perf/measures/instruction_bounds.json says. The counts do not depend on the
load of the machine, but a little on its processor, for which the C library has its own memcpy. A change that lowers them
lowers the bounds, too: some 10 % above what `perf/measure instructions` prints."""

import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"
sys.path.insert(0, str(ROOT / "perf/peers"))
import instruction_counts  # pylint: disable=wrong-import-position


class Instructions(unittest.TestCase):
    def check(self, rank, where):
        if missing := instruction_counts.unavailable(BIN, where):
            self.skipTest(f"needs {missing}")
        bounds = instruction_counts.bounds(where)
        counts = instruction_counts.counts_of(BIN, rank, where)
        self.assertEqual(set(counts), set(bounds))
        for collective, count in counts.items():
            with self.subTest(collective=collective):
                self.assertGreater(count, 20, "nothing was counted")
                self.assertLessEqual(count, bounds[collective][rank])

    def test_of_the_root(self):
        self.check(0, "in a node")

    def test_of_the_other_rank(self):
        self.check(1, "in a node")

    def test_over_verbs(self):
        for rank in (0, 1):
            self.check(rank, "over verbs")

    def test_over_ucx(self):
        for rank in (0, 1):
            self.check(rank, "over ucx")

    def test_one_pass_over_ucx_takes_the_message(self):
        if missing := instruction_counts.unavailable(BIN, "over ucx"):
            self.skipTest(f"needs {missing}")
        passes = instruction_counts.passes_of_ucx(BIN, 1)
        self.assertEqual(passes["barrier"], 1)
        self.assertEqual(passes["bcast"], 1)

    def test_through_the_component_of_open_mpi(self):
        self.check(1, "through openmpi")


if __name__ == "__main__":
    unittest.main()
