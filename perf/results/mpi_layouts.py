# SPDX-License-Identifier: BSD-3-Clause
"""The layouts of docs/results/beside_mpi.md, and the block of that page."""

import dataclasses

import charts
import comparison
import page


@dataclasses.dataclass
class Layout:
    title: str
    mark: str  # in the figure
    words: list  # of perf/compare
    quick_rounds: int = 3
    named_only: bool = False  # measured only if --only names it


PLAIN = {
    "one_node": Layout("16 ranks, one node", "16 ranks", ["--ranks", 16]),
    "two_ranks": Layout("2 ranks, one node", "2 ranks", ["--ranks", 2]),
    "four_nodes": Layout("4 emulated nodes x 4", "4 nodes", ["--ranks", 16, "--nodes", 4]),
    # A call with longer blocks takes up to a second.
    "cluster": Layout("4 nodes x 4, 1 Gbit/s", "1 Gbit/s", ["--cluster", 4, "--bytes", "8:512K"], quick_rounds=2),
}
OVER_VERBS = {f"verbs_{nodes}": Layout(f"{nodes} nodes x 1, verbs", f"verbs, {nodes} nodes",
                                       ["--net", "verbs", "--nodes", nodes, "--libraries", "ibcoll,openmpi"],
                                       quick_rounds=2)
              for nodes in (2, 4)}
OVER_VERBS |= {f"verbs_{nodes}x{8 // nodes}": Layout(f"{nodes} nodes x {8 // nodes}, verbs", f"verbs, {nodes} nodes, 8 ranks",
                                                     [*OVER_VERBS[f"verbs_{nodes}"].words, "--ranks", 8], quick_rounds=2,
                                                     named_only=True)
               for nodes in (2, 4)}
PERSISTENT = {f"{name}_persistent": Layout(f"{PLAIN[name].title}, persistent", f"{PLAIN[name].mark}, persistent",
                                           [*PLAIN[name].words, "--calls", "persistent"])
              for name in ("one_node", "two_ranks")}
ROUTES = {"openmpi": "component", "pmpi": "library", "mpich": "library, MPICH"}
# MPICH never yields, so it takes part only where each rank has a core.
THROUGH = {f"{name}_through_{route}": Layout(f"{layout.title}, {text}", f"{layout.mark}, {text}",
                                            [*layout.words, "--through", route], layout.quick_rounds)
           for name, layout in PLAIN.items() for route, text in ROUTES.items() if route != "mpich" or name == "two_ranks"}
LAYOUTS = {**PLAIN, **OVER_VERBS, **PERSISTENT, **THROUGH}


def fill(results):
    """The table, the figure and the block of the page, from existing data."""
    found = {name: rows for name in LAYOUTS if (rows := results.read(name))}
    if not found:
        results.fill("There is no data yet: the command above measures it.")
        return
    lines = [[*comparison.summary(LAYOUTS[name].title, rows), comparison.kept(rows)] for name, rows in found.items()]
    charts.dots(results.figure, "time of the MPI over that of ibcoll",
                {LAYOUTS[name].mark: [float(row["ratio"]) for row in rows] for name, rows in found.items()})
    results.fill(results.image("each collective at each size, by layout"),
               page.table([*comparison.HEAD, "kept"], lines), comparison.about(found.values()))
