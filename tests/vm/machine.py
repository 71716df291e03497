# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine: QEMU in software emulation, with the host's root as its own, and what it reports."""

import os
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TAIL = 4000  # bytes of the console that a failure shows
# What software emulation is slow at is left out: libraries and the kernel then copy by other instructions than `rep movsb`
# (8 bytes at a time instead of one) and AVX; and no guard around each access to user memory ends a block of translated code.
CPU = "max,erms=off,fsrm=off,avx=off,avx2=off,smap=off,smep=off"


class BedError(Exception):
    """The machine did not boot, panicked, or was lost: nothing is known about the command it should have run."""


class BootTimeout(BedError):
    """Nothing has run yet, so all of it may be tried again."""


class Machine:
    """One QEMU process. `boot_files` is (kernel, initramfs); `settings` goes to inside/start as shell variables; `job` is
    the text of a script; `shares` are folders that the machine writes to, under the same path; `links` maps the names of
    network cards to the sockets that are their cables. The process dies with the thread that called start()."""

    def __init__(self, boot_files, job, settings, cpus=2, memory="4G", shares=(), links=None, files=()):
        self.name = settings["name"]
        self.cpus, self.memory = cpus, memory
        self.boot_files, self.links, self.shares = boot_files, links or {}, [os.path.realpath(share) for share in shares]
        self.session = Path(tempfile.mkdtemp(prefix="ibcoll_vm_"))
        self.process = None
        self.ready = False
        self.status = None  # exit status of the job
        self.broken = None  # what inside/start could not do
        self.requests = []  # what the job asks of the host: ["link", NAME, "on" or "off"]
        self.console = b""
        self._control = b""
        self._ends = {}  # name of a port -> our end of its socket
        self._write_session(job, dict(settings, shares=self.shares), files)

    def _write_session(self, job, settings, files):
        """The folder that the machine sees as /run/vm."""
        shutil.copy(HERE / "inside" / "start", self.session / "start")
        (self.session / "start").chmod(0o755)
        (self.session / "job").write_text(job)
        (self.session / "job").chmod(0o755)
        for path in files:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, self.session / path.name)
        for number, share in enumerate(settings.pop("shares")):
            settings[f"share{number}"] = share
        lines = [f"{key}={shlex.quote(str(value))}\n" for key, value in settings.items()]
        (self.session / "settings").write_text("".join(lines))

    def _port(self, name, passed):
        """A socket whose other end becomes the character device `name` of QEMU."""
        ours, theirs = socket.socketpair()
        self._ends[name] = ours
        passed.append(theirs)
        return ["-chardev", f"socket,id={name},fd={theirs.fileno()}"]

    def _folder(self, path, tag, options):
        path = str(path).replace(",", ",,")
        return ["-virtfs", f"local,path={path},mount_tag={tag},security_model=none,multidevs=remap{options}"]

    def command_line(self, passed, interactive):
        kernel, initramfs = self.boot_files
        line = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", CPU,
                "-smp", str(self.cpus), "-m", self.memory, "-nodefaults", "-display", "none", "-no-reboot",
                "-kernel", str(kernel), "-initrd", str(initramfs),
                "-append", "console=ttyS0 panic=-1 oops=panic mitigations=off nokaslr tsc=reliable no_timer_check quiet"]
        line += self._port("console", passed) + ["-serial", "chardev:console", "-device", "virtio-serial-pci"]
        for number, name in enumerate(("control", "stdout", "stderr"), start=1):
            line += self._port(name, passed)
            line += ["-device", f"virtserialport,nr={number},chardev={name},name=vm.{name}"]
        if interactive:
            line += ["-chardev", "stdio,id=terminal,signal=off", "-device", "virtconsole,nr=9,chardev=terminal"]
        line += self._folder("/", "hostroot", ",readonly=on") + self._folder(self.session, "session", ",readonly=on")
        for number, share in enumerate(self.shares):
            line += self._folder(share, f"share{number}", "")
        line += self._port("monitor", passed) + ["-mon", "chardev=monitor,mode=readline"]
        for number, (link, cable) in enumerate(self.links.items()):
            mac = f"52:54:00:00:{number:02x}:{int(self.name[-1]):02x}"
            line += ["-netdev", f"socket,id={link},fd={cable.fileno()}",
                     "-device", f"virtio-net-pci,netdev={link},mac={mac},romfile="]
        return line

    def plug(self, link, state):
        """Pulls the cable of a network card ("off") or puts it back ("on"), as the guest sees it: the carrier goes."""
        if link in self.links and state in ("on", "off") and "monitor" in self._ends:
            self._ends["monitor"].sendall(f"set_link {link} {state}\n".encode())

    def start(self, interactive=False):
        passed = []
        line = self.command_line(passed, interactive)
        passed += self.links.values()
        try:
            self.process = subprocess.Popen(line, stdin=None if interactive else subprocess.DEVNULL,
                                            stdout=None if interactive else subprocess.DEVNULL, stderr=subprocess.PIPE,
                                            pass_fds=[end.fileno() for end in passed])
        except OSError as error:
            raise BedError(f"{line[0]} cannot be started: {error}") from error
        finally:
            for end in passed:
                end.close()
        self._ends["qemu"] = self.process.stderr
        for end in self._ends.values():
            os.set_blocking(end.fileno(), False)

    def register(self, selector):
        for name, end in self._ends.items():
            selector.register(end, selectors.EVENT_READ, (self, name))

    def read(self, selector, name, sinks):
        """Takes what a port has; returns False when there was nothing."""
        end = self._ends.get(name)
        if end is None:
            return False
        try:
            chunk = os.read(end.fileno(), 65536)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            selector.unregister(end)
            end.close()
            del self._ends[name]
            return False
        if name in ("console", "qemu"):
            self.console = (self.console + chunk)[-16 * TAIL:]
        elif name == "control":
            self._take_control(chunk)
        if name in sinks:
            sinks[name](chunk)
        return True

    def _take_control(self, chunk):
        *lines, self._control = (self._control + chunk).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "ready":
                self.ready = True
            elif word == "exit":
                self.status = int(rest)
            elif word == "broken":
                self.broken = rest
            elif word == "link":
                self.requests.append(rest.split())

    def drain(self, selector, sinks):
        """What is in the sockets when the machine has reported its status is all that the job wrote: a guest's write to
        a port ends when QEMU has handed it on."""
        for name in ("console", "qemu", "stdout", "stderr", "control"):
            while self.read(selector, name, sinks):
                pass

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def tail(self):
        text = self.console[-TAIL:].decode(errors="replace").replace("\r", "").strip()
        return "\n".join(f"  {self.name}| {line}" for line in text.splitlines()) or f"  {self.name}| (nothing)"

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for end in self._ends.values():
            end.close()
        shutil.rmtree(self.session, ignore_errors=True)


def link_up(link, address, mtu):
    """Commands of `ip` that bring a network link up."""
    return [f"link set {link} mtu {mtu}", f"addr add {address} dev {link}", f"link set {link} up"]


def failure(machine, text, kind=BedError):
    return kind(f"{machine.name}: {text}; the end of its console:\n{machine.tail()}")


def check(machine, boot_end, end):
    """Raises what is wrong with a machine now."""
    now = time.monotonic()
    if machine.broken:
        raise failure(machine, f"cannot be set up: {machine.broken}")
    if machine.status is None and not machine.alive():
        what = "ended while the command ran (a kernel panic?)" if machine.ready else "did not boot"
        raise failure(machine, f"{what}; QEMU's status: {machine.process.returncode}")
    if not machine.ready and now > boot_end:
        raise failure(machine, "did not boot in time", BootTimeout)
    if end is not None and now > end:
        raise failure(machine, "does not answer: the command's time is over and it has not ended it")


def run(machines, boot_seconds, seconds, sinks, interactive=False):
    """Boots the machines and returns the exit status of the first one's job. `sinks` maps a machine's name to functions
    by port (stdout, stderr, console). `seconds`: what the job may take, which the machine itself enforces (status 124);
    None: forever. Raises BedError."""
    with selectors.DefaultSelector() as selector:
        boot_end, end, main = time.monotonic() + boot_seconds, None, machines[0]
        for machine in machines:
            machine.start(interactive and machine is main)
            machine.register(selector)
        while main.status is None:
            for key, _ in selector.select(0.5):
                machine, name = key.data
                machine.read(selector, name, sinks.get(machine.name, {}))
            for machine in machines:
                for request in machine.requests:
                    for other in machines:
                        other.plug(*request)
                machine.requests.clear()
                if not machine.alive():
                    machine.drain(selector, sinks.get(machine.name, {}))
                check(machine, boot_end, end if machine is main else None)
            if main.ready and end is None and seconds is not None:
                end = time.monotonic() + seconds + 30
        for machine in machines:
            machine.drain(selector, sinks.get(machine.name, {}))
    return main.status


def end_on_signals():
    """SIGTERM, SIGHUP and SIGINT become SystemExit, so that machines are closed."""
    def leave(number, _):
        raise SystemExit(128 + number)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, leave)
