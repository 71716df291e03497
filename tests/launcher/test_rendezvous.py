# SPDX-License-Identifier: BSD-3-Clause
"""The exchange between the ranks, the job secret, and strangers at the rendezvous port."""

import contextlib
import fcntl
import hashlib
import hmac
import os
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time

from job import BIN, LITTLE_QUARANTINE, SECONDS, SOON, JobTest, longer_and_longer, tool, wait_until

PROBE = "ibcoll_launcher_probe"
# Shows where the rendezvous is and the secret, then waits for a line and becomes the probe.
HOLD = """
import os, sys, time
secret = os.pread(int(os.environ["IBCOLL_RUN_SECRET_FD"]), 32, 0).hex()
print(os.environ["IBCOLL_RUN_ADDRESS"], secret, flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.02)
os.execv(sys.argv[2], ["probe", "exchange", "3"])
"""
ADMITTED = struct.pack("<II", 6, 0)

# Gives what the probe gives as rank 1 of 3, and ends without waiting for the others.
GIVE = """
import hashlib, hmac, os, socket, struct
secret = os.pread(int(os.environ["IBCOLL_RUN_SECRET_FD"]), 32, 0)
host, _, port = os.environ["IBCOLL_RUN_ADDRESS"].rpartition(":")
connection = socket.create_connection((host, int(port)))
nonce = connection.recv(32, socket.MSG_WAITALL)
body = os.urandom(32) + struct.pack("<IIQ", 1, 3, 1)
tag = hmac.new(secret, b"ibcoll rendezvous 3 client" + nonce + body, hashlib.sha256).digest()
connection.sendall(body + tag + struct.pack("<II", 1, 64) + bytes(31 + i for i in range(64)))
connection.recv(40, socket.MSG_WAITALL)
"""

# Opens connections as fast as it can, and keeps as many as it may.
FLOOD = """
import collections, resource, socket, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
most = min(hard, 4000) - 50
resource.setrlimit(resource.RLIMIT_NOFILE, (most + 50, hard))
host, _, port = sys.argv[1].rpartition(":")
kept = collections.deque()
while True:
    connection = socket.socket()
    connection.setblocking(False)
    connection.connect_ex((host, int(port)))
    kept.append(connection)
    if len(kept) > most: kept.popleft().close()
"""


class Exchanges(JobTest):
    def probe(self, ranks, *words, **options):
        return self.run_job("-n", ranks, tool(PROBE), *words, **options)

    def test_of_many_sizes_and_rounds(self):
        for ranks, rounds, size in ((1, 3, 8), (2, 50, 1), (5, 3, 0), (3, 2, 1 << 20), (16, 20, 1000)):
            code, output, errors = self.probe(ranks, "exchange", rounds, size)
            self.assertEqual((code, errors), (0, ""))
            good = re.findall(rf"^rank \d+ of {ranks} node '' local ibcoll_run: ok$", output, re.M)
            self.assertEqual(len(good), ranks)

    def test_more_than_one_bootstrap_in_a_process(self):
        self.assertEqual(self.probe(3, "again"), (0, "ok\n" * 3, ""))

    def test_two_programs_in_one_rank(self):
        code, output, errors = self.run_job("-n", 3, "sh", "-c", f"{tool(PROBE)} && {tool(PROBE)}")
        self.assertEqual((code, output.count(": ok\n"), errors), (0, 6, ""))

    def test_behind_a_wrapper(self):
        code, output, errors = self.run_job("-n", 2, "sh", "-c", f"exec env nice {tool(PROBE)}; exit 9")
        self.assertEqual((code, output.count(": ok\n"), errors), (0, 2, ""))

    def test_without_a_launcher_there_is_one_rank(self):
        done = subprocess.run([tool(PROBE)], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(done.stdout, "rank 0 of 1 node '' local single: ok\n")

    def test_a_rank_that_ends_early_is_named_at_once(self):
        begin = time.monotonic()
        code, _, errors = self.probe(4, "leave", 2)
        self.assertEqual(code, 3)
        self.assertLess(time.monotonic() - begin, SOON)
        self.assertRegex(errors, r"rank [013] on host \S+: rank 2 on host \S+ \(pid \d+\) exited with status 0 and took no part")

    def test_a_rank_that_has_ended_before_the_others_come(self):
        gate = self.folder / "gate"
        program = (f"case $IBCOLL_RUN_RANK in 1) echo $$ >{gate}.new; exec mv {gate}.new {gate};; "
                   f"*) while ! [ -e {gate} ]; do sleep 0.02; done; read pid <{gate}; "
                   f"while grep -q ' [RSD] ' /proc/$pid/stat; do sleep 0.02; done 2>/dev/null; exec {tool(PROBE)};; esac")
        code, _, errors = self.run_job("-n", 3, "sh", "-c", program)
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"rank [02] on host \S+: rank 1 on host \S+ \(pid \d+\) exited with status 0 and took no part")

    def test_a_rank_that_ends_once_it_has_given(self):
        """The others get a report of its end while they wait in that exchange, and complete it all the same."""
        gate = self.folder / "gate"
        program = (f"case $IBCOLL_RUN_RANK in 0) exec {tool(PROBE)};; "
                   f"1) echo $$ >{gate}.new; mv {gate}.new {gate}; exec {sys.executable} -c '{GIVE}';; "
                   f"2) while ! [ -e {gate} ]; do sleep 0.02; done; read pid <{gate}; "
                   f"while grep -q ' [RSD] ' /proc/$pid/stat; do sleep 0.02; done 2>/dev/null; exec {tool(PROBE)};; esac")
        code, output, errors = self.run_job("-n", 3, "sh", "-c", program)
        self.assertEqual((code, output.count(": ok\n"), errors), (0, 2, ""))

    def test_who_parts_is_not_reported_and_who_becomes_another_program_is(self):
        code, output, _ = self.probe(3, "goodbye")
        self.assertEqual(code, 7)
        self.assertRegex(output, r"\Arank 2: its process on host \S+ closed its connection .* \(exec\), .*\n\Z")

    def test_who_has_parted_in_order_is_not_ended_for_an_accusation(self):
        for _ in range(5):  # until rank 1 parts in time on a busy machine
            code, output, errors = self.run_job("-n", 2, "--keep-going", tool(PROBE), "part")
            if output:
                break
        self.assertEqual((code, output, errors), (0, "parted\n", ""))

    def test_long_verdicts_in_an_exchange(self):
        for size in (1, 60_000):
            self.assertEqual(self.probe(3, "verdict", size), (0, "ok\n" * 3, ""))

    def test_a_late_rank_learns_the_first_death_and_not_those_that_it_caused(self):
        ready, victim = self.folder / "ready", self.folder / "victim"
        program = (f"case $IBCOLL_RUN_RANK in 0) echo $$ >{victim}.new; mv {victim}.new {victim}; exec sleep 1000;; "
                   f"1) while ! [ -e {ready} ]; do sleep 0.02; done; kill -9 $$;; "
                   f"2) trap '' TERM; while ! [ -e {victim} ]; do sleep 0.02; done; read pid <{victim}; touch {ready}; "
                   f"while grep -q ' [RSD] ' /proc/$pid/stat; do sleep 0.02; done 2>/dev/null; exec {tool(PROBE)};; esac")
        for _ in range(20):  # until rank 2 says something before the launcher kills it, two seconds after the first death
            ready.unlink(missing_ok=True)
            victim.unlink(missing_ok=True)
            code, _, errors = self.run_job("-n", 3, "sh", "-c", program)
            self.assertEqual(code, 137)
            if "rank 2 on host" in errors:
                break
        self.assertRegex(errors, r"error .*: rank 2 on host \S+: rank 1 on host \S+ \(pid \d+\) was killed by signal 9 \(Killed\); ending")

    def test_a_rank_that_dies_early(self):
        begin = time.monotonic()
        code, _, errors = self.probe(4, "die", 1)
        self.assertEqual(code, 137)
        self.assertLess(time.monotonic() - begin, SOON)
        self.assertRegex(errors, r"ibcoll_run: rank 1 on host \S+ \(pid \d+\) was killed by signal 9")

    def test_lengths_that_differ(self):
        code, _, errors = self.probe(3, "uneven")
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"rank 1 gave 65 bytes .* gave 64|rank [02] gave 64 bytes .* rank 1 gave 65")
        self.assertRegex(errors, r"the next exchange: .* is closed after an earlier failure")

    def test_a_rank_behind_the_last_is_an_error(self):
        code, _, errors = self.run_job("-n", 2, "sh", "-c", f"IBCOLL_RUN_RANK=2 exec {tool(PROBE)}")
        self.assertEqual(code, 3)
        self.assertIn("IBCOLL_RUN_RANK='2': expected a number from 0 to 1;", errors)

    def test_a_late_rank_is_named(self):
        for seconds in longer_and_longer(0.5):
            code, _, errors = self.probe(3, "late", 1, 1000, env={"IBCOLL_TIMEOUT": str(seconds)})
            self.assertEqual(code, 3)
            if "rank 1 has not come" in errors:  # the others have, in that time
                break
        self.assertRegex(errors, rf"rank [02] on host \S+: the ranks of the job did not all come within {seconds:g} s "
                         r"\(IBCOLL_TIMEOUT\): rank 1 has not come")

    def test_quit_names_who_has_not_come(self):
        gate = self.folder / "gate"
        program = f"echo; while [ $IBCOLL_RUN_RANK = 1 ] && [ ! -e {gate} ]; do sleep 0.02; done; exec {tool(PROBE)}"
        said = b""
        with self.started("-n", 3, "sh", "-c", program) as job:
            self.read_lines(job, 3)
            end = time.monotonic() + SOON
            while b"rank 1 has" not in said and time.monotonic() < end:  # when the others wait cannot be seen from here
                job.send_signal(signal.SIGQUIT)
                time.sleep(0.1)
                if select.select([job.stderr], [], [], 0)[0]:
                    said += os.read(job.stderr.fileno(), 4096)
            gate.touch()
            self.assertEqual(job.wait(SOON), 0)
            said += job.stderr.read()
        self.assertRegex(said.decode(), r"\A(ibcoll_run: ranks wait in the creation or the end of a context: "
                                        r"ranks? [\d-]+ ha(s|ve) not come\n)+\Z")
        self.assertIn(b": rank 1 has not come\n", said)

    def test_a_damaged_environment(self):
        for variable, value in (("RANK", "x"), ("RANK", "7"), ("SIZE", "0"), ("ADDRESS", "nowhere"), ("ADDRESS", "127.0.0.1:1")):
            code, _, errors = self.run_job("-n", 2, "env", f"IBCOLL_RUN_{variable}={value}", tool(PROBE))
            self.assertEqual(code, 3, variable)
            self.assertIn("127.0.0.1:1" if value == "127.0.0.1:1" else f"IBCOLL_RUN_{variable}", errors)
            if variable not in ("RANK", "SIZE"):
                self.assertRegex(errors, rf"error -\d+: rank [01] on host {re.escape(socket.gethostname())}: ")


class Secret(JobTest):
    def processes(self, pattern):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if pattern in file.read():
                        found.append(int(pid))
            except OSError:
                continue
        return found

    def test_is_in_no_command_line_and_no_environment(self):
        gate = self.folder / "gate"
        with self.started("-n", 2, "python3", "-c", HOLD, gate, tool(PROBE)) as job:
            lines = self.read_lines(job, 2)
            secret = bytes.fromhex(lines[0].split()[1])
            self.assertEqual(lines[0], lines[1])
            self.assertGreater(len(set(secret)), 8)
            pids = [job.pid, *self.processes(str(gate).encode())]
            self.assertGreaterEqual(len(pids), 3)
            for pid in pids:
                for name in ("cmdline", "environ"):
                    with open(f"/proc/{pid}/{name}", "rb") as file:
                        content = file.read()
                    self.assertNotIn(secret, content)
                    self.assertNotIn(secret.hex().encode(), content.lower())
            gate.touch()
            self.assertEqual(job.wait(SOON), 0)

    def test_differs_from_job_to_job(self):
        program = "import os; print(os.pread(int(os.environ['IBCOLL_RUN_SECRET_FD']), 32, 0).hex())"
        seen = {self.run_job("-n", 1, "python3", "-c", program)[1] for _ in range(3)}
        self.assertEqual(len(seen), 3)
        self.assertEqual({len(text) for text in seen}, {65})

    def test_cannot_be_changed_by_a_rank(self):
        program = "import os; os.pwrite(int(os.environ['IBCOLL_RUN_SECRET_FD']), b'x' * 32, 0)"
        self.assertIn("Operation not permitted", self.run_job("-n", 1, "python3", "-c", program)[2])

    def test_what_a_rank_starts_is_no_rank(self):
        code, output, errors = self.run_job("-n", 2, tool(PROBE), "child")
        self.assertEqual((code, output), (0, "children 3 3\n" * 2))
        for rank in (0, 1):
            said = rf"rank {rank} on host \S+: another process is rank {rank} and connected to ibcoll_run"
            self.assertEqual(len(re.findall(said, errors)), 2, errors)

    def test_a_second_copy_of_the_library_in_a_rank_is_named(self):
        copy = shutil.copy(BIN.parent / "lib/libibcoll.so", self.folder / "libcopied.so")
        code, output, errors = self.run_job("-n", 1, tool("ibcoll_launcher_calls"), "copy", copy,
                                            env={"ASAN_OPTIONS": "detect_odr_violation=0"})
        self.assertRegex(output, r"^rank 0 on host \S+: another copy of libibcoll in this process \(pid \d+\) is connected")
        self.assertEqual((code, errors), (0, ""))

    def test_behind_wrappers_that_close_descriptors(self):
        program = f"import subprocess, sys; sys.exit(subprocess.call(['{tool(PROBE)}', 'exchange', '2']))"
        code, output, errors = self.run_job("-n", 3, "python3", "-c", program)
        self.assertEqual((code, output.count(": ok\n"), errors), (0, 3, ""))

    def secret_folders(self, parent):
        return [path for path in parent.iterdir() if path.name.startswith("ibcoll_run.")]

    def test_is_in_a_file_for_this_user_alone(self):
        for variable in ("XDG_RUNTIME_DIR", "TMPDIR"):
            parent = self.folder / variable
            parent.mkdir()
            env = {name: value for name, value in os.environ.items() if name not in ("XDG_RUNTIME_DIR", "TMPDIR")}
            show = "import os; print(os.environ['IBCOLL_RUN_SECRET_FILE']); input()"
            with self.started("-n", 1, "python3", "-c", show, env={**env, variable: str(parent)}, stdin=subprocess.PIPE) as job:
                path = self.read_lines(job, 1)[0]
                folder, = self.secret_folders(parent)
                self.assertEqual(path, str(folder / "secret"))
                self.assertEqual((stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(os.stat(path).st_mode)), (0o700, 0o600))
                self.assertEqual(os.stat(path).st_size, 32)
                job.stdin.write(b"\n")
                job.stdin.flush()
                self.assertEqual(job.wait(SOON), 0)
            self.assertEqual(self.secret_folders(parent), [])

    def test_does_not_outlive_a_launcher_that_was_killed(self):
        env = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder)}
        with self.started("-n", 2, "sh", "-c", "echo; exec sleep 1000", env=env) as job:
            self.read_lines(job, 2)
            self.assertEqual(len(self.secret_folders(self.folder)), 1)
            job.kill()
            job.wait(SOON)
            self.assertTrue(wait_until(lambda: not self.secret_folders(self.folder)))

    def test_what_jobs_that_were_killed_have_left_is_removed(self):
        """By the next job, but for the folders of jobs that live or have just begun, and what only looks like one."""
        long_ago = time.time() - 1000
        names = ("left", "empty", "living", "young", "full")
        folders = {name: self.folder / f"ibcoll_run.{name:x<6}" for name in names}
        for name, folder in folders.items():
            folder.mkdir(0o700)
            if name != "empty":
                (folder / "secret").write_bytes(bytes(32))
        (folders["full"] / "of the user").write_text("")
        (self.folder / "ibcoll_run.my notes").mkdir()
        for folder in self.folder.iterdir():
            if folder != folders["young"]:
                os.utime(folder, (long_ago, long_ago))
        with open(folders["living"] / "secret", encoding="ascii") as secret:
            fcntl.flock(secret, fcntl.LOCK_EX)
            code, _, errors = self.run_job("-n", 1, "true", env={**os.environ, "XDG_RUNTIME_DIR": str(self.folder)})
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual({path.name for path in self.folder.iterdir()},
                         {folders[name].name for name in ("living", "young", "full")} | {"ibcoll_run.my notes"})

    def test_files_that_others_could_have_written_are_refused(self):
        good, public, link = self.folder / "good", self.folder / "public", self.folder / "link"
        for file, mode in ((good, 0o640), (public, 0o604)):
            file.write_bytes(bytes(32))
            file.chmod(mode)
        link.symlink_to(good)
        alone = "not a file that this user alone can read"
        for path, about in ((good, alone), (public, alone), (link, "Too many levels of symbolic links"),
                            (self.folder, "not a file"), (self.folder / "none", "No such file"), ("", "no file, as neither")):
            code, _, errors = self.run_job("-n", 1, "env", "IBCOLL_RUN_SECRET_FD=1", f"IBCOLL_RUN_SECRET_FILE={path}", tool(PROBE))
            self.assertEqual(code, 3)
            self.assertIn(f"IBCOLL_RUN_SECRET_FILE={path}: {about}", errors)
        good.chmod(0o600)
        code, _, errors = self.run_job("-n", 1, "env", "IBCOLL_RUN_SECRET_FD=1", f"IBCOLL_RUN_SECRET_FILE={good}", tool(PROBE),
                                       env={"IBCOLL_TIMEOUT": "0.5"})
        self.assertIn("closed the connection", errors, "it is read, and is not the secret")

    def test_nothing_but_the_secret_is_inherited(self):
        program = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
        with self.started("-n", 2, "python3", "-c", program) as job:
            # The directory itself is one of those listed, and is the highest of the low ones or the last of all.
            for line in job.stdout.read().decode().splitlines():
                self.assertLessEqual(set(eval(line)), {0, 1, 2, 3, 64})


class Strangers(JobTest):
    def setUp(self):
        super().setUp()
        self.gate = self.folder / "gate"

    def job(self, ranks=3, **options):
        return self.started("-n", ranks, "python3", "-c", HOLD, self.gate, tool(PROBE), **options)

    def connect(self, address):
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host, int(port)), timeout=SOON)
        self.addCleanup(connection.close)
        return connection

    def finish(self, job):
        self.gate.touch()
        self.assertEqual(job.wait(SOON), 0, job.stderr.read())
        self.assertEqual(job.stdout.read().decode().count(": ok\n"), 3)

    def receive(self, connection, count):
        received = b""
        while len(received) < count:
            chunk = connection.recv(count - len(received))
            if not chunk:
                break
            received += chunk
        return received

    def claim(self, connection, secret, rank, size, process=1):
        """Proves to be a rank with that secret; the server's answer, empty when it hung up."""
        nonce = self.receive(connection, 32)
        mine = os.urandom(32)
        body = mine + struct.pack("<IIQ", rank, size, process)
        label = b"ibcoll rendezvous 3 client"
        connection.sendall(body + hmac.new(secret, label + nonce + body, hashlib.sha256).digest())
        answer = self.receive(connection, 32)
        if answer:
            label = b"ibcoll rendezvous 3 server"
            self.assertEqual(answer, hmac.new(secret, label + nonce + body, hashlib.sha256).digest())
        return answer

    def test_listens_on_loopback_only(self):
        with self.job() as job:
            self.read_lines(job, 3)
            inodes = {os.readlink(f"/proc/{job.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{job.pid}/fd")}
            listening = []
            for table in ("tcp", "tcp6"):
                with open(f"/proc/{job.pid}/net/{table}", encoding="ascii") as file:
                    rows = [line.split() for line in file.readlines()[1:]]
                listening += [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]
            self.assertEqual([entry.split(":")[0] for entry in listening], ["0100007F"])
            self.finish(job)

    def test_garbage(self):
        with self.job() as job:
            address = self.read_lines(job, 3)[0].split()[0]
            for garbage in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 80, b"\xff" * 100_000, os.urandom(79)):
                connection = self.connect(address)
                try:
                    connection.sendall(garbage)
                    if len(garbage) >= 80:
                        self.receive(connection, 32)
                        self.assertEqual(self.receive(connection, 1), b"")
                except ConnectionError:
                    pass  # hung up while we were sending: as well
            self.finish(job)

    def test_many_silent_connections(self):
        with self.job() as job:
            address = self.read_lines(job, 3)[0].split()[0]
            connections = [self.connect(address) for _ in range(700)]
            self.assertEqual(len(connections), 700)
            self.finish(job)

    def test_a_flood_of_connections_stops_no_start(self):
        with self.job() as job, contextlib.ExitStack() as floods:
            address = self.read_lines(job, 3)[0].split()[0]
            for _ in range(2):
                flood = floods.enter_context(subprocess.Popen([sys.executable, "-c", FLOOD, address]))
                floods.callback(flood.kill)
            time.sleep(1)
            self.finish(job)

    def test_another_process_does_not_take_the_place_of_a_rank(self):
        with self.job() as job:
            address, secret = self.read_lines(job, 3)[0].split()
            secret = bytes.fromhex(secret)
            first = self.connect(address)
            self.claim(first, secret, 0, 3, process=1)
            self.assertEqual(self.receive(first, 8), ADMITTED)
            again = self.connect(address)
            self.claim(again, secret, 0, 3, process=1)
            self.assertEqual(self.receive(again, 8), ADMITTED, "one process may have several contexts")
            second = self.connect(address)
            self.claim(second, secret, 0, 3, process=2)
            kind, length = struct.unpack("<II", self.receive(second, 8))
            self.assertEqual(kind, 3)
            self.assertIn(b"another process is rank 0", self.receive(second, length))
            for other in (1, 2):
                connection = self.connect(address)
                self.claim(connection, secret, other, 3, process=3)
                self.assertEqual(self.receive(connection, 8), ADMITTED)
                connection.sendall(struct.pack("<II", 1, 1) + b"o")
            first.sendall(struct.pack("<II", 1, 1) + b"f")
            self.assertEqual(self.receive(first, 11), struct.pack("<II", 2, 3) + b"foo", "it takes part as before")
            third = self.connect(address)
            nonce_read = threading.Timer(0.3, lambda: (first.close(), again.close()))
            nonce_read.start()
            self.claim(third, secret, 0, 3, process=4)
            self.assertEqual(self.receive(third, 8), ADMITTED, "the one before is on its way out")

    def test_a_rank_far_ahead_of_the_others_is_refused(self):
        with self.job() as job:
            address, secret = self.read_lines(job, 3)[0].split()
            for i in range(65):
                connection = self.connect(address)
                self.claim(connection, bytes.fromhex(secret), 1, 3)
                kind, length = struct.unpack("<II", self.receive(connection, 8))
                self.assertEqual(kind, 6 if i < 64 else 3)
            self.assertIn(b"rank 1 is 64 contexts ahead of rank 0", self.receive(connection, length))

    def test_a_rank_that_reads_nothing_costs_no_memory(self):
        questions = struct.pack("<II", 4, 0) * 100_000
        blobs = (struct.pack("<II", 1, 0) + struct.pack("<II", 1, 1) + b"x") * 50_000  # lengths that differ: failures
        for flood in (questions, blobs):
            with self.job(env=LITTLE_QUARANTINE) as job:
                address, secret = self.read_lines(job, 3)[0].split()
                connection = self.connect(address)
                self.claim(connection, bytes.fromhex(secret), 1, 3)
                before = self.peak_memory(job)
                with self.assertRaises(ConnectionError):  # the launcher hangs up
                    for _ in range(20):
                        connection.sendall(flood)
                self.assertLess(self.peak_memory(job) - before, 16)

    def test_silence_has_a_deadline(self):
        with self.job(env={**os.environ, "IBCOLL_RUN_TIMEOUTS": "1.5"}) as job:
            address = self.read_lines(job, 3)[0].split()[0]
            begin = time.monotonic()
            connection = self.connect(address)
            connection.settimeout(SOON)
            self.assertEqual(len(self.receive(connection, 33)), 32)
            self.assertGreater(time.monotonic() - begin, 1.2)
            self.finish(job)

    def test_only_who_knows_the_secret_is_a_rank(self):
        with self.job() as job:
            address, secret = self.read_lines(job, 3)[0].split()
            secret = bytes.fromhex(secret)
            self.assertEqual(self.claim(self.connect(address), bytes(32), 0, 3), b"")
            self.assertEqual(self.claim(self.connect(address), secret, 3, 3), b"")
            self.assertEqual(self.claim(self.connect(address), secret, 0, 4), b"")
            self.finish(job)

    def test_a_rank_that_sends_nonsense_fails_the_exchange_and_not_the_launcher(self):
        for frame in (struct.pack("<II", 1, 1 << 30), struct.pack("<II", 77, 0), struct.pack("<II", 2, 4) + b"text"):
            with self.subTest(frame=frame), self.job() as job:
                address, secret = self.read_lines(job, 3)[0].split()
                connection = self.connect(address)
                self.assertNotEqual(self.claim(connection, bytes.fromhex(secret), 0, 3), b"")
                self.assertEqual(self.receive(connection, 8), ADMITTED)
                connection.sendall(frame)
                self.assertEqual(self.receive(connection, 1), b"")
                # It was rank 0 in the first series.
                self.gate.touch()
                self.assertEqual(job.wait(SOON), 3)
                self.assertIn(b"rank 0 closed its connection to ibcoll_run", job.stderr.read())
                self.gate.unlink()

    def test_a_launcher_that_says_nothing_is_waited_for_as_long_as_the_ranks_are(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        begin = time.monotonic()
        code, _, errors = self.run_job("-n", 1, "env", f"IBCOLL_RUN_ADDRESS=127.0.0.1:{server.getsockname()[1]}", tool(PROBE),
                                       env={"IBCOLL_TIMEOUT": "0.5"})
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"rank 0 on host \S+: ibcoll_run at 127\.0\.0\.1:\d+ does not answer")
        self.assertGreater(time.monotonic() - begin, 0.4)
        self.assertLess(time.monotonic() - begin, SOON)

    def test_a_rank_that_is_dropped_comes_again(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        server.settimeout(SOON)
        address = f"IBCOLL_RUN_ADDRESS=127.0.0.1:{server.getsockname()[1]}"
        with self.started("-n", 1, "env", address, tool(PROBE)):
            for _ in range(5):
                server.accept()[0].close()
            connection, _ = server.accept()
            self.addCleanup(connection.close)
            connection.sendall(bytes(32))
            self.assertEqual(len(self.receive(connection, 80)), 80)

    def test_a_false_launcher_is_found_out(self):
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        address = f"IBCOLL_RUN_ADDRESS=127.0.0.1:{server.getsockname()[1]}"
        with self.started("-n", 1, "env", address, tool(PROBE)) as job:
            server.settimeout(SOON)
            connection, _ = server.accept()
            self.addCleanup(connection.close)
            connection.sendall(bytes(32))
            self.assertEqual(len(self.receive(connection, 80)), 80)
            connection.sendall(bytes(32))
            self.assertTrue(wait_until(lambda: job.poll() is not None))
            self.assertRegex(job.stderr.read().decode(),
                             rf"rank 0 on host \S+: the program that listens at {address[19:]} does not know the secret of this job")
