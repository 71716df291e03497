# SPDX-License-Identifier: BSD-3-Clause
"""Unmodified MPI programs with the library libibcoll_pmpi_MPI.so before the MPI's own."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import tables

BUILD = (Path(__file__).resolve().parents[2] / os.environ.get("build", "build/release")).resolve()
BIN, LIB = BUILD / "bin", BUILD / "lib"

# How many communicators, one after the other and at once.
SWEEP = os.environ.pop("IBCOLL_TEST_SWEEP", "") == "all"  # no setting of the programs that are started
MANY, ALIVE = ("10000", "2000") if SWEEP else ("60", "40")

# As root, Open MPI needs two variables; more ranks than cores need --oversubscribe. Its coll/tuned decides by what the
# ranks do not share, and deadlocks on programs here.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
               "OMPI_MCA_coll": "^tuned"}


def collectives():
    """Those of MPI: ibcoll's, and one that runs as alltoallv."""
    return [*tables.collectives(), "alltoallw"]


def report(text):
    """Of the counters that rank 0 writes: {collective: (ran, fell through, reasons)}."""
    found = {}
    for line in text.splitlines():
        if match := re.match(r"ibcoll under MPI, rank 0: (\w+) \d+ calls, \d+ bytes, (\d+) in ibcoll.*, (\d+) fell through(.*)", line):
            found[match[1]] = (int(match[2]), int(match[3]), match[4])
    return found


class Preloaded(unittest.TestCase):
    mpi = operations_in_flight = None
    left_to_mpi = {}  # what tells a program which calls never come to ibcoll
    part = 0  # of a test's cases

    def run_ranks(self, ranks, *command, preload=(), per_rank=None, **variables):
        """`per_rank`: variables of the last rank alone."""
        program = [str(word) for word in command]
        if not shutil.which(f"mpirun.{self.mpi}") or not (LIB / f"libibcoll_pmpi_{self.mpi}.so").exists():
            self.skipTest(f"{self.mpi} is not installed")
        libraries = ":".join(str(library) for library in (*preload, LIB / f"libibcoll_pmpi_{self.mpi}.so"))
        variables = {"IBCOLL_MPI_VERBOSE": "1", "LD_PRELOAD": libraries, **variables}
        line = [f"mpirun.{self.mpi}"]

        def part(count, own):
            flags = [word for name, value in own.items() for word in (
                ["-x", f"{name}={value}"] if self.mpi == "openmpi" else ["-env", name, value])]
            return ["-n", str(count), *flags, *program]
        if self.mpi == "openmpi":
            line += ["--oversubscribe"]
        line += part(ranks - (per_rank is not None), variables)
        if per_rank is not None:
            line += [":", *part(1, {**variables, **per_rank})]
        return subprocess.run(line, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=600 if SWEEP else 100,
                              stdin=subprocess.DEVNULL)

    def assert_right(self, done, ranks):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(len(re.findall(r"^ ?rank \d+: 0 (?:of \d+ )?wrong$", done.stdout, re.M)), ranks, done.stdout + done.stderr)

    def scenario(self, name, ranks=4, **variables):
        done = self.run_ranks(ranks, BIN / f"ibcoll_mpi_scenarios_{self.mpi}", name, **variables)
        self.assert_right(done, ranks)
        return done

    def assert_ran(self, done, *names, falls=None):
        """In ibcoll, and never in the MPI, or only for the reason `falls`."""
        counts = report(done.stderr)
        for name in names:
            ran, fell, reasons = counts.get(name, (0, 0, ""))
            self.assertGreater(ran, 0, done.stderr)
            self.assertIn(reasons, ("", f" ({falls}: {fell})"), done.stderr)


    def traced(self, ranks, *command):
        """What a program said, and {(call site, collective): calls} by its trace."""
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_ranks(ranks, *command, IBCOLL_TRACE=f"{folder}/t")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            shown = subprocess.run([BIN / "ibcoll_trace", f"{folder}/t", "--format", "json"], capture_output=True, text=True,
                                  timeout=60, check=False)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        answer = json.loads(shown.stdout)
        self.assertEqual((answer["problems"], answer["incomplete"]), ([], 0))
        return done, {(row["site"], row["collective"]): row["calls"] for row in answer["rows"]}


def marked_lines(source):
    """{name: its call site}: those lines of a C source that end with "// FUNCTION: NAME"."""
    return {match[2]: f"{match[1]} {source.name}:{number}" for number, line in enumerate(source.read_text().splitlines(), 1)
            if (match := re.search(r"; +// (\w+): (\w+)$", line))}


class Cases:
    def test_call_sites_of_a_trace(self):
        at = marked_lines(Path(__file__).with_name("call_sites.c"))
        _, calls = self.traced(2, BIN / f"ibcoll_mpi_call_sites_{self.mpi}")
        self.assertEqual(calls, {(at["blocking"], "barrier"): 1, (at["inlined"], "allreduce"): 1,
                                 (at["nonblocking"], "allreduce"): 1, (at["persistent"], "bcast"): 3})

    def test_results_are_those_of_the_mpi(self):
        for seed in ("1", "2"):
            done = self.run_ranks(4, BIN / f"ibcoll_mpi_collectives_{self.mpi}", seed, 300)
            self.assert_right(done, 4)
            self.assert_ran(done, *collectives())

    def test_results_of_nonblocking_ones_are_those_of_the_mpi(self):
        done = self.run_ranks(4, BIN / f"ibcoll_mpi_collectives_{self.mpi}", 3, 300, "nonblocking")
        self.assert_right(done, 4)
        self.assert_ran(done, *collectives(), falls=self.operations_in_flight)

    def test_kinds_of_communicators(self):
        done = self.scenario("comm_kinds", ranks=5)
        ran, fell, reasons = report(done.stderr)["allreduce"]
        self.assertGreater(ran, 15)
        # MPI_COMM_SELF and the intercommunicator, three times each.
        self.assertEqual((fell, reasons), (6, " (the communicator has one process: 3; an intercommunicator: 3)"), done.stderr)

    def test_many_communicators_one_after_the_other(self):
        self.assert_ran(self.scenario("comm_many", ranks=2, TIMES=MANY), "barrier", "allreduce")

    def test_many_communicators_at_once(self):
        self.assert_ran(self.scenario("comm_alive", ranks=2, TIMES=ALIVE), "barrier", "allreduce")

    def test_communicators_that_are_never_freed(self):
        self.assert_ran(self.scenario("comm_leaked"), "barrier", "allreduce")

    def test_communicators_made_by_idup(self):
        self.assert_ran(self.scenario("comm_idup"), "barrier", "allreduce")

    def test_absolute_addresses(self):
        self.assert_ran(self.scenario("data_bottom"), "allgather", "bcast")

    def test_calls_that_repeat_others_but_for_one_argument(self):
        self.assert_ran(self.scenario("data_repeated", ranks=3), "allreduce", "bcast", "gather", "scatter")

    def test_equal_send_and_receive_buffers(self):
        self.scenario("data_aliases")

    def test_blocks_that_overlap_and_lie_below_the_buffer(self):
        self.assert_ran(self.scenario("data_overlap"), "allgatherv")

    def counts(self, ranks, part, parts, *before):
        """Some of the cases, whose number is prime to that of collectives and sizes: of all kinds."""
        variables = {"PART": str(part), "PARTS": str(parts), **self.left_to_mpi}
        done = self.run_ranks(ranks, *before, BIN / f"ibcoll_mpi_scenarios_{self.mpi}", "counts", **variables)
        self.assert_right(done, ranks)
        self.assertIn(f"{ranks} ranks use ibcoll", done.stderr)

    def test_counts_that_do_not_match(self):
        for ranks in (2, 3, 5) if SWEEP else (3,):
            with self.subTest(ranks=ranks):
                self.counts(ranks, self.part, 11 if SWEEP else 191)

    def test_counts_that_do_not_match_on_two_nodes(self):
        """The last ranks have another name for their host."""
        if subprocess.run(["unshare", "--uts", "true"], capture_output=True).returncode != 0:
            self.skipTest("no right to make a namespace")
        node = ("n=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; test $n -lt 2 || exec unshare --uts sh -c 'hostname other; exec \"$@\"' - \"$@\"; "
                "exec \"$@\"")
        for ranks in (3, 5) if SWEEP else (3,):
            with self.subTest(ranks=ranks):
                self.counts(ranks, self.part, 11 if SWEEP else 383, "env", "UCX_NET_DEVICES=lo", "sh", "-c", node, "-")

    def test_a_call_that_the_mpi_refuses_on_one_rank(self):
        if not self.left_to_mpi:
            self.scenario("counts_refused", ranks=3)

    def test_types_and_operations_freed_in_flight(self):
        done = self.scenario("data_freed")
        self.assert_ran(done, "bcast")
        if self.operations_in_flight is None:
            self.assert_ran(done, "allreduce")

    def test_results_of_persistent_ones_are_those_of_the_mpi(self):
        done = self.run_ranks(4, BIN / f"ibcoll_mpi_collectives_{self.mpi}", 5, 80, "persistent")
        self.assert_right(done, 4)
        self.assert_ran(done, *collectives(), falls=self.operations_in_flight)

    def test_persistent_ones_start_in_any_order(self):
        self.assert_ran(self.scenario("persistent_order"), "allreduce")

    def test_persistent_ones_are_completed_beside_others(self):
        self.assert_ran(self.scenario("persistent_mixed"), "barrier", "allreduce")

    def test_persistent_ones_outlive_what_the_program_frees(self):
        self.assert_ran(self.scenario("persistent_freed"), "bcast")

    def test_a_persistent_one_that_fails(self):
        done = self.scenario("persistent_failed", ranks=3, IBCOLL_TIMEOUT="0.5")
        self.assertIn("did not complete in 0.5 s", done.stderr)

    def test_a_message_needs_its_sender_in_a_barrier(self):
        # Not by one copy of the receiver's.
        self.assert_ran(self.scenario("wait_isend", OMPI_MCA_btl_vader_single_copy_mechanism="none"), "barrier")

    def test_a_nonblocking_collective_needs_its_rank_in_other_calls(self):
        self.assert_ran(self.scenario("wait_nonblocking"), "barrier", "allreduce")

    def test_a_rank_that_is_late(self):
        self.assert_ran(self.scenario("wait_late", ranks=3), "barrier")

    def test_threads(self):
        # An algorithm of messages, which those of another communicator could be taken for.
        done = self.scenario("wait_threads", ranks=3, IBCOLL_ALLREDUCE="recursive_doubling", IBCOLL_BARRIER="dissemination")
        self.assert_ran(done, "barrier", "allreduce")

    def test_a_collective_within_the_end_is_the_mpi_s(self):
        done = self.scenario("wait_finalize", ranks=3)
        self.assertEqual(done.stdout.count(": 3 in MPI_Finalize"), 3, done.stdout)

    def test_fortran(self):
        """In ibcoll, each call at its line."""
        lines = Path(__file__).with_name("fortran_calls.inc").read_text().splitlines()
        called = [(f"fortran_calls.inc:{number}", match[1].lower()) for number, line in enumerate(lines, 1)
                  if (match := re.search(r"call MPI_I?(barrier|allreduce|reduce|bcast)\(", line, re.I))]
        self.assertEqual(len(called), 6)
        for binding in ("mpif", "mpi", "f08"):
            with self.subTest(binding=binding):
                program = BIN / f"ibcoll_mpi_fortran_{binding}_{self.mpi}"
                if not program.exists():
                    self.skipTest("no Fortran compiler")
                done, calls = self.traced(3, program)
                self.assert_right(done, 3)
                self.assert_ran(done, "barrier", "allreduce", "reduce", "bcast")
                expected = {(f"fortran_{binding} {site}", name): 10 for site, name in called}
                self.assertEqual({site: calls.get(site) for site in expected}, expected)
                # The persistent one is at MPI_Start, for which gfortran may give a line further down.
                (started, name), = set(calls) - set(expected)
                self.assertRegex(started, rf"^fortran_{binding} fortran_calls\.inc:3\d$")
                self.assertEqual((name, calls[started, name]), ("allreduce", 10))

    def test_a_profiling_tool_above_sees_the_calls(self):
        done = self.run_ranks(3, BIN / f"ibcoll_mpi_scenarios_{self.mpi}", "comm_leaked",
                              preload=[LIB / f"libibcoll_mpi_profiler_{self.mpi}.so"])
        self.assert_right(done, 3)
        self.assertEqual(done.stdout.count("profiler: 3 barriers, 3 sums"), 3, done.stdout)
        self.assert_ran(done, "barrier", "allreduce")

    def test_off(self):
        done = self.scenario("comm_leaked", ranks=3, per_rank={"IBCOLL_MPI": "off"})
        self.assertEqual(report(done.stderr)["allreduce"], (0, 3, " (IBCOLL_MPI is off: 3)"), done.stderr)

    def test_a_list_of_collectives(self):
        done = self.scenario("comm_leaked", ranks=3, IBCOLL_MPI_COLLECTIVES="^barrier",
                             per_rank={"IBCOLL_MPI_COLLECTIVES": "allreduce,barrier"})
        counts = report(done.stderr)
        self.assertEqual(counts["allreduce"][:2], (3, 0), done.stderr)
        self.assertEqual(counts["barrier"], (0, 3, " (not in IBCOLL_MPI_COLLECTIVES: 3)"), done.stderr)

    def test_what_is_malformed_on_one_rank_is_told_once_and_all_use_the_mpi(self):
        for name, value, said in (("IBCOLL_MPI", "maybe", "allowed are on and off"),
                                  ("IBCOLL_MPI_COLLECTIVES", "allreduce,sum", "there is no collective 'sum'"),
                                  ("IBCOLL_NET", "pigeons", "IBCOLL_NET=pigeons")):
            with self.subTest(name=name):
                done = self.scenario("comm_leaked", ranks=3, per_rank={name: value})
                lines = [line for line in done.stderr.splitlines() if "cannot use ibcoll" in line]
                self.assertEqual(len(lines), 1, done.stderr)
                self.assertIn("rank 2 ", lines[0])
                self.assertIn(said, lines[0])
                self.assertEqual(report(done.stderr)["barrier"][:2], (0, 3), done.stderr)


class Installations:
    """What a rank has otherwise than the others."""

    def other_version(self):
        return {"LD_PRELOAD": f"{LIB / 'ibcoll_mpi_other_version.so'}:{LIB / f'libibcoll_pmpi_{self.mpi}.so'}"}

    def test_a_rank_with_another_version(self):
        done = self.scenario("comm_leaked", ranks=3, per_rank=self.other_version())
        self.assertEqual(done.stderr.count("cannot use ibcoll"), 1, done.stderr)
        self.assertIn("rank 0 of libibcoll_pmpi", done.stderr)
        self.assertRegex(done.stderr, r"different versions, 0\.1\.99 to \d+\.\d+\.\d+; all ranks use the MPI's own")
        self.assertEqual(report(done.stderr)["barrier"], (0, 3, " (ibcoll did not start: 3)"), done.stderr)

    def test_a_rank_without_the_library(self):
        done = self.run_ranks(3, BIN / f"ibcoll_mpi_scenarios_{self.mpi}", "comm_leaked", IBCOLL_TIMEOUT="1",
                              per_rank={"LD_PRELOAD": ""})
        self.assertNotEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 0: rank 2 has not come to the start of libibcoll_pmpi", done.stderr)
        self.assertIn("preload it for all ranks, or for none", done.stderr)


class OpenMpi(Cases, Installations, Preloaded):
    mpi = "openmpi"
    operations_in_flight = None

    def test_errors_are_those_of_the_mpi(self):
        """Debian builds MPICH without checks of arguments."""
        self.scenario("data_errors")

    def test_persistent_ones_beyond_what_there_are_teams_for(self):
        ran, fell, reasons = report(self.scenario("persistent_many", ranks=2, TIMES="260").stderr)["allreduce"]
        self.assertEqual((ran, fell, reasons), (256, 4, " (too many persistent requests: 4)"))


class Mpich(Cases, Installations, Preloaded):
    mpi = "mpich"
    part = 1

    def test_persistent_ones_with_wide_counts(self):
        self.assert_ran(self.scenario("persistent_wide"), "allgatherv")

    # Why nonblocking reductions by functions of the program are the MPI's own: a thread would run them.
    operations_in_flight = "the MPI cannot advance ibcoll while it waits"
