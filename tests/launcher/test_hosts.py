# SPDX-License-Identifier: BSD-3-Clause
"""Host files, several hosts through a remote shell command, and what ranks find in their environment."""

import contextlib
import ctypes
import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import time

from job import (FAKE_SHELL, HOSTS, SECONDS, SOON, JobTest, RemoteJobTest, alive, blocked_signals, longer_and_longer, name, state,
                 tool, unread, wait_until)

PROBE = "ibcoll_launcher_probe"


# A name server that takes questions and gives no answer, on a machine that knows no other; then the command.
BLACK_HOLE = r"""
import os, socket, subprocess, sys
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 53))
server.set_inheritable(True)
for name, text in (("resolv.conf", "nameserver 127.0.0.1\n"), ("nsswitch.conf", "hosts: files dns\n")):
    with open(os.path.join(sys.argv[1], name), "w") as file:
        file.write(text)
    subprocess.run(["mount", "--bind", file.name, "/etc/" + name], check=True)
os.execv(sys.argv[2], sys.argv[2:])
"""


# As FAKE_SHELL, but it takes a while to log in; keeps a file for each login that is under way, and their largest number.
SLOW_SHELL = FAKE_SHELL.replace('echo "Welcome to $1"', """
touch "$0.login.$1"
echo "$0".login.* | wc -w >> "$0.logins"
sleep 0.2
rm "$0.login.$1"
""")
# The first TRIES logins to a host fail as those of ssh do.
DROPPING_SHELL = FAKE_SHELL.replace('echo "Welcome to $1"', """
echo >> "$0.tries.$1"
if [ $(wc -l < "$0.tries.$1") -le TRIES ]; then exit 255; fi
""")


class Logins(JobTest):
    def hosts(self, count):
        return ",".join(f"127.0.0.{2 + number}:1" for number in range(count))

    def test_ten_at_a_time(self):
        shell = self.script("shell", SLOW_SHELL)
        code, output, errors = self.run_job("--rsh", shell, "--host", self.hosts(24), "echo", "here")
        self.assertEqual((code, output, errors), (0, 24 * "here\n", ""))
        most = max(map(int, pathlib.Path(f"{shell}.logins").read_text(encoding="ascii").split()))
        self.assertTrue(2 <= most <= 10, most)

    def test_a_failure_ends_those_that_wait(self):
        shell = self.script("shell", SLOW_SHELL.replace("sleep 0.2", "case $1 in 127.0.0.3) exit 7;; esac; sleep 1000"))
        code, _, errors = self.run_job("--rsh", shell, "--host", self.hosts(14), "true", seconds=SOON,
                                       env={**os.environ, "IBCOLL_RUN_TIMEOUTS": "0.2"})
        self.assertEqual(code, 1)
        self.assertIn(f"host 127.0.0.3: '{shell}' exited with status 7 before an agent answered", errors)
        self.assertFalse(pathlib.Path(f"{shell}.login.127.0.0.15").exists(), "it was started")

    def test_one_that_is_dropped_is_tried_again(self):
        for tries, code in ((1, 0), (3, 1)):
            with self.subTest(tries=tries):
                shell = self.script(f"shell{tries}", DROPPING_SHELL.replace("TRIES", str(tries)))
                again = f"'{shell}' exited with status 255 before an agent answered; trying again"
                ended, output, errors = self.run_job("--rsh", shell, "--host", self.hosts(2), "echo", "here")
                self.assertEqual((ended, output), (code, "" if code else 2 * "here\n"), errors)
                self.assertEqual(errors.count(again), 2 * min(tries, 2), errors)
                self.assertEqual("agent answered\n" in errors, code == 1, errors)

    def test_a_signal_ends_what_waits_to_be_tried_again(self):
        shell = self.script("shell", DROPPING_SHELL.replace("TRIES", "9"))
        with self.started("--rsh", shell, "--host", "127.0.0.2:1", "true") as job:
            self.assertTrue(wait_until(lambda: pathlib.Path(f"{shell}.tries.127.0.0.2").exists()))
            job.send_signal(signal.SIGTERM)
            self.assertEqual(job.wait(SOON), 128 + signal.SIGTERM)


class NameServers(JobTest):
    def test_one_that_does_not_answer_can_be_interrupted(self):
        inside = ["unshare", "-n", "-m"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0 or not shutil.which("ip"):
            self.skipTest("needs network and mount namespaces, and ip")
        command = [*inside, "python3", "-c", BLACK_HOLE, self.folder, tool("ibcoll_run"), "--host", "unknown-host.example:1", "true"]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as job:
            self.addCleanup(job.kill)
            self.assertEqual(job.stderr.readline(), b"ibcoll_run: looking up the address of host unknown-host.example\n")
            job.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(4), -signal.SIGINT, "ibcoll_run itself gives up after 5 s")
            self.assertEqual(job.stderr.read(), b"", "no process has it open any more")

    def test_one_that_does_not_answer_is_given_up(self):
        """Then the address is a guess, and ibcoll_run says so; the remote shell may know the host by other means."""
        inside = ["unshare", "-n", "-m"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0 or not shutil.which("ip"):
            self.skipTest("needs network and mount namespaces, and ip")
        shell = self.script("shell", FAKE_SHELL)
        command = [*inside, "python3", "-c", BLACK_HOLE, self.folder, tool("ibcoll_run"), "--rsh", shell, "--host",
                   "host-1.example:1,host-2.example:1", "echo", "x"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                              env={**os.environ, "IBCOLL_RUN_TIMEOUTS": "1.5"})
        self.assertEqual((done.returncode, done.stdout), (0, "x\nx\n"), done.stderr)
        self.assertEqual(done.stderr, "ibcoll_run: looking up the address of host host-1.example\n"
                         "ibcoll_run: host host-1.example: the name server does not answer within 1.5 s; ranks will reach this "
                         "machine at 127.0.0.1, unless --address names another address\n")


# A machine with one address beside loopback, and a host whose name leads to loopback, as a host's own does on Debian.
OWN_NAME = r"""
import os, subprocess, sys
for words in ("link set lo up", "link add net0 type veth peer name net1", "address add 10.9.8.1/24 dev net0",
              "link set net1 up", "link set net0 up"):
    subprocess.run(["ip", *words.split()], check=True)
with open(os.path.join(sys.argv[1], "hosts"), "w") as file:
    file.write("127.0.0.1 localhost\n127.0.1.1 other-host\n")
subprocess.run(["mount", "--bind", file.name, "/etc/hosts"], check=True)
os.execv(sys.argv[2], sys.argv[2:])
"""


class NamesOfLoopback(JobTest):
    def test_a_remote_host_that_resolves_to_loopback(self):
        inside = ["unshare", "-n", "-m"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0 or not shutil.which("ip"):
            self.skipTest("needs network and mount namespaces, and ip")
        command = [*inside, "python3", "-c", OWN_NAME, self.folder, tool("ibcoll_run"), "--rsh",
                   self.script("shell", FAKE_SHELL), "--host", "other-host:2", tool(PROBE), "exchange", "1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout.count("of 2 node '' spread ibcoll_run: ok\n")), (0, 2), done.stderr)
        self.assertEqual(done.stderr, "ibcoll_run: host other-host resolves to 127.0.1.1 here, where every host finds "
                         "itself (see /etc/hosts); ranks will reach this machine at 10.9.8.1, unless --address names "
                         "another address\n")


class Addresses(JobTest):
    """Of the rendezvous of a job on this machine alone."""

    def run_in_network(self, setup, *words):
        """The same after `setup`, in a network of its own, whose loopback interface is down in the beginning."""
        inside = ["unshare", "-n", "sh", "-e", "-c", setup + '; exec "$@"', "sh"]
        if subprocess.run([*inside, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0:
            self.skipTest("needs network namespaces, and ip")
        done = subprocess.run([*inside, tool("ibcoll_run"), "-n", "2", *words], capture_output=True, text=True,
                              timeout=SECONDS, check=False)
        return done.returncode, done.stdout, done.stderr

    def test_the_given_one_is_taken_in_a_local_job(self):
        show = ("sh", "-c", "echo $IBCOLL_RUN_ADDRESS")
        code, output, errors = self.run_in_network("ip link set lo up", "--address", "::1", *show)
        self.assertRegex(output, r"^(\[::1\]:\d+\n){2}$")
        self.assertEqual((code, errors), (0, ""))
        code, _, errors = self.run_job("--address", "10.254.253.252", "true")
        self.assertEqual((code, errors), (1, "ibcoll_run: cannot listen on 10.254.253.252: Cannot assign requested address\n"))

    def test_loopback_of_version_6_where_there_is_no_other(self):
        code, output, errors = self.run_in_network("ip link set lo up; ip address delete 127.0.0.1/8 dev lo", tool(PROBE))
        self.assertEqual((code, output.count("local ibcoll_run: ok\n"), errors), (0, 2, ""))

    def test_a_loopback_interface_that_is_down_is_named(self):
        code, output, errors = self.run_in_network("ip link set lo down", "echo", "x")
        self.assertEqual((code, output, errors), (0, "x\n" * 2, ""), "other programs need none")
        code, _, errors = self.run_in_network("ip link set lo down", tool(PROBE))
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"rank [01] on host \S+: ibcoll_run at 127\.0\.0\.1:\d+: connect: Network is unreachable; "
                         r"is the loopback interface up \(ip link set lo up\)\?")


class HostFiles(JobTest):
    def hostfile(self, text):
        path = self.folder / "hosts"
        path.write_text(text)
        return str(path)

    def test_mistakes_name_file_and_line(self):
        for text, line, about in (("h1\nh2:x\n", 2, "'x' is not a number of ranks"), ("h1 slots=-1", 1, "not a number"),
                                  ("# c\n\nh1\nh1 max_slots=x\n", 4, "not a number"), ("-oProxyCommand=x\n", 1, "not a host name"),
                                  ("h1 four\n", 1, "expected HOST"), ("\xffh1\n", 1, "not a host name")):
            path = self.hostfile(text)
            code, output, errors = self.run_job("--hostfile", path, "true")
            self.assertEqual((code, output), (2, ""))
            self.assertTrue(errors.startswith(f"ibcoll_run: {path}:{line}: "), errors)
            self.assertIn(about, errors)

    def test_a_byte_order_mark_is_no_part_of_a_name(self):
        path = self.hostfile("\ufefflocalhost:2\n")
        self.assertEqual(self.run_job("--hostfile", path, "echo", "x"), (0, "x\n" * 2, ""))
        code, _, errors = self.run_job("true", env={"PBS_JOBID": "1", "PBS_NODEFILE": path})
        self.assertEqual((code, errors), (0, "ibcoll_run: hosts of the PBS allocation (PBS_NODEFILE): localhost:2\n"))

    def test_files_that_hold_no_host(self):
        for path, about in ((self.hostfile(""), "no host"), (str(self.folder / "none"), "No such file"),
                            (str(self.folder), "not a file")):
            code, _, errors = self.run_job("--hostfile", path, "true")
            self.assertEqual(code, 2)
            self.assertIn(path, errors)
            self.assertIn(about, errors)

    def test_files_without_an_end(self):
        code, _, errors = self.run_job("--hostfile", "/dev/zero", "true")
        self.assertEqual((code, errors), (2, "ibcoll_run: --hostfile /dev/zero: cannot be read: it is above 16 MB, more than a list of hosts has\n"))

    def test_pipes(self):
        command = f"{tool('ibcoll_run')} --hostfile <(sleep 0.2; echo localhost slots=2) echo x"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "x\nx\n"), done.stderr)
        os.mkfifo(self.folder / "pipe")
        with self.started("--hostfile", self.folder / "pipe", "true") as job:
            self.assertTrue(wait_until(lambda: signal.SIGINT in blocked_signals(job.pid)))
            job.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(SOON), -signal.SIGINT, "it has no writer, and Ctrl-C ends the wait")

    def test_pipes_without_an_end(self):
        os.mkfifo(self.folder / "pipe")
        begin = time.monotonic()
        code, _, errors = self.run_job("--hostfile", self.folder / "pipe", "true", env={"IBCOLL_RUN_TIMEOUTS": "0.5"})
        self.assertEqual((code, errors), (2, f"ibcoll_run: --hostfile {self.folder}/pipe: cannot be read: no end of it within "
                                             "0.5 s; is it a pipe that nobody writes to, or closes?\n"))
        self.assertGreater(time.monotonic() - begin, 0.4)

    def test_many_lines(self):
        path = self.hostfile("localhost\n" * 2 + "".join(f"host{i}\n" for i in range(200_000)))
        begin = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.assertEqual(self.run_job("-n", 2, "--hostfile", path, "echo", "x"), (0, "x\nx\n", ""))
        took = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begin
        self.assertLess(took, 6, "of processor time; it needs 0.2 s, and 10 s to compare each line with each")

    def test_more_ranks_than_slots(self):
        code, _, errors = self.run_job("-n", 9, "--hostfile", self.hostfile("h1:4\nh2:4\n"), "true")
        self.assertEqual(code, 2)
        self.assertIn("the hosts offer 8 slots", errors)

    def test_this_machine_needs_no_remote_shell(self):
        for name in ("localhost", "LocalHost", socket.gethostname(), socket.gethostname().upper(),
                     f"{socket.gethostname().upper()}.example.com"):
            with self.subTest(name=name):
                path = self.hostfile(f"{name} slots=2 # here\n")
                code, output, errors = self.run_job("--hostfile", path, "--rsh", "/no/such/shell", tool(PROBE))
                self.assertEqual((code, output.count("of 2 node '' local ibcoll_run: ok\n"), errors), (0, 2, ""))
        for name in {"LOCALHOST", socket.gethostname().title()}:
            self.assertEqual(self.run_job("--host", f"no-such-host:0,{name}:2", "--rsh", "/no/such/shell", "echo", "x"),
                             (0, "x\nx\n", ""), name)


class RemoteHosts(RemoteJobTest):
    def run_remote(self, *words, **options):
        return self.run_job("--rsh", self.shell, *HOSTS, *words, **options)

    def test_a_late_rank_is_named_with_its_host(self):
        for seconds in longer_and_longer(0.5):
            code, _, errors = self.run_remote(tool(PROBE), "late", 3, 1000, env={"IBCOLL_TIMEOUT": str(seconds)})
            self.assertEqual(code, 3)
            if "rank 3 on host 127.0.0.3 has not come" in errors:  # the others have, in that time
                break
        self.assertIn(f"within {seconds:g} s (IBCOLL_TIMEOUT): rank 3 on host 127.0.0.3 has not come", errors)

    def test_exchange(self):
        code, output, errors = self.run_remote(tool(PROBE), "exchange", 3)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(sorted(output.splitlines()),
                         [f"rank {rank} of 5 node '' spread ibcoll_run: ok" for rank in range(5)])

    def test_placement_and_variables(self):
        os.environ["IBCOLL_WAIT"] = "yield"
        self.addCleanup(os.environ.pop, "IBCOLL_WAIT")
        code, output, _ = self.run_remote("-n", 4, "-x", "A=with blank", "--net", "ucx", "sh", "-c",
                                          "echo $IBCOLL_RUN_RANK $FAKE_HOST $IBCOLL_RUN_LOCAL_RANKS $A $IBCOLL_NET "
                                          "$IBCOLL_WAIT $HOME; pwd", cwd=self.folder)
        self.assertEqual(code, 0)
        lines = sorted(output.splitlines())
        self.assertEqual(lines[:4], [str(self.folder)] * 4)
        self.assertEqual(lines[4:], [f"{rank} 127.0.0.{2 + rank // 2} 2 with blank ucx yield" for rank in range(4)])

    def test_names_that_only_the_remote_shell_knows(self):
        code, output, errors = self.run_job("--rsh", self.shell, "--host", "alias-a:1,alias-b:1",
                                            "--address", "127.0.0.1", tool(PROBE))
        self.assertEqual((code, output.count(": ok\n"), errors), (0, 2, ""))

    def test_command_line_of_the_remote_shell(self):
        self.run_remote("-x", "PASSWORD=hush", "true")
        with open(self.shell + ".log", encoding="ascii") as log:
            self.assertEqual(sorted(log.read().splitlines()),
                             [f"127.0.0.{host} {tool('ibcoll_run')} --agent" for host in (2, 3)])

    def test_exit_codes(self):
        code, _, errors = self.run_remote("sh", "-c", "[ $IBCOLL_RUN_RANK = 4 ] && exit 6; sleep 100")
        self.assertEqual(code, 6)
        self.assertRegex(errors, r"^ibcoll_run: rank 4 on host 127.0.0.3 \(pid \d+\) exited with status 6; "
                                 r"ending the job\n$")
        code, _, errors = self.run_remote("sh", "-c", "[ $IBCOLL_RUN_RANK = 0 ] && kill -9 $$; sleep 100")
        self.assertEqual(code, 137)
        self.assertIn("rank 0 on host 127.0.0.2", errors)
        code, _, errors = self.run_remote("env", "IBCOLL_RUN_ADDRESS=127.0.0.1:1", tool(PROBE))
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"rank ([01] on host 127\.0\.0\.2|[234] on host 127\.0\.0\.3): ibcoll_run at 127\.0\.0\.1:1: connect: ")
        code, _, errors = self.run_remote("/no/such/program")
        self.assertEqual(code, 127)
        self.assertIn("/no/such/program: no such file", errors)

    def test_shells_that_do_not_work(self):
        for shell, about in (("/no/such/shell", "No such file"),
                             ("false", "exited with status 1 before an agent answered"),
                             (self.script("silent", "#!/bin/sh\nexec true\n"), "before an agent answered"),
                             (self.script("noise", "#!/bin/sh\nexec yes\n"), "something else")):
            code, _, errors = self.run_job("--rsh", shell, *HOSTS, "true")
            self.assertEqual(code, 1)
            self.assertIn(about, errors)
            self.assertRegex(errors, r"host 127\.0\.0\.[23]")
            for line in errors.splitlines():
                if "No such file" in line:
                    self.assertRegex(line, r"^ibcoll_run: host 127\.0\.0\.[23]: /no/such/shell: ")

    def test_input_and_output(self):
        text = "".join(f"line {i}\n" for i in range(50_000))
        code, output, _ = self.run_remote("cat", stdin=text)
        self.assertEqual((code, output), (0, text))
        code, output, errors = self.run_remote("--tag-output", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(sorted(output.splitlines()), [f"[{rank}] out" for rank in range(5)])
        self.assertEqual(sorted(errors.splitlines()), [f"[{rank}] err" for rank in range(5)])

    def test_volume(self):
        code, output, _ = self.run_remote("sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' '\\n'")
        self.assertEqual((code, len(output)), (0, 100_000_000))

    def test_signals(self):
        with self.start("trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done") as job:
            self.read_lines(job, 5)
            job.send_signal(signal.SIGINT)
            self.assertEqual(job.wait(SOON), 5)

    def test_one_signal_ends_a_job_that_has_not_started(self):
        """The remote shell of the first host hangs; ranks of the second one ignore the signal."""
        shell = self.script("hangs", FAKE_SHELL.replace("host=$1\n", "[ $1 = 127.0.0.2 ] && exec sleep 1000\nhost=$1\n"))
        with self.started("--rsh", shell, *HOSTS, "sh", "-c", "trap '' TERM; echo $$; while :; do sleep 0.1; done",
                          env={**os.environ, "IBCOLL_RUN_TIMEOUTS": "3"}) as job:
            pids = [int(line) for line in self.read_lines(job, 3)]
            job.terminate()
            self.assertEqual(job.wait(SOON / 3), 143, "the remote shell has 30 s to answer")
            self.assertIn("got signal 15 before all ranks have started; ending the job", job.stderr.read().decode())
            self.assert_all_gone(pids)

    def test_nobody_is_left_after_the_launcher_was_killed(self):
        with self.start() as job:
            pids = self.pids_of(job)
            job.kill()
            job.wait(SOON)
            self.assert_all_gone(pids)

    def check_that_the_job_ends_with(self, agents_signal, said):
        with self.start() as job:
            pids = self.pids_of(job)
            os.kill(self.agents(job.pid)[0], agents_signal)
            self.assertEqual(job.wait(SOON), 1)
            self.assertIn(said, job.stderr.read().decode())
            self.assert_all_gone(pids)

    def test_an_agent_that_is_killed_ends_the_job(self):
        self.check_that_the_job_ends_with(signal.SIGKILL, "was killed by signal 9 while ranks were running there")

    def test_what_a_lost_host_had_said_is_shown(self):
        program = "echo $$; printf 'rank %s was here' $IBCOLL_RUN_RANK; printf unfinished >&2; exec sleep 1000"
        with self.start(program) as job:
            pids = [int(line) for line in self.read_lines(job, 5)]
            agents = self.agents(job.pid)
            # The ranks have written it; the agents have read it and passed it on, as they sleep again.
            wait_until(lambda: all(name(pid) == "sleep" for pid in pids))
            wait_until(lambda: not any(unread(pid, stream) for pid in pids for stream in (1, 2)))
            wait_until(lambda: all(state(agent) == "S" for agent in agents))
            for agent in agents:
                with contextlib.suppress(ProcessLookupError):  # once one is lost, the job ends
                    os.kill(agent, signal.SIGKILL)
            output, errors = job.communicate(timeout=SOON)
            self.assertEqual(job.returncode, 1)
            for rank in range(5):
                self.assertEqual(output.decode().count(f"rank {rank} was here"), 1)
            self.assertEqual(errors.decode().count("unfinished"), 5)

    def test_output_of_other_hosts_when_one_is_lost(self):
        # What rank 2 has written is taken by a reader that is slow, though rank 0's host counts as lost meanwhile.
        text = "".join(f"line {i}\n" for i in range(400_000))
        (self.folder / "text").write_text(text)
        program = f"[ $IBCOLL_RUN_RANK = 2 ] && exec cat {self.folder}/text; exec sleep 1000"
        with self.start(program, env={**os.environ, "IBCOLL_RUN_TIMEOUTS": "1.5"}) as job:
            self.assertTrue(select.select([job.stdout], [], [], SOON)[0])
            time.sleep(0.5)
            os.kill(self.agents(job.pid)[0], signal.SIGKILL)
            time.sleep(4.5)  # two seconds to end, and the timeout
            output, errors = job.communicate(timeout=SOON)
            self.assertEqual(job.returncode, 1)
            self.assertNotIn("does not answer", errors.decode())
            self.assertTrue(text.startswith(output.decode()))

    def test_output_that_comes_slowly_is_not_cut(self):
        # The way from the first host passes 80 KB a second, for longer than the 3.5 seconds that a host has to end.
        slowly = "import os, time\nwhile data := os.read(0, 8000):\n  os.write(1, data)\n  time.sleep(0.1)"
        shell = self.script("slow", f"""#!/bin/sh
host=$1
shift
[ $host = 127.0.0.3 ] && exec sh -c "$*"
sh -c "$*" | python3 -c '{slowly}'
""")
        program = "[ $IBCOLL_RUN_RANK = 1 ] && { sleep 1; exit 4; }; seq 70000; exec sleep 1000"
        code, output, errors = self.run_job("--rsh", shell, "--host", "127.0.0.2:1,127.0.0.3:1", "sh", "-c", program,
                                            env={"IBCOLL_RUN_TIMEOUTS": "1.5"})
        self.assertEqual((code, len(output)), (4, 408_894), errors)
        self.assertEqual(errors.count("\n"), 1, errors)

    def test_under_nohup_the_end_of_the_terminal_ends_nothing(self):
        # Remote shells start what they start with the default action.
        shell = self.script("default", FAKE_SHELL.replace("env -i", "env -i --default-signal=HUP"))
        with self.started("--rsh", shell, *HOSTS, "sh", "-c", "echo $$; exec sleep 1000",
                          preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as job:
            pids = [int(line) for line in self.read_lines(job, 5)]
            job.send_signal(signal.SIGHUP)
            time.sleep(0.5)
            self.assertTrue(all(alive(pid) for pid in pids))
            self.assertIsNone(job.poll())
            job.terminate()
            self.assertEqual(job.wait(SOON), 143)

    def test_an_agent_that_gets_sigterm_takes_its_ranks_along(self):
        self.check_that_the_job_ends_with(
            signal.SIGTERM, f"got SIGTERM from pid {os.getpid()}; ending its ranks here")

    def test_signals_of_a_terminal_are_for_the_launcher(self):
        """They reach the agents that run here as well."""
        with self.start() as job:
            pids, agent = self.pids_of(job), self.agents(job.pid)[0]
            os.kill(agent, signal.SIGINT)
            taken = re.compile(r"ShdPnd:\s+0+$", re.MULTILINE)
            self.assertTrue(wait_until(lambda: taken.search(pathlib.Path(f"/proc/{agent}/status").read_text(encoding="ascii"))))
            job.terminate()
            self.assertEqual(job.wait(SOON), 143)
            self.assertNotIn("got SIGTERM", job.stderr.read().decode())
            self.assert_all_gone(pids)

    def test_hosts_that_do_not_answer_any_more(self):
        """They are given up together, whether output had come from them or not."""
        file = self.folder / "pids"
        program = f"echo $$ >>{file}; [ $IBCOLL_RUN_RANK -gt 0 ] || echo here; exec sleep 1000"
        with self.started("--rsh", self.shell, "--host", "127.0.0.2,127.0.0.3,127.0.0.4", "sh", "-c", program) as job:
            self.read_lines(job, 1)
            self.assertTrue(wait_until(lambda: file.exists() and file.read_text(encoding="ascii").count("\n") == 3))
            agents = [pid for pid in self.agents(job.pid)
                      if b"FAKE_HOST=127.0.0.4" not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()]
            self.assertEqual(len(agents), 2)
            for agent in agents:
                os.kill(agent, signal.SIGSTOP)
            self.assertTrue(wait_until(lambda: {state(agent) for agent in agents} == {"T"}))
            begin = time.monotonic()
            job.terminate()
            said = b""
            while b"does not answer" not in said:
                said += os.read(job.stderr.fileno(), 4096) or self.fail(said)
            if said.count(b"does not answer") < 2 and select.select([job.stderr], [], [], 1)[0]:
                said += os.read(job.stderr.fileno(), 4096)
            self.assertEqual(said.count(b"does not answer"), 2, said)
            self.assertEqual(job.wait(SOON), 143)
            self.assertLess(time.monotonic() - begin, SOON)
            for agent in agents:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(agent, signal.SIGCONT)
            self.assert_all_gone([int(pid) for pid in file.read_text(encoding="ascii").split()])

    def test_an_address_that_is_none_is_refused_everywhere(self):
        code, _, remote = self.run_remote("--address", "foo", "true")
        self.assertEqual(code, 2)
        self.assertIn("--address", remote)
        for hosts in (("--host", "localhost:2"), ("-n", "2")):
            with self.subTest(hosts=hosts):
                code, _, errors = self.run_job(*hosts, "--address", "foo", "true")
                self.assertEqual((code, errors), (2, remote))
                self.assertEqual(self.run_job(*hosts, "--address", "127.0.0.1", "true")[0], 0)

    def test_addresses_that_lead_nowhere_are_refused(self):
        for address in ("0.0.0.0", "::", "224.0.0.1"):
            with self.subTest(address=address):
                code, _, errors = self.run_remote("--address", address, "--allow-public", "true")
                self.assertEqual(code, 2, errors)
                self.assertIn(f"--address {address}: ranks cannot connect there", errors)

    def test_public_addresses_are_refused(self):
        code, _, errors = self.run_remote("--address", "8.8.8.8", "true")
        self.assertEqual(code, 2)
        self.assertIn("not a private address", errors)
        self.assertIn("--allow-public", errors)
        code, _, errors = self.run_remote("--address", "8.8.8.8", "--allow-public", "true")
        self.assertEqual(code, 1)
        self.assertIn("cannot listen on 8.8.8.8", errors)

    def test_public_addresses_by_the_setting_of_the_ranks(self):
        for value, expected, about in (("yes", 1, "cannot listen on 8.8.8.8"), ("1", 1, "cannot listen on 8.8.8.8"),
                                       ("no", 2, "not a private address"), ("", 2, "not a private address"),
                                       ("maybe", 2, "IBCOLL_ALLOW_PUBLIC=maybe (environment): not a valid value")):
            for words, env in (((), value), (("-x", f"IBCOLL_ALLOW_PUBLIC={value}"), ""),
                               (("-x", f"IBCOLL_ALLOW_PUBLIC={value}"), "yes")):
                with self.subTest(value=value, words=words, env=env):
                    code, _, errors = self.run_remote(*words, "--address", "8.8.8.8", "true",
                                                      env={"IBCOLL_ALLOW_PUBLIC": env})
                    self.assertEqual((code, errors.count("\n")), (expected, 1), errors)
                    self.assertIn(about, errors)

    def test_the_ranks_may_be_reached_publicly_as_well(self):
        show = ("sh", "-c", "echo ${IBCOLL_ALLOW_PUBLIC-unset}")
        for words, env, expected in (((), {}, "unset"), (("--allow-public",), {}, "yes"),
                                     (("--allow-public",), {"IBCOLL_ALLOW_PUBLIC": "no"}, "yes"),
                                     ((), {"IBCOLL_ALLOW_PUBLIC": "on"}, "on")):
            self.assertEqual(self.run_remote(*words, *show, env=env), (0, (expected + "\n") * 5, ""))
            self.assertEqual(self.run_job("-n", 2, *words, *show, env=env), (0, (expected + "\n") * 2, ""))


class SecureShell(JobTest):
    """The real thing: an ssh server on loopback, with keys made for this test. Dropbear takes keys from the user's home alone: to
    it, that is the folder of the test."""

    def setUp(self):
        super().setUp()
        for name in ("dropbear", "dropbearkey", "ssh", "ssh-keygen"):
            if not shutil.which(name) or os.getuid() != 0:
                self.skipTest(f"needs {name} and root")
        try:
            ctypes.CDLL("libnss_wrapper.so")
        except OSError:
            self.skipTest("needs libnss_wrapper.so")
        made = (["dropbearkey", "-t", "ed25519", "-f", self.folder / "host"],
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / "user"])
        for command in made:
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
        (self.folder / ".ssh").mkdir(mode=0o700)
        shutil.copy(self.folder / "user.pub", self.folder / ".ssh/authorized_keys")
        (self.folder / "passwd").write_text(f"root:x:0:0:root:{self.folder}:/bin/bash\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        env = {**os.environ, "LD_PRELOAD": "libnss_wrapper.so", "NSS_WRAPPER_PASSWD": str(self.folder / "passwd"),
               "NSS_WRAPPER_GROUP": "/etc/group"}
        daemon = subprocess.Popen(["dropbear", "-F", "-s", "-j", "-k", "-p", f"127.0.0.1:{port}", "-p", f"127.0.0.2:{port}",
                                   "-r", self.folder / "host", "-P", self.folder / "pid"], stderr=subprocess.DEVNULL, env=env)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        self.shell = (f"ssh -p {port} -i {self.folder}/user -o StrictHostKeyChecking=no -o BatchMode=yes "
                      "-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR")
        self.assertTrue(wait_until(lambda: subprocess.run([*self.shell.split(), "127.0.0.2", "true"], check=False,
                                                          timeout=SECONDS).returncode == 0))

    def test_two_hosts(self):
        code, output, errors = self.run_job("--rsh", self.shell, "--host", "root@127.0.0.1:2,127.0.0.2:3", tool(PROBE),
                                            "exchange", 3)
        self.assertEqual((code, output.count(" of 5 node '' spread ibcoll_run: ok\n"), errors), (0, 5, ""))

    def test_nobody_is_left_after_the_launcher_was_killed(self):
        program = "sleep 1000 & echo $$ $!; wait"
        with self.started("--rsh", self.shell, "--host", "127.0.0.2:2", "sh", "-c", program) as job:
            pids = [int(pid) for line in self.read_lines(job, 2) for pid in line.split()]
            job.kill()
            job.wait(SOON)
            self.assert_all_gone(pids)


class Environment(JobTest):
    def test_export(self):
        code, output, _ = self.run_job("-n", 2, "-x", "A=1=2", "-x", "B", "-x", "C=", "sh", "-c",
                                       'echo "$A|$B|${C-unset}"', env={"B": "from here"})
        self.assertEqual((code, output), (0, "1=2|from here|\n" * 2))

    def test_emulated_nodes(self):
        code, output, _ = self.run_job("-n", 5, "--nodes", 2, "sh", "-c", "echo $IBCOLL_RUN_RANK $IBCOLL_RUN_NODE "
                                       "$IBCOLL_RUN_SIZE $IBCOLL_RUN_LOCAL $IBCOLL_RUN_LOCAL_RANKS")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(output.splitlines()), [f"{rank} emulated-{rank // 3} 5 1 5" for rank in range(5)])

    def test_a_job_within_a_job(self):
        inner = f"{tool('ibcoll_run')} -n 2 sh -c 'echo $IBCOLL_RUN_RANK-$IBCOLL_RUN_SIZE-$IBCOLL_RUN_NODE-'"
        code, output, _ = self.run_job("-n", 3, "--nodes", 3, "sh", "-c", inner)
        self.assertEqual((code, sorted(output.splitlines())), (0, ["0-2--"] * 3 + ["1-2--"] * 3))

    def test_binding(self):
        show = "import os; print(sorted(os.sched_getaffinity(0)))"
        mine = sorted(os.sched_getaffinity(0))
        _, output, _ = self.run_job("-n", len(mine) + 1, "python3", "-c", show)
        self.assertEqual(set(output.splitlines()), {str(mine)}, "more ranks than cores: free")
        _, output, _ = self.run_job("-n", len(mine), "--no-bind", "python3", "-c", show)
        self.assertEqual(set(output.splitlines()), {str(mine)})
        _, output, _ = self.run_job("python3", "-c", show)  # one rank for each core
        sets = [set(map(int, re.findall(r"\d+", line))) for line in output.splitlines()]
        self.assertEqual(sorted(cpu for cpus in sets for cpu in cpus), mine, "every core has one rank")
        cores = output.splitlines()
        _, output, _ = self.run_job("-n", 4 * len(cores), "--nodes", 2 * len(cores), "python3", "-c", show)
        self.assertEqual(sorted(output.splitlines()), sorted(cores * 4), "two nodes have a core together")
        if len(cores) > 1:
            _, output, _ = self.run_job("-n", 4 * len(cores), "--nodes", 2 * len(cores) + 1, "python3", "-c", show)
            self.assertEqual(set(output.splitlines()), {str(mine)}, "nodes that the cores cannot be shared out to: free")

    def test_binding_within_what_is_allowed(self):
        one = max(os.sched_getaffinity(0))
        code, output, _ = self.run_job("-n", 1, "python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))",
                                       preexec_fn=lambda: os.sched_setaffinity(0, {one}))
        self.assertEqual((code, output), (0, f"[{one}]\n"))
