# SPDX-License-Identifier: BSD-3-Clause
"""Whether a performance guideline is violated: from the times of a call and of its mock-up in each repetition."""

import collections
import dataclasses
import math
import statistics

TOLERANCE = 1.05  # a call that takes up to this many times as long as its mock-up is no violation
CHANCE = 0.001  # nor is one that chance makes with more than this probability


@dataclasses.dataclass
class Verdict:
    guideline: str
    size: int  # bytes of a block
    call_us: float
    mock_up_us: float
    chance: float  # that calls as fast as mock-ups give such times
    real: bool  # a violation

    COLUMNS = ["guideline", "bytes", "call_us", "mock_up_us", "chance", "violated"]

    @property
    def ratio(self):
        return self.call_us / self.mock_up_us

    def row(self):
        return (self.guideline, self.size, f"{self.call_us:.3f}", f"{self.mock_up_us:.3f}", f"{self.chance:.2g}",
                "yes" if self.real else "no")

    def line(self):
        return (f"{self.guideline}, {self.size} bytes: {self.call_us:.2f} us, mock-up {self.mock_up_us:.2f} us "
                f"({self.ratio:.2f} times; chance {self.chance:.1g})")


def rank_sum(calls, mock_ups):
    """How probable times of calls as large as these are where calls take as long as mock-ups: the rank-sum test of Mann
    and Whitney (1947) by its normal approximation, which holds for 8 times on each side and more. Equal times share
    their ranks."""
    both = sorted([*calls, *mock_ups])
    first = {}
    for position, time in enumerate(both):
        first.setdefault(time, position)
    count = collections.Counter(both)
    ranks = sum(first[time] + (count[time] + 1) / 2 for time in calls)
    one, other, total = len(calls), len(mock_ups), len(both)
    ties = sum(equal ** 3 - equal for equal in count.values()) / (total * (total - 1))
    spread = math.sqrt(one * other / 12 * (total + 1 - ties))
    if spread == 0:  # all times are equal
        return 1.0
    return 1 - statistics.NormalDist().cdf((ranks - one * (total + 1) / 2 - 0.5) / spread)


def judge(guideline, size, runs):
    """`runs`: for each run its repetitions, as pairs of the call's and the mock-up's microseconds."""
    calls, mock_ups = zip(*[repetition for run in runs for repetition in run])
    call_us, mock_up_us = statistics.median(calls), statistics.median(mock_ups)
    in_each_run = all(statistics.median(call for call, _ in run) > TOLERANCE * statistics.median(mock for _, mock in run)
                      for run in runs)
    chance = rank_sum(calls, mock_ups)
    real = in_each_run and call_us > TOLERANCE * mock_up_us and chance < CHANCE
    return Verdict(guideline, size, call_us, mock_up_us, chance, real)
