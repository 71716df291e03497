# SPDX-License-Identifier: BSD-3-Clause
"""Each fault of the list can still be put into the sources, and results.tsv tells of the faults as they are."""

import collections
import pathlib
import unittest

from faults import FAULTS, SUITES
from results import Results

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARE = 0.9  # of the faults that were run as they are now: noticed
LEAST = 60  # faults that were


class Faults(unittest.TestCase):
    def test_each_fits_at_one_place(self):
        for fault in FAULTS:
            with self.subTest(fault=fault.name):
                text = (ROOT / fault.file).read_text(encoding="utf-8")
                self.assertEqual(text.count(fault.old), 1, f"{fault.file} has to have this once: {fault.old}")
                self.assertNotEqual(fault.put_into(text), text)

    def test_each_has_a_name_of_its_own_and_a_test(self):
        names = collections.Counter(fault.name for fault in FAULTS)
        self.assertEqual([name for name, times in names.items() if times > 1], [])
        for fault in FAULTS:
            self.assertIn(fault.suite, SUITES)
            self.assertTrue(fault.tests)

    def test_no_two_of_a_suite_make_the_same_change(self):
        changes = collections.defaultdict(list)
        for fault in FAULTS:
            changed = fault.put_into((ROOT / fault.file).read_text(encoding="utf-8"))
            changes[fault.suite, fault.file, changed].append(fault.name)
        self.assertEqual([names for names in changes.values() if len(names) > 1], [])

    def test_results_are_of_these_faults(self):
        results = Results()
        names = {fault.name for fault in FAULTS}
        self.assertEqual(sorted(set(results.rows) - names), [], "faults that are gone: remove their lines")
        counted = [fault for fault in FAULTS if not fault.same and results.of(fault) != "not run"]
        others = [f"{fault.name} ({results.of(fault)})" for fault in counted if results.of(fault) != "noticed"]
        self.assertGreaterEqual(len(counted), LEAST, "tests/mutants/run -n -w")
        self.assertLessEqual(len(others), (1 - SHARE) * len(counted), f"tests/mutants/run -w: {', '.join(others)}")
