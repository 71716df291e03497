# SPDX-License-Identifier: BSD-3-Clause
"""What the pages make of perf/compare: a CSV of cells for each layout, and one row of a table for each CSV."""

import json
import pathlib
import statistics
import sys
import tempfile
import time

import page  # first: it makes perf/peers known
import cluster_nodes
import launch
from report import geometric_mean, size_text

LEAST = 0.9  # cells below are counted
LIBRARIES = ("ibcoll", "openmpi", "mpich", "through")
HEAD = ["layout", "geometric mean (rounds)", "cells", f"below {LEAST}", "lowest cell"]


def compare(words):
    """The JSON of one run of perf/compare. What failed is on standard error, and missing in it."""
    with tempfile.TemporaryDirectory(prefix="ibcoll_results.") as folder:
        path = pathlib.Path(folder) / "cells.json"
        command = [page.ROOT / "perf/compare", *words, "--json", path]
        status = launch.status_of(command)
        if not path.exists():
            raise launch.CompareError(f"{' '.join(map(str, command))}: exit status {status}, and no figures")
        return json.loads(path.read_text(encoding="utf-8"))


def rows_of(document, **more):
    """Rows of a CSV: medians over rounds in microseconds, and how many times longer the peer takes. With a route to ibcoll
    that is the MPI alone over the same MPI's program through ibcoll. `more`: columns that come first."""
    rows = []
    for cell in document["cells"]:
        ratio, rounds = (cell["gain"], cell["gains"]) if document["through"] else (cell["ratio"], cell["ratios"])
        if ratio is None:
            continue
        times = {f"{name}_us": statistics.median(cell["times_us"][name]) if name in cell["times_us"] else ""
                 for name in LIBRARIES if any(name in one["times_us"] for one in document["cells"])}
        rows.append({**more, "collective": cell["collective"], "bytes": cell["bytes"], **times, "ratio": ratio,
                     "ratio_of_rounds": " ".join(f"{one:.3f}" for one in rounds),
                     **({"kept_of_ibcoll": cell["kept"]} if document["through"] else {}),
                     "algorithm": cell["algorithm"], "calls": document["calls"], "date": document["date"][:10],
                     "machine": document["machine"], "rounds": document["rounds"], "seconds": document["seconds"]})
    if not rows:
        raise launch.CompareError("perf/compare has no cell with figures of both sides")
    return rows


def means_of_rounds(rows):
    """The geometric mean of all cells, round by round."""
    rounds = zip(*[map(float, row["ratio_of_rounds"].split()) for row in rows])
    return [geometric_mean(ratios) for ratios in rounds]


def summary(title, rows, name=lambda row: row["collective"]):
    """One row of the table, as HEAD has it."""
    ratios = [float(row["ratio"]) for row in rows]
    means = means_of_rounds(rows)
    lowest = min(rows, key=lambda row: float(row["ratio"]))
    size = f" {size_text(int(lowest['bytes']))}" if int(lowest["bytes"]) else ""
    return [title, f"{geometric_mean(ratios):.2f} ({min(means):.2f} to {max(means):.2f})", len(rows),
            sum(round(ratio, 2) < LEAST for ratio in ratios), f"{float(lowest['ratio']):.2f} {name(lowest)}{size}"]


def kept(rows):
    """Which part of ibcoll's own advantage a route has, as text; empty for ibcoll's own calls."""
    parts = [float(row["kept_of_ibcoll"]) for row in rows if row.get("kept_of_ibcoll")]
    return f"{geometric_mean(parts):.2f}" if parts else ""


def about(every):
    """When and where the rows of all CSVs were measured."""
    dates = sorted({row["date"] for rows in every for row in rows})
    machines = sorted({row["machine"] for rows in every for row in rows})
    counts = sorted({int(row["rounds"]) for rows in every for row in rows})
    rounds = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))) + (" round" if counts[-1] == 1 else " rounds")
    return (f"Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, {rounds}, on:\n\n"
            + "\n".join(f"- {machine}" for machine in machines))


def flags(options, quick_rounds=3):
    """Words of perf/compare for --quick and --try."""
    if options.smallest:
        return ["--bytes", "8:8", "--factor", "2", "--rounds", "1", "--seconds", "0.001"]
    return ["--quick", "--factor", "16", "--rounds", str(quick_rounds)] if options.quick else []


def add_options(parser, known):
    """Options that all pages beside an MPI have."""
    parser.add_argument("--quick", action="store_true", help="fewer sizes and calls: minutes for a layout")
    parser.add_argument("--try", dest="smallest", action="store_true", help="one size and one round, to see that all of it "
                        "works: seconds for a layout; the page goes to build/results")
    page.add_only(parser, known)
    parser.add_argument("--tables", action="store_true", help="measure nothing: table and figure from the data again")
    parser.add_argument("--build", type=pathlib.Path, default=page.ROOT / "build/release", help="tree of ibcoll")
    parser.add_argument("--output", type=pathlib.Path, help="folder of the page (default docs/results)")


def chosen(parser, options, known):
    """The names of --only, or of all that need not be named; and defaults."""
    options.output = (options.output or (page.TRIED if options.smallest else page.RESULTS)).resolve()
    options.build = options.build.resolve()
    usual = [name for name, layout in known.items() if not getattr(layout, "named_only", False)]
    return [] if options.tables else page.chosen_names(parser, options.only or usual, known)


def measure_all(names, measure, fill):
    """Measures layouts one after the other; `fill` makes the page from existing data, after each of them, so an
    interruption loses one layout. Returns the exit status: 1 where a layout has failed, after which the others run."""
    failed = []
    for name in names:
        begin = time.monotonic()
        try:
            measure(name)
        except (launch.CompareError, cluster_nodes.ClusterError) as problem:
            print(f"{name}: {problem}", file=sys.stderr, flush=True)
            failed.append(name)
            continue
        fill()
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    fill()
    if failed:
        print(f"not measured; once more with --only {','.join(failed)}", file=sys.stderr)
    return 1 if failed else 0
