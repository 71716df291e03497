# SPDX-License-Identifier: BSD-3-Clause
"""What perf/results makes of figures: its ratios, tables, data and pages. Nothing is measured."""

import argparse
import contextlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "perf/results"), str(ROOT / "perf/peers")]
import arrival_layouts  # pylint: disable=wrong-import-position
import charts  # pylint: disable=wrong-import-position
import comparison  # pylint: disable=wrong-import-position
import irregular_layouts  # pylint: disable=wrong-import-position
import launch  # pylint: disable=wrong-import-position
import output  # pylint: disable=wrong-import-position
import mpi_layouts  # pylint: disable=wrong-import-position
import page  # pylint: disable=wrong-import-position
import replay_winners  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position
import simulation_page  # pylint: disable=wrong-import-position


def cell(collective, size, **times):
    """As perf/compare has it. times: microseconds of each round, by library."""
    one = report.Cell(16, collective, size)
    one.times, one.algorithm = times, "way"
    return one.as_json()


def document(*cells, through=None):
    return {"cells": list(cells), "through": through, "calls": "blocking", "date": "2031-02-03T04:05:06",
            "machine": "2 cores", "rounds": 3, "seconds": 0.02}


ROWS = comparison.rows_of(document(cell("reduce", 8, ibcoll=[1, 2, 4], openmpi=[8, 8, 8]),
                                   cell("scan", 65536, ibcoll=[10, 10, 10], openmpi=[8, 8, 4])))


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_results.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        patch = unittest.mock.patch.object(charts, "draw")  # a gnuplot is not everywhere
        self.drawn = patch.start()
        self.addCleanup(patch.stop)

    def text(self, results):
        return results.path.read_text(encoding="utf-8")

    def test_a_row_has_medians_and_the_ratio_of_each_round(self):
        self.assertEqual((ROWS[0]["ibcoll_us"], ROWS[0]["openmpi_us"], ROWS[0]["ratio"]), (2, 8, 4))
        self.assertEqual(ROWS[0]["ratio_of_rounds"], "8.000 4.000 2.000")
        self.assertNotIn("mpich_us", ROWS[0])

    def test_a_layout_has_its_mean_with_the_range_over_rounds_and_its_lowest_cell(self):
        """Round by round: the mean of 8 and 0.8, of 4 and 0.8, of 2 and 0.4."""
        self.assertEqual(comparison.summary("here", ROWS), ["here", "1.79 (0.89 to 2.53)", 2, 1, "0.80 scan 64K"])

    def test_a_cell_of_just_the_least_is_not_below_it(self):
        rows = comparison.rows_of(document(cell("barrier", 0, ibcoll=[10], openmpi=[9])))
        self.assertEqual(comparison.summary("here", rows)[2:], [1, 0, "0.90 barrier"])

    def test_a_route_is_compared_with_the_mpi_alone(self):
        rows = comparison.rows_of(document(cell("bcast", 8, ibcoll=[2], openmpi=[6], through=[3]), through="openmpi"))
        self.assertEqual((rows[0]["ratio"], rows[0]["ratio_of_rounds"], rows[0]["through_us"]), (2, "2.000", 3))
        self.assertEqual(comparison.kept(rows), "0.67")
        self.assertEqual(comparison.kept(ROWS), "")

    def test_a_run_without_a_peer_is_no_data(self):
        with self.assertRaisesRegex(launch.CompareError, "no cell with figures of both sides"):
            comparison.rows_of(document(cell("bcast", 8, ibcoll=[2])))

    def test_what_is_written_is_read_again(self):
        results = page.Page("beside_mpi", self.folder)
        results.write("one_node", ROWS)
        self.assertEqual(comparison.summary("here", results.read("one_node")), comparison.summary("here", ROWS))
        self.assertEqual(results.read("two_ranks"), [])

    def test_the_page_beside_an_mpi_has_a_row_for_each_layout_with_data(self):
        results = page.Page("beside_mpi", self.folder)
        mpi_layouts.fill(results)
        self.assertIn("There is no data yet", self.text(results))
        results.write("cluster", ROWS)
        results.write("one_node", ROWS)
        for _ in range(2):  # what was written before is replaced
            mpi_layouts.fill(results)
        text = self.text(results)
        self.assertNotIn("There is no data yet", text)
        rows = [line for line in text.splitlines() if "1.79 (0.89 to 2.53)" in line]
        self.assertEqual([line.split("|")[1].strip() for line in rows], ["16 ranks, one node", "4 nodes x 4, 1 Gbit/s"])
        self.assertIn("Measured 2031-02-03, 3 rounds, on:\n\n- 2 cores\n", text)
        self.assertEqual(text.count("(figures/beside_mpi.svg)"), 1)

    def test_every_layout_is_one_that_perf_compare_takes(self):
        import compare_options  # pylint: disable=import-outside-toplevel
        for name, layout in {**mpi_layouts.LAYOUTS, **irregular_layouts.LAYOUTS}.items():
            words = ["compare", *map(str, layout.words), *comparison.flags(argparse.Namespace(smallest=False, quick=True))]
            with self.subTest(layout=name), unittest.mock.patch.object(sys, "argv", words):
                options = compare_options.parse("")
            self.assertEqual((options.factor, options.rounds), (16, 3))
            self.assertEqual(options.calls, "persistent" if "persistent" in name else "blocking")

    def test_irregular_blocks_have_a_row_for_each_layout_and_collective(self):
        results = page.Page("irregular", self.folder)
        results.write("two_ranks", [{"distribution": name, **row} for name in ("same", "spikes") for row in comparison.rows_of(
            document(cell("gatherv", 64, ibcoll=[2], openmpi=[1]), cell("allgatherv", 64, ibcoll=[2], openmpi=[3])))])
        irregular_layouts.fill(results)
        text = self.text(results)
        self.assertIn("| 2 ranks, one node: gatherv | 0.50 (0.50 to 0.50) | 2 | 2 | 0.50 same 64 |", text)
        self.assertIn("| 2 ranks, one node: allgatherv | 1.50 (1.50 to 1.50) | 2 | 0 | 1.50 same 64 |", text)

    def arrivals(self, *sizes):
        """Two rounds: Open MPI takes 60 and 80 us after the last arrival, what ibcoll chooses 20 and 40."""
        lasts = {"Open MPI": (60, 80), "in rounds": (90, 120), "direct": (90, 90), "chosen": (20, 40)}
        return arrival_layouts.rows_of(
            {(16, "random:32", "alltoall", size, form): [
                {"t_last": last, "t_avg": 300, "bound": 10, "average_factor": 8, "worst_factor": 30, "algorithm": "way"}
                for last in both] for size in sizes for form, both in lasts.items()},
            {"nodes": 4, "date": "2031-02-03", "machine": "2 cores", "rounds": 2, "seconds": 0.1})

    def test_arrivals_compare_the_chosen_algorithm_after_the_last_one(self):
        results = page.Page("arrival", self.folder)
        results.write("cluster", self.arrivals(2, 8192))
        arrival_layouts.fill(results)
        row = "| 4 nodes x 4, 1 Gbit/s: alltoall, random:32 | 2.33 (2.00 to 3.00) | 2 | 0 | 2.33 at 2 | 2.33 | 3.50 | 1.00 | 3.00 |"
        self.assertIn(row, self.text(results))
        self.assertEqual(results.read("cluster")[0]["us_of_rounds"], "60.000 80.000")
        (_, script), = [call.args for call in self.drawn.call_args_list]
        for name in ("Open MPI", "direct", "chosen", "bound"):
            self.assertIn(f"title '{name}'", script)

    def test_arrivals_without_the_size_of_the_paper(self):
        line, = arrival_layouts.lines_of("here", self.arrivals(64))
        self.assertEqual(line[-4:], ["-"] * 4)

    def test_open_mpi_in_rounds_is_asked_for_by_its_settings(self):
        self.assertEqual(arrival_layouts.settings_of("in rounds", "alltoall"), {
            "OMPI_MCA_coll_tuned_use_dynamic_rules": "1", "OMPI_MCA_coll_tuned_alltoall_algorithm": "2"})
        self.assertEqual(arrival_layouts.settings_of("Open MPI", "alltoall"), {})
        self.assertIsNone(arrival_layouts.settings_of("in rounds of neighbors", "alltoall"))

    def test_a_simulated_gain_has_its_extremes(self):
        self.assertEqual(simulation_page.line("a / b", {"x": 0.5, "y": 2.0, "z": 8.0}),
                         ["a / b", 3, "2.00", 1, "0.50 x", "8.00 z"])

    def test_each_page_says_what_its_data_says(self):
        shutil.copytree(ROOT / "docs/results/data", self.folder / "data")
        for name, module in (("arrival", arrival_layouts), ("beside_mpi", mpi_layouts), ("irregular", irregular_layouts),
                             ("simulation", simulation_page)):
            with self.subTest(page=name):
                results = page.Page(name, self.folder)
                text = self.text(results)
                module.fill(results)
                self.assertEqual(self.text(results), text)

    def test_a_page_without_both_markers_is_left_alone(self):
        results = page.Page("arrival", self.folder)
        whole = self.text(results)
        for marker in ("<!-- results -->", "<!-- end of results -->"):
            results.path.write_text(whole.replace(marker, ""), encoding="utf-8")
            with self.assertRaisesRegex(SystemExit, "must be there once each"):
                results.fill("figures")
            self.assertEqual(self.text(results), whole.replace(marker, ""))

    def test_names_that_are_none(self):
        parser = argparse.ArgumentParser()
        page.add_only(parser, ["one", "two"])
        for words, expected in ([], ["one", "two"]), (["--only", "two,one"], ["two", "one"]), (
                ["--only", "two", "--only", "one"], ["two", "one"]):
            self.assertEqual(page.chosen_names(parser, parser.parse_args(words).only, ["one", "two"]), expected)
        with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
            page.chosen_names(parser, ["one", "three"], ["one", "two"])
        self.assertIn("nothing is named three; these are: one, two", said.getvalue())


class SeveralLayouts(unittest.TestCase):
    """One after the other, in one command."""

    def setUp(self):
        self.done = []
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
        output.exit_at_signals()

    def measure_all(self, measure):
        with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(io.StringIO()):
            status = comparison.measure_all(["one", "two", "three"], measure, lambda: self.done.append("page"))
        return status, said.getvalue()

    def test_the_page_is_filled_after_each(self):
        self.assertEqual(self.measure_all(self.done.append), (0, ""))
        self.assertEqual(self.done, ["one", "page", "two", "page", "three", "page", "page"])

    def test_one_that_fails_keeps_no_other_from_being_measured(self):
        def measure(name):
            if name == "two":
                raise launch.CompareError("no luck today")
            self.done.append(name)
        status, said = self.measure_all(measure)
        self.assertEqual((status, self.done), (1, ["one", "page", "three", "page", "page"]))
        self.assertIn("two: no luck today\n", said)
        self.assertIn("once more with --only two\n", said)

    def test_what_a_layout_has_started_ends_with_the_command(self):
        """What runs there has its time to remove what it has made."""
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_results.")
        self.addCleanup(folder.cleanup)
        program = pathlib.Path(folder.name) / "program"
        program.write_text("#!/bin/bash\ntrap 'echo >$0.removed; exit 0' TERM\necho >$0.started\nwhile :; do sleep 0.02; done\n",
                           encoding="utf-8")
        program.chmod(0o755)

        def end_this():
            end = time.monotonic() + 30
            while not pathlib.Path(f"{program}.started").exists() and time.monotonic() < end:
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGTERM)
        threading.Thread(target=end_this).start()
        with self.assertRaises(SystemExit):
            self.measure_all(lambda _: launch.status_of([program]))
        self.assertTrue(pathlib.Path(f"{program}.removed").exists())
        self.assertEqual(self.done, [])


class FastestRuns(unittest.TestCase):
    """perf/results/replay: runs of a program with other algorithms, as measured and as replayed."""

    def variant(self, name, first, second, algorithms=("ring and 2 more", "tree:4")):
        return {"name": name, "sites": [
            {"collective": "bcast", "site": f"a.c:{line}", "in_collectives_s": time, "algorithm": algorithm}
            for line, time, algorithm in zip((1, 2), (first, second), algorithms)]}

    def rows(self, measured, predicted, fails=()):
        """Of the runs ibcoll, openmpi and best; of `fails`: their algorithm does not apply."""
        answer = {"variants": [self.variant("recorded", 1, 1), self.variant("replayed as recorded", 1.1, 1.1),
                               self.variant("as openmpi", 2, 3, ("ring", "chain:16")),
                               self.variant("best of each site", 1, 1, ("way", "tree:4"))]}

        def record(settings):
            return settings["IBCOLL_BCAST"]

        def replay(trace, *options):
            name = trace or options[1].removeprefix("bcast=")
            if name in fails:
                raise launch.CompareError("it does not apply")
            if trace:
                return {"variants": [self.variant("recorded", *measured[name]), self.variant("replayed as recorded", 9, 9)]}
            return {"variants": [self.variant("recorded", 1, 1), self.variant("algorithms as given", *predicted[name])]}

        with contextlib.redirect_stderr(io.StringIO()):
            return [{"program": "p", "ranks": 2, "nodes": 1, **row} for row in replay_winners.runs(answer, record, replay)]

    def verdicts(self, *rounds):
        return {key[-1]: right for key, right in replay_winners.verdicts(replay_winners.medians(rounds)).items()}

    def test_the_algorithm_of_the_longest_site_is_forced(self):
        rows = self.rows({"chain:16": (3, 0.5)}, {"chain:16": (2, 0.6)})
        self.assertEqual({row["run"] for row in rows}, {"ibcoll", "openmpi"}, "the best ones are those that were recorded")
        self.assertEqual([(row["measured_ms"], row["predicted_ms"]) for row in rows],
                         [(1e3, 1.1e3), (3e3, 2e3), (1e3, 1.1e3), (500, 600)])
        self.assertEqual(self.verdicts(rows), {"a.c:1": True, "a.c:2": True})

    def test_a_wrong_order(self):
        rows = self.rows({"chain:16": (3, 0.5)}, {"chain:16": (1, 1.2)})
        self.assertEqual(self.verdicts(rows), {"a.c:1": False, "a.c:2": False})

    def test_runs_that_take_as_long_have_no_fastest(self):
        self.assertEqual(self.verdicts(self.rows({"chain:16": (1.2, 1.3)}, {"chain:16": (0.1, 2)})), {"a.c:2": True})

    def test_runs_that_differ_in_some_rounds_have_no_fastest(self):
        rounds = [self.rows({"chain:16": (time, 3)}, {"chain:16": (9, 9)}) for time in (1.1, 5, 5)]
        self.assertEqual(self.verdicts(*rounds), {"a.c:2": True})

    def test_what_does_not_apply_is_left_out(self):
        self.assertEqual(self.rows({}, {}, fails=("chain:16",)), [])

    def test_only_sites_of_forced_collectives_that_take_long(self):
        one = {"variants": [self.variant("recorded", 1, 0.001), self.variant("replayed as recorded", 1, 0.001),
                            self.variant("as openmpi", 1, 0.001, ("tree:4", "ring")), self.variant("best of each site", 1, 0.001)]}
        for variant in one["variants"]:
            variant["sites"].append({"collective": "scan", "site": "a.c:3", "in_collectives_s": 5, "algorithm": "linear"})

        def replay(trace, *_):
            return {"variants": [self.variant("recorded" if trace else "algorithms as given", 1, 0.001)]}

        asked = []
        rows = replay_winners.runs(one, lambda settings: asked.append(settings) or "t", replay)
        self.assertEqual([(row["site"], row["run"]) for row in rows], [("a.c:1", "ibcoll"), ("a.c:1", "openmpi")])
        self.assertEqual(asked, [{"IBCOLL_BCAST": "tree:4"}])

    def test_medians_of_rounds(self):
        rounds = [self.rows({"chain:16": (time, 1)}, {"chain:16": (2 * time, 1)}) for time in (1, 5, 2)]
        self.assertEqual(replay_winners.medians([*rounds, []]), [], "a round in which the replay was too far off")
        [row] = [row for row in replay_winners.medians(rounds) if (row["run"], row["site"]) == ("openmpi", "a.c:1")]
        self.assertEqual((row["measured_ms"], row["predicted_ms"], row["least_ms"], row["most_ms"], row["program"]),
                         (2e3, 4e3, 1e3, 5e3, "p"))


class Scripts(unittest.TestCase):
    def test_each_says_how_to_try_it(self):
        for name in ("arrival", "beside_mpi", "irregular", "replay", "simulation"):
            with self.subTest(script=name):
                done = subprocess.run([ROOT / f"perf/results/{name}", "--help"], capture_output=True, text=True, check=False,
                                      timeout=60)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("--try", done.stdout)
                self.assertRegex(done.stdout, r"\d+ minutes?|under 1 minute")


class Figures(unittest.TestCase):
    def setUp(self):
        if not shutil.which("gnuplot"):
            self.skipTest("no gnuplot")
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_results.")
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "figures/one.svg"

    def test_lines_in_panels(self):
        lines = {"chosen": [(8, 1.5), (64, 2)], "bound": [(8, 1), (64, 1)]}
        charts.panels(self.path, [charts.Panel("alltoall, random:32", "bytes", "us", lines, dashed=("bound",))] * 2)
        drawn = self.path.read_text(encoding="utf-8")
        for word in ("alltoall, random:32", "chosen", "bound", "bytes"):
            self.assertIn(word, drawn)

    def test_dots_of_cells(self):
        charts.dots(self.path, "ratio", {"one_node": [0.5, 2], "verbs, 2 nodes": [1]})
        drawn = self.path.read_text(encoding="utf-8")
        for word in ("one_node", "verbs, 2 nodes", "geometric mean"):
            self.assertIn(word, drawn)

    def test_a_script_that_gnuplot_refuses(self):
        with self.assertRaisesRegex(SystemExit, "gnuplot drew no"):
            charts.draw(self.path, "plot nothing at all")
