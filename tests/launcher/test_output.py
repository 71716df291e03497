# SPDX-License-Identifier: BSD-3-Clause
"""Standard output, standard error and standard input of the ranks."""

import contextlib
import os
import re
import select
import subprocess
import time

from job import LITTLE_QUARANTINE, SECONDS, SOON, JobTest, ranks_of, state, tool, wait_until

# Rank r writes 3000 lines of many lengths, in parts, to both streams.
CHATTER = r"""
import os, sys
rank = int(os.environ["IBCOLL_RUN_RANK"])
for i in range(3000):
    line = f"<{rank}:{i}:" + "x" * (i * 37 % 300) + ">\n"
    cut = i % len(line)
    stream = 1 + i % 2
    os.write(stream, line[:cut].encode())
    os.write(stream, line[cut:].encode())
"""
# Writes MEGABYTES to standard output.
FLOOD = r"""
import os, sys
block = (b"y" * 63 + b"\n") * 16384
for i in range(int(sys.argv[1])):
    rest = block
    while rest:
        rest = rest[os.write(1, rest):]
"""


class Lines(JobTest):
    def test_are_never_torn(self):
        with self.started("-n", 8, "python3", "-c", CHATTER, stderr=subprocess.STDOUT) as job:
            output = job.stdout.read().decode()
            self.assertEqual(job.wait(SOON), 0)
        lines = output.splitlines()
        self.assertEqual(len(lines), 8 * 3000)
        for line in lines:
            match = re.fullmatch(r"<(\d+):(\d+):(x*)>", line)
            self.assertTrue(match, line)
            self.assertEqual(len(match[3]), int(match[2]) * 37 % 300)
        self.assertEqual(len(set(lines)), 8 * 3000)

    def test_tags(self):
        program = "echo out $IBCOLL_RUN_RANK; echo; echo err $IBCOLL_RUN_RANK >&2; printf end"
        code, output, errors = self.run_job("-n", 3, "--tag-output", "sh", "-c", program)
        self.assertEqual(code, 0)
        self.assertEqual(sorted(output.splitlines()),
                         sorted(f"[{rank}] {text}" for rank in range(3) for text in (f"out {rank}", "", "end")))
        self.assertEqual(sorted(errors.splitlines()), [f"[{rank}] err {rank}" for rank in range(3)])

    def test_one_rank_is_passed_through_byte_for_byte(self):
        self.assertEqual(self.run_job("-n", 1, "printf", r"a\nb\0c")[1], "a\nb\0c")

    def test_last_line_without_a_newline(self):
        code, output, _ = self.run_job("-n", 4, "printf", "unfinished")
        self.assertEqual((code, output.replace("\n", "")), (0, "unfinished" * 4))
        self.assertEqual(output.count("unfinished\n"), 3)

    def test_an_unfinished_line_is_ended_before_that_of_another_rank(self):
        out = self.folder / "out"
        program = 'if [ $IBCOLL_RUN_RANK = 0 ]; then printf a >&2; else until grep -q a "$0"; do sleep 0.02; done; echo b; fi'
        with out.open("w") as file:
            subprocess.run([tool("ibcoll_run"), "-n", "2", "sh", "-c", program, out], stdin=subprocess.DEVNULL, stdout=file,
                           stderr=subprocess.STDOUT, timeout=30, check=True)
        self.assertEqual(out.read_text(), "a\nb\n")

    def test_a_prompt_comes_at_once(self):
        program = "printf 'name? '; read name; echo hello $name"
        with self.started("-n", 1, "sh", "-c", program, stdin=subprocess.PIPE) as job:
            self.assertEqual(os.read(job.stdout.fileno(), 100), b"name? ")
            job.stdin.write(b"you\n")
            job.stdin.flush()
            self.assertEqual(self.read_lines(job, 1), ["hello you"])

    def test_line_of_20_megabytes(self):
        program = "head -c 20000000 /dev/zero | tr '\\0' $IBCOLL_RUN_RANK; echo"
        code, output, _ = self.run_job("-n", 2, "sh", "-c", program)
        self.assertEqual(code, 0)
        self.assertEqual((output.count("0"), output.count("1")), (20_000_000, 20_000_000))

    def test_nothing_is_lost_at_exit(self):
        for _ in range(5):
            code, output, _ = self.run_job("-n", 4, "sh", "-c", "head -c 60000 /dev/zero | tr '\\0' a; echo; echo end")
            self.assertEqual((code, output.count("a"), output.count("end\n")), (0, 240_000, 4))

    def test_nothing_is_lost_of_a_rank_that_fails(self):
        code, output, _ = self.run_job("-n", 2, "sh", "-c", "[ $IBCOLL_RUN_RANK = 1 ] && exec sleep 100; "
                                       "head -c 60000 /dev/zero | tr '\\0' a; echo last words; exit 9")
        self.assertEqual((code, len(output), output[-11:]), (9, 60011, "last words\n"))

    LEFT = r"\Aibcoll_run: host \S+: %s left processes behind that still have the output open 2 s after .* lost\. .*\n\Z"

    def test_a_child_that_holds_the_output_open(self):
        begin = time.monotonic()
        code, output, errors = self.run_job("-n", 2, "sh", "-c", "setsid sleep 90 & echo done")
        self.assertEqual((code, output), (0, "done\n" * 2))
        self.assertRegex(errors, self.LEFT % "ranks 0-1")
        self.assertLess(time.monotonic() - begin, SOON)

    def test_children_have_a_moment_after_the_end_of_their_rank(self):
        program = "[ $IBCOLL_RUN_RANK = 1 ] || { (echo first; sleep 0.7; echo second; exec sleep 1000) & }"
        outputs = set()
        for _ in range(10):  # on a busy machine it is late for it
            code, output, errors = self.run_job("-n", 2, "sh", "-c", program)
            self.assertEqual(code, 0)
            self.assertRegex(errors, self.LEFT % "rank 0")
            outputs.add(output)
            if output == "first\nsecond\n":
                return
        self.fail(outputs)

    def test_children_that_end_in_time_are_not_worth_a_word(self):
        for _ in range(10):
            code, output, errors = self.run_job("-n", 2, "sh", "-c", "(sleep 0.3; echo late) &")
            self.assertEqual(code, 0)
            if errors == "":
                break
        self.assertEqual((output, errors), ("late\n" * 2, ""))


# Two ranks that write in turn. What one writes wakes the launcher, which has read it when it sleeps again; then the other
# goes on.
TURNS = r"""
written() { until grep -q '^State:.S' /proc/$PPID/status; do sleep 0.02; done; }
turn() { written; touch "$1"; }
wait_for() { until [ -e "$1" ]; do sleep 0.02; done; }
if [ $IBCOLL_RUN_RANK = 0 ]; then
  printf 'kept\r'; turn 1; wait_for 2
  echo; printf '50 %%\033[K'; written; printf '\r'; turn 3; wait_for 4
  echo end
else
  wait_for 1; echo other; turn 2
  wait_for 3; echo another; turn 4
fi
"""


class Terminal(JobTest):
    def shown(self, kind):
        """What TURNS writes to a terminal whose TERM is `kind`."""
        folder = self.folder / kind
        folder.mkdir()
        leader, terminal = os.openpty()
        with os.fdopen(leader, "rb", 0) as screen:
            with self.started("-n", 2, "--no-pty", "sh", "-c", TURNS, stdout=terminal, stderr=terminal, cwd=folder,
                              env={**os.environ, "TERM": kind}) as job:
                os.close(terminal)
                seen = b""
                with contextlib.suppress(OSError):  # EIO: no process has the terminal open any more
                    while chunk := screen.read(65536):
                        seen += chunk
                self.assertEqual(job.wait(SOON), 0, seen)
        return seen

    def test_only_progress_is_overwritten(self):
        # The terminal makes "\r\n" of each newline.
        self.assertEqual(self.shown("xterm"), b"other\r\nkept\r\r\n50 %\033[K\r\033[Kanother\r\nend\r\n")
        self.assertEqual(self.shown("dumb"), b"other\r\nkept\r\r\nanother\r\n50 %\033[K\rend\r\n", "it cannot be")


class Volume(JobTest):
    def flood(self, ranks, megabytes, **options):
        program = options.pop("program", FLOOD)
        return self.started("-n", ranks, "python3", "-c", program, megabytes, env=LITTLE_QUARANTINE, **options)

    def await_end_of_ranks(self, job):
        """Each has woken the launcher, which sleeps again: it knows."""
        self.assertTrue(wait_until(lambda: not ranks_of(job.pid) and state(job.pid) == "S"))

    def test_a_gigabyte_of_each_rank(self):
        with self.flood(2, 1024) as job:
            received, peak = 0, 0
            while chunk := os.read(job.stdout.fileno(), 1 << 20):
                received += len(chunk)
                if received < 2000 << 20:  # before the end, while the process is there to be asked
                    peak = self.peak_memory(job)
            self.assertEqual(job.wait(SOON), 0)
        self.assertEqual(received, 2 << 30)
        self.assertLess(peak, 64)

    def test_a_slow_reader_slows_the_ranks_and_costs_no_memory(self):
        with self.flood(4, 40) as job:
            self.assertTrue(select.select([job.stdout], [], [], SOON)[0])
            time.sleep(1)
            self.assertLess(self.peak_memory(job), 64)
            received = 0
            while chunk := os.read(job.stdout.fileno(), 1 << 20):
                received += len(chunk)
            self.assertEqual(job.wait(SOON), 0)
            self.assertEqual(received, 4 * 40 << 20)

    def test_standard_error_as_well(self):
        with self.flood(2, 50, program=FLOOD.replace("os.write(1", "os.write(2"), stdout=subprocess.DEVNULL) as job:
            received = 0
            while chunk := os.read(job.stderr.fileno(), 1 << 20):
                received += len(chunk)
            self.assertEqual(job.wait(SOON), 0)
            self.assertEqual(received, 2 * 50 << 20)

    def test_into_a_file(self):
        path = self.folder / "output"
        with open(path, "w", encoding="ascii") as file:
            file.write("before\n")
            file.flush()
            with self.flood(2, 20, stdout=file) as job:
                self.assertEqual(job.wait(SOON), 0)
        self.assertEqual(path.stat().st_size, 7 + (2 * 20 << 20))
        self.assertTrue(path.read_text(encoding="ascii").startswith("before\nyyy"))

    def test_signals_work_while_nobody_reads(self):
        with self.flood(2, 40) as job:
            self.assertTrue(select.select([job.stdout], [], [], SOON)[0])
            time.sleep(0.3)
            for _ in range(3):  # the second one gives up the output too
                job.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    job.wait(1.5)
                    break
            self.assertEqual(job.wait(SOON), 143)

    def test_one_signal_gives_up_output_of_ranks_that_have_succeeded(self):
        with self.started("-n", 1, "sh", "-c", "head -c 200000 /dev/zero; echo done >&2") as job:
            self.assertEqual(job.stderr.readline(), b"done\n")
            self.await_end_of_ranks(job)
            self.assertIsNone(job.poll())
            job.terminate()
            self.assertEqual(job.wait(SOON), 143)

    def test_standard_error_is_written_out_before_the_end(self):
        with self.started("-n", 1, "sh", "-c", "head -c 200000 /dev/zero >&2") as job:
            self.await_end_of_ranks(job)  # and a pipe does not take all of it
            self.assertEqual(len(job.stderr.read()), 200_000)
            self.assertEqual(job.wait(SOON), 0)

    def test_one_signal_gives_up_output_that_nobody_takes_once_all_ranks_have_ended(self):
        with self.started("-n", 2, "--timeout", 1, "yes") as job:
            self.assertTrue(select.select([job.stdout], [], [], SOON)[0])
            self.await_end_of_ranks(job)  # they were killed
            self.assertIsNone(job.poll())
            job.terminate()
            self.assertEqual(job.wait(SOON), 124)


class BrokenOutput(JobTest):
    def test_a_reader_that_had_enough(self):
        command = f"{tool('ibcoll_run')} -n 2 yes | head -n 3; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.stdout, "y\ny\ny\n141\n", done.stderr)

    def test_closed_output(self):
        for program, streams, expected, about in (("echo text", ">&-", 1, "writing the output: Bad file descriptor"),
                                                  ("echo text", ">&- 2>&-", 1, ""), ("true", ">&-", 0, ""),
                                                  ("sh -c 'echo text >&2'", "2>&-", 0, ""), ("echo text", "1</dev/null", 1, "Bad file"),
                                                  ("sh -c 'echo text >&2'", ">&- 2>/dev/null", 0, "")):
            with self.subTest(program=program, streams=streams):
                done = subprocess.run(["bash", "-c", f"{tool('ibcoll_run')} -n 2 {program} {streams}"], capture_output=True,
                                      text=True, timeout=SECONDS, check=False)
                self.assertEqual(done.returncode, expected, done.stderr)
                self.assertIn(about, done.stderr)

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w", encoding="ascii") as full:
            with self.started("-n", 2, "echo", "text", stdout=full) as job:
                self.assertEqual(job.wait(SOON), 1)
                self.assertIn("No space left on device", job.stderr.read().decode())


class Input(JobTest):
    def test_goes_to_rank_0_only(self):
        program = "while read line; do echo $IBCOLL_RUN_RANK $line; done; echo $IBCOLL_RUN_RANK end"
        code, output, _ = self.run_job("-n", 3, "sh", "-c", program, stdin="a\nb\n")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(output.splitlines()), ["0 a", "0 b", "0 end", "1 end", "2 end"])

    def test_a_job_that_reads_nothing_leaves_it_to_the_next(self):
        command = f"{tool('ibcoll_run')} -n 2 true; cat"
        done = subprocess.run(["sh", "-c", command], input="kept\n", capture_output=True, text=True, timeout=SECONDS,
                              check=False)
        self.assertEqual(done.stdout, "kept\n")

    def test_of_a_terminal(self):
        leader, terminal = os.openpty()
        try:
            program = "[ $IBCOLL_RUN_RANK = 0 ] && read line && echo got $line; true"
            with self.started("-n", 2, "sh", "-c", program, stdin=terminal, start_new_session=True) as job:
                os.write(leader, b"typed\n")
                self.assertEqual(self.read_lines(job, 1), ["got typed"])
                job.wait(SOON)
        finally:
            os.close(leader)
            os.close(terminal)
