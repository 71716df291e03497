# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_mpi: which MPI it finds, which line it makes of a command, and what it says where it cannot."""

import os
import shlex
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = (Path(__file__).resolve().parents[2] / os.environ.get("build", "build/release")).resolve()
PROGRAMS = {mpi: BUILD / "bin" / f"ibcoll_one_call_{mpi}" for mpi in ("openmpi", "mpich")}

OPEN_MPI = "#!/bin/sh\necho 'mpirun (Open MPI) 4.1.4'\n"
HYDRA = "#!/bin/sh\necho 'HYDRA build details:'\necho '    Version: 4.0.2'\n"
SLURM = "#!/bin/sh\necho 'slurm-wlm 22.05.8'\n"


class Installed(unittest.TestCase):
    """A copy of the tool with libraries of its own, which are empty files, and a folder of launchers that only know their
    version."""

    libraries = ("libibcoll.so.0", "ibcoll/openmpi/mca_coll_ibcoll.so", "libibcoll_pmpi_mpich.so",
                 "libibcoll_pmpi_openmpi.so")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()
        self.tool = self.root / "bin" / "ibcoll_mpi"
        self.tool.parent.mkdir()
        shutil.copy(BUILD / "bin" / "ibcoll_mpi", self.tool)
        for library in self.libraries:
            self.add(f"lib/{library}", "")
        self.add("path/mpirun", OPEN_MPI)
        self.add("path/mpiexec.hydra", HYDRA)
        self.add("path/srun", SLURM)
        self.component = f"OMPI_MCA_mca_base_component_path={self.root}/lib/ibcoll/openmpi:SYSTEM_DEFAULT"
        self.interposed = f"{self.root}/lib/libibcoll_pmpi_mpich.so"

    def add(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)
        return file

    def remove(self, name):
        (self.root / "lib" / name).unlink()

    def call(self, *words, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("OMPI_", "IBCOLL_", "LD_PRELOAD"))}
        environment["PATH"] = f"{self.root}/path:/usr/bin:/bin"
        return subprocess.run([str(self.tool), *map(str, words)], env={**environment, **variables}, capture_output=True,
                              text=True, timeout=60, stdin=subprocess.DEVNULL)

    def line(self, *words, **variables):
        done = self.call("-n", *words, **variables)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return shlex.split(done.stdout)

    def refusal(self, *words, status=1, **variables):
        done = self.call(*words, **variables)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("ibcoll_mpi: "), done.stderr)
        return done.stderr

    def program(self, mpi):
        if not PROGRAMS[mpi].exists():
            self.skipTest(f"{mpi} is not installed")
        return PROGRAMS[mpi]


class Lines(Installed):
    def test_a_launcher_of_open_mpi(self):
        self.assertEqual(self.line("mpirun", "-n", 4, "./any"), [self.component, "mpirun", "-n", "4", "./any"])

    def test_a_launcher_of_mpich(self):
        self.assertEqual(self.line("mpiexec.hydra", "-n", 4, "./any"),
                         ["mpiexec.hydra", "-genv", "LD_PRELOAD", self.interposed, "-n", "4", "./any"])

    def test_slurm_starts_programs_of_either(self):
        open_mpi, mpich = str(self.program("openmpi")), str(self.program("mpich"))
        self.assertEqual(self.line("srun", "-n", 4, open_mpi), [self.component, "srun", "-n", "4", open_mpi])
        self.assertEqual(self.line("srun", "-n", 4, mpich), [f"LD_PRELOAD={self.interposed}", "srun", "-n", "4", mpich])

    def test_a_program_alone(self):
        program = str(self.program("openmpi"))
        self.assertEqual(self.line(program, "forms"), [self.component, program, "forms"])

    def test_a_launcher_that_is_not_known_starts_a_program_that_is(self):
        self.add("path/jsrun", "#!/bin/sh\nexit 1\n")
        program = str(self.program("mpich"))
        self.assertEqual(self.line("jsrun", "-n", 4, program)[0], f"LD_PRELOAD={self.interposed}")

    def test_what_the_user_says_counts(self):
        self.assertEqual(self.line("--mpi", "openmpi", "srun", "true"), [self.component, "srun", "true"])

    def test_mpi4py_tells_the_mpi_of_a_python(self):
        # A Python that finds the program in place of the library of mpi4py.
        for mpi, start in (("openmpi", self.component), ("mpich", f"LD_PRELOAD={self.interposed}")):
            self.add("path/python3", f"#!/bin/sh\necho {self.program(mpi)}\n")
            self.assertEqual(self.line("srun", "python3", "a.py"), [start, "srun", "python3", "a.py"])
            script = self.add("script", "#!/usr/bin/env python3\n")
            self.assertEqual(self.line("srun", script)[0], start)

    def test_a_trace_and_settings_reach_the_ranks(self):
        variables = {"IBCOLL_MPI_VERBOSE": "1"}
        exports = ["-x", "IBCOLL_MPI_VERBOSE", "-x", "IBCOLL_TRACE"]
        self.assertEqual(self.line("--trace", "a b", "mpirun", "-n", 1, "a", ":", "-n", 1, "b", **variables),
                         ["IBCOLL_TRACE=a b", self.component, "mpirun", *exports, "-n", "1", "a", ":", *exports, "-n", "1",
                          "b"])
        self.assertEqual(self.line("--trace", "t", "mpiexec.hydra", "a")[:2], ["IBCOLL_TRACE=t", "mpiexec.hydra"])
        # Open MPI refuses -x beside this parameter.
        self.assertNotIn("-x", self.line("mpirun", "a", OMPI_MCA_mca_base_env_list="PATH", **variables))
        self.assertNotIn("-x", self.line("mpirun", "--mca", "mca_base_env_list", "PATH", "a", **variables))

    def test_what_is_set_already_stays(self):
        self.assertEqual(self.line("mpirun", "a", OMPI_MCA_mca_base_component_path="/other")[0],
                         f"OMPI_MCA_mca_base_component_path={self.root}/lib/ibcoll/openmpi:/other")
        self.assertEqual(self.line("mpirun", "a", **dict([self.component.split("=")]))[0], self.component)
        self.assertIn(f"{self.interposed}:libm.so.6", self.line("mpiexec.hydra", "a", LD_PRELOAD="libm.so.6"))

    def test_without_a_component_the_interposition_library_serves_open_mpi(self):
        self.remove("ibcoll/openmpi/mca_coll_ibcoll.so")
        preload = f"LD_PRELOAD={self.root}/lib/libibcoll_pmpi_openmpi.so"
        self.assertEqual(self.line("mpirun", "-n", 4, "a"), ["mpirun", "-x", preload, "-n", "4", "a"])
        self.assertEqual(self.line("--mpi", "openmpi", "srun", "a"), [preload, "srun", "a"])

    def test_the_line_does_what_the_tool_does(self):
        self.add("path/mpirun", "#!/bin/sh\n[ \"$1\" = --version ] && { echo 'mpirun (Open MPI) 4.1.4'; exit; }\n"
                                "echo \"$OMPI_MCA_mca_base_component_path\" \"$@\"; exit 7\n")
        words = ("mpirun", "-n", "4", "a b", "$HOME", "it's", "")
        printed = self.call("-n", *words).stdout
        done = self.call(*words)
        self.assertEqual(done.returncode, 7)
        self.assertIn("a b $HOME it's", done.stdout)
        by_shell = subprocess.run(["sh", "-c", printed], env={"PATH": f"{self.root}/path:/usr/bin:/bin"}, capture_output=True,
                                  text=True, timeout=60)
        self.assertEqual((by_shell.returncode, by_shell.stdout), (7, done.stdout))


class Refusals(Installed):
    def test_no_command(self):
        self.assertIn("no command", self.refusal(status=2))
        self.assertIn("--nonsense", self.refusal("--nonsense", "mpirun", status=2))
        self.assertIn("--mpi", self.refusal("--mpi", "lam", "mpirun", status=2))

    def test_a_command_that_is_not_there(self):
        self.assertIn("nosuch: not found in PATH", self.refusal("nosuch", "-n", 4, status=127))

    def test_nothing_tells_an_mpi(self):
        self.assertIn("'env'", self.refusal("env", "true"))
        self.assertIn("--mpi openmpi or --mpi mpich", self.refusal("srun", "-n", 4, "true"))

    def test_a_launcher_whose_version_says_nothing(self):
        self.add("path/mpiexec", "#!/bin/sh\necho 'Some other MPI'\n")
        self.assertIn("cannot tell the MPI of 'mpiexec'", self.refusal("mpiexec", "true"))

    def test_a_launcher_that_does_not_answer_is_given_up(self):
        self.add("path/mpiexec", "#!/bin/sh\nexec sleep 1000\n")
        self.assertIn("cannot tell the MPI of 'mpiexec'", self.refusal("mpiexec", "true"))

    def test_launcher_and_program_of_different_mpis(self):
        said = self.refusal("mpirun", "-n", 4, self.program("mpich"))
        self.assertIn("'mpirun' belongs to Open MPI", said)
        self.assertIn("loads MPICH", said)
        self.refusal("mpiexec.hydra", self.program("openmpi"))

    def test_libraries_that_are_not_installed(self):
        for library in self.libraries[1:]:
            self.remove(library)
        self.assertIn("mca_coll_ibcoll.so", self.refusal("mpirun", "a"))
        self.assertIn("libibcoll_pmpi_mpich.so", self.refusal("mpiexec.hydra", "a"))
