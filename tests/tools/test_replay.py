# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_sim --replay as its users meet it. The build tree is taken from $build, else build/release."""

import contextlib
import csv
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import termios
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("build", "build/release")).resolve()
HEADER = ("# ibcoll trace 5 rank {} ranks {} job {} clock {} node {} cores 1 ranks_per_core 1 alpha_us 2 cpu_us 0.5 "
          "beta_us_per_byte 0.0001 copy_us_per_byte 0.0001 flag_us 0.1 calls {} dropped {} sites 1 teams {} counts {}\n")


class ReplayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def tool(self, *words, tool="ibcoll_sim"):
        command = [str(word) for word in (BUILD / "bin" / tool, *words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    def replay(self, *words):
        """The variants by name, and the rest of the answer."""
        done = self.tool("--replay", self.folder, *words, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        return {variant["name"]: variant for variant in answer["variants"]}, answer

    def refused(self, *parts, words=(), status=2):
        done = self.tool("--replay", self.folder, *words)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        for part in parts:
            self.assertIn(str(part), done.stderr)

    def write(self, rank, calls, ranks=2, job="a", clock="m", node=None, dropped=0, teams=("1 0-1",), counts=(), end="end\n"):
        text = HEADER.format(rank, ranks, job, clock, rank if node is None else node, len(calls), dropped, len(teams), len(counts))
        text += "code p - 0x10 -\n" + "".join(f"team {team}\n" for team in teams)
        text += "".join(f"counts {one}\n" for one in counts) + "".join(f"{call}\n" for call in calls) + end
        (self.folder / f"trace.{rank}").write_text(text)

    @staticmethod
    def call(arrival, leaving, op, what="barrier 0 dissemination", meaning="- - - auto - 0", how="ok", team=1, ranks=2):
        return f"{arrival} {leaving} {what} {team} {op} {ranks} {how} 0 - - {meaning}"

    def write_barriers(self, late=0, count=40, leave=3000):
        """Rank 1 comes `late` ns after rank 0; each leaves 3 us after that."""
        for rank in range(2):
            self.write(rank, [self.call(op * 100_000 + rank * late, op * 100_000 + late + leave, op) for op in range(count)])


class Synthetic(ReplayTest):
    def test_late_ranks_and_moving_data(self):
        self.write_barriers(late=20_000)
        variants, answer = self.replay()
        recorded = variants["recorded"]
        self.assertAlmostEqual(recorded["late_s"], 40 * 10e-6)
        self.assertAlmostEqual(recorded["moving_s"], 40 * 3e-6)
        self.assertAlmostEqual(recorded["total_s"], 39 * 100e-6 + 23e-6)
        self.assertTrue(answer["trusted"])
        self.assertLess(abs(answer["error"]), 0.25)
        self.assertEqual(list(variants), ["recorded", "replayed as recorded", "chosen by ibcoll", "best of each site"])

    def test_another_machine(self):
        """Slower links lengthen what moves; computing together and faster shortens the rest."""
        self.write_barriers(late=20_000)
        own, slow = self.replay()[0], self.replay("--alpha", 30)[0]
        self.assertGreater(slow["chosen by ibcoll"]["moving_s"], 2 * own["chosen by ibcoll"]["moving_s"])
        together = self.replay("--together")[0]["chosen by ibcoll"]
        self.assertLess(together["late_s"], 0.05 * own["chosen by ibcoll"]["late_s"])
        fast = self.replay("--speedup", 4)[0]["chosen by ibcoll"]
        self.assertLess(fast["total_s"], 0.5 * own["chosen by ibcoll"]["total_s"])

    def test_more_ranks_and_their_layout(self):
        self.write_barriers(late=5000)
        _, answer = self.replay("--ranks", 8, "--ranks-per-node", 4)
        self.assertEqual(answer["ranks"], 8)
        self.assertIn("8 ranks on 2 nodes", answer["machine"])
        _, answer = self.replay("--nodes", 16, "--ranks-per-node", 2)
        self.assertIn("32 ranks on 16 nodes", answer["machine"])
        self.refused("7 ranks are no multiple of the 2", words=("--ranks", 7))
        self.refused("do not fit", words=("--ranks", 8, "--nodes", 2, "--ranks-per-node", 2))

    def test_algorithms(self):
        self.write_barriers()
        variants, _ = self.replay("--algorithm", "barrier=tree:2", "--peer", "mpich")
        self.assertEqual(variants["algorithms as given"]["sites"][0]["algorithm"], "tree:2")
        self.assertEqual(variants["as mpich"]["sites"][0]["algorithm"], "dissemination")
        self.refused("no_such", words=("--algorithm", "barrier=no_such"))
        self.refused("COLLECTIVE=ALGORITHM", words=("--algorithm", "tree"))
        self.refused("COLLECTIVE", words=("barrier",))

    def test_irregular_sizes(self):
        """allgatherv, alltoallv and gatherv, whose sizes no rank or not each one knows."""
        for rank in range(2):
            self.write(rank, [
                self.call(0, 20_000, 1, "allgatherv 600 ring", "- - - auto 0 0"),
                self.call(50_000, 70_000, 2, "alltoallv 600 direct", f"- - - auto {1 + rank} 0"),
                self.call(100_000, 120_000, 3, f"gatherv {100 + rank} linear", f"1 - - auto {3 if rank else '-'} 0"),
            ], counts=("1000,200", "500,700", "300,900", "100,101"))
        variants, answer = self.replay("--ranks", 4, "--html", self.folder / "page")
        self.assertEqual([call["bytes"] for call in self.lines()[0]["calls"]], [600, 600, 100.5])
        sizes = {site["collective"]: site["mean_bytes"] for site in variants["chosen by ibcoll"]["sites"]}
        self.assertEqual(sizes, {"allgatherv": 600, "alltoallv": 600, "gatherv": 100.5})
        self.assertEqual(answer["calls"], 3)

    def lines(self):
        """The time lines of the page."""
        return [json.loads(text.replace("&quot;", '"'))
                for text in re.findall(r"const trace = (.*);\nconst canvas", (self.folder / "page").read_text())]

    def test_formats(self):
        self.write_barriers()
        variants, _ = self.replay()
        done = self.tool("--replay", self.folder, "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(done.stdout)))
        self.assertEqual([row["variant"] for row in rows], list(variants))
        self.assertAlmostEqual(float(rows[0]["moving_s"]), variants["recorded"]["sites"][0]["moving_s"])
        table = self.tool("--replay", self.folder).stdout
        self.assertRegex(table, r"\nbarrier at p\+0x10: 40 calls of 0 bytes\n")

    def test_page(self):
        """Both time lines, with the same calls and of one length."""
        self.write_barriers(late=20_000)
        self.replay("--html", self.folder / "page", "--alpha", 30)
        data = self.lines()
        self.assertEqual([len(one["calls"]) for one in data], [40, 40])
        self.assertEqual(data[0]["least"], data[1]["least"])
        self.assertEqual(data[0]["calls"][0]["arrival"], [0, 20])
        self.assertGreater(data[1]["calls"][39]["exit"][0], data[0]["calls"][39]["exit"][0])
        self.assertEqual(self.tool("--replay", self.folder, "--html", self.folder / "no/such").returncode, 2)

    def test_page_of_two_teams(self):
        """Both lines begin with the program, though the call that was made first is not the first of the replay."""
        for rank, arrivals in enumerate(((0, 1_000_000), (100_000, 1_000_000), (10_000, 900_000), (10_000, 900_000))):
            number = 1 + rank // 2
            self.write(rank, [self.call(begin, max(begin, 100_000) + 3000, op, team=number) for op, begin in enumerate(arrivals)],
                       ranks=4, teams=("1 0-1", "2 2-3"))
        self.replay("--html", self.folder / "page", "--together")
        recorded, replayed = ([call["arrival"] for call in line["calls"][:2]] for line in self.lines())
        self.assertEqual(recorded, [[0, 100], [10, 10]])
        self.assertEqual(replayed, [[50, 50], [10, 10]])

    def test_clocks_that_cannot_be_compared(self):
        """One host was started an hour before the other. A bcast says nothing of their clocks: its ranks begin together."""
        hour = 3_600_000_000_000
        bcast = "bcast 8 binomial", "0 - - auto - 0"
        for rank in range(2):
            begin = 5000 + rank * hour
            self.write(rank, [self.call(begin + op * 100_000, begin + op * 100_000 + 3000, op, *bcast)
                              for op in range(rank * 5, 40)], clock="mn"[rank], dropped=rank * 5)
        variants, answer = self.replay()
        self.assertAlmostEqual(variants["recorded"]["total_s"], 34 * 100e-6 + 3e-6)
        self.assertAlmostEqual(variants["recorded"]["late_s"], 0)
        self.assertIn("the clock of machine n cannot be compared", "".join(answer["notes"]))
        self.write(1, [self.call(hour, hour + 3000, 1, *bcast, team=2, ranks=1)], clock="n", teams=("2 1",))
        self.write(0, [self.call(0, 3000, 1, *bcast, team=3, ranks=1)], clock="m", teams=("3 0",))
        done = self.tool("--replay", self.folder, "--format", "json")
        self.assertEqual(done.returncode, 1, "on one rank a bcast takes no time")
        self.assertAlmostEqual(json.loads(done.stdout)["variants"][0]["total_s"], 3e-6)

    def test_clocks_without_rank_0(self):
        """Those of the other hosts are compared with each other."""
        for rank in (1, 2):
            begin = rank * 3_600_000_000_000
            self.write(rank, [self.call(begin + op * 100_000, begin + op * 100_000 + 3000, op, team=2) for op in range(40)],
                       ranks=3, clock=f"m{rank}", teams=("2 1-2",))
        variants, answer = self.replay("--partial")
        self.assertAlmostEqual(variants["recorded"]["total_s"], 39 * 100e-6 + 3e-6)
        self.assertNotIn("clock", "".join(answer["notes"]))

    def test_a_team_that_a_later_rank_knows(self):
        for rank in range(3):
            calls = [self.call(op * 100_000, op * 100_000 + 3000, op, team=2) for op in range(40)] if rank < 2 else ()
            self.write(rank, calls, ranks=3, teams=("2 0-1",) if rank == 1 else ())
        self.assertEqual(self.replay()[1]["calls"], 40)

    def test_memory_is_refused_at_the_start(self):
        self.write_barriers(count=2000)
        limited = ["sh", "-c", 'ulimit -v 2000000 && exec "$0" "$@"', str(BUILD / "bin/ibcoll_sim"), "--replay", str(self.folder)]
        done = subprocess.run([*limited, "--ranks", "65536"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("the calls of 65536 ranks take 8.8 GB", done.stderr)

    def test_the_same_each_time(self):
        self.write_barriers(late=7000)
        first = self.tool("--replay", self.folder, "--ranks", 8).stdout
        self.assertEqual(first, self.tool("--replay", self.folder, "--ranks", 8).stdout)

    def test_a_replay_that_is_far_off_shows_no_other_machine(self):
        """Reductions of 8 bytes take 2 us and those of 16 bytes 2 ms: no model does both."""
        for rank in range(2):
            self.write(rank, [self.call(op * 5_000_000, op * 5_000_000 + (2000 if op % 2 else 2_000_000), op,
                                        f"allreduce {8 if op % 2 else 16} recursive_doubling", "- double sum auto - 0")
                              for op in range(40)])
        done = self.tool("--replay", self.folder)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no other machine is shown", done.stderr)
        self.assertNotIn("best of each site", done.stdout)
        self.assertIn("replayed as recorded", done.stdout)


class BadInput(ReplayTest):
    def test_missing(self):
        self.refused("trace.0", "No such file")
        self.write_barriers()
        (self.folder / "trace.1").unlink()
        self.refused("trace.1", "No such file")
        self.write(1, [], job="b")
        self.refused("trace.1: line 1", "two jobs")

    def test_old_and_newer(self):
        self.write_barriers()
        text = (self.folder / "trace.0").read_text()
        (self.folder / "trace.0").write_text(text.replace("trace 5", "trace 9"))
        self.refused("trace.0: line 1", "version 9")
        for rank in range(2):
            (self.folder / f"trace.{rank}").write_text(
                f"# ibcoll trace 4 rank {rank} ranks 2 job a clock m alpha_us 2 beta_us_per_byte 0 calls 0 dropped 0 sites 0\nend\n")
        self.refused("trace.0", "version 4", "record it again")

    def test_calls_that_do_not_match(self):
        bcast = "bcast 8 binomial"
        for other, said in (("barrier 0 dissemination", ("bcast of 8 bytes", "barrier of 0 bytes")),
                            (bcast.replace("8", "9"), ("8 bytes", "9 bytes"))):
            self.write(0, [self.call(0, 9, 1, bcast, "0 - - auto - 0")])
            self.write(1, [self.call(0, 9, 1, other, "0 - - auto - 0")])
            self.refused("trace.1: rank 1: call 1 of team 1 is", "rank 0 has", *said)
        self.write(1, [self.call(0, 9, 1, bcast, "1 - - auto - 0")])
        self.refused("trace.1: rank 1: call 1", "root 1", "root 0")
        self.write(1, [])
        self.refused("trace.1: rank 1 has no call 1 of team 1, which is bcast", "--partial")
        self.write(1, [self.call(0, 9, 1, bcast, "0 - - auto - 0")] * 2)
        self.refused("trace.1: rank 1: call 1", "recorded twice")

    def test_partial(self):
        """What can be read is used, and what cannot is named: half a file, a call that is missing, another one."""
        self.write_barriers(count=40)
        lines = (self.folder / "trace.1").read_text().splitlines(keepends=True)
        (self.folder / "trace.1").write_text("".join(lines[:-11]) + lines[-11][:20])
        self.refused("trace.1: line", "cut off")
        variants, answer = self.replay("--partial")
        self.assertEqual(answer["calls"], 30)
        self.assertIn("cut off", "".join(answer["notes"]))
        self.assertIn("10 calls are left out", "".join(answer["notes"]))
        self.assertEqual(variants["recorded"]["sites"][0]["calls"], 30)

    def test_few_of_many_complaints_are_shown(self):
        self.write_barriers(count=40)
        self.write(1, [self.call(op * 100_000, op * 100_000 + 3000, op) for op in range(30)])
        _, answer = self.replay("--partial")
        self.assertEqual([note.split(": ", 1)[1].split(",")[0] for note in answer["notes"] if "trace.1" in note],
                         [f"rank 1 has no call {op} of team 1" for op in (30, 31, 32)] + ["and 7 more"])

    def test_calls_that_the_buffer_lost_are_left_out(self):
        self.write_barriers(count=40)
        self.write(1, [self.call(op * 100_000, op * 100_000 + 3000, op) for op in range(10, 40)], dropped=10)
        _, answer = self.replay()
        self.assertEqual(answer["calls"], 30)
        self.assertIn("10 records were dropped", "".join(answer["notes"]))

    def test_options(self):
        self.write_barriers()
        for words in (("--speedup", 0), ("--speedup", "nan"), ("--ranks-per-node", 0), ("--peer", "x"), ("--scale-bytes", "x"),
                      ("--alpha", -1)):
            self.refused(words[0], words=words)
        self.refused("--nodes", "2400000000 ranks", words=("--nodes", 40000, "--ranks-per-node", 60000))

    def test_options_of_the_other_mode(self):
        self.write_barriers()
        for words in (("-m", 77), ("--factor", 2), ("--distribution", "regular"), ("--root", 5), ("--arrival", "late:1:4"),
                      ("--scheme", "copy"), ("--check",), ("--trace", self.folder / "new")):
            self.refused("--bytes" if words[0] == "-m" else words[0], "no effect with --replay", words=words)
        for words in (("--ranks-per-node", 4), ("--speedup", 3), ("--together",), ("--peer", "mpich"), ("--scale-bytes", "fixed"),
                      ("--seed", 2), ("--html", self.folder / "new"), ("--partial",)):
            done = self.tool("allgather", "--ranks", 8, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(f"{words[0]}: is of a replay", done.stderr)
        self.assertFalse((self.folder / "new").exists())


class Recorded(ReplayTest):
    def test_a_program(self):
        """Record with one command, replay with a second."""
        command = [BUILD / "bin/ibcoll_run", "-n", "4", "--nodes", "2", BUILD / "bin/ibcoll_perf", "alltoallv", "-m", "64:4K",
                   "--calls", "blocking", "-i", "20"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False,
                              env={**os.environ, "IBCOLL_TRACE": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\nteam ", (self.folder / "trace.3").read_text())
        done = self.tool("--replay", self.folder, "--nodes", 4, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)  # 1: on a busy machine, where the replay is too far off
        answer = json.loads(done.stdout)
        recorded, replayed, *_ = answer["variants"]
        shown = json.loads(self.tool(self.folder, "--format", "json", tool="ibcoll_trace").stdout)
        self.assertEqual(answer["calls"], sum(row["calls"] for row in shown["rows"]))
        self.assertEqual({site["collective"] for site in recorded["sites"]}, {row["collective"] for row in shown["rows"]})
        self.assertGreater(recorded["in_collectives_s"], 0)
        algorithms = {site["algorithm"] for site in replayed["sites"] if site["collective"] == "alltoallv"}
        self.assertTrue(all(f" {name} " in (self.folder / "trace.0").read_text() for name in algorithms), algorithms)


    def test_teams_of_one_id(self):
        """Two teams without a common member may have one id. They are two teams in the traces, too."""
        program, include = self.folder / "same_id", ROOT / "runtime/include"
        subprocess.run(["cc", "-I", include, pathlib.Path(__file__).with_name("same_id.c"), "-o", program, "-L", BUILD / "lib",
                        "-libcoll", f"-Wl,-rpath,{BUILD}/lib"], check=True, timeout=60)
        done = subprocess.run([BUILD / "bin/ibcoll_run", "-n", "4", program], capture_output=True, text=True, timeout=100,
                              check=False, env={**os.environ, "IBCOLL_TRACE": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.tool("--replay", self.folder, "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        self.assertEqual({site["collective"]: site["calls"] for site in json.loads(done.stdout)["variants"][0]["sites"]}["barrier"], 40)


class Interrupted(ReplayTest):
    """Ctrl-C prints what is complete, and the exit status is that of a shell."""

    def rows(self, output):
        return [row for row in ("recorded", "replayed as recorded", "chosen by ibcoll", "best of each site")
                if re.search(f"^{row} ", output, re.MULTILINE)]

    def command(self, *words):
        return [str(word) for word in (BUILD / "bin/ibcoll_sim", "--replay", self.folder, *words)]

    def test_in_a_long_run(self):
        """That of many ranks, which the line on the terminal shows: the runs before it take milliseconds."""
        self.write_barriers(count=200)
        (self.folder / "page").write_text("old")
        leader, terminal = os.openpty()
        termios.tcsetwinsize(terminal, (24, 200))
        with os.fdopen(leader, "rb", 0) as screen:
            child = subprocess.Popen(self.command("--ranks", 8192, "--html", self.folder / "page"), stdout=subprocess.PIPE,
                                     stderr=terminal, text=True, env={**os.environ, "TERM": "xterm"})
            os.close(terminal)
            seen = b""
            with contextlib.suppress(OSError):  # EIO: no process has the terminal open any more
                while chunk := screen.read(65536):
                    if b"million events" not in seen and b"million events" in seen + chunk:
                        child.send_signal(signal.SIGINT)
                    seen += chunk
            output = child.communicate(timeout=60)[0]
        self.assertEqual(child.returncode, 130, seen)
        self.assertIn(b"chosen by ibcoll: ended by the user after", seen)
        self.assertEqual(self.rows(output), ["recorded", "replayed as recorded"])
        self.assertIn("barrier at p+0x10: 200 calls", output)
        self.assertEqual((self.folder / "page").read_text(), "old", "there is no replay to draw")

    def test_before_the_first_run(self):
        """While it reads the trace of rank 1: what was recorded is all that there is."""
        self.write_barriers()
        lines = (self.folder / "trace.1").read_text()
        for form in "table", "json":
            (self.folder / "trace.1").unlink()
            os.mkfifo(self.folder / "trace.1")
            with subprocess.Popen(self.command("--format", form), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
                with open(self.folder / "trace.1", "w", encoding="ascii") as trace:  # once that opens it
                    child.send_signal(signal.SIGINT)
                    trace.write(lines)
                output, errors = child.communicate(timeout=60)
            said = errors.splitlines()[-1]
            self.assertEqual((child.returncode, said), (130, "ibcoll_sim: ended by the user after 0 us and 0 events"))
            if form == "table":
                self.assertEqual(self.rows(output), ["recorded"])
            else:
                answer = json.loads(output)
                self.assertEqual([row["name"] for row in answer["variants"]], ["recorded"])
                self.assertEqual(f"ibcoll_sim: {answer['ended']}", said)
                self.assertNotIn("trusted", answer)


class Otf2(ReplayTest):
    def setUp(self):
        super().setUp()
        if "built without OTF2" in self.tool("--replay", self.folder / "none.otf2").stderr:
            self.skipTest("ibcoll_sim was built without OTF2")

    def written(self):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "otf2"], capture_output=True, text=True, check=True).stdout
        writer = self.folder / "writer"
        subprocess.run(["cc", pathlib.Path(__file__).with_name("write_otf2.c"), "-o", writer, *flags.split()], check=True, timeout=60)
        subprocess.run([writer, self.folder / "archive"], check=True, timeout=60)
        return self.folder / "archive/traces.otf2"

    def test_an_archive(self):
        """Kinds of calls, their blocks, the function around the MPI's, nodes; a nonblocking call."""
        done = self.tool("--replay", self.written(), "--format", "json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual((answer["calls"], answer["ranks"]), (6, 2))
        self.assertIn("2 ranks on 2 nodes", answer["machine"])
        self.assertIn("OTF2 has no sizes for each peer", "".join(answer["notes"]))
        sites = answer["variants"][0]["sites"]
        self.assertEqual({(site["collective"], site["site"], site["calls"], site["mean_bytes"]) for site in sites},
                         {("barrier", "solve solver.c:42", 1, 0), ("bcast", "solve solver.c:42", 1, 800),
                          ("allreduce", "solve solver.c:42", 1, 800), ("alltoallv", "solve solver.c:42", 1, 800),
                          ("gatherv", "solve solver.c:42", 1, 804), ("allreduce", "?", 1, 800)})
        self.assertAlmostEqual(next(site["late_s"] for site in sites if site["collective"] == "barrier"), 25e-9)

    def test_damaged(self):
        archive = self.written()
        for name in ("traces/0.evt", "traces.def", "traces.otf2"):
            path = archive.parent / name
            whole = path.read_bytes()
            path.write_bytes(whole[:len(whole) // 2])
            done = self.tool("--replay", archive)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("traces.otf2: ", done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            path.write_bytes(whole)
        done = self.tool("--replay", self.folder / "none.otf2")
        self.assertEqual(done.returncode, 2, done.stderr)
