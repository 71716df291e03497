# SPDX-License-Identifier: BSD-3-Clause
"""The pipelined ring beside the plain one, on a model of 30 single-ported nodes."""

import figures
import simulated

MODEL = "--alpha 2 --bandwidth 12.5 --ports node --copy-bandwidth 0"
TOTAL = 32 << 20
ONE_BLOCK = ("broadcast", "spike")  # their base is all data
DISTRIBUTIONS = ("broadcast", "spike", "half_full", "geometric", "decreasing", "regular")


def base(name):
    return TOTAL if name in ONE_BLOCK else 1 << 20


def speedups(place):
    """Six distributions at 32 MB, B = 1 MB and chosen."""
    runs = simulated.run_all({
        name: f"allgatherv --ranks 30 --distribution {name} --bytes {base(name)} {MODEL} "
              "--algorithm ring,ring_pipelined:1M,ring_pipelined" for name in DISTRIBUTIONS})
    rows, lines = [], []
    for name, (ring, fixed, chosen) in runs.items():
        block = int(chosen["algorithm"].split(":")[1])
        rows.append({"distribution": name, "base_bytes": base(name), "ring_us": ring["time_us"],
                     "pipelined_1m_us": fixed["time_us"], "chosen_block": block, "pipelined_us": chosen["time_us"]})
        lines.append([f"`{name}`", f"{ring['time_us']:.0f}", f"{fixed['time_us']:.0f}",
                      f"{ring['time_us'] / fixed['time_us']:.2f}", f"{chosen['time_us']:.0f}", block,
                      f"{ring['time_us'] / chosen['time_us']:.2f}"])
    simulated.write_csv(place.data("ring"), rows)
    head = ["distribution", "ring us", "B = 1 MB us", "times faster", "chosen B us", "B", "times faster"]
    place.fill("ring", figures.table(head, lines))


def sizes(place):
    """How much faster from 1 KB to 32 MB, as a figure."""
    runs = simulated.run_all({
        name: f"allgatherv --ranks 30 --distribution {name} --bytes 1K:{base(name)} --factor 2 {MODEL} "
              "--algorithm ring,ring_pipelined" for name in DISTRIBUTIONS})
    rows, lines = [], {}
    for name, found in runs.items():
        by_size = {}
        for row in found:
            by_size.setdefault(row["bytes"], {})[row["name"]] = row["time_us"]
        lines[name] = [(size, cell["ring"] / cell["ring_pipelined"]) for size, cell in by_size.items()]
        rows += [{"distribution": name, "base_bytes": size, "ring_us": cell["ring"],
                  "pipelined_us": cell["ring_pipelined"]} for size, cell in by_size.items()]
    simulated.write_csv(place.data("ring_sizes"), rows)
    figures.chart(place.figure("ring_sizes"), "allgatherv, 30 nodes: pipelined ring against ring", "base size c, bytes",
                  "times faster", lines, logarithmic="xy")


INSIDE = {"as between nodes: 2 us, 12.5 GB/s": "--node-alpha 2 --node-bandwidth 12.5",
          "default: 0.5 us, 10 GB/s": "", "0.1 us, 50 GB/s": "--node-alpha 0.1 --node-bandwidth 50"}
BLOCKS = [1 << bits for bits in range(14, 20)] + [3 << bits for bits in range(13, 18)]


def full_nodes(place):
    """8 ranks a node against one, for what messages inside a node may cost; B chosen, and the best of a list."""
    rows, lines = [], []
    blocks = ",".join(f"ring_pipelined:{block}" for block in sorted(BLOCKS))
    for name, total in (("broadcast", TOTAL), ("spike", TOTAL), ("broadcast", 16 * TOTAL)):
        common = f"allgatherv --distribution {name} --bytes {total} {MODEL}"
        names = f"ring_pipelined,{blocks}" if total == TOTAL else "ring_pipelined"
        alone = simulated.run(f"{common} --ranks 30 --algorithm ring_pipelined")[0]["time_us"]
        runs = simulated.run_all({text: f"{common} --ranks 240 --nodes 30 {options} --algorithm {names}"
                                  for text, options in INSIDE.items()})
        for text, found in runs.items():
            chosen, best = found[0], min(found, key=lambda row: row["time_us"])
            rows.append({"distribution": name, "bytes": total, "inside": text, "one_rank_a_node_us": alone,
                         "chosen_us": chosen["time_us"], "best_us": best["time_us"],
                         "best_block": best["algorithm"].split(":")[1]})
            lines.append([f"`{name}` {figures.size_text(total)}, {text}", f"{alone:.0f}", f"{chosen['time_us']:.0f}",
                          f"{100 * (chosen['time_us'] / alone - 1):.0f} %",
                          f"{100 * (best['time_us'] / alone - 1):.0f} %"])
    simulated.write_csv(place.data("ring_nodes"), rows)
    head = ["messages inside a node", "1 rank a node us", "8 us", "longer", "with the best B of a list"]
    place.fill("ring_nodes", figures.table(head, lines))


MEASURES = {"ring": speedups, "ring_sizes": sizes, "ring_nodes": full_nodes}
