# SPDX-License-Identifier: BSD-3-Clause
"""shm_ring on a model of nodes with 32 ranks beside what the paper compares with: recursive doubling, Bruck, ring, and
gatherv with bcast."""

import simulated

LOCALS = 32
NODES = (2, 4, 8, 16, 32)
SIZES = (64, 1 << 10, 1 << 14, 1 << 17)  # data of a rank on the average
DISTRIBUTIONS = ("regular", "decreasing", "broadcast")
# A port takes ten million messages a second, as adapters do; with a gap of alpha 32 ranks that share one gain nothing.
MODEL = "--ports node --gap 0.1"
BRUCK_MEMORY = 1 << 28  # the scratch memory of all simulated ranks is real


def commands(distribution, size, nodes, options):
    p = LOCALS * nodes
    base = size * p if distribution == "broadcast" else size
    job = f"--ranks {p} --nodes {nodes} {MODEL} {options}"
    names = "shm_ring,ring,recursive_doubling" + (",bruck" if size * p * p <= BRUCK_MEMORY else "")
    return {"allgatherv": f"allgatherv {job} --distribution {distribution} --bytes {base} --algorithm {names}",
            "gatherv": f"gatherv {job} --distribution {distribution} --bytes {base} --algorithm shm_tree",
            "bcast": f"bcast {job} --bytes {size * p} --algorithm auto"}


def cells(distributions, nodes, options):
    keys = [(d, size, n) for d in distributions for size in SIZES for n in nodes]
    runs = simulated.run_all({(*key, name): command for key in keys
                              for name, command in commands(*key, options).items()})
    found = {}
    for key in keys:
        us = simulated.times(runs[(*key, "allgatherv")])
        us["gatherv_bcast"] = runs[(*key, "gatherv")][0]["time_us"] + runs[(*key, "bcast")][0]["time_us"]
        found[key] = us
    return found


def record(results, name, nodes, words):
    """Measures all cells and writes them down."""
    found = cells(DISTRIBUTIONS, nodes, words)
    names = ("shm_ring", "ring", "recursive_doubling", "bruck", "gatherv_bcast")
    results.write(name, [
        {"distribution": d, "bytes_of_rank": size, "nodes": n, **{f"{other}_us": us.get(other, "") for other in names}}
        for (d, size, n), us in found.items()])


def shm_ring(results, smallest):
    record(results, "shm_ring", NODES[:1] if smallest else NODES, "")


def without_copies(results, smallest):
    """The paper leaves the data in the window of the node: nothing is copied out."""
    record(results, "shm_ring_no_copies", NODES[:1] if smallest else (4, 16), "--copy-bandwidth 0")


MEASURES = {"shm_ring": shm_ring, "shm_ring_no_copies": without_copies}
