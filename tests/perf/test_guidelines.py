# SPDX-License-Identifier: BSD-3-Clause
"""perf/guidelines: what counts as a violation, and the table of a program that prints known times."""

import pathlib
import random
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "perf/peers"), str(pathlib.Path(__file__).parent)]
import guideline_verdict  # pylint: disable=wrong-import-position
from script_tests import ScriptTests, run_built  # pylint: disable=wrong-import-position

# Breaks the first of three guidelines.
PROGRAM = """#!/bin/bash
echo "guideline,bytes,repetition,call_us,mock_up_us"
for repetition in {0..19}; do
  echo "gather<=gatherv,8,$repetition,$((200 + repetition)),$((100 + repetition))"
  echo "scan<=exscan+sum,8,$repetition,$((100 + repetition)),$((200 + repetition))"
  echo "scan<=exscan+sum,64,$repetition,10,10"
done
"""


class Verdicts(unittest.TestCase):
    @staticmethod
    def runs(call_us, mock_up_us, spread=0.1, runs=3, repetitions=20):
        chance = random.Random(1)
        return [[(call_us * chance.uniform(1, 1 + spread), mock_up_us * chance.uniform(1, 1 + spread))
                 for _ in range(repetitions)] for _ in range(runs)]

    def test_a_call_that_is_slower_violates(self):
        verdict = guideline_verdict.judge("a<=b", 8, self.runs(1.3, 1))
        self.assertTrue(verdict.real)
        self.assertAlmostEqual(verdict.ratio, 1.3, delta=0.05)

    def test_a_call_that_is_faster_does_not(self):
        self.assertFalse(guideline_verdict.judge("a<=b", 8, self.runs(1, 1.3)).real)

    def test_less_than_the_tolerance_does_not(self):
        self.assertFalse(guideline_verdict.judge("a<=b", 8, self.runs(1.03, 1, spread=0.001)).real)

    def test_chance_does_not(self):
        """Medians that differ, of times that spread over more."""
        self.assertFalse(guideline_verdict.judge("a<=b", 8, self.runs(1.06, 1, spread=3, repetitions=5)).real)

    def test_rank_sum(self):
        self.assertAlmostEqual(guideline_verdict.rank_sum([1, 1, 1], [1, 1]), 1)
        self.assertAlmostEqual(guideline_verdict.rank_sum(range(20), range(20)), 0.5, delta=0.01)
        self.assertLess(guideline_verdict.rank_sum(range(10, 30), range(20)), 1e-3)
        self.assertGreater(guideline_verdict.rank_sum(range(20), range(10, 30)), 0.999)

    def test_one_run_alone_does_not(self):
        slow, others = self.runs(9, 1, runs=2), self.runs(1, 1, runs=1)
        self.assertFalse(guideline_verdict.judge("a<=b", 8, slow + others).real)


class Script(ScriptTests, unittest.TestCase):
    words = ["perf/guidelines", "--libraries", "ibcoll", "--ranks", "2"]
    name = "ibcoll_guidelines"
    printed = PROGRAM

    def test_violations_are_listed(self):
        self.program(PROGRAM)
        done = self.run_script("--csv", str(self.build / "table.csv"))
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        self.assertIn("ibcoll: 1 violation of 3 checks", done.stdout)
        self.assertRegex(done.stdout, r"gather<=gatherv, 8 bytes: 209.50 us, mock-up 109.50 us")
        rows = (self.build / "table.csv").read_text().splitlines()
        self.assertEqual(rows[0], "ranks,nodes,library,guideline,bytes,call_us,mock_up_us,chance,violated")
        self.assertEqual([row.split(",")[-1] for row in rows[1:]], ["yes", "no", "no"])

    def test_no_violation(self):
        self.program(PROGRAM.replace("$((200 + repetition)),$((100", "$((100 + repetition)),$((200"))
        done = self.run_script()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ibcoll: no violations of 3 checks", done.stdout)

    def test_sizes_that_hold_no_doubles(self):
        done = self.run_script("--bytes", "12:64")
        self.assertEqual(done.returncode, 2)
        self.assertIn("multiples of 8 are wanted", done.stderr)


class Program(unittest.TestCase):
    def test_every_guideline_is_timed(self):
        done = run_built("ibcoll_guidelines", "--repetitions", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
        self.assertEqual(len({row[0] for row in rows}), 11 + 2 * 10)
        self.assertTrue(all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows))


if __name__ == "__main__":
    unittest.main()
