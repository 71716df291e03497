# SPDX-License-Identifier: BSD-3-Clause
"""gatherv and scatterv on a model of 1,600 and 6,400 ranks, 16 a node: the six problems of the paper."""

import math

import simulated

ALPHA, BETA = 2.0, 1 / 12500
MODEL = "--alpha 2 --bandwidth 12.5 --node-bandwidth 12.5 --copy-bandwidth 0 --ports rank"
PROBLEMS = ("same", "random", "spikes", "decreasing_gather", "alternating", "two_blocks")
INTS = (1, 10, 100, 1000, 10000)
RANKS = (1600, 6400)
MASK = (1 << 64) - 1


def draw(index):
    """As tools/oracle/distributions.h has it."""
    x = (index + 1) * 0x9e3779b97f4a7c15 & MASK
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK
    x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK
    return x ^ x >> 31


def sizes(problem, c, p):
    of = {"same": lambda i: c, "random": lambda i: 1 + draw(i << 32) % (2 * c),
          "spikes": lambda i: 5 * c if draw(i << 32) % 5 == 0 else 1,
          "decreasing_gather": lambda i: 2 * c * (p - i) // p + 1,
          "alternating": lambda i: c + c // 2 if i % 2 == 0 else c - c // 2,
          "two_blocks": lambda i: c if i in (0, p - 1) else 0}[problem]
    return [of(i) for i in range(p)]


def bound_us(blocks, root):
    """Theorem 1: 3 q alpha + beta (sum of the others + penalty); and q alpha for advertisements."""
    beside = []  # the root's children: gather time and all bytes, innermost first

    def cube(first, width):
        """Gather time and the gather root's own bytes, or None where the root is."""
        if width == 1:
            return None if first == root else (0, blocks[first])
        lower = cube(first, width // 2)
        if first + width // 2 >= len(blocks):
            return lower
        upper = cube(first + width // 2, width // 2)
        if lower is None or upper is None:
            beside.append(lower or upper)
            return None
        to, other = (lower, upper) if (lower[0], sum(lower)) >= (upper[0], sum(upper)) else (upper, lower)
        return to[0] + sum(other), to[1]

    levels = math.ceil(math.log2(len(blocks)))
    cube(0, 1 << levels)
    penalty, before = 0, 0
    for time, own in beside:
        penalty = max(penalty, time - before)
        before += time + own
    return 4 * levels * ALPHA + BETA * (sum(blocks) - blocks[root] + penalty)


def trees(results, smallest):
    """All problems, sizes and numbers of ranks, with the bound."""
    keys = [(c, p, d, b) for c in ("gatherv", "scatterv") for p in ((64,) if smallest else RANKS) for d in PROBLEMS
            for b in INTS]
    runs = simulated.run_all({
        (c, p, d, b): f"{c} --ranks {p} --nodes {p // 16} --root {p // 2} --distribution {d} --bytes {4 * b} {MODEL} "
                      "--algorithm linear,binomial,ordered_tree,shm_tree" for c, p, d, b in keys})
    rows = []
    for key in keys:
        collective, p, problem, ints = key
        us = simulated.times(runs[key])
        bound = bound_us(sizes(problem, 4 * ints, p), p // 2)
        rows.append({"collective": collective, "ranks": p, "problem": problem, "ints": ints,
                     **{f"{name}_us": value for name, value in us.items()}, "bound_us": bound})
    results.write("trees", rows)


def long_blocks(results, _):
    """two_blocks with longer blocks: where a tree that does not know sizes moves them level by level."""
    runs = simulated.run(f"gatherv --ranks 1600 --nodes 100 --root 800 --distribution two_blocks --bytes 64K:16M "
                         f"--factor 4 {MODEL} --algorithm linear,binomial,ordered_tree,ordered_tree:1G")
    by_size = {}
    for row in runs:
        by_size.setdefault(row["bytes"], []).append(row["time_us"])
    rows = [dict(zip(("bytes", "linear_us", "binomial_us", "ordered_tree_us", "without_threshold_us"), [size, *us]))
            for size, us in by_size.items()]
    results.write("trees_long", rows)


MEASURES = {"trees": trees, "trees_long": long_blocks}
