# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of a short call, counted by callgrind: they do not depend on what else the machine does."""

import json
import pathlib
import re
import shutil
import statistics
import tempfile

import beds
import launch

GROUP = 10  # calls that ibcoll_count_instructions counts together
BOUNDS = pathlib.Path(__file__).resolve().parents[1] / "measures/instruction_bounds.json"
TIMEOUT = 120
# Posting a request is part of a call over verbs, between two nodes that a device in memory joins.
PLACES = {"in a node": "2 ranks", "over verbs": "2 nodes, a device in memory",
          "over ucx": "2 nodes, UCX over TCP, without those of UCX and the C library",
          "through openmpi": "2 ranks, an MPI program through the component of Open MPI",
          "through mpich": "2 ranks, an MPI program of MPICH"}
NETWORKS = {"over verbs": ["--rdma-in-memory"], "over ucx": ["--net", "ucx", "-x", "UCX_TLS=tcp"]}
OWN = "/libibcoll"  # in the names of ibcoll's libraries
MPI_COUNT = launch.Program("perf/peers/mpi_count_instructions.cc", [])


def unavailable(programs, where):
    """What is missing for a count; empty: nothing."""
    lib = programs.parent / "lib"
    if shutil.which("valgrind") is None or not (programs / "ibcoll_count_instructions").exists():
        return "valgrind, with its headers when ibcoll is built"
    needed = {"over verbs": ("libibcoll_rdma_in_memory.so", "libibverbs"), "over ucx": ("libibcoll_ucx.so", "UCX"),
              "through openmpi": ("ibcoll/openmpi/mca_coll_ibcoll.so", "the headers of Open MPI"),
              "through mpich": ("libibcoll_pmpi_mpich.so", "the headers of MPICH")}
    file, headers = needed.get(where, ("", ""))
    return "" if (lib / file).exists() else f"{headers} when ibcoll is built"


def _counted(words_with, *options):
    """The texts that callgrind wrote for groups of calls: (collective, text). `words_with`: what starts the job, given the
    words that have a program counted, and a file where its ranks may meet."""
    with tempfile.TemporaryDirectory(prefix="ibcoll_instructions.") as folder:
        counted = ["valgrind", "--quiet", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={folder}/%p",
                   *options]
        launch.text_of(words_with(counted, f"{folder}/meeting"), TIMEOUT, "counting instructions: ", env=beds.Bed().environment())
        for file in pathlib.Path(folder).glob("[0-9]*"):
            text = file.read_text(encoding="ascii", errors="replace")
            if name := re.search(r"Client Request: (\w+)", text):
                yield name[1], text


def _of_ibcoll(programs, rank, collectives=(), launch_options=()):
    """For _counted: only this rank of two runs under callgrind."""
    def words_with(counted, meeting):
        command = [programs / "ibcoll_count_instructions", meeting, rank, *(name for name in collectives if name != "idle")]
        one, other = ([*counted * (number == rank), *command] for number in (0, 1))
        return [programs / "ibcoll_run", *launch_options, "-n", 1, *one, ":", "-n", 1, *other]
    return words_with


def _of_mpi(programs, rank, route):
    """For _counted: two ranks of a program of an MPI, through a route to ibcoll."""
    build = programs.parent
    program = launch.build_peer(launch.ROUTES[route], build / "peers", MPI_COUNT)
    return lambda counted, _: beds.Bed(through=route, build=build).command("through", 2, [*counted, program, rank])


def _all(text):
    return int(re.search(r"^totals: (\d+)", text, re.M)[1])


def _own(text):
    """Those of ibcoll's libraries. The line after calls= has the cost of what is called."""
    count, own, before = 0, False, ""
    for line in text.splitlines():
        if line.startswith("ob="):
            own = OWN in line
        elif own and line[:1] in "0123456789+-*" and line and not before.startswith("calls="):
            count += int(line.split()[1])
        before = line
    return count


def _medians(texts, count=_all):
    counts = {}
    for name, text in texts:
        counts.setdefault(name, []).append(count(text) / GROUP)
    return {name: statistics.median(groups) for name, groups in counts.items()}


def counts_of(programs, rank, where):
    """{collective: instructions of a call of this rank of two}, medians over groups of calls; rank 0 is the root. `where`:
    one of PLACES."""
    if where in NETWORKS:
        words = _of_ibcoll(programs, rank, bounds(where), [*NETWORKS[where], "--nodes", "2"])
    elif where == "in a node":
        words = _of_ibcoll(programs, rank)
    else:
        words = _of_mpi(programs, rank, where.split()[-1])
    if where == "over ucx":
        return _medians(_counted(words, "--compress-strings=no"), _own)
    return _medians(_counted(words))


def _passes(text):
    """Calls of ucp_worker_progress, in each of which UCX makes system calls."""
    return sum(int(calls) for calls in re.findall(r"^cfn=ucp_worker_progress\ncalls=(\d+)", text, re.M))


def passes_of_ucx(programs, rank):
    """{collective: passes over UCX of a call of this rank}"""
    where = "over ucx"
    words = _of_ibcoll(programs, rank, bounds(where), [*NETWORKS[where], "--nodes", "2"])
    return _medians(_counted(words, "--compress-strings=no"), _passes)


def _passed(text):
    file = ""
    for line in text.splitlines():
        if line.startswith("fl="):
            file = line[3:]
        elif line.startswith("fn=") and "runtime/" in file:
            yield file[file.index("runtime/"):], line[3:]


def walk_of(programs, collective):
    """{(file, function)} of runtime/ that a call of one rank of two passes through. A group of calls in which something was due
    that is not due in each call has more; the smallest counts. Where functions were inlined there are fewer."""
    groups = []
    for name, text in _counted(_of_ibcoll(programs, 1), "--compress-strings=no"):
        if name == collective:
            groups.append(set(_passed(text)))
    return min(groups, key=len)


def bounds(where):
    """{collective: (of the root, of the other rank)}"""
    return json.loads(BOUNDS.read_text(encoding="utf-8"))[where]
