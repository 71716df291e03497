# SPDX-License-Identifier: BSD-3-Clause
"""perf/cluster makes nodes, runs jobs across them and leaves nothing; perf/compare --cluster
runs there."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"
CLUSTER, COMPARE, AGENT = ROOT / "perf/cluster", ROOT / "perf/compare", ROOT / "perf/peers/on_cluster_node"
NAME = f"t{os.getpid()}"  # a cluster that is in use stays as it is
ENVIRONMENT = {**os.environ, "PERF_CLUSTER": NAME, "PYTHONDONTWRITEBYTECODE": "1"}

# SINK ADDRESS prints its port, then bytes, time of the first, time of the last. SOURCE ADDRESS PORT sends for 3 s.
SINK = """
import socket, sys, time
listener = socket.create_server((sys.argv[1], 0))
listener.settimeout(30)
print(listener.getsockname()[1], flush=True)
peer = listener.accept()[0]
peer.settimeout(30)
times, count = [], 0
while data := peer.recv(65536):
    times.append(time.monotonic())
    count += len(data)
print(count, times[0], times[-1])
"""
SOURCE = """
import socket, sys, time
sink = socket.create_connection((sys.argv[1], int(sys.argv[2])), 30)
end = time.monotonic() + 3
while time.monotonic() < end:
    sink.sendall(bytes(65536))
"""


def run(*words, **more):
    return subprocess.run([str(word) for word in words], env={**ENVIRONMENT, **more}, capture_output=True, text=True,
                          timeout=100, stdin=subprocess.DEVNULL, check=False)


def wait_for(condition, what):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"30 s without {what}")
        time.sleep(0.01)


def alive(pid):
    """Whether a process runs; one that has ended may still wait for its parent to take its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def traces():
    """What there is of the cluster on this machine, and what it might have changed."""
    folders = [path for parent in ("/run/netns", "/run/ibcoll-cluster", "/etc/netns", "/dev/shm", "/tmp")
               for path in Path(parent).glob(f"*{NAME}*")]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if NAME in line]
    links = sorted(os.listdir("/sys/class/net"))
    return {"folders": folders, "mounts": mounts, "links": links, "hosts": Path("/etc/hosts").read_bytes()}


class Arguments(unittest.TestCase):
    def test_bad_arguments(self):
        for words, said in ((["up", "0"], "'0' is not a number of nodes from 1 to 200"), (["up", "-1"], "'-1'"),
                            (["up", "two"], "'two'"), (["up", "201"], "'201'"), (["up"], "N"),
                            (["up", "2", "--rate", "1gb"], "'1gb' is not a rate from 1mbit to 100gbit"),
                            (["up", "2", "--rate", "0gbit"], "'0gbit'"), (["up", "2", "--rate", "-1gbit"], "--rate"),
                            (["up", "2", "--rate", "900kbit"], "'900kbit'"), (["exec", "n1"], "a command is missing"),
                            ([], "what"), (["sideways"], "'sideways'")):
            with self.subTest(words=words):
                done = run(CLUSTER, *words)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(said, done.stderr)
        for words, said in ((["--cluster", "0"], "'0'"), (["--cluster", "2", "--nodes", "2"], "not allowed with"),
                            (["--cluster", "4", "--ranks", "2"], "--cluster: a node has at least one rank"),
                            (["--cluster", "2", "--ranks", "2", "--libraries", "mpich"], "none is left for")):
            with self.subTest(words=words):
                done = run(COMPARE, *words)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(said, done.stderr)

    def test_another_user_than_root(self):
        other = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv"):
                self.skipTest("root cannot become another user: setpriv is not installed")
            other = ["setpriv", "--reuid", "65534"]
            if run(*other, "test", "-x", CLUSTER).returncode != 0:
                self.skipTest(f"another user cannot run {CLUSTER}")
        for words in (["up", "2"], ["down"], ["status"], ["exec", "n1", "true"]):
            done = run(*other, CLUSTER, *words)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("network namespaces need root", done.stderr)


class NeedsNamespaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("network namespaces need root")
        made = run("ip", "netns", "add", f"{NAME}probe")
        if made.returncode != 0:
            raise unittest.SkipTest(f"no network namespaces here: {made.stderr.strip()}")
        run("ip", "netns", "delete", f"{NAME}probe")

    def setUp(self):
        self.before = traces()
        self.addCleanup(run, CLUSTER, "down")

    def done(self, *words, status=0, **more):
        done = run(*words, **more)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def assert_nothing_is_left(self):
        self.assertIn("no cluster is up", self.done(CLUSTER, "status", status=1))
        self.assertEqual(traces(), self.before)


class Nodes(NeedsNamespaces):
    def test_up_and_down_as_often_as_wanted(self):
        self.assertRegex(self.done(CLUSTER, "up", "2"), r"n1 +10\.200\.0\.1 +1gbit .*\nn2 +10\.200\.0\.2 +1gbit")
        self.assertIn("is up already", self.done(CLUSTER, "up", "2"))
        for words in (["up", "3"], ["up", "2", "--rate", "100mbit"]):
            self.assertRegex(self.done(CLUSTER, *words, status=1), "cluster of 2 nodes at 1gbit with .* is up already")
        shown = self.done(COMPARE, "--cluster", "3", "--build", BIN.parent, "--libraries", "ibcoll", status=1)
        self.assertIn("--cluster 3: a cluster of 2 nodes is up already", shown)
        self.assertRegex(self.done(CLUSTER, "status"), r"(?s)n1 .*n2 ")
        subprocess.run(["ip", "netns", "delete", f"{NAME}-n2"], check=True)
        self.assertIn("there is a part of one", self.done(CLUSTER, "status", status=1))
        for _ in range(2):
            self.done(CLUSTER, "down")
            self.assert_nothing_is_left()

    def test_a_node_has_a_name_an_address_and_folders_of_its_own(self):
        self.done(CLUSTER, "up", "2")
        shown = self.done(CLUSTER, "exec", "n2", "sh", "-c", 'hostname; getent hosts n1; ls -A /dev/shm; echo "$1"',
                         "x", "a  b")
        self.assertEqual(shown, "n2\n10.200.0.1      n1\na  b\n")
        self.done(CLUSTER, "exec", "n1", "sh", "-c", f"echo one >/dev/shm/{NAME}; echo two >$TMPDIR/b")
        self.assertEqual(self.done(CLUSTER, "exec", "n1", "sh", "-c", f"cat /dev/shm/{NAME} $TMPDIR/b"), "one\ntwo\n")
        self.assertEqual(self.done(CLUSTER, "exec", "n2", "sh", "-c", "ls -A /dev/shm $TMPDIR | wc -w"), "2\n")
        self.assertFalse(Path("/dev/shm", NAME).exists())
        self.done(CLUSTER, "exec", "n1", "sh", "-c", "exit 7", status=7)
        self.assertIn("'n3' is not a node; there is n1 to n2", self.done(CLUSTER, "exec", "n3", "true", status=1))
        self.assertIn("call perf/cluster from outside", self.done(CLUSTER, "exec", "n1", CLUSTER, "down", status=1))
        self.assertIn("1 process", self.done(CLUSTER, "exec", "n1", CLUSTER, "status"))
        self.done(CLUSTER, "down")
        self.assert_nothing_is_left()
        self.assertIn("no cluster is up", self.done(CLUSTER, "exec", "n1", "true", status=1))

    def test_nodes_share_the_cpus_out_or_have_all(self):
        cpus = sorted(os.sched_getaffinity(0))
        self.done(CLUSTER, "up", str(len(cpus)))
        for i, cpu in enumerate(cpus):
            shown = self.done(CLUSTER, "exec", f"n{i + 1}", "python3", "-c", "import os; print(os.sched_getaffinity(0))")
            self.assertEqual(shown, f"{{{cpu}}}\n")
        if len(cpus) > 1:
            shown = self.done(CLUSTER, "up", str(len(cpus)), "--all-cpus", status=1)
            self.assertIn("with 1 CPU for each is up already", shown)
        self.done(CLUSTER, "down")
        self.assertIn("all CPUs", self.done(CLUSTER, "up", "2", "--all-cpus"))
        shown = self.done(CLUSTER, "exec", "n2", "python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
        self.assertEqual(shown, f"{cpus}\n")
        self.assertIn("all CPUs for each", self.done(*Compare.words, "--libraries", "ibcoll", "--rounds", "1"))

    def rate(self, *pairs):
        """Mbit/s of payload that all pairs of source and sink move together."""
        sinks, sources = [], []
        for source, sink in pairs:
            listening = self.start("exec", sink, "python3", "-c", SINK, f"10.200.0.{sink[1:]}")
            sinks.append(listening)
            port = listening.stdout.readline().strip()
            sources.append(self.start("exec", source, "python3", "-c", SOURCE, f"10.200.0.{sink[1:]}", port))
        shown = [sink.communicate(timeout=60)[0].split() for sink in sinks]
        self.assertEqual([source.wait(30) for source in sources], [0] * len(pairs))
        begin, end = min(float(first) for _, first, _ in shown), max(float(last) for _, _, last in shown)
        return sum(int(count) for count, _, _ in shown) * 8e-6 / (end - begin)

    def start(self, *words):
        process = subprocess.Popen([str(CLUSTER), *words], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_a_job_finds_out_what_a_link_carries(self):
        self.done(CLUSTER, "up", "2", "--rate", "200mbit")
        reported = float(self.done(CLUSTER, "exec", "n1", "cat", "/sys/class/net/eth0/speed"))
        self.assertGreaterEqual(reported, 1000)
        shown = self.done(CLUSTER, "exec", "n1", BIN / "ibcoll_run", "--host", "n1:1,n2:1", "--rsh", AGENT, BIN / "ibcoll_info",
                         "-d", "--json")
        timed = [one["link_mbits"] for one in json.loads(shown)["transports"] if "link_mbits" in one]
        self.assertEqual(len(timed), 1)
        self.assertLess(timed[0], 400)  # less where the machine is busy

    def test_a_link_carries_its_rate_in_each_direction_and_no_more(self):
        self.done(CLUSTER, "up", "3", "--rate", "20mbit")
        for pairs in ([("n1", "n2")], [("n1", "n2"), ("n1", "n3")], [("n2", "n1"), ("n3", "n1")]):
            total = self.rate(*pairs)
            self.assertTrue(10 < total < 22, f"{total} Mbit/s over one link: {pairs}")
        total = self.rate(("n1", "n2"), ("n2", "n3"), ("n3", "n1"))
        self.assertTrue(25 < total < 66, f"{total} Mbit/s over three links")

    def test_ranks_on_two_nodes(self):
        self.done(CLUSTER, "up", "2")
        job = [CLUSTER, "exec", "n1", BIN / "ibcoll_run", "--host", "n1:1,n2:1", "--rsh", AGENT]
        self.assertEqual(sorted(self.done(*job, "hostname").split()), ["n1", "n2"])
        shown = json.loads(self.done(*job, BIN / "ibcoll_perf", "barrier", "--iterations", "20", "--format", "json"))
        self.assertEqual(shown["ranks"], 2)
        self.done(CLUSTER, "down")
        self.assert_nothing_is_left()

    def test_programs_that_are_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(shutil.which("python3"), Path(folder) / "python3")
            os.symlink(shutil.which("env"), Path(folder) / "env")
            for program in ("ip", "tc"):
                shown = self.done(CLUSTER, "up", "2", PATH=folder, status=1)
                self.assertIn(f"the program {program} is not found in PATH; install it", shown)
                self.assertIn("apt-get install iproute2", shown)
                os.symlink(shutil.which(program), Path(folder) / program)

    def test_a_name_that_is_none(self):
        for name in ("", "A", "a-b", "../x", "1a", "a" * 21):
            self.assertIn("PERF_CLUSTER=", self.done(CLUSTER, "up", "2", PERF_CLUSTER=name, status=1))


class UnderMpi(NeedsNamespaces):
    """Unmodified MPI programs, two ranks on each of four nodes."""

    hosts = [f"n{node}" for node in range(1, 5)]
    preload = f"LD_PRELOAD={BIN.parent}/lib/libibcoll_pmpi_"
    open_mpi = ["mpirun.openmpi", "--host", ",".join(f"{host}:2" for host in hosts), "--mca", "plm_rsh_agent", AGENT,
                "--mca", "oob_tcp_if_include", "eth0", "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
                "--mca", "btl_tcp_if_include", "eth0", "--oversubscribe", "--bind-to", "none", "--mca",
                "mpi_yield_when_idle", "1", "--mca", "coll", "^tuned"]
    mpich = ["mpirun.mpich", "-launcher", "rsh", "-launcher-exec", AGENT, "-hosts", ",".join(f"{host}:2" for host in hosts)]

    def setUp(self):
        super().setUp()
        self.done(CLUSTER, "up", "4")

    def assert_runs(self, mpi, *launcher):
        if not shutil.which(f"mpirun.{mpi}"):
            self.skipTest(f"{mpi} is not installed")
        for words, ran in ((["scenarios", "comm_kinds"], ("barrier", "allreduce", "scan")),
                           (["scenarios", "persistent_order"], ("barrier", "allreduce")),
                           (["collectives", "7", "60"], ("bcast", "alltoallv", "allgather", "reduce"))):
            with self.subTest(program=words):
                program = BIN / f"ibcoll_mpi_{words[0]}_{mpi}"
                shown = self.done(CLUSTER, "exec", "n1", *launcher, "-n", "8", program, *words[1:], IBCOLL_MPI_VERBOSE="1",
                                 OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
                self.assertEqual(len(re.findall(r"^rank \d: 0 (?:of 60 )?wrong$", shown, re.M)), 8, shown)
                self.assertIn("8 ranks use ibcoll", shown)
                for name in ran:
                    self.assertRegex(shown, rf"rank 0: {name} \d+ calls, \d+ bytes, [1-9]\d* in ibcoll")

    def test_open_mpi_with_the_component(self):
        if not (BIN.parent / "lib/ibcoll/openmpi/mca_coll_ibcoll.so").exists():
            self.skipTest("built without the internal headers of Open MPI")
        self.assert_runs("openmpi", BIN / "ibcoll_mpi", *self.open_mpi)

    def test_open_mpi_with_the_library_before_it(self):
        self.assert_runs("openmpi", *self.open_mpi, "-x", f"{self.preload}openmpi.so", "-x", "IBCOLL_MPI_VERBOSE")

    def test_mpich(self):
        self.assert_runs("mpich", BIN / "ibcoll_mpi", *self.mpich)


class Killed(NeedsNamespaces):
    def start(self, *words):
        process = subprocess.Popen([str(word) for word in words], env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_down_ends_all_that_runs_there(self):
        self.done(CLUSTER, "up", "2")
        with tempfile.TemporaryDirectory() as folder:
            pids = Path(folder) / "pids"
            # One that ignores signals in a session of its own, one that starts others all the time, and a stopped one.
            stubborn = (f"trap '' TERM HUP INT; echo $$ >>{pids}; "
                        f"setsid sh -c 'trap \"\" TERM; echo $$ >>{pids}; sleep 1000' & "
                        f"(while :; do sleep 0.001; done) & sh -c 'echo $$ >>{pids}; kill -STOP $$' & sleep 1000")
            process = self.start(CLUSTER, "exec", "n1", "sh", "-c", stubborn)
            wait_for(lambda: pids.exists() and len(pids.read_text().split()) == 3, "three processes on the node")
            process.kill()
            process.wait()
            started = [int(pid) for pid in pids.read_text().split() if int(pid) != process.pid]
            self.assertTrue(all(map(alive, started)))
            self.done(CLUSTER, "down")
            self.assertFalse([pid for pid in started if alive(pid)])
        self.assert_nothing_is_left()

    def test_a_job_whose_launcher_is_killed(self):
        self.done(CLUSTER, "up", "2")
        process = self.start(CLUSTER, "exec", "n1", BIN / "ibcoll_run", "--host", "n1:1,n2:1", "--rsh", AGENT,
                             BIN / "ibcoll_perf", "barrier", "--seconds", "100")
        wait_for(lambda: not re.search(r" 0 processes", run(CLUSTER, "status").stdout), "ranks on both nodes")
        process.kill()
        self.done(CLUSTER, "down")
        self.assert_nothing_is_left()

    def test_up_that_is_killed_on_the_way(self):
        for delay in (0.1, 0.15, 0.2, 0.25, 0.3, 0.4):
            process = self.start(CLUSTER, "up", "4")
            time.sleep(delay)
            process.kill()
            process.wait()
            self.done(CLUSTER, "down")
            self.assert_nothing_is_left()
        process = self.start(CLUSTER, "up", "4")
        wait_for(lambda: Path(f"/run/netns/{NAME}-n2").exists(), "the second node")
        process.kill()
        process.wait()
        self.assertIn("there is a part of one", self.done(CLUSTER, "status", status=1))
        self.assertNotIn("is up already", self.done(CLUSTER, "up", "2"))
        self.assertEqual(self.done(CLUSTER, "exec", "n2", "hostname"), "n2\n")

    def test_up_that_is_ended_takes_its_nodes_along(self):
        process = self.start(CLUSTER, "up", "100")
        wait_for(lambda: Path(f"/run/netns/{NAME}-n2").exists(), "the second node")
        process.terminate()
        self.assertEqual(process.wait(30), 143)
        self.assert_nothing_is_left()


class Compare(NeedsNamespaces):
    words = [COMPARE, "--cluster", "2", "--ranks", "2", "--collectives", "barrier", "--quick", "--build", BIN.parent]

    def test_both_libraries_on_two_nodes_which_end_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = self.done(*self.words, "--rounds", "2", "--json", Path(folder) / "figures")
            figures = json.loads((Path(folder) / "figures").read_text(encoding="utf-8"))
        self.assertIn("2 ranks on", shown)
        self.assertIn("2 nodes of perf/cluster at 1gbit", shown)
        self.assertRegex(shown, r"raw TCP from n1 to n2, 2 times in between: \d+ Mbit/s .*round trip of 8 bytes \d+ us")
        self.assertRegex(shown, r"barrier +0 +[0-9.]+ +[0-9.]+ +[0-9.]+ ")
        self.assertEqual([sorted(cell["times_us"]) for cell in figures["cells"]], [["ibcoll", "openmpi"]])
        self.assertEqual(len(figures["raw_tcp_us_mbit"]), 2)
        self.assert_nothing_is_left()

    def test_nodes_that_are_up_stay_up(self):
        self.done(CLUSTER, "up", "2", "--rate", "100mbit")
        shown = self.done(*self.words, "--libraries", "ibcoll", "--rounds", "1")
        self.assertIn("2 nodes of perf/cluster at 100mbit", shown)
        self.assertIn("is up already", self.done(CLUSTER, "up", "2", "--rate", "100mbit"))

    def test_it_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            words = [str(word) for word in self.words] + ["--seconds", "100", "--libraries", "ibcoll"]
            process = subprocess.Popen(words, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: "n2" in (shown := run(CLUSTER, "status").stdout) and " 0 processes" not in shown,
                     "ranks on both nodes")
            process.send_signal(number)
            process.wait(60)
            if number == signal.SIGKILL:
                self.done(CLUSTER, "down")
            self.assert_nothing_is_left()
