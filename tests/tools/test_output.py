# SPDX-License-Identifier: BSD-3-Clause
"""Where the output of tools goes: full disks, readers that leave, files that cannot be written, signals.

The build tree is taken from $build, else build/release.
"""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
SIMULATION = "ibcoll_sim gatherv --ranks 4"
TRACE = ("# ibcoll trace 4 rank 0 ranks 1 job a clock m alpha_us 2 beta_us_per_byte 0.001 calls 1 dropped 0 sites 1\n"
         "code p - 0x10 -\n0 10 alltoall 8000 direct 1 1 1 ok 0 - -\nend\n")
COMMANDS = [SIMULATION, f"{SIMULATION} --format csv", f"{SIMULATION} --format json --algorithm all", "ibcoll_sim --help",
            "ibcoll_trace t", "ibcoll_trace t --format json", "ibcoll_trace --help", "ibcoll_info -A", "ibcoll_info --help",
            "ibcoll_mpi --help", "ibcoll_tune --version", "ibcoll_run --help",
            "ibcoll_run --version", "ibcoll_perf --help", "ibcoll_perf --list", "ibcoll_perf barrier -i 3"]
CALLS = "alltoall -m 4M -i 1000000 -x 0"  # take minutes


class OutputTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "t.0").write_text(TRACE)

    def command(self, words):
        tool, *rest = words.split()
        environment = {**os.environ, "IBCOLL_TUNING": "off", "IBCOLL_SINGLETON": "yes"}
        return {"args": [BUILD / "bin" / tool, *rest], "cwd": self.folder, "env": environment, "stderr": subprocess.PIPE,
                "text": True}

    def run_to(self, words, stdout, limit=()):
        command = self.command(words)
        return subprocess.run(**{**command, "args": [*limit, *command["args"]]}, stdout=stdout, timeout=60, check=False)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir() if path.name != "t.0")


class StandardOutput(OutputTest):
    def test_a_full_disk_is_an_error(self):
        for words in COMMANDS:
            with self.subTest(words=words), open("/dev/full", "wb") as full:
                done = self.run_to(words, full)
                self.assertEqual(done.returncode, 1, done.stderr)
                tool = words.split()[0]
                self.assertEqual(done.stderr, f"{tool}: cannot write to standard output: No space left on device\n")

    def test_a_reader_that_leaves_is_none(self):
        for words in COMMANDS:
            with self.subTest(words=words):
                read, write = os.pipe()
                os.close(read)
                with os.fdopen(write, "wb") as pipe:
                    done = self.run_to(words, pipe)
                self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, ""))


class Files(OutputTest):
    writers = [f"{SIMULATION} --trace FILE", "ibcoll_trace t --html FILE", "ibcoll_trace t --arrivals FILE",
               "ibcoll_perf barrier -i 3 --output FILE"]

    def test_a_full_disk_leaves_the_old_file(self):
        """`prlimit` stands for the disk: writing more than 20 bytes to a file fails."""
        for words in self.writers:
            with self.subTest(words=words):
                (self.folder / "old").write_text("old")
                limit = ("env", "--ignore-signal=XFSZ", "prlimit", "--fsize=20")
                done = self.run_to(words.replace("FILE", "old"), subprocess.DEVNULL, limit)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertRegex(done.stderr, "cannot write .*old: File too large\n$")
                self.assertEqual((self.folder / "old").read_text(), "old")
                self.assertEqual(self.files(), ["old"])

    def test_a_file_is_replaced(self):
        for words in self.writers:
            with self.subTest(words=words):
                (self.folder / "old").write_text("old")
                done = self.run_to(words.replace("FILE", "old"), subprocess.DEVNULL)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertNotEqual((self.folder / "old").read_text(), "old")
                self.assertEqual(self.files(), ["old"])

    def test_a_file_that_cannot_be_written_is_named_before_the_work(self):
        """The work would fail as well: there is no such trace, and no collective finds buffers of this size."""
        for words in ("ibcoll_trace none --html none/file", "ibcoll_trace none --arrivals none/file",
                      "ibcoll_sim gatherv --ranks 1000 --bytes 1T --check --trace none/file",
                      "ibcoll_perf alltoall --bytes 1000G --output none/file"):
            with self.subTest(words=words):
                done = self.run_to(words, subprocess.PIPE)
                self.assertEqual((done.returncode, done.stdout), (1 if "perf" in words else 2, ""), done.stderr)
                self.assertIn("none/file: No such file or directory", done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def wait_for_a_file_beside(self, process):
        end = time.monotonic() + 60
        while not any(name.startswith("old.") for name in self.files()):
            self.assertIsNone(process.poll(), "it has ended")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_signal_leaves_nothing_behind(self):
        (self.folder / "old").write_text("old")
        long = (f"ibcoll_perf {CALLS} --output old", "ibcoll_sim alltoall --ranks 4096 -m 1M --trace old")
        for words in long:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                with self.subTest(words=words, number=number):
                    with subprocess.Popen(**self.command(words), stdout=subprocess.DEVNULL) as process:
                        self.wait_for_a_file_beside(process)
                        process.send_signal(number)
                        prints_what_is_done = "ibcoll_sim" in words and number == signal.SIGINT
                        self.assertEqual(process.wait(60), 130 if prints_what_is_done else -number)
                    self.assertEqual(self.files(), ["old"])
        self.assertEqual((self.folder / "old").read_text(), "old")

    def test_a_job_that_is_ended_leaves_nothing_behind(self):
        perf = BUILD / "bin/ibcoll_perf"
        for number in (signal.SIGINT, signal.SIGTERM):
            command = self.command(f"ibcoll_run -n 2 {perf} {CALLS} --output old")
            with self.subTest(number=number), subprocess.Popen(**command, stdout=subprocess.DEVNULL) as process:
                self.wait_for_a_file_beside(process)
                process.send_signal(number)
                self.assertNotEqual(process.wait(60), 0)
                self.assertEqual(self.files(), [])

    def test_an_ignored_signal_stays_ignored(self):
        """As under nohup."""
        command = self.command(f"ibcoll_perf {CALLS} --output old")
        command["args"] = ["env", "--ignore-signal=HUP", *command["args"]]
        with subprocess.Popen(**command, stdout=subprocess.DEVNULL) as process:
            self.wait_for_a_file_beside(process)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            ignored = int(status.split("SigIgn:")[1].split()[0], 16)
            self.assertTrue(ignored >> (signal.SIGHUP - 1) & 1, status)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(60), -signal.SIGTERM)


class Numbers(OutputTest):
    def test_nan_is_refused_by_name(self):
        for words, option in (("ibcoll_trace t --alpha nan", "--alpha"), ("ibcoll_trace t --bandwidth nan", "--bandwidth"),
                              ("ibcoll_perf barrier --seconds nan", "--seconds"), (f"{SIMULATION} --alpha nan", "--alpha"),
                              ("ibcoll_run --timeout nan true", "--timeout")):
            with self.subTest(words=words):
                done = self.run_to(words, subprocess.PIPE)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(option, done.stderr)
                self.assertIn("nan", done.stderr)


if __name__ == "__main__":
    unittest.main()
