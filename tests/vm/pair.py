# SPDX-License-Identifier: BSD-3-Clause
"""Two machines, vm1 and vm2, joined by two links: `data` with rxe0 on it, and `mgmt` for ssh, which still works when
`data` loses packets or is down."""

import contextlib
import socket
import subprocess
import tempfile
from pathlib import Path

from machine import BedError, Machine, link_up

NAMES = ("vm1", "vm2")
LINKS = {"data": "10.0.0", "mgmt": "10.0.1"}  # the last byte of an address is the machine's number
SSH_CONFIG = """Host *
  LogLevel ERROR
  ControlMaster no
  IdentityFile ~/.ssh/id_ed25519
"""


def write_keys(folder):
    """Throw-away keys: one for the user, one for the hosts."""
    def generate(name, *more):
        done = subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "vm", "-f", folder / name, *more],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise BedError(f"ssh-keygen failed: {done.stderr.strip()}")
    folder.mkdir(mode=0o700)
    generate("id_ed25519")
    generate("host_openssh")
    done = subprocess.run(["dropbearconvert", "openssh", "dropbear", folder / "host_openssh", folder / "host_key"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise BedError(f"dropbearconvert failed: {done.stderr.strip()}")
    (folder / "authorized_keys").write_text((folder / "id_ed25519.pub").read_text())
    names = ",".join(list(NAMES) + [f"{prefix}.{number}" for prefix in LINKS.values() for number in (1, 2)])
    (folder / "known_hosts").write_text(f"{names} {(folder / 'host_openssh.pub').read_text()}")
    (folder / "config").write_text(SSH_CONFIG)


def settings_of(number, settings, mtu):
    """The names vm1 and vm2 are addresses on mgmt, vm1-data and vm2-data on data."""
    hosts = [f"{prefix}.{each} vm{each}{'-data' if link == 'data' else ''}"
             for link, prefix in LINKS.items() for each in (1, 2)]
    network = ["link set lo up"] + [f"link set eth{index} name {link}" for index, link in enumerate(LINKS)]
    for link, prefix in LINKS.items():
        network += link_up(link, f"{prefix}.{number}/24", mtu)
    changed = {"name": f"vm{number}", "hosts": "\n".join(hosts), "network": "\n".join(network), "remote_shell": "yes"}
    if number == 1:
        return dict(settings, **changed, wait_for="vm2")
    return dict(settings, **dict(changed, role="serve"))


def make(job, settings, mtu, common):
    """The two machines, not yet started. The second has no job: it waits for what the first asks for by ssh."""
    cables = {link: socket.socketpair() for link in LINKS}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        keys = Path(name) / "ssh"
        write_keys(keys)
        made = []
        for number in (1, 2):
            made.append(Machine(job=job if number == 1 else "", settings=settings_of(number, settings, mtu),
                                links={link: cable[number - 1] for link, cable in cables.items()}, files=[keys], **common))
            stack.callback(made[-1].close)
        stack.pop_all()
    return made
