# SPDX-License-Identifier: BSD-3-Clause
"""The coll component of Open MPI: unmodified programs, and counters that show what ran in ibcoll. The cases of
test_pmpi.py run with it, too."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import test_pmpi

BIN = test_pmpi.BIN
COMPONENTS = test_pmpi.LIB / "ibcoll" / "openmpi"
PROGRAM = BIN / "ibcoll_openmpi_program"
# Such calls make a communicator (MPI_Comm_dup).
OPEN_MPIS = "calls of this kind may be the MPI's own"


class Component(test_pmpi.Preloaded):
    mpi = "openmpi"

    def setUp(self):
        if not (COMPONENTS / "mca_coll_ibcoll.so").exists():
            self.skipTest("built without the internal headers of Open MPI")

    def run_words(self, *words, seconds=600 if test_pmpi.SWEEP else 60, **variables):
        environment = {**os.environ, **test_pmpi.ENVIRONMENT, "IBCOLL_MPI_VERBOSE": "1",
                       "OMPI_MCA_mca_base_component_path": f"{COMPONENTS}:SYSTEM_DEFAULT",
                       "OMPI_MCA_rmaps_base_oversubscribe": "1", **variables}
        # mpirun ends its ranks when it is asked to, and not when it is killed.
        line = ["timeout", "-k", "5", str(seconds), "mpirun.openmpi", *(str(word) for word in words)]
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=seconds + 20,
                              stdin=subprocess.DEVNULL)

    def run_ranks(self, ranks, *command, preload=(), per_rank=None, **variables):
        if preload:
            variables["LD_PRELOAD"] = ":".join(map(str, preload))
        flags = [word for name, value in variables.items() for word in ("-x", f"{name}={value}")
                 if not name.startswith("OMPI_")]
        parameters = {name: value for name, value in variables.items() if name.startswith("OMPI_")}
        words = ["-n", ranks - (per_rank is not None), *flags, *command]
        if per_rank is not None:
            own = [word for name, value in per_rank.items() for word in ("-x", f"{name}={value}")]
            words += [":", "-n", 1, *flags, *own, *command]
        return self.run_words(*words, **parameters)

    def run_modes(self, ranks, *modes, options=(), **variables):
        done = self.run_words("-n", ranks, *options, PROGRAM, *modes, **variables)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "".join(f"{mode}: ok\n" for mode in modes), done.stderr)
        return done.stderr

    def assert_ran(self, done, *names):
        """In ibcoll, and never in Open MPI, but for the calls that it makes itself."""
        counts = test_pmpi.report(done.stderr)
        for name in names:
            ran, fell, reasons = counts.get(name, (0, 0, ""))
            self.assertGreater(ran, 0, done.stderr)
            self.assertEqual(reasons, f" ({OPEN_MPIS}: {fell})" if fell > 0 else "", done.stderr)


class Shared(test_pmpi.Cases, Component):
    """What differs from the interposition library's cases."""

    left_to_mpi = {"COMPONENT": "1"}
    part = 2

    def results(self, *words, **variables):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_words("-n", 4, BIN / "ibcoll_mpi_collectives_openmpi", *words, folder, **variables)
            self.assert_right(done, 4)
            return done, [(Path(folder) / str(rank)).read_text(encoding="utf-8").splitlines() for rank in range(4)]

    def test_results_are_those_of_the_mpi(self):
        _, expected = self.results(3, 200, OMPI_MCA_mca_base_component_path="SYSTEM_DEFAULT")
        self.assertEqual([len(lines) for lines in expected], 4 * [200])
        for form in ((), ("nonblocking",), ("persistent",)):
            done, seen = self.results(3, 200, *form)
            self.assertEqual(seen, expected)
            self.assert_ran(done, *test_pmpi.collectives())

    test_results_of_nonblocking_ones_are_those_of_the_mpi = None  # above
    test_results_of_persistent_ones_are_those_of_the_mpi = None  # above

    def test_kinds_of_communicators(self):
        done = self.scenario("comm_kinds", ranks=5)
        self.assert_ran(done, "barrier", "allreduce")
        self.assertGreater(test_pmpi.report(done.stderr)["allreduce"][0], 15)

    def test_off(self):
        done = self.scenario("comm_leaked", ranks=3, per_rank={"IBCOLL_MPI": "off"})
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("rank 2 of MPI_COMM_WORLD has no coll component ibcoll", done.stderr)
        self.assertEqual(self.scenario("comm_leaked", ranks=3, IBCOLL_MPI="off").stderr, "")

    def test_a_list_of_collectives(self):
        done = self.scenario("comm_leaked", ranks=3, IBCOLL_MPI_COLLECTIVES="^barrier",
                             per_rank={"IBCOLL_MPI_COLLECTIVES": "allreduce,barrier"})
        counts = test_pmpi.report(done.stderr)
        self.assertEqual(counts["allreduce"][0], 3, done.stderr)
        self.assertEqual(counts["barrier"], (0, 3, " (not in IBCOLL_MPI_COLLECTIVES: 3)"), done.stderr)


class OpenMpisOwn(Component):
    """What only Open MPI has."""

    def test_every_form_of_every_collective(self):
        for ranks in (2, 5):
            with self.subTest(ranks=ranks):
                counts = test_pmpi.report(self.run_modes(ranks, "forms"))
                for name in test_pmpi.collectives():
                    # Two roots, three forms, the persistent one twice.
                    self.assertGreaterEqual(counts[name][0], 8, (name, counts))
                    self.assertEqual(counts[name][1], 0, (name, counts))

    def test_communicators_that_are_freed_in_flight(self):
        counts = test_pmpi.report(self.run_modes(3, "lifetimes"))
        self.assertGreaterEqual(counts["bcast"][0], 50)

    def test_many_in_flight_beside_idup(self):
        counts = test_pmpi.report(self.run_modes(3, "in_flight"))
        self.assertGreaterEqual(counts["allreduce"][0], 800)

    def test_jobs_of_spawned_processes(self):
        said = self.run_modes(2, "spawn")
        self.assertEqual(said.count("2 ranks use ibcoll"), 2, said)

    def test_modules_of_open_mpi_that_are_made_of_other_collectives(self):
        for parameter in ({"OMPI_MCA_coll_han_priority": "50"}, {"OMPI_MCA_coll_han_priority": "99"}):
            with self.subTest(parameter=parameter):
                self.run_modes(5, "forms", "in_flight", IBCOLL_MPI_COLLECTIVES="bcast,scan",
                               OMPI_MCA_coll="^sm", **parameter)


class Parameters(Component):
    def test_collectives(self):
        counts = test_pmpi.report(self.run_modes(2, "forms", options=("--mca", "coll_ibcoll_collectives", "bcast,scan")))
        self.assertEqual({name for name, (ran, _, _) in counts.items() if ran > 0}, {"bcast", "scan"})

    def test_malformed_collectives(self):
        said = self.run_modes(2, "forms", options=("--mca", "coll_ibcoll_collectives", "bcast,broadcast"))
        self.assertEqual(said.count("coll_ibcoll_collectives=bcast,broadcast: there is no collective 'broadcast'"), 1, said)

    def test_priority(self):
        self.assertEqual(self.run_modes(2, "forms", options=("--mca", "coll_ibcoll_priority", -1)), "")

    def test_verbose(self):
        self.assertEqual(self.run_modes(2, "forms", options=("--mca", "coll_ibcoll_verbose", 0)), "")
        said = self.run_modes(2, "forms", options=("--mca", "coll_ibcoll_verbose", 2))
        self.assertIn("rank 1: allreduce", said)


class OtherInstallations(Component):
    def test_a_rank_without_the_component(self):
        done = self.run_words("-n", 2, PROGRAM, "forms", ":",
                              "-n", 1, "env", "OMPI_MCA_mca_base_component_path=SYSTEM_DEFAULT", PROGRAM, "forms")
        self.assertEqual((done.returncode, done.stdout), (0, "forms: ok\n"), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("rank 2 of MPI_COMM_WORLD has no coll component ibcoll", done.stderr)

    def test_a_rank_with_another_version(self):
        done = self.run_ranks(3, PROGRAM, "forms", per_rank={"LD_PRELOAD": test_pmpi.LIB / "ibcoll_mpi_other_version.so"})
        self.assertEqual((done.returncode, done.stdout), (0, "forms: ok\n"), done.stderr)
        # Each of the two versions sees the first rank of the other.
        said = [line for line in done.stderr.splitlines() if "has no coll component" in line]
        self.assertEqual(sorted(line.split(" of MPI_COMM_WORLD has no coll component ibcoll ")[0][-6:] for line in said),
                         ["rank 0", "rank 2"], done.stderr)

    def test_another_open_mpi_does_not_load_it(self):
        if not shutil.which("cc"):
            self.skipTest("no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "version.c"), Path(folder, "version.so")
            source.write_text('#include <string.h>\n'
                              'int MPI_Get_library_version(char* text, int* length) {\n'
                              '  strcpy(text, "Open MPI v4.1.99, package: another"); *length = 34; return 0; }\n')
            subprocess.run(["cc", "-shared", "-fPIC", source, "-o", library], check=True)
            said = self.run_modes(1, "forms", options=("-x", f"LD_PRELOAD={library}"))
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn("not loaded: mca_coll_ibcoll.so was built for Open MPI", said)
            self.assertIn("v4.1.99", said)


class ByIbcollMpi(Component):
    def test_it_runs_and_traces(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        trace = Path(folder.name, "trace")
        line = [BIN / "ibcoll_mpi", "--trace", trace, "mpirun.openmpi", "-n", "2", PROGRAM, "forms"]
        done = subprocess.run([str(word) for word in line], capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL,
                              env={**os.environ, **test_pmpi.ENVIRONMENT, "IBCOLL_MPI_VERBOSE": "1"})
        self.assertEqual((done.returncode, done.stdout), (0, "forms: ok\n"), done.stderr)
        self.assertIn("2 ranks use ibcoll", done.stderr)
        shown = subprocess.run([str(BIN / "ibcoll_trace"), str(trace)], capture_output=True, text=True, timeout=60)
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertIn("allreduce", shown.stdout)
