# SPDX-License-Identifier: BSD-3-Clause
"""How perf/compare builds and starts the libraries: with the flags that a knowing user would give each."""

import contextlib
import csv
import dataclasses
import os
import pathlib
import platform
import shutil
import signal
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
CATALOG = "runtime/base/catalog.h"
DISTRIBUTIONS = "tools/oracle/distributions.h"
# Compared where nothing else is said.
USUAL = ["barrier", "bcast", "allgather", "allgatherv", "alltoall", "alltoallv", "allreduce"]
# A rank may leave these long before the last one has what it waits for: the slowest rank tells what they take.
SLOWEST = ["gather", "gatherv", "scatter", "scatterv", "reduce", "scan", "exscan"]
TITLES = {"ibcoll": "ibcoll", "before": "before", "openmpi": "Open MPI", "mpich": "MPICH", "through": "through"}
# How an MPI program gets to ibcoll: the MPI it is for.
ROUTES = {"openmpi": "openmpi", "pmpi": "openmpi", "mpich": "mpich"}
OWN = ["ibcoll", "before"]  # builds of ibcoll


@dataclasses.dataclass
class Program:
    """A program for an MPI library: its source, and the headers that it is built anew for."""
    source: str
    headers: list[str]


MPI_PERF = Program("perf/peers/mpi_perf.cc", [
    *[f"perf/peers/mpi_{name}.h" for name in ("case", "pairs", "arrivals")],
    *[f"perf/arrival/{name}.h" for name in ("figures", "link", "loop", "pattern", "prepare")],
    "perf/timed_loop.h", "perf/call_times.h", "perf/calls.h", CATALOG, DISTRIBUTIONS, "runtime/base/hash.h"])


def figure(collective, arrival=None):
    """The column that is compared. With a pattern of arrivals: from the last arrival to the last exit."""
    if arrival:
        return "t_last"
    return "t_max" if collective in SLOWEST else "t_avg"


class CompareError(Exception):
    """A text for the user."""


def cores():
    return len(os.sched_getaffinity(0))


def machine():
    """The processors and the kernel. Names of virtual processors say little, so family and model are there as well."""
    found = {}
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    kind = f", family {found['cpu family']} model {found['model']}" if {"cpu family", "model"} <= found.keys() else ""
    return f"{cores()} cores ({found.get('model name', platform.machine())}{kind}), Linux {platform.release()}"


def load():
    return f"load {os.getloadavg()[0]:.1f}"


def version(name, programs, through=None):
    """One line: what is compared."""
    if name == "through":
        return f"the program of {TITLES[ROUTES[through]]}, through {through} to ibcoll"
    own = name in OWN
    command = [programs[name].parent / "ibcoll_info", "-v"] if own else [f"mpirun.{name}", "--version"]
    lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    wanted = [line for line in lines if "ersion" in line or "(Open MPI)" in line or line.startswith("mpirun (")]
    return " ".join((wanted or lines or ["version unknown"])[0].split())


def libraries_for(ranks, wanted):
    """MPICH spins without yielding: with more ranks than cores a call takes as long as the scheduler's time slices, and
    a ratio to that would mean nothing."""
    if "through" in wanted and "openmpi" not in wanted and ranks > cores():
        return []
    return [name for name in wanted if name != "mpich" or ranks <= cores()]


def delivers(name, collective, calls):
    """False: what would be timed is not the collective. Persistent requests of MPICH 4.0.2 bring the data of their first
    start in all later ones, for these collectives."""
    return (name, calls) != ("mpich", "persistent") or collective not in ("gather", "scatter", "allgather")


def build_peer(name, directory, wanted=MPI_PERF):
    """Path of a program for one MPI, built anew where its sources are newer. Installs the MPI when it is missing."""
    compiler = f"mpicxx.{name}"
    if not shutil.which(compiler) or not shutil.which(f"mpirun.{name}"):
        subprocess.run([ROOT / "tools/install_packages", "peers"], check=False)
    if not shutil.which(compiler):
        raise CompareError(f"{compiler} is not installed, nor did tools/install_packages peers install it; "
                           f"install it, or leave it out with --libraries")
    directory.mkdir(parents=True, exist_ok=True)
    title = pathlib.Path(wanted.source).stem
    program = directory / f"{title}_{name}"
    newest = max((ROOT / source).stat().st_mtime for source in [wanted.source, *wanted.headers])
    if not program.exists() or program.stat().st_mtime < newest:
        command = [compiler, "-std=c++20", "-O2", "-I", ROOT, ROOT / wanted.source, "-o", program]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode != 0:
            raise CompareError(f"{TITLES[name]}: {title} does not build:\n{built.stderr}")
    return program


def find_program(name, build, through=None):
    """Path of the benchmark of one library; CompareError tells how to get it."""
    if name == "through":
        return build_peer(ROUTES[through], build / "peers")
    if name not in OWN:
        return build_peer(name, build / "peers")
    program = build / "bin/ibcoll_perf"
    if not program.exists():
        raise CompareError(f"{program} does not exist; build first: cmake --preset release && "
                           f"cmake --build build/release, or name another tree with --build")
    return program


def core_distance(build, ranks):
    """Nanoseconds between the cores of two ranks, as a list; empty where other things decide: other numbers of ranks."""
    program = build / "bin/ibcoll_core_distance"
    if ranks != 2 or cores() < 2 or not program.exists():
        return []
    try:
        done = subprocess.run([program], capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        raise CompareError(f"{program}: not done after 20 s; other work keeps the cores. Use an idle machine") from None
    if done.returncode != 0:
        raise CompareError(f"{program}: {done.stderr.strip()}")
    return [float(done.stdout)]


def cpu_shares(nodes):
    """The CPUs of each of several nodes on this machine, as ibcoll_run shares them out; empty where that leaves
    something over."""
    cpus = sorted(os.sched_getaffinity(0))
    if nodes % len(cpus) != 0 and len(cpus) % nodes != 0:
        return []
    count = max(1, len(cpus) // nodes)
    return [cpus[node * count % len(cpus):][:count] for node in range(nodes)]


@contextlib.contextmanager
def signals_deferred():
    """A signal that ends this program takes effect at the end of the block: what is started there is known by then."""
    come = []
    ending = [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
              if signal.getsignal(number) is not signal.SIG_IGN]
    kept = {number: signal.signal(number, lambda number, _: come.append(number)) for number in ending}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        for number in come:
            signal.raise_signal(number)


def end(process, seconds=10):
    """Ends a process, TERM first, after which it has `seconds`: it ends what it has started, which lives in process groups
    of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=seconds)
            return


def status_of(command):
    """Exit status of a measuring program, which prints by itself. It ends when this one does, and removes what it has made,
    such as the nodes of perf/cluster."""
    process = None
    try:
        with signals_deferred():
            process = subprocess.Popen([str(word) for word in command], start_new_session=True)
        return process.wait()
    except BaseException:  # Ctrl-C does not reach a session of its own
        if process:
            end(process, seconds=180)
        raise


def text_of(command, timeout, title="", accepted=(0,), refused=None, **more):
    """What a command prints; a CompareError has the program's own words. `accepted`: exit statuses with which that counts.
    `refused`: words in its standard error with which it does not. `more`: as subprocess.Popen has it. It ends when this
    program does."""
    command = [str(word) for word in command]
    said = title + " ".join(command)
    process = None
    try:
        with signals_deferred():
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                       text=True, start_new_session=True, **more)
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        raise CompareError(f"{said}: not done after {timeout} s") from None
    except BaseException:  # Ctrl-C does not reach a session of its own
        if process:
            end(process)
        raise
    if refused and refused in err:
        raise CompareError(f"{said}: {err[err.index(refused):].strip()[:2000]}")
    if process.returncode not in accepted:
        raise CompareError(f"{said}: exit status {process.returncode}\n{err.strip()[-2000:]}")
    return out


def output(name, program, ranks, bed, words, timeout, accepted=(0,), settings=None):
    """What one launch on a beds.Bed prints. `settings`: more variables of its environment."""
    refused = "cannot use ibcoll" if name == "through" else None  # the program goes on, in the MPI alone
    return text_of(bed.command(name, ranks, [program] + words), timeout, f"{TITLES[name]}: ", accepted, refused,
                   env={**bed.environment(), **(settings or {})})


def table(name, program, ranks, bed, words, timeout, accepted=(0,), first="collective", settings=None):
    """Rows of one launch of a program that prints CSV, as it prints them. `first`: the first column."""
    out = output(name, program, ranks, bed, words, timeout, accepted, settings)
    said = f"{TITLES[name]}, {ranks} ranks, {' '.join(map(str, words))}"
    lines = out.splitlines()
    header = next((i for i, line in enumerate(lines) if line.startswith(f"{first},")), None)
    if header is None:
        raise CompareError(f"{said}: printed no table:\n{out[-500:]}")
    return list(csv.DictReader(lines[header:]))


def run(name, program, ranks, bed, words, timeout, arrival=None):
    """{bytes: (microseconds, algorithm, row)} of one launch."""
    rows = {}
    for row in table(name, program, ranks, bed, words + (["--arrival", arrival] if arrival else []), timeout):
        if not row["t_avg"]:
            raise CompareError(f"{TITLES[name]}: no time for {row['bytes']} bytes: {row.get('not_applicable')}")
        rows[int(row["bytes"])] = (float(row[figure(row["collective"], arrival)]), row["algorithm"], row)
    return rows


def message_cost(name, program, ranks, bed, timeout):
    """ALPHA:BETA of a message, for --message-cost: measured once, so that delays are the same in all libraries."""
    words = ["alltoall", "--bytes", "8:8", "--iterations", "1", "--format", "csv", "--arrival", "none"]
    row = table(name, program, ranks, bed, words, timeout)[0]
    return f"{row['alpha']}:{row['beta']}"
