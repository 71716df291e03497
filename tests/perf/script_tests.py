# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of perf/guidelines and perf/regret share: the script starts a program that prints known times."""

import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = (ROOT / os.environ.get("build", "build/release")).resolve() / "bin"


def run_built(name, *options):
    """The program itself, on three ranks, with short times."""
    return subprocess.run([BIN / "ibcoll_run", "-n", "3", BIN / name, "--most", "64", "--seconds", "0.001", *options],
                          capture_output=True, text=True, check=False, timeout=100,
                          env={**os.environ, "IBCOLL_TUNING": "off"})


# What is written to a file fails, as on a full disk.
FULL_AT_100_BYTES = ("prlimit", "--fsize=100")


def full_disk():
    return open("/dev/full", "wb")  # pylint: disable=consider-using-with


def left_pipe():
    """The end to write to of a pipe that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "wb")


class ScriptTests:
    """A base beside unittest.TestCase. `words`: the script and its options; `name`: the program that it starts; `printed`:
    that program, with known times."""
    words = []
    name = ""
    printed = ""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix=f"{self.name}.")
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)

    def program(self, text):
        (self.build / "bin").mkdir()
        for name in (self.name, "ibcoll_run"):
            file = self.build / "bin" / name
            file.write_text(text if name == self.name else '#!/bin/bash\nshift 2\nexec "$@"\n')
            file.chmod(0o755)

    def run_script(self, *options, stdout=subprocess.PIPE, limit=()):
        return subprocess.run([*limit, ROOT / self.words[0], "--build", self.build, *self.words[1:], *options],
                              stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=60)

    def test_a_program_that_fails(self):
        self.program('#!/bin/bash\necho "no luck today" >&2\nexit 3\n')
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no luck today", done.stderr)

    def test_a_file_that_cannot_be_written_is_named_before_the_work(self):
        self.program(f"#!/bin/bash\ntouch {self.build}/started\n")
        for path in (self.build / "none/table", self.build, self.build / "bin/ibcoll_run/table"):
            done = self.run_script("--csv", path)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"--csv: cannot write {path}: ", done.stderr)
        self.assertFalse((self.build / "started").exists())

    def test_a_pipe_and_a_link_stay_what_they_are(self):
        self.program(self.printed)
        read, write = os.pipe()
        (self.build / "link").symlink_to("table")
        for path in (f"/dev/fd/{write}", self.build / "link"):
            command = [ROOT / self.words[0], "--build", self.build, *self.words[1:], "--runs", "1", "--csv", path]
            subprocess.run(command, stdout=subprocess.DEVNULL, pass_fds=[write], check=False, timeout=60)
        os.close(write)
        with os.fdopen(read) as pipe:
            self.assertEqual(pipe.read(), (self.build / "table").read_text())
        self.assertTrue((self.build / "link").is_symlink())

    def test_a_timeout_that_is_no_time(self):
        for text in ("nan", "inf", "-inf", "0", "-1", "soon"):
            done = self.run_script(f"--timeout={text}")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(f"--timeout: {text!r} is not a number of seconds above 0", done.stderr)

    def test_output_that_fails(self):
        """A full disk is an error, a reader that leaves is none."""
        self.program(self.printed)
        for stdout, status, said in ((full_disk(), 1, f"{self.words[0]}: standard output: No space left on device\n"),
                                     (left_pipe(), 141, "")):
            with stdout:
                done = self.run_script("--runs", "1", stdout=stdout)
            self.assertEqual((done.returncode, done.stderr), (status, said))

    def test_a_full_disk_leaves_the_old_table(self):
        self.program(self.printed)
        table = self.build / "table"
        table.write_text("old")
        done = self.run_script("--csv", table, "--runs", "1", limit=FULL_AT_100_BYTES)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr, f"{self.words[0]}: {table}: File too large\n")
        self.assertEqual(table.read_text(), "old")
        self.assertEqual([path.name for path in self.build.iterdir() if path.name.startswith("table")], ["table"])

    def test_a_tree_without_the_program(self):
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.name} does not exist; build it first: ninja -C", done.stderr)
