# SPDX-License-Identifier: BSD-3-Clause
"""The layouts and problems of docs/results/irregular.md, and the block of that page."""

import charts
import comparison
import mpi_layouts
import page
import tree_measures

# The root is rank p / 2: a root in the middle of the ranks suits no tree by chance.
ROOTS = {"one_node": 8, "two_ranks": 1, "four_nodes": 8, "cluster": 8}
LAYOUTS = {name: mpi_layouts.Layout(mpi_layouts.PLAIN[name].title, mpi_layouts.PLAIN[name].mark,
                                    [*mpi_layouts.PLAIN[name].words, "--root", root]) for name, root in ROOTS.items()}


def problems(smallest):
    """(collectives, distribution, words for the sizes) of each run of perf/compare."""
    trees = [("gatherv,scatterv", name, ["--bytes", "64:16K", "--factor", "16"]) for name in tree_measures.PROBLEMS]
    rings = [("allgatherv", name, ["--bytes", "1K:1M", "--factor", "32"]) for name in ("broadcast", "spike")]
    return [trees[0], rings[0]] if smallest else trees + rings


def fill(results):
    """The table, the figure and the block of the page, from existing data."""
    parts = {}
    for name in LAYOUTS:
        rows = results.read(name)
        for collective in ("gatherv", "scatterv", "allgatherv"):
            some = [row for row in rows if row["collective"] == collective]
            if some:
                parts[name, collective] = some
    if not parts:
        results.fill("There is no data yet: the command above measures it.")
        return
    lines = [comparison.summary(f"{LAYOUTS[name].title}: {collective}", rows, lambda row: row["distribution"])
             for (name, collective), rows in parts.items()]
    charts.dots(results.figure, "time of the faster MPI over that of ibcoll",
                {f"{collective}, {LAYOUTS[name].mark}": [float(row["ratio"]) for row in rows]
                 for (name, collective), rows in parts.items()})
    results.fill(results.image("each distribution at each size, by layout"), page.table(comparison.HEAD, lines),
               comparison.about(parts.values()))
