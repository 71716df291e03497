# SPDX-License-Identifier: BSD-3-Clause
"""Two containers, c1 and c2, as `podman run --network` makes them: namespaces of their own for mounts, processes, network,
IPC and host name, and links to a bridge of their host. Each has an ssh server. The host is a set of namespaces too: what is
in it ends with it, and this machine's network stays as it is. Needs root."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HOST = r"""
set -e
folder=$1
ip link set lo up
ip link add br0 type bridge
ip address add 10.88.0.1/16 dev br0
ip link set br0 up
for number in 1 2; do
  ip link add veth$number type veth peer name eth0 address 02:00:00:00:00:0$number
  ip link set veth$number master br0 up
  unshare --mount --pid --fork --ipc --uts --net --mount-proc sh -c '
    hostname c$1 && mount -t tmpfs none /dev/shm && mount --bind $2/hosts /etc/hosts &&
    mount --bind $2/passwd /etc/passwd && : >$2/c$1.made &&
    exec dropbear -F -E -s -j -k -p 22 -r $2/server_key -P $2/c$1.pid' - $number "$folder" &
  outer=$!
  until [ -e "$folder/c$number.made" ]; do sleep 0.05; done
  pgrep -P $outer >"$folder/c$number"
  ip link set eth0 netns $outer
  nsenter -t $outer -n sh -c "ip link set lo up; ip address add 10.88.0.1$number/16 dev eth0; ip link set eth0 up"
done
echo ready
exec cat
"""
# ENTER CONTAINER COMMAND...: as `podman exec -i`, with little of an environment.
ENTER = """#!/bin/sh
container=$1
shift
exec nsenter -t "$(cat "{folder}/$container")" -m -u -i -n -p env -i PATH="$PATH" HOME="$HOME" "$@"
"""


def missing():
    """What keeps containers from being made; empty: nothing."""
    absent = [program for program in ("ip", "unshare", "nsenter", "pgrep", "ssh", "ssh-keygen", "dropbear", "dropbearkey")
              if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
    return f"without {absent}" if absent else "" if os.geteuid() == 0 else "not root"


class Containers:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="ibcoll_containers."))
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.stand_in("enter", ENTER.format(folder=self.folder))
        (self.folder / "hosts").write_text("127.0.0.1 localhost\n10.88.0.11 c1\n10.88.0.12 c2\n")
        # Who is logged in in a container is at home in this folder.
        (self.folder / "passwd").write_text(f"root:x:0:0:root:{self.folder}:/bin/bash\nsshd:x:100:65534::/run/sshd:/bin/false\n")
        keys = self.folder / ".ssh"
        keys.mkdir(mode=0o700)
        for command in (["dropbearkey", "-t", "ed25519", "-f", self.folder / "server_key"],
                        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / "id_ed25519"]):
            subprocess.run(command, check=True, capture_output=True, timeout=60)
        shutil.copy(keys / "id_ed25519.pub", keys / "authorized_keys")
        (keys / "config").write_text("StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n")
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", HOST, "host",
             self.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(self.process.communicate(timeout=20)[1])
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            self.host = children.read().split()[0]

    def stand_in(self, name, text):
        """A program that the host finds before others of its name."""
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run(self, line, path, inside=""):
        """A line for a shell of the host, or of a container, that finds programs in `path` too."""
        path = f"{self.bin}:{path}:{os.environ['PATH']}:/usr/sbin:/sbin"
        enter = [self.bin / "enter", inside] if inside else []
        return subprocess.run(["nsenter", "-t", self.host, "-n", "-m", "-p", *enter, "sh", "-c", line],
                              cwd=self.folder, capture_output=True, text=True, timeout=120,
                              env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, check=False)

    def close(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder)
