# SPDX-License-Identifier: BSD-3-Clause
"""The block of docs/results/simulation.md: what the simulated algorithms gain over the plain ones."""

import charts
import page
from report import geometric_mean, size_text

HEAD = ["compared", "cells", "geometric mean", "below 0.9", "lowest cell", "highest cell"]
PLAIN = ("ring", "recursive_doubling", "bruck")  # allgatherv without a node window


def line(title, cells):
    """One row of the table. cells: {name: how many times longer the other one takes}."""
    low, high = min(cells, key=cells.get), max(cells, key=cells.get)
    return [title, len(cells), f"{geometric_mean(list(cells.values())):.2f}",
            sum(round(ratio, 2) < 0.9 for ratio in cells.values()), f"{cells[low]:.2f} {low}", f"{cells[high]:.2f} {high}"]


def ratios(rows, name, other, own):
    """{name(row): row[other] / row[own]} of the rows that have both."""
    return {name(row): float(row[other]) / float(row[own]) for row in rows if row[other] and row[own]}


def rings(results):
    def name(row):
        return row["distribution"]
    rows = results.read("ring")
    yield "ring / ring_pipelined", ratios(rows, name, "ring_us", "pipelined_us")
    yield "ring / ring_pipelined:1M", ratios(rows, name, "ring_us", "pipelined_1m_us")
    # A ratio of lengths: what the pipeline through all ranks keeps of the speed of one rank a node.
    yield ("1 rank / 8 ranks a node", ratios(results.read("ring_nodes"), lambda row: f"{row['distribution']} "
           f"{size_text(int(row['bytes']))}, {row['inside'].split(',')[0].split(':')[0]}", "one_rank_a_node_us", "chosen_us"))


def trees(results):
    def name(row):
        return f"{row['collective']} {row['problem']} {row['ints']}/{row['ranks']}"

    def over(some, other):
        return ratios(some, name, other, "ordered_tree_us")
    rows = results.read("trees")
    two_blocks = [row for row in rows if row["problem"] == "two_blocks"]
    small = [row for row in rows if int(row["ints"]) <= 100 and row not in two_blocks]
    yield "linear / tree, short", over(small, "linear_us")
    yield ("linear / tree, long",
           over([row for row in rows if row not in small and row not in two_blocks], "linear_us"))
    yield "linear / tree, two_blocks", over(two_blocks, "linear_us")
    yield "binomial / tree", over(rows, "binomial_us")
    yield ("binomial / tree, long two_blocks",
           ratios(results.read("trees_long"), lambda row: size_text(int(row["bytes"])), "binomial_us", "ordered_tree_us"))
    yield "bound / tree", over(rows, "bound_us")


def windows(results):
    def name(row):
        return f"{size_text(int(row['bytes_of_rank']))} a rank, {row['nodes']} nodes"
    rows = results.read("shm_ring")
    for row in rows:
        row["best_us"] = min(float(row[f"{other}_us"]) for other in PLAIN if row[f"{other}_us"])
    for distribution in dict.fromkeys(row["distribution"] for row in rows):
        some = [row for row in rows if row["distribution"] == distribution]
        yield f"best plain / shm_ring, {distribution}", ratios(some, name, "best_us", "shm_ring_us")
        yield f"gatherv + bcast / shm_ring, {distribution}", ratios(some, name, "gatherv_bcast_us", "shm_ring_us")


def panels(results):
    """Pipelined ring by size, ordered tree by size, shm_ring by the number of nodes."""
    by_size, by_ints, by_nodes = {}, {}, {}
    for row in results.read("ring_sizes"):
        by_size.setdefault(row["distribution"], []).append(
            (row["base_bytes"], float(row["ring_us"]) / float(row["pipelined_us"])))
    rows = results.read("trees")
    for row in rows:
        if (row["collective"], row["problem"], row["ranks"]) == ("gatherv", "random", rows[0]["ranks"]):
            for name in ("linear", "binomial", "ordered_tree", "shm_tree"):
                by_ints.setdefault(name, []).append((row["ints"], row[f"{name}_us"]))
    for row in results.read("shm_ring"):
        if row["bytes_of_rank"] == "1024":
            best = min(float(row[f"{other}_us"]) for other in PLAIN if row[f"{other}_us"])
            by_nodes.setdefault(row["distribution"], []).append((row["nodes"], best / float(row["shm_ring_us"])))
    return [charts.Panel("allgatherv: ring / ring_pipelined, 30 nodes", "base size, bytes", "times faster", by_size),
            charts.Panel(f"gatherv, random, {rows[0]['ranks']} ranks", "base size, ints", "us", by_ints, base=10),
            charts.Panel("allgatherv: best plain / shm_ring, 1 KB a rank", "nodes of 32 ranks", "times faster", by_nodes)]


def fill(results):
    """The table, the figure and the block of the page, from existing data."""
    parts = [(title, cells) for part in (rings, trees, windows) for title, cells in part(results) if cells]
    charts.panels(results.figure, panels(results))
    results.fill(results.image("pipelined ring, ordered tree, ring over node windows"),
               page.table(HEAD, [line(title, cells) for title, cells in parts]))
