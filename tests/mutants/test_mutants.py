#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each fault of the list can still be put into the sources."""

import collections
import pathlib
import unittest

from faults import FAULTS, TARGETS

ROOT = pathlib.Path(__file__).resolve().parents[2]


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
            self.assertIn(fault.target, TARGETS)
            self.assertTrue(fault.tests)


if __name__ == "__main__":
    unittest.main()
