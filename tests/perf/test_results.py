# SPDX-License-Identifier: BSD-3-Clause
"""What perf/results/reductions makes of figures: its ratios, verdicts and tables. Nothing is measured."""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "perf/results"))
sys.path.insert(0, str(ROOT / "perf/peers"))
import arrival_figures  # pylint: disable=wrong-import-position
import arrival_tables  # pylint: disable=wrong-import-position
import reduction_measures  # pylint: disable=wrong-import-position


class Arrival(unittest.TestCase):
    FORMS = ["Open MPI", "direct", "pap_direct", "chosen"]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_results.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.page = self.folder / "arrival.md"
        shutil.copy(ROOT / "docs/results/arrival.md", self.page)
        times = {"Open MPI": (60, 900), "direct": (80, 600), "pap_direct": (40, 300), "chosen": (20, 450)}
        self.cells = [{"ranks": 16, "nodes": 4, "pattern": "random:32", "collective": "alltoall", "bytes": size, "form": form,
                       "algorithm": "way", "t_last": last, "t_avg": mean, "bound": 10, "average_factor": 8, "worst_factor": 30}
                      for size in (2, 8192) for form, (last, mean) in times.items()]

    def test_ratios_stand_beside_those_of_the_paper(self):
        figures = {("alltoall", 16, "random:32"): "one.svg"}
        for _ in range(2):  # what was written before is replaced
            arrival_tables.write(self.page, "cluster", self.cells, self.FORMS, figures, "today")
        text = self.page.read_text(encoding="utf-8")
        self.assertEqual(text.count("Measured today."), 1)
        self.assertNotIn("No measurement", text)
        self.assertIn("| alltoall | 16 | random:32 | 3.00 | 3.00 at 2 | 2.00 |", text)
        self.assertIn("| alltoall | 32 | 8K | pap_direct | 3.1 | 3.00 | 1.50 | 2.00 |", text)
        self.assertIn("| alltoall | 32 | 2 | pap_shm_direct | 3.5 | - | - | - |", text)  # that form was not measured
        self.assertIn("|8K|60 / 900|80 / 600|40 / 300|20 / 450|10|way|", text)
        self.assertIn("(figures/one.svg)", text)

    def test_a_page_without_markers_is_left_alone(self):
        self.page.write_text("words", encoding="utf-8")
        with self.assertRaisesRegex(arrival_tables.PageError, "expected once each"):
            arrival_tables.write(self.page, "cluster", self.cells, self.FORMS, {}, "today")
        self.assertEqual(self.page.read_text(encoding="utf-8"), "words")

    def test_figures_have_a_line_for_every_form_and_the_bound(self):
        if not shutil.which("gnuplot"):
            self.skipTest("no gnuplot")
        (key, name), = arrival_figures.draw(self.cells, self.FORMS, self.folder).items()
        self.assertEqual((key, name), (("alltoall", 16, "random:32"), "arrival_alltoall_16_random_32.svg"))
        drawn = (self.folder / name).read_text(encoding="utf-8")
        for word in [*self.FORMS, "bound", "alltoall, 16 ranks on 4 nodes, arrival random:32"]:
            self.assertIn(word, drawn)


class Reductions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_results.")
        self.addCleanup(folder.cleanup)
        self.page = pathlib.Path(folder.name) / "reductions.md"
        shutil.copy(ROOT / "docs/results/reductions.md", self.page)
        kept = reduction_measures.fill
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        for name, value in (("fill", lambda name, text: kept(name, text, self.page)), ("DATA", pathlib.Path(folder.name))):
            stack.callback(setattr, reduction_measures, name, getattr(reduction_measures, name))
            setattr(reduction_measures, name, value)

    def cell(self, collective, size, own, peer):
        return {"collective": collective, "bytes": size, "algorithm": "ring", "times_us": {"ibcoll": own, "openmpi": peer},
                "ratio": sorted(peer)[len(peer) // 2] / sorted(own)[len(own) // 2]}

    def test_the_page_has_a_place_for_every_measure(self):
        for name in reduction_measures.MEASURES:
            reduction_measures.fill(name, f"figures of {name}")
        text = self.page.read_text(encoding="utf-8")
        self.assertNotIn("Not measured yet", text)
        for name in reduction_measures.MEASURES:
            self.assertEqual(text.count(f"figures of {name}\n"), 1)

    def test_a_page_without_both_markers_is_left_alone(self):
        whole = self.page.read_text(encoding="utf-8")
        for marker in ("<!-- choice -->", "<!-- end of choice -->"):
            self.page.write_text(whole.replace(marker, ""), encoding="utf-8")
            with self.assertRaisesRegex(SystemExit, "must be there once each"):
                reduction_measures.fill("choice", "figures")
            self.assertEqual(self.page.read_text(encoding="utf-8"), whole.replace(marker, ""))

    def test_a_comparison_is_judged_by_its_aims(self):
        cells = [self.cell("reduce", 8, [1, 2, 9], [8, 8, 8]), self.cell("scan", 65536, [10, 10, 10], [9, 9, 9])]
        document = {"date": "2031-02-03T04:05:06", "machine": "2 cores", "rounds": 3, "seconds": 0.1, "cells": cells}
        reduction_measures.fill_comparison("one_node", document, 3, 0.95)
        text = self.page.read_text(encoding="utf-8")
        self.assertIn("2 cells: geometric mean 1.90 (aim: 3; missed); 1 below 0.95 (aim: none), the lowest 0.90.", text)
        self.assertIn("| reduce | 8 | 2.00 | 8.00 | 4.00 | ring |", text)
        self.assertIn("| scan | 64K | 10.00 | 9.00 | 0.90 | ring |", text)
        lines = (self.page.parent / "reductions_one_node.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual(lines[:2], ["collective,bytes,ibcoll_us,openmpi_us,ratio,algorithm", "reduce,8,2.00,8.00,4.000,ring"])

    def test_a_choice_is_held_against_the_best(self):
        runs = [{("reduce", 8): {"shm": 4.0, "binomial": 2.0}, ("scan", 64): {"node": 1.0, "linear": 5.0}},
                {("reduce", 8): {"shm": 6.0, "binomial": 2.0}, ("scan", 64): {"node": 1.0, "linear": 5.0}}]
        reduction_measures.fill_choice(runs, {("reduce", 8): {"shm": 9.0}, ("scan", 64): {"node": 1.0}})
        text = self.page.read_text(encoding="utf-8")
        self.assertIn("2 cells: 1 above 1.3 (aim: none), the highest 2.50; geometric mean 1.58.", text)
        self.assertIn("| reduce | 8 | shm | 5.00 | binomial | 2.00 | 2.50 |", text)
        choice = text[text.index("<!-- choice -->"):text.index("<!-- end of choice -->")]
        self.assertNotIn("| scan |", choice)

    def test_a_measure_that_is_none_is_named(self):
        done = subprocess.run([ROOT / "perf/results/reductions", "--only", "one_node,two"], capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("no measure is named two; these are: one_node, two_ranks", done.stderr)
