# SPDX-License-Identifier: BSD-3-Clause
"""SimGrid replays what `ibcoll_trace --ti` writes, and takes as long as ibcoll_sim for the same algorithm on the same machine.
Two simulators of different people: where they differ, one of them is wrong. The build tree is taken from $build, else
build/release; tools/install_packages simgrid."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
RANKS = 8
HEADER = ("# ibcoll trace 5 rank {} ranks {} job a clock m node {} cores 1 ranks_per_core 1 alpha_us 2 cpu_us 0 "
          "beta_us_per_byte 0.00008 copy_us_per_byte 0 flag_us 0.1 calls 2 dropped 0 sites 1 teams 1 counts 0\n")
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="h" suffix="" radical="0-{}" speed="1Gf" bw="12.5GBps" lat="1us" sharing_policy="SPLITDUPLEX"/>
</platform>
"""
# Messages take latency and bytes over bandwidth, as those of ibcoll_sim.
MODEL = ["--cfg=smpi/host-speed:1Gf", "--cfg=smpi/bw-factor:0:1", "--cfg=smpi/lat-factor:0:1", "--cfg=network/crosstraffic:0",
         "--cfg=smpi/display-timing:yes"]
COMPUTED, SPEED = 0.002, 1e9  # seconds before the call; operations a second, of which an element takes one


@unittest.skipIf(shutil.which("smpirun") is None, "SimGrid is not installed: tools/install_packages simgrid")
class Replay(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "platform").write_text(PLATFORM.format(RANKS - 1))
        (self.folder / "hosts").write_text("".join(f"h{rank}\n" for rank in range(RANKS)))

    def seconds_of_simgrid(self, call, meaning, option):
        """A barrier, and the call: what the ranks compute, and what the call takes."""
        for rank in range(RANKS):
            (self.folder / f"trace.{rank}").write_text(
                HEADER.format(rank, RANKS, rank) + f"code p - 0x10 -\nteam 1 0-{RANKS - 1}\n"
                f"0 1000 barrier 0 dissemination 1 1 {RANKS} ok 0 - - - - - auto - 0\n"
                f"2001000 2002000 {call} 1 2 {RANKS} ok 0 - - {meaning} auto - 0\nend\n")
        subprocess.run([BUILD / "bin/ibcoll_trace", self.folder, "--ti", self.folder / "ti"], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        done = subprocess.run(["smpirun", "-np", str(RANKS), "-hostfile", "hosts", "-platform", "platform", *MODEL,
                               f"--cfg=smpi/{option}", "-replay", "ti/index"], cwd=self.folder, capture_output=True, text=True,
                              timeout=100, check=False)
        found = re.search(r"Simulated time: ([0-9.e-]+) seconds", done.stdout + done.stderr)
        self.assertIsNotNone(found, done.stdout + done.stderr)
        return float(found[1]) - COMPUTED

    def seconds_of_ibcoll(self, collective, algorithm, size):
        command = [BUILD / "bin/ibcoll_sim", collective, "--algorithm", algorithm, "-m", size, "--ranks", RANKS, "--gap", 0,
                   "--copy-bandwidth", 0, "--format", "csv"]
        done = subprocess.run([str(word) for word in command], check=True, timeout=60, capture_output=True, text=True)
        return float(done.stdout.splitlines()[1].split(",")[3]) * 1e-6

    def test_the_same_algorithm_takes_the_same_time(self):
        for collective, algorithm, size, meaning, option in (
                ("alltoall", "pairwise", 1_000_000, "- - -", "alltoall:pair"),
                ("allgather", "ring", 1_000_000, "- - -", "allgather:ring"),
                ("allreduce", "recursive_doubling", 80_000, "- double sum", "allreduce:rdb")):
            with self.subTest(collective=collective):
                theirs = self.seconds_of_simgrid(f"{collective} {size} {algorithm}", meaning, option)
                theirs -= size / 8 / SPEED if collective == "allreduce" else 0
                ours = self.seconds_of_ibcoll(collective, algorithm, size)
                self.assertLess(abs(theirs / ours - 1), 0.15, f"{theirs} s in SimGrid, {ours} s in ibcoll_sim")
