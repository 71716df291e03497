# SPDX-License-Identifier: BSD-3-Clause
"""What users of other launchers type, and what they expect of a terminal."""

import contextlib
import fcntl
import os
import re
import select
import signal
import socket
import struct
import subprocess
import termios

from job import FAKE_SHELL, HOSTS, SECONDS, SOON, JobTest, RemoteJobTest, state, tool, wait_until

HOST = socket.gethostname()
# Of hwloc: one core, with processors 12 and 13.
MEMORY = 'nodeset="0x1" complete_nodeset="0x1"'
BOTH = f'cpuset="0x3000" complete_cpuset="0x3000" {MEMORY}'
OTHER_MACHINE = f"""<?xml version="1.0"?>
<topology version="2.0">
 <object type="Machine" os_index="0" {BOTH} allowed_cpuset="0x3000" allowed_nodeset="0x1" gp_index="1">
  <object type="NUMANode" os_index="0" {BOTH} gp_index="2" local_memory="1073741824"/>
  <object type="Core" os_index="0" {BOTH} gp_index="3">
   <object type="PU" os_index="12" cpuset="0x1000" complete_cpuset="0x1000" {MEMORY} gp_index="4"/>
   <object type="PU" os_index="13" cpuset="0x2000" complete_cpuset="0x2000" {MEMORY} gp_index="5"/>
  </object>
 </object>
</topology>
"""


class Typed(JobTest):
    def test_several_programs(self):
        (self.folder / "sub").mkdir()
        show = "echo $IBCOLL_RUN_RANK of $IBCOLL_RUN_SIZE ${A-unset} $(pwd)"
        code, output, errors = self.run_job("-np", 1, "-x", "A=1", "sh", "-c", show, ":", "-n", 2, "-wdir", "sub", "sh",
                                            "-c", show, cwd=self.folder)
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(sorted(output.splitlines()), [f"0 of 3 1 {self.folder}", f"1 of 3 unset {self.folder}/sub",
                                                       f"2 of 3 unset {self.folder}/sub"])
        code, output, errors = self.run_job("-n", 2, tool("ibcoll_launcher_probe"), ":", "-n", 1, "nice",
                                            tool("ibcoll_launcher_probe"))
        self.assertEqual((code, output.count(" of 3 node '' local ibcoll_run: ok\n"), errors), (0, 3, ""))

    def test_the_program_that_is_not_there_is_the_one_named(self):
        code, _, errors = self.run_job("-n", 1, "true", ":", "-n", 1, "no_such_program")
        self.assertEqual(code, 127)
        self.assertIn("no_such_program: not found in PATH", errors)

    def test_a_working_directory(self):
        self.script("here.sh", "echo $0 $PWD\n")
        code, output, _ = self.run_job("-n", 1, "-wdir", self.folder, "./here.sh")
        self.assertEqual((code, output), (0, f"{self.folder}/./here.sh {self.folder}\n"))
        code, _, errors = self.run_job("-n", 2, "-wdir", self.folder / "none", "true")
        self.assertEqual(code, 1)
        self.assertRegex(errors, rf"\Aibcoll_run: host {HOST}: rank [01]: cannot enter the working directory "
                                 rf"{self.folder}/none: No such file or directory\n\Z")

    def test_ranks_dealt_out_to_nodes(self):
        code, output, _ = self.run_job("-n", 5, "--nodes", 2, "--map-by", "node", "sh", "-c",
                                       "echo $IBCOLL_RUN_RANK $IBCOLL_RUN_NODE")
        self.assertEqual((code, sorted(output.splitlines())), (0, [f"{rank} emulated-{rank % 2}" for rank in range(5)]))
        # The library does not expect the ranks of a node to be consecutive.
        code, output, errors = self.run_job("-n", 5, "--nodes", 2, "--map-by", "node", tool("ibcoll_launcher_calls"),
                                            "sum")
        self.assertEqual(code, 0, errors + output)

    def test_so_many_on_each(self):
        for words, expected in ((("-N", 3), 3), (("-ppn", 2, "--nodes", 2), 4), (("-N", 2, "-n", 1), 1),
                                (("-H", "localhost,localhost"), 2), (("-oversubscribe", "-n", 3, "-H", "localhost:2"), 3)):
            self.assertEqual(self.run_job(*words, "echo", "x"), (0, "x\n" * expected, ""), words)
        for words, about in ((("-N", 3, "-n", 4), "-n 4: 1 hosts with 3 ranks each"),
                             (("-N", 2, "--nodes", 2, "-n", 3), "are 4 ranks"),
                             (("-n", 3, "-H", "localhost:2"), "--oversubscribe")):
            code, _, errors = self.run_job(*words, "true")
            self.assertEqual(code, 2, words)
            self.assertIn(about, errors)

    def test_the_hosts_of_an_allocation(self):
        nodefile = self.folder / "nodes"
        nodefile.write_text(f"{HOST}\n" * 3)
        for env, name in (({"SLURM_JOB_NODELIST": HOST, "SLURM_TASKS_PER_NODE": "3"}, r"Slurm allocation \(SLURM_JOB_NODELIST\)"),
                          ({"PBS_NODEFILE": str(nodefile)}, r"PBS allocation \(PBS_NODEFILE\)"),
                          ({"LSB_MCPU_HOSTS": f"{HOST} 3"}, r"LSF allocation \(LSB_MCPU_HOSTS\)")):
            code, output, errors = self.run_job("echo", "x", env=env)
            self.assertEqual((code, output), (0, "x\n" * 3), errors)
            self.assertRegex(errors, rf"\Aibcoll_run: hosts of the {name}: {HOST}:3\n\Z")
            for words in (("-H", "localhost:2"), ("--nodes", 2, "-n", 2)):
                self.assertEqual(self.run_job(*words, "echo", "x", env=env), (0, "x\n" * 2, ""), "what is named counts")

    def test_a_script_of_this_folder(self):
        self.script("here.sh", "true\n")
        (self.folder / "plain").write_text("text")
        for name, hint in (("here.sh", "did you mean ./here.sh?"), ("plain", "did you mean ./plain, which is not executable")):
            code, _, errors = self.run_job("-n", 1, name, cwd=self.folder)
            self.assertEqual(code, 127)
            self.assertIn(f"{name}: not found in PATH; {hint}", errors)
            self.assertNotIn(os.environ["PATH"], errors)

    def test_programs_for_other_machines(self):
        header = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00"
        for content, about in ((header + b"\xb7\x00" + bytes(100), "it is a program for the machine aarch64, and this one is "),
                               (header + b"\xf7\x03" + bytes(100), "it is a program for the machine number 1015 of the ELF"),
                               (b"\xcf\xfa\xed\xfe\0\0\0\0", "it is neither a program for Linux nor a script")):
            path = self.folder / "program"
            path.write_bytes(content)
            path.chmod(0o755)
            code, _, errors = self.run_job("-n", 1, path)
            self.assertEqual(code, 126, errors)
            self.assertIn(f"rank 0: {path}: cannot be executed: {about}", errors)


class Bindings(JobTest):
    SHOW = ("python3", "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
    ALL = sorted(os.sched_getaffinity(0))

    def cores(self):
        """The processors of each core, as --bind-to core hands them out."""
        return sorted(self.run_job("--bind-to", "core", *self.SHOW)[1].splitlines())

    def test_ranks_that_leave_cores_over_are_free(self):
        if len(self.cores()) < 2:
            self.skipTest("one core")
        self.assertEqual(self.run_job("-n", 1, *self.SHOW)[1], f"{self.ALL}\n")

    def test_what_is_asked_for(self):
        cores = self.cores()
        self.assertEqual(self.run_job("-n", 1, "--bind-to", "core", *self.SHOW)[1], cores[0] + "\n")
        self.assertEqual(self.run_job("--bind-to", "none", *self.SHOW)[1], f"{self.ALL}\n" * len(cores))
        code, output, _ = self.run_job("--cpus-per-rank", len(cores), *self.SHOW)
        self.assertEqual((code, output), (0, f"{self.ALL}\n"))
        code, output, _ = self.run_job("-n", 2, "--bind-to", "numa", *self.SHOW)
        self.assertEqual(code, 0)
        for line in output.splitlines():
            self.assertLessEqual(set(map(int, re.findall(r"\d+", line))), set(self.ALL))

    def test_too_few_cores(self):
        count = len(self.cores())
        code, _, errors = self.run_job("-n", count + 1, "--bind-to", "core", "true")
        self.assertEqual(code, 2)
        self.assertIn(f"{count + 1} ranks with 1 cores each need {count + 1} cores, and there are {count}", errors)

    def test_report(self):
        count = len(self.cores())
        _, _, errors = self.run_job("--report-bindings", "true")
        self.assertEqual(len(re.findall(rf"^ibcoll_run: host {HOST}: rank \d+ bound to core \d+ \(processors [\d,-]+\)$",
                                        errors, re.M)), count)
        if count > 1:
            _, _, errors = self.run_job("-n", 1, "--cpus-per-rank", count, "--report-bindings", "true")
            self.assertIn(f"rank 0 bound to cores 0-{count - 1} (", errors)
        _, _, errors = self.run_job("-n", 1, "--report-bindings", "--bind-to", "none", "true")
        self.assertRegex(errors, r"rank 0 not bound \(processors [\d,-]+\)\n\Z")

    def test_a_topology_of_another_machine_is_ignored(self):
        other = self.folder / "other.xml"
        other.write_text(OTHER_MACHINE)
        for variable, value in (("HWLOC_XMLFILE", other), ("HWLOC_SYNTHETIC", "core:64 pu:1"),
                                ("HWLOC_COMPONENTS", "no_os,stop")):
            code, output, errors = self.run_job("-n", 1, "--bind-to", "core", "--report-bindings", "grep", "Cpus_allowed_list",
                                                "/proc/self/status", env={**os.environ, variable: str(value), "HWLOC_THISSYSTEM": "1"})
            self.assertEqual(code, 0, errors)
            bound = re.findall(r"rank 0 bound to core 0 \(processors ([\d,-]+)\)$", errors, re.M)
            self.assertEqual(bound, [output.split()[-1]], errors)
            self.assertEqual(errors.count(f"{variable} is ignored"), 1, errors)
        _, _, errors = self.run_job("-n", 1, "--report-bindings", "true", env={**os.environ, "HWLOC_COMPONENTS": "-gl,-opencl"})
        self.assertNotIn("HWLOC", errors)


class OtherHosts(RemoteJobTest):
    def run_remote(self, *words):
        return self.run_job("--rsh", self.shell, *HOSTS, *words)

    def test_in_turn_with_several_programs(self):
        show = ("sh", "-c", "echo $0 $IBCOLL_RUN_RANK $FAKE_HOST $(pwd)")
        code, output, errors = self.run_remote("--map-by", "node", "-n", 3, *show, "a", ":", "-n", 2, "-wdir", "/", *show, "b")
        here = os.getcwd()
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(sorted(output.splitlines()), [f"a 0 127.0.0.2 {here}", f"a 1 127.0.0.3 {here}", f"a 2 127.0.0.2 {here}",
                                                       "b 3 127.0.0.3 /", "b 4 127.0.0.3 /"])

    def test_bindings_and_terminals(self):
        code, output, errors = self.run_remote("--pty", "--report-bindings", "--bind-to", "none", "sh", "-c", "test -t 1 && echo x")
        self.assertEqual((code, output), (0, "x\n" * 5))
        self.assertEqual(len(re.findall(r"^ibcoll_run: host 127\.0\.0\.[23]: rank \d not bound", errors, re.M)), 5)


class Terminals(JobTest):
    # As C programs do: line by line to a terminal, into a buffer to anything else.
    ABORTS = ("env", "-u", "PYTHONUNBUFFERED", "python3", "-c", "import os\nfor i in range(3): print('line', i)\nos.abort()")

    def on_a_terminal(self, *words):
        leader, terminal = os.openpty()
        seen = b""
        with os.fdopen(leader, "rb", 0) as screen:
            with self.started(*words, stdout=terminal, stderr=subprocess.PIPE) as job:
                os.close(terminal)
                with contextlib.suppress(OSError):  # EIO: no process has the terminal open any more
                    while chunk := screen.read(65536):
                        seen += chunk
                job.wait(SOON)
                return job.returncode, seen.decode().replace("\r\n", "\n"), job.stderr.read().decode()

    def test_what_was_printed_before_an_abort_is_seen(self):
        code, output, _ = self.on_a_terminal("-n", 1, *self.ABORTS)
        self.assertEqual((code, output), (134, "line 0\nline 1\nline 2\n"))
        code, output, _ = self.on_a_terminal("-n", 1, "--no-pty", *self.ABORTS)
        self.assertEqual((code, output), (134, ""))
        code, output, _ = self.run_job("-n", 1, *self.ABORTS)
        self.assertEqual((code, output), (134, ""))
        code, output, _ = self.run_job("-n", 1, "--pty", *self.ABORTS)
        self.assertEqual((code, output), (134, "line 0\nline 1\nline 2\n"))

    def test_bytes_come_as_they_are(self):
        everything = "import os; os.write(1, bytes(range(256)) * 100)"
        with self.started("-n", 1, "--pty", "python3", "-c", everything) as job:
            output, _ = job.communicate(timeout=SOON)
        self.assertEqual(output, bytes(range(256)) * 100)

    def test_nothing_is_lost(self):
        code, output, _ = self.run_job("-n", 4, "--pty", "sh", "-c", "seq -f %0100g 20000; echo end")
        self.assertEqual((code, len(output), output.count("end\n")), (0, 4 * (101 * 20000 + 4), 4))

    def test_size(self):
        code, output, _ = self.run_job("-n", 1, "--pty", "stty", "-F", "/dev/stdout", "size")
        self.assertEqual((code, output), (0, "24 80\n"))

    def assert_a_resize_reaches(self, ranks, *options, stopped=False):
        """`stopped`: it happens while the job is stopped, and then no process gets a signal."""
        waits = ("import os, signal; awaited = [signal.SIGWINCH, signal.SIGCONT]; signal.pthread_sigmask(signal.SIG_BLOCK, awaited);"
                 "print('x', flush=True); signal.sigwait(awaited); print(*os.get_terminal_size(1))")
        leader, terminal = os.openpty()
        self.addCleanup(os.close, leader)
        words = []

        def seen(count):
            if select.select([leader], [], [], 0.02)[0]:
                words.append(os.read(leader, 1000).decode())
            return len("".join(words).split()) >= count

        with self.started(*options, "python3", "-c", waits, stdout=terminal, stderr=terminal) as job:
            self.assertTrue(wait_until(lambda: seen(ranks)), words)
            if stopped:
                job.send_signal(signal.SIGTSTP)
                self.assertTrue(wait_until(lambda: state(job.pid) == "T"))
            fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 11, 33, 0, 0))
            # As the kernel does where the job has a terminal of its own, or as the shell does.
            job.send_signal(signal.SIGCONT if stopped else signal.SIGWINCH)
            wait_until(lambda: seen(3 * ranks))
        os.close(terminal)
        self.assertEqual("".join(words).split(), ["x"] * ranks + ["33", "11"] * ranks)

    def test_a_resize_reaches_the_ranks(self):
        self.assert_a_resize_reaches(2, "-n", 2)
        self.assert_a_resize_reaches(2, "-n", 2, stopped=True)

    def test_a_resize_reaches_ranks_on_other_hosts(self):
        shell = self.script("shell", FAKE_SHELL)
        self.assert_a_resize_reaches(5, "--rsh", shell, *HOSTS)
        self.assert_a_resize_reaches(5, "--rsh", shell, *HOSTS, stopped=True)

    def test_where_ucx_finds_no_boot_id(self):
        hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc/sys && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0:
            self.skipTest("needs a mount namespace")
        for nodes in 1, 2:
            done = subprocess.run([*hidden, tool("ibcoll_run"), "-n", "2", "--nodes", str(nodes),
                                   tool("ibcoll_launcher_calls"), "sum"], capture_output=True, text=True, check=False,
                                  timeout=SECONDS)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            lines = {line.rpartition("UCX  ")[2] for line in done.stdout.splitlines() if "UCX" in line}
            self.assertEqual(lines, {"ERROR failed to get boot id"} if nodes == 2 else set())

    def test_where_there_are_no_terminals(self):
        # No more descriptors than for pipes would do as well; what is tried here is a machine without /dev/ptmx.
        hidden = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /dev/ptmx && exec "$@"', "sh"]
        if subprocess.run([*hidden, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0:
            self.skipTest("needs a mount namespace")
        done = subprocess.run([*hidden, tool("ibcoll_run"), "-n", "2", "--pty", "echo", "x"], capture_output=True, text=True,
                              check=False, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"\Aibcoll_run: host \S+: rank 0: unlockpt: .*--no-pty\n\Z")
