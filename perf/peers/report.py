# SPDX-License-Identifier: BSD-3-Clause
"""What perf/compare prints: one row per collective and size, geometric means, and where ibcoll is the slower one."""

import csv
import io
import math
import statistics

import output
from launch import TITLES, figure


def geometric_mean(values):
    return math.exp(sum(math.log(value) for value in values) / len(values)) if values else float("nan")


def write_csv(path, columns, rows):
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    table.writerows(rows)
    output.write(path, text.getvalue())


def size_text(count):
    for unit, name in ((1 << 20, "M"), (1 << 10, "K")):
        if count >= unit and count % unit == 0:
            return f"{count // unit}{name}"
    return str(count)


class Cell:
    """One collective at one size on one number of ranks: microseconds of each library in each round."""

    def __init__(self, ranks, collective, size, arrival=None):
        self.ranks, self.collective, self.size = ranks, collective, size
        self.figure = figure(collective, arrival)
        self.mean_times, self.bounds = {}, []  # with a pattern of arrivals: as `times`, mean time in the call
        self.p50 = {}  # as `times`: the median call of a round
        self.times = {}  # library -> list of t_avg, one per round
        self.algorithm = ""

    def median(self, library):
        return statistics.median(self.times[library])

    def add(self, library, time_us, row):
        self.times.setdefault(library, []).append(time_us)
        if row.get("p50"):
            self.p50.setdefault(library, []).append(float(row["p50"]))
        if self.figure == "t_last":
            self.mean_times.setdefault(library, []).append(float(row["t_avg"]))
            self.bounds.append(float(row["bound"]))

    def bound(self):
        return statistics.median(self.bounds)

    def peers(self):
        return [name for name in self.times if name not in ("ibcoll", "through")]

    def ratio(self):
        """How many times longer the faster peer takes; None without ibcoll or without peers."""
        if "ibcoll" not in self.times or not self.peers():
            return None
        return min(self.median(peer) for peer in self.peers()) / self.median("ibcoll")

    def ratio_of_p50(self):
        """As ratio(), of the median calls; None where some have none."""
        if self.ratio() is None or not {"ibcoll", *self.peers()} <= self.p50.keys():
            return None
        return min(statistics.median(self.p50[peer]) for peer in self.peers()) / statistics.median(self.p50["ibcoll"])

    def ratios(self):
        """The same, round by round."""
        rounds = zip(*[self.times[peer] for peer in self.peers()])
        return [min(peers) / own for peers, own in zip(rounds, self.times["ibcoll"])]

    def gain(self):
        """How many times longer the MPI takes than its program through ibcoll; None where that was not run."""
        if "through" not in self.times or not self.peers():
            return None
        alone, = self.peers()
        return self.median(alone) / self.median("through")

    def gains(self):
        """The same, round by round."""
        alone, = self.peers()
        return [peer / own for peer, own in zip(self.times[alone], self.times["through"])]

    def kept(self):
        """Which part of ibcoll's own advantage the program has."""
        return None if self.gain() is None or self.ratio() is None else self.gain() / self.ratio()

    def as_json(self):
        arrival = {"mean_times_us": self.mean_times, "bound_us": self.bound()} if self.bounds else {}
        return {"ranks": self.ranks, "collective": self.collective, "bytes": self.size, "algorithm": self.algorithm,
                "figure": self.figure, "times_us": self.times, "p50_us": self.p50, "ratio": self.ratio(),
                "ratios": None if self.ratio() is None else self.ratios(), "gain": self.gain(),
                "gains": None if self.gain() is None else self.gains(), "kept": self.kept(), **arrival}


def distance_line(distances):
    """Whether the host has kept the cores where they were: times of two ranks compare only where it has."""
    far = sum(distance > 1.5 * min(distances) for distance in distances)
    return (f"a cache line takes {statistics.median(distances):.0f} ns from core to core ({min(distances):.0f}.."
            f"{max(distances):.0f}); before {far} of {len(distances)} groups of launches over 1.5 times the least")


def name_width(collectives):
    return max([10, *map(len, collectives)]) + 1


def table(cells, libraries):
    """Lines of the table for one number of ranks."""
    width = name_width(cell.collective for cell in cells)
    head = f"{'collective':<{width}}{'bytes':>6}" + "".join(f"{TITLES[name] + ' us':>13}" for name in libraries)
    lines = [head + f"{'ratio':>8}  {'min..max':<13}"]
    bounded = any(cell.bounds for cell in cells)
    lines[0] += f"{'bound us':<11}algorithm" if bounded else "algorithm"
    through = "through" in libraries
    lines[0] = lines[0].replace("algorithm", f"{'gain':>8}{'kept':>6} algorithm") if through else lines[0]
    for cell in cells:
        line = f"{cell.collective:<{width}}{size_text(cell.size):>6}"
        for name in libraries:
            line += f"{cell.median(name):>13.2f}" if name in cell.times else f"{'-':>13}"
        ratio = cell.ratio()
        if ratio is not None:
            spread = cell.ratios()
            line += f"{ratio:>8.2f}  {f'{min(spread):.2f}..{max(spread):.2f}':<13}"
            line += f"{cell.bound():<11.2f}" if cell.bounds else ""
            line += f"{cell.gain():>8.2f}{cell.kept():>6.2f} " if cell.kept() is not None else ""
            line += cell.algorithm
        lines.append(line)
    return lines


def through_summary(rated):
    kept = sorted((cell for cell in rated if cell.kept() is not None), key=Cell.kept)
    if not kept:
        return []
    lines = [f"through ibcoll: {geometric_mean([cell.gain() for cell in kept]):.2f} times faster than the MPI alone "
             f"(geometric mean), {geometric_mean([cell.kept() for cell in kept]):.2f} of ibcoll's own advantage",
             f"cells with less than 0.9 of it: {sum(cell.kept() < 0.9 for cell in kept) or 'none'} (of {len(kept)})"]
    return lines + [f"  {cell.kept():.2f}  {cell.collective} {size_text(cell.size)}" for cell in kept if cell.kept() < 0.9]


def summary(cells, collectives):
    """Geometric means and the cells below 1, for one number of ranks."""
    rated = [cell for cell in cells if cell.ratio() is not None]
    if not rated:
        return []
    width = name_width(collectives)
    lines = ["", "geometric mean of the ratio to the faster peer:"]
    for collective in collectives:
        values = [cell.ratio() for cell in rated if cell.collective == collective]
        if values:
            lines.append(f"  {collective:<{width}}{geometric_mean(values):6.2f}")
    means = [geometric_mean(ratios) for ratios in zip(*[cell.ratios() for cell in rated])]
    lines.append(f"  {'all':<{width}}{geometric_mean([cell.ratio() for cell in rated]):6.2f}  "
                 f"{min(means):.2f}..{max(means):.2f} from round to round")
    by_p50 = [cell.ratio_of_p50() for cell in rated]
    if None not in by_p50:
        lines.append(f"  {'by p50':<{width}}{geometric_mean(by_p50):6.2f}")
    lines += through_summary(rated)
    below = sorted((cell for cell in rated if round(cell.ratio(), 2) < 1), key=Cell.ratio)
    lines.append(f"cells below 1: {len(below) or 'none'} (of {len(rated)})")
    lines += [f"  {cell.ratio():.2f}  {cell.collective} {size_text(cell.size)}" for cell in below]
    return lines
