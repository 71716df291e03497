# SPDX-License-Identifier: BSD-3-Clause
"""perf/compare and what makes pages of figures."""

from .fault import COMPARE, Fault

FAULTS = [
    Fault("ratio_to_the_slower_peer", "perf/peers/report.py",
          "min(self.median(peer) for peer", "max(self.median(peer) for peer", COMPARE, "test_compare"),
    Fault("spread_to_the_slower_peer", "perf/peers/report.py",
          "[min(peers) / own for", "[max(peers) / own for", COMPARE, "test_compare"),
    Fault("equal_cells_are_below_one", "perf/peers/report.py",
          "round(cell.ratio(), 2) < 1)", "round(cell.ratio(), 2) <= 1)", COMPARE, "test_compare"),
    Fault("far_cores_by_the_farthest", "perf/peers/report.py",
          "distance > 1.5 * min(distances)", "distance > 1.5 * max(distances)", COMPARE, "test_compare"),
    Fault("mpich_needs_a_spare_core", "perf/peers/launch.py",
          'name != "mpich" or ranks <= cores()]', 'name != "mpich" or ranks < cores()]', COMPARE, "test_compare"),
    Fault("scan_by_the_mean_rank", "perf/peers/launch.py",
          '"reduce", "scan", "exscan"]', '"reduce", "exscan"]', COMPARE, "test_compare"),
    Fault("libraries_always_in_one_order", "perf/compare",
          "for name in libraries[turn % len(libraries):] + libraries[:turn % len(libraries)]:",
          "for name in libraries:", COMPARE, "test_compare"),
    Fault("failed_library_keeps_its_first_times", "perf/compare",
          "if cell.collective == collective:", "if cell.collective != collective:", COMPARE, "test_compare"),
    Fault("failed_library_is_started_again", "perf/compare",
          "if (name, ranks, collective) in failures:", "if (name, ranks) in failures:", COMPARE, "test_compare"),
    Fault("ranks_that_do_not_divide_are_lost", "perf/peers/beds.py",
          "ranks * (i + 1) // self.nodes - ranks * i // self.nodes", "ranks // self.nodes", COMPARE, "test_compare"),
    Fault("quick_has_no_effect_on_rounds", "perf/peers/compare_options.py",
          '("rounds", 3, 5)', '("rounds", 5, 5)', COMPARE, "test_compare"),
    Fault("headline_of_the_smallest_size", "perf/results/arrival_tables.py",
          "abs(one - wanted)", "one - wanted", COMPARE, "test_results"),
    Fault("choice_is_held_against_the_worst", "perf/results/reduction_measures.py",
          "best = min(times, key=times.get)", "best = max(times, key=times.get)", COMPARE, "test_results"),
    Fault("aim_is_that_of_a_cell", "perf/results/reduction_measures.py",
          "if found >= mean else", "if found >= least else", COMPARE, "test_results"),
    Fault("page_without_an_end_marker", "perf/results/figures.py",
          "page.count(begin) != 1 or page.count(end) != 1", "page.count(begin) != 1", COMPARE, "test_results"),
]
