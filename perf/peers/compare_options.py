# SPDX-License-Identifier: BSD-3-Clause
"""The command line of perf/compare."""

import argparse
import pathlib
import sys

import cluster_nodes
import launch
import output

sys.path.append(str(launch.ROOT / "tools/tables"))
import tables  # pylint: disable=wrong-import-position

CALLS = ["blocking", "oneshot", "persistent"]
PEERS = [name for name in launch.TITLES if name not in ("before", "through")]


def size_range(text):
    """8:1M -> (8, 1048576)"""
    units = {"K": 1 << 10, "M": 1 << 20}
    try:
        low, high = [int(part.rstrip("KM")) * units.get(part[-1:], 1) for part in text.split(":")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not MIN:MAX, for example 8:1M") from None
    if not 0 < low <= high:
        raise argparse.ArgumentTypeError(f"{text!r}: 0 < MIN <= MAX is wanted")
    return low, high


def names(allowed):
    def parse(text):
        for name in text.split(","):
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return text.split(",")
    return parse


def numbers(text):
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or min(values) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers of ranks, for example 16,2")
    return values


def arrival_pattern(text):
    """Of other machines and folders as well: a file is named in full. The programs say what is wrong with the rest."""
    kind, _, path = text.partition(":")
    if kind not in ("none", "random", "late", "file"):
        raise argparse.ArgumentTypeError(f"{text!r} is none of none, random:MIF, late:PERCENT:MIF, file:TRACE")
    if kind != "file":
        return text
    if not pathlib.Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text!r}: there is no such file; ibcoll_trace --arrivals FILE writes one")
    return f"file:{pathlib.Path(path).resolve()}"


def node_count(text):
    most = cluster_nodes.MOST_NODES
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of nodes from 1 to {most}")
    return int(text)


def busy_count(text):
    if not text.isdecimal() or int(text) > 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes from 0 to 1024")
    return int(text)


def add_where(parser):
    """Where ranks run, and how many."""
    parser.add_argument("--ranks", type=numbers, metavar="LIST", help="default 16,2; with --cluster 4 for each node")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--nodes", type=node_count, default=1, metavar="N", help="as if on N machines: Open MPI over "
                       "TCP between them, ibcoll over what it takes by itself or IBCOLL_NET says; no MPICH (default 1)")
    where.add_argument("--cluster", type=node_count, metavar="N", help="on N nodes of perf/cluster, joined by shaped "
                       "links: those that are up, or at 1gbit for as long as this takes; needs root; no MPICH")


def check_where(parser, options):
    """Defaults of the same, and what does not go together. Needs options.libraries."""
    options.nodes = options.cluster or options.nodes
    options.ranks = options.ranks or ([4 * options.cluster] if options.cluster else [16, 2])
    if options.nodes > 1 or options.cluster:
        if min(options.ranks) < options.nodes:
            parser.error(f"{'--cluster' if options.cluster else '--nodes'}: a node has at least one rank")
        options.libraries = [name for name in options.libraries if name != "mpich"]
    for ranks in options.ranks:
        if not launch.libraries_for(ranks, options.libraries):
            parser.error(f"--libraries: none is left for {ranks} ranks (MPICH takes part where every rank has a core, "
                         f"on one node, without --cluster)")


def parse(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and calls: under 2 minutes for 16,2 ranks")
    add_where(parser)
    parser.add_argument("--net", choices=["verbs"], help="--nodes N joined by one RDMA device: ibcoll over verbs, Open "
                        "MPI over the reliable connections of UCX; one rank on each node, unless --ranks says more; on "
                        "a device in memory, unless this machine has one")
    parser.add_argument("--busy", type=busy_count, default=0, metavar="N",
                        help="other processes that compute on this machine all the time")
    parser.add_argument("--collectives", type=lambda text: text.split(","), metavar="LIST",
                        help="or all (default: barrier, bcast, allgather(v), alltoall(v), allreduce)")
    parser.add_argument("--distribution", default="mild", metavar="NAME", help="of irregular blocks, as ibcoll_perf has them")
    parser.add_argument("--calls", choices=CALLS, default="blocking", help="of all libraries alike: blocking calls and "
                        "oneshot ones (nonblocking, then a wait) with other buffers each time, or one persistent request "
                        "(default blocking)")
    parser.add_argument("--root", type=int, default=0, metavar="RANK", help="where a collective has one (default 0)")
    parser.add_argument("--arrival", type=arrival_pattern, metavar="PATTERN", help="a barrier and delays before each "
                        "call: none, random:MIF, late:PERCENT:MIF or file:TRACE, as in ibcoll_perf; what is compared "
                        "is the time from the last arrival to the last exit")
    parser.add_argument("--libraries", type=names(PEERS), default=PEERS, metavar="LIST")
    parser.add_argument("--through", choices=list(launch.ROUTES), metavar="ROUTE", help="one more library: the MPI's "
                        "program with its collectives in ibcoll, by Open MPI's component (openmpi), or a library before "
                        "Open MPI (pmpi) or MPICH (mpich); the other MPI is left out")
    parser.add_argument("--bytes", type=size_range, default=(8, 1 << 20), metavar="MIN:MAX", help="default 8:1M")
    parser.add_argument("--factor", type=int, help="from one size to the next: 4, with --quick 8")
    parser.add_argument("--rounds", type=int, help="5, with --quick 3")
    parser.add_argument("--seconds", type=output.seconds, help="of timed calls per size: 0.2, with --quick 0.02")
    parser.add_argument("--build", type=pathlib.Path, default=launch.ROOT / "build/release", help="tree of ibcoll")
    parser.add_argument("--before", type=pathlib.Path, metavar="BUILD", help="tree of an older ibcoll: one more library")
    parser.add_argument("--timeout", type=output.seconds, default=300, help="seconds that one launch may take (default 300)")
    parser.add_argument("--json", type=output.target, metavar="FILE", help="write every figure there as well")
    options = parser.parse_args()
    options.build = options.build.resolve()  # what runs on other nodes is named in full
    if options.before:
        options.before = options.before.resolve()
        options.libraries = ["before"] + options.libraries
    if options.through:
        mpi = launch.ROUTES[options.through]
        options.libraries = [name for name in options.libraries if name in launch.OWN] + [mpi, "through"]
    if options.net:
        options.ranks = options.ranks or [options.nodes]
        if options.cluster or options.through or options.nodes < 2:
            parser.error("--net verbs: give --nodes N, at least 2; --cluster and --through do not go with it")
    check_where(parser, options)
    if options.collectives:
        known = tables.collectives(options.build)
        if others := set(options.collectives) - {"all", *known}:
            parser.error(f"--collectives: {min(others)!r} is none of {', '.join(known)}, all")
        options.collectives = known if "all" in options.collectives else options.collectives
    options.collectives = options.collectives or launch.USUAL
    if not 0 <= options.root < min(options.ranks):
        parser.error(f"--root {options.root}: there are {min(options.ranks)} ranks")
    quick = options.quick
    for name, fast, slow in (("factor", 8, 4), ("rounds", 3, 5), ("seconds", 0.02, 0.2)):
        if getattr(options, name) is None:
            setattr(options, name, fast if quick else slow)
    if options.factor < 2 or options.rounds < 1:
        parser.error("--factor is at least 2, --rounds at least 1")
    return options
