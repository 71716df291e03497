# SPDX-License-Identifier: BSD-3-Clause
"""perf/regret: what counts as a bad choice, and the report on a program that prints known times."""

import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "perf/peers"), str(pathlib.Path(__file__).parent)]
import falsified  # pylint: disable=wrong-import-position
import launch  # pylint: disable=wrong-import-position
import regret_verdict  # pylint: disable=wrong-import-position
from script_tests import ScriptTests, run_built  # pylint: disable=wrong-import-position

# A choice that is bad, and one that is the best algorithm.
PROGRAM = """#!/bin/bash
[ "$IBCOLL_TUNING" = off ] || exit 9
echo "collective,bytes,chosen,algorithm,repetition,us"
for repetition in {0..19}; do
  for timed in ring,60 shm,40; do
    echo "allgather,524288,ring,${timed%,*},$repetition,${timed#*,}"
  done
  for timed in shm,5 leaders,9; do
    echo "barrier,0,shm,${timed%,*},$repetition,${timed#*,}"
  done
done
"""


class Verdicts(unittest.TestCase):
    @staticmethod
    def cell(spread=0.05, repetitions=20, **medians):
        chance = random.Random(1)
        return {name: [us * chance.uniform(1, 1 + spread) for _ in range(repetitions)] for name, us in medians.items()}

    def test_a_choice_that_takes_longer_is_bad(self):
        verdict = regret_verdict.regret(self.cell(ring=1.5, shm=1), "ring")
        self.assertTrue(verdict.bad)
        self.assertAlmostEqual(verdict.ratio, 1.5, delta=0.1)
        self.assertTrue(verdict.low <= verdict.ratio <= verdict.high)

    def test_the_best_one_has_no_regret(self):
        self.assertEqual(regret_verdict.regret(self.cell(ring=1.5, shm=1), "shm").ratio, 1)

    def test_what_scatters_over_the_limit_is_not_bad(self):
        self.assertFalse(regret_verdict.regret(self.cell(spread=3, repetitions=8, ring=1.15, shm=1), "ring").bad)

    def test_luck_of_the_best_one_in_odd_repetitions_does_not_count(self):
        cell = {"ring": [1.0] * 20, "shm": [1.0, 0.5] * 10}
        self.assertEqual(regret_verdict.best(cell), "shm")
        self.assertEqual(regret_verdict.regret(cell, "ring").ratio, 1)

    def test_interval(self):
        self.assertEqual(regret_verdict.interval(range(10)), (1, 8))
        self.assertEqual(regret_verdict.interval(range(20)), (5, 14))
        self.assertEqual(regret_verdict.interval([3, 1]), (1, 3))


class FalsifiedConstants(unittest.TestCase):
    table = (ROOT / falsified.TABLE).read_text(encoding="utf-8")

    def test_each_has_its_own_factor(self):
        text, names = falsified.falsified(self.table, 1)
        factors = [float(factor) for factor in re.findall(r"\) \* ([0-9.]+)", text)]
        self.assertIn("kTcpLink", names)
        self.assertIn("kUnknownBlock", names)
        self.assertGreater(len(set(factors)), len(names))
        self.assertTrue(all(0.25 <= factor <= 4 for factor in factors))
        self.assertEqual(text, falsified.falsified(self.table, 1)[0])
        self.assertNotEqual(text, falsified.falsified(self.table, 2)[0])

    def test_the_compiler_finds_the_table_and_takes_it(self):
        with tempfile.TemporaryDirectory(prefix="falsified.") as folder:
            table = pathlib.Path(folder) / falsified.TABLE
            table.parent.mkdir(parents=True)
            table.write_text(falsified.falsified(self.table, 3)[0], encoding="utf-8")
            source = f'#include "{falsified.TABLE}"\nstatic_assert(ibcoll::cost::kPathOfCall <= 1);\n'
            done = subprocess.run(["g++", "-std=c++20", "-I", ROOT, "-iquote", folder, "-fsyntax-only", "-MMD", "-MF",
                                   "/dev/stdout", "-x", "c++", "-"], input=source, cwd="/", capture_output=True, text=True,
                                  check=False, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(str(table) in done.stdout, "the compiler took another table")

    def test_a_constant_in_another_form(self):
        with self.assertRaisesRegex(launch.CompareError, "another form"):
            falsified.falsified(self.table + "inline constexpr float kOther = 1;\n", 1)


class Script(ScriptTests, unittest.TestCase):
    words = ["perf/regret", "--ranks", "2"]
    name = "ibcoll_regret"
    printed = PROGRAM

    def test_bad_choices_are_listed(self):
        self.program(PROGRAM)
        done = self.run_script("--runs", "2", "--csv", str(self.build / "table.csv"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertIn("regret 1.225 as geometric mean, 1.50 at most; bad 2 of 4", done.stdout)
        self.assertIn("run 1: allgather of 512K: ring takes 1.50 (1.50 to 1.50) times as long as shm", done.stdout)
        rows = (self.build / "table.csv").read_text().splitlines()
        self.assertEqual(rows[1], "2,1,0,allgather,524288,shm,ring,1.500,1.500,1.500,,")
        self.assertEqual(len(rows), 5)

    def test_layouts_that_do_not_exist(self):
        for words in (["--nodes", "4"], ["--nodes", "2", "--cluster", "2"], ["--runs", "0"], ["--falsified", "1,x"],
                      ["--net", "verbs"], ["--net", "verbs", "--cluster", "4"],
                      ["--net", "verbs", "--nodes", "2", "--falsified", "1"], ["--arrival", "random:32"],
                      ["--arrival", "none", "--message-cost", "1:1"], ["--arrival", "random:1", "--message-cost", "1"]):
            with self.subTest(words=words):
                self.assertEqual(self.run_script(*words).returncode, 2)


class Program(unittest.TestCase):
    def test_every_cell_has_its_choice(self):
        done = run_built("ibcoll_regret", "--repetitions", "4")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
        cells = {tuple(row[:3]) for row in rows}
        self.assertEqual(len(cells), 13)
        for collective, size, chosen in cells:
            self.assertIn(chosen, {row[3] for row in rows if row[:2] == [collective, size]})
        self.assertTrue(all(float(row[5]) > 0 for row in rows))

    def test_arrivals(self):
        begin = time.monotonic()
        done = run_built("ibcoll_regret", "--repetitions", "4", "--arrival", "late:34:1", "--message-cost", "5000:0",
                         "--collectives", "barrier")
        self.assertEqual(done.returncode, 0, done.stderr)
        times = [float(line.split(",")[5]) for line in done.stdout.splitlines()[1:]]
        self.assertGreaterEqual(len(times), 4)
        # In every call a rank is 5 ms late, which is no part of what is timed.
        self.assertGreater(time.monotonic() - begin, 0.005 * 3 * len(times))
        self.assertTrue(0 < statistics.median(times) < 5000, times)
        for words, text in ((["--arrival", "random:2"], "--message-cost"),
                            (["--arrival", "random:x"], "random:MIF"),
                            (["--arrival", "file:none"], "try random:32"),
                            (["--arrival", "random:2", "--message-cost", "1"], "ALPHA:BETA")):
            with self.subTest(words=words):
                done = run_built("ibcoll_regret", *words)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(text, done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main()
