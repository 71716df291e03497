# SPDX-License-Identifier: BSD-3-Clause
"""The pipelined ring beside the plain one, on a model of 30 single-ported nodes."""

import simulated

MODEL = "--alpha 2 --bandwidth 12.5 --ports node --copy-bandwidth 0"
TOTAL = 32 << 20
ONE_BLOCK = ("broadcast", "spike")  # their base is all data
DISTRIBUTIONS = ("broadcast", "spike", "half_full", "geometric", "decreasing", "regular")


def base(name):
    return TOTAL if name in ONE_BLOCK else 1 << 20


def speedups(results, _):
    """Six distributions at 32 MB, B = 1 MB and chosen."""
    runs = simulated.run_all({
        name: f"allgatherv --ranks 30 --distribution {name} --bytes {base(name)} {MODEL} "
              "--algorithm ring,ring_pipelined:1M,ring_pipelined" for name in DISTRIBUTIONS})
    results.write("ring", [
        {"distribution": name, "base_bytes": base(name), "ring_us": ring["time_us"], "pipelined_1m_us": fixed["time_us"],
         "chosen_block_bytes": int(chosen["algorithm"].split(":")[1]), "pipelined_us": chosen["time_us"]}
        for name, (ring, fixed, chosen) in runs.items()])


def sizes(results, smallest):
    """From 1 KB to 32 MB."""
    factor = 1024 if smallest else 2
    runs = simulated.run_all({
        name: f"allgatherv --ranks 30 --distribution {name} --bytes 1K:{base(name)} --factor {factor} {MODEL} "
              "--algorithm ring,ring_pipelined" for name in DISTRIBUTIONS})
    rows = []
    for name, found in runs.items():
        by_size = {}
        for row in found:
            by_size.setdefault(row["bytes"], {})[row["name"]] = row["time_us"]
        rows += [{"distribution": name, "base_bytes": size, "ring_us": cell["ring"],
                  "pipelined_us": cell["ring_pipelined"]} for size, cell in by_size.items()]
    results.write("ring_sizes", rows)


INSIDE = {"as between nodes: 2 us, 12.5 GB/s": "--node-alpha 2 --node-bandwidth 12.5",
          "default: 0.5 us, 10 GB/s": "", "0.1 us, 50 GB/s": "--node-alpha 0.1 --node-bandwidth 50"}
BLOCKS = [1 << bits for bits in range(14, 20)] + [3 << bits for bits in range(13, 18)]


def full_nodes(results, smallest):
    """8 ranks a node against one, for what messages inside a node may cost; B chosen, and the best of a list."""
    rows = []
    blocks = ",".join(f"ring_pipelined:{block}" for block in sorted(BLOCKS))
    problems = [("broadcast", TOTAL), ("spike", TOTAL), ("broadcast", 16 * TOTAL)]
    for name, total in problems[:1] if smallest else problems:
        common = f"allgatherv --distribution {name} --bytes {total} {MODEL}"
        names = f"ring_pipelined,{blocks}" if total == TOTAL and not smallest else "ring_pipelined"
        alone = simulated.run(f"{common} --ranks 30 --algorithm ring_pipelined")[0]["time_us"]
        runs = simulated.run_all({text: f"{common} --ranks 240 --nodes 30 {options} --algorithm {names}"
                                  for text, options in INSIDE.items()})
        for text, found in runs.items():
            chosen, best = found[0], min(found, key=lambda row: row["time_us"])
            rows.append({"distribution": name, "bytes": total, "inside": text, "one_rank_a_node_us": alone,
                         "chosen_us": chosen["time_us"], "best_us": best["time_us"],
                         "best_block_bytes": best["algorithm"].split(":")[1]})
    results.write("ring_nodes", rows)


MEASURES = {"ring": speedups, "ring_sizes": sizes, "ring_nodes": full_nodes}
