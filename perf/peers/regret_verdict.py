# SPDX-License-Identifier: BSD-3-Clause
"""How much longer a chosen algorithm takes than the best one of the registry: from times of all, in each repetition."""

import dataclasses
import math
import statistics

LIMIT = 1.1  # a choice that takes so many times as long as the best algorithm is a bad one
CHANCE = 0.05  # with which the interval of a ratio does not hold it


@dataclasses.dataclass
class Regret:
    """Of one algorithm in one cell: its time over that of the best one. The best one is the fastest of odd repetitions.
    Even repetitions give the ratios, so that luck of the best one does not count."""
    ratio: float
    low: float  # the interval of the median ratio
    high: float

    @property
    def bad(self):
        return self.low > LIMIT


def interval(values):
    """Where the median of what gives such values is: the order statistics that hold it with a probability of 1 - CHANCE."""
    ordered, count = sorted(values), len(values)
    outside, k = 0.0, 0
    while k < count // 2:
        outside += math.comb(count, k) / 2 ** count
        if 2 * outside > CHANCE:
            break
        k += 1
    k = max(k - 1, 0)
    return ordered[k], ordered[count - 1 - k]


def best(cell):
    """`cell`: the repetitions of each algorithm, {algorithm: [us]}."""
    return min(cell, key=lambda name: statistics.median(cell[name][1::2]))


def regret(cell, algorithm):
    ratios = [own / fastest for own, fastest in zip(cell[algorithm][::2], cell[best(cell)][::2])]
    return Regret(statistics.median(ratios), *interval(ratios))
