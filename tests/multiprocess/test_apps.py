# SPDX-License-Identifier: BSD-3-Clause
"""The applications of perf/apps over ibcoll and over MPI, what they print, what they refuse, and perf/apps/run.

The build tree is taken from $build, else build/release. What RADIX sorts, and how: test_radix.py."""

import array
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
SECONDS = 120
CORES = len(os.sched_getaffinity(0))
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "UCX_TLS": "tcp"}
LAUNCHERS = {"openmpi": ["mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"],
             "mpich": ["mpirun.mpich"]}


def start(*words, environment=None):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=SECONDS, check=False,
                          stdin=subprocess.DEVNULL, env={**ENVIRONMENT, **(environment or {})})


def over_ibcoll(ranks, name, *words, nodes=1):
    where = ["--nodes", nodes, "--net", "ucx"] if nodes > 1 else []
    return start(BUILD / "bin/ibcoll_run", "-n", ranks, *where, BUILD / f"bin/ibcoll_{name}", *words)


class Case(unittest.TestCase):
    def over_mpi(self, mpi, ranks, name, *words):
        program = BUILD / f"bin/{name}_{mpi}"
        if not program.exists() or not shutil.which(LAUNCHERS[mpi][0]):
            self.skipTest(f"{name} over {mpi} is not built here")
        return start(*LAUNCHERS[mpi], "-n", ranks, program, *words)

    def table(self, done):
        """Rows of --csv by collective."""
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["collective"]: row for row in csv.DictReader(done.stdout.splitlines())}

    def check_refused(self, done, name, *words):
        """An error in these words, printed once."""
        self.assertNotEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if line.startswith(f"{name}: ")]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(word, lines[0])


class FtTest(Case):
    def setUp(self):
        if not (BUILD / "bin/ibcoll_ft").exists():
            self.skipTest("FFTW was not installed when this was built")

    def check_table(self, rows, ranks):
        self.assertEqual((rows["alltoall"]["calls"], rows["alltoall"]["bytes"]), ("7", str(64 ** 3 * 16 // ranks ** 2)))
        self.assertEqual((rows["reduce"]["calls"], rows["reduce"]["bytes"]), ("6", "16"))
        for row in rows.values():
            inside, total = float(row["in_calls_us"]), float(row["total_us"])
            self.assertTrue(0 < inside < total, row)
            self.assertGreater(float(row["after_last_us"]), 0)
            self.assertGreater(float(row["message_us"]), 0)
            # The mean distance from the mean is at most half the distance of the two outermost.
            self.assertTrue(0 < float(row["average_case"]) <= float(row["worst_case"]) / 2 + 0.001, row)

    def test_class_s_over_ibcoll(self):
        self.check_table(self.table(over_ibcoll(4, "ft", "--csv")), 4)

    def test_class_s_over_open_mpi(self):
        self.check_table(self.table(self.over_mpi("openmpi", 4, "ft", "--csv")), 4)

    def test_class_s_over_mpich(self):
        self.check_table(self.table(self.over_mpi("mpich", min(CORES, 2), "ft", "--csv")), min(CORES, 2))

    def test_any_number_of_ranks_that_divides(self):
        for ranks, nodes in ((1, 1), (2, 2), (8, 2), (16, 1)):
            with self.subTest(ranks=ranks, nodes=nodes):
                done = over_ibcoll(ranks, "ft", nodes=nodes)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stdout, f"checksums as published; {ranks} ranks? over ibcoll\n")

    def test_a_grid_that_is_no_cube(self):
        done = over_ibcoll(2, "ft", "--class", "W")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("class W: 128 x 128 x 32", done.stdout)

    def test_ranks_that_do_not_divide(self):
        self.check_refused(over_ibcoll(3, "ft"), "ibcoll_ft", "class S on 3 ranks", "must divide 64 and 64")

    def test_unknown_class(self):
        self.check_refused(over_ibcoll(2, "ft", "--class", "B"), "ibcoll_ft", "--class: B not in {S,W,A}",
                           "ibcoll_ft --help")


class NBodyTest(Case):
    def energy(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        found = re.search(r"energy (-[0-9.]+), relative drift ([0-9.e-]+);", done.stdout)
        self.assertIsNotNone(found, done.stdout)
        self.assertLess(float(found[2]), 1e-4)
        return float(found[1])

    def test_the_same_on_any_number_of_ranks_and_library(self):
        words = ["--bodies", 50, "--steps", 20]
        alone = self.energy(over_ibcoll(1, "nbody", *words))
        self.assertTrue(-0.35 < alone < -0.15, alone)
        for ranks, nodes in ((3, 1), (4, 2), (7, 1), (16, 1)):
            with self.subTest(ranks=ranks, nodes=nodes):
                together = self.energy(over_ibcoll(ranks, "nbody", *words, nodes=nodes))
                self.assertAlmostEqual(together, alone, delta=2e-12)
        self.assertAlmostEqual(self.energy(self.over_mpi("openmpi", 3, "nbody", *words)), alone, delta=2e-12)

    def test_more_ranks_than_bodies(self):
        words = ["--bodies", 3, "--steps", 5]
        alone = self.energy(over_ibcoll(1, "nbody", *words))
        self.assertAlmostEqual(self.energy(over_ibcoll(5, "nbody", *words)), alone, delta=2e-12)

    def test_table(self):
        rows = self.table(over_ibcoll(4, "nbody", "--bodies", 100, "--steps", 10, "--csv"))
        self.assertEqual((rows["allgather"]["calls"], rows["allgather"]["bytes"]), ("10", "600"))

    def test_energy_that_drifts(self):
        done = over_ibcoll(2, "nbody", "--dt", "0.5")
        self.check_refused(done, "ibcoll_nbody", "the energy has drifted", "smaller --dt")

    def test_options(self):
        for words in (["--bodies", "1"], ["--steps", "0"], ["--dt", "-1"], ["--bodies", "many"], ["--what"]):
            with self.subTest(words=words):
                self.check_refused(over_ibcoll(2, "nbody", *words), "ibcoll_nbody", words[0], "ibcoll_nbody --help")

    def test_help(self):
        done = over_ibcoll(2, "nbody", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("Usage: ibcoll_nbody [OPTIONS]"), 1, done.stdout)

    def test_ranks_without_a_common_clock(self):
        """Rank 1's CLOCK_MONOTONIC is ahead by a day."""
        shifted = ('[ "$IBCOLL_RUN_RANK" = 1 ] || exec "$0" "$@"; '
                   'exec unshare --time --monotonic 86400 --fork "$0" "$@"')
        if subprocess.run(["unshare", "--time", "--monotonic", "86400", "--fork", "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no namespace of time to be had here")
        done = start(BUILD / "bin/ibcoll_run", "-n", 2, "sh", "-c", shifted, BUILD / "bin/ibcoll_nbody", "--bodies", 10)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The ranks have no common clock", done.stdout)


class RadixOverMpiTest(Case):
    def test_sorts(self):
        with tempfile.TemporaryDirectory(prefix="ibcoll_apps.") as name:
            source, target = pathlib.Path(name) / "in", pathlib.Path(name) / "out"
            source.write_bytes(os.urandom(40_000))
            rows = self.table(self.over_mpi("openmpi", 3, "radix", source, target, "--csv"))
            self.assertEqual({name: row["calls"] for name, row in rows.items()}, {"allgather": "3", "alltoallv": "3"})
            keys = array.array("I", source.read_bytes())
            self.assertEqual(array.array("I", target.read_bytes()), array.array("I", sorted(keys)))
            missing = self.over_mpi("openmpi", 3, "radix", source.with_name("missing"), target)
            self.check_refused(missing, "radix_openmpi", "No such file")


class SideBySideTest(Case):
    def compare(self, *words):
        return start(ROOT / "perf/apps/run", "--build", BUILD, *words, environment={"PYTHONDONTWRITEBYTECODE": "1"})

    def test_ratio(self):
        self.over_mpi("openmpi", 1, "nbody", "--bodies", 2)  # or there is nothing to compare with
        with tempfile.NamedTemporaryFile(prefix="ibcoll_apps.") as figures:
            done = self.compare("--ranks", 3, "--apps", "nbody,radix", "--bodies", 60, "--steps", 5, "--keys", 1000,
                                "--rounds", 2, "--libraries", "ibcoll,openmpi", "--json", figures.name)
            self.assertEqual(done.returncode, 0, done.stderr)
            cells = json.loads(pathlib.Path(figures.name).read_text(encoding="utf-8"))["cells"]
        self.assertEqual([(cell["application"], cell["ranks"]) for cell in cells], [("nbody", 3), ("radix", 3)])
        for cell in cells:
            own, peer = ([run["collectives_us"] for run in cell["runs"][name]] for name in ("ibcoll", "openmpi"))
            self.assertEqual((len(own), len(peer)), (2, 2))
            self.assertAlmostEqual(cell["ratio"], sum(peer) / sum(own))  # medians of two
            self.assertRegex(done.stdout, rf"{cell['application']} +ibcoll .* {cell['ratio']:.2f}  ")
        self.assertIn("geometric mean of the ratios", done.stdout)

    def test_bad_options(self):
        for words, said in ((["--apps", "ftp"], "'ftp' is none of ft, nbody, radix"),
                            (["--rounds", "0"], "'0' is not a number above 0"),
                            (["--ranks", "x"], "'x' is not a list of numbers"),
                            (["--nodes", "4", "--ranks", "2"], "at least one rank"),
                            (["--class", "B"], "invalid choice: 'B'")):
            with self.subTest(words=words):
                done = self.compare(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)

    def test_a_run_that_fails(self):
        done = self.compare("--ranks", 3, "--apps", "nbody", "--bodies", 1, "--libraries", "ibcoll", "--rounds", 1)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("perf/apps/run: ibcoll: ", done.stderr)
        self.assertIn("--bodies", done.stderr)

    def test_a_program_that_is_not_built(self):
        with tempfile.TemporaryDirectory() as empty:
            done = start(ROOT / "perf/apps/run", "--build", empty)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ibcoll_ft does not exist; build it", done.stderr)
