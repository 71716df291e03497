// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_trace/served.h"

#include <fmt/format.h>

#include <algorithm>

namespace ibcoll::tracing {
namespace {

// Microseconds after the first arrival of the call.
double us(const Call& call, int64_t ns) { return static_cast<double>(ns - call.first_ns) / 1e3; }

// In the order of a moment; those without it are left out.
std::vector<const Served*> in_order(const Part& part, int64_t Served::*moment) {
  std::vector<const Served*> list;
  for (const Served& served : part.served)
    if (served.*moment != Served::kNever) list.push_back(&served);
  std::stable_sort(list.begin(), list.end(),
                   [moment](const Served* a, const Served* b) { return a->*moment < b->*moment; });
  return list;
}

std::string listed(const Call& call, const Part& part, int64_t Served::*moment) {
  std::string text;
  for (const Served* const served : in_order(part, moment))
    text +=
        fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", served->peer, us(call, part.arrival_ns + served->*moment));
  return text.empty() ? "-" : text;
}

// "1.2, waits for 3 from 1.5 to 90.1"
std::string in_node_text(const Call& call, const Part& part) {
  const InNode& node = part.in_node;
  if (node.empty()) return "-";
  std::string text;
  if (node.published_ns != Served::kNever) text = fmt::format("{:.1f}", us(call, part.arrival_ns + node.published_ns));
  if (node.waited_for >= 0)
    text += fmt::format("{}waits for {} from {:.1f} to {:.1f}", text.empty() ? "" : ", ", node.waited_for,
                        us(call, part.arrival_ns + node.from_ns), us(call, part.arrival_ns + node.until_ns));
  return text;
}

// A cell of a column, as wide as the longest one unless nothing follows.
std::string padded(const std::vector<std::string>& column, size_t line, bool last) {
  size_t width = 0;
  for (const std::string& cell : column) width = std::max(width, cell.size());
  return last ? column[line] : fmt::format("{:<{}}", column[line], width);
}

bool any_in_node(const Call& call) {
  return std::any_of(call.parts.begin(), call.parts.end(), [](const Part& part) { return !part.in_node.empty(); });
}

std::vector<const Part*> by_arrival(const Call& call) {
  std::vector<const Part*> parts;
  for (const Part& part : call.parts) parts.push_back(&part);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part* a, const Part* b) { return a->arrival_ns < b->arrival_ns; });
  return parts;
}

// Pairs of peers that one rank served one after the other, and those of them that had arrived the other way round.
struct Pairs {
  uint64_t all = 0, reversed = 0;
};

Pairs pairs_of(const Call& call) {
  const auto arrival = [&](int rank) {
    const auto found =
        std::find_if(call.parts.begin(), call.parts.end(), [rank](const Part& p) { return p.rank == rank; });
    return found == call.parts.end() ? call.first_ns : found->arrival_ns;
  };
  Pairs pairs;
  for (const Part& part : call.parts) {
    const std::vector<const Served*> order = in_order(part, &Served::begun_ns);
    for (size_t later = 1; later < order.size(); ++later)
      for (size_t sooner = 0; sooner < later; ++sooner) {
        ++pairs.all;
        pairs.reversed += arrival(order[sooner]->peer) > arrival(order[later]->peer);
      }
  }
  return pairs;
}

}  // namespace

std::vector<const Call*> furthest_apart(const TracedJob& job, size_t most) {
  std::vector<const Call*> calls;
  for (const Call& call : job.calls)
    if (any_in_node(call) ||
        std::any_of(call.parts.begin(), call.parts.end(), [](const Part& part) { return !part.served.empty(); }))
      calls.push_back(&call);
  const auto spread = [](const Call* call) { return call->last_ns - call->first_ns; };
  std::stable_sort(calls.begin(), calls.end(), [&](const Call* a, const Call* b) { return spread(a) > spread(b); });
  calls.resize(std::min(calls.size(), most));
  std::stable_sort(calls.begin(), calls.end(), [](const Call* a, const Call* b) { return a->first_ns < b->first_ns; });
  return calls;
}

std::string served_text(const Call& call) {
  const Pairs pairs = pairs_of(call);
  std::string text = fmt::format("\n{} of {:.0f} bytes ({}), call {} of team {:x}, {}\n", call.collective,
                                 call.mean_bytes, call.algorithm, call.op, call.team, call.site.text);
  text +=
      fmt::format("us after the first arrival; {} of {} pairs of peers were served against their order of arrival\n",
                  pairs.reversed, pairs.all);
  std::vector<std::vector<std::string>> columns = {{"serves"}, {"gets from"}};
  if (any_in_node(call)) columns.push_back({"publishes in its node"});
  const std::vector<const Part*> parts = by_arrival(call);
  for (const Part* const part : parts) {
    columns[0].push_back(listed(call, *part, &Served::begun_ns));
    columns[1].push_back(listed(call, *part, &Served::landed_ns));
    if (columns.size() > 2) columns[2].push_back(in_node_text(call, *part));
  }
  for (size_t line = 0; line <= parts.size(); ++line) {
    text += line == 0 ? fmt::format("{:>5} {:>10}", "rank", "arrived")
                      : fmt::format("{:>5} {:>10.1f}", parts[line - 1]->rank, us(call, parts[line - 1]->arrival_ns));
    for (const std::vector<std::string>& column : columns)
      text += "  " + padded(column, line, &column == &columns.back());
    text += '\n';
  }
  return text;
}

nlohmann::ordered_json served_json(const Call& call) {
  const auto moment = [&](const Part& part, int64_t ns) {
    return ns == Served::kNever ? nlohmann::ordered_json() : nlohmann::ordered_json(us(call, part.arrival_ns + ns));
  };
  const Pairs pairs = pairs_of(call);
  nlohmann::ordered_json one = {{"collective", call.collective},
                                {"algorithm", call.algorithm},
                                {"site", call.site.text},
                                {"team", fmt::format("{:x}", call.team)},
                                {"call", call.op},
                                {"bytes", call.mean_bytes},
                                {"pairs", pairs.all},
                                {"reversed", pairs.reversed}};
  for (const Part* const part : by_arrival(call)) {
    nlohmann::ordered_json rank = {
        {"rank", part->rank}, {"arrival_us", us(call, part->arrival_ns)}, {"peers", nlohmann::ordered_json::array()}};
    for (const Served* const served : in_order(*part, &Served::begun_ns))
      rank["peers"].push_back({{"rank", served->peer},
                               {"begun_us", moment(*part, served->begun_ns)},
                               {"sent_us", moment(*part, served->sent_ns)},
                               {"landed_us", moment(*part, served->landed_ns)}});
    for (const Served& served : part->served)
      if (served.begun_ns == Served::kNever)
        rank["peers"].push_back({{"rank", served.peer}, {"landed_us", moment(*part, served.landed_ns)}});
    if (const InNode& node = part->in_node; !node.empty())
      rank["in_node"] = {
          {"published_us", moment(*part, node.published_ns)},
          {"waits_for", node.waited_for < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(node.waited_for)},
          {"from_us", moment(*part, node.from_ns)},
          {"until_us", moment(*part, node.until_ns)}};
    one["ranks"].push_back(std::move(rank));
  }
  return one;
}

}  // namespace ibcoll::tracing
