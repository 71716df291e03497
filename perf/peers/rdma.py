# SPDX-License-Identifier: BSD-3-Clause
"""The RDMA device that comparisons over verbs use: that of this machine, or soft-RoCE in a virtual machine of tests/vm."""

import os
import pathlib

import launch

ROOT = pathlib.Path(__file__).resolve().parents[2]
MTU = 4200  # of the virtual machine's link: rxe then has 4096
SECONDS = 3600  # that a command may take there


def device():
    """The name of the device that IBCOLL_VERBS_DEVICE names, else of the first one; None without a device."""
    names = sorted(path.name for path in pathlib.Path("/sys/class/infiniband").glob("*"))
    chosen = os.environ.get("IBCOLL_VERBS_DEVICE", "").split(":")[0]
    return chosen or next(iter(names), None)


def words_of_open_mpi(name, shares_nodes):
    """Open MPI over the reliable connections of UCX on a device; with the shared memory of UCX where ranks share nodes."""
    words = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,vader",
             "-x", f"UCX_TLS=rc,ud,self{',sm' if shares_nodes else ''}", "-x", f"UCX_NET_DEVICES={name}:1"]
    # Between ranks of one soft-RoCE device UCX connects by the link-local address only, which has index 0.
    return words + (["-x", "UCX_IB_GID_INDEX=0"] if name.startswith("rxe") else [])


def in_virtual_machine(command, share=None):
    """Runs a command of this repository in a virtual machine that has a device; returns its exit status. What it writes
    is lost, but for the folder `share`. Memory stays pinned with every version of UCX (docs/limits.md)."""
    words = [ROOT / "tests/vm/run_in_vm", "--mtu", MTU, "--timeout", SECONDS, "--env", "UCX_MEM_EVENTS=y",
             *(["--share", share] if share else []), "--", *command]
    return launch.status_of(words)
