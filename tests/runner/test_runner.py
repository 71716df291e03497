# SPDX-License-Identifier: BSD-3-Clause
"""tests/cases.py, tests/suite and tests/run themselves, with cases and suites that are made here."""

import csv
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
CASES = """import unittest
class Some(unittest.TestCase):
  def test_a(self): pass
  def test_b(self): self.fail("b is wrong")
  def test_c(self): self.skipTest("not here")
class Others(unittest.TestCase):
  def test_d(self): pass
"""


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_runner.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "test_made.py"
        self.file.write_text(CASES)

    def run_words(self, *words, **environment):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False,
                              env={**os.environ, **{name: str(value) for name, value in environment.items()}})

    def cases(self, *words):
        """The exit code, and what ran as {case: result}."""
        done = self.run_words(sys.executable, TESTS / "cases.py", *words)
        return done.returncode, dict(reversed(pair) for pair in re.findall(
            r"^\[ +(OK|FAILED|SKIPPED) +\] test_made\.(\S+) \(\d+ ms, \d+ ms of processor time\)$", done.stderr, re.M))

    def test_each_case_has_its_result(self):
        everything = {"Some.test_a": "OK", "Some.test_b": "FAILED", "Some.test_c": "SKIPPED", "Others.test_d": "OK"}
        self.assertEqual(self.cases(self.file), (1, everything))
        self.assertEqual(self.cases(self.folder), (1, everything))

    def test_cases_by_name(self):
        self.assertEqual(self.cases(self.file, "Others", "Some.test_a"),
                         (0, {"Others.test_d": "OK", "Some.test_a": "OK"}))
        self.assertEqual(self.cases(self.file, "test_made.Others"), (0, {"Others.test_d": "OK"}))
        self.assertEqual(self.cases("-f", self.file, "Some"), (1, {"Some.test_a": "OK", "Some.test_b": "FAILED"}))

    def test_parts_have_each_case_once(self):
        parts = [self.cases(self.file, "--part", f"{part}/3")[1] for part in (1, 2, 3)]
        self.assertEqual(sorted(case for part in parts for case in part),
                         ["Others.test_d", "Some.test_a", "Some.test_b", "Some.test_c"])

    def test_mistakes(self):
        for text in ("x", "1", "/", "0/2", "3/2", "1/2/3"):
            done = self.run_words(sys.executable, TESTS / "cases.py", self.file, "--part", text)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"error: argument --part: '{text}' is not K/N", done.stderr)
        for words, status, said in (((self.file, "Nobody"), 1, "no case is called Nobody"),
                                    ((self.folder / "test_none.py",), 2, "there is no"),
                                    (("Some",), 2, "no test file is given")):
            done = self.run_words(sys.executable, TESTS / "cases.py", *words)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)

    def test_a_suite_writes_its_line_and_the_times_of_its_cases(self):
        command = (f"{sys.executable} {TESTS}/cases.py {self.file}; "
                   "echo '[       OK ] Of/Some.Test/4, where GetParam() = (1 2) (7 ms)'; exit 1")
        done = self.run_words(TESTS / "suite", "made", "30", command, build=self.folder, builds=self.folder,
                              verbose="no")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^made +FAILED +\d+ s +\d+ s +0 s +0 s  1 of 3 cases, 1 skipped$")
        self.assertIn("b is wrong", done.stdout)
        with open(self.folder / "tests/times.csv", encoding="utf-8") as file:
            rows = {row["case"]: row for row in csv.DictReader(file)}
        self.assertEqual({case: row["result"] for case, row in rows.items()}, {
            "test_made.Some.test_a": "OK", "test_made.Some.test_b": "FAILED", "test_made.Some.test_c": "SKIPPED",
            "test_made.Others.test_d": "OK", "Of/Some.Test/4": "OK"})
        self.assertEqual((rows["Of/Some.Test/4"]["suite"], rows["Of/Some.Test/4"]["ms"]), ("made", "7"))

    def test_sweeps_are_named_where_they_are_asked_for(self):
        usual, everything = (self.run_words(TESTS / "run", "-l", *words).stdout.split() for words in ((), ("--all",)))
        self.assertIn("unit", usual)
        self.assertEqual([name for name in everything if name in usual], usual)
        self.assertIn("sweep_parts", set(everything) - set(usual))
        for words in (("-r", "0"), ("-r",), ("--every",), ("nosuch",), ("-B",)):
            self.assertEqual(self.run_words(TESTS / "run", *words).returncode, 2, words)
