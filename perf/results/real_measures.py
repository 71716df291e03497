# SPDX-License-Identifier: BSD-3-Clause
"""Real calls beside Open MPI and MPICH, by perf/compare."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile

import figures
import simulated
import tree_measures

PLACES = {"16 ranks, one node": "--ranks 16 --root 8", "16 ranks, 4 nodes, TCP": "--ranks 16 --nodes 4 --root 8",
          "2 ranks, one node": "--ranks 2 --root 1"}


def compare(options):
    """The JSON of perf/compare."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "cells.json"
        command = [simulated.ROOT / "perf/compare", "--quick", "--build", simulated.BUILD, *options.split(), "--json",
                   path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not path.exists():
            sys.exit(f"perf/compare {options}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return json.loads(path.read_text(encoding="utf-8"))


def measure(place, name, runs):
    """runs: {(where, distribution): options}. A CSV of cells and a table of ratios, with means and the worst cell."""
    rows, lines, machine = [], [], ""
    for (where, distribution), options in runs.items():
        report = compare(f"{options} --distribution {distribution}")
        machine = report["machine"]
        for cell in report["cells"]:
            middle = {library: sorted(us)[len(us) // 2] for library, us in cell["times_us"].items()}
            rows.append({"where": where, "distribution": distribution, "collective": cell["collective"],
                         "bytes": cell["bytes"], "algorithm": cell["algorithm"],
                         **{f"{library}_us": middle.get(library, "") for library in ("ibcoll", "openmpi", "mpich")},
                         "ratio": cell["ratio"]})
    simulated.write_csv(place.data(name), rows)
    sizes = sorted({row["bytes"] for row in rows})
    groups = {}
    for row in rows:
        groups.setdefault((row["where"], row["collective"], row["distribution"]), {})[row["bytes"]] = row["ratio"]
    for (where, collective, distribution), cells in groups.items():
        lines.append([f"{where}: {collective}, `{distribution}`"] + [f"{cells[size]:.2f}" for size in sizes])
    for where in dict.fromkeys(row["where"] for row in rows):
        ratios = [row["ratio"] for row in rows if row["where"] == where]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append([f"{where}: geometric mean {mean:.2f}, worst cell {min(ratios):.2f}"] + [""] * len(sizes))
    table = figures.table(["better peer / ibcoll"] + [f"{figures.size_text(size)}" for size in sizes], lines)
    place.fill(name, f"{machine}.\n\n{table}")


def gather_scatter(place):
    measure(place, "real_trees", {
        (where, problem): f"{options} --collectives gatherv,scatterv --bytes 64:16K --factor 16"
        for where, options in PLACES.items() for problem in tree_measures.PROBLEMS})


def allgatherv(place):
    measure(place, "real_ring", {
        (where, distribution): f"{PLACES[where]} --collectives allgatherv --bytes 1K:1M --factor 32"
        for where in ("16 ranks, one node", "16 ranks, 4 nodes, TCP") for distribution in ("broadcast", "spike")})


MEASURES = {"real_trees": gather_scatter, "real_ring": allgatherv}
