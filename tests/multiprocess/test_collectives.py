#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every collective x every algorithm x copy and zero-copy, on real processes: 2 to 16 ranks on 1 to 4 nodes, even and
uneven, over shared memory and UCX on TCP. ibcoll_perf --check verifies every byte.

The build tree is taken from $build, else build/release. IBCOLL_TEST_LAYOUTS=16x4,5x2 restricts the layouts."""

import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
SECONDS = 120

COLLECTIVES = ["barrier", "bcast", "allgather", "allgatherv", "alltoall", "alltoallv", "allreduce"]
IN_PLACE = ["allgather", "allgatherv", "alltoall", "alltoallv", "allreduce"]
# Ranks x nodes; 5x2, 7x3 and 16x3 have uneven nodes, 4x4 and 2x2 one rank on each.
LAYOUTS = ["2x1", "3x1", "8x1", "16x1", "2x2", "5x2", "7x3", "4x4", "16x2", "16x3", "16x4"]
# Bytes: within one landing slot and beyond it, odd ones too.
SIZES = ["--bytes", "1:200001", "--factor", "23", "--iterations", "3", "--warmup", "1"]


def measure(layout, collective, scheme, *more):
    ranks, nodes = layout.split("x")
    command = [BUILD / "bin/ibcoll_run", "-n", ranks, "--nodes", nodes, "--timeout", SECONDS]
    if nodes != "1":
        command += ["--net", "ucx"]
    command += [BUILD / "bin/ibcoll_perf", collective, "--algorithm", "all", "--check", "--format", "json",
                "--scheme", scheme, *SIZES, *more]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS + 30,
                          check=False, stdin=subprocess.DEVNULL, env={**os.environ, "UCX_TLS": "tcp"})


class Collectives(unittest.TestCase):
    def check(self, layout, collective, scheme, *more):
        done = measure(layout, collective, scheme, *more)
        self.assertEqual(done.returncode, 0, f"{done.args}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        rows = json.loads(done.stdout)["rows"]
        ran = [row for row in rows if "not_applicable" not in row]
        self.assertTrue(ran, f"no algorithm ran: {rows}")
        for row in ran:
            self.assertEqual(row["errors"], 0, f"{done.args}\n{row}\n{done.stderr[-4000:]}")


def add_case(layout, collective, scheme):
    def case(self):
        self.check(layout, collective, scheme)

    setattr(Collectives, f"test_{collective}_{layout}_{scheme}", case)


def add_in_place_case(layout, collective):
    def case(self):
        self.check(layout, collective, "auto", "--in-place")

    setattr(Collectives, f"test_{collective}_{layout}_in_place", case)


for chosen in os.environ.get("IBCOLL_TEST_LAYOUTS", ",".join(LAYOUTS)).split(","):
    for name in COLLECTIVES:
        for way in ("copy", "zero_copy") if name != "barrier" else ("auto",):
            add_case(chosen, name, way)
        if name in IN_PLACE and chosen in ("3x1", "5x2", "16x4"):
            add_in_place_case(chosen, name)

if __name__ == "__main__":
    unittest.main()
