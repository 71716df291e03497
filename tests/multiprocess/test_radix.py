# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_radix against Python's own sort, and its promise: OUT is the sorted file or what it was before.

The build tree is taken from $build, else build/release."""

import array
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
SECONDS = 120
TRIES = 20  # to do something to a program before it has ended
BEFORE = b"what was there before"


def sorted_bytes(keys):
    return array.array("I", sorted(array.array("I", keys))).tobytes()


def random_keys(count, seed, bound=1 << 32):
    generator = random.Random(seed)
    return array.array("I", (generator.randrange(bound) for _ in range(count))).tobytes()


def job(processes, *words):
    return [str(word) for word in [BUILD / "bin/ibcoll_run", "-n", processes, *words]]


class RadixTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_radix.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.input, self.output = self.folder / "in", self.folder / "out"

    def start(self, command, **more):
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False, **more)

    def radix(self, processes, *options, source=None, target=None, environment=None):
        command = job(processes, *options, BUILD / "bin/ibcoll_radix", source or self.input, target or self.output)
        return self.start(command, env=dict(os.environ, **(environment or {})))

    def check_sorts(self, keys, processes, *options, environment=None):
        self.input.write_bytes(keys)
        done = self.radix(processes, *options, environment=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(self.output.read_bytes() == sorted_bytes(keys), "the output is not the sorted input")
        self.assertIn(f"{len(keys) // 4} keys", done.stdout)
        self.check_nothing_left()
        return done

    def check_nothing_left(self):
        self.assertLessEqual({entry.name for entry in self.folder.iterdir()}, {"in", "out"})

    def check_refused(self, done, *words):
        """Non-zero exit, an error in these words, printed once, and OUT untouched."""
        self.assertNotEqual(done.returncode, 0)
        lines = [line for line in done.stderr.splitlines() if "ibcoll_radix: rank" in line]
        self.assertEqual(len(lines), 1, done.stderr)
        for word in words:
            self.assertIn(str(word), lines[0])

    def refuse_and_keep(self, processes, *words, **more):
        self.output.write_bytes(BEFORE)
        self.check_refused(self.radix(processes, **more), *words)
        self.assertEqual(self.output.read_bytes(), BEFORE)
        self.check_nothing_left()

    # ------------------------------------------------------------ right results

    def test_compiler_8_ranks_2_nodes_over_tcp(self):
        """30 MB that exist on every machine that can build this: the compiler itself."""
        compiler = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True)
        keys = pathlib.Path(compiler.stdout.strip()).read_bytes()
        keys = keys[:len(keys) // 4 * 4]
        self.assertGreater(len(keys), 20 << 20)
        self.check_sorts(keys, 8, "--nodes", 2, "--net", "ucx", environment={"UCX_TLS": "tcp"})

    def test_random_keys_any_number_of_ranks(self):
        for processes in (1, 2, 3, 5, 16):
            with self.subTest(ranks=processes):
                self.check_sorts(random_keys(100_003, processes), processes)

    def test_uneven_nodes(self):
        self.check_sorts(random_keys(50_001, 7), 7, "--nodes", 3)

    def test_equal_and_nearly_equal_keys(self):
        self.check_sorts(b"\x07\x00\x00\x80" * 30_000, 4)
        self.check_sorts(random_keys(30_000, 2, bound=3), 4)

    def test_sorted_and_reversed_keys(self):
        ascending = array.array("I", range(0, 1 << 32, 1 << 17))
        self.check_sorts(ascending.tobytes(), 4)
        self.check_sorts(ascending[::-1].tobytes(), 4)

    def test_more_ranks_than_keys(self):
        self.check_sorts(random_keys(5, 1), 16)

    def test_empty_file(self):
        self.check_sorts(b"", 4)

    def test_output_replaces_input(self):
        keys = random_keys(10_000, 3)
        self.input.write_bytes(keys)
        self.input.chmod(0o640)
        done = self.radix(4, target=self.input)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.input.read_bytes(), sorted_bytes(keys))
        self.assertEqual(self.input.stat().st_mode & 0o777, 0o640)

    def test_output_behind_a_symbolic_link(self):
        real = self.folder / "out"
        real.write_bytes(BEFORE)
        link = self.folder / "in.link"
        link.symlink_to(real)
        self.input.write_bytes(random_keys(1000, 4))
        self.assertEqual(self.radix(2, target=link).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(real.read_bytes(), sorted_bytes(self.input.read_bytes()))
        real.unlink()  # the link now leads to a file that does not exist yet
        self.assertEqual(self.radix(2, target=link).returncode, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(real.read_bytes(), sorted_bytes(self.input.read_bytes()))

    def test_output_with_the_longest_name(self):
        keys = random_keys(100, 4)
        self.input.write_bytes(keys)
        target = self.folder / ("x" * 255)
        self.assertEqual(self.radix(2, target=target).returncode, 0)
        self.assertEqual(target.read_bytes(), sorted_bytes(keys))

    def test_output_keeps_its_owner(self):
        if os.geteuid() != 0:
            self.skipTest("only root may give files away")
        self.input.write_bytes(random_keys(100, 4))
        os.chown(self.input, 65534, 65534)
        self.input.chmod(0o4600)  # a new owner takes the first bit away
        self.assertEqual(self.radix(2, target=self.input).returncode, 0)
        after = self.input.stat()
        self.assertEqual((after.st_uid, after.st_gid, after.st_mode & 0o7777), (65534, 65534, 0o4600))

    def test_ignored_signals_stay_ignored(self):
        self.input.write_bytes(os.urandom(64 << 20))
        command = [BUILD / "bin/ibcoll_radix", self.input, self.output]

        def signalled():
            """Whether the program still ran when it was signalled."""
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as run:
                while run.poll() is None and not self.temporary_file_is_there():
                    time.sleep(0.001)
                run.send_signal(signal.SIGHUP)
                in_time = run.poll() is None
                self.assertEqual((run.wait(SECONDS), run.stderr.read()), (0, ""))
                return in_time

        self.assertTrue(any(signalled() for _ in range(TRIES)), "it was always over before the signal")

    def temporary_file_is_there(self):
        return any(entry.name.startswith(".ibcoll_radix.") for entry in self.folder.iterdir())

    def test_report_that_cannot_be_written(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        self.input.write_bytes(random_keys(100, 4))
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([BUILD / "bin/ibcoll_radix", self.input, self.output], stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output: No space left on device", done.stderr)

    # ------------------------------------------------------------ bad input

    def test_length_no_multiple_of_4(self):
        self.input.write_bytes(random_keys(1000, 5) + b"xyz")
        self.refuse_and_keep(4, "4003 bytes", "multiple of 4", self.input)

    def test_no_such_input(self):
        self.refuse_and_keep(4, self.input, "No such file")

    def test_input_is_a_directory(self):
        self.refuse_and_keep(2, "not a regular file", source=self.folder)

    def test_unreadable_input(self):
        self.input.write_bytes(random_keys(10, 6))
        self.input.chmod(0)
        self.folder.chmod(0o755)
        command = job(2, BUILD / "bin/ibcoll_radix", self.input, self.output)
        if os.geteuid() == 0:  # root may read everything: become another user
            if not shutil.which("setpriv"):
                self.skipTest("root may read every file, and setpriv is not installed")
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *command]
        done = self.start(command, cwd="/")
        if "cannot access" in done.stderr or "failed to execute" in done.stderr:
            self.skipTest(f"another user cannot run {BUILD}: {done.stderr}")
        self.check_refused(done, self.input, "Permission denied")
        self.check_nothing_left()

    def test_output_in_a_missing_directory(self):
        self.input.write_bytes(random_keys(1000, 8))
        target = self.folder / "missing" / "out"
        self.check_refused(self.radix(4, target=target), target, "No such file")
        self.check_nothing_left()

    def test_output_is_a_directory_or_device(self):
        self.input.write_bytes(random_keys(1000, 9))
        for target in (self.folder, "/dev/null"):
            with self.subTest(target=target):
                self.check_refused(self.radix(2, target=target), target, "not a regular file")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        self.check_nothing_left()

    def test_arguments(self):
        for words, mistake in (((), "IN is required"), (("in",), "OUT is required"),
                               (("in", "out", "more"), "The following argument was not expected: more")):
            with self.subTest(words=words):
                expected = f"ibcoll_radix: {mistake}; see ibcoll_radix --help\n"
                alone = self.start([BUILD / "bin/ibcoll_radix", *words])
                self.assertEqual((alone.returncode, alone.stdout, alone.stderr), (2, "", expected))
                done = self.start(job(2, BUILD / "bin/ibcoll_radix", *words))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count(expected), 1, done.stderr)

    def test_help(self):
        done = self.start(job(2, BUILD / "bin/ibcoll_radix", "--help"))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count("Usage: ibcoll_radix [OPTIONS] IN OUT"), 1, done.stdout)

    def test_full_disk(self):
        """A file system of 1 MB in a mount namespace of its own, which goes with the job."""
        if os.geteuid() != 0:
            self.skipTest("only root may mount the small file system that this needs")
        self.input.write_bytes(random_keys(500_000, 10))
        disk = self.folder / "disk"
        disk.mkdir()
        script = ('disk=$1; shift; mount -t tmpfs -o size=1m tmpfs "$disk" || exit 77; printf before >"$disk/out"; '
                  '"$@"; status=$?; ls -A "$disk"; cat "$disk/out"; exit $status')
        command = job(4, BUILD / "bin/ibcoll_radix", self.input, disk / "out")
        done = self.start(["unshare", "-m", "sh", "-c", script, "sh", str(disk), *command])
        if done.returncode == 77 or "unshare:" in done.stderr:
            self.skipTest(f"no mount namespace to be had here: {done.stderr}")
        self.check_refused(done, "2000000 bytes", disk / "out", "No space left")
        self.assertEqual(done.stdout.split(), ["out", "before"])

    # ------------------------------------------------------------ a rank dies

    def test_killed_rank_leaves_output_alone(self):
        self.input.write_bytes(os.urandom(64 << 20))
        for victim in (0, 1):
            with self.subTest(victim=victim):
                for _ in range(TRIES):
                    self.output.write_bytes(BEFORE)
                    command = job(4, BUILD / "bin/ibcoll_radix", self.input, self.output)
                    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
                        killed = self.kill_rank_when_sorting(run, victim)
                        errors = run.communicate(timeout=SECONDS)[1]
                    if killed and run.returncode != 0:
                        break
                self.assertTrue(killed, f"no rank to kill was found: {errors}")
                self.assertNotEqual(run.returncode, 0)
                self.assertEqual(self.output.read_bytes(), BEFORE)
                self.check_nothing_left()

    def kill_rank_when_sorting(self, run, victim):
        """Kills the victim-th process of the program once the temporary file is there; False when the job is over."""
        while run.poll() is None:
            if self.temporary_file_is_there():
                found = [pid for pid in ranks.descendants(run.pid) if command_of(pid) == "ibcoll_radix"]
                if len(found) > victim:
                    os.kill(sorted(found)[victim], signal.SIGKILL)
                    return True
            time.sleep(0.001)
        return False


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
