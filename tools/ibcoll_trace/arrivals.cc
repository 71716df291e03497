// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "tools/ibcoll_trace/output.h"

namespace ibcoll::tracing {

void write_arrivals(const TracedJob& job, OutputFile& output) {
  output.write(fmt::format("# ibcoll arrivals 1 ranks {}\n", job.ranks));
  for (const Call& call : job.calls) {
    if (static_cast<int>(call.parts.size()) != job.ranks) continue;
    std::string text;
    const char* separator = "";
    for (const Part& part : call.parts) {
      text += fmt::format("{}{:.3f}", separator, static_cast<double>(part.arrival_ns - call.first_ns) / 1e3);
      separator = " ";
    }
    output.write(text + '\n');
  }
}

}  // namespace ibcoll::tracing
