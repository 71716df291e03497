# SPDX-License-Identifier: BSD-3-Clause
"""What perf/results/reductions measures: each function fills one table of the page and writes one CSV."""

import csv
import io
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/results/reductions.md"
DATA = ROOT / "docs/results/data"
BIN = ROOT / "build/release/bin"
sys.path[:0] = [str(ROOT / "perf/results"), str(ROOT / "perf/peers")]
import figures  # pylint: disable=wrong-import-position
import launch  # pylint: disable=wrong-import-position
import perftest  # pylint: disable=wrong-import-position
from report import geometric_mean, size_text  # pylint: disable=wrong-import-position

OPENMPI = ["--libraries", "ibcoll,openmpi"]
# Name -> words of perf/compare, least geometric mean that is aimed at, and least ratio of a cell.
COMPARISONS = {
    "one_node": (["--ranks", "16", "--collectives", "all"], 3, 0.95),
    "two_ranks": (["--ranks", "2", "--collectives", "all"], 1.3, 0.9),
    "four_nodes": (["--ranks", "16", "--nodes", "4", "--collectives", "all"], 2, 0.95),
    "cluster": (["--cluster", "4", "--collectives", "all"], 2, 0.95),
    "busy": (["--ranks", "16", "--nodes", "4", "--busy", "2"], 0, 0.7),
    "verbs_2": (["--ranks", "8", "--nodes", "2", *OPENMPI, "--collectives", "all"], 2, 0),
    "verbs_4": (["--ranks", "8", "--nodes", "4", *OPENMPI, "--collectives", "all"], 1.5, 0),
}
QUICK = ["--quick", "--factor", "16", "--rounds", "2"]
SIZES = {True: ["--bytes", "8:512K", "--factor", "16"], False: ["--bytes", "8:1M", "--factor", "4"]}


def fill(name, text, page=PAGE):
    figures.fill(page, name, text)


def write_csv(name, head, rows):
    DATA.mkdir(parents=True, exist_ok=True)
    with open(DATA / f"reductions_{name}.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


def judged(ratios, mean, least):
    """What came out, beside what is aimed at. `ratios` has at least one."""
    low = sum(ratio < least for ratio in ratios)
    found = geometric_mean(ratios)
    aim = f"geometric mean {found:.2f}" + (f" (aim: {mean}; {'reached' if found >= mean else 'missed'})" if mean else "")
    below = f"{low or 'none'} below {least} (aim: none), " if least else ""
    return f"{len(ratios)} cells: {aim}; {below}the lowest {min(ratios):.2f}."


def where(name, folder):
    """The words before perf/compare: what runs it over verbs, in a virtual machine if this one has no RDMA device."""
    if not name.startswith("verbs"):
        return []
    if perftest.has_device():
        return ["env", "IBCOLL_NET=verbs"]
    return [str(ROOT / "tests/vm/run_in_vm"), "--mtu", "4200", "--timeout", "3600", "--share", folder, "--", "env",
            "IBCOLL_NET=verbs"]


def compared(name, quick):
    words, mean, least = COMPARISONS[name]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "cells.json"
        done = subprocess.run([*where(name, folder), str(ROOT / "perf/compare"), *words, *(QUICK if quick else []),
                               "--json", str(file)], check=False)
        if not file.exists():
            sys.exit(f"{name}: perf/compare {' '.join(words)}: exit status {done.returncode}")
        document = json.loads(file.read_text(encoding="utf-8"))
    fill_comparison(name, document, mean, least)


def fill_comparison(name, document, mean, least):
    cells = [cell for cell in document["cells"] if cell["ratio"] is not None]
    if not cells:
        sys.exit(f"{name}: no cell has figures of ibcoll and of a peer")
    peers = [peer for peer in ("openmpi", "mpich") if any(peer in cell["times_us"] for cell in cells)]
    rows, lines = [], []
    for cell in cells:
        times = {library: statistics.median(values) for library, values in cell["times_us"].items()}
        shown = [f"{times[library]:.2f}" if library in times else "" for library in ["ibcoll", *peers]]
        rows.append([cell["collective"], cell["bytes"], *shown, f"{cell['ratio']:.3f}", cell["algorithm"]])
        lines.append([cell["collective"], size_text(cell["bytes"]), *shown, f"{cell['ratio']:.2f}", cell["algorithm"]])
    write_csv(name, ["collective", "bytes", "ibcoll_us", *[f"{peer}_us" for peer in peers], "ratio", "algorithm"], rows)
    head = ["collective", "bytes", "ibcoll us", *[f"{launch.TITLES[peer]} us" for peer in peers], "ratio", "algorithm"]
    about = f"{document['date'][:10]}, {document['machine']}; {document['rounds']} rounds, {document['seconds']} s per size."
    ratios = [cell["ratio"] for cell in cells]
    fill(name, "\n\n".join([about + "\\\n" + judged(ratios, mean, least), figures.table(head, lines)]))


def perf_rows(algorithm, quick):
    """(collective, bytes) -> {algorithm: time} of one run on 2 ranks."""
    command = [BIN / "ibcoll_run", "-n", "2", BIN / "ibcoll_perf", "all", "--algorithm", algorithm, "--format", "csv",
               "--seconds", "0.02" if quick else "0.1", *SIZES[quick]]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        sys.exit(f"choice: {' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr.strip()}")
    found = {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        if not row["not_applicable"]:
            key = (row["collective"], int(row["bytes"]))
            found.setdefault(key, {})[row["algorithm"].split(":")[0]] = float(row[launch.figure(row["collective"])])
    return found


def choice(quick):
    """How much longer the algorithm that selection takes runs than the best one of the registry, on 2 ranks."""
    rounds = 3 if quick else 5
    every = [perf_rows("all", quick) for _ in range(rounds)]
    fill_choice(every, perf_rows("auto", quick))


def fill_choice(every, chosen):
    rows = []
    for key, of_one in chosen.items():
        name = next(iter(of_one))
        times = {other: statistics.median(run[key][other] for run in every) for other in every[0][key]
                 if all(other in run[key] for run in every)}
        best = min(times, key=times.get)
        rows.append([*key, name, f"{times[name]:.2f}", best, f"{times[best]:.2f}", f"{times[name] / times[best]:.2f}"])
    head = ["collective", "bytes", "chosen", "us", "best", "us", "factor"]
    write_csv("choice", head, rows)
    factors = [float(row[-1]) for row in rows]
    slow = [row for row in rows if float(row[-1]) > 1.3]
    text = (f"{len(rows)} cells: {len(slow) or 'none'} above 1.3 (aim: none), the highest {max(factors):.2f}; geometric mean "
            f"{math.exp(statistics.fmean(map(math.log, factors))):.2f}. The cells above 1.1:")
    shown = [[row[0], size_text(row[1]), *row[2:]] for row in rows if float(row[-1]) > 1.1]
    fill("choice", "\n\n".join([text, figures.table(head, shown)]))


MEASURES = {**{name: lambda quick, name=name: compared(name, quick) for name in COMPARISONS}, "choice": choice}
