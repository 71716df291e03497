# SPDX-License-Identifier: BSD-3-Clause
"""The nodes of perf/cluster: their names, where they keep things, what runs in them, and how a command enters one.

A node is a network namespace, /run/netns/NAME-nK, with one link, eth0. A further namespace, NAME-switch, holds the
bridge that joins the links, so that the machine's own network is left as it is. Everything else is in
/run/ibcoll-cluster/NAME: the addresses (hosts), what was asked for (state.json), and for each node its /dev/shm and its
folder for temporary files.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

NAMESPACES = pathlib.Path("/run/netns")
ROOT_FOLDER = pathlib.Path("/run/ibcoll-cluster")
COMMAND = pathlib.Path(__file__).resolve().parents[1] / "cluster"
AGENT = pathlib.Path(__file__).resolve().parent / "on_cluster_node"
MOST_NODES = 200
TIMEOUT = 20  # seconds, for one command and for the end of killed processes
TIMEOUT_OF_ALL = 120  # for up or down as a whole
# Changes of mounts stay in the mount namespace that `ip netns exec` has made for this command alone.
ENTER = ('hostname "$1" && mount --bind "$2/hosts" /etc/hosts && mount --bind "$2/$1/shm" /dev/shm && shift 2 && '
         'exec "$@"')


class ClusterError(Exception):
    """A text for the user."""


def require_rights():
    """Everything here needs root and a few programs."""
    if os.geteuid() != 0:
        raise ClusterError(f"network namespaces need root, and this is user {os.geteuid()}; try sudo")
    packages = {"ip": "iproute2", "tc": "iproute2", "unshare": "util-linux", "taskset": "util-linux", "mount": "mount",
                "umount": "mount", "hostname": "hostname"}
    for program, package in packages.items():
        if not shutil.which(program):
            raise ClusterError(f"the program {program} is not found in PATH; install it (Debian: apt-get install "
                               f"{package})")


def run(*words, timeout=TIMEOUT):
    """Runs a command of the system for at most `timeout` seconds; its own words are in the error."""
    try:
        # The command inherits the lock of perf/cluster: it is held until both have ended.
        done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout,
                              check=False, close_fds=False)
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{' '.join(words)}: not done after {timeout} s") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or f"exit status {done.returncode}"
        raise ClusterError(f"{' '.join(words)}: {said}")
    return done.stdout


class Nodes:
    """One cluster on this machine: "ibcoll", or what PERF_CLUSTER names."""

    def __init__(self):
        self.name = os.environ.get("PERF_CLUSTER", "ibcoll")
        if not re.fullmatch(r"[a-z][a-z0-9]{0,19}", self.name):
            raise ClusterError(f"PERF_CLUSTER={self.name!r}: a name is up to 20 lower-case letters and digits, a "
                               f"letter first")
        self.folder = ROOT_FOLDER / self.name
        self.switch = f"{self.name}-switch"

    def namespace(self, node):
        return f"{self.name}-{node}"

    def state(self):
        """{"nodes": N, "rate": text, "cpus": ["0,1", ...]} of a cluster that is up, where "" stands for all CPUs; None
        where none is, or only a part of one."""
        try:
            state = json.loads((self.folder / "state.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return None
        wanted = {self.switch, *(self.namespace(node) for node in node_names(state["nodes"]))}
        return state if wanted == set(self.namespaces()) else None

    def state_or_error(self):
        state = self.state()
        if state is None:
            raise ClusterError("no cluster is up; start one: perf/cluster up N")
        return state

    def namespaces(self):
        """Names of the namespaces that exist, also of a cluster that was only begun."""
        own = re.compile(re.escape(self.name) + r"-(n[0-9]+|switch)")
        return sorted(entry.name for entry in NAMESPACES.glob(f"{self.name}-*") if own.fullmatch(entry.name))

    def enter(self, node, command):
        """Words that run `command` on a node: under its name, with its addresses, its own /dev/shm and its share of the
        CPUs."""
        state = self.state_or_error()
        names = node_names(state["nodes"])
        if node not in names:
            raise ClusterError(f"{node!r} is not a node; there is {names[0]}" + f" to {names[-1]}" * (len(names) > 1))
        cpus = state["cpus"][names.index(node)]
        on_cpus = ["taskset", "-c", cpus] if cpus else []
        return ["ip", "netns", "exec", self.namespace(node), *on_cpus, "unshare", "--uts",
                "env", f"TMPDIR={self.folder / node / 'tmp'}", "sh", "-c", ENTER, "sh", node, str(self.folder),
                *map(str, command)]


def node_names(count):
    return [f"n{i}" for i in range(1, count + 1)]


def share_text(state):
    """What each node of a cluster has of this machine's CPUs."""
    count = len(state["cpus"][0].split(",")) if state["cpus"][0] else 0
    return f"{count} CPU{'s' * (count > 1)} for each" if count else "all CPUs for each"


def address(node):
    return f"10.200.0.{node[1:]}"
