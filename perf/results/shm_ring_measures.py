# SPDX-License-Identifier: BSD-3-Clause
"""shm_ring on a model of nodes with 32 ranks beside what the paper compares with: recursive doubling, Bruck, ring, and
gatherv with bcast."""

import figures
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


WITHOUT_WINDOWS = {"ring": "ring", "recursive_doubling": "rd", "bruck": "Bruck"}


def ratios(us):
    """How many times longer the best one without windows takes than shm_ring, its name, and gatherv + bcast."""
    name = min((name for name in WITHOUT_WINDOWS if name in us), key=us.get)
    return f"{us[name] / us['shm_ring']:.2f} {WITHOUT_WINDOWS[name]} / {us['gatherv_bcast'] / us['shm_ring']:.2f}"


def ratio_lines(found, nodes):
    return [[f"`{d}`, {n} nodes"] + [ratios(found[d, size, n]) for size in SIZES] for d in DISTRIBUTIONS for n in nodes]


def recorded(place, name, nodes, words):
    """Measures all cells, writes them down and fills the table of this name."""
    found = cells(DISTRIBUTIONS, nodes, words)
    names = ("shm_ring", "ring", "recursive_doubling", "bruck", "gatherv_bcast")
    simulated.write_csv(place.data(name), [
        {"distribution": d, "bytes_of_rank": size, "nodes": n, **{f"{other}_us": us.get(other, "") for other in names}}
        for (d, size, n), us in found.items()])
    head = ["other / shm_ring"] + [f"{figures.size_text(size)} a rank" for size in SIZES]
    place.fill(name, figures.table(head, ratio_lines(found, nodes)))
    return found


def shm_ring(place):
    all_nodes = [n for n in NODES if n <= place.most_nodes]
    found = recorded(place, "shm_ring", all_nodes, "")
    for distribution in DISTRIBUTIONS:
        figures.chart(place.figure(f"shm_ring_{distribution}"), f"allgatherv shm_ring, 32 ranks a node, {distribution}",
                      "nodes", "ns per byte gathered",
                      {f"{figures.size_text(size)} a rank": [
                          (n, 1000 * found[distribution, size, n]["shm_ring"] / (size * LOCALS * n)) for n in all_nodes]
                       for size in SIZES})


def without_copies(place):
    """The paper leaves the data in the window of the node: nothing is copied out."""
    recorded(place, "shm_ring_no_copies", [n for n in (4, 16) if n <= place.most_nodes], "--copy-bandwidth 0")


MEASURES = {"shm_ring": shm_ring, "shm_ring_no_copies": without_copies}
