# SPDX-License-Identifier: BSD-3-Clause
"""Programs of ibcoll and of MPI on two nodes of Slurm: by srun, and inside of allocations."""

import json
import os
import sys
import unittest
from pathlib import Path

import slurm_bed

sys.path.append(str(Path(__file__).resolve().parents[1] / "clusters"))
import page

BUILD = (Path(__file__).resolve().parents[2] / os.environ.get("build", "build/release")).resolve()
BIN = BUILD / "bin"
JOB = BIN / "ibcoll_job"
RUN = (BIN / "ibcoll_run", "--rsh", slurm_bed.AGENT)
OPENMPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


@unittest.skipIf(slurm_bed.missing(), slurm_bed.missing())
class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bed = slurm_bed.Bed()
        cls.addClassCleanup(cls.bed.stop)
        cls.bed.start()

    def assert_job(self, done, ranks, jobs=1):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = [line for line in done.stdout.splitlines() if " wrong among " in line]
        self.assertEqual(lines, [f"0 wrong among {ranks}"] * ranks * jobs, done.stdout + done.stderr)

    def test_srun_by_pmix_and_by_pmi(self):
        for how, name in (("pmix", "pmix"), ("pmi2", "pmi")):
            for nodes, ranks in ((2, 5), (1, 3)):
                with self.subTest(how=how, nodes=nodes):
                    start = ("srun", f"--mpi={how}", "-N", nodes, "-n", ranks, JOB)
                    self.assert_job(self.bed.run(*start, 3), ranks)
                    state = self.bed.run(*start, "--state")
                    self.assertEqual(state.returncode, 0, state.stdout + state.stderr)
                    state = json.loads(state.stdout)
                    bootstrap = state["bootstrap"]
                    self.assertEqual((bootstrap["name"], bootstrap["size"], state["topology"]["nodes"]),
                                     (name, ranks, nodes))

    def test_srun_without_a_bootstrap_says_what_to_type(self):
        start = ("srun", "--mpi=none", "-N", 2, "-n", 2, JOB)
        done = self.bed.run(*start)
        self.assertNotEqual(done.returncode, 0)
        for rank in range(2):
            self.assertIn(f"rank {rank}: a launcher started this process as one of 2 ranks (SLURM_STEP_NUM_TASKS)",
                          done.stderr)
        self.assertEqual(done.stderr.count("start it by srun --mpi=pmix or srun --mpi=pmi2"), 2)
        self.assert_job(self.bed.run(*start, IBCOLL_SINGLETON="yes"), 1, jobs=2)

    def test_srun_of_one_rank(self):
        for how in ("none", "pmix", "pmi2"):
            with self.subTest(how=how):
                self.assert_job(self.bed.run("srun", f"--mpi={how}", "-n", 1, JOB), 1)

    def test_sbatch(self):
        script = self.bed.folder / "script"
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                lines = ("#!/bin/sh", "set -e", f"{' '.join(map(str, RUN))} {JOB}", f"srun --mpi=pmi2 {JOB}",
                         f"srun --mpi=pmix {JOB}")
                script.write_text("\n".join(lines) + "\n")
                output = self.bed.folder / "output"
                done = self.bed.run("sbatch", "--wait", "-N", nodes, "-n", 4, "-o", output, script)
                done.stdout = output.read_text()
                self.assert_job(done, 4, jobs=3)
                self.assertIn("ibcoll_run: hosts of the Slurm allocation (SLURM_JOB_NODELIST): n1", done.stdout)

    def test_the_lines_of_the_page(self):
        page.make_sum(self.bed.folder)
        srun, sbatch, line = page.lines("Slurm")
        (self.bed.folder / "job").write_text(f"#!/bin/sh\n{line.replace('ibcoll_run', f'ibcoll_run --rsh {slurm_bed.AGENT}')}\n")
        done = self.bed.run("sh", "-c", f"PATH=$PATH:{BIN} && {srun} && {sbatch} && cat out")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(sorted(line for line in done.stdout.splitlines() if line.startswith("rank ")),
                         sorted(2 * page.sums(4)), done.stdout + done.stderr)

    def test_salloc(self):
        for how, start in (("ibcoll_run", RUN), ("MPICH", ("mpirun.mpich",)), ("Open MPI", ("mpirun.openmpi",)),
                           ("srun", ("srun", "--mpi=pmi2"))):
            with self.subTest(how=how):
                self.assert_job(self.bed.run("salloc", "-N", 2, "-n", 4, *start, JOB, **OPENMPI), 4)

    def test_a_program_in_the_shell_of_an_allocation_is_alone(self):
        self.assert_job(self.bed.run("salloc", "-N", 2, "-n", 4, JOB), 1)

    def test_a_launcher_in_a_step_of_another_bootstrap(self):
        """The ranks have the variables of both."""
        for how, inner in (("pmix", ("mpirun.mpich", "-launcher", "fork")),
                           ("pmi2", ("mpirun.openmpi", "--oversubscribe")),
                           ("pmi2", (*RUN, "--host", "localhost:2")), ("pmix", (*RUN, "--host", "localhost:2"))):
            with self.subTest(how=how, inner=inner[0]):
                self.assert_job(self.bed.run("srun", f"--mpi={how}", "-n", 1, *inner, "-n", 2, JOB, **OPENMPI), 2)

    def test_mpi_programs_run_in_ibcoll(self):
        for how, mpi in (("pmix", "openmpi"), ("pmi2", "mpich")):
            with self.subTest(how=how):
                program = BIN / f"ft_{mpi}"
                if not program.exists():
                    self.skipTest(f"{program.name} is not built: FFTW or the MPI is not installed")
                done = self.bed.run(BIN / "ibcoll_mpi", "srun", f"--mpi={how}", "-N", 2, "-n", 4, program,
                                    IBCOLL_MPI_VERBOSE="1", **OPENMPI)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("ibcoll under MPI: 4 ranks use ibcoll", done.stderr)
                self.assertRegex(done.stderr, r"rank 0: alltoall \d+ calls, \d+ bytes, [1-9]\d* in ibcoll")


if __name__ == "__main__":
    unittest.main()
