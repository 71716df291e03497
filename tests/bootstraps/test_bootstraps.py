# SPDX-License-Identifier: BSD-3-Clause
"""The same programs under ibcoll_run, mpirun of Open MPI (by PMIx), mpirun of MPICH (by PMI) and alone; ibcoll inside
MPI programs of both implementations."""

import json
import os
import shutil
import socket
import subprocess
import time
import unittest
from pathlib import Path

BUILD = (Path(__file__).resolve().parents[2] / os.environ.get("build", "build/release")).resolve()
BIN, LIB = BUILD / "bin", BUILD / "lib"

# As root, Open MPI needs two variables; more ranks than cores need --oversubscribe.
OPENMPI = ["mpirun.openmpi", "--oversubscribe"]
OPENMPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                       "OMPI_MCA_mpi_yield_when_idle": "1"}


def run(*command, **variables):
    environment = {**os.environ, **OPENMPI_ENVIRONMENT, **variables}
    return subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=100,
                          stdin=subprocess.DEVNULL)


class Job(unittest.TestCase):
    def assert_given_up(self, said, start):
        """A time that the ranks which come need as well: the shortest that does."""
        for seconds in (0.5, 2, 8, 32):
            done = start(seconds)
            self.assertNotIn(done.returncode, (0, 124), done.stderr)
            if f"{said} within {seconds:g} s (IBCOLL_TIMEOUT)" in done.stderr:
                return done
        self.fail(done.stderr)

    def assert_all_right(self, done, line, count):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([seen for seen in done.stdout.splitlines() if seen.endswith(line)].__len__(), count, done.stdout)

    def assert_job(self, done, ranks):
        self.assert_all_right(done, f"0 wrong among {ranks}", ranks)

    def bootstrap_of(self, *launcher):
        done = run(*launcher, BIN / "ibcoll_job", "--state")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)["bootstrap"]


class WithoutMpi(Job):
    def test_alone(self):
        self.assert_job(run(BIN / "ibcoll_job"), 1)

    def test_ibcoll_run(self):
        self.assert_job(run(BIN / "ibcoll_run", "-n", "4", "--nodes", "2", BIN / "ibcoll_job"), 4)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_mpirun_of_open_mpi_by_pmix(self):
        for ranks in (1, 4, 9):
            with self.subTest(ranks=ranks):
                self.assert_job(run(*OPENMPI, "-n", ranks, BIN / "ibcoll_job"), ranks)

    def test_contexts_one_after_the_other(self):
        self.assert_job(run(BIN / "ibcoll_run", "-n", "3", BIN / "ibcoll_job", 6), 3)
        if shutil.which("mpirun.openmpi"):
            for _ in range(4):
                self.assert_job(run(*OPENMPI, "-n", 3, BIN / "ibcoll_job", 6), 3)

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "MPICH is not installed")
    def test_mpirun_of_mpich_by_pmi(self):
        for ranks in (1, 4, 9):
            with self.subTest(ranks=ranks):
                self.assert_job(run("mpirun.mpich", "-n", ranks, BIN / "ibcoll_job", 2), ranks)

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "MPICH is not installed")
    def test_mpirun_of_mpich_is_the_launcher_next_to_the_ranks(self):
        """A batch system's shell may have variables of PMIx, which tell of its own job."""
        done = run("mpirun.mpich", "-n", 2, BIN / "ibcoll_job", PMIX_RANK="0", PMIX_NAMESPACE="of.the.shell",
                   SLURM_STEP_NUM_TASKS="1")
        self.assert_job(done, 2)

    @unittest.skipUnless(shutil.which("mpirun.mpich"), "MPICH is not installed")
    def test_mpirun_of_mpich_without_its_socket(self):
        done = run("mpirun.mpich", "-pmi-port", "-n", 2, BIN / "ibcoll_job")
        self.assertEqual(done.stderr.count("leave out mpirun's option -pmi-port"), 2, done)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_the_state_names_the_bootstrap(self):
        self.assertEqual(self.bootstrap_of()["name"], "single")
        self.assertEqual(self.bootstrap_of(BIN / "ibcoll_run", "-n", "2")["name"], "ibcoll_run")
        self.assertEqual(self.bootstrap_of(*OPENMPI, "-n", "2")["name"], "pmix")
        if shutil.which("mpirun.mpich"):
            self.assertEqual(self.bootstrap_of("mpirun.mpich", "-n", "2")["name"], "pmi")


class LateUse(Job):
    """A plugin, loaded with RTLD_LOCAL, uses ibcoll while the process ends: the destructors of static objects, ibcoll's
    included, have run by then."""

    def check(self, launcher, when, ranks):
        done = run(*launcher, "-n", ranks, BIN / "ibcoll_late_program", BIN / "ibcoll_late_plugin.so", when, UCX_TLS="tcp")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("late: right"), ranks, done.stderr)
        self.assertNotIn("ibcoll: error", done.stderr)

    def test_by_the_plugins_destructor(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                self.check([BIN / "ibcoll_run", "--nodes", nodes, "--net", "ucx" if nodes > 1 else "auto"], "destructor", 4)

    def test_by_a_function_of_atexit(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                self.check([BIN / "ibcoll_run", "--nodes", nodes, "--net", "ucx" if nodes > 1 else "auto"], "atexit", 4)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_under_pmix(self):
        for when in ("destructor", "atexit"):
            with self.subTest(when=when):
                self.check(OPENMPI, when, 3)

    def test_a_thread_in_the_middle_of_calls(self):
        """No crash, whatever the calls return."""
        for ranks, nodes in ((1, 1), (2, 1), (4, 2)):
            with self.subTest(ranks=ranks, nodes=nodes):
                done = run(BIN / "ibcoll_run", "-n", ranks, "--nodes", nodes, BIN / "ibcoll_late_program",
                           BIN / "ibcoll_late_plugin.so", "thread", UCX_TLS="tcp")
                self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)  # 3: a rank that is left has an error

    def test_a_thread_in_the_middle_of_ucx(self):
        """UCX does not end before the thread is outside, nor is it entered again."""
        done = run(BIN / "ibcoll_run", "-n", 4, "--nodes", 2, "--net", "ucx", BIN / "ibcoll_late_program",
                   BIN / "ibcoll_late_plugin.so", "thread", BIN / "ibcoll_later_plugin.so", "inside", UCX_TLS="tcp")
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assertNotIn("inside of UCX after its end", done.stderr)

    def test_by_the_destructor_of_a_plugin_that_was_loaded_after_ucx(self):
        done = run(BIN / "ibcoll_run", "-n", 4, "--nodes", 2, "--net", "ucx", BIN / "ibcoll_late_program",
                   BIN / "ibcoll_late_plugin.so", "destructor", BIN / "ibcoll_later_plugin.so", "too_late", UCX_TLS="tcp")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("late: right"), 8, done.stderr)

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_a_context_that_stays_leaves_pmix_all_the_same(self):
        done = run(*OPENMPI, "-n", 2, BIN / "ibcoll_late_program", BIN / "ibcoll_late_plugin.so", "leak")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


@unittest.skipUnless((LIB / "libibcoll_pmix.so").exists(), "built without libpmix")
class PmixModule(Job):
    program = (BIN / "ibcoll_pmix_exchange", LIB / "libibcoll_pmix.so")

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_exchanges_of_many_sizes(self):
        for ranks in (1, 5, 16):
            with self.subTest(ranks=ranks):
                done = run(*OPENMPI, "-n", ranks, *self.program)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(done.stdout, f"pmix size {ranks} local 1\n")

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "Open MPI is not installed")
    def test_a_rank_that_never_comes_is_given_up_after_the_timeout(self):
        self.assert_given_up("PMIx_Fence: not all 2 ranks came", lambda seconds: run(
            "timeout", 80, *OPENMPI, "-n", 1, "-x", f"IBCOLL_TIMEOUT={seconds:g}", BIN / "ibcoll_job", ":", "-n", 1, "sleep", 1000))

    def test_a_server_that_does_not_answer_is_given_up_after_the_timeout(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = f"nobody.0;tcp4://127.0.0.1:{silent.getsockname()[1]}"
            versions = {f"PMIX_SERVER_URI{version}": address for version in ("2", "21", "3", "4", "41")}
            self.assert_given_up("PMIx_Init: the PMIx server did not answer", lambda seconds: run(
                "timeout", 80, BIN / "ibcoll_job", PMIX_RANK="0", PMIX_NAMESPACE="nobody", IBCOLL_TIMEOUT=f"{seconds:g}", **versions))

    def test_without_a_server_is_an_error_that_says_so(self):
        done = run(*self.program, PMIX_RANK="0", PMIX_NAMESPACE="nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("PMIx_Init", done.stderr)


class InsideMpi(Job):
    def check(self, launcher, mpi, **variables):
        program = BIN / f"ibcoll_mpi_program_{mpi}"
        if not program.exists():
            self.skipTest(f"{mpi} is not installed")
        self.assert_all_right(run(*launcher, "-n", "5", program, **variables), ": 0 wrong, 0 bad", 5)

    def test_open_mpi(self):
        self.check(OPENMPI, "openmpi")

    def test_a_setting_that_is_wrong_on_one_rank_is_told_to_all(self):
        program = BIN / "ibcoll_mpi_program_openmpi"
        if not program.exists():
            self.skipTest("openmpi is not installed")
        begin = time.monotonic()
        for setting in ("IBCOLL_WAIT=sometimes", "IBCOLL_ALLREDUCE=magic"):
            done = run(*OPENMPI, "-n", 1, "-x", setting, program, ":", "-n", 4, program)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stderr.count("; there are auto" if "magic" in setting else setting), 3, done.stderr)  # ranks 0, 2 and 4 are a job of their own
            self.assertEqual(done.stderr.count("rank 2 could not join the job"), 2, done.stderr)
        self.assertLess(time.monotonic() - begin, 100)  # well before the deadline of joining, twice

    def test_a_rank_that_never_comes_is_given_up_after_the_timeout(self):
        program = BIN / "ibcoll_mpi_program_openmpi"
        if not program.exists():
            self.skipTest("openmpi is not installed")
        done = self.assert_given_up("not all 2 ranks came", lambda seconds: run(
            "timeout", 80, *OPENMPI, "-n", 4, program, "absent", IBCOLL_TIMEOUT=f"{seconds:g}"))
        self.assertIn("the next exchange: an earlier exchange failed or timed out", done.stderr)

    def test_mpich(self):
        self.check(["mpirun.mpich"], "mpich")

    def test_mpich_alone_uses_its_connection_to_the_launcher(self):
        program = BIN / "ibcoll_mpi_program_mpich"
        if not program.exists():
            self.skipTest("mpich is not installed")
        done = run("mpirun.mpich", "-n", 2, program, "unasked")
        self.assert_all_right(done, "-1 wrong without ibcoll_mpi_bootstrap", 2)
        said = "MPI runs in this process and uses the connection to the launcher"
        self.assertEqual(done.stderr.count(said), 2, done.stderr)
