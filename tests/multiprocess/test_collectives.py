#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every collective x every algorithm on real processes: 2 to 16 ranks on 1, 2, 3 and 4 nodes, even and uneven, over shared
memory and UCX on TCP, copy-based and zero-copy. Every byte is verified.

`test_collectives.py [--bin BUILD/bin] [TESTS...] [-v]`; the build tree is $build, else build/release.
IBCOLL_TEST_LAYOUTS=16x4,5x2 restricts the layouts; =all takes every number of ranks, for which no suite has the time."""

import json
import os
import unittest

import ranks

SCHEMES = ["auto", "copy", "zero_copy"]
# Ranks x nodes. Where they do not divide, the nodes are uneven.
NUMBERS = range(2, 17) if os.environ.get("IBCOLL_TEST_LAYOUTS") == "all" else (2, 3, 4, 5, 8, 11, 16)
LAYOUTS = [f"{ranks_}x{nodes}" for nodes in (1, 2, 4) for ranks_ in NUMBERS if nodes <= ranks_] + ["16x3"]
# Where ibcoll_perf goes through sizes: each collective meets each of these, in place and not, and each scheme.
SIZES_ON = ["3x1", "16x1", "5x2", "16x4"]


def chosen(layouts):
    wish = os.environ.get("IBCOLL_TEST_LAYOUTS")
    return [layout for layout in layouts if wish in (None, "all") or layout in wish.split(",")]


def sizes(processes):
    """Nothing, one byte, odd ones below and above the eager limit of 8 K; far above it where few ranks copy."""
    return f"0:{262145 if processes <= 5 else 30001}"


class Collectives(unittest.TestCase):
    def every_algorithm(self, layout, **environment):
        """One job runs every collective, algorithm and scheme, with small and large blocks."""
        processes, nodes = map(int, layout.split("x"))
        done = ranks.run(ranks.job(processes, nodes, ranks.tool("ibcoll_api_ranks"), "every_algorithm"),
                         {"IBCOLL_LOG": "error", **environment})
        self.assertEqual(done.returncode, 0, ranks.story(done))

    def test_every_algorithm_in_a_fixed_order(self):
        self.every_algorithm("5x2", IBCOLL_DETERMINISTIC="yes")

    def test_every_algorithm_over_the_shared_memory_of_ucx(self):
        self.every_algorithm("4x2", UCX_TLS="sm")
        self.every_algorithm("5x4", UCX_TLS="tcp,sm")

    def perf(self, layout, collective, *options):
        processes, nodes = map(int, layout.split("x"))
        done = ranks.run(ranks.job(processes, nodes, ranks.tool("ibcoll_perf"), collective, "--algorithm", "all",
                                   "--check", "--format", "json", *options))
        self.assertEqual(done.returncode, 0, ranks.story(done))
        rows = json.loads(done.stdout)["rows"]
        ran = [row for row in rows if "not_applicable" not in row]
        self.assertTrue(ran, f"no algorithm ran: {rows}")
        for row in ran:
            self.assertEqual(row["errors"], 0, f"{row}\n{ranks.story(done)}")
        return ran


def add_every_algorithm(layout):
    def case(self):
        self.every_algorithm(layout)

    setattr(Collectives, f"test_every_algorithm_{layout}", case)


def add_sizes(layout, number, *options):
    processes = int(layout.split("x", maxsplit=1)[0])
    scheme = SCHEMES[number % 3]

    def case(self):
        ran = self.perf(layout, "all", "--iterations", "3", "--warmup", "1", "--bytes", sizes(processes), "--factor", "23",
                        "--scheme", scheme, "--root", str(number % processes), *options)
        self.assertEqual(len({row["collective"] for row in ran}), 16)

    setattr(Collectives, f"test_sizes_{layout}_{scheme}{'_'.join(options)}", case)


def add_every_size(layout):
    """Each power of two from one byte to a megabyte."""

    def case(self):
        ran = self.perf(layout, "alltoall", "--bytes", "1:1M", "--iterations", "1", "--warmup", "0")
        self.assertEqual(len({row["bytes"] for row in ran}), 21)

    setattr(Collectives, f"test_alltoall_to_1M_{layout}", case)


for where in chosen(LAYOUTS):
    add_every_algorithm(where)
for where in chosen(SIZES_ON):
    add_sizes(where, SIZES_ON.index(where))
    add_sizes(where, SIZES_ON.index(where) + 1, "--in-place", "--memory", "ibcoll")
for where in chosen(["16x1", "16x2", "16x4"]):
    add_every_size(where)

if __name__ == "__main__":
    ranks.main(["ibcoll_run", "ibcoll_perf", "ibcoll_api_ranks"])
