// SPDX-License-Identifier: BSD-3-Clause
// Measurements made once, before the first row of --arrival: clocks, cores, and the cost of a message.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "perf/arrival/figures.h"
#include "perf/arrival/link.h"
#include "perf/arrival/pattern.h"

namespace ibcoll::perf {

// The same on all ranks of one kernel, whose monotonic clock and cores they share.
inline double kernel_identity() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  return static_cast<double>(std::hash<std::string>{}(boot_id) >> 14);  // 50 bits: exact
}

// Parses the value of --message-cost: ALPHA:BETA, microseconds and microseconds per byte. "" or what is wrong.
inline std::string parse_message_cost(const std::string& text, std::optional<MessageCost>& cost) {
  MessageCost read;
  const size_t colon = text.find(':');
  if (colon == std::string::npos || !arrival::number(std::string_view(text).substr(0, colon), 0, 1e6, read.alpha_us) ||
      !arrival::number(std::string_view(text).substr(colon + 1), 0, 1e6, read.beta_us))
    return "'" + text + "': ALPHA:BETA is expected, microseconds and microseconds per byte; try 20:0.008";
  cost = read;
  return {};
}

struct ArrivalBed {
  ArrivalSetting setting;
  MessageCost cost;
  bool cost_given = false;
  double offset_us = 0;  // from this rank's clock to the common one
};

// Collective. `Pairs` as in link.h, and `bool gather_everywhere(double mine, std::vector<double>& all)`.
template <typename Pairs>
bool prepare_arrivals(Pairs& pairs, int nodes, const std::optional<MessageCost>& given, ArrivalBed& bed) {
  const double mine = kernel_identity();
  std::vector<double> kernels;
  if (!pairs.gather_everywhere(mine, kernels)) return false;
  const auto here = std::count(kernels.begin(), kernels.end(), mine);
  double crowded = here > sysconf(_SC_NPROCESSORS_ONLN) ? 1 : 0;
  if (!pairs.largest(crowded)) return false;
  bed.setting.sleeps = crowded > 0;
  bed.setting.ranks = pairs.size();
  bed.setting.nodes = nodes;
  std::vector<bool> apart;
  for (const double kernel : kernels) apart.push_back(kernel != kernels[0]);
  bed.setting.one_clock = std::find(apart.begin(), apart.end(), true) == apart.end();
  if (!clock_offset(pairs, apart, bed.offset_us, bed.setting.clock_error_us)) return false;
  bed.cost_given = given.has_value();
  if (!given) return message_cost(pairs, bed.cost);
  bed.cost = *given;
  return true;
}

// T: one message of the collective's size. As --message-cost says, else measured.
template <typename Pairs>
bool payload_time(Pairs& pairs, const ArrivalBed& bed, uint64_t bytes, double& microseconds) {
  if (!bed.cost_given)
    return message_time(pairs, std::max<uint64_t>(bytes, 1), bytes > (1 << 16) ? 7 : 30, microseconds);
  microseconds = bed.cost.of(static_cast<double>(bytes));
  return true;
}

inline std::string arrival_heading(const std::string& pattern, const ArrivalBed& bed) {
  char text[400];
  std::snprintf(text, sizeof text,
                "# arrival %s: delays %s; %s (clock error %.1f us); a message of m bytes takes %.2f us + m %.6f us%s\n",
                pattern.c_str(), bed.setting.sleeps ? "sleep, as ranks outnumber cores" : "spin",
                bed.setting.one_clock ? "one clock" : "clocks of several machines, offsets estimated",
                bed.setting.clock_error_us, bed.cost.alpha_us, bed.cost.beta_us,
                bed.cost_given ? " (given)" : " (measured)");
  return text;
}

}  // namespace ibcoll::perf
