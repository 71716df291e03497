# SPDX-License-Identifier: BSD-3-Clause
"""Jobs under ibcoll_run --keep-going that lose ranks: the others agree, shrink their team and end well."""

import collections
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
import unittest

import ranks

PROGRAM = "ibcoll_survivor_ranks"
ONE_NODE, TWO_NODES, FOUR_NODES = ("--nodes", 1), ("--nodes", 2, "--net", "ucx"), ("--nodes", 4, "--net", "ucx")
RDMA = ("--nodes", 4, "--rdma-in-memory")
# Deaths of 0 to all but one of the ranks; the first one may be rank 0.
JOBS = [(seed, where, size) for where in (ONE_NODE, TWO_NODES, FOUR_NODES, RDMA) for size in (8, 16)
        for seed in range(1, 101 if ranks.SWEEP else 3 if where == RDMA else 5)]


def command(size, where, *words):
    return [str(word) for word in (ranks.tool("ibcoll_run"), "-n", size, "--keep-going", "--timeout", ranks.SECONDS, *where,
                                   ranks.tool(PROGRAM), *words)]


def start(size, where, *words, env=None):
    return ranks.run(command(size, where, *words), env)


class Survivors(unittest.TestCase):
    def check_random_job(self, seed, where, size):
        done = start(size, where, "random", seed, seed * 5 % size)
        self.assertEqual(done.returncode, 0, ranks.story(done))
        self.assertNotIn("WRONG", done.stderr, ranks.story(done))
        dead = {int(rank) for rank in re.findall(r"rank (\d+) on host \S+ \(pid \d+\) was killed by signal 9 [^;]*; ", done.stderr)}
        ended = collections.Counter(re.findall(r"^ended with (.*)\.$", done.stdout, re.MULTILINE))
        survivors = set(range(size)) - dead
        self.assertTrue(ended, ranks.story(done))
        for members in ended:  # those that died in the very end are members still
            self.assertLessEqual(survivors, {int(rank) for rank in members.split(",")}, ranks.story(done))
        # One answer to a ballot, on all ranks.
        answers = collections.defaultdict(set)
        for phase, of, answer in re.findall(r"^agreed (\d+) of (\S+): (.*)\.$", done.stdout, re.MULTILINE):
            answers[phase, of].add(answer)
        for ballot, found in answers.items():
            self.assertEqual(len(found), 1, f"{ballot}: {found}\n{ranks.story(done)}")
        self.assertLessEqual(len(dead), seed * 5 % size)

    def test_random_deaths(self):
        for seed, where, size in JOBS:
            with self.subTest(seed=seed, where=where, size=size):
                self.check_random_job(seed, where, size)

    def check_scenario(self, name, env=None, size=3, where=ONE_NODE):
        done = start(size, where, name, env=env)
        self.assertEqual(done.returncode, 0, ranks.story(done))
        self.assertNotIn("WRONG", done.stderr, ranks.story(done))

    def test_ballots_that_wait_for_each_other_fail_and_name_each_other(self):
        self.check_scenario("same_ranks")
        for where in (ONE_NODE, TWO_NODES, RDMA):
            with self.subTest(where=where):
                self.check_scenario("overlapping", size=5, where=where)

    def test_agree_beside_shrink_is_a_mismatch(self):
        self.check_scenario("other_calls")

    def test_a_rank_that_does_not_vote_is_named_after_the_timeout_by_all(self):
        self.check_scenario("late", {"IBCOLL_TIMEOUT": "2"})

    def test_a_rank_that_closes_its_connections_ends_before_it_counts_as_dead(self):
        self.check_scenario("deserted")

    def test_what_ranks_hold_stays_at_its_level(self):
        for where in (ONE_NODE, FOUR_NODES, RDMA):
            with self.subTest(where=where):
                self.check_scenario("one_by_one", size=12, where=where)

    def test_a_death_opens_no_connection(self):
        self.check_scenario("unconnected", {"IBCOLL_BARRIER": "dissemination"}, size=12, where=("--nodes", 12, "--net", "ucx"))

    def test_wrong_arguments_and_wrong_moments(self):
        self.check_scenario("arguments")

    def test_without_ibcoll_run_there_is_no_one_to_decide(self):
        done = ranks.run([ranks.tool(PROGRAM), "alone"])
        self.assertEqual(done.returncode, 0, ranks.story(done))


class Stopped(unittest.TestCase):
    """A rank that is stopped for longer than others take to close their connections to it, and continued then."""

    def check(self, where):
        with tempfile.TemporaryDirectory() as folder:
            errors, gate = pathlib.Path(folder) / "errors", pathlib.Path(folder) / "gate"
            with open(errors, "wb") as stream, subprocess.Popen(
                    command(4, where, "stopped", gate), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stream, text=True,
                    env=ranks.environment()) as job:
                lines = "".join(job.stdout.readline() for _ in range(4))
                pids = {int(rank): int(pid) for rank, pid in re.findall(r"rank (\d) is pid (\d+)", lines)}
                time.sleep(0.2)
                os.kill(pids[1], signal.SIGSTOP)
                time.sleep(0.1)
                os.kill(pids[2], signal.SIGKILL)
                time.sleep(3)
                os.kill(pids[1], signal.SIGCONT)
                time.sleep(1)
                gate.touch()
                output = job.stdout.read()
                code = job.wait(ranks.SECONDS)
            said = f"{output}\n{errors.read_text(encoding='utf-8')}"
        self.assertEqual(code, 0, said)
        self.assertNotIn("WRONG", said)
        # It lives, and so it is in the new team; or it was killed first.
        killed = "rank 1 on host" in said
        self.assertEqual(re.findall(r"^dead: (.*)\.$", output, re.MULTILINE), ["1,2"] * 2 if killed else ["2"] * 3, said)

    def test_on_one_node(self):
        self.check(ONE_NODE)

    def test_over_ucx(self):
        self.check(TWO_NODES)

    def test_over_rdma_in_memory(self):
        self.check(RDMA)


class Solver(unittest.TestCase):
    def test_its_answer_is_that_of_a_run_without_deaths(self):
        answers = set()
        for size, deaths in ((16, 0), (16, 3), (3, 2)):
            words = [ranks.tool("ibcoll_run"), "-n", size, "--keep-going", ranks.tool("ibcoll_heat"), deaths]
            done = ranks.run(list(map(str, words)))
            self.assertEqual(done.returncode, 0, ranks.story(done))
            *shrinks, answer = done.stdout.splitlines()
            self.assertEqual([line.split()[0] for line in shrinks], [str(size - 1 - i) for i in range(deaths)], ranks.story(done))
            answers.add(answer)
        self.assertEqual(answers, {"19.2983484962386 degrees in the middle, 175822.058411456 in all"})


class Launcher(unittest.TestCase):
    """--keep-going, whatever the ranks run."""

    def run_shell(self, option, script):
        return ranks.run([ranks.tool("ibcoll_run"), "-n", "4", "--timeout", "60", *option, "sh", "-c", script])

    def test_a_death_ends_nothing(self):
        done = self.run_shell(["--keep-going"], 'test $IBCOLL_RUN_RANK = 2 && kill -9 $$; sleep 0.5; echo here')
        self.assertEqual((done.returncode, done.stdout), (0, "here\n" * 3), ranks.story(done))
        self.assertRegex(done.stderr, r"rank 2 on host \S+ \(pid \d+\) was killed by signal 9 \(Killed\); 3 ranks go on")
        self.assertRegex(done.stderr, r"1 of 4 ranks did not finish: rank 2 .* after \d+\.\d s\n$")

    def test_too_few_are_left(self):
        done = self.run_shell(["--keep-going=3"], 'test $IBCOLL_RUN_RANK -lt 2 && kill -9 $$; sleep 100')
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, ranks.story(done))
        self.assertIn("2 of 4 ranks are left, and --keep-going=3 wants more; ending the job", done.stderr)

    def test_a_program_that_cannot_run_is_no_lost_host(self):
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder) / "script"
            script.write_text("#!/no/such/interpreter\n")
            script.chmod(0o755)
            done = ranks.run([ranks.tool("ibcoll_run"), "--keep-going", "--timeout", "60", "-n", "2", "sleep", "50", ":",
                              "-n", "1", str(script)])
        self.assertEqual(done.returncode, 127, ranks.story(done))
        self.assertRegex(done.stderr, r"\Aibcoll_run: host \S+: rank 2: \S+: its interpreter is not there.*\n\Z")

    def test_an_error_of_a_rank_that_lives_is_that_of_the_job(self):
        done = self.run_shell(["--keep-going"], 'test $IBCOLL_RUN_RANK = 1 && exit 7; sleep 0.5; echo here')
        self.assertEqual((done.returncode, done.stdout), (7, "here\n" * 3), ranks.story(done))

    def test_wrong_numbers(self):
        for option, text in (("=0", "MIN is from 1 to 4"), ("=5", "MIN is from 1 to 4"), ("=-1", "not a number of ranks"),
                             ("=many", "not a number of ranks"), ("=", "a value is missing")):
            done = self.run_shell(["--keep-going" + option], "echo here")
            self.assertEqual((done.returncode, done.stdout), (2, ""), ranks.story(done))
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()
