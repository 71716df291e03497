// SPDX-License-Identifier: BSD-3-Clause
// The figures of a measurement with an arrival pattern, from the times at which each rank entered and left each call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "perf/call_times.h"
#include "runtime/base/catalog.h"

namespace ibcoll::perf {

// A message of m bytes takes alpha_us + beta_us m.
struct MessageCost {
  double alpha_us = 0, beta_us = 0;
  double of(double bytes) const noexcept { return alpha_us + beta_us * bytes; }
};

// The setting that the rows of one run have in common.
struct ArrivalSetting {
  bool sleeps = false;        // delays; else they spin
  bool one_clock = true;      // all ranks on one kernel
  double clock_error_us = 0;  // else: the largest error of an estimated offset
  int ranks = 1, nodes = 1;
};

struct ArrivalFigures {
  double last = 0;            // from the last arrival to the last exit, microseconds, median over calls
  double average_factor = 0;  // d-bar / T, mean over calls
  double worst_factor = 0;    // theta / T
  double bound = 0;           // what one late rank alone must still move, microseconds
  double message = 0;         // T
  MessageCost cost;
  ArrivalSetting setting;
};

// Bytes that the link of a rank's node, or the rank itself where there is one node, has to carry after the rank came
// when all others have finished among themselves. Alltoall: a block from and to each rank of other nodes, both
// directions at once. Other collectives that move blocks of all ranks: the late rank's block once to each other node;
// the rest: one buffer once.
inline double late_rank_bytes(const Collective& row, double bytes, const ArrivalSetting& setting) {
  const double ranks = setting.ranks, nodes = setting.nodes;
  if (!row.moves_data() || setting.ranks == 1) return 0;
  switch (row.id) {
    case IBCOLL_ALLTOALL:
    case IBCOLL_ALLTOALLV:
      return bytes * (setting.nodes > 1 ? ranks - std::ceil(ranks / nodes) : ranks - 1);
    case IBCOLL_ALLGATHER:
    case IBCOLL_ALLGATHERV:
      return bytes * (setting.nodes > 1 ? nodes - 1 : 1);
    default:
      return bytes;
  }
}

// `stamps`: arrival and exit of every call of rank 0, then of rank 1, ..., microseconds of one clock. Leaves the time
// in each call, in the same order, in `calls`.
inline ArrivalFigures arrival_figures(const std::vector<double>& stamps, size_t ranks, double message_us,
                                      std::vector<double>& calls) {
  ArrivalFigures figures;
  figures.message = message_us;
  calls.clear();
  if (ranks == 0 || stamps.size() < 2 * ranks) return figures;
  const size_t each = stamps.size() / ranks / 2;
  for (size_t i = 0; i < ranks * each; ++i) calls.push_back(stamps[2 * i + 1] - stamps[2 * i]);
  std::vector<double> after;
  double average = 0, worst = 0;
  for (size_t call = 0; call < each; ++call) {
    const auto arrived = [&](size_t rank) { return stamps[2 * (rank * each + call)]; };
    double first = arrived(0), last = first, left = stamps[2 * call + 1], mean = 0, distance = 0;
    for (size_t rank = 0; rank < ranks; ++rank) {
      first = std::min(first, arrived(rank));
      last = std::max(last, arrived(rank));
      left = std::max(left, stamps[2 * (rank * each + call) + 1]);
      mean += arrived(rank) / static_cast<double>(ranks);
    }
    for (size_t rank = 0; rank < ranks; ++rank) distance += std::abs(arrived(rank) - mean);
    average += distance / static_cast<double>(ranks);
    worst += last - first;
    after.push_back(left - last);
  }
  const auto middle = after.begin() + static_cast<std::ptrdiff_t>(after.size() / 2);
  std::nth_element(after.begin(), middle, after.end());
  figures.last = *middle;
  if (message_us > 0) {
    figures.average_factor = average / static_cast<double>(each) / message_us;
    figures.worst_factor = worst / static_cast<double>(each) / message_us;
  }
  return figures;
}

struct ArrivalColumn {
  const char* name;
  double (*value)(const ArrivalFigures&);
};
// The columns of all libraries; a column `delays`, sleep or spin, follows in CSV and JSON.
inline constexpr ArrivalColumn kArrivalColumns[] = {
    {"t_last", [](const ArrivalFigures& one) { return one.last; }},
    {"bound", [](const ArrivalFigures& one) { return one.bound; }},
    {"average_factor", [](const ArrivalFigures& one) { return one.average_factor; }},
    {"worst_factor", [](const ArrivalFigures& one) { return one.worst_factor; }},
    {"message", [](const ArrivalFigures& one) { return one.message; }},
    {"alpha", [](const ArrivalFigures& one) { return one.cost.alpha_us; }},
    {"beta", [](const ArrivalFigures& one) { return one.cost.beta_us; }},
    {"clock_error", [](const ArrivalFigures& one) { return one.setting.clock_error_us; }},
};
inline const char* delays_text(const ArrivalFigures& figures) { return figures.setting.sleeps ? "sleep" : "spin"; }

// Fields of CSV, each followed by a comma.
inline std::string arrival_csv_names() {
  std::string names;
  for (const ArrivalColumn& column : kArrivalColumns) names += std::string(column.name) + ",";
  return names + "delays,";
}
inline std::string arrival_csv_values(const ArrivalFigures& figures) {
  std::string values;
  for (const ArrivalColumn& column : kArrivalColumns) {
    char text[40];
    std::snprintf(text, sizeof text, "%.6g,", column.value(figures));
    values += text;
  }
  return values + delays_text(figures) + ",";
}

}  // namespace ibcoll::perf
