# SPDX-License-Identifier: BSD-3-Clause
"""How jobs end: exit codes, dead ranks, signals, time limits."""

import ctypes
import errno
import os
import re
import select
import signal
import subprocess
import time
import unittest

from job import (BIN, SECONDS, SOON, SYSTEM_CALLS, JobTest, blocked_signals, longer_and_longer, never_return_from,
                 refuse_system_call, state, tool, wait_until)

# Prints its own and its child's pid, then waits for the child.
WITH_CHILD = "sleep 1000 & echo $$ $!; wait"


class ExitCodes(JobTest):
    def test_success(self):
        self.assertEqual(self.run_job("-n", 3, "true"), (0, "", ""))

    def test_of_the_rank_that_failed(self):
        code, _, errors = self.run_job("-n", 4, "sh", "-c", "[ $IBCOLL_RUN_RANK = 2 ] && exit 7; sleep 100")
        self.assertEqual(code, 7)
        self.assertRegex(errors, r"^ibcoll_run: rank 2 on host \S+ \(pid \d+\) exited with status 7; ending the job\n$")

    def test_of_a_rank_killed_by_a_signal(self):
        for number, name in ((9, "Killed"), (11, "Segmentation fault")):
            program = f"[ $IBCOLL_RUN_RANK = 1 ] && kill -{number} $$; sleep 100"
            code, _, errors = self.run_job("-n", 2, "sh", "-c", program)
            self.assertEqual(code, 128 + number)
            self.assertRegex(errors, rf"^ibcoll_run: rank 1 on host \S+ \(pid \d+\) was killed by signal {number} "
                                     rf"\({name}")
            self.assertEqual(errors.count("\n"), 1)

    def test_a_killed_rank_is_the_cause_of_others_giving_up(self):
        # Rank 1 is killed as soon as rank 0, which has opened the gate, has given up: the launcher has not taken it away yet.
        gate = self.folder / "gate"
        program = (f"[ $IBCOLL_RUN_RANK = 0 ] && {{ while ! [ -e {gate}.is_awaited ]; do sleep 0.02; done; "
                   f"echo $$ >{gate}.new; mv {gate}.new {gate}; exit 3; }}; "
                   f"touch {gate}.is_awaited; while ! [ -e {gate} ]; do :; done; read pid <{gate}; "
                   "while grep -q ' [RSD] ' /proc/$pid/stat; do :; done 2>/dev/null; kill -9 $$")
        code, _, errors = self.run_job("-n", 2, "sh", "-c", program)
        self.assertEqual(code, 128 + 9)
        self.assertRegex(errors, r"^ibcoll_run: rank 1 on host \S+ \(pid \d+\) was killed by signal 9")

    def test_others_that_abort_are_not_the_cause_of_a_rank_that_gave_up(self):
        gate = self.folder / "gate"
        program = (f"[ $IBCOLL_RUN_RANK = 0 ] && {{ echo $$ >{gate}.new; mv {gate}.new {gate}; exit 3; }}; "
                   f"while ! [ -e {gate} ]; do sleep 0.02; done; read pid <{gate}; "
                   "while grep -q ' [RSD] ' /proc/$pid/stat; do :; done 2>/dev/null; kill -ABRT $$")
        code, _, errors = self.run_job("-n", 2, "sh", "-c", program)
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"^ibcoll_run: rank 0 on host \S+ \(pid \d+\) exited with status 3; ending the job\n$")
        code, _, errors = self.run_job("-n", 2, "sh", "-c", "[ $IBCOLL_RUN_RANK = 0 ] && kill -ABRT $$; sleep 100")
        self.assertEqual(code, 128 + signal.SIGABRT)
        self.assertRegex(errors, r"^ibcoll_run: rank 0 on host \S+ \(pid \d+\) was killed by signal 6 ")

    def test_where_the_caller_ignores_the_ends_of_children(self):
        for program, expected in (("exit 7", 7), ("kill -9 $$", 137), ("true", 0)):
            code, _, errors = self.run_job("-n", 2, "sh", "-c", program,
                                           preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
            self.assertEqual(code, expected, errors)

    def test_program_that_cannot_run(self):
        no_interpreter = self.script("no_interpreter", "#!/no/such/interpreter\n")
        plain = self.folder / "plain"
        plain.write_text("text")
        for program, expected, text in (("no_such_program_anywhere", 127, "not found in PATH"),
                                        ("/no/such/program", 127, "no such file"),
                                        (no_interpreter, 127, "interpreter"),
                                        (plain, 126, "Permission denied"),
                                        (self.folder, 126, "directory")):
            code, _, errors = self.run_job("-n", 3, program)
            self.assertEqual(code, expected, errors)
            self.assertIn(text, errors)
            # Where the kernel refuses, one rank met it; what is looked up before is so for all.
            self.assertRegex(errors, r"^ibcoll_run: host \S+: " + (r"rank \d: " if program in (no_interpreter,) else ""))
            self.assertEqual(errors.count("\n"), 1, errors)
        path = f"{self.folder}:{os.environ['PATH']}"
        code, _, errors = self.run_job("-n", 1, "no_interpreter", env={"PATH": path})
        self.assertEqual(code, 127)
        self.assertIn(f"{no_interpreter}: its interpreter is not there", errors)

    def test_script_without_interpreter_line(self):
        self.assertEqual(self.run_job("-n", 1, self.script("bare", "echo bare\n"))[:2], (0, "bare\n"))

    def test_command_line(self):
        for words in ([], ["-n", "0", "true"], ["-n", "x", "true"], ["--no-such-option", "true"], ["-n", "2"],
                      ["--nodes", "3", "-n", "2", "true"], ["--net", "smoke", "true"], ["--timeout", "x", "true"],
                      ["-x", "IBCOLL_NO_SUCH_VARIABLE", "true"], ["-x", "=1", "true"]):
            code, output, errors = self.run_job(*words)
            self.assertEqual((code, output), (2, ""), words)
            self.assertTrue(errors.startswith("ibcoll_run: "), errors)

    def test_an_option_without_a_value_is_not_an_option_that_is_not_given(self):
        for option in ("--host", "--hostfile", "--rsh", "--address"):
            for value in ("", "  "):
                for words in ([option, value], [f"{option}={value}"]):
                    with self.subTest(words=words):
                        code, output, errors = self.run_job(*words, "true")
                        self.assertEqual((code, output), (2, ""), errors)
                        self.assertRegex(errors, rf"\Aibcoll_run: {option}: [^\n]*; see ibcoll_run --help\n\Z")

    def test_help(self):
        code, output, _ = self.run_job("--help")
        self.assertEqual(code, 0)
        for option in ("-n", "--nodes", "--host", "--hostfile", "--rsh", "--net", "--timeout", "--tag-output", "-x"):
            self.assertIn(option, output)


class NobodyLeft(JobTest):
    def pids_of(self, process, ranks):
        return [int(pid) for line in self.read_lines(process, ranks) for pid in line.split()]

    def test_after_a_rank_died(self):
        with self.started("-n", 4, "sh", "-c", WITH_CHILD) as job:
            pids = self.pids_of(job, 4)
            begin = time.monotonic()
            os.kill(pids[0], signal.SIGKILL)
            self.assertEqual(job.wait(SOON), 137)
            self.assertLess(time.monotonic() - begin, SOON)
            self.assert_all_gone(pids)

    def test_ranks_that_ignore_the_request(self):
        with self.started("-n", 3, "sh", "-c", "trap '' TERM; " + WITH_CHILD + "; sleep 1000") as job:
            pids = self.pids_of(job, 3)
            begin = time.monotonic()
            job.send_signal(signal.SIGTERM)  # ignored by all
            time.sleep(0.3)
            os.kill(pids[0], signal.SIGKILL)
            self.assertEqual(job.wait(SOON), 137)
            self.assertLess(time.monotonic() - begin, SOON)
            self.assert_all_gone(pids)

    def test_a_stopped_rank(self):
        with self.started("-n", 2, "sh", "-c", WITH_CHILD) as job:
            pids = self.pids_of(job, 2)
            os.kill(pids[0], signal.SIGSTOP)
            os.kill(pids[2], signal.SIGKILL)
            self.assertEqual(job.wait(SOON), 137)
            self.assert_all_gone(pids)

    def test_a_stopped_rank_has_its_last_words(self):
        program = "trap 'echo farewell; exit' TERM; echo $$; while :; do sleep 0.05; done"
        with self.started("-n", 2, "sh", "-c", program) as job:
            pids = [int(line) for line in self.read_lines(job, 2)]
            os.kill(pids[0], signal.SIGSTOP)
            os.kill(pids[1], signal.SIGKILL)
            self.assertEqual(self.read_lines(job, 1), ["farewell"])
            self.assertEqual(job.wait(SOON), 137)
            self.assert_all_gone(pids)

    def test_a_rank_whose_end_a_debugger_has_not_seen(self):
        # A process that is traced is its parent's to wait for only once its tracer has waited for it.
        seize = 0x4206
        with self.started("-n", 2, "sh", "-c", "trap 'echo asked' USR1; echo $$; while :; do sleep 0.05; done") as job:
            pids = [int(line) for line in self.read_lines(job, 2)]
            if ctypes.CDLL(None, use_errno=True).ptrace(seize, pids[0], None, None) != 0:
                self.skipTest(f"ptrace: {os.strerror(ctypes.get_errno())}")
            os.kill(pids[0], signal.SIGKILL)
            self.assertTrue(wait_until(lambda: state(pids[0]) == "Z"))
            time.sleep(0.3)
            job.send_signal(signal.SIGUSR1)
            self.assertEqual(self.read_lines(job, 1, SOON), ["asked"])
            self.assertEqual(os.waitpid(pids[0], 0)[1], signal.SIGKILL)  # now the parent may
            self.assertEqual(job.wait(SOON), 137)
            self.assert_all_gone(pids)

    def test_after_the_launcher_was_killed(self):
        # The second one is out of reach of a parent-death signal: its parent is a wrapper that clears it.
        for wrapper in ([], ["setpriv", "--pdeathsig", "clear"]):
            with self.started("-n", 4, *wrapper, "sh", "-c", "trap '' TERM HUP; " + WITH_CHILD) as job:
                pids = self.pids_of(job, 4)
                job.kill()
                job.wait(SOON)
                self.assert_all_gone(pids)

    def test_children_in_the_background(self):
        with self.started("-n", 2, "sh", "-c", "sleep 1000 & echo $!") as job:
            pids = self.pids_of(job, 2)
            self.assertEqual(job.wait(SOON), 0)
            self.assert_all_gone(pids)


class Signals(JobTest):
    SHELL = "trap 'echo got %s; exit 5' %s; echo ready; while :; do sleep 0.05; done"

    def test_are_forwarded(self):
        for name in ("INT", "TERM", "HUP", "USR1", "USR2", "WINCH"):
            with self.started("-n", 2, "sh", "-c", self.SHELL % (name, name)) as job:
                self.assertEqual(self.read_lines(job, 2), ["ready"] * 2)
                job.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(job.wait(SOON), 5)
                self.assertIn(f"got {name}", job.stdout.read().decode())

    def test_without_a_handler_they_end_the_job(self):
        for name, code in (("INT", 130), ("TERM", 143), ("HUP", 129)):
            with self.started("-n", 2, "sh", "-c", "echo ready; exec sleep 1000") as job:
                self.read_lines(job, 2)
                job.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(job.wait(SOON), code)

    def test_the_second_interrupt_kills(self):
        with self.started("-n", 2, "sh", "-c", "trap 'echo got' INT; echo $$; while :; do sleep 0.05; done") as job:
            pids = [int(line) for line in self.read_lines(job, 2)]
            job.send_signal(signal.SIGINT)
            self.assertEqual(self.read_lines(job, 2), ["got"] * 2)
            time.sleep(0.3)
            self.assertIsNone(job.poll())
            job.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(SOON), 130)
            self.assert_all_gone(pids)

    def test_quit_asks_and_does_not_kill(self):
        # The shell catches SIGUSR1; its child, and the rank that is `sleep`, do not and must survive.
        program = "[ $IBCOLL_RUN_RANK = 1 ] && { echo ready; exec sleep 1000; }; " + self.SHELL % ("asked", "USR1")
        program = program.replace("exit 5", "true")
        with self.started("-n", 2, "sh", "-c", program) as job:
            self.read_lines(job, 2)
            job.send_signal(signal.SIGQUIT)
            self.assertEqual(self.read_lines(job, 1), ["got asked"])
            time.sleep(0.3)
            self.assertIsNone(job.poll())

    def test_quit_does_not_kill_who_gives_its_handler_up(self):
        # As a rank does that ends its context: caught one moment, deadly the next.
        flips = ("import os, signal\nprint(os.getpid(), flush=True)\nwhile True:\n"
                 "  signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'asked\\n'))\n"
                 "  signal.signal(signal.SIGUSR1, signal.SIG_DFL)\n")
        with self.started("-n", 1, "python3", "-c", flips) as job:
            self.read_lines(job, 1)
            asked, sent, end = b"", 0, time.monotonic() + SECONDS
            while sent < 300 or (asked.count(b"asked") < 5 and time.monotonic() < end):
                job.send_signal(signal.SIGQUIT)
                sent += 1
                while select.select([job.stdout], [], [], 0.004)[0] and (chunk := os.read(job.stdout.fileno(), 4096)):
                    asked += chunk
                self.assertIsNone(job.poll(), "killed by SIGUSR1")
            self.assertGreaterEqual(asked.count(b"asked"), 5)  # and yet it is asked

    def ask_until(self, job, answer):
        """Ctrl-\\ again and again; what was said."""
        said, end = b"", time.monotonic() + SECONDS
        while not re.search(answer, said) and time.monotonic() < end:
            job.send_signal(signal.SIGQUIT)
            while select.select([job.stderr], [], [], 0.5)[0] and (chunk := os.read(job.stderr.fileno(), 4096)):
                said += chunk
        return said

    def test_quit_names_who_is_late(self):
        """Rank 1 is stopped in a loop of barriers; the summary names it, and the two that wait for it."""
        program = f"echo $IBCOLL_RUN_RANK $$; exec {tool('ibcoll_launcher_calls')} barriers"
        files = [self.folder / f"trace.{rank}" for rank in range(3)]  # each is made when its rank's context is complete
        with self.started("-n", 3, "sh", "-c", program, env={**os.environ, "IBCOLL_TRACE": str(self.folder)}) as job:
            pids = dict(map(int, line.split()) for line in self.read_lines(job, 3))
            self.assertTrue(wait_until(lambda: all(file.exists() for file in files), SECONDS))
            said = self.ask_until(job, rb"barrier \(\w+\) #\d{4,}")  # well inside of the loop
            os.kill(pids[1], signal.SIGSTOP)
            said = self.ask_until(job, rb": rank 1 is late for barrier ")
            os.kill(pids[1], signal.SIGCONT)
            job.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(SOON), 130)
        self.assertRegex(said.decode(), r"(?m)^ibcoll_run: rank 1 is late for barrier \(\w+\) #\d+: ranks 0,2 wait for it "
                                        r"since \d+\.\d s$")

    def test_quit_leaves_a_stopped_process_stopped(self):
        with self.started("-n", 1, "sh", "-c", "trap 'echo asked' USR1; echo $$; while :; do sleep 0.05; done") as job:
            pid = int(self.read_lines(job, 1)[0])
            os.kill(pid, signal.SIGSTOP)
            self.assertTrue(wait_until(lambda: state(pid) == "T"))
            job.send_signal(signal.SIGQUIT)
            time.sleep(0.2)
            self.assertEqual(state(pid), "T")
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(self.read_lines(job, 1), ["asked"])

    def test_stop_and_continue(self):
        with self.started("-n", 1, "sh", "-c", "echo ready; while :; do echo tick; sleep 0.05; done") as job:
            self.read_lines(job, 1)
            job.send_signal(signal.SIGTSTP)
            self.assertTrue(wait_until(lambda: state(job.pid) == "T"))
            job.send_signal(signal.SIGCONT)
            self.read_lines(job, 40)


class Deaf(JobTest):
    """A launcher that cannot take a signal, for it is in a call that does not return."""

    def test_is_ended_in_seconds(self):
        hang = {"env": {**os.environ, "IBCOLL_RUN_TIMEOUTS": "0.5"}, "close_fds": False,
                "preexec_fn": lambda: never_return_from(SYSTEM_CALLS["memfd_create"])}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.started("true", **hang) as job:
                self.assertTrue(wait_until(lambda: number in blocked_signals(job.pid)))
                self.assertIsNone(job.poll())
                job.send_signal(number)
                self.assertEqual(job.wait(SOON), -number)
                self.assertRegex(job.stderr.read().decode(), rf"\Aibcoll_run: pid {job.pid} got signal "
                                                             rf"{number:d}, and hangs in a call .* at once\n\Z")

    def test_what_is_taken_late_is_taken(self):
        """A launcher that was stopped for longer than its own timeout forwards what came meanwhile."""
        program = "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
        for seconds in longer_and_longer(0.4):
            with self.started("-n", 1, "sh", "-c", program, env={**os.environ, "IBCOLL_RUN_TIMEOUTS": str(seconds)}) as job:
                self.read_lines(job, 1)
                os.kill(job.pid, signal.SIGSTOP)
                self.assertTrue(wait_until(lambda: state(job.pid) == "T"))
                job.send_signal(signal.SIGTERM)
                time.sleep(2 * seconds)
                os.kill(job.pid, signal.SIGCONT)
                if job.wait(SOON) == 5:
                    self.assertEqual(job.stdout.read(), b"got\n")
                    return
        self.fail("ended by its own watchdog")


class TimeLimit(JobTest):
    def test_ends_the_job(self):
        begin = time.monotonic()
        code, _, errors = self.run_job("-n", 2, "--timeout", 0.5, "sleep", 1000)
        self.assertEqual(code, 124)
        self.assertLess(time.monotonic() - begin, SOON)
        self.assertIn("has not ended within 0.5 s (--timeout)", errors)

    def test_does_not_touch_a_job_that_is_quick(self):
        self.assertEqual(self.run_job("-n", 2, "--timeout", 20, "true"), (0, "", ""))

    def test_takes_a_number_above_0(self):
        for seconds in ("nan", "-nan", "inf", "1e300", "0", "-1", "1s", "soon", ""):
            code, output, errors = self.run_job("--timeout", seconds, "true")
            self.assertEqual((code, output), (2, ""), seconds)
            self.assertIn(f"--timeout: '{seconds}' is not a number of seconds above 0", errors)
            self.assertLess(len(errors), 160)

    def stopped_for_longer_than_its_limit(self, seconds, program):
        """The exit code of a job that goes on then; 124 as well where the machine is too slow to stop it before."""
        gate = self.folder / "gate"
        for file in self.folder.iterdir():
            file.unlink()
        with self.started("-n", 2, "--timeout", seconds, "sh", "-c", program) as job:
            wait_until(lambda: (self.folder / "ready").exists() or job.poll() is not None)
            job.send_signal(signal.SIGTSTP)
            wait_until(lambda: state(job.pid) == "T" or job.poll() is not None)
            time.sleep(1.5 * seconds)
            gate.touch()
            job.send_signal(signal.SIGCONT)
            return job.wait(SOON)

    def test_does_not_count_the_time_that_a_job_was_stopped(self):
        program = f"touch {self.folder}/ready; while ! [ -e {self.folder}/gate ]; do sleep 0.05; done"
        self.assertIn(0, (self.stopped_for_longer_than_its_limit(seconds, program) for seconds in longer_and_longer(1)))
        endless = f"touch {self.folder}/ready; exec sleep 1000"
        self.assertEqual(self.stopped_for_longer_than_its_limit(1, endless), 124, "what is left of it counts")

    def test_with_ranks_that_ignore_the_request(self):
        code, _, _ = self.run_job("-n", 2, "--timeout", 0.5, "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done")
        self.assertEqual(code, 124)


class Limits(JobTest):
    def test_128_ranks(self):
        code, output, errors = self.run_job("-n", 128, tool("ibcoll_launcher_probe"), "exchange", 2)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(len(re.findall(r"^rank \d+ of 128 .*: ok$", output, re.M)), 128)

    def test_files_may_have_no_bytes(self):
        done = subprocess.run(["sh", "-c", f"ulimit -f 0; {tool('ibcoll_run')} -n 2 true"], capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"\Aibcoll_run: host \S+: memfd of the job secret: File too large \(ulimit -f\)\n\Z")

    def test_no_more_files_for_the_ranks(self):
        for limit in range(40, 46):  # whichever call meets it
            command = f"ulimit -n {limit}; {tool('ibcoll_run')} -n 40 sleep 1000"
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"\Aibcoll_run: host \S+: rank \d+: .*Too many open files.*ulimit -n\)\n\Z")

    def test_no_more_files_for_the_connections_of_the_ranks(self):
        command = f"ulimit -n 78; {tool('ibcoll_run')} -n 20 {tool('ibcoll_launcher_probe')}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False,
                              env={**os.environ, "IBCOLL_TIMEOUT": "1"})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(done.stderr.count("ibcoll_run: cannot accept the connections of all ranks: Too many open files; "
                                           "raise the limit of open files (ulimit -n)\n"), 1, done.stderr)

    @unittest.skipIf("asan" in str(BIN) or "tsan" in str(BIN), "sanitizers ask for them, too, where a thread starts")
    def test_a_sandbox_that_hides_the_processors(self):
        """hwloc asks for them until it gets an answer."""
        def hide():
            refuse_system_call(SYSTEM_CALLS["sched_getaffinity"])

        for words in (["-n", 2], [], ["-n", 2, "--report-bindings"], ["-n", 2, "--bind-to", "none"]):
            code, _, errors = self.run_job(*words, tool("ibcoll_launcher_calls"), "once", preexec_fn=hide, seconds=SOON)
            self.assertEqual(code, 0, errors)
        self.assertEqual(len(re.findall(r": rank \d not bound$", self.run_job(
            "-n", 2, "--report-bindings", "true", preexec_fn=hide)[2], re.M)), 2)
        code, _, errors = self.run_job("-n", 2, "--bind-to", "core", "true", preexec_fn=hide, seconds=SOON)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"\Aibcoll_run: host \S+: --bind-to: hwloc cannot read the machine's topology "
                                 r"\(sched_getaffinity is refused; by a seccomp filter\?\); --bind-to none binds none\n\Z")

    def test_a_sandbox_that_binds_nothing(self):
        def refuse():
            refuse_system_call(SYSTEM_CALLS["sched_setaffinity"])

        code, _, errors = self.run_job("--report-bindings", "true", preexec_fn=refuse)
        self.assertEqual(code, 0)
        self.assertRegex(errors, r"\A(ibcoll_run: host \S+: rank \d+ not bound \(processors [\d,-]+\)\n)+\Z")
        code, _, errors = self.run_job("-n", 1, "--bind-to", "core", "true", preexec_fn=refuse)
        self.assertEqual(code, 1)
        self.assertRegex(errors, r"\Aibcoll_run: host \S+: --bind-to: rank 0 cannot be bound to processors? \d[\d,-]*: "
                                 r"Operation not permitted; --bind-to none binds none\n\Z")

    def test_a_sandbox_without_the_ends_of_processes(self):
        for reason in (errno.EPERM, errno.ENOSYS):
            code, _, errors = self.run_job("-n", 2, "sleep", 1000, seconds=SOON,
                                           preexec_fn=lambda why=reason: refuse_system_call(SYSTEM_CALLS["pidfd_open"], why))
            self.assertEqual(code, 1)
            self.assertRegex(errors, r"\Aibcoll_run: host \S+: rank 0: pidfd_open: (Operation not permitted|Function not "
                                     r"implemented); Linux 5\.3 or newer is needed, and a container's seccomp filter has to "
                                     r"allow the call\n\Z")

    def test_low_limit_of_open_files(self):
        command = f"ulimit -S -n 64; {tool('ibcoll_run')} -n 40 sh -c 'ulimit -S -n'"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "64\n" * 40), done.stderr)
