# SPDX-License-Identifier: BSD-3-Clause
"""The processes on the nodes of perf/cluster: those in their network namespaces."""

import contextlib
import os
import pathlib
import select
import signal
import time

from cluster_nodes import NAMESPACES, TIMEOUT, ClusterError


def networks(namespaces):
    """What tells these namespaces from all others."""
    stats = [(NAMESPACES / name).stat() for name in namespaces]
    return {(stat.st_dev, stat.st_ino) for stat in stats}


def network_of(pid):
    """The same for that of a process; None where it has just ended."""
    try:
        stat = os.stat(f"/proc/{pid}/ns/net")
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def own_is_among(namespaces):
    return network_of("self") in networks(namespaces)


def find(namespaces):
    """Ids of all processes there."""
    wanted = networks(namespaces)
    pids = [folder.name for folder in pathlib.Path("/proc").glob("[0-9]*")]
    return [int(pid) for pid in pids if network_of(pid) in wanted]


def kill(pid, namespaces):
    """Kills a process if it is in one of these namespaces: the id may have passed to another one since it was read."""
    handle = os.pidfd_open(pid)
    try:
        if network_of(pid) in networks(namespaces):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], 1)  # it becomes readable when the process has ended
    finally:
        os.close(handle)


def kill_all(namespaces):
    """Kills what runs there until nothing does: a process may start another one while it is being killed."""
    end = time.monotonic() + TIMEOUT
    while pids := find(namespaces):
        if time.monotonic() > end:
            raise ClusterError(f"processes {', '.join(map(str, pids))} have not ended {TIMEOUT} s after SIGKILL; look "
                               f"at /proc/PID/stack and call perf/cluster down again")
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                kill(pid, namespaces)
