# SPDX-License-Identifier: BSD-3-Clause
"""Jobs over the device of ibcoll_run --rdma-in-memory."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"
SECONDS = 60


def job(ranks, nodes, *words, options=(), environment=None):
    command = [BIN / "ibcoll_run", "--rdma-in-memory", "-n", ranks, "--nodes", nodes, "--timeout", SECONDS, *options, *words]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=SECONDS + 30, check=False,
                          env={**os.environ, "IBCOLL_TIMEOUT": "40", **(environment or {})})


class Jobs(unittest.TestCase):
    def check(self, done, *words):
        said = f"exit status {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        self.assertEqual(done.returncode, 0, said)
        for word in words:
            self.assertIn(word, done.stdout, said)
        return done

    def check_fails(self, done, *words):
        said = f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        self.assertNotEqual(done.returncode, 0, said)
        for word in words:
            self.assertIn(word, done.stderr, said)

    def check_collectives(self, *variables):
        options = [word for variable in variables for word in ("-x", variable)]
        words = ["all", "--bytes", "8:256K", "--factor", "32", "--iterations", "5", "--check"]
        self.check(job(4, 4, BIN / "ibcoll_perf", *words, options=options), " 0 errors; 0 not applicable")

    def test_collectives_by_memory(self):
        self.check_collectives("IBCOLL_VERBS_NOTIFY=memory")

    def test_collectives_by_immediates(self):
        self.check_collectives("IBCOLL_VERBS_NOTIFY=imm")

    def test_collectives_shuffled(self):
        for seed in (1, 2):
            self.check_collectives(f"RDMA_IN_MEMORY_SHUFFLE={seed}", "RDMA_IN_MEMORY_ORDER=no")

    def test_collectives_with_latency(self):
        self.check_collectives("RDMA_IN_MEMORY_LATENCY=1000", "RDMA_IN_MEMORY_PER_BYTE=0.08")

    def test_several_ranks_on_a_node(self):
        words = ["all", "--bytes", "24:100K", "--factor", "9", "--iterations", "20", "--calls", "oneshot", "--check"]
        self.check(job(6, 3, BIN / "ibcoll_perf", *words), " 0 errors; 0 not applicable")
        done = self.check(job(1, 1, "sh", "-c", "echo single copies: $IBCOLL_SINGLE_COPY"))
        self.assertIn("single copies: off", done.stdout)

    # Each call one of the ranks, which may lead its node, comes 10 ms late: later than a sender repeats what a rank has no
    # receive request for (RNR). Meanwhile the others send ahead to it until its landing slots are full.
    def check_late_ranks(self, *variables, sizes="8:100K"):
        options = [word for variable in variables for word in ("-x", variable)]
        words = ["all", "--bytes", sizes, "--factor", "110", "--iterations", "3", "--calls", "blocking", "--check",
                 "--arrival", "late:20:100", "--message-cost", "100:0"]
        self.check(job(6, 3, BIN / "ibcoll_perf", *words, options=options), " 0 errors; 0 not applicable")

    def test_late_ranks_by_memory(self):
        self.check_late_ranks("IBCOLL_VERBS_NOTIFY=memory")

    def test_late_ranks_by_immediates(self):
        self.check_late_ranks("IBCOLL_VERBS_NOTIFY=imm")

    # Many fragments for each message, and more memory for them than there are slots.
    def test_late_ranks_whose_slots_fill(self):
        for notify in ("memory", "imm"):
            self.check_late_ranks(f"IBCOLL_VERBS_NOTIFY={notify}", "IBCOLL_EAGER_BYTES=512", "IBCOLL_SPILL_BYTES=64M",
                                  "IBCOLL_ARRIVAL=late", sizes="30K:100K")

    def test_the_transport_is_verbs(self):
        done = self.check(job(2, 2, BIN / "ibcoll_info", "-d"), "memory0")
        self.assertIn("verbs", done.stdout)
        self.assertIn("by_ranks: yes", done.stdout, "a Write is a copy by the rank that posts it")

    def test_a_variable_chooses_another_transport(self):
        done = job(2, 2, BIN / "ibcoll_info", "-d", environment={"IBCOLL_NET": "nonsense"})
        self.check_fails(done, "nonsense")

    def test_what_a_rank_preloads_stays(self):
        done = self.check(job(1, 1, "sh", "-c", "echo $LD_PRELOAD", options=["-x", "LD_PRELOAD=libm.so.6"]))
        self.assertRegex(done.stdout, r"libibcoll_rdma_in_memory\.so:libm\.so\.6\n")

    def test_other_machines_have_no_part(self):
        done = subprocess.run([BIN / "ibcoll_run", "--rdma-in-memory", "--host", "elsewhere:2", "true"],
                              capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("the device is memory of this machine", done.stderr)

    def test_a_device_that_is_no_more(self):
        self.check_fails(job(2, 2, BIN / "ibcoll_perf", "barrier", options=["-x", "RDMA_IN_MEMORY=/proc/1/fd/12345"]),
                         "RDMA_IN_MEMORY=/proc/1/fd/12345: No such file or directory; has the ibcoll_run that made the device ended?",
                         "this machine has no RDMA device")

    def test_a_device_of_another_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        done = job(1, 1, "python3", "-c", "import os, ctypes; ctypes.CDLL(None); os.setresuid(65534, 65534, 65534); "
                   "list = ctypes.CDLL(None).ibv_get_device_list; list.restype = ctypes.c_void_p; list(None)")
        self.assertIn("the device belongs to the user who started ibcoll_run", done.stderr)

    # Each rank is a shell that outlives its program, so that the launcher ends no rank: the watch of processes notices, before
    # the device does.
    def test_a_rank_that_is_killed(self):
        script = ('"$0" "$@" & echo $! >"$FOLDER/$IBCOLL_RUN_RANK"; wait $!; '
                  'echo "rank $IBCOLL_RUN_RANK ended with $?"; sleep 60')
        with tempfile.TemporaryDirectory() as folder:
            said = pathlib.Path(folder, "said")
            words = [BIN / "ibcoll_run", "--rdma-in-memory", "-n", 2, "--nodes", 2, "--timeout", SECONDS, "sh", "-c", script,
                     BIN / "ibcoll_perf", "all", "--bytes", "8:1M", "--factor", "4", "--seconds", "0.2"]
            with open(said, "w", encoding="utf-8") as output:
                running = subprocess.Popen([str(word) for word in words], stdout=output, stderr=subprocess.STDOUT,
                                           env={**os.environ, "FOLDER": folder})
            try:
                self.wait_for(lambda: "alltoall" in said.read_text(encoding="utf-8"), said)
                os.kill(int(pathlib.Path(folder, "1").read_text(encoding="utf-8")), signal.SIGKILL)
                self.wait_for(lambda: "rank 0 ended with" in said.read_text(encoding="utf-8"), said)
            finally:
                running.terminate()
                running.wait(timeout=SECONDS)
            self.assertIn("lost rank 1: its process has ended", said.read_text(encoding="utf-8"))
            self.assertNotIn("rank 0 ended with 0", said.read_text(encoding="utf-8"))

    def wait_for(self, condition, said):
        end = time.monotonic() + SECONDS
        while not condition():
            self.assertLess(time.monotonic(), end, said.read_text(encoding="utf-8"))
            time.sleep(0.05)

    # Of one rank: its own error says so within a second, and ends the job.
    def test_a_device_that_is_removed(self):
        removed = 'test "$IBCOLL_RUN_RANK" = 1 && export RDMA_IN_MEMORY_REMOVED_AFTER=1; exec "$0" "$@"'
        words = ["all", "--seconds", "1"]
        for notify in ("memory", "imm"):
            done = job(3, 3, "sh", "-c", removed, BIN / "ibcoll_perf", *words, options=["-x", f"IBCOLL_VERBS_NOTIFY={notify}"])
            self.check_fails(done, "memory0, this rank's own device, has failed or was removed", "IBCOLL_NET=ucx")

    def test_the_connection_manager_says_that_it_is_not_there(self):
        done = job(2, 2, BIN / "ibcoll_perf", "barrier", options=["-x", "IBCOLL_VERBS_CONNECT=rdmacm"])
        self.check_fails(done, "rdma")


if __name__ == "__main__":
    unittest.main()
