# SPDX-License-Identifier: BSD-3-Clause
"""Runs ibcoll_run for the tests of this folder."""

import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import platform
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BIN = (pathlib.Path(__file__).resolve().parents[2] / os.environ.get("build", "build/release")).resolve() / "bin"
SECONDS = 120  # no test may hang
SOON = 60  # what takes two seconds at most where the machine has nothing else to do; what it ends would last a thousand
# Runs the command here, as a remote shell would there: after a greeting, by a shell, with little of an environment.
FAKE_SHELL = """#!/bin/sh
echo "Welcome to $1"
echo "$@" >> "$0.log"
host=$1
shift
exec env -i PATH="$PATH" FAKE_HOST="$host" sh -c "exec $*"
"""
HOSTS = ("--host", "127.0.0.2:2,127.0.0.3:3")
# What a parent like nohup(1) ignores or blocks, ranks would ignore as well, and tests of signals wait for them for ever.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP,
               signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_SETMASK, [])

# A build with AddressSanitizer keeps freed memory for a while; not what tests of memory measure.
LITTLE_QUARANTINE = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"}


def tool(name):
    return str(BIN / name)


def state(pid):
    """The letter of ps(1), "" when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def name(pid):
    """Of the program that a process runs, "" when there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="ascii").rstrip("\n")
    except OSError:
        return ""


def alive(pid):
    return state(pid) not in ("", "Z", "X")


def ranks_of(launcher):
    """Those that run. It has a guard beside them, of its own name."""
    with open(f"/proc/{launcher}/task/{launcher}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split() if alive(pid) and name(pid) not in ("", "ibcoll_run")]


def blocked_signals(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        mask = int(re.search(r"SigBlk:\s+([0-9a-f]+)", status.read())[1], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def filter_system_call(number, action, flags=0):
    """For this process and what it starts: as a container's filter does. To be run in a child (preexec_fn)."""
    load, jump_if_equal, give_back, allowed = 0x20, 0x15, 0x06, 0x7fff0000  # <linux/seccomp.h>
    steps = [(load, 0, 0, 0), (jump_if_equal, 0, 1, number), (give_back, 0, 0, action), (give_back, 0, 0, allowed)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    library = ctypes.CDLL(None, use_errno=True)
    set_no_new_privileges, filter_mode = 38, 1
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(text)))
    if library.prctl(set_no_new_privileges, 1, 0, 0, 0) == 0:
        result = library.syscall(SYSTEM_CALLS["seccomp"], filter_mode, flags, program)
        if result >= 0:
            return result
    raise OSError(ctypes.get_errno(), "seccomp")


def refuse_system_call(number, reason=errno.EPERM):
    """As filter_system_call()."""
    filter_system_call(number, 0x00050000 | reason)


def never_return_from(number):
    """From this system call; as filter_system_call(). The process waits for an answer that only itself could give."""
    user_notification, new_listener = 0x7fc00000, 8
    os.set_inheritable(filter_system_call(number, user_notification, new_listener), True)


SYSTEM_CALLS = {
    "x86_64": {"sched_setaffinity": 203, "sched_getaffinity": 204, "seccomp": 317, "memfd_create": 319, "pidfd_open": 434},
    "aarch64": {"sched_setaffinity": 122, "sched_getaffinity": 123, "seccomp": 277, "memfd_create": 279, "pidfd_open": 434},
}[platform.machine()]


def unread(pid, descriptor=1):
    """Unread bytes in a pipe, such as the standard output of a process."""
    pipe = os.open(f"/proc/{pid}/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
    finally:
        os.close(pipe)


def longer_and_longer(seconds):
    """Times for what must come to pass before another thing does, which a busy machine delays: the last one is ample."""
    while seconds < 40:
        yield seconds
        seconds *= 2


def wait_until(condition, seconds=SOON):
    """The value of condition() once it is true; the last one when it never is."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.02)


class JobTest(unittest.TestCase):
    """A test with a folder of its own, which leaves no process running."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_run_")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_job(self, *words, stdin=subprocess.DEVNULL, env=None, seconds=SECONDS, **options):
        """ibcoll_run WORDS to its end: (exit code, standard output, standard error)."""
        if isinstance(stdin, str):
            options["input"], stdin = stdin, None
        done = subprocess.run([tool("ibcoll_run"), *map(str, words)], stdin=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=seconds, check=False,
                              env={**os.environ, **(env or {})}, **options)
        return done.returncode, done.stdout, done.stderr

    @contextlib.contextmanager
    def started(self, *words, **options):
        """ibcoll_run WORDS as a running process; killed in the end if the test left it running."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        process = subprocess.Popen([tool("ibcoll_run"), *map(str, words)], **options)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()

    def read_lines(self, process, count, seconds=SECONDS):
        """The next `count` lines of the job's standard output."""
        lines, buffer, end = [], b"", time.monotonic() + seconds
        while len(lines) < count:
            ready, _, _ = select.select([process.stdout], [], [], max(0, end - time.monotonic()))
            chunk = os.read(process.stdout.fileno(), 1) if ready else b""
            self.assertTrue(chunk, f"only {lines} within {seconds} s")
            buffer += chunk
            if chunk == b"\n":
                lines.append(buffer.decode().rstrip("\n"))
                buffer = b""
        return lines

    def peak_memory(self, process):
        """In megabytes."""
        with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) / 1024

    def script(self, name, text):
        """An executable file in the test's folder."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def assert_all_gone(self, pids, seconds=SOON):
        self.assertTrue(pids)
        left = []
        wait_until(lambda: not [pid for pid in pids if alive(pid)], seconds)
        left = [pid for pid in pids if alive(pid)]
        for pid in left:
            with contextlib.suppress(ProcessLookupError):  # it may end just now
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes that outlived the job")


class RemoteJobTest(JobTest):
    """A test with two hosts, of 2 and 3 ranks, and a script in place of the remote shell."""

    def setUp(self):
        super().setUp()
        self.shell = self.script("shell", FAKE_SHELL)

    def start(self, program="sleep 1000 & echo $$ $!; wait", launcher=(), **options):
        return self.started("--rsh", self.shell, *launcher, *HOSTS, "sh", "-c", program, **options)

    def pids_of(self, job):
        return [int(pid) for line in self.read_lines(job, 5) for pid in line.split()]

    def agents(self, launcher):
        children = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
                    parent = int(stat.read().rpartition(")")[2].split()[1])
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if parent == launcher and b"--agent" in file.read():
                        children.append(int(pid))
            except OSError:
                continue
        return sorted(children)
