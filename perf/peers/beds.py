# SPDX-License-Identifier: BSD-3-Clause
"""Where the ranks of perf/compare run: on this machine, as if on several (emulated nodes), or on the nodes of
perf/cluster; and with which words a library starts them there."""

import contextlib
import dataclasses
import os
import pathlib

import cluster_nodes
import launch
import rdma

EMULATED_NODE_AGENT = pathlib.Path(__file__).resolve().parent / "on_emulated_node"


@dataclasses.dataclass
class Bed:
    nodes: int = 1
    cluster: cluster_nodes.Nodes | None = None  # None: the nodes are emulated
    net: str | None = None  # None: what each library takes by itself; verbs: the same RDMA device for all
    through: str | None = None  # the route of the library "through", one of launch.ROUTES
    build: pathlib.Path | None = None  # where that is, and ibcoll_run

    def command(self, name, ranks, program):
        """Words that start `ranks` ranks of a program, given with its arguments, on a library."""
        words = [*self._starter(name, ranks, program[0]), *program]
        if self.net == "verbs" and name not in launch.OWN:
            words = rdma.within(self.build / "bin", words)
        if self.cluster:
            words = self.cluster.enter("n1", words)
        return [str(word) for word in words]

    def environment(self):
        """Open MPI refuses to run as root, as in a container, without both of its variables. A file of
        timed choices may come from another build or from a busy machine. The cores of emulated nodes are
        those that ibcoll_run gives them. Over verbs, memory stays pinned with every version of UCX (docs/limits.md)."""
        own = self.nodes > 1 and not self.cluster
        return dict({"IBCOLL_TUNING": "off", **os.environ}, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                    NODE_CPUS=emulated_node_cpus(self.nodes) if own else "",
                    **({"IBCOLL_NET": self.net, "NODE_NAMESPACES": "ipc,pid", "UCX_MEM_EVENTS": "y"} if self.net else {}))

    def title(self):
        """What the head of a table says of it."""
        if self.cluster:
            state = self.cluster.state_or_error()
            return (f", {self.nodes} node{'s' * (self.nodes > 1)} of perf/cluster at {state['rate']}, "
                    f"{cluster_nodes.share_text(state)}")
        over = f" over {self.net} ({rdma.title()})" if self.net else ""
        return f", {self.nodes} nodes{over}" if self.nodes > 1 else ""

    def _hosts(self, ranks):
        first = 1 if self.cluster else 0
        counts = [ranks * (i + 1) // self.nodes - ranks * i // self.nodes for i in range(self.nodes)]
        return ",".join(f"n{first + i}:{count}" for i, count in enumerate(counts))

    def _starter(self, name, ranks, program):
        crowded = ranks > launch.cores()
        if name in launch.OWN:
            words = [program.parent / "ibcoll_run"]  # binds and yields by itself
            if self.cluster:
                # A node cannot see that its CPU is that of other nodes, too. ibcoll gets a setting here, Open MPI one below.
                if crowded:
                    words = ["env", "IBCOLL_WAIT=yield", *words]
                words += ["--host", self._hosts(ranks), "--rsh", cluster_nodes.AGENT]
                # Where nodes have all CPUs, each would bind its first rank to the first CPU.
                return words if self.cluster.state_or_error()["cpus"][0] else words + ["--no-bind"]
            if self.net == "verbs" and not rdma.adapter():
                words.append("--rdma-in-memory")
            return words + ["-n", ranks] + (["--nodes", self.nodes] if self.nodes > 1 else [])
        if name == "through":
            return self._through(ranks, program)
        if name == "mpich":
            return ["mpirun.mpich", "-bind-to", "none" if crowded else "core", "-n", ranks]
        words = ["mpirun.openmpi", *self._transports(ranks), "-n", ranks]
        if self.cluster:
            words += ["--mca", "btl_tcp_if_include", "eth0", "--mca", "oob_tcp_if_include", "eth0"]
        if self.cluster or self.nodes > 1:
            agent = cluster_nodes.AGENT if self.cluster else EMULATED_NODE_AGENT
            words += ["--mca", "plm_rsh_agent", agent, "--host", self._hosts(ranks)]
        if crowded:
            words += ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        # Open MPI takes the cores of one node for those of all: it would bind the first ranks of all nodes to one core.
        return words + ["--bind-to", "core" if self.nodes == 1 and not crowded else "none"]

    def _through(self, ranks, program):
        words = self._starter(launch.ROUTES[self.through], ranks, program)
        if self.nodes > 1 and not self.cluster:  # ibcoll_run alone knows that all these nodes are one machine
            words += ["-x", "UCX_NET_DEVICES=lo"]
        if self.through == "pmpi":
            return words + ["-x", f"LD_PRELOAD={self.build / 'lib/libibcoll_pmpi_openmpi.so'}"]
        return [self.build / "bin/ibcoll_mpi", *words]

    def _transports(self, ranks):
        """What Open MPI takes by itself inside a node, without the other devices' progress functions in its loop; and
        TCP between nodes, or the device of ibcoll."""
        if self.net == "verbs":
            return rdma.words_of_open_mpi(rdma.device(), ranks > self.nodes)
        return ["--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp" if self.nodes > 1 else "self,vader"]


def emulated_node_cpus(nodes):
    """The CPUs of each emulated node, as NODE_CPUS of on_emulated_node."""
    return " ".join(f"n{node}={','.join(map(str, share))}" for node, share in enumerate(launch.cpu_shares(nodes)))


@contextlib.contextmanager
def bed_of(options, **more):
    """Where the ranks run; `more`: fields of the Bed. The nodes of perf/cluster are those that are up, or exist for as
    long as this takes."""
    if not options.cluster:
        yield Bed(options.nodes, **more)
        return
    cluster_nodes.require_rights()
    nodes = cluster_nodes.Nodes()
    state = nodes.state()
    if state and state["nodes"] != options.cluster:
        raise cluster_nodes.ClusterError(f"--cluster {options.cluster}: a cluster of {state['nodes']} nodes is up "
                                         f"already; name that number, or take it down first: perf/cluster down")
    try:
        if not state:
            cluster_nodes.run(str(cluster_nodes.COMMAND), "up", str(options.cluster),
                              timeout=cluster_nodes.TIMEOUT_OF_ALL)
        yield Bed(options.cluster, nodes, **more)
    finally:
        if not state:
            cluster_nodes.run(str(cluster_nodes.COMMAND), "down", timeout=cluster_nodes.TIMEOUT_OF_ALL)
