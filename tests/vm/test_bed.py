# SPDX-License-Identifier: BSD-3-Clause
"""The bed itself: what run_in_vm and shell hand back, and how they fail."""

import concurrent.futures
import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import boot_files  # noqa: E402

DEADLINE = 240  # seconds for one call; a boot takes some 5, and 20 where the machine is busy


def run_in_vm(*arguments, **options):
    return subprocess.run([HERE / "run_in_vm", *arguments], capture_output=True, text=True, timeout=DEADLINE,
                          stdin=subprocess.DEVNULL, **options)


def children(pid, program):
    """Process ids of the programs of that name that `pid` started and that run still."""
    listed = subprocess.run(["ps", "-o", "pid=,stat=,comm=", "--ppid", str(pid)], capture_output=True, text=True)
    processes = [line.split(maxsplit=2) for line in listed.stdout.splitlines()]
    return [int(child) for child, state, name in processes if "Z" not in state and name.startswith(program)]


def running(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    return condition()


class Booted(unittest.TestCase):
    """Each boots a machine, which takes seconds of processor time: the suite sweep_vm."""

    @classmethod
    def setUpClass(cls):
        boot_files.ensure()
        # A boot keeps one processor busy: these run beside the first tests.
        cls.pool = concurrent.futures.ThreadPoolExecutor(1)
        cls.panic = cls.pool.submit(run_in_vm, "--no-rdma", "--", "bash", "-c", "echo c > /proc/sysrq-trigger; sleep 1000")
        cls.too_long = cls.pool.submit(run_in_vm, "--no-rdma", "-t", "10", "--", "bash", "-c", "echo begun; sleep 1000")

    @classmethod
    def tearDownClass(cls):
        cls.pool.shutdown()

    def test_command_has_its_surroundings_and_hands_back_what_it_does(self):
        with tempfile.TemporaryDirectory() as shared, tempfile.TemporaryDirectory() as private:
            script = f"""
                echo "directory $PWD"; echo "variable $ONE, $UCX_TLS, ${{TWO-none}}"; echo "argument $1"
                echo "user $(id -un)"; echo "locked $(ulimit -l)"; echo "devices $(ls /sys/class/infiniband | wc -l)"
                echo "to error" >&2; echo "to error by name" >/dev/stderr
                echo kept > {shared}/file; echo lost > {private}/file; cat {private}/file
                seq 100000 > /tmp/numbers; md5sum </tmp/numbers; cat /tmp/numbers; exit 7"""
            done = run_in_vm("--no-rdma", "--memlock", "8388608", "--share", shared, "-C", private, "-e", "ONE=a 'b' \"c\" $d",
                             "--", "bash", "-c", script, "name", "two  words; exit 1",
                             env=dict(os.environ, UCX_TLS="tcp,self", TWO="2"))
            self.assertEqual(done.returncode, 7, done.stderr)
            lines = done.stdout.splitlines()
            self.assertEqual(lines[:8], [f"directory {private}", "variable a 'b' \"c\" $d, tcp,self, none",
                                         "argument two  words; exit 1", "user root", "locked 8192", "devices 0", "lost",
                                         lines[7]])
            numbers = "".join(f"{number}\n" for number in range(1, 100001))
            self.assertEqual(lines[7].split()[0], hashlib.md5(numbers.encode()).hexdigest())
            self.assertTrue(done.stdout.endswith(lines[7] + "\n" + numbers), "output is incomplete")
            self.assertEqual(done.stderr, "to error\nto error by name\n")
            self.assertEqual(Path(shared, "file").read_text(), "kept\n")
            self.assertFalse(Path(private, "file").exists())

    def test_takes_too_long_and_is_ended(self):
        done = self.too_long.result()
        self.assertEqual((done.returncode, done.stdout), (124, "begun\n"), done.stderr)

    def test_panic_is_a_failure_with_the_end_of_the_console(self):
        done = self.panic.result()
        self.assertEqual(done.returncode, 125)
        self.assertIn("ended while the command ran", done.stderr)
        self.assertIn("Kernel panic", done.stderr)

    def test_a_shell_takes_input_and_hands_back_its_status(self):
        shell = subprocess.Popen([HERE / "shell", "--no-rdma"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        seen = b""
        while b"# " not in seen:
            chunk = os.read(shell.stdout.fileno(), 4096)
            self.assertTrue(chunk, "the shell ended without a prompt")
            seen += chunk
        rest, errors = shell.communicate(b"echo sum $((40 + 2)); tty; exit 5\n", timeout=DEADLINE)
        self.assertIn(b"sum 42", rest, errors)
        self.assertIn(b"/dev/hvc0", rest, errors)
        self.assertEqual(shell.returncode, 5, errors)


class NotBooted(unittest.TestCase):
    """Machines that do not get as far as to run anything."""

    @classmethod
    def setUpClass(cls):
        boot_files.ensure()

    def test_what_is_no_kernel_does_not_boot(self):
        done = run_in_vm("--kernel", __file__, "--boot-timeout", "3", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("vm1: did not boot", done.stderr)

    def test_a_boot_has_a_deadline(self):
        done = run_in_vm("--boot-timeout", "0.5", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertRegex(done.stderr, r"\Atests/vm: did not boot within 0\.5 s; trying once more\ntests/vm: vm1: did not boot in time")

    def test_missing_programs_are_named(self):
        with tempfile.TemporaryDirectory() as empty:
            done = subprocess.run([sys.executable, HERE / "run_in_vm", "true"], env={"PATH": empty}, capture_output=True,
                                  text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 125)
        self.assertRegex(done.stderr, "not found: qemu-system-x86_64 .*tools/install_packages vm")

    def test_no_machine_outlives_its_caller(self):
        for number, arguments in [(signal.SIGTERM, ()), (signal.SIGINT, ("--pair",)), (signal.SIGKILL, ("--pair",))]:
            with self.subTest(signal=number.name), tempfile.TemporaryDirectory() as folder:
                caller = subprocess.Popen([HERE / "run_in_vm", *arguments, "--", "sleep", "1000"], stdin=subprocess.DEVNULL,
                                          env=dict(os.environ, TMPDIR=folder))
                wanted = 2 if arguments else 1

                def emulators():
                    found = children(caller.pid, "qemu")
                    return found if len(found) == wanted else None
                machines = wait_until(emulators)
                self.assertTrue(machines, "QEMU was not started")
                caller.send_signal(number)
                caller.wait(30)
                self.assertTrue(wait_until(lambda: not any(running(pid) for pid in machines)), "QEMU is still there")
                if number != signal.SIGKILL:
                    self.assertEqual(caller.returncode, 128 + number)
                    self.assertEqual(os.listdir(folder), [], "files were left over")


class Steps(unittest.TestCase):
    """The lists of steps; they run here as well as in a machine."""

    LIST = """source {here}/inside/step.bash
step "goes well" 10 'echo quiet'
step "fails" 10 'echo a reason; false | cat; echo not reached'
step "takes too long" 5 'echo begun; sleep 1000'
step "is ended with its tests" 10 'echo "[ RUN      ] A.B"; echo noise; echo "[       OK ] A.B (0 ms)"; echo told; exit 3'
finish
"""

    def run_list(self, folder, *patterns):
        script = self.LIST.format(here=HERE)
        done = subprocess.run(["bash", "-c", script, "list", *patterns], capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, logs=folder, build=folder))
        results = [json.loads(line) for line in Path(folder, "results.jsonl").read_text().splitlines()]
        return done, {result["name"]: result["status"] for result in results}

    def test_each_outcome_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            done, results = self.run_list(folder)
            self.assertEqual(results, {"goes well": 0, "fails": 1, "takes too long": 124, "is ended with its tests": 3})
            self.assertEqual(Path(folder, "takes_too_long.log").read_text(), "begun\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.splitlines()[-1], "1 passed, 3 failed")
        for said in ("a reason", "ended after 5 s", "told"):
            self.assertIn(f"    | {said}", done.stdout)
        for unsaid in ("quiet", "not reached", "noise"):
            self.assertNotIn(unsaid, done.stdout)

    def test_patterns_choose_and_none_that_fits_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder:
            done, results = self.run_list(folder, "go*")
            self.assertEqual((results, done.returncode), ({"goes well": 0}, 0))
            done, results = self.run_list(folder, "nothing")
            self.assertEqual((results, done.returncode), ({}, 1))
            self.assertIn("no step is called nothing", done.stdout)
