# SPDX-License-Identifier: BSD-3-Clause
"""The RDMA device that comparisons over verbs use: that of this machine, else one in memory (tools/rdma_in_memory)."""

import os
import pathlib

IN_MEMORY = "memory0"


def adapter():
    """The name of the device that IBCOLL_VERBS_DEVICE names, else of the first one; None without a device."""
    names = sorted(path.name for path in pathlib.Path("/sys/class/infiniband").glob("*"))
    chosen = os.environ.get("IBCOLL_VERBS_DEVICE", "").split(":")[0]
    return chosen or next(iter(names), None)


def device():
    return adapter() or IN_MEMORY


def title():
    return adapter() or f"{IN_MEMORY}, a device in memory"


def within(programs, words):
    """The words of a command that finds the device. `programs`: the folder of ibcoll_run."""
    return words if adapter() else [programs / "ibcoll_run", "--rdma-in-memory", "-n", "1", "--no-bind", *words]


def words_of_open_mpi(name, shares_nodes):
    """Open MPI over the reliable connections of UCX on a device; with the shared memory of UCX where ranks share nodes."""
    words = ["--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "^openib,vader",
             "-x", f"UCX_TLS=rc,ud,self{',sm' if shares_nodes else ''}", "-x", f"UCX_NET_DEVICES={name}:1"]
    # Between ranks of one soft-RoCE device UCX connects by the link-local address only, which has index 0.
    return words + (["-x", "UCX_IB_GID_INDEX=0"] if name.startswith("rxe") else [])
