// SPDX-License-Identifier: BSD-3-Clause
// SimGrid's time-independent traces: what each rank does, without when. Computation is in operations of a host that does
// kSpeed of them a second. All collectives are those of the communicator of all ranks: SimGrid's replay knows no other.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "runtime/base/catalog.h"
#include "tools/ibcoll_trace/output.h"

namespace ibcoll::tracing {
namespace {

constexpr double kSpeed = 1e9;
constexpr uint64_t kElement = 8;  // bytes that a reduction combines by one operation

const Collective& row_of(const Record& r) {
  return *std::find_if(std::begin(kCatalog), std::end(kCatalog),
                       [&](const Collective& row) { return r.collective == row.name; });
}

using Parts = std::map<uint32_t, std::vector<const Record*>>;  // by number of the call, then by rank

// The blocks of all ranks.
std::string list_of(const std::vector<const Record*>& parts) {
  std::string text;
  for (const Record* const part : parts) text += fmt::format(" {}", part->bytes);
  return text;
}

std::string sizes(const std::vector<uint64_t>& counts) {
  std::string text;
  for (const uint64_t count : counts) text += fmt::format(" {}", count);
  return text;
}

const std::vector<uint64_t>& counts_of(const RankTrace& trace, const Record& r) { return trace.counts[r.counts]; }

// After the rank: "bcast 800 1".
std::string action_of(const std::vector<RankTrace>& traces, const RankTrace& trace, const Record& r,
                      const std::vector<const Record*>& parts) {
  const uint64_t b = r.bytes, all = b * static_cast<uint64_t>(r.team_ranks);
  switch (row_of(r).id) {
    case IBCOLL_BARRIER:
      return "barrier";
    case IBCOLL_BCAST:
      return fmt::format("bcast {} {}", b, r.root);
    case IBCOLL_ALLGATHER:
      return fmt::format("allgather {} {}", b, b);
    case IBCOLL_ALLGATHERV:
      return fmt::format("allgatherv {}{}", counts_of(trace, r)[static_cast<size_t>(trace.rank)],
                         sizes(counts_of(trace, r)));
    case IBCOLL_ALLTOALL:
      return fmt::format("alltoall {} {}", b, b);
    case IBCOLL_ALLTOALLV: {
      std::vector<uint64_t> received;
      uint64_t sends = 0, receives = 0;
      for (size_t peer = 0; peer < parts.size(); ++peer) {
        received.push_back(counts_of(traces[peer], *parts[peer])[static_cast<size_t>(trace.rank)]);
        sends += counts_of(trace, r)[peer], receives += received.back();
      }
      return fmt::format("alltoallv {}{} {}{}", sends, sizes(counts_of(trace, r)), receives, sizes(received));
    }
    case IBCOLL_ALLREDUCE:
      return fmt::format("allreduce {} {}", b, b / kElement);
    case IBCOLL_GATHER:
      return fmt::format("gather {} {} {}", b, b, r.root);
    case IBCOLL_GATHERV:
      return fmt::format("gatherv {}{} {}", b, list_of(parts), r.root);
    case IBCOLL_SCATTER:
      return fmt::format("scatter {} {} {}", b, b, r.root);
    case IBCOLL_SCATTERV:
      return fmt::format("scatterv{} {} {}", list_of(parts), b, r.root);
    case IBCOLL_REDUCE:
      return fmt::format("reduce {} {} {}", b, b / kElement, r.root);
    case IBCOLL_REDUCE_SCATTER:
      return fmt::format("reducescatter{} {}", sizes(counts_of(trace, r)), b / kElement);
    case IBCOLL_REDUCE_SCATTER_BLOCK:
      return fmt::format("reducescatter{} {}", sizes(std::vector<uint64_t>(static_cast<size_t>(r.team_ranks), b)),
                         all / kElement);
    case IBCOLL_SCAN:
      return fmt::format("scan {} {}", b, b / kElement);
    default:
      return fmt::format("exscan {} {}", b, b / kElement);
  }
}

bool has_lists(const Record& r) {
  const SizesKnown known = row_of(r).sizes;
  return (known != SizesKnown::kToAll && known != SizesKnown::kToPairs) || r.counts != Record::kNoCounts;
}

// Calls of all ranks, which all of them have.
Parts whole_calls(const std::vector<RankTrace>& traces, uint64_t& left_out) {
  std::map<std::pair<uint64_t, uint32_t>, std::vector<const Record*>> calls;
  for (const RankTrace& trace : traces)
    for (const Record& r : trace.records)
      if (!r.failed && has_lists(r)) calls[{r.team, r.op}].push_back(&r);
  // Several teams may have all ranks; SimGrid takes their calls as those of one.
  Parts whole;
  uint32_t number = 0;
  for (const auto& [key, parts] : calls) {
    if (parts.size() == traces.size())
      whole[number++] = parts;
    else
      ++left_out;
  }
  return whole;
}

}  // namespace

Result<std::string> write_time_independent(const std::vector<RankTrace>& traces, const std::string& folder) {
  for (const RankTrace& trace : traces)
    if (trace.version < 5)
      return error(IBCOLL_ERR_INVALID_ARGUMENT,
                   "{}: a trace of version {} has no roots and sizes for SimGrid; record it again", trace.path,
                   trace.version);
  uint64_t left_out = 0;
  const Parts whole = whole_calls(traces, left_out);
  std::map<const Record*, const std::vector<const Record*>*> parts_of;
  for (const auto& [number, parts] : whole)
    for (const Record* const part : parts) parts_of[part] = &parts;
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  std::string index;
  int64_t begin = INT64_MAX;
  for (const RankTrace& trace : traces)
    for (const Record& r : trace.records) begin = std::min(begin, r.arrival_ns);
  for (const RankTrace& trace : traces) {
    const std::string name = fmt::format("{}/rank{}.txt", folder, trace.rank);
    OutputFile file;
    if (const std::string why = file.open(name); !why.empty())
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "--ti: {}", why);
    file.write(fmt::format("{} init\n", trace.rank));
    int64_t clock = begin;
    for (const Record& r : trace.records) {
      const auto parts = parts_of.find(&r);
      if (parts == parts_of.end()) continue;
      const double seconds = static_cast<double>(std::max<int64_t>(0, r.arrival_ns - clock)) * 1e-9;
      if (seconds > 0) file.write(fmt::format("{} compute {:.0f}\n", trace.rank, seconds * kSpeed));
      file.write(fmt::format("{} {}\n", trace.rank, action_of(traces, trace, r, *parts->second)));
      clock = std::max(clock, r.exit_ns);
    }
    file.write(fmt::format("{} finalize\n", trace.rank));
    if (const std::string why = file.commit(); !why.empty()) return error(IBCOLL_ERR_SYSTEM, "--ti: {}", why);
    index += std::filesystem::absolute(name).string() + '\n';  // which SimGrid needs
  }
  OutputFile list;
  std::string why = list.open(folder + "/index");
  if (why.empty()) list.write(index), why = list.commit();
  if (!why.empty()) return error(IBCOLL_ERR_SYSTEM, "--ti: {}", why);
  if (left_out == 0) return std::string();
  return fmt::format(
      "--ti: {} calls are left out, which failed or are not of all ranks; the time in them counts as "
      "computation",
      left_out);
}

}  // namespace ibcoll::tracing
