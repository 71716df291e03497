# SPDX-License-Identifier: BSD-3-Clause
"""Ranks that die, jobs that are asked what they wait for, what is left in /dev/shm. Part of test_api.py."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import time
import unittest

import ranks

DEV_SHM = pathlib.Path("/dev/shm")
# A job is gone within 5 s of a death on an idle machine. Otherwise --timeout ends it, after 120 s.
SECONDS_TO_END = 60


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def programs(launcher, name):
    """Rank: pid of those that have begun to run the program."""
    found = {}
    for pid in ranks.descendants(launcher):
        try:
            if pathlib.Path(f"/proc/{pid}/exe").resolve().name != name:
                continue
            variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found.update({int(v.partition(b"=")[2]): pid for v in variables if v.startswith(b"IBCOLL_RUN_RANK=")})
    return found


def wait_until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def control_group(limit):
    """A new one in that of this process, of either version; None: that is not allowed."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        root = pathlib.Path("/sys/fs/cgroup", controllers)
        for parent in (root / path.lstrip("/"), root):
            group = parent / f"ibcoll-test-{os.getpid()}"
            with contextlib.suppress(OSError):
                group.mkdir()
                for name in ("memory.max", "memory.limit_in_bytes"):
                    if (group / name).exists():
                        (group / name).write_text(limit, encoding="ascii")
                        return group
                group.rmdir()
    return None


class Stuck:
    """A job in which all wait for rank 0: it does not take part in the alltoall, or in the end of a context."""

    def __init__(self, processes, nodes, scenario="stuck"):
        command = ranks.job(processes, nodes, "--tag-output", ranks.tool("ibcoll_api_ranks"), scenario)
        self.processes = processes
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=ranks.environment(), start_new_session=True)
        self.errors = b""
        ready = b""
        while ready.count(b"ready") < processes and (chunk := os.read(self.process.stdout.fileno(), 4096)):
            ready += chunk
        self.pids = ranks.descendants(self.process.pid)

    def ask(self, ask, call="alltoall"):
        """Asks again and again, until an answer shows that all but rank 0 are inside the call; all that was said."""
        end = time.monotonic() + 60
        inside = [re.compile(rb"rank %d: %b.* waits" % (rank, call.encode())) for rank in range(1, self.processes)]
        while not (all(rank.search(self.errors) for rank in inside) and b"rank 0: " in self.errors) and time.monotonic() < end:
            ask()
            while select.select([self.process.stderr], [], [], 0.2)[0] and (chunk := os.read(self.process.stderr.fileno(), 4096)):
                self.errors += chunk
        return self.errors.decode()

    def ask_by_launcher(self, call="alltoall"):
        return self.ask(lambda: self.process.send_signal(signal.SIGQUIT), call)

    def end(self):
        for pid in self.pids:
            if alive(pid):
                with contextlib.suppress(ProcessLookupError):  # it may end just now
                    os.kill(pid, signal.SIGKILL)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Deaths(unittest.TestCase):
    """Under ibcoll_run a death ends the job: soon, with the exit code of the signal, and a line that names the rank."""

    def check(self, collective, processes, nodes):
        begin = time.monotonic()
        done = ranks.run(ranks.job(processes, nodes, ranks.tool("ibcoll_api_ranks"), f"die_in_{collective}"))
        self.assertLess(time.monotonic() - begin, SECONDS_TO_END, ranks.story(done))
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, ranks.story(done))
        self.assertRegex(done.stderr, r"rank 1\b.*(signal 9|SIGKILL|Killed)", ranks.story(done))

    def test_killed_in_the_middle_of_a_measurement(self):
        """ibcoll_perf, 16 ranks; the victim is not of the first node, where there are several."""
        victim = 13
        for nodes in (1, 2, 4) if ranks.SWEEP else (4,):
            with self.subTest(nodes=nodes):
                command = ranks.job(16, nodes, ranks.tool("ibcoll_perf"), "alltoall", "--bytes", "64K", "--iterations",
                                    300_000)
                job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, env=ranks.environment())
                self.addCleanup(job.stderr.close)
                self.addCleanup(job.wait)
                self.addCleanup(job.kill)
                self.assertTrue(wait_until(lambda: len(programs(job.pid, "ibcoll_perf")) == 16, 60))  # pylint: disable=cell-var-from-loop
                pids = programs(job.pid, "ibcoll_perf")
                said, inside, end = b"", rb"rank \d+: alltoall .* waits ", time.monotonic() + 60
                while not re.search(inside, said) and time.monotonic() < end:  # as the ranks say
                    job.send_signal(signal.SIGQUIT)
                    if select.select([job.stderr], [], [], 0.5)[0]:
                        more = os.read(job.stderr.fileno(), 65536)
                        if not more:
                            break
                        said += more
                self.assertRegex(said, inside)
                begin = time.monotonic()
                os.kill(pids[victim], signal.SIGKILL)
                _, rest = job.communicate(timeout=60)
                errors = (said + rest).decode()
                self.assertLess(time.monotonic() - begin, SECONDS_TO_END, errors)
                self.assertEqual(job.returncode, 128 + signal.SIGKILL, errors)
                self.assertRegex(errors, rf"rank {victim}\b.*(signal 9|SIGKILL|Killed)")
                self.assertEqual([pid for pid in pids.values() if alive(pid)], [])

    def test_a_malformed_setting_of_one_rank(self):
        for nodes in (1, 2):
            done = ranks.run(ranks.job(4, nodes, ranks.tool("ibcoll_api_ranks"), "one_malformed"))
            self.assertEqual(done.returncode, 9, ranks.story(done))
            self.assertRegex(done.stderr, r"rank 1: IBCOLL_WAIT=sometimes .*allowed: one of auto, spin", ranks.story(done))


def add_death(collective, processes, nodes):
    def case(self):
        self.check(collective, processes, nodes)

    setattr(Deaths, f"test_{collective}_{processes}x{nodes}", case)


# The errors of each rank: ibcoll_failures_tests. Here the launcher reports.
for name in ("barrier", "bcast", "allgather", "alltoall", "allreduce") if ranks.SWEEP else ("allreduce",):
    add_death(name, 4, 1)
    add_death(name, 4, 2)


class Reports(unittest.TestCase):
    """SIGUSR1 to a rank, or Ctrl-\\ to the launcher: what every rank waits for."""

    def check_report(self, text, processes, call="alltoall"):
        lines = text.splitlines()
        for rank in range(1, processes):
            self.assertTrue([line for line in lines if f"rank {rank}: {call}" in line and "waits" in line],
                            f"nothing of rank {rank}: {text}")
        return lines

    def test_launcher(self):
        for nodes in (1, 2):
            stuck = Stuck(3, nodes)
            self.addCleanup(stuck.end)
            lines = self.check_report(stuck.ask_by_launcher(), 3)
            self.assertTrue([line for line in lines if "rank 0: not waiting in ibcoll" in line], lines)
            self.assertIsNone(stuck.process.poll(), "the job ended")

    def test_ranks(self):
        stuck = Stuck(3, 1)
        self.addCleanup(stuck.end)
        found = [pid for pid in stuck.pids if pathlib.Path(f"/proc/{pid}/exe").resolve().name == "ibcoll_api_ranks"]
        self.check_report(stuck.ask(lambda: [os.kill(pid, signal.SIGUSR1) for pid in found]), 3)

    def test_at_the_end_of_a_context(self):
        stuck = Stuck(3, 1, "stuck_at_the_end")
        self.addCleanup(stuck.end)
        self.check_report(stuck.ask_by_launcher("barrier"), 3, "barrier")
        self.assertIsNone(stuck.process.poll(), "the job ended")


class SharedMemory(unittest.TestCase):
    def test_nothing_is_left_after_kill_9(self):
        before = set(DEV_SHM.iterdir())
        for nodes in (1, 2):
            stuck = Stuck(4, nodes)
            self.addCleanup(stuck.end)
            self.assertGreaterEqual(len(stuck.pids), 4)
            stuck.ask_by_launcher()  # all are in the alltoall
            for pid in (stuck.process.pid, *stuck.pids):
                with contextlib.suppress(ProcessLookupError):  # the ranks of a launcher that is gone end by themselves
                    os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda: not any(map(alive, stuck.pids)), 60))  # pylint: disable=cell-var-from-loop
            self.assertEqual({path for path in DEV_SHM.iterdir() if "ibcoll" in path.name or "ucx" in path.name} - before, set())

    def test_a_killed_launcher_leaves_no_rank(self):
        stuck = Stuck(4, 1)
        self.addCleanup(stuck.end)
        stuck.process.kill()
        self.assertTrue(wait_until(lambda: not any(map(alive, stuck.pids)), 60), "ranks outlive their launcher")

    def test_a_limit_of_file_sizes_is_told(self):
        command = ranks.job(2, 1, ranks.tool("ibcoll_api_ranks"), "in_place")
        done = ranks.run(["bash", "-c", 'ulimit -f 60000 && exec "$@"', "bash", *command])
        self.assertEqual(done.returncode, 1, ranks.story(done))
        self.assertIn("ulimit -f", done.stderr)
        done = ranks.run(["bash", "-c", 'ulimit -f 200000 && exec "$@"', "bash", *command])
        self.assertEqual(done.returncode, 0, ranks.story(done))

    @unittest.skipIf("asan" in str(ranks.BIN) or "tsan" in str(ranks.BIN), "sanitizers have their own shadow memory")
    def test_200_megabytes_of_address_space_are_enough(self):
        for nodes in (1, 2):
            command = ranks.job(4, nodes, ranks.tool("ibcoll_api_ranks"), "in_place")
            done = ranks.run(["bash", "-c", 'ulimit -v 200000 && exec "$@"', "bash", *command])
            self.assertEqual(done.returncode, 0, ranks.story(done))

    def test_a_tight_control_group(self):
        """16 ranks that all talk to each other need more than the group may have: an error, not the kernel's kill."""
        group = control_group("40M")
        if group is None:
            self.skipTest("no control group can be made here")
        self.addCleanup(group.rmdir)
        command = ranks.job(16, 1, ranks.tool("ibcoll_perf"), "alltoall", "--bytes", "10K", "--iterations", 20, "--algorithm",
                            "pairwise")
        done = ranks.run(["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command])
        self.assertNotEqual(done.returncode, 0, ranks.story(done))
        self.assertIn("memory limit of this process's control group", done.stderr, ranks.story(done))
        self.assertNotIn("killed by signal 9", done.stderr, ranks.story(done))

    def test_little_dev_shm(self):
        """With 1 MB in /dev/shm everything works or says what is missing; no rank dies of SIGBUS."""
        command = ranks.job(8, 2, ranks.tool("ibcoll_api_ranks"), "in_place")
        enter = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=1M none /dev/shm || exit 77; exec "$@"', "sh"]
        if shutil.which("unshare") is None or ranks.run([*enter, "true"]).returncode != 0:
            self.skipTest("no mount namespaces here")
        done = ranks.run([*enter, *command])
        self.assertEqual(done.returncode, 0, ranks.story(done))
