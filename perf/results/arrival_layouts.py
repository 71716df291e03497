# SPDX-License-Identifier: BSD-3-Clause
"""The layouts and patterns of docs/results/arrival.md, and the block of that page."""

import dataclasses
import statistics

import charts
import comparison
import page

# What Open MPI does in rounds, as the MPI of the paper did: the numbers of its algorithms (ompi_info --param coll tuned).
IN_ROUNDS = {"in rounds": {"alltoall": 2, "allgather": 4}, "in rounds of neighbors": {"allgather": 5}}
PEERS = ("Open MPI", *IN_ROUNDS)
# The plain and the aware algorithms of the paper; chosen: what ibcoll takes by itself.
FORMS = (*PEERS, "direct", "pap_direct", "shm_direct", "pap_shm_direct", "chosen")
IN_TABLE = ("random:32", "random:512")  # the patterns of the paper's headlines
PAPER_BYTES = 8192  # the size of its headline


@dataclasses.dataclass
class Layout:
    title: str
    nodes: int
    experiments: list  # (ranks, pattern), those of the table first
    cluster: int | None = None
    net: str | None = None


@dataclasses.dataclass
class Extent:
    """How much is measured."""
    rounds: int
    seconds: float
    sizes: list  # words of the benchmarks
    forms: tuple
    experiments: int | None  # the first ones of a layout; None: all


SIXTEEN = [(16, "random:32"), (16, "random:512"), (16, "late:25:128"), (16, "late:75:128"), (16, "random:1"),
           (16, "random:128"), (8, "random:32"), (4, "random:32")]
LAYOUTS = {
    "cluster": Layout("4 nodes x 4, 1 Gbit/s", 4, SIXTEEN, cluster=4),
    "four_nodes": Layout("4 emulated nodes x 4", 4, SIXTEEN),
    **{f"verbs_{nodes}": Layout(f"{nodes} nodes x 1, verbs", nodes, [(nodes, pattern) for pattern in (*IN_TABLE, "late:25:128")],
                                net="verbs") for nodes in (2, 4)},
}
WHOLE = Extent(3, 1, ["--bytes", f"1:{1 << 20}", "--factor", "2"], FORMS, None)
# A message of 1 MB takes 9 ms at 1 Gbit/s, and 512 times that is no quick call.
QUICK = Extent(3, 0.1, ["--bytes", f"2:{128 << 10}", "--factor", "16"], (*PEERS, "direct", "chosen"), len(IN_TABLE))
SMALLEST = Extent(1, 0.001, ["--bytes", "8:8", "--factor", "2"], (*PEERS, "chosen"), 1)
AT_PAPER_BYTES = ["at 8K", "in rounds", "mean in call", "over bound"]


def settings_of(form, collective):
    """Variables that make Open MPI take the form; None: it has no such form of the collective."""
    if form not in IN_ROUNDS:
        return {}
    if collective not in IN_ROUNDS[form]:
        return None
    return {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1",
            f"OMPI_MCA_coll_tuned_{collective}_algorithm": str(IN_ROUNDS[form][collective])}


def rows_of(found, more):
    """Rows of the CSV: medians over rounds, in microseconds. `found`: {(ranks, pattern, collective, bytes, form): rows}."""
    rows = []
    for (ranks, pattern, collective, size, form), every in found.items():
        last = [float(row["t_last"]) for row in every]
        middle = {name: statistics.median(float(row[name]) for row in every)
                  for name in ("t_avg", "bound", "average_factor", "worst_factor")}
        rows.append({"ranks": ranks, "arrival": pattern, "collective": collective, "bytes": size, "form": form,
                     "last_arrival_to_last_exit_us": statistics.median(last),
                     "us_of_rounds": " ".join(f"{one:.3f}" for one in last), "mean_in_call_us": middle["t_avg"],
                     "bound_us": middle["bound"], "average_factor": middle["average_factor"],
                     "worst_factor": middle["worst_factor"], "algorithm": every[-1]["algorithm"], "calls": "blocking", **more})
    return sorted(rows, key=lambda row: (row["collective"], row["arrival"], row["ranks"], row["bytes"],
                                         FORMS.index(row["form"])))


def cells_of(rows):
    """{(collective, pattern, ranks, bytes): {form: row}}."""
    cells = {}
    for row in rows:
        cells.setdefault((row["collective"], row["arrival"], row["ranks"], int(row["bytes"])), {})[row["form"]] = row
    return cells


def compared(rows):
    """Rows as comparison.summary has them: Open MPI's time over that of the chosen algorithm."""
    found = []
    for (collective, pattern, ranks, size), forms in cells_of(rows).items():
        if not {"Open MPI", "chosen"} <= forms.keys():
            continue
        peer, own = forms["Open MPI"], forms["chosen"]
        rounds = zip(*[map(float, row["us_of_rounds"].split()) for row in (peer, own)])
        found.append({"collective": collective, "arrival": pattern, "ranks": ranks, "bytes": size,
                      "ratio": float(peer["last_arrival_to_last_exit_us"]) / float(own["last_arrival_to_last_exit_us"]),
                      "ratio_of_rounds": " ".join(f"{one / other:.3f}" for one, other in rounds)})
    return found


def ratio(forms, over, under, column, other=None):
    """Text of one cell of the page: a column of one form over one of another; "-" where either was not measured."""
    if not {over, under} <= forms.keys():
        return "-"
    return f"{float(forms[over][column]) / float(forms[under][other or column]):.2f}"


def at_paper_bytes(forms):
    """The columns AT_PAPER_BYTES."""
    last = "last_arrival_to_last_exit_us"
    return [ratio(forms, "Open MPI", "chosen", last), ratio(forms, "in rounds", "chosen", last),
            ratio(forms, "in rounds", "chosen", "mean_in_call_us"), ratio(forms, "chosen", "chosen", last, "bound_us")]


def lines_of(title, rows):
    """Rows of the table for one layout: those of its experiments that are in it."""
    lines, most = [], max(int(row["ranks"]) for row in rows)
    for collective in ("alltoall", "allgather"):
        for pattern in IN_TABLE:
            some = [row for row in compared(rows) if (row["collective"], row["arrival"]) == (collective, pattern)
                    and int(row["ranks"]) == most]
            if some:
                forms = cells_of(rows).get((collective, pattern, some[0]["ranks"], PAPER_BYTES), {})
                lines.append([*comparison.summary(f"{title}: {collective}, {pattern}", some, lambda row: "at"),
                              *at_paper_bytes(forms)])
    return lines


def panels(rows):
    """One for each collective: the time after the last arrival under the first pattern of the table."""
    most = max(int(row["ranks"]) for row in rows)
    every = []
    for collective in ("alltoall", "allgather"):
        some = [row for row in rows if (row["collective"], row["arrival"], int(row["ranks"])) == (collective, IN_TABLE[0], most)]
        lines = {form: points for form in FORMS
                 if (points := [(row["bytes"], row["last_arrival_to_last_exit_us"]) for row in some if row["form"] == form])}
        lines["bound"] = sorted({int(row["bytes"]): row["bound_us"] for row in some}.items())
        every.append(charts.Panel(f"{collective}, {most} ranks, {IN_TABLE[0]}", "bytes",
                                  "us from the last arrival to the last exit", lines, dashed=("bound",)))
    return every


def fill(results):
    """The table, the figure and the block of the page, from existing data."""
    found = {name: rows for name in LAYOUTS if (rows := results.read(name))}
    if not found:
        results.fill("There is no data yet: the command above measures it.")
        return
    first, rows = next(iter(found.items()))
    charts.panels(results.figure, panels(rows))
    lines = [line for name, some in found.items() for line in lines_of(LAYOUTS[name].title, some)]
    results.fill(results.image(f"after the last arrival: {LAYOUTS[first].title}"),
               page.table([*comparison.HEAD, *AT_PAPER_BYTES], lines), comparison.about(found.values()))
