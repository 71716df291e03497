# SPDX-License-Identifier: BSD-3-Clause
"""Launcher and agent of a remote host, when one of the two is not heard any more, and when that is only so for a while."""

import os
import signal
import time

from job import SOON, RemoteJobTest, alive, state, wait_until

TIMEOUT = 3  # seconds; on a busy machine an agent may not run for one
LONGER = 6
# One process each: a shell that is stopped while it starts another one waits for that in the kernel, and does not show as stopped.
TICKING = """exec python3 -uc 'import os, time
print(os.getpid())
while True:
    print("tick")
    time.sleep(0.05)'"""


class Silence(RemoteJobTest):
    def start_with_short_timeouts(self, *words, **options):
        env = {**os.environ, "IBCOLL_RUN_TIMEOUTS": str(TIMEOUT)}
        return self.start(*words, env=env, **options)

    def assert_succeeds(self, job):
        output, errors = job.communicate(timeout=SOON)
        self.assertEqual((job.returncode, errors), (0, b""))
        return output

    def stop(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.kill(pid, signal.SIGKILL) if state(pid) == "T" else None)  # where the test fails
        self.assertTrue(wait_until(lambda: state(pid) == "T"))

    def test_a_host_that_is_not_heard_any_more_ends_the_job(self):
        with self.start_with_short_timeouts() as job:
            pids = self.pids_of(job)
            begin = time.monotonic()
            self.stop(self.agents(job.pid)[0])
            self.assertEqual(job.wait(SOON), 1)
            self.assertGreater(time.monotonic() - begin, 0.8 * TIMEOUT)
            self.assertLess(time.monotonic() - begin, 20, "30 s would be the launcher's default")
            self.assertRegex(job.stderr.read().decode(),
                             rf"\Aibcoll_run: host 127\.0\.0\.[23]: nothing heard from its agent for {TIMEOUT} s; "
                             r"is the host up, and the network to it\? Its ranks may still run\n\Z")
            self.assert_all_gone(pids)

    def test_a_host_that_is_not_heard_any_more_is_lost_where_the_job_goes_on(self):
        gate = self.folder / "gate"
        program = f"echo $IBCOLL_RUN_RANK $$; while ! [ -e {gate} ]; do sleep 0.1; done"
        with self.start_with_short_timeouts(program, launcher=["--keep-going"]) as job:
            pids = dict(map(int, line.split()) for line in self.read_lines(job, 5))
            agent = self.agents(job.pid)[0]
            self.stop(agent)
            said = job.stderr.readline().decode()
            self.assertRegex(said, rf"^ibcoll_run: rank [02] was lost \(host \S+: nothing heard from its agent for {TIMEOUT} s; "
                                   r".*\); 4 ranks go on$")
            os.kill(agent, signal.SIGCONT)  # it ends its ranks
            lost = (0, 1) if "rank 0" in said else (2, 3, 4)
            self.assert_all_gone([pids[rank] for rank in lost])
            gate.touch()
            self.assertEqual(job.wait(SOON), 0)
            self.assertRegex(job.stderr.read().decode(), rf"ibcoll_run: {len(lost)} of 5 ranks did not finish: rank {lost[0]} was lost ")

    def test_hosts_whose_ranks_say_nothing_or_take_all_processors(self):
        program = f"[ $((IBCOLL_RUN_RANK % 2)) = 0 ] && exec sleep {LONGER}; timeout {LONGER} sh -c 'while :; do :; done'; true"
        with self.start_with_short_timeouts(program) as job:
            self.assertEqual(self.assert_succeeds(job), b"")

    def test_hosts_whose_output_waits_for_a_slow_reader(self):
        with self.start_with_short_timeouts("head -c 8000000 /dev/zero | tr '\\0' '\\n'") as job:
            time.sleep(LONGER)
            self.assertEqual(len(self.assert_succeeds(job)), 5 * 8_000_000)

    def test_a_launcher_that_is_suspended_finds_its_job_again(self):
        with self.start_with_short_timeouts(TICKING) as job:
            pids = [int(line) for line in self.read_lines(job, 50) if line != "tick"]
            job.send_signal(signal.SIGTSTP)
            self.assertTrue(wait_until(lambda: {state(pid) for pid in [job.pid, *pids]} == {"T"}))
            time.sleep(LONGER)
            self.assertEqual([pid for pid in pids if not alive(pid)], [])
            job.send_signal(signal.SIGCONT)
            self.read_lines(job, 200)
            time.sleep(TIMEOUT)
            job.terminate()
            self.assertEqual(job.wait(SOON), 143)
            self.assertNotIn("nothing heard", job.stderr.read().decode())

    def test_a_launcher_that_is_not_heard_any_more_costs_the_ranks(self):
        with self.start_with_short_timeouts() as job:
            pids = self.pids_of(job)
            self.stop(job.pid)
            self.assert_all_gone(pids)  # the agent's default is 600 s
            job.send_signal(signal.SIGCONT)
            self.assertEqual(job.wait(SOON), 1)
            errors = job.stderr.read().decode()
            for host in (2, 3):
                self.assertIn(f"host 127.0.0.{host}: nothing heard from the launcher for {TIMEOUT} s", errors)
            self.assertRegex(errors, r"ibcoll_run: host 127\.0\.0\.[23]: .* while ranks were running there")

    def test_the_timeout_is_a_number(self):
        code, _, errors = self.run_job("true", env={"IBCOLL_RUN_TIMEOUTS": "much"})
        self.assertEqual((code, errors),
                         (2, "ibcoll_run: IBCOLL_RUN_TIMEOUTS: 'much' is not a number of seconds above 0, at most 1000000000\n"))
