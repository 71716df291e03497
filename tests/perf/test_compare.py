# SPDX-License-Identifier: BSD-3-Clause
"""perf/compare with programs that print known times: its ratios, means and complaints."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
TREE = ROOT / "build/release"
sys.path[:0] = [str(ROOT / "perf/peers"), str(pathlib.Path(__file__).parent)]
import beds  # pylint: disable=wrong-import-position
import compare_options  # pylint: disable=wrong-import-position
import launch  # pylint: disable=wrong-import-position
import report  # pylint: disable=wrong-import-position
import tables  # pylint: disable=wrong-import-position
from script_tests import FULL_AT_100_BYTES, full_disk, left_pipe  # pylint: disable=wrong-import-position
CORES = len(os.sched_getaffinity(0))

# A benchmark that takes `base` us for 8 bytes and ten times as long for the last size.
BENCHMARK = """#!/bin/bash
while [[ $1 == -* || $1 == [0-9]* || $1 == core || $1 == none || $1 == pml || $1 == ob1 || $1 == btl || $1 == self* ||
         $1 == mpi_yield_when_idle || $1 == */bin/* || $1 == mpirun* || $1 == */peers/* || $1 == n0:* || $1 == plm_rsh_agent ]]; do
  [[ $1 != --version && $1 != -v ]] || { echo "version 1"; exit 0; }
  shift
done
echo "some library's banner"
echo "collective,bytes,iterations,t_min,t_avg,t_max,p50,p99,errors,algorithm"
if [[ $1 == barrier ]]; then echo "barrier,0,10,1,BASE,9,3,9,0,way"; exit 0; fi
[[ $1 != FAILS ]] || { echo "no luck today" >&2; exit 3; }
echo "$1,8,10,1,BASE,9,3,9,0,way"
echo "$1,64,10,1,BASE0,9,3,9,0,way"
"""


class ProgressLine(unittest.TestCase):
    def shown(self, kind):
        leader, terminal = os.openpty()
        termios.tcsetwinsize(terminal, (24, 40))
        subprocess.run([sys.executable, "-c", "import progress; progress.show('x' * 50); progress.show()"], check=True,
                       cwd=ROOT / "perf/peers", env={**os.environ, "TERM": kind}, stderr=terminal, timeout=60)
        os.close(terminal)
        with os.fdopen(leader, "rb", 0) as screen, contextlib.suppress(OSError):  # EIO: nothing has come
            return screen.read(1000)
        return b""

    def test_fits_into_the_terminal(self):
        self.assertEqual(self.shown("xterm"), b"\r\033[K" + b"x" * 39 + b"\r\033[K")

    def test_is_not_for_a_terminal_without_escape_sequences(self):
        self.assertEqual((self.shown(""), self.shown("dumb")), (b"", b""))

    def test_of_the_scripts_is_this_one(self):
        for script in ("compare", "guidelines", "regret"):
            self.assertNotIn("033", (ROOT / "perf" / script).read_text(encoding="utf-8"))


class CompareTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_compare.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.program("build/bin/ibcoll_run", 2)
        self.program("build/bin/ibcoll_info", 2)
        self.program("build/bin/ibcoll_perf", 2)
        (self.folder / "build/tables.json").symlink_to(tables.BUILD / "tables.json")
        self.program("path/mpirun.openmpi", 6)
        self.program("path/mpirun.mpich", 1)
        for compiler in ("mpicxx.openmpi", "mpicxx.mpich"):
            self.write(f"path/{compiler}", '#!/bin/bash\nwhile [[ $1 != -o ]]; do shift; done; echo built >"$2"\n')

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def program(self, name, base, fails="nothing"):
        self.write(name, BENCHMARK.replace("BASE", str(base)).replace("FAILS", fails))

    def compare(self, *options, stdout=subprocess.PIPE, limit=()):
        path = f"{self.folder / 'path'}:{os.environ['PATH']}"
        return subprocess.run([*limit, ROOT / "perf/compare", "--build", self.folder / "build", "--rounds", "2", *options],
                              stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
                              env=dict(os.environ, PATH=path))

    def test_ratio_to_the_faster_peer(self):
        done = self.compare("--ranks", "1", "--collectives", "alltoall", "--json", str(self.folder / "figures"))
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads((self.folder / "figures").read_text(encoding="utf-8"))
        self.assertEqual([(cell["bytes"], cell["ratio"]) for cell in figures["cells"]], [(8, 0.5), (64, 0.5)])
        self.assertIn("cells below 1: 2 (of 2)", done.stdout)
        self.assertRegex(done.stdout, r"all +0\.50")
        self.assertRegex(done.stdout, r"alltoall +8 +2\.00 +6\.00 +1\.00 +0\.50  0\.50\.\.0\.50 +way")

    def test_libraries_take_turns(self):
        """In the second round the first library of the first round comes last."""
        for program in ("build/bin/ibcoll_run", "path/mpirun.openmpi"):
            self.write(program, BENCHMARK.replace("BASE", "6").replace("#!/bin/bash\n", "#!/bin/bash\n"
                       f"[[ $* != *barrier* ]] || echo ${{0##*/}} >>{self.folder / 'started'}\n"))
        self.compare("--ranks", str(CORES + 1), "--collectives", "barrier", "--libraries", "ibcoll,openmpi")
        self.assertEqual((self.folder / "started").read_text().split(),
                         ["ibcoll_run", "mpirun.openmpi", "mpirun.openmpi", "ibcoll_run"])

    def test_ranks_that_do_not_divide_by_nodes(self):
        words = beds.Bed(3).command("openmpi", 8, ["program"])
        self.assertEqual(words[words.index("--host") + 1], "n0:2,n1:3,n2:3")

    def test_quick(self):
        for words, expected in (([], (4, 5, 0.2)), (["--quick"], (8, 3, 0.02)), (["--quick", "--rounds", "7"], (8, 7, 0.02))):
            with unittest.mock.patch.object(sys, "argv", ["compare", *words]):
                options = compare_options.parse("")
            self.assertEqual((options.factor, options.rounds, options.seconds), expected)

    def test_figures_that_are_compared(self):
        slowest = {name for name in tables.collectives() if launch.figure(name) == "t_max"}
        self.assertEqual(slowest, {"gather", "gatherv", "scatter", "scatterv", "reduce", "scan", "exscan"})
        self.assertEqual({launch.figure(name, "none") for name in tables.collectives()}, {"t_last"})

    def test_emulated_nodes_have_the_same_cores_for_all(self):
        self.write("path/mpirun.openmpi", BENCHMARK.replace("BASE", "6").replace("#!/bin/bash\n", "#!/bin/bash\n"
                   f"echo \"$NODE_CPUS|$*\" >>{self.folder / 'started'}\n"))
        cpus = sorted(os.sched_getaffinity(0))
        done = self.compare("--ranks", str(4 * CORES), "--nodes", str(2 * CORES), "--collectives", "barrier")
        self.assertEqual(done.returncode, 0, done.stderr)
        shares, words = (self.folder / "started").read_text().splitlines()[-1].split("|")
        self.assertEqual(shares.split(), [f"n{node}={cpus[node % CORES]}" for node in range(2 * CORES)])
        self.assertIn("btl self,vader,tcp ", words)

    def test_emulated_nodes_with_a_core_for_each_rank(self):
        """Open MPI would bind the first rank of every node to the first core."""
        if CORES < 2:
            self.skipTest("one core")
        self.write("path/mpirun.openmpi", BENCHMARK.replace("BASE", "6").replace("#!/bin/bash\n", "#!/bin/bash\n"
                   f"echo \"$NODE_CPUS|$*\" >>{self.folder / 'started'}\n"))
        done = self.compare("--ranks", str(CORES), "--nodes", str(CORES), "--collectives", "barrier")
        self.assertEqual(done.returncode, 0, done.stderr)
        shares, words = (self.folder / "started").read_text().splitlines()[-1].split("|")
        self.assertEqual(shares.split(), [f"n{node}={cpu}" for node, cpu in enumerate(sorted(os.sched_getaffinity(0)))])
        self.assertIn("--bind-to none", words)
        self.assertNotIn("mpi_yield_when_idle", words)

    def test_over_verbs_both_have_one_device_and_no_shared_memory(self):
        bed = beds.Bed(2, net="verbs", build=TREE)
        with unittest.mock.patch.object(beds.rdma, "adapter", lambda: "rxe0"):
            words, shares = [bed.command("openmpi", ranks, [TREE / "bin/program"]) for ranks in (2, 8)]
        self.assertEqual(bed.environment()["IBCOLL_NET"], "verbs")
        for word in ("ucx", "^openib,vader", "UCX_TLS=rc,ud,self", "UCX_NET_DEVICES=rxe0:1", "UCX_IB_GID_INDEX=0",
                     "n0:1,n1:1"):
            self.assertIn(word, words)
        self.assertIn("UCX_TLS=rc,ud,self,sm", shares)
        self.assertEqual(bed.environment()["NODE_NAMESPACES"], "ipc,pid")
        self.assertNotIn("UCX_IB_GID_INDEX=0", beds.rdma.words_of_open_mpi("mlx5_0", False))  # UCX finds the address by itself

    def test_shared_memory_of_an_emulated_node_ends_there(self):
        if os.geteuid() != 0:
            self.skipTest("namespaces need root")
        words = [launch.ROOT / "perf/peers/on_emulated_node", "n1", "readlink", "/proc/self/ns/ipc", "/proc/self/ns/pid"]
        within = subprocess.run(words, env={**os.environ, "NODE_NAMESPACES": "ipc,pid"}, capture_output=True, text=True,
                                check=True).stdout.split()
        outside = [os.readlink(f"/proc/self/ns/{kind}") for kind in ("ipc", "pid")]
        self.assertEqual(len(set(within + outside)), 4, within + outside)

    def test_files_of_timed_choices_are_not_read(self):
        with unittest.mock.patch.dict(os.environ):
            os.environ.pop("IBCOLL_TUNING", None)
            self.assertEqual(beds.Bed().environment()["IBCOLL_TUNING"], "off")
            os.environ["IBCOLL_TUNING"] = "/a/file"
            self.assertEqual(beds.Bed().environment()["IBCOLL_TUNING"], "/a/file")

    def test_over_verbs_there_are_several_nodes(self):
        for words in (["--ranks", "2"], ["--cluster", "2"]):
            done = self.compare("--net", "verbs", *words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--net verbs: give --nodes N", done.stderr)

    def test_without_a_device_both_have_one_in_memory(self):
        bed = beds.Bed(2, net="verbs", build=TREE)
        with unittest.mock.patch.object(beds.rdma, "adapter", lambda: None):
            own, other = [bed.command(name, 2, [TREE / "bin/program"]) for name in ("ibcoll", "openmpi")]
            self.assertIn("memory0", bed.title())
        self.assertEqual(own[:2], [str(TREE / "bin/ibcoll_run"), "--rdma-in-memory"])
        self.assertEqual(other[:6], [*own[:2], "-n", "1", "--no-bind", "mpirun.openmpi"])
        self.assertIn("UCX_NET_DEVICES=memory0:1", other)

    def test_median_calls_have_a_ratio_of_their_own(self):
        rows = {"ibcoll": {"p50": "2"}, "openmpi": {"p50": "3"}}
        cell = report.Cell(2, "barrier", 0)
        for name, row in rows.items():
            cell.add(name, 100 if name == "ibcoll" else 50, row)
        self.assertEqual((cell.ratio(), cell.ratio_of_p50()), (0.5, 1.5))
        self.assertIn("  by p50       1.50", report.summary([cell], ["barrier"]))
        older = report.Cell(2, "barrier", 0)
        for name in rows:
            older.add(name, 1, {})
        self.assertIsNone(older.ratio_of_p50())

    def test_mpich_takes_no_part_where_it_moves_no_data(self):
        for calls, mpich in (("persistent", "-"), ("blocking", r"9\.00")):
            done = self.compare("--ranks", "1", "--collectives", "scatter", "--calls", calls)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, r"scatter +8 +9\.00 +9\.00 +" + mpich)

    def test_mpich_only_where_ranks_have_cores(self):
        done = self.compare("--ranks", str(CORES + 1), "--collectives", "barrier")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("MPICH left out", done.stdout)
        self.assertEqual([launch.libraries_for(CORES + more, ["mpich"]) for more in (0, 1)], [["mpich"], []])
        self.assertRegex(done.stdout, r"barrier +0 +2\.00 +6\.00 +3\.00")
        self.assertIn("cells below 1: none", done.stdout)

    def arrival_program(self, name, last):
        """Prints a row of --arrival, with its words in a file."""
        self.write(name, "#!/bin/bash\n" + f'[[ $1 != --version && $1 != -v ]] || {{ echo "version 1"; exit 0; }}\n'
                   f'echo "$*" >>{self.folder / "words"}\n'
                   "echo '# arrival'\necho collective,bytes,iterations,t_avg,t_last,bound,alpha,beta,errors,algorithm\n"
                   f"echo alltoall,8,10,90,{last},2.5,20,0.008,0,way\n")

    def test_arrivals_compare_what_is_after_the_last_one(self):
        self.arrival_program("build/bin/ibcoll_run", 4)
        self.arrival_program("path/mpirun.openmpi", 6)
        done = self.compare("--ranks", str(CORES + 1), "--collectives", "alltoall", "--arrival", "random:32",
                            "--json", str(self.folder / "figures"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"alltoall +8 +4\.00 +6\.00 +1\.50 .* 2\.50 +way")
        cell, = json.loads((self.folder / "figures").read_text(encoding="utf-8"))["cells"]
        self.assertEqual((cell["figure"], cell["bound_us"], cell["mean_times_us"]["openmpi"]), ("t_last", 2.5, [90, 90]))
        measuring, *compared = (self.folder / "words").read_text(encoding="utf-8").splitlines()
        self.assertIn("--arrival none", measuring)
        self.assertEqual(len(compared), 4)
        for words in compared:  # all have the delays of one measurement
            self.assertIn("--message-cost 20:0.008 --arrival random:32", words)

    def test_arrivals_that_are_none(self):
        for pattern, part in (("sometimes", "is none of none, random:MIF"), ("file:/nowhere", "there is no such file")):
            done = self.compare("--arrival", pattern)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(part, done.stderr)

    def test_libraries_of_which_none_is_left(self):
        for options in (["--libraries", "mpich", "--ranks", str(CORES + 1)], ["--libraries", "mpich", "--nodes", "2"]):
            done = self.compare("--collectives", "barrier", *options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--libraries: none is left for", done.stderr)

    def test_numbers_that_are_none(self):
        for option in ("--factor", "--rounds"):
            done = self.compare(option, "0")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("--factor is at least 2, --rounds at least 1", done.stderr)
        for option, text in (("--seconds", "0"), ("--seconds", "nan"), ("--timeout", "nan"), ("--timeout", "inf")):
            done = self.compare(option, text)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"{option}: {text!r} is not a number of seconds above 0", done.stderr)

    def test_output_that_fails(self):
        """A full disk is an error, a reader that leaves is none."""
        full = "perf/compare: standard output: No space left on device\n"
        words = ["--ranks", "1", "--collectives", "barrier"]
        for stdout, words, status, said in ((full_disk(), words, 1, full), (full_disk(), ["--help"], 1, full),
                                            (left_pipe(), words, 141, "")):
            with stdout:
                done = self.compare(*words, stdout=stdout)
            self.assertEqual((done.returncode, done.stderr), (status, said))

    def test_figures_that_cannot_be_written(self):
        self.write("build/bin/ibcoll_run", f"#!/bin/bash\ntouch {self.folder}/started\n")
        done = self.compare("--ranks", "1", "--collectives", "barrier", "--json", self.folder / "none/figures")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--json: cannot write ", done.stderr)
        self.assertFalse((self.folder / "started").exists())
        self.program("build/bin/ibcoll_run", 2)
        (self.folder / "figures").write_text("old")
        done = self.compare("--ranks", "1", "--collectives", "barrier", "--json", self.folder / "figures", limit=FULL_AT_100_BYTES)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(done.stderr, f"perf/compare: {self.folder}/figures: File too large\n")
        self.assertEqual((self.folder / "figures").read_text(), "old")
        self.assertEqual(len(list(self.folder.glob("figures*"))), 1)

    def test_a_signal_while_a_process_is_started(self):
        kept = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
        self.addCleanup(signal.signal, signal.SIGINT, kept)
        known = False
        with self.assertRaises(KeyboardInterrupt):
            with launch.signals_deferred():
                signal.raise_signal(signal.SIGINT)
                time.sleep(0.01)
                known = True
        self.assertTrue(known)

    def test_what_it_has_started_ends_with_it(self):
        self.write("path/mpirun.openmpi", "#!/bin/bash\n[[ $1 != --version ]] || exit 0\necho $$ >%s\nsleep 1000\n"
                   % (self.folder / "pid"))
        for number in (signal.SIGINT, signal.SIGTERM):
            command = [ROOT / "perf/compare", "--build", self.folder / "build", "--ranks", "1", "--collectives", "barrier",
                       "--libraries", "openmpi"]
            path = f"{self.folder / 'path'}:{os.environ['PATH']}"
            (self.folder / "pid").unlink(missing_ok=True)
            with subprocess.Popen(command, env=dict(os.environ, PATH=path), stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL) as run:
                end = time.monotonic() + 30
                while not ((self.folder / "pid").exists() and (self.folder / "pid").read_text()) and time.monotonic() < end:
                    time.sleep(0.02)
                pid = int((self.folder / "pid").read_text())
                run.send_signal(number)
                self.assertNotEqual(run.wait(30), 0)
                self.assertFalse(os.path.exists(f"/proc/{pid}"))

    def test_two_ranks_know_how_far_apart_their_cores_are(self):
        if CORES < 2:
            self.skipTest("one core")
        self.write("build/bin/ibcoll_core_distance", "#!/bin/bash\n[[ -e $0.seen ]] && echo 300 || { echo 60; touch $0.seen; }\n")
        done = self.compare("--ranks", "2", "--collectives", "barrier")
        self.assertIn("180 ns from core to core (60..300); before 1 of 2 groups of launches over 1.5 times", done.stdout, done.stderr)
        done = self.compare("--ranks", "1", "--collectives", "barrier")
        self.assertNotIn("from core to core", done.stdout, done.stderr)

    def test_the_slowest_rank_counts_where_others_leave_early(self):
        done = self.compare("--ranks", "1", "--collectives", "gatherv", "--json", str(self.folder / "figures"))
        self.assertEqual(done.returncode, 0, done.stderr)
        cells = json.loads((self.folder / "figures").read_text(encoding="utf-8"))["cells"]
        self.assertEqual([(cell["figure"], cell["ratio"]) for cell in cells], [("t_max", 1), ("t_max", 1)])
        self.assertIn("cells below 1: none (of 2)", done.stdout)

    def test_all_collectives_with_a_distribution_and_a_root(self):
        words = self.folder / "words"
        for program in ("build/bin/ibcoll_run", "path/mpirun.openmpi"):
            self.write(program, BENCHMARK.replace("BASE", "6").replace("#!/bin/bash\n", f"#!/bin/bash\necho \"$*\" >>{words}\n"))
        done = self.compare("--ranks", "4", "--collectives", "all", "--distribution", "spikes", "--root", "2", "--libraries",
                            "ibcoll,openmpi", "--rounds", "1", "--calls", "oneshot", "--json", str(self.folder / "figures"))
        self.assertEqual(done.returncode, 0, done.stderr)
        figures = json.loads((self.folder / "figures").read_text(encoding="utf-8"))
        self.assertEqual((figures["distribution"], figures["root"], figures["calls"]), ("spikes", 2, "oneshot"))
        self.assertEqual(len({cell["collective"] for cell in figures["cells"]}), 16)
        runs = [line for line in words.read_text().splitlines() if "--bytes" in line]
        self.assertEqual(len(runs), 2 * 16)
        for line in runs:
            self.assertIn("--calls oneshot --distribution spikes --root 2", line)

    def test_the_mpi_program_through_ibcoll(self):
        """Open MPI's program by the component takes 3 where Open MPI takes 6 and ibcoll 2."""
        self.program("build/bin/ibcoll_mpi", 3)
        done = self.compare("--ranks", "4", "--collectives", "bcast", "--through", "openmpi")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("MPICH", done.stdout)
        self.assertRegex(done.stdout, r"bcast +8 +2\.00 +6\.00 +3\.00 +3\.00 +3\.00\.\.3\.00 +2\.00 +0\.67 way")
        self.assertIn("through ibcoll: 2.00 times faster than the MPI alone (geometric mean), 0.67 of", done.stdout)
        self.assertIn("cells with less than 0.9 of it: 2 (of 2)", done.stdout)

    def test_a_program_that_falls_back_to_the_mpi_has_no_time(self):
        self.write("build/bin/ibcoll_mpi", BENCHMARK.replace("BASE", "6").replace(
            "#!/bin/bash\n", "#!/bin/bash\necho 'ibcoll under MPI: rank 3 cannot use ibcoll: no network' >&2\n"))
        done = self.compare("--ranks", "4", "--collectives", "bcast", "--through", "openmpi")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("cannot use ibcoll: no network", done.stderr)
        self.assertNotIn("through ibcoll:", done.stdout)

    def test_through_ibcoll_emulated_nodes_are_joined_by_loopback(self):
        words = beds.Bed(2, through="openmpi", build=self.folder).command("through", 4, ["program"])
        self.assertEqual(words[-3:], ["-x", "UCX_NET_DEVICES=lo", "program"])

    def test_the_interposition_library_is_loaded_before_the_mpi(self):
        words = beds.Bed(through="pmpi", build=self.folder).command("through", 2, ["program"])
        self.assertEqual(words[-3:], ["-x", f"LD_PRELOAD={self.folder}/lib/libibcoll_pmpi_openmpi.so", "program"])
        words = beds.Bed(through="mpich", build=self.folder).command("through", 2, ["program"])
        self.assertEqual(words[:2], [f"{self.folder}/bin/ibcoll_mpi", "mpirun.mpich"])

    def test_geometric_mean(self):
        self.program("path/mpirun.mpich", 8)
        done = self.compare("--ranks", "1", "--collectives", "barrier,bcast", "--libraries", "ibcoll,openmpi,mpich")
        self.assertRegex(done.stdout, r"bcast +3\.00\n +all +3\.00")

    def test_beside_busy_processes_which_end_with_it(self):
        self.write("build/bin/ibcoll_run", "#!/bin/bash\npgrep -P $PPID -f 'sum.range' >${0%/*}/busy\nexit 3\n")
        done = self.compare("--ranks", "16", "--collectives", "bcast", "--busy", "2")
        self.assertIn("; beside 2 busy processes; blocking calls\n", done.stdout)
        busy = (self.folder / "build/bin/busy").read_text(encoding="utf-8").split()
        self.assertEqual(len(busy), 2)
        for process in busy:
            self.assertFalse(os.path.exists(f"/proc/{process}"))

    def test_failing_peer_is_reported_and_the_rest_is_shown(self):
        self.program("path/mpirun.mpich", 1, fails="bcast")
        done = self.compare("--ranks", "1", "--collectives", "barrier,bcast")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED MPICH", done.stderr)
        self.assertIn("exit status 3", done.stderr)
        self.assertIn("no luck today", done.stderr)
        self.assertRegex(done.stdout, r"bcast +8 +2\.00 +6\.00 +- +3\.00")

    def test_a_peer_that_fails_in_a_later_round_has_no_figures(self):
        """Nor is it started again for this collective; for others it is."""
        started = self.folder / "started"
        self.write("path/mpirun.mpich", BENCHMARK.replace("BASE", "1").replace("#!/bin/bash\n", "#!/bin/bash\n"
                   f"[[ $* != *bcast* ]] || echo >>{started}\n[[ $* != *bcast* || $(wc -l <{started}) -lt 2 ]] || exit 3\n"))
        done = self.compare("--ranks", "1", "--collectives", "bcast,barrier", "--rounds", "3")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(started.read_text()), 2)
        self.assertRegex(done.stdout, r"bcast +8 +2\.00 +6\.00 +- +3\.00")
        self.assertRegex(done.stdout, r"barrier +0 +2\.00 +6\.00 +1\.00 +0\.50")

    def test_bad_options(self):
        for options, word in ((["--bytes", "9"], "'9'"), (["--ranks", "0"], "'0'"), (["--rounds", "-1"], "--rounds"),
                              (["--nodes", "0"], "'0'"), (["--busy", "some"], "'some'"),
                              (["--ranks", "16,2", "--root", "2"], "--root 2: there are 2 ranks"),
                              (["--collectives", "alltoal"], "'alltoal'"), (["--libraries", "nccl"], "'nccl'")):
            with self.subTest(options=options):
                done = self.compare(*options)
                self.assertEqual(done.returncode, 2)
                self.assertIn(word, done.stderr)

    def test_ibcoll_not_built(self):
        (self.folder / "build/bin/ibcoll_perf").unlink()
        done = self.compare()
        self.assertEqual(done.returncode, 1)
        self.assertIn("build first", done.stderr)
