# SPDX-License-Identifier: BSD-3-Clause
"""IBCOLL_TRACE and ibcoll_trace as their users meet them. The build tree is taken from $build, else build/release."""

import csv
import html
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
RANKS = 4
HEADER = "# ibcoll trace 4 rank {} ranks {} job {} clock {} alpha_us 2 beta_us_per_byte 0.001 calls {} dropped {} sites {}\n"


class TraceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "t"

    def tool(self, *words):
        command = [str(word) for word in (BUILD / "bin/ibcoll_trace", *words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def answer(self, *words):
        done = self.tool(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def refused(self, *parts, path=None):
        done = self.tool(path or self.file)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(str(part), done.stderr)

    def write(self, rank, records, ranks=2, job="a", clock="m", dropped=0, name=None, end="end\n"):
        lines = [record.split(" ") for record in records]
        sites = []
        for line in lines:
            if len(line) == 12:
                sites += [line[9]] if line[9] not in sites else []
                line[9] = str(sites.index(line[9]))
        text = HEADER.format(rank, ranks, job, clock, len(records), dropped, len(sites))
        text += "".join("code {} - {} -\n".format(*site.split("+")) for site in sites)
        text += "".join(" ".join(line) + "\n" for line in lines) + end
        (self.folder / (name or f"t.{rank}")).write_text(text)

    @staticmethod
    def record(arrival, end, op=1, collective="alltoall", size=8000, ranks=2, how="ok", site="p+0x10",
               peers="-", node="-"):
        return f"{arrival} {end} {collective} {size} direct 1 {op} {ranks} {how} {site} {peers} {node}"


class Analysis(TraceTest):
    def test_figures_of_the_paper(self):
        """T is 2 + 8 = 10 us; arrivals at 0 and 100 us: d-bar 50, theta 100."""
        self.write(0, [self.record(0, 130_000), self.record(200_000, 230_000, op=2)])
        self.write(1, [self.record(100_000, 120_000), self.record(200_000, 230_000, op=2)])
        row, = json.loads(self.answer(self.file, "--format", "json"))["rows"]
        self.assertEqual((row["calls"], row["mean_bytes"], row["message_us"]), (2, 8000, 10))
        self.assertAlmostEqual(row["average_factor"], 2.5)
        self.assertAlmostEqual(row["worst_factor"], 5)
        self.assertAlmostEqual(row["spread_us"], 50)
        self.assertAlmostEqual(row["after_last_us"], 30)
        self.assertEqual((row["late_rank"], row["late_calls"]), (1, 1))  # in the second call no rank is late

    def test_of_equally_late_ranks_the_first_is_named(self):
        self.write(0, [self.record(0, 9000), self.record(20_000, 29_000, op=2)])
        self.write(1, [self.record(10, 9000), self.record(10_000, 29_000, op=2)])
        row, = json.loads(self.answer(self.file, "--format", "json"))["rows"]
        self.assertEqual((row["late_rank"], row["late_calls"]), (0, 1))

    def test_a_bandwidth_that_is_given(self):
        for rank in (0, 1):
            self.write(rank, [self.record(0, 9000)])
        row, = json.loads(self.answer(self.file, "--format", "json", "--alpha", 5, "--bandwidth", 2))["rows"]
        self.assertAlmostEqual(row["message_us"], 5 + 4)

    def test_rows_by_collective_and_site(self):
        calls = [("alltoall", "p+0x10"), ("alltoall", "p+0x20"), ("bcast", "p+0x10"), ("alltoall", "p+0x10")]
        for rank in range(2):
            self.write(rank, [self.record(op * 1000 + rank * 500, op * 1000 + 800, op=op, collective=collective, site=site)
                              for op, (collective, site) in enumerate(calls, 1)])
        rows = list(csv.DictReader(io.StringIO(self.answer(self.file, "--format", "csv"))))
        self.assertEqual([(r["collective"], r["site"], r["calls"], r["late_rank"], r["late_calls"]) for r in rows],
                         [("alltoall", "p+0x10", "2", "1", "2"), ("alltoall", "p+0x20", "1", "1", "1"),
                          ("bcast", "p+0x10", "1", "1", "1")])

    def test_arrivals(self):
        self.write(0, [self.record(5_000, 90_000), self.record(200_000, 230_000, op=2, ranks=1)])
        self.write(1, [self.record(6_500, 90_000)])
        out = self.folder / "out"
        self.answer(self.file, "--arrivals", out)
        self.assertEqual(out.read_text(), "# ibcoll arrivals 1 ranks 2\n0.000 1.500\n")

    def test_clocks_of_two_machines(self):
        """Rank 1's clock is 1 ms ahead. Bounds: it arrives at 10 us and leaves at 20 us, rank 0 at 0 and 20 us."""
        self.write(0, [self.record(0, 20_000)])
        self.write(1, [self.record(1_010_000, 1_020_000)], clock="other")
        clock, = json.loads(self.answer(self.file, "--format", "json"))["clocks"]
        self.assertEqual((clock["clock"], clock["known"]), ("other", True))
        self.assertLessEqual(abs(clock["offset_us"] + 1000), clock["error_us"])
        self.assertAlmostEqual(clock["offset_us"], -1005)
        self.assertAlmostEqual(clock["error_us"], 15)  # between 0 - 1020 and 20 - 1010
        # What failed, or moved nothing, tells nothing.
        nothing = [{"how": "failed"}, {"collective": "allgather", "size": 0}, {"collective": "bcast"}]
        self.write(0, [self.record(0, 20_000)] + [self.record(30_000, 30_001, op=op, **how) for op, how in enumerate(nothing, 2)])
        self.write(1, [self.record(1_010_000, 1_020_000)] +
                   [self.record(1_700_000, 1_700_001, op=op, **how) for op, how in enumerate(nothing, 2)], clock="other")
        self.assertEqual(json.loads(self.answer(self.file, "--format", "json"))["clocks"], [clock])

    def test_clocks_of_machines_with_several_ranks(self):
        """Of each machine the last arrival and the first exit count; a call that failed says nothing."""
        for rank, (arrival, end) in enumerate(((0, 20_000), (5_000, 30_000))):
            self.write(rank, [self.record(arrival, end, ranks=4), self.record(40_000, 40_001, op=2, ranks=4, how="failed")],
                       ranks=4)
        for rank, (arrival, end) in enumerate(((1_010_000, 1_025_000), (1_002_000, 1_021_000)), 2):
            self.write(rank, [self.record(arrival, end, ranks=4), self.record(9_000_000, 9_000_001, op=2, ranks=4, how="failed")],
                       ranks=4, clock="other")
        clock, = json.loads(self.answer(self.file, "--format", "json"))["clocks"]
        self.assertAlmostEqual(clock["offset_us"], -1003)  # between 5 - 1021 and 20 - 1010
        self.assertAlmostEqual(clock["error_us"], 13)

    def test_formats_agree(self):
        for rank in range(2):
            self.write(rank, [self.record(rank * 3_000, 9_000), self.record(20_000, 20_000, op=2, collective="bcast", site='q"+0x1')])
        rows = json.loads(self.answer(self.file, "--format", "json"))["rows"]
        lines = list(csv.DictReader(io.StringIO(self.answer(self.file, "--format", "csv"))))
        self.assertEqual([list(row) for row in rows], [list(line) for line in lines])
        for row, line in zip(rows, lines):
            for name, value in row.items():
                self.assertEqual(value, type(value)(line[name]), name)

    def test_page_has_the_table_above_the_time_line(self):
        for rank in range(2):
            self.write(rank, [self.record(rank * 3_000, 9_000), self.record(20_000, 20_000, op=2, site="f<int&>+0x1")])
        text = self.answer(self.file).splitlines()
        page = self.folder / "page"
        self.answer(self.file, "--html", page)
        page = page.read_text()
        rows = [re.findall(r"<t[hd]>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", page)]
        self.assertEqual([re.split(r"  +| (?=\d)", line) for line in text[1:3]],
                         [re.split(r"  +| (?=\d)", "  ".join(map(html.unescape, row))) for row in rows[1:]])
        self.assertEqual(" ".join(rows[0]).split(), text[0].split())
        self.assertLess(page.index("</table>"), page.index("<canvas"))
        self.assertNotIn("<int", page)

    def test_left_out(self):
        self.write(0, [self.record(0, 10), self.record(20, 30, op=2), self.record(40, 50, op=3, how="failed"),
                       self.record(60, 70, op=4, how="failed")], dropped=7)
        self.write(1, [self.record(20, 30, op=2), self.record(40, 50, op=3, how="failed")])
        text = self.answer(self.file)
        for line in ("7 records were dropped", "1 calls are left out: not all", "2 calls are left out: they failed"):
            self.assertIn(line, text)


class ServedOrder(TraceTest):
    def setUp(self):
        super().setUp()
        peers = {0: ["1/1000/1500/9000,2/500/700/2000", "-"], 1: ["2/100/200/300,0/100/300/400", "0/5/6/7"],
                 2: ["0/1/2/3,1/9/9/-", "1/-/-/7"]}
        for rank, (first, second) in peers.items():
            self.write(rank, [self.record(rank * 1000, 20_000, ranks=3, peers=first),
                              self.record(50_000 + rank, 60_000, op=2, ranks=3, peers=second)], ranks=3)

    def test_table(self):
        """The call whose ranks arrived furthest apart; each rank's peers in the order in which it began to send to them."""
        text = self.answer(self.file, "--served", 1)
        self.assertIn("call 1 of team 1", text)
        self.assertNotIn("call 2 of team 1", text)
        self.assertIn("2 of 3 pairs of peers were served against their order of arrival", text)
        lines = [line.split(maxsplit=2) for line in text.splitlines()[-3:]]
        self.assertEqual([line[:2] for line in lines], [["0", "0.0"], ["1", "1.0"], ["2", "2.0"]])
        self.assertEqual([re.split(r"  +", line[2]) for line in lines],
                         [["2 0.5, 1 1.0", "2 2.0, 1 9.0"], ["2 1.1, 0 1.1", "2 1.3, 0 1.4"], ["0 2.0, 1 2.0", "0 2.0"]])

    def test_json(self):
        calls = json.loads(self.answer(self.file, "--served", 5, "--format", "json"))["served"]
        self.assertEqual([(call["call"], call["pairs"], call["reversed"]) for call in calls], [(1, 3, 2), (2, 0, 0)])
        first = calls[0]["ranks"][0]
        self.assertEqual([peer["rank"] for peer in first["peers"]], [2, 1])
        self.assertEqual(first["peers"][1], {"rank": 1, "begun_us": 1.0, "sent_us": 1.5, "landed_us": 9.0})
        self.assertIsNone(calls[0]["ranks"][2]["peers"][1]["landed_us"])
        self.assertNotIn("served", json.loads(self.answer(self.file, "--format", "json")))

    def test_peers_that_arrived_together_are_in_order(self):
        for rank in range(3):
            self.write(rank, [self.record(0 if rank < 2 else 100, 20_000, ranks=3, peers="0/1/2/3,1/4/5/6" if rank == 2 else "-")],
                       ranks=3)
        call, = json.loads(self.answer(self.file, "--served", 1, "--format", "json"))["served"]
        self.assertEqual((call["pairs"], call["reversed"]), (1, 0))

    def test_calls_in_their_order(self):
        """Those whose ranks arrived furthest apart, and of equal arrivals none is against the order."""
        for rank in range(3):
            peers = "-" if rank else "1/100/200/300,2/400/500/600"
            self.write(rank, [self.record(at + (rank > 0) * late, at + 9000, op=op, ranks=3, peers=peers)
                              for op, at, late in ((1, 0, 10), (2, 10_000, 5), (3, 20_000, 1000))], ranks=3)
        calls = json.loads(self.answer(self.file, "--served", 2, "--format", "json"))["served"]
        self.assertEqual([(call["call"], call["pairs"], call["reversed"]) for call in calls], [(1, 1, 0), (3, 1, 0)])

    def test_no_calls_in_csv(self):
        done = self.tool(self.file, "--served", 1, "--format", "csv")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--served", done.stderr)

    def test_malformed(self):
        for bad in ("0", "0/1/2", "0/1/2/3/4", "0/1/2/x", "0/-1/2/3", "3/1/2/3", "0/1/2/3,", ",0/1/2/3", ""):
            self.write(0, [self.record(0, 10, ranks=3, peers=bad)], ranks=3)
            self.refused("t.0: line 3", "malformed")


class InNode(TraceTest):
    """Ranks of one node: 0 waits for 1, which finds what 0 has published; 2 is alone on its node."""

    def setUp(self):
        super().setUp()
        for rank, node in enumerate(("500/1/700/90500", "400/-/-/-", "-")):
            self.write(rank, [self.record(rank * 90_000, 200_000, ranks=3, node=node)], ranks=3)

    def test_table(self):
        lines = self.answer(self.file, "--served", 1).splitlines()[-4:]
        self.assertEqual([re.split(r"  +", line.strip())[-1] for line in lines],
                         ["publishes in its node", "0.5, waits for 1 from 0.7 to 90.5", "90.4", "-"])

    def test_json(self):
        call, = json.loads(self.answer(self.file, "--served", 1, "--format", "json"))["served"]
        self.assertEqual([rank.get("in_node") for rank in call["ranks"]],
                         [{"published_us": 0.5, "waits_for": 1, "from_us": 0.7, "until_us": 90.5},
                          {"published_us": 90.4, "waits_for": None, "from_us": None, "until_us": None}, None])

    def test_page(self):
        page = self.folder / "page"
        self.answer(self.file, "--html", page)
        call, = json.loads(re.search(r"const trace = (.*);\nconst canvas", page.read_text()).group(1))["calls"]
        self.assertEqual(call["node"], [[0.5, 1, 0.7, 90.5], [90.4, None, None, None], None])

    def test_malformed(self):
        for bad in ("1", "1/-/-", "1/-/-/-/-", "1/3/4/5", "1/2/5/4", "1/2/-/4", "1/2/3/-", "1/-/3/4", "x/-/-/-", "-1/-/-/-"):
            self.write(0, [self.record(0, 10, ranks=3, node=bad)], ranks=3)
            self.refused("t.0: line 3", "malformed")


class Page(TraceTest):
    def page(self, *words):
        """(calls, sites, text of the page, standard error)"""
        done = self.tool(self.file, "--html", self.folder / "page", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = (self.folder / "page").read_text()
        data = json.loads(re.search(r"const trace = (.*);\nconst canvas", text).group(1))
        return data["calls"], data["sites"], text, done.stderr

    def test_a_long_trace_shows_the_calls_that_matter(self):
        """52,000 calls of 2 ranks, of which 50,000 have room: those whose ranks arrived further apart, in their order."""
        for rank in range(2):
            self.write(rank, [self.record(op * 1000 + rank * (op > 2000), op * 1000 + 9, op=op) for op in range(1, 52_001)])
        calls, sites, text, said = self.page()
        self.assertEqual(len(calls), 50_000)
        self.assertEqual([calls[0]["arrival"], calls[-1]["arrival"]], [[2000.0, 2000.001], [51999.0, 51999.001]])
        self.assertEqual(sites, ["p+0x10"])
        note = "The time line shows 50000 of 52000 calls, those whose ranks arrived furthest apart: "
        self.assertIn(note, text)
        self.assertTrue(said.startswith(f"ibcoll_trace: {note}") and "IBCOLL_TRACE_CALLS" in said, said)
        self.assertEqual(said.count("\n"), 1, said)

    def test_messages_beyond_the_limit_are_left_out(self):
        """Of 3 calls with 80,000 messages each two keep them."""
        peers = ",".join(f"{at % 2}/{at}/{at}/{at}" for at in range(80_000))
        self.write(0, [self.record(op * 1000, op * 1000 + 9, op=op, peers=peers) for op in (1, 2, 3)])
        self.write(1, [self.record(op * 1000 + late, op * 1000 + 9, op=op) for op, late in ((1, 5), (2, 4), (3, 6))])
        calls, _, text, said = self.page()
        self.assertEqual([[len(part) for part in call["served"]] for call in calls], [[80_000, 0], [], [80_000, 0]])
        self.assertIn("1 of its calls are without messages: a page has room for 200000.", text)
        self.assertIn("1 of its calls are without messages", said)

    def test_all_calls_of_a_short_trace(self):
        for rank in range(2):
            self.write(rank, [self.record(op, op + 9, op=op, site=f"p+0x{op % 2 + 1}0") for op in range(1, 4)])
        calls, sites, _, said = self.page()
        self.assertEqual([sites[call["site"]] for call in calls], ["p+0x20", "p+0x10", "p+0x20"])
        self.assertEqual(said, "")

    def test_memory_does_not_grow_with_the_page(self):
        """The page of 9 MB takes at most a tenth more memory than the table."""
        for rank in range(2):
            self.write(rank, [self.record(op * 1000, op * 1000 + 9, op=op) for op in range(1, 25_001)])
        most = []
        for words in ([], ["--html", "/dev/null"]):
            # A process begins with the memory of the one that starts it.
            measure = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
                       "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
            command = [sys.executable, "-c", measure, *map(str, (BUILD / "bin/ibcoll_trace", self.file, *words))]
            most.append(int(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout))
        self.assertLess(most[1], 1.1 * most[0])

    def test_bytes_that_are_no_text(self):
        """Control characters and bytes that are not UTF-8, in each name of a trace; what is UTF-8 stays."""
        raw = {"%1B": "\\x1b", "%9B": "\\x9b", "%C2%9B": "\\xc2\\x9b", "%7F": "\\x7f", "%C3": "\\xc3", "%ED%A0%80": "\\xed\\xa0\\x80",
               "%C0%AF": "\\xc0\\xaf", "%F0%8F%BF%BF": "\\xf0\\x8f\\xbf\\xbf", "%F4%90%80%80": "\\xf4\\x90\\x80\\x80",
               "%C3%A9": "\u00e9", "%E2%82%AC": "\u20ac", "%F0%9F%98%80": "\U0001f600"}
        name, shown = "".join(f"{one}." for one in raw), "".join(f"{one}." for one in raw.values())
        self.write(0, [self.record(0, 10, ranks=1)], ranks=1, clock="m")
        text = (self.folder / "t.0").read_text().replace(" direct ", " di\x1brect ")
        (self.folder / "t.0").write_text(text.replace("code p - 0x10 -", f"source /{name}.py 7 f{name}"))
        calls, sites, page, _ = self.page()
        self.assertEqual(sites, [f"f{shown} {shown}.py:7"])
        self.assertEqual(calls[0]["algorithm"], "di\\x1brect")
        for given in (page, self.answer(self.file), self.answer(self.file, "--format", "csv"), self.answer(self.file, "--format", "json")):
            self.assertFalse(set(map(chr, (*range(10), *range(11, 32), *range(127, 160)))) & set(given))
        row, = json.loads(self.answer(self.file, "--format", "json"))["rows"]
        self.assertEqual((row["function"], row["file"]), (f"f{shown}", f"/{shown}.py"))
        (self.folder / "t.0").write_text(text.replace("code p - 0x10 -", f"code p{name} - 0x10 -"))
        self.assertIn(f"call sites in p{shown} are shown as addresses", self.answer(self.file))
        (self.folder / "t.0").write_text(text.replace("code p - 0x10 -", "code \x1b[2J"))
        self.refused("malformed: 'code \\x1b[2J'")


class Version5(TraceTest):
    """Lists of teams and sizes, and what a call means."""

    HEADER = ("# ibcoll trace 5 rank 0 ranks 4 job a clock m node 0 cores 2 ranks_per_core 1 alpha_us 2 cpu_us 1 "
              "beta_us_per_byte 0.001 copy_us_per_byte 0 flag_us 0.1 calls 1 dropped 0 sites 1 teams 2 counts 1\n")
    LISTS = "code p - 0x10 -\nteam 1 0\nteam 2 0-2,3\ncounts 7\n"
    CALL = "0 10 gatherv 7 linear 1 1 1 ok 0 - - 0 - - auto 0 0\n"

    def write_one(self, text):
        (self.folder / "t.0").write_text(text)
        for rank in (1, 2, 3):
            self.write(rank, [], ranks=4)
            other = (self.folder / f"t.{rank}").read_text().replace("trace 4", "trace 5").replace("\n", (
                " node 0 cores 2 ranks_per_core 1 cpu_us 0 copy_us_per_byte 0 flag_us 0 teams 0 counts 0\n"), 1)
            (self.folder / f"t.{rank}").write_text(other)

    def test_is_read(self):
        self.write_one(self.HEADER + self.LISTS + self.CALL + "end\n")
        row, = json.loads(self.answer(self.file, "--format", "json"))["rows"]
        self.assertEqual((row["collective"], row["calls"], row["mean_bytes"]), ("gatherv", 1, 7))

    def test_malformed(self):
        whole = self.HEADER + self.LISTS + self.CALL + "end\n"
        for good, bad, line, what in (
                ("team 2 0-2,3", "team 2 0-4", 4, "team 2 of 2"), ("team 2 0-2,3", "team 1 0", 4, "team 2 of 2"),
                ("team 2 0-2,3", "team 2 1-4", 4, "team 2 of 2"),
                ("team 2 0-2,3", "team 2 2-1", 4, "team 2 of 2"), ("team 2 0-2,3", "team 2 0-3,0", 4, "team 2 of 2"),
                ("counts 7", "counts 7*5", 5, "list of sizes 1 of 1"), ("counts 7", "counts x", 5, "list of sizes 1 of 1"),
                ("- - auto 0 0", "double - auto 0 0", 6, "record 1 of 1"), ("auto 0 0", "auto 1 0", 6, "record 1 of 1"),
                ("auto 0 0", "auto 0 -1", 6, "record 1 of 1"), (" 0 - - auto", " 1 - - auto", 6, "record 1 of 1"),
                (" 0 - - auto 0 0", "", 6, "record 1 of 1"), ("node 0", "node -1", 1, "not the first line"),
                ("ranks_per_core 1", "ranks_per_core 0", 1, "ranks_per_core is '0', and 1 to 1048576 is possible"),
                ("alpha_us 2", "alpha_us 1e300", 1, "alpha_us is '1e300', and 0 to 1000000 is possible"),
                ("0 10 gatherv", "-9223372036854775808 10 gatherv", 6, "record 1 of 1"),
                ("0 10 gatherv", "0 9223372036854775807 gatherv", 6, "record 1 of 1"),
                ("auto 0 0", "auto 0 9223372036854775807", 6, "record 1 of 1")):
            self.write_one(whole.replace(good, bad, 1))
            self.refused(f"t.0: line {line}", what)

    def test_lists_that_no_rank_writes(self):
        """A few bytes of a line would take megabytes each."""
        for kind, lists in (("counts 0*1048576", "teams 0 counts 17"), ("team {:x} 0-1048575", "teams 17 counts 0")):
            header = self.HEADER.replace("ranks 4", "ranks 1048576").replace("teams 2 counts 1", lists)
            (self.folder / "t.0").write_text(header + "code p - 0x10 -\n" + "".join(f"{kind.format(i)}\n" for i in range(17)))
            self.refused("t.0: line 19", "lists of teams and sizes have more than 16777216 elements")

    def test_newer(self):
        self.write_one(self.HEADER.replace("trace 5", "trace 6") + "end\n")
        self.refused("t.0: line 1", "version 6", "reads 4 to 5")


class TimeIndependent(TraceTest):
    """Traces for SimGrid, which tests/simgrid replays."""

    def written(self, rank, calls, teams="1 0-1", counts=()):
        text = Version5.HEADER.replace("rank 0 ranks 4", f"rank {rank} ranks 2").replace("calls 1", f"calls {len(calls)}")
        text = text.replace("teams 2 counts 1", f"teams 1 counts {len(counts)}") + f"code p - 0x10 -\nteam {teams}\n"
        text += "".join(f"counts {one}\n" for one in counts) + "".join(f"{call}\n" for call in calls) + "end\n"
        (self.folder / f"t.{rank}").write_text(text)

    @staticmethod
    def call(op, what, meaning, ranks=2, late=0):
        return f"{op * 10_000 + late} {op * 10_000 + 1000 + late} {what} none 1 {op} {ranks} ok 0 - - {meaning} 0"

    def test_each_collective(self):
        calls = [("barrier 0", "- - - auto -", "barrier"), ("bcast 8", "1 - - auto -", "bcast 8 1"),
                 ("allgather 8", "- - - auto -", "allgather 8 8"), ("allgatherv 6", "- - - auto 0", "allgatherv {own} 4 8"),
                 ("alltoall 8", "- - - auto -", "alltoall 8 8"),
                 ("alltoallv 8", "- - - auto {pairs}", "alltoallv {sent} {sends} {received} {receives}"),
                 ("allreduce 80", "- double sum auto -", "allreduce 80 10"), ("gather 8", "0 - - auto -", "gather 8 8 0"),
                 ("gatherv {block}", "0 - - auto -", "gatherv {block} 4 8 0"), ("scatter 8", "0 - - auto -", "scatter 8 8 0"),
                 ("scatterv {block}", "0 - - auto -", "scatterv 4 8 {block} 0"),
                 ("reduce 80", "1 double sum auto -", "reduce 80 10 1"),
                 ("reduce_scatter {own}", "- double sum auto 0", "reducescatter 4 8 {operations}"),
                 ("reduce_scatter_block 8", "- double sum auto -", "reducescatter 8 8 2"),
                 ("scan 80", "- double sum auto -", "scan 80 10"), ("exscan 80", "- double sum auto -", "exscan 80 10")]
        words = [{"own": 4, "block": 4, "pairs": 1, "sent": 3, "sends": "1 2", "received": 6, "receives": "1 5", "operations": 0},
                 {"own": 8, "block": 8, "pairs": 2, "sent": 14, "sends": "5 9", "received": 11, "receives": "2 9", "operations": 1}]
        for rank in range(2):
            self.written(rank, [self.call(op, what.format(**words[rank]), meaning.format(**words[rank]))
                                for op, (what, meaning, _) in enumerate(calls, 1)], counts=("4,8", "1,2", "5,9"))
        self.answer(self.file, "--ti", self.folder / "ti")
        for rank, name in enumerate((self.folder / "ti/index").read_text().split()):
            lines = pathlib.Path(name).read_text().splitlines()
            self.assertEqual([lines[0], lines[-1]], [f"{rank} init", f"{rank} finalize"])
            self.assertEqual([line for line in lines if "compute" in line], [f"{rank} compute 9000"] * (len(calls) - 1))
            self.assertEqual([line.split(" ", 1)[1] for line in lines[1:-1] if "compute" not in line],
                             [action.format(**words[rank]) for _, _, action in calls])

    def test_calls_of_some_ranks_are_left_out(self):
        self.written(0, [self.call(1, "barrier 0", "- - - auto -", ranks=1), self.call(2, "barrier 0", "- - - auto -")])
        self.written(1, [self.call(2, "barrier 0", "- - - auto -", late=500)])
        done = self.tool(self.file, "--ti", self.folder / "ti")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 calls are left out", done.stderr)
        self.assertEqual((self.folder / "ti/rank1.txt").read_text(), "1 init\n1 compute 10500\n1 barrier\n1 finalize\n")

    def test_old(self):
        self.write(0, [self.record(0, 10, ranks=1)], ranks=1)
        done = self.tool(self.file, "--ti", self.folder / "ti")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("record it again", done.stderr)


class BadInput(TraceTest):
    def test_missing_and_empty(self):
        self.refused("t.0", "No such file")
        self.write(0, [])
        self.refused("t.1", "No such file")
        (self.folder / "t.1").write_text("")
        self.refused("t.1: line 1", "empty", "ibcoll_context_destroy")

    def test_malformed(self):
        (self.folder / "t.0").write_text("hello\n")
        self.refused("t.0: line 1", "not the first line")
        self.write(0, [], ranks=0)
        self.refused("t.0: line 1", "not the first line")
        good = self.record(0, 10)
        for bad in ("", "1 2 3", self.record(10, 0), self.record("x", 10), self.record(0, 10, collective="alltoal"),
                    self.record(0, 10, ranks=3), self.record(0, 10, how="maybe"), good + " more"):
            self.write(0, [good, bad])
            self.refused("t.0: line 4", "record 2 of 2 is malformed")
        self.write(0, [good])
        text = (self.folder / "t.0").read_text()
        for bad in ("code", "code p - 0x10", "code p - 10 -", "code p - 0x10 - -", "call p - 0x10 -", "code % - 0x10 -",
                    "code p%2 - 0x10 -", "code p%xy - 0x10 -", "code p - 0x -", "source p 1", "source p 1 f -", "source p x f",
                    "source p -1 f", "source % 1 f"):
            (self.folder / "t.0").write_text(text.replace("code p - 0x10 -", bad))
            self.refused("t.0: line 2", "call site 1 of 1 is malformed")
        for bad in ("1", "-1", "-"):
            (self.folder / "t.0").write_text(text.replace(" ok 0 ", f" ok {bad} "))
            self.refused("t.0: line 3", "record 1 of 1 is malformed")

    def test_cut_off(self):
        """Wherever a trace is cut, the file and the record are named."""
        self.write(1, [self.record(0, 10)])
        self.write(0, [self.record(0, 10), self.record(20, 30, op=2)])
        whole = (self.folder / "t.0").read_text()
        for length in range(1, len(whole)):
            (self.folder / "t.0").write_text(whole[:length])
            if whole[:length].endswith("end"):
                continue  # all of it but the last newline
            within = whole.index("\n") < length <= whole.index("\nend")
            self.refused("t.0: line ", "cut off" if within else "")
        (self.folder / "t.0").write_text(whole + "more\n")
        self.refused("t.0: line 6", "more lines than calls")

    def test_mixed(self):
        self.write(0, [])
        self.write(1, [], job="b")
        self.refused("t.1: line 1", "two jobs")
        self.write(1, [], ranks=3)
        self.refused("t.1: line 1", "two jobs")
        self.write(0, [], name="t.1")
        self.refused("t.1: line 1", "rank 0, not of rank 1")
        self.write(0, [self.record(0, 10)])
        self.write(1, [self.record(0, 10, collective="bcast")])
        self.refused("t.1", "bcast", "alltoall")

    def test_output(self):
        self.write(0, [self.record(0, 10, ranks=1)], ranks=1)
        for option in ("--html", "--arrivals"):
            self.assertEqual(self.tool(self.file, option, self.folder / "no/such").returncode, 2)
            done = self.tool(self.file, option, "/dev/full")
            self.assertEqual(done.returncode, 1)
            self.assertIn("No space left", done.stderr)


PYTHON = """
import ctypes, os, threading
binding = os.path.abspath("mpi4py/binding.so")
free, held = ctypes.CDLL(binding), ctypes.PyDLL(binding)
free.binding_begin()
class Halo:
    def exchange(self):
        free.binding_barrier()
ended = threading.Event()
def work():
    while not ended.is_set():
        sum(range(100))
worker = threading.Thread(target=work)
worker.start()
for _ in range(3):
    Halo().exchange()
ended.set()
worker.join()
held.binding_barrier()
free.binding_end()
"""


class CallSites(TraceTest):
    """A program of one rank, its own library, and a library with the name of an MPI's, which calls for the program."""

    SOURCE = pathlib.Path(__file__).with_name("call_sites.c")

    @classmethod
    def setUpClass(cls):
        if not shutil.which("cc") or not shutil.which("objcopy"):
            raise unittest.SkipTest("no C compiler")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.built = pathlib.Path(folder.name)
        (cls.built / "mpi4py").mkdir()
        cls.build(cls.built)
        cls.line = {match[2]: f"{match[1]} call_sites.c:{number}"
                    for number, line in enumerate(cls.SOURCE.read_text().splitlines(), 1)
                    if (match := re.search(r"; +// (\w+): (\w+)$", line))}

    @classmethod
    def build(cls, folder, *flags, link=()):
        def compiled(name, *words):
            command = ["cc", "-g", "-O1", *flags, "-I", ROOT / "runtime/include", cls.SOURCE, "-o", name, *words,
                       "-L", BUILD / "lib", "-libcoll", f"-Wl,-rpath,{BUILD}/lib"]
            subprocess.run([str(word) for word in command], check=True, cwd=folder, timeout=60)
        for layer in ("own_layer", "mpi_layer"):
            compiled(f"lib{layer}.so", "-shared", "-fPIC", f"-DLAYER={layer}")
        compiled("mpi4py/binding.so", "-shared", "-fPIC", "-DBINDING", "-L.", "-lmpi_layer", "-Wl,-rpath,$ORIGIN/..")
        compiled("the program", *link, "-L.", "-lown_layer", "-lmpi_layer", "-Wl,-rpath,$ORIGIN")

    def setUp(self):
        super().setUp()
        shutil.copytree(self.built, self.folder, dirs_exist_ok=True)
        self.program = self.folder / "the program"

    def without(self, option):
        for name in ("the program", "libown_layer.so"):
            subprocess.run(["objcopy", *option.split(), name], check=True, cwd=self.folder, timeout=60)

    def run_program(self, *words, **settings):
        environment = {**os.environ, "IBCOLL_TRACE": str(self.file), **settings}
        done = subprocess.run(words or [self.program], env=environment, check=True, timeout=60, stdin=subprocess.DEVNULL,
                              cwd=self.folder, stderr=subprocess.PIPE, text=True)
        return done.stderr

    def rows(self):
        """What is shown of all call sites: {call site: row}, and the problems."""
        answer = json.loads(self.answer(self.file, "--format", "json"))
        self.assertEqual([row["site"] for row in answer["rows"] if row["site"] not in self.answer(self.file)], [])
        return {row["site"]: row for row in answer["rows"]}, answer["problems"]

    def assert_lines(self):
        rows, problems = self.rows()
        self.assertEqual(problems, [])
        self.assertEqual({site: row["calls"] for site, row in rows.items()},
                         {self.line["inlined"]: 1, self.line["nonblocking"]: 1, self.line["persistent"]: 3, self.line["twice"]: 2,
                          self.line["library"]: 1, self.line["layer"]: 1})
        return rows

    def test_lines(self):
        self.run_program()
        row = self.assert_lines()[self.line["inlined"]]
        self.assertEqual((row["function"], row["file"]), ("sum", str(self.SOURCE)))
        self.assertEqual(row["line"], int(self.line["inlined"].rpartition(":")[2]))
        self.assertRegex(row["address"], r"^the program\+0x[0-9a-f]+$")

    def test_lines_of_python(self):
        """Calls with the interpreter's lock and without it, while another thread wants it."""
        (self.folder / "a program.py").write_text(PYTHON)
        self.run_program(sys.executable, "a program.py")
        rows, problems = self.rows()
        self.assertEqual(problems, [])
        line = {text: number for number, text in enumerate(PYTHON.splitlines(), 1)}
        name = "exchange" if sys.version_info < (3, 11) else "Halo.exchange"
        free, held = line["        free.binding_barrier()"], line["held.binding_barrier()"]
        self.assertEqual({site: (row["function"], row["file"], row["line"], row["address"], row["calls"])
                          for site, row in rows.items()},
                         {f"{name} a program.py:{free}": (name, str(self.folder / "a program.py"), free, "", 3),
                          f"<module> a program.py:{held}": ("<module>", str(self.folder / "a program.py"), held, "", 1)})

    def test_addresses_that_are_fixed(self):
        self.build(self.folder, link=["-no-pie"])
        self.run_program()
        self.assert_lines()

    def test_units_without_a_table_of_their_addresses(self):
        self.without("-R .debug_aranges")
        self.run_program()
        self.assert_lines()

    def test_functions_without_debug_information(self):
        self.without("--strip-debug")
        self.run_program()
        rows, problems = self.rows()
        self.assertEqual(problems, [])
        self.assertEqual(sorted(re.sub(r"\+0x[0-9a-f]+ ", " ", site) for site in rows),
                         ["main in the program"] * 4 + ["own_layer in libown_layer.so"] + ["send in the program"] * 2)
        self.assertEqual({row["function"] for row in rows.values()}, {"main", "own_layer", "send"})
        self.assertEqual({(row["file"], row["line"]) for row in rows.values()}, {("", 0)})

    def test_addresses_without_symbols(self):
        self.without("--strip-all")
        self.run_program()
        rows, problems = self.rows()
        self.assertEqual(problems, [])
        own = {site for site in rows if "own_layer" in site}
        self.assertRegex(own.pop(), r"^own_layer\+0x[0-9a-f]+ in libown_layer.so$")  # exported
        self.assertEqual((len(own), len(rows)), (0, 7))
        for site, row in rows.items():
            if "own_layer" not in site:
                self.assertRegex(site, r"^the program\+0x[0-9a-f]+$")
                self.assertEqual(site, row["address"])

    def test_without_the_module(self):
        """It is missing, then of another build: the program runs, and complains once."""
        shutil.copy(BUILD / "lib/libibcoll.so.0", self.folder)
        module = self.folder / "libibcoll_trace.so"
        for reason in (f"the module libibcoll_trace.so cannot be loaded: {module}: ",
                       f"{module} is of another build than libibcoll.so ("):
            errors = self.run_program(LD_LIBRARY_PATH=str(self.folder))
            self.assertTrue(errors.startswith(f"ibcoll: error: IBCOLL_TRACE: {reason}"), errors)
            self.assertIn("this rank has no trace: put libibcoll_trace.so of the same build beside libibcoll.so", errors)
            self.assertEqual(errors.count("\n"), 1, errors)
            self.assertEqual(list(self.folder.glob("t.*")), [])
            subprocess.run(["cc", "-shared", "-fPIC", '-DIBCOLL_BUILD="other"', ROOT / "tests/unit/build_module.c", "-o", module],
                           check=True, timeout=60)

    def test_a_program_that_has_changed(self):
        """Of another build than the one that ran, or gone."""
        self.run_program()
        self.build(self.folder, "-O2")
        for reason in ("of another build", "No such file"):
            rows, problems = self.rows()
            self.assertEqual(len(problems), 2, problems)
            self.assertTrue(all(reason in problem for problem in problems), problems)
            self.assertIn(f"call sites in {self.program} are shown as addresses: ", "".join(problems))
            self.assertEqual(sum(re.match(r"the program\+0x[0-9a-f]+$", site) is not None for site in rows), 6, rows)
            self.assertIn(problems[0], self.answer(self.file))
            self.program.unlink(missing_ok=True)
            (self.folder / "libown_layer.so").unlink(missing_ok=True)


class Recorded(TraceTest):
    CALLS = ("--iterations", "300", "--warmup", "30")  # all fit into a page

    def records(self, rank):
        lines = (self.folder / f"t.{rank}").read_text().splitlines()[1:-1]
        return [line for line in lines if not line.startswith(("code ", "team ", "counts "))]

    def traced(self, *words, setting=None, ranks=RANKS, layout=(), **settings):
        command = [str(word) for word in (BUILD / "bin/ibcoll_run", "-n", ranks, *layout, BUILD / "bin/ibcoll_perf", *words)]
        environment = dict(os.environ, IBCOLL_TRACE=str(setting or self.file), **settings)
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def test_program(self):
        self.assertEqual(self.traced("alltoall", "--bytes", "64", "--algorithm", "direct", *self.CALLS), "")
        answer = json.loads(self.answer(self.file, "--format", "json"))
        rows = [row for row in answer["rows"] if row["collective"] == "alltoall"]
        self.assertTrue(rows)
        self.assertEqual({row["mean_bytes"] for row in rows}, {64})
        self.assertEqual((answer["ranks"], answer["dropped"], answer["incomplete"]), (RANKS, 0, 0))
        for row in rows:
            self.assertRegex(row["address"], r"^ibcoll_perf\+0x[0-9a-f]+$")
            self.assertGreater(row["message_us"], 0)
        self.assertIn(" direct ", (self.folder / "t.0").read_text())
        page = self.folder / "page"
        self.answer(self.file, "--html", page)
        data = re.search(r"const trace = (.*);\nconst canvas", page.read_text()).group(1)
        self.assertEqual(len(json.loads(data)["calls"]), sum(row["calls"] for row in answer["rows"]))
        self.assertNotRegex(page.read_text(), r"https?://")

    def test_served(self):
        """Every rank tells when it served each other one, within its call; the page draws the same."""
        for layout, size in (((), 64), ((), 100_000), (("--nodes", 2), 64), (("--nodes", 2), 100_000)):
            with self.subTest(layout=layout, size=size):
                self.traced("alltoall", "--bytes", size, "--algorithm", "pap_direct", *self.CALLS, layout=layout)
                calls = json.loads(self.answer(self.file, "--format", "json", "--served", 1000))["served"]
                calls = [call for call in calls if call["collective"] == "alltoall"]
                self.assertEqual({call["bytes"] for call in calls}, {size})
                for call in calls:
                    self.assertEqual(sorted(rank["rank"] for rank in call["ranks"]), list(range(RANKS)))
                    for rank in call["ranks"]:
                        others = sorted(set(range(RANKS)) - {rank["rank"]})
                        self.assertEqual(sorted(peer["rank"] for peer in rank["peers"]), others)
                        for peer in rank["peers"]:
                            self.assertLessEqual(rank["arrival_us"], peer["begun_us"])
                            self.assertLessEqual(peer["begun_us"], peer["sent_us"])
                            self.assertLess(rank["arrival_us"], peer["landed_us"])
                page = self.folder / "page"
                self.answer(self.file, "--html", page)
                drawn = json.loads(re.search(r"const trace = (.*);\nconst canvas", page.read_text()).group(1))["calls"]
                self.assertTrue(any(len(peers) == RANKS - 1 for call in drawn for peers in call["served"]))

    def test_in_node(self):
        """The early ranks of a node publish at once, and tell whom they waited for: the last one."""
        pattern = self.folder / "pattern"
        pattern.write_text("# ibcoll arrivals 1 ranks 4\n0 30000 90000 0\n")
        self.traced("alltoall", "--bytes", 64, "--algorithm", "shm", "--iterations", 5, "--arrival", f"file:{pattern}")
        calls = json.loads(self.answer(self.file, "--format", "json", "--served", 1000))["served"]
        calls = [call for call in calls if call["collective"] == "alltoall"][-5:]
        as_the_pattern_says = 0  # where the machine is busy, an early rank may get no processor before the last one comes
        for call in calls:
            ranks = {rank["rank"]: rank for rank in call["ranks"]}
            last = ranks[2]["arrival_us"]
            for number, rank in ranks.items():
                self.assertEqual(rank["peers"], [])
                self.assertLessEqual(rank["arrival_us"], rank["in_node"]["published_us"])
            early = [rank["in_node"] for number, rank in ranks.items() if number != 2]
            if all(max(rank["published_us"], rank["from_us"]) < last for rank in early):
                as_the_pattern_says += 1
                self.assertEqual([rank["waits_for"] for rank in early], [2] * (RANKS - 1))
                self.assertTrue(all(last < rank["until_us"] for rank in early), early)
        self.assertGreater(as_the_pattern_says, 0, calls)
        self.traced("alltoall", "--bytes", 64, "--algorithm", "shm", IBCOLL_TRACE_PEERS="0")
        self.assertEqual({line.split()[11] for rank in range(RANKS)
                          for line in self.records(rank)}, {"-"})

    def test_agreement_of_arrival_patterns(self):
        """ibcoll_perf --arrival: before each call all ranks meet in an allreduce of 8 bytes, which agrees on an instant;
        arrivals follow it by the delays of the pattern."""
        delays = ((0, 0, 60_000, 30_000), (30_000, 0, 0, 0))
        pattern = self.folder / "pattern"
        pattern.write_text("# ibcoll arrivals 1 ranks 4\n" + "".join(" ".join(map(str, row)) + "\n" for row in delays))
        self.traced("alltoall", "--bytes", 8, "--iterations", 6, "--warmup", 2, "--arrival", f"file:{pattern}")
        calls = list(zip(*map(self.calls_of_all, range(RANKS)), strict=True))
        measured = [number for number, (first, *_) in enumerate(calls) if first[2] == "alltoall" and first[3] == "8"][-6:]
        errors = []
        for count, number in enumerate(measured):
            agreement = calls[number - 1]
            self.assertEqual({tuple(part[2:4]) for part in agreement}, {("allreduce", "8")})
            last = max(int(part[0]) for part in agreement)
            self.assertTrue(all(int(part[1]) >= last for part in agreement), "a rank left the agreement too early")
            instants = [int(part[0]) / 1e3 - delay for part, delay in zip(calls[number], delays[count % 2])]
            self.assertGreater(min(instants), last / 1e3)
            errors.append(max(instants) - min(instants))
        # Without the agreement they are 30 ms and more, in each call. A busy machine delays some calls, not all.
        self.assertLess(min(errors), 10_000, errors)

    def calls_of_all(self, rank):
        calls = [line.split() for line in self.records(rank)]
        return [words for words in calls if words[7] == str(RANKS)]

    def test_few_peers_are_kept(self):
        """A call is shown with all of its peers or with none."""
        for most, expected in ((4, {0, 3}), (2, {0}), (0, {0})):
            self.traced("alltoall", "--bytes", "64", "--algorithm", "pap_direct", IBCOLL_TRACE_PEERS=str(most))
            for rank in range(RANKS):
                lines = self.records(rank)
                peers = [line.split()[10] for line in lines if " alltoall " in line]
                peers = [0 if text == "-" else text.count(",") + 1 for text in peers]
                self.assertLessEqual(set(peers), expected)
                self.assertLessEqual(sum(peers), most)

    def test_times(self):
        """Those of CLOCK_MONOTONIC, also of a rank that is alone."""
        for ranks in (1, 2):
            begin = time.monotonic_ns()
            self.traced("allreduce", "--bytes", "8", ranks=ranks)
            end = time.monotonic_ns()
            for rank in range(ranks):
                lines = self.records(rank)
                self.assertTrue(lines)
                for line in lines:
                    arrival, leaving = map(int, line.split()[:2])
                    self.assertTrue(begin <= arrival < leaving <= end, line)

    def test_folder(self):
        self.traced("barrier", setting=self.folder)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), [f"trace.{rank}" for rank in range(RANKS)])
        self.answer(self.folder)

    def test_full_ring(self):
        self.traced("barrier", IBCOLL_TRACE_CALLS="5")
        answer = json.loads(self.answer(self.file, "--format", "json"))
        self.assertLessEqual(sum(row["calls"] for row in answer["rows"]), 5)
        self.assertGreater(answer["dropped"], 0)

    def test_not_writable(self):
        """The program ends well, and each rank complains once."""
        for setting, reason in ((self.folder / "no/such", "No such file"), ("/dev/full", "No space left")):
            errors = self.traced("barrier", setting=setting)
            self.assertEqual(errors.count("IBCOLL_TRACE: cannot write"), RANKS, errors)
            self.assertEqual(errors.count(reason), RANKS, errors)
            self.assertEqual(errors.count("\n"), RANKS, errors)
