# SPDX-License-Identifier: BSD-3-Clause
"""Every collective x every algorithm on real processes, on one node and on several, even and uneven, over shared
memory and UCX on TCP, copy-based and zero-copy. Every byte is verified. ibcoll_simulated_tests goes through the numbers
of ranks; here the ranks find out by themselves where they are, and what there is.

IBCOLL_TEST_SWEEP=all takes all layouts below; without it there is one of each kind, and each takes a part of the
combinations. IBCOLL_TEST_LAYOUTS=16x4,5x2 takes these; =all takes every number of ranks, for which no suite has the
time."""

import json
import os
import unittest

import ranks

SCHEMES = ["auto", "copy", "zero_copy"]
WISH = os.environ.get("IBCOLL_TEST_LAYOUTS")
ALL = WISH == "all"
SWEEP = ranks.SWEEP or WISH is not None
# Ranks x nodes. Where they do not divide, the nodes are uneven. test_api.py has all combinations on 4x1 and 5x2.
LAYOUTS = ["2x1", "5x1", "8x1", "11x1", "16x1", "2x2", "3x2", "8x2", "11x2", "16x3", "4x4", "5x4", "11x4", "16x4"]
if ALL:
    LAYOUTS = [f"{ranks_}x{nodes}" for nodes in (1, 2, 3, 4) for ranks_ in range(2, 17) if nodes <= ranks_]
# Many ranks of one node; a rank alone on its node, beside one of two; even nodes; four nodes of 3, 3, 3 and 2.
KINDS = {"11x1": "0/4", "3x2": "1/2", "8x2": "2/4", "11x4": "3/4"}
# Where ibcoll_perf goes through sizes, and the scheme; each collective meets each scheme, in place and not.
SIZES_ON = {"3x1": "auto", "7x1": "copy", "3x2": "zero_copy", "9x4": "auto"}
IN_PLACE_ON = {"3x1": "copy", "5x2": "auto", "6x4": "zero_copy"}
KINDS_OF_SIZES = ["7x1", "3x2"]
KINDS_IN_PLACE = ["3x1", "5x2"]


def chosen(layouts, kinds):
    if not SWEEP:
        return kinds
    return [layout for layout in layouts if ALL or WISH is None or layout in WISH.split(",")]


def sizes(processes):
    """Nothing, one byte, and an odd number far above the eager limit of 8 K. In a sweep odd ones below and above that
    limit, too, and more where few ranks copy."""
    most = 262145 if SWEEP and processes <= 3 else 30001
    return ["--bytes", f"0:{most}", "--factor", "23" if SWEEP else str(most)]


class Collectives(unittest.TestCase):
    def every_algorithm(self, layout, **environment):
        """One job runs every collective, algorithm and scheme, with small and large blocks, or a share of these."""
        processes, nodes = map(int, layout.split("x"))
        done = ranks.run(ranks.job(processes, nodes, ranks.tool("ibcoll_api_ranks"), "every_algorithm"),
                         {"IBCOLL_LOG": "error", **environment})
        self.assertEqual(done.returncode, 0, ranks.story(done))

    def test_every_algorithm_as_operands_come(self):
        self.every_algorithm("5x2", IBCOLL_DETERMINISTIC="no", **({} if SWEEP else {"IBCOLL_TEST_SHARE": "0/4"}))

    def test_every_algorithm_over_the_shared_memory_of_ucx(self):
        if SWEEP:
            self.every_algorithm("4x2", UCX_TLS="sm")
        self.every_algorithm("5x4", UCX_TLS="tcp,sm", **({} if SWEEP else {"IBCOLL_TEST_SHARE": "1/4"}))

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


class Pace(unittest.TestCase):
    """No call stands still. A rank that has waited for a second asks the ranks that it waits for, which may move a job
    on that nothing else would: ibcoll_perf fails then."""

    LIMIT_US = 200_000  # another program may take the cores for a while: what is above is measured again

    def slow_rows(self, ranks_, nodes, *what):
        """Rows of ibcoll_perf with a call above the limit."""
        done = ranks.run(ranks.job(ranks_, nodes, ranks.tool("ibcoll_perf"), *what, "--warmup", "3", "--format", "json"))
        self.assertEqual(done.returncode, 0, ranks.story(done))
        rows = [row for row in json.loads(done.stdout)["rows"] if "not_applicable" not in row]
        self.assertTrue(rows, ranks.story(done))
        return [row for row in rows if row["p99"] > self.LIMIT_US]

    def no_slow_call(self, ranks_, nodes, *what):
        for row in self.slow_rows(ranks_, nodes, *what):
            again = [row["collective"], "--algorithm", row["algorithm"], "--bytes", str(row["bytes"]), "--iterations", "40"]
            if self.slow_rows(ranks_, nodes, *again) and self.slow_rows(ranks_, nodes, *again):
                self.fail(f"{ranks_} ranks on {nodes} nodes: {row}")

    def test_a_ring_whose_ranks_run_ahead(self):
        self.no_slow_call(13, 1, "allgatherv", "--algorithm", "ring", "--bytes", "4096", "--iterations", "60")

    @unittest.skipUnless(SWEEP, "takes minutes")
    def test_every_algorithm(self):
        for ranks_ in range(2, 21):
            for nodes in (1, 2) if ranks_ < 14 else (1,):
                with self.subTest(ranks=ranks_, nodes=nodes):
                    self.no_slow_call(ranks_, nodes, "all", "--algorithm", "all", "--bytes", "1024:65536",
                                      "--iterations", "20")


def share_of(layout):
    """The combinations are shared out. In a sweep one layout takes half of them, the next one the others."""
    if ALL:
        return {}
    return {"IBCOLL_TEST_SHARE": f"{LAYOUTS.index(layout) % 2}/2" if SWEEP else KINDS[layout]}


def add_every_algorithm(layout):
    def case(self):
        self.every_algorithm(layout, **share_of(layout))

    setattr(Collectives, f"test_every_algorithm_{layout}", case)


def add_sizes(layout, scheme, *options):
    processes = int(layout.split("x", maxsplit=1)[0])

    def case(self):
        ran = self.perf(layout, "all", "--iterations", "2", "--warmup", "0", *sizes(processes), "--scheme", scheme,
                        "--root", str(SCHEMES.index(scheme) % processes), *options)
        self.assertEqual(len({row["collective"] for row in ran}), 16)

    setattr(Collectives, f"test_sizes_{layout}_{scheme}{'_'.join(options)}", case)


def add_every_size(layout, factor, most):
    """Powers of two from one byte up: each where few ranks copy, some where 16 do."""
    wanted = {factor**exponent for exponent in range(21) if factor**exponent <= most}

    def case(self):
        ran = self.perf(layout, "alltoall", "--bytes", f"1:{most}", "--factor", str(factor), "--iterations", "1",
                        "--warmup", "0")
        self.assertEqual({row["bytes"] for row in ran}, wanted)

    setattr(Collectives, f"test_alltoall_to_{most}_{layout}", case)


for where in chosen(LAYOUTS, KINDS):
    add_every_algorithm(where)
for where in chosen(SIZES_ON, KINDS_OF_SIZES):
    add_sizes(where, SIZES_ON[where])
for where in chosen(IN_PLACE_ON, KINDS_IN_PLACE):
    add_sizes(where, IN_PLACE_ON[where], "--in-place", "--memory", "ibcoll")
for where, step, end in [("4x1", 2, 2**20), ("5x2", 2, 2**20), ("16x1", 16, 2**16), ("16x4", 16, 2**16)]:
    if chosen([where], [where] if where == "16x4" else []):
        add_every_size(where, *((2, 2**20) if ALL else (step, end)))
