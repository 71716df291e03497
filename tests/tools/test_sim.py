# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_sim as its users meet it: options, formats, traces, exit statuses. The model itself: tests/simulated/model_test.cc.

The build tree is taken from $build, else build/release.
"""

import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
SANITIZED = "asan" in BUILD.name


def sim(*words):
    command = [str(word) for word in (BUILD / "bin/ibcoll_sim", *words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


class SimTest(unittest.TestCase):
    def rows(self, *words):
        done = sim(*words, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)["rows"]

    def check_refused(self, words, *parts):
        done = sim(*words.split())
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)


@unittest.skipIf(SANITIZED, "sanitizers take time and memory of their own")
class ManyRanks(SimTest):
    """A rank takes the memory that it uses, and making a team takes no time per pair of ranks."""

    def usage(self, *words):
        """Seconds of processor time, and the most bytes of memory."""
        with subprocess.Popen([str(BUILD / "bin/ibcoll_sim"), *words, "--ranks", "65536", "--nodes", "4096"],
                              stdout=subprocess.DEVNULL) as child:
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024

    def test_processor_time_and_memory(self):
        # On a quiet EPYC they take 1 second and half a gigabyte.
        for words in ("bcast --algorithm binomial -m 8", "barrier --algorithm leaders", "gather --algorithm binomial -m 8"):
            with self.subTest(words):
                seconds, most = self.usage(*words.split())
                self.assertLess(seconds, 10)
                self.assertLess(most, 1 << 30)

    def test_memory_is_refused_at_the_start(self):
        limited = ["sh", "-c", 'ulimit -v 1000000 && exec "$0" "$@"', str(BUILD / "bin/ibcoll_sim")]
        done = subprocess.run([*limited, "barrier", "--ranks", "1000000"], capture_output=True, text=True, timeout=60,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1000000 ranks take at least 6.1 GB", done.stderr)
        self.assertIn("enough for", done.stderr)

    def test_interrupt(self):
        """Finished rows are printed, and the exit status is that of a shell."""
        with subprocess.Popen([str(BUILD / "bin/ibcoll_sim"), "barrier", "--ranks", "65536", "--nodes", "4096", "--algorithm",
                               "leaders,dissemination,dissemination"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as child:
            time.sleep(0.1)
            child.send_signal(signal.SIGINT)
            output, errors = child.communicate(timeout=100)
        self.assertEqual(child.returncode, 130)
        self.assertIn("ended by the user", errors)
        self.assertNotIn("dissemination", output)


class BadInput(SimTest):
    def test_names(self):
        self.check_refused("gatherw --ranks 4", "gatherw", "gatherv")
        self.check_refused("gatherv --ranks 4 --algorithm quick", "gatherv", "quick", "linear")
        self.check_refused("gatherv --ranks 4 --algorithm linear,,", "--algorithm")
        self.check_refused("gatherv --ranks 4 --algorithm all,linear", "'all' stands alone")
        self.check_refused("allgatherv --ranks 4 --distribution flat", "flat", "half_full")
        self.check_refused("gatherv --ranks 4 --format xml", "xml", "json")
        self.check_refused("gatherv --ranks 4 --ports switch", "switch", "node")
        self.check_refused("gatherv --ranks 4 --scheme none", "none", "zero_copy")

    def test_numbers(self):
        self.check_refused("gatherv", "--ranks is required")
        self.check_refused("gatherv --ranks 0", "--ranks", "1")
        self.check_refused("gatherv --ranks -3", "--ranks")
        self.check_refused("gatherv --ranks 4x", "--ranks", "4x")
        self.check_refused("gatherv --ranks 99999999999", "--ranks")
        self.check_refused("gatherv --ranks 4 --nodes 5", "5 nodes are more than 4 ranks")
        self.check_refused("gatherv --ranks 4 --nodes 0", "--nodes")
        self.check_refused("gatherv --ranks 4 --root 4", "--root", "0 to 3")
        self.check_refused("gatherv --ranks 4 --root -1", "--root", "0 to 3")
        for text in ("8:4", "x", "1:2:3", "-1", "1.5", "99999999999999999999"):
            self.check_refused(f"gatherv --ranks 4 --bytes {text}", "--bytes", text)
        for option in ("--alpha", "--gap", "--node-alpha", "--flag"):
            for text in ("-1", "nan", "fast", "1e9"):
                self.check_refused(f"gatherv --ranks 4 {option} {text}", option)
        for text in ("0", "-1", "nan", "inf"):
            self.check_refused(f"gatherv --ranks 4 --bandwidth {text}", "--bandwidth")
        self.check_refused("gatherv --ranks 4 --eager 2M", "--eager", "2M")
        self.check_refused("gatherv --ranks 4 --window 1", "--window")

    def test_arrivals(self):
        for text in ("late", "late:4:1", "late:-1:1", "late:0:x", "late:0:-1", "late:0:nan", "late::1", "late:0,:1",
                     "late:0,4:1", "random", "random:", "early:1"):
            self.check_refused(f"gatherv --ranks 4 --arrival {text}", "--arrival", text, "late:RANK[,RANK...]:US")

    def test_what_cannot_run(self):
        self.check_refused("allgather --ranks 8 --nodes 2 --algorithm shm", "shm", "do not share", "these apply", "ring")
        self.check_refused("alltoall --ranks 1000 --bytes 1T", "1000 ranks", "smaller blocks")
        self.check_refused("alltoall --ranks 64 --bytes 8M --check", "--check", "fewer ranks")
        self.check_refused("gatherv --ranks 4 --trace /no/such/folder/file", "--trace", "No such file")


class Output(SimTest):
    WORDS = ("allgatherv", "--ranks", 12, "--nodes", 3, "--bytes", "64:4K", "--factor", 64)

    def test_formats_agree(self):
        rows = self.rows(*self.WORDS, "--algorithm", "all")
        lines = list(csv.DictReader(io.StringIO(sim(*self.WORDS, "--algorithm", "all", "--format", "csv").stdout)))
        table = sim(*self.WORDS, "--algorithm", "all").stdout.splitlines()
        self.assertEqual(len(rows), len(lines))
        self.assertEqual(len(rows) + 2, len(table))
        for row, line in zip(rows, lines):
            self.assertEqual(row["algorithm"], line["algorithm"])
            self.assertEqual(row.get("not_applicable", ""), line["not_applicable"])
            if "time_us" in row:
                self.assertEqual(line["selected"], "yes" if row["selected"] else "no")
                for column in set(line) - {"algorithm", "selected", "not_applicable"}:
                    self.assertAlmostEqual(row[column], float(line[column]), 3, column)
        self.assertTrue(any("not_applicable" in row for row in rows))

    def test_several_ranks_are_late(self):
        """The others wait for them: half of the ranks, or three of four."""
        for late, waiting in (("1,2", 50), ("1", 75)):
            row, = self.rows("alltoall", "--ranks", 4, "--bytes", 8, "--arrival", f"late:{late}:100", "--algorithm", "direct")
            self.assertAlmostEqual(row["mean_us"], waiting, delta=15)

    def test_nobody_waits_for_the_copy_of_an_own_block(self):
        """The root of a broadcast by allgatherv copies while it waits; without messages in between, 32 MB take 3.4 ms."""
        words = ("allgatherv", "--ranks", 30, "--distribution", "broadcast", "--bytes", "32M", "--algorithm", "ring_pipelined:1M")
        row, = self.rows(*words)
        free, = self.rows(*words, "--copy-bandwidth", 0)
        self.assertLess(row["time_us"], 1.05 * free["time_us"])

    def test_the_last_rank_is_late(self):
        row, = self.rows("alltoall", "--ranks", 4, "--bytes", 8, "--arrival", "late:3:100", "--algorithm", "direct")
        self.assertGreater(row["time_us"], 100)

    def test_what_options_leave_out_of_the_model(self):
        """The gap is alpha, in a node as between nodes; a window ends with a cache line."""
        words = ("gather", "--ranks", 2, "--bytes", 8, "--alpha", 3, "--node-alpha", 0.5, "--window", 5000, "--format", "json")
        model = json.loads(sim(*words).stdout)["model"]
        self.assertEqual([model[name] for name in ("gap_us", "node_gap_us", "window_bytes")], [3, 0.5, 4992])
        model = json.loads(sim(*words, "--gap", 2, "--node-gap", 1).stdout)["model"]
        self.assertEqual([model[name] for name in ("gap_us", "node_gap_us")], [2, 1])

    def test_runs_repeat_themselves(self):
        words = [*self.WORDS, "--algorithm", "all", "--arrival", "random:20", "--distribution", "random"]
        self.assertEqual(sim(*words).stdout, sim(*words).stdout)

    def test_auto_takes_what_all_marks(self):
        for bytes_ in (64, 65536):
            marked = [row["algorithm"] for row in self.rows("allgatherv", "--ranks", 12, "--nodes", 3, "--bytes", bytes_,
                                                            "--algorithm", "all") if row.get("selected")]
            taken = [row["algorithm"] for row in self.rows("allgatherv", "--ranks", 12, "--nodes", 3, "--bytes", bytes_)]
            self.assertEqual(marked, taken)

    def test_auto_knows_that_blocks_differ(self):
        """Of blocks of very different sizes, what auto takes is not far from the best."""
        for ranks, nodes, distribution in ((16, 4, "broadcast"), (16, 4, "spike"), (16, 4, "geometric"), (30, 30, "spike")):
            rows = self.rows("allgatherv", "--ranks", ranks, "--nodes", nodes, "--distribution", distribution, "--bytes", "4M",
                             "--algorithm", "all")
            taken, = [row for row in rows if row.get("selected")]
            best = min((row for row in rows if "time_us" in row), key=lambda row: row["time_us"])
            self.assertLess(taken["time_us"], 1.3 * best["time_us"], (distribution, taken, best))

    def test_parameters(self):
        rows = self.rows("allgatherv", "--ranks", 6, "--bytes", "64K", "--algorithm", "ring,ring_pipelined:16K,ring_pipelined:4K")
        self.assertEqual([row["algorithm"] for row in rows], ["ring", "ring_pipelined:16384", "ring_pipelined:4096"])
        self.assertEqual([row["messages_between"] for row in rows], [30, 120, 480])

    def test_check_counts_no_errors(self):
        rows = self.rows("scatterv", "--ranks", 9, "--nodes", 2, "--bytes", "1:9K", "--factor", 97, "--algorithm", "all",
                         "--check", "--distribution", "spikes")
        checked = [row for row in rows if "not_applicable" not in row]
        self.assertGreaterEqual(len(checked), 10)
        for row in checked:
            self.assertEqual(row["errors"], 0)

    def test_trace(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace"
            rows = self.rows("gather", "--ranks", 4, "--bytes", 1000, "--algorithm", "linear,binomial", "--trace", path,
                             "--copy-bandwidth", 0)
            events = [json.loads(line) for line in path.read_text().splitlines()]
        runs = [event for event in events if event["event"] == "run"]
        self.assertEqual([run["algorithm"] for run in runs], [row["algorithm"] for row in rows])
        linear = events[:events.index(runs[1])]
        self.assertEqual(sorted(e["rank"] for e in linear if e["event"] == "start"), [0, 1, 2, 3])
        self.assertEqual(max(e["us"] for e in linear if e["event"] == "end"), rows[0]["time_us"])
        received = [e for e in linear if e["event"] == "receive"]
        self.assertEqual(sorted((e["rank"], e["peer"], e["bytes"]) for e in received), [(0, 1, 1000), (0, 2, 1000), (0, 3, 1000)])
        sent = [e for e in linear if e["event"] == "send"]
        self.assertEqual({(e["us"], e["until_us"]) for e in sent}, {(0, 2.08)})

    def test_trace_does_not_take_the_place_of_a_closed_output(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "trace"
            words = (BUILD / "bin/ibcoll_sim", "gather", "--ranks", "4", "--algorithm", "linear", "--trace", path)
            subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *words], timeout=60, check=False)
            for line in path.read_text().splitlines():
                self.assertIn("event", json.loads(line))

    def test_many_ranks_take_little(self):
        command = [BUILD / "bin/ibcoll_sim", "gatherv", "--ranks", "6400", "--nodes", "400", "--algorithm", "linear", "--bytes", "4K"]
        with subprocess.Popen([*command], stdout=subprocess.DEVNULL) as child:
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(child.returncode, 0)
        self.assertLess(used.ru_utime + used.ru_stime, 60)
        self.assertLess(used.ru_maxrss / 6400, 600 if SANITIZED else 30, "KB per rank")

    def test_the_manual_has_every_option_of_the_model(self):
        done = sim("--help")
        self.assertEqual(done.returncode, 0)
        manual = "".join((ROOT / "docs" / page).read_text() for page in ("ibcoll_sim.md", "replay.md"))
        options = set(re.findall(r"^ +(--[a-z-]+) FLOAT", done.stdout, re.M))
        self.assertGreater(len(options), 7)
        for option in options:
            self.assertIn(f"`{option}`", manual)
