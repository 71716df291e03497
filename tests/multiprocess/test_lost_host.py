# SPDX-License-Identifier: BSD-3-Clause
"""A job runs on two hosts, and one of them loses its network: the ranks of the other one finish the job. Each host is a
network namespace; a third namespace, with a bridge, is the switch between them."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import ranks

# Runs on the other host: a command for each connection, which is its standard input and output.
DAEMON = """
import socket, subprocess, sys
listener = socket.create_server((sys.argv[1], 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection = listener.accept()[0]
    command = b""
    while not command.endswith(b"\\n"):
        command += connection.recv(1)
    subprocess.Popen(["sh", "-c", command], stdin=connection, stdout=connection)
    connection.close()
"""
# SHELL PORT HOST COMMAND...
SHELL = """
import os, socket, sys, threading
connection = socket.create_connection((sys.argv[2], int(sys.argv[1])))
connection.sendall(" ".join(sys.argv[3:]).encode() + b"\\n")
def feed():
    while data := os.read(0, 65536):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
threading.Thread(target=feed, daemon=True).start()
while data := connection.recv(65536):
    os.write(1, data)
os._exit(0)
"""
ADDRESSES = ("10.83.8.1", "10.83.8.2")


class LostHost(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_lost_host_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.switch = self.namespace("ip link add name switch type bridge && ip link set switch up")
        self.hosts = []
        for address in ADDRESSES:
            self.hosts.append(host := self.namespace("mount -t sysfs sysfs /sys && ip link set lo up"))
            port = f"port{len(self.hosts)}"
            self.do(self.switch, f"ip link add name {port} type veth peer name eth0 netns {host}")
            self.do(self.switch, f"ip link set {port} master switch up")
            self.do(host, f"ip address add {address}/24 dev eth0 && ip link set eth0 up")

    def namespace(self, setup):
        """The process id of one that keeps namespaces, which end with it."""
        keeper = subprocess.Popen(["unshare", "--net", "--mount", "--uts", "sh", "-c", f"{setup} && echo && exec sleep 1000"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (keeper.kill(), keeper.wait(), keeper.stdout.close()))
        if keeper.stdout.readline() != b"\n":
            self.skipTest("needs root, namespaces, and virtual network devices")
        return keeper.pid

    def inside(self, keeper, *words):
        return ["nsenter", "-t", str(keeper), "--net", "--mount", "--uts", *map(str, words)]

    def do(self, keeper, script):
        done = subprocess.run(self.inside(keeper, "sh", "-c", script), capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            self.skipTest(f"{script}: {done.stderr}")

    @contextlib.contextmanager
    def started(self, keeper, *words, **options):
        process = subprocess.Popen(self.inside(keeper, *words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True, **options)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            process.stdout.close()

    @contextlib.contextmanager
    def job(self, *words, timeouts=None):
        """A job of two ranks on each host, the process ids of the ranks, and what reads its standard error so far."""
        shell = self.folder / "shell"
        shell.write_text(SHELL)
        environment = ranks.environment({"UCX_NET_DEVICES": "eth0", "IBCOLL_NET": "ucx",
                                         **({"IBCOLL_RUN_TIMEOUTS": str(timeouts)} if timeouts else {})})
        with self.started(self.hosts[1], sys.executable, "-c", DAEMON, ADDRESSES[1], stderr=subprocess.DEVNULL) as daemon, \
                open(self.folder / "errors", "w+", encoding="utf-8") as errors:
            port = daemon.stdout.readline().strip()
            options = ["--keep-going", "--rsh", f"{sys.executable} {shell} {port}", "--timeout", ranks.SECONDS,
                       "--host", f"localhost:2,{ADDRESSES[1]}:2", ranks.tool("ibcoll_survivor_ranks")]
            with self.started(self.hosts[0], ranks.tool("ibcoll_run"), *options, *words, stderr=errors, env=environment) as job:
                lines = "".join(job.stdout.readline() for _ in range(4))
                pids = {int(rank): int(pid) for rank, pid in re.findall(r"rank (\d) is pid (\d+)", lines)}
                said = lambda: (self.folder / "errors").read_text(encoding="utf-8")
                yield job, pids, said
                self.assertEqual(job.wait(ranks.SECONDS), 0, said())
                self.assertNotIn("WRONG", said())
                self.assertIn("2 of 4 ranks did not finish: rank 2 was lost", said())

    def wait_until(self, condition):
        end = time.monotonic() + ranks.SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_its_ranks_end_before_they_count_as_dead(self):
        with self.job("lost_host") as (_, pids, said):
            cut = time.monotonic()
            self.do(self.switch, "ip link set port2 nomaster")
            self.wait_until(lambda: not any(os.path.exists(f"/proc/{pids[rank]}") for rank in (2, 3)))
            self.assertNotIn("was lost", said(), "they have run on")
            self.assertGreater(time.monotonic() - cut, 8)  # it heard the launcher less than a second before the cut

    def test_one_that_was_stopped_changes_no_byte_once_it_is_continued(self):
        """As a virtual machine that is paused: its ranks count as dead meanwhile."""
        gate = self.folder / "gate"
        with self.job("stopped", gate, timeouts=3) as (job, pids, said):
            agent = int(pathlib.Path(f"/proc/{pids[2]}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
            time.sleep(0.2)
            for pid in (pids[2], pids[3], agent):
                os.kill(pid, signal.SIGSTOP)
            self.wait_until(lambda: "rank 3 was lost" in said())
            for line in (job.stdout.readline(), job.stdout.readline()):
                self.assertEqual(line, "dead: 2,3.\n")
            for pid in (pids[2], pids[3], agent):
                os.kill(pid, signal.SIGCONT)
            self.wait_until(lambda: not any(os.path.exists(f"/proc/{pids[rank]}") for rank in (2, 3)))
            time.sleep(0.5)
            gate.touch()


if __name__ == "__main__":
    unittest.main()
