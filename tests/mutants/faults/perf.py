# SPDX-License-Identifier: BSD-3-Clause
"""ibcoll_perf and what verifies collectives."""

from .fault import PERF, UNIT, Fault

FAULTS = [
    Fault("guards_not_looked_at", "tools/oracle/call_case.cc",
          "if (found.bytes[i] == image_[i] || ignored[i]) continue;",
          "if (found.bytes[i] == image_[i] || ignored[i] || i < found.begin || i >= end) continue;",
          UNIT, "Oracle*"),
    Fault("guards_behind_not_looked_at", "tools/oracle/call_case.cc",
          "if (found.bytes[i] == image_[i] || ignored[i]) continue;",
          "if (found.bytes[i] == image_[i] || ignored[i] || i >= end) continue;",
          UNIT, "Oracle*"),
    Fault("every_round_has_the_same_data", "tools/oracle/call_case.cc",
          "      .add(round)\n", "      .add(round - round)\n",
          UNIT, "Oracle*"),
    Fault("barriers_not_checked", "perf/ibcoll_perf/checked_loop.cc",
          "2 * i + 1] < last_in) ++*errors;", "2 * i + 1] < 0) ++*errors;",
          PERF, "Broken.test_barriers_that_do_nothing_are_wrong"),
    Fault("nothing_is_verified", "perf/ibcoll_perf/checked_loop.cc",
          "  wrong += payload.verify();\n", "  wrong += most > 0 ? 0 : payload.verify();\n",
          PERF, "Broken.test_calls_that_do_nothing_are_wrong"),
    Fault("late_barriers_not_checked", "perf/ibcoll_perf/arrivals.cc",
          "+ at + 1] < last ? 1 : 0;", "+ at + 1] < 0 ? 1 : 0;",
          PERF, "Broken.test_barriers_that_do_nothing_are_wrong_when_ranks_are_late"),
    Fault("percentile_one_above", "perf/call_times.h",
          "(calls.size() * percent + 99) / 100 - 1;", "(calls.size() * percent) / 100;",
          UNIT, "CallTimes*:*Arrival*"),
    Fault("largest_mean_is_the_last", "perf/call_times.h",
          "std::max(times.t_max, mean)", "mean",
          UNIT, "CallTimes*:*Arrival*"),
    Fault("time_from_the_first_arrival", "perf/arrival/figures.h",
          "after.push_back(left - last);", "after.push_back(left - first);",
          UNIT, "CallTimes*:*Arrival*"),
    Fault("late_rank_sends_to_its_own_node", "perf/arrival/figures.h",
          "(setting.nodes > 1 ? nodes - 1 : 1)", "(setting.nodes > 1 ? nodes : 1)",
          UNIT, "CallTimes*:*Arrival*"),
]
