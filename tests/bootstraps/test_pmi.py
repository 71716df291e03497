# SPDX-License-Identifier: BSD-3-Clause
"""Ranks beside a PMI-1 server that is part of the test: limits of values, and servers that fail. Real ones: mpirun of
MPICH in test_bootstraps.py, srun in tests/slurm."""

import os
import selectors
import socket
import subprocess
import time
import unittest
from pathlib import Path

BUILD = (Path(__file__).resolve().parents[2] / os.environ.get("build", "build/release")).resolve()
JOB = BUILD / "bin/ibcoll_job"


class Server:
    """Serves ranks as Hydra does. `answers` replaces answers: command -> text without its end, or None for none."""

    def __init__(self, ranks, longest=1024, answers=()):
        self.longest, self.answers = longest, dict(answers)
        self.store, self.questions, self.waiting, self.left = {"PMI_process_mapping": "(vector,(0,1,1))"}, [], [], set()
        self.pairs = [socket.socketpair() for _ in range(ranks)]

    def answer(self, rank, line):
        words = dict(word.split("=", 1) for word in line.split(" "))
        command = words["cmd"]
        self.questions.append(line)
        if command in self.answers:
            return [(rank, self.answers[command])]
        if command == "put":
            fits = words["key"] not in self.store and len(words["value"]) < self.longest and len(line) < 1024
            if fits:
                self.store[words["key"]] = words["value"]
            return [(rank, f"cmd=put_result rc={0 if fits else -1} msg=x")]
        if command == "get":
            value = self.store.get(words["key"])
            return [(rank, f"cmd=get_result rc={-1 if value is None else 0} msg=x value={value}")]
        if command == "barrier_in":
            self.waiting.append(rank)
            if len(self.waiting) < len(self.pairs):
                return []
            all_of_them, self.waiting = self.waiting, []
            return [(one, "cmd=barrier_out") for one in all_of_them]
        if command == "finalize":
            self.left.add(rank)
        return [(rank, {"init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                        "get_maxes": f"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max={self.longest}",
                        "get_my_kvsname": "cmd=my_kvsname kvsname=kvs_0",
                        "finalize": "cmd=finalize_ack"}[command])]

    def serve(self, seconds=100):
        """Until all ranks have closed their connections."""
        deadline, rest = time.monotonic() + seconds, [b""] * len(self.pairs)
        with selectors.DefaultSelector() as ready:
            for rank, (own, _) in enumerate(self.pairs):
                ready.register(own, selectors.EVENT_READ, rank)
            while ready.get_map():
                if time.monotonic() > deadline:
                    raise TimeoutError("the ranks do not end")
                for key, _ in ready.select(1):
                    try:
                        data = key.fileobj.recv(65536)
                        *lines, rest[key.data] = (rest[key.data] + data).split(b"\n")
                        for rank, text in (one for line in lines for one in self.answer(key.data, line.decode())):
                            if text is not None:
                                self.pairs[rank][0].sendall(text.encode() + b"\n")
                    except ConnectionError:  # a rank that ended has left something unread
                        data = b""
                    if not data:
                        ready.unregister(key.fileobj)


class Pmi(unittest.TestCase):
    def start(self, server, *arguments, **variables):
        """One process of ibcoll_job for each rank; (return code, output, errors) of each."""
        processes = []
        for rank, (_, theirs) in enumerate(server.pairs):
            environment = {**os.environ, "PMI_FD": str(theirs.fileno()), "PMI_RANK": str(rank),
                           "PMI_SIZE": str(len(server.pairs)), "IBCOLL_TIMEOUT": "60", **variables}
            processes.append(subprocess.Popen(
                [JOB, *map(str, arguments)], env=environment, pass_fds=[theirs.fileno()], text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            theirs.close()
        try:
            server.serve()
            return [(process.wait(100), process.stdout.read(), process.stderr.read()) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.communicate()
            for own, _ in server.pairs:
                own.close()

    def assert_all_right(self, done):
        self.assertEqual(done, [(0, f"0 wrong among {len(done)}\n", "")] * len(done))

    def error_of(self, done):
        for code, _, _ in done:
            self.assertNotEqual(code, 0)
        return done[0][2]

    def test_values_of_all_lengths(self):
        for longest in (64, 333, 1024, 100000):
            with self.subTest(longest=longest):
                server = Server(3, longest)
                self.assert_all_right(self.start(server))
                self.assertEqual(server.left, {0, 1, 2})

    def test_contexts_one_after_the_other_share_one_connection(self):
        server = Server(2)
        self.assert_all_right(self.start(server, 4))
        self.assertEqual(sum(line.startswith("cmd=init") for line in server.questions), 2)
        self.assertEqual(server.left, {0, 1})

    def test_one_rank_does_not_ask(self):
        server = Server(1)
        self.assert_all_right(self.start(server))
        self.assertEqual(server.questions, [])

    def test_a_server_that_is_silent_is_given_up(self):
        for command in ("init", "get_my_kvsname", "get", "put"):
            with self.subTest(command=command):
                server = Server(1, answers={command: None})
                text = self.error_of(self.start(server, PMI_SIZE="2", IBCOLL_TIMEOUT="0.5"))
                self.assertIn("rank 0: the launcher's PMI server did not answer in time (IBCOLL_TIMEOUT)", text)

    def test_a_rank_that_never_comes_is_given_up(self):
        """A time that the questions before need as well: the shortest that does."""
        for seconds in ("0.5", "2", "8", "32"):
            server = Server(1, answers={"barrier_in": None})
            text = self.error_of(self.start(server, PMI_SIZE="2", IBCOLL_TIMEOUT=seconds))
            if f"rank 0: PMI barrier: not all 2 ranks came within {seconds} s (IBCOLL_TIMEOUT)" in text:
                return
        self.fail(text)

    def test_answers_that_are_not_those_of_pmi_1(self):
        for command, answer, said in (
                ("init", "HTTP/1.1 400 Bad Request", "answers 'HTTP/1.1 400 Bad Request' to 'cmd=init"),
                ("init", "cmd=response_to_init rc=-1", "refuses 'cmd=init"),
                ("get_maxes", "cmd=maxes vallen_max=x", "for values of 0 bytes"),
                ("get_maxes", "cmd=maxes vallen_max=8", "for values of 8 bytes"),
                ("get_my_kvsname", "cmd=my_kvsname", "offers the store ''"),
                ("put", "cmd=put_result rc=-1 msg=full",
                 "refuses 'cmd=put kvsname=kvs_0 key=ibcoll.0.0.0': 'cmd=put_result rc=-1"),
                ("get", "cmd=get_result rc=0 value=***", "is not what rank 0 put there: '***'"),
                ("get", "cmd=get_result rc=0 value=AAAA", "is not what rank 0 put there: 'AAAA'"),
                ("get", "cmd=get_result rc=0 value=" + 2000 * "A", "is not what rank 0 put there: 'AAAA"),
                ("get", "cmd=get_result rc=0", "is not what rank 0 put there: ''"),
                ("init", "x" * 100000, "a line that does not end")):
            with self.subTest(command=command, answer=answer[:40]):
                server = Server(1, answers={command: answer, "barrier_in": "cmd=barrier_out"})
                text = self.error_of(self.start(server, PMI_SIZE="2"))
                self.assertIn("rank 0: ", text)
                self.assertIn(said, text)

    def test_a_server_that_has_ended(self):
        server = Server(1)
        server.pairs[0][0].shutdown(socket.SHUT_RDWR)
        text = self.error_of(self.start(server, PMI_SIZE="2"))
        self.assertIn("rank 0: the launcher's PMI server (PMI_FD): ", text)
        self.assertIn("is the launcher still running, and did this rank run another program before?", text)

    def test_a_rank_that_is_none(self):
        for variables in ({"PMI_RANK": "2", "PMI_SIZE": "2"}, {"PMI_RANK": "x", "PMI_SIZE": "2"}, {"PMI_SIZE": "two"}):
            with self.subTest(**variables):
                self.assertIn("not a rank of a job", self.error_of(self.start(Server(1), **variables)))


class WithoutBootstrap(unittest.TestCase):
    """Variables of launchers that offer no way to the other ranks."""

    def start(self, **variables):
        done = subprocess.run([JOB], env={**os.environ, **variables}, capture_output=True, text=True, timeout=100,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def test_one_of_several_ranks_is_refused(self):
        for variables, said in (
                ({"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3"},
                 "rank 3: a launcher started this process as one of 4 ranks (SLURM_STEP_NUM_TASKS), but offers neither "
                 "PMIx (PMIX_RANK) nor PMI (PMI_FD) to find the others; start it by srun --mpi=pmix or "
                 "srun --mpi=pmi2, or start it by ibcoll_run"),
                ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"},
                 "rank 1: a launcher started this process as one of 2 ranks"),
                ({"PMI_SIZE": "3", "PMI_RANK": "1"},
                 "rank 1: a launcher started this process as one of 3 ranks (PMI_SIZE)"),
                ({"PMI_SIZE": "3", "PMI_RANK": "1", "PMI_FD": "99"}, "leave it the socket PMI_FD"),
                ({"PMI_SIZE": "3", "PMI_RANK": "1", "PMI_FD": "0"}, "leave it the socket PMI_FD"),
                ({"FLUX_JOB_SIZE": "2", "FLUX_TASK_RANK": "0"},
                 "rank 0: a launcher started this process as one of 2 ranks"),
                ({"PMI_PORT": "host:1", "PMI_ID": "1"}, "leave out mpirun's option -pmi-port")):
            with self.subTest(**variables):
                code, _, errors = self.start(**variables)
                self.assertEqual(code, 1)
                self.assertIn(said, errors)
                self.assertIn("IBCOLL_SINGLETON=yes makes each process a job of its own", errors)
                self.assertEqual(self.start(**variables, IBCOLL_SINGLETON="yes"), (0, "0 wrong among 1\n", ""))

    def test_the_shell_of_an_allocation_and_jobs_of_one_rank_run(self):
        for variables in ({"SLURM_NTASKS": "4", "SLURM_NPROCS": "4", "SLURM_PROCID": "0"},
                          {"SLURM_STEP_NUM_TASKS": "1"}, {"PMI_SIZE": "1", "PMI_RANK": "0", "PMI_FD": "99"},
                          {"OMPI_COMM_WORLD_SIZE": "1"}, {"FLUX_JOB_SIZE": ""}):
            with self.subTest(**variables):
                self.assertEqual(self.start(**variables), (0, "0 wrong among 1\n", ""))
