# SPDX-License-Identifier: BSD-3-Clause
"""What run_in_vm, shell and the suite have in common: options, the script that a machine runs, one machine or two."""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import boot_files
import machine as machines_module
import pair
from machine import BedError, BootTimeout, Machine, link_up

STATUS_OF_A_FAILED_MACHINE = 125
HANDED_ON = ("IBCOLL_", "UCX_", "GTEST_", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TSAN_OPTIONS")
PROGRAMS = ("qemu-system-x86_64", "cpio", "modprobe", "depmod", "setpriv")


def add_options(parser):
    parser.add_argument("--pair", action="store_true",
                        help="two machines, vm1 (runs the command) and vm2, joined by the links `data` (rxe0) and `mgmt`")
    parser.add_argument("--share", action="append", default=[], metavar="DIR", help="a folder that the machine writes to")
    parser.add_argument("--memlock", default="unlimited", metavar="BYTES",
                        help="limit of locked memory, without the right to exceed it (default: unlimited)")
    parser.add_argument("--no-rdma", dest="rdma", action="store_false", help="no rxe0")
    parser.add_argument("--mtu", type=int, default=1500, help="of the links (1500); rxe0's is the next lower power of two")
    parser.add_argument("--cpus", type=int, default=2, help="virtual processors of a machine (2)")
    parser.add_argument("--memory", default="4G", help="memory of a machine (4G)")
    parser.add_argument("--boot-timeout", type=float, default=60, metavar="S",
                        help="seconds to boot (60); emulation hangs once in some thousand boots, so there is a second try")
    parser.add_argument("--kernel", metavar="FILE", help="another kernel; its modules must fit")
    parser.add_argument("-v", "--verbose", action="store_true", help="shows the consoles on standard error")


def job_script(command, directory, variables):
    """The script that starts `command` in `directory`, with the variables of HANDED_ON and `variables`, a list of NAME=VALUE
    or NAME (as it is here)."""
    chosen = {name: value for name, value in os.environ.items() if name.startswith(HANDED_ON) and name != "IBCOLL_VM_CACHE"}
    for variable in variables:
        name, given, value = variable.partition("=")
        chosen[name] = value if given else os.environ.get(name, "")
    lines = ["#!/bin/bash", f"cd {shlex.quote(os.path.abspath(directory))} || exit 127"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in chosen.items()]
    lines.append("exec " + shlex.join(command))
    return "\n".join(lines) + "\n"


def settings_of(arguments, role):
    """What inside/start wants to know, for one machine on its own."""
    try:
        size = os.get_terminal_size()
    except OSError:
        size = os.terminal_size((80, 24))
    rdma = "yes" if arguments.rdma else "no"
    veth = ["link add data type veth peer name data-peer", f"link set data-peer mtu {arguments.mtu} up"]
    return {"name": "vm1", "role": role, "rdma": rdma, "memlock": arguments.memlock, "seconds": arguments.timeout or 0,
            "hosts": "127.0.1.1 vm1", "remote_shell": "no", "wait_for": "",
            "network": "\n".join(["link set lo up", *veth, *link_up("data", "10.0.0.1/24", arguments.mtu)]),
            "rows": size.lines, "columns": size.columns, "terminal": os.environ.get("TERM") or "dumb"}


@contextlib.contextmanager
def machines_of(arguments, job, role):
    """The machines, not yet started; they are gone when the block is left."""
    files = boot_files.ensure()
    if arguments.kernel:
        files = (arguments.kernel, files[1])
    common = {"boot_files": files, "cpus": arguments.cpus, "memory": arguments.memory, "shares": arguments.share}
    settings = settings_of(arguments, role)
    with contextlib.ExitStack() as stack:
        made = pair.make(job, settings, arguments.mtu, common) if arguments.pair else [Machine(job=job, settings=settings, **common)]
        for each in made:
            stack.callback(each.close)
        yield made


def write_to(stream):
    def write(chunk):
        stream.buffer.write(chunk)
        stream.buffer.flush()
    return write


@contextlib.contextmanager
def terminal_restored():
    before = termios.tcgetattr(0) if os.isatty(0) else None
    try:
        yield
    finally:
        if before is not None:
            termios.tcsetattr(0, termios.TCSADRAIN, before)


def main(arguments, job, role):
    """Runs the job and returns the exit status for this process."""
    machines_module.end_on_signals()
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        print(f"tests/vm: not found: {' '.join(missing)}. Try: tools/install_packages vm", file=sys.stderr)
        return STATUS_OF_A_FAILED_MACHINE
    verbose = {"console": write_to(sys.stderr)} if arguments.verbose else {}
    sinks = {"vm1": dict(verbose, stdout=write_to(sys.stdout), stderr=write_to(sys.stderr)), "vm2": verbose}
    try:
        for boot in (1, 2):
            with contextlib.suppress(BootTimeout) if boot == 1 else contextlib.nullcontext():
                with machines_of(arguments, job, role) as machines, terminal_restored():
                    return machines_module.run(machines, arguments.boot_timeout, arguments.timeout, sinks, role == "shell")
            print(f"tests/vm: did not boot within {arguments.boot_timeout:g} s; trying once more", file=sys.stderr)
    except (BedError, boot_files.FetchError, OSError, subprocess.SubprocessError) as error:
        print(f"tests/vm: {error}", file=sys.stderr)
        return STATUS_OF_A_FAILED_MACHINE
