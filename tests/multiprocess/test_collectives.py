#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every collective x every algorithm on real processes: 2 to 16 ranks on 1 to 4 nodes, even and uneven, over shared
memory and UCX on TCP, copy-based and zero-copy. ibcoll_perf --check verifies every byte.

`test_collectives.py [--bin BUILD/bin] [TESTS...] [-v]`; the build tree is $build, else build/release.
IBCOLL_TEST_LAYOUTS=16x4,5x2 restricts the layouts. Each collective meets each layout, and both meet each scheme; the
other options (in place, blocking, memory of ibcoll) change from case to case."""

import json
import os
import unittest

import ranks

COLLECTIVES = ["barrier", "bcast", "allgather", "allgatherv", "alltoall", "alltoallv", "allreduce"]
IN_PLACE = COLLECTIVES[2:]
SCHEMES = ["auto", "copy", "zero_copy"]
# Ranks x nodes. Uneven nodes: 5x2, 7x4, 11x3, 16x3. 2x2 and 4x4 have one rank on each.
LAYOUTS = ["2x1", "3x1", "8x1", "16x1", "2x2", "4x4", "5x2", "7x4", "11x3", "16x2", "16x3", "16x4"]


def sizes(processes):
    """Nothing, one byte, odd ones below and above the eager limit of 8 K; far above it where few ranks copy."""
    return f"0:{262145 if processes <= 5 else 30001}"


class Collectives(unittest.TestCase):
    def check(self, layout, collective, *options):
        processes, nodes = map(int, layout.split("x"))
        wanted = ["--iterations", "3", "--warmup", "1", "--bytes", sizes(processes), "--factor", "23"]
        done = ranks.run(ranks.job(processes, nodes, ranks.tool("ibcoll_perf"), collective, "--algorithm", "all",
                                   "--check", "--format", "json", *wanted, *options))
        self.assertEqual(done.returncode, 0, ranks.story(done))
        rows = json.loads(done.stdout)["rows"]
        ran = [row for row in rows if "not_applicable" not in row]
        self.assertTrue(ran, f"no algorithm ran: {rows}")
        for row in ran:
            self.assertEqual(row["errors"], 0, f"{row}\n{ranks.story(done)}")


def add_case(layout, collective, number):
    options = ["--scheme", SCHEMES[number % 3]]
    if collective in IN_PLACE and number % 4 == 1:
        options.append("--in-place")
    if number % 5 == 2:
        options += ["--memory", "ibcoll"]
    if collective == "bcast":
        options += ["--root", str(number % int(layout.split("x", maxsplit=1)[0]))]

    def case(self):
        self.check(layout, collective, *options)

    setattr(Collectives, f"test_{collective}_{layout}_{SCHEMES[number % 3]}", case)


CHOSEN = os.environ.get("IBCOLL_TEST_LAYOUTS", ",".join(LAYOUTS)).split(",")
for place, where in enumerate(LAYOUTS):
    for index, name in enumerate(COLLECTIVES):
        if where in CHOSEN:
            add_case(where, name, place + index)

if __name__ == "__main__":
    ranks.main(["ibcoll_run", "ibcoll_perf"])
