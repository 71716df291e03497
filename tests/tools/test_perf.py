# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_perf as its users meet it: options, formats, files, exit statuses. Times are not judged.

The build tree is taken from $build, else build/release.
"""

import concurrent.futures
import contextlib
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import termios
import unittest

import tables

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
COLUMNS = ["bytes", "iterations", "t_min", "t_avg", "t_max", "p99", "errors", "algorithm"]


def perf(ranks, *words, environment=None, launch=()):
    """Runs it; ranks 0: without a launcher."""
    command = [BUILD / "bin/ibcoll_perf", *words]
    if ranks:
        command = [BUILD / "bin/ibcoll_run", "-n", ranks, *launch, *command]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, check=False,
                          env=dict(os.environ, **(environment or {})))


def rows_of(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


class PerfTest(unittest.TestCase):
    def check_runs(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def check_refused(self, done, *parts, status=2):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


# A library of which some calls of the request that is measured do nothing; what ibcoll_perf calls for itself asks for "auto".
BROKEN = """#define _GNU_SOURCE
#include <dlfcn.h>
#include "runtime/include/ibcoll.h"
static ibcoll_request_t measured;
static int calls;
ibcoll_status_t ibcoll_collective_init(ibcoll_team_t team, const ibcoll_collective_args_t* args, ibcoll_request_t* request) {
  ibcoll_status_t (*init)(ibcoll_team_t, const ibcoll_collective_args_t*, ibcoll_request_t*) =
      dlsym(RTLD_NEXT, "ibcoll_collective_init");
  const ibcoll_status_t status = init(team, args, request);
  if (!args->algorithm) measured = *request;
  else if (measured == *request) measured = 0;
  return status;
}
ibcoll_status_t ibcoll_start(ibcoll_request_t request) {
  if (request == measured && calls++ % OF == OF - 1) return IBCOLL_OK;
  return ((ibcoll_status_t(*)(ibcoll_request_t))dlsym(RTLD_NEXT, "ibcoll_start"))(request);
}
"""


class Broken(PerfTest):
    """Libraries that do not do their work: --check must tell."""

    def rows_with(self, of, *words):
        """One in `of` calls does nothing."""
        with tempfile.TemporaryDirectory() as folder:
            library = pathlib.Path(folder) / "broken.so"
            subprocess.run(["cc", "-shared", "-fPIC", f"-DOF={of}", "-I", ROOT, "-xc", "-", "-o", library, "-ldl"],
                           input=BROKEN, text=True, check=True)
            done = perf(2, *words, "--check", "--format", "csv",
                        environment={"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"})
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return rows_of(done)

    def test_calls_that_do_nothing_are_wrong(self):
        for words in ([], ["--in-place"]):
            rows = self.rows_with(2, "all", "--bytes", "64", "--iterations", "12", *words)
            self.assertEqual([row["collective"] for row in rows if int(row["errors"]) > 0], tables.collectives())

    def test_barriers_that_do_nothing_are_wrong(self):
        # In each call one of the two ranks comes late, and the other one does not wait for it.
        row, = self.rows_with(1, "barrier", "--iterations", "50")
        self.assertGreaterEqual(int(row["errors"]), 25)

    def test_barriers_that_do_nothing_are_wrong_when_ranks_are_late(self):
        row, = self.rows_with(1, "barrier", "--arrival", "late:50:100", "--message-cost", "10:0", "--iterations", "50")
        self.assertGreaterEqual(int(row["errors"]), 25)


class Figures(PerfTest):
    def test_every_collective_is_right(self):
        for ranks, words in ((0, []), (3, []), (4, ["--in-place", "--root", "2"]),
                             (3, ["--calls", "blocking", "--memory", "ibcoll", "--root", "1"])):
            with self.subTest(ranks=ranks, words=words):
                done = self.check_runs(perf(ranks, "all", "--check", "--bytes", "1:64K", "--factor", "16", "--iterations", "4",
                                            "--format", "csv", *words))
                rows = rows_of(done)
                self.assertEqual(list(dict.fromkeys(row["collective"] for row in rows)), tables.collectives())
                for collective in tables.collectives():
                    self.assertEqual([row["bytes"] for row in rows if row["collective"] == collective],
                                     ["0"] if collective == "barrier" else ["1", "16", "256", "4096", "65536"])
                self.assertEqual({row["errors"] for row in rows}, {"0"})

    def test_schemes_are_right(self):
        for scheme in ("copy", "zero_copy"):
            for words in ([], ["--calls", "blocking"], ["--calls", "oneshot"]):
                with self.subTest(scheme=scheme, words=words):
                    self.check_runs(perf(2, "alltoallv", "--check", "--bytes", "64K", "--iterations", "4", "--scheme", scheme,
                                         *words))

    def test_every_distribution_is_right(self):
        words = perf(0, "allgatherv", "--distribution", "x").stderr.split("{")[1].split("}")[0].split(",")
        self.assertEqual(len(words), 14)
        irregular = [row["name"] for row in tables.read()["collectives"] if row["irregular"]]
        for distribution in words:
            for collective in irregular if distribution == "geometric" else ["gatherv"]:
                with self.subTest(distribution=distribution, collective=collective):
                    self.check_runs(perf(4, collective, "--distribution", distribution, "--check", "--bytes", "1:4K", "--factor",
                                         "64", "--iterations", "4"))

    def test_types_and_operations_are_right(self):
        for words, sizes in ((["--type", "int16", "--op", "max"], ["2", "16", "256"]),
                             (["--op", "composition"], ["1", "16", "256"]), (["--op", "band"], ["1", "16", "256"])):
            if "composition" in words:
                sizes = ["8", "16", "256"]
                words = words + ["--type", "uint64"]
            for collective in ("allreduce", "scan", "reduce_scatter"):
                with self.subTest(words=words, collective=collective):
                    done = self.check_runs(perf(3, collective, "--check", "--bytes", "1:256", "--factor", "16", "--iterations",
                                                "4", "--format", "csv", *words))
                    self.assertEqual([row["bytes"] for row in rows_of(done)], sizes)

    def test_words_of_the_osu_benchmarks(self):
        done = self.check_runs(perf(2, "gather", "-m", "4:16", "-i", "7", "-x", "3", "-f", "--format", "csv"))
        rows = rows_of(done)
        self.assertEqual([(row["bytes"], row["iterations"]) for row in rows], [("4", "7"), ("8", "7"), ("16", "7")])
        for row in rows:
            self.assertLessEqual(float(row["p50"]), float(row["p90"]))
            self.assertLessEqual(float(row["p90"]), float(row["p99"]))

    def test_all_algorithms_of_all_collectives(self):
        done = self.check_runs(perf(3, "all", "--algorithm", "all", "--check", "--bytes", "8", "--iterations", "4", "--format",
                                    "csv"))
        listed, collective = [], ""
        for line in perf(0, "--list").stdout.splitlines():
            if line.startswith(" "):
                listed.append((collective, line.split()[0]))
            collective = collective if line.startswith(" ") else line
        self.assertEqual([(row["collective"], row["algorithm"].split(":")[0]) for row in rows_of(done)], listed)

    def test_one_command_verifies_all_on_every_layout(self):
        for ranks, launch in ((2, []), (4, ["--nodes", "2", "--net", "ucx"]), (5, ["--nodes", "3", "--net", "ucx"])):
            with self.subTest(ranks=ranks, launch=launch):
                done = self.check_runs(perf(ranks, "all", "--algorithm", "all", "--check", "--bytes", "8:32K", "--factor", "4096",
                                            "--iterations", "3", "--warmup", "0", launch=launch))
                lines = done.stdout.splitlines()
                self.assertEqual(sum(line.endswith(f" over {ranks} ranks; times in us, which include waiting for ranks that verify")
                                     for line in lines), len(tables.collectives()))
                rows = [line.split() for line in lines if line[0] == " " and line.split()[0] != "bytes"]
                not_applicable = sum(row[1] == "n/a" for row in rows)
                self.assertIn(f"# passed: {len(rows) - not_applicable} rows verified, 0 errors; {not_applicable} not applicable",
                              lines)

    def test_every_algorithm_or_why_not(self):
        done = self.check_runs(perf(3, "allgather", "--algorithm", "all", "--check", "--bytes", "8", "--iterations", "4",
                                    "--format", "csv", launch=["--nodes", "2", "--net", "ucx"]))
        listed = perf(0, "--list").stdout.split("allgatherv\n")[0].split("allgather\n")[1]
        self.assertEqual({row["algorithm"].split(":")[0] for row in rows_of(done)}, {line.split()[0] for line in listed.splitlines()})
        for row in rows_of(done):
            self.assertEqual(row["errors"] == "0", row["not_applicable"] == "", row)

    def test_algorithm_with_a_parameter_or_by_size(self):
        done = self.check_runs(perf(3, "allgather", "--algorithm", "ring:1K..,bruck", "--bytes", "8:8K", "--factor", "1024",
                                    "--iterations", "4", "--format", "csv"))
        self.assertEqual([row["algorithm"] for row in rows_of(done)], ["bruck", "ring"])

    def test_iterations_are_as_given(self):
        done = self.check_runs(perf(2, "allreduce", "--bytes", "8:16", "--iterations", "17", "--format", "csv"))
        self.assertEqual([row["iterations"] for row in rows_of(done)], ["17", "17"])
        self.assertEqual({row["errors"] for row in rows_of(done)}, {""})  # not checked is not "0 errors"
        for count in ("1", "2", "7"):
            done = self.check_runs(perf(2, "alltoall", "--bytes", "8", "--iterations", count, "--check", "--format", "csv"))
            self.assertEqual(rows_of(done)[0]["iterations"], count)


class Formats(PerfTest):
    def test_table_has_the_columns_and_the_memory(self):
        lines = self.check_runs(perf(2, "bcast", "--bytes", "8", "--iterations", "5")).stdout.splitlines()
        self.assertEqual(lines[1].split(), COLUMNS)
        self.assertEqual(len(lines[2].split()), len(COLUMNS))
        self.assertRegex(lines[-1], r"^# private memory: \d+\.\d MB per rank")

    def test_json(self):
        done = self.check_runs(perf(2, "bcast", "--bytes", "8:32", "--iterations", "5", "--format", "json", "--check"))
        document = json.loads(done.stdout)
        self.assertEqual((document["collective"], document["ranks"], len(document["rows"])), ("bcast", 2, 3))
        for row in document["rows"]:
            self.assertLessEqual(set(COLUMNS), set(row))
            self.assertLessEqual(row["t_min"], row["t_avg"])
            self.assertLessEqual(row["t_avg"], row["t_max"])
            self.assertEqual(row["errors"], 0)

    def test_list_names_every_collective(self):
        done = self.check_runs(perf(2, "--list"))
        self.assertEqual([line for line in done.stdout.splitlines() if not line.startswith(" ")], tables.collectives())

    def test_auto_is_the_lowest_cost_whatever_the_variable_says(self):
        def ran(*words, **environment):
            done = perf(2, "alltoall", "--bytes", "8", "--iterations", "2", "--format", "csv", *words,
                        environment={**environment, "IBCOLL_TUNING": "off"})
            return [row["algorithm"] for row in rows_of(self.check_runs(done)) if not row["not_applicable"]]
        auto, = ran(IBCOLL_ALLTOALL="")
        other = next(name for name in ran("--algorithm", "all") if name != auto)
        for words in ([], ["--calls", "blocking"], ["--calls", "oneshot"]):
            self.assertEqual(ran(*words, IBCOLL_ALLTOALL=other), [other])
            self.assertEqual(ran("--algorithm", "auto", *words, IBCOLL_ALLTOALL=other), [auto])


class Arrivals(PerfTest):
    def trace(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "arrivals"
        path.write_text(text, encoding="ascii")
        return path

    def test_ranks_come_as_late_as_the_pattern_says(self):
        # Sleeps end late, never early. T is 10 us, as --message-cost says.
        trace = self.trace("# ibcoll arrivals 1 ranks 4\n0 0 0 20000\n20000 0 0 0\n")
        for pattern, least in (("late:25:2000", 2000), (f"file:{trace}", 2000), ("random:4000", 100)):
            with self.subTest(pattern=pattern):
                row, = rows_of(self.check_runs(perf(4, "alltoall", "--bytes", "8", "--arrival", pattern, "--message-cost",
                                                    "10:0", "--iterations", "4", "--format", "csv")))
                self.assertGreater(float(row["worst_factor"]), least * 0.8)
                self.assertGreater(float(row["worst_factor"]), float(row["average_factor"]))
                # All but one rank wait for the late one; a wait does not count after the last arrival.
                self.assertGreater(float(row["t_avg"]), float(row["t_last"]))
                self.assertEqual((row["message"], row["bound"], row["clock_error"]), ("10", "10", "0"))
                self.assertEqual(row["iterations"], "4")

    def test_every_collective_is_right(self):
        for ranks in (1, 3):
            rows = rows_of(self.check_runs(perf(ranks, "all", "--check", "--bytes", "8:64K", "--factor", "64", "--iterations",
                                                "4", "--arrival", "late:1:10", "--format", "csv")))
            self.assertEqual(list(dict.fromkeys(row["collective"] for row in rows)), tables.collectives())
            self.assertEqual({row["errors"] for row in rows}, {"0"})

    def test_formats_say_how_ranks_wait_and_what_a_message_takes(self):
        words = ["alltoall", "--bytes", "8", "--iterations", "3", "--arrival", "none"]
        table = self.check_runs(perf(1, *words)).stdout
        self.assertRegex(table, r"# arrival none: delays spin; one clock .* \(measured\)\n +bytes .* t_last +bound +average_factor")
        document = json.loads(self.check_runs(perf(os.cpu_count() + 1, *words, "--format", "json")).stdout)
        self.assertIn("delays sleep", document["arrival"])
        row, = document["rows"]
        self.assertEqual(row["delays"], "sleep")
        self.assertGreater(row["alpha"], 0)
        self.assertGreater(row["message"], 0)

    def test_algorithms_that_do_not_apply_leave_columns_empty(self):
        rows = rows_of(self.check_runs(perf(3, "allgather", "--algorithm", "all", "--bytes", "8", "--iterations", "3",
                                            "--arrival", "none", "--format", "csv")))
        without = [row for row in rows if row["not_applicable"]]
        self.assertIn("recursive_doubling", [row["algorithm"] for row in without])
        self.assertEqual({row["t_last"] for row in without}, {""})

    def test_wrong_patterns_are_named(self):
        for pattern, part in (("random", "try random:32"), ("random:nan", "random:nan"), ("late:101:3", "try late:25:128"),
                              ("late:5", "late:5"), ("sometimes", "try none, random:MIF"), ("file:", "a file name")):
            self.check_refused(perf(0, "alltoall", "--arrival", pattern), "--arrival", part)
        self.check_refused(perf(0, "alltoall", "--arrival", "none", "--message-cost", "7"), "try 20:0.008")
        self.check_refused(perf(0, "alltoall", "--message-cost", "7:1"), "it goes with --arrival")

    def test_wrong_traces_are_named_with_their_line(self):
        head = "# ibcoll arrivals 1 ranks 2\n"
        for text, part in (("0 1\n", "line 1: '# ibcoll arrivals"), ("", "line 1"), (head, "line 2: there is no call"),
                           (head + "0 1\n0\n", "line 3: 1 delays, where 2"), (head + "0 x\n", "line 2: 'x' is no delay"),
                           (head + "0 -1\n", "'-1'"), (head.replace("2", "5") + "0 1\n", "of 5 ranks and the job has 2")):
            with self.subTest(text=text):
                done = perf(2, "alltoall", "--bytes", "8", "--arrival", f"file:{self.trace(text)}")
                self.check_refused(done, part, status=1)
        self.check_refused(perf(2, "alltoall", "--arrival", "file:/nowhere/a"), "/nowhere/a: cannot be opened", status=1)


class Output(PerfTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ibcoll_perf.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_file_holds_what_would_be_printed(self):
        path = self.folder / "out.csv"
        done = self.check_runs(perf(2, "barrier", "--iterations", "5", "--format", "csv", "--output", path))
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(path.read_text().splitlines()), 2)
        self.assertEqual(os.listdir(self.folder), ["out.csv"])

    def test_no_such_folder_is_named_once(self):
        done = perf(2, "barrier", "--output", self.folder / "none/out")
        self.check_refused(done, "none/out: No such file or directory", status=1)
        self.assertEqual(done.stderr.count("No such file"), 1)

    def test_full_disk_is_told(self):
        self.check_refused(perf(0, "barrier", "--iterations", "5", "--output", "/dev/full"), "No space left", status=1)
        for option in ("--list", "--help"):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([BUILD / "bin/ibcoll_perf", option], stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1, option)
            self.assertRegex(done.stderr, r"\Aibcoll_perf: .*No space left[^\n]*\n\Z")


class ProgressLine(PerfTest):
    """One row of some seconds, on a terminal."""

    # Before each of 15 calls a rank is late by 0.1 s: longer than the second after which the line is shown.
    PERF = (BUILD / "bin/ibcoll_perf", "alltoall", "--bytes", "4M", "--arrival", "late:100:1000", "--message-cost", "100:0",
            "--iterations", "15", "--warmup", "0")

    def on_terminal(self, *command, columns=80, kind="xterm", **streams):
        """What reaches the terminal of a run whose streams lead there, but for those given."""
        leader, terminal = os.openpty()
        termios.tcsetwinsize(terminal, (24, columns))
        with os.fdopen(leader, "rb", 0) as screen:
            job = subprocess.Popen([str(word) for word in command], **{"stdin": subprocess.DEVNULL, "stdout": terminal,
                                                                       "stderr": terminal, **streams},
                                   env={**os.environ, "TERM": kind})
            os.close(terminal)
            seen = b""
            with contextlib.suppress(OSError):  # EIO: no process has the terminal open any more
                while chunk := screen.read(65536):
                    seen += chunk
            self.assertEqual(job.wait(60), 0, seen)
        return seen.decode()

    def test_is_shown_and_overwritten(self):
        for launch in (), (BUILD / "bin/ibcoll_run", "-n", "2"):
            with self.subTest(launch=launch):
                lines = self.on_terminal(*launch, *self.PERF).split("\n")
                # Before the row, which is there once it is measured.
                shown = "".join(line for line in lines if "rows done" in line)
                self.assertRegex(shown, r"\A0 of 1 rows done; 4194304 bytes, default, [1-9]\d* s\x1b\[K\r.* 4194304 ")
                # What is left of each line once it has been overwritten.
                left = [re.split("\r|\x1b\\[K", line.rstrip("\r"))[-1] for line in lines]
                self.assertTrue(any(line.split()[:2] == COLUMNS[:2] for line in left), left)
                self.assertNotIn("rows done", "".join(left))

    def test_fits_into_a_narrow_terminal(self):
        launches = (), (BUILD / "bin/ibcoll_run", "-n", "2", "--tag-output")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            runs = threads.map(lambda launch: self.on_terminal(*launch, *self.PERF, columns=40), launches)
        for launch, seen in zip(launches, runs):
            with self.subTest(launch=launch):
                shown = re.findall(r"[^\r\n]*0 of 1 rows[^\r\n]*\x1b\[K\r", seen)
                self.assertTrue(shown, seen)
                for line in shown:
                    self.assertRegex(line, r"\A(?=.{,39}\x1b\[K\r)(\[0\] )?0 of 1 rows done; 41943\d*.*, [1-9]\d* s\x1b\[K\r\Z")

    def test_is_not_for_a_terminal_without_escape_sequences(self):
        launches = (), (BUILD / "bin/ibcoll_run", "-n", "2")
        with concurrent.futures.ThreadPoolExecutor() as threads:
            runs = threads.map(lambda launch, kind: self.on_terminal(*launch, *self.PERF, kind=kind), launches, ("", "dumb"))
        for launch, seen in zip(launches, runs):
            with self.subTest(launch=launch):
                self.assertNotIn("\x1b", seen)
                self.assertNotIn("rows done", seen)

    def test_is_for_terminals_only(self):
        with tempfile.TemporaryFile() as errors:
            seen = self.on_terminal(BUILD / "bin/ibcoll_run", "-n", "2", *self.PERF, stderr=errors)
            errors.seek(0)
            self.assertEqual(errors.read(), b"")
            self.assertNotIn("rows done", seen)

    def test_is_not_for_another_pipe(self):
        words = " ".join(map(str, self.PERF))
        seen = self.on_terminal(BUILD / "bin/ibcoll_run", "-n", "2", "sh", "-c", f"{words} 2>&1 | cat")
        self.assertNotIn("rows done", seen)

    def test_is_not_for_a_file_that_a_rank_writes(self):
        with tempfile.TemporaryDirectory(prefix="ibcoll_perf.") as folder:
            words = " ".join(map(str, self.PERF))
            seen = self.on_terminal(BUILD / "bin/ibcoll_run", "-n", "2", "sh", "-c",
                                    f"exec {words} 2>{folder}/$IBCOLL_RUN_RANK")
            files = sorted(pathlib.Path(folder).iterdir())
            self.assertEqual([(file.name, file.read_text()) for file in files], [("0", ""), ("1", "")])
            self.assertNotIn("rows done", seen)


class BadOptions(PerfTest):
    def test_are_named(self):
        for words, part in [
                (["alltoal"], "alltoal"), ([], "COLLECTIVE"), (["alltoall", "--bytes", "8:4"], "8:4"),
                (["alltoall", "--bytes", "x"], "'x'"), (["alltoall", "--algorithm", "fastest"], "fastest"),
                (["alltoall", "--bytes", "16E"], "--bytes: '16E'"), (["alltoall", "--warmup", "-1"], "--warmup"),
                (["bcast", "--root", "-1"], "--root"), (["alltoall", "--iterations", "0"], "--iterations"),
                (["alltoall", "--scheme", "both"], "both"), (["gatherv", "--distribution", "flat"], "flat"),
                (["reduce", "--op", "minus"], "minus"), (["reduce", "--type", "quad"], "quad"),
                (["reduce", "--op", "bor", "--type", "float"], "needs an integer --type"),
                (["reduce", "--op", "composition", "--type", "int8"], "uint64"), (["gather", "--root", "1"], "--root 1"),
                (["all", "--algorithm", "ring"], "'ring' with all collectives"),
                (["allgather", "--algorithm", "ring,nonsense:8"], "no algorithm 'nonsense'"),
                (["bcast", "--root", "1"], "--root 1"), (["bcast", "--in-place"], "--in-place"),
                (["alltoall", "--speed"], "--speed")]:
            with self.subTest(words=words):
                done = perf(0, *words)
                self.check_refused(done, part)
                self.assertRegex(done.stderr, r"\Aibcoll_perf: .{,300}\n\Z")

    def test_one_rank_speaks_for_all(self):
        done = perf(3, "alltoall", "--algorithm", "fastest")
        self.check_refused(done, "no algorithm 'fastest'")
        self.assertEqual(done.stderr.count("no algorithm"), 1, done.stderr)

    def test_buffers_that_fit_for_one_collective_and_not_for_another(self):
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
        ranks = 48
        size = available * 3 // 4 // ranks // ranks  # 2 x 48 blocks are 1.5 times a rank's share
        self.check_refused(perf(ranks, "alltoall", "--bytes", size), "do not fit", status=1)
        self.check_runs(perf(ranks, "bcast", "--bytes", size, "--iterations", "1", "--warmup", "0"))

    def test_more_memory_than_there_is(self):
        for size in ("1024G", "18446744073709551615"):
            done = perf(4, "alltoall", "--bytes", size)
            self.check_refused(done, "do not fit", status=1)
            self.assertEqual(done.stderr.count("do not fit"), 1, done.stderr)

    def test_forced_algorithm_that_does_not_apply_fails_with_the_reason(self):
        done = perf(2, "alltoall", "--algorithm", "shm", "--bytes", "8", "--format", "csv",
                    launch=["--nodes", "2", "--net", "ucx"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotEqual(rows_of(done)[0]["not_applicable"], "")

    def test_algorithm_of_a_variable_that_does_not_apply_fails_too(self):
        done = perf(2, "alltoall", "--bytes", "8", "--format", "csv", environment={"IBCOLL_ALLTOALL": "shm"},
                    launch=["--nodes", "2", "--net", "ucx"])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("IBCOLL_ALLTOALL", rows_of(done)[0]["not_applicable"])

    def test_forced_algorithms_are_for_what_is_measured(self):
        shm = {f"IBCOLL_{name.upper()}": "shm" for name in ("barrier", "bcast", "allgather", "allgatherv", "alltoallv",
                                                            "allreduce")}
        self.check_runs(perf(4, "alltoall", "--bytes", "8", "--iterations", "5", "--check", environment=shm,
                             launch=["--nodes", "2", "--net", "ucx"]))

    def test_job_of_two_nodes_without_the_module_for_ucx(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(BUILD / "lib/libibcoll.so.0", folder)
            done = perf(2, "barrier", environment={"LD_LIBRARY_PATH": folder},
                        launch=["--nodes", 2, "--net", "ucx", "-x", "LD_LIBRARY_PATH"])
        self.check_refused(done, "the job has 2 nodes and needs the transport ucx: the module libibcoll_ucx.so cannot be loaded", folder,
                           "its module belongs beside libibcoll.so, and needs libucx0", status=1)

    def test_malformed_setting_is_named(self):
        self.check_refused(perf(0, "alltoall", environment={"IBCOLL_TIMEOUT": "soon"}), "IBCOLL_TIMEOUT=soon", status=1)
