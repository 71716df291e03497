// SPDX-License-Identifier: BSD-3-Clause
#include "tools/traces/page_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace ibcoll::tracing {
namespace {

using Json = nlohmann::ordered_json;

double us_since(int64_t begin, int64_t ns) { return static_cast<double>(ns - begin) / 1e3; }

// A moment of a part; null: never.
Json moment(const Part& part, int64_t begin, int64_t ns) {
  return ns == Served::kNever ? Json() : Json(us_since(begin, part.arrival_ns + ns));
}

// [peer, begun, sent, landed] of each peer
Json served(const Part& part, int64_t begin) {
  Json all = Json::array();
  for (const Served& peer : part.served)
    all.push_back(Json::array({peer.peer, moment(part, begin, peer.begun_ns), moment(part, begin, peer.sent_ns),
                               moment(part, begin, peer.landed_ns)}));
  return all;
}

// [published, awaited rank, from, until]; null: nothing in shared memory.
Json in_node(const Part& part, int64_t begin) {
  const InNode& node = part.in_node;
  if (node.empty()) return {};
  return Json::array({moment(part, begin, node.published_ns), node.waited_for >= 0 ? Json(node.waited_for) : Json(),
                      moment(part, begin, node.from_ns), moment(part, begin, node.until_ns)});
}

Json call_json(const PageCall& shown, size_t site, int64_t begin) {
  const Call& call = *shown.call;
  Json one = {{"name", call.collective},  {"algorithm", call.algorithm}, {"site", site},
              {"bytes", call.mean_bytes}, {"late", call.late},           {"last", us_since(begin, call.last_ns)},
              {"served", Json::array()}};
  for (const Part& part : call.parts) {
    one["rank"].push_back(part.rank);
    one["arrival"].push_back(us_since(begin, part.arrival_ns));
    one["exit"].push_back(us_since(begin, part.exit_ns));
    if (shown.messages) one["served"].push_back(served(part, begin));
    one["node"].push_back(in_node(part, begin));
  }
  return one;
}

// A name must not end the script.
std::string script_text(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('<', at)) != std::string::npos;) text.replace(at, 1, "\\u003c");
  return text;
}

size_t messages_of(const Call& call) {
  size_t messages = 0;
  for (const Part& part : call.parts) messages += part.served.size();
  return messages;
}

}  // namespace

std::vector<PageCall> page_calls(const TracedJob& job) {
  std::vector<PageCall> calls;
  for (const Call& call : job.calls) calls.push_back({&call});
  const auto spread = [](const PageCall& one) { return one.call->last_ns - one.call->first_ns; };
  std::stable_sort(calls.begin(), calls.end(),
                   [&](const PageCall& a, const PageCall& b) { return spread(a) > spread(b); });
  size_t bars = 0, messages = 0, taken = 0;
  for (; taken < calls.size(); ++taken) {
    PageCall& one = calls[taken];
    bars += one.call->parts.size();
    if (bars > kMostBars && taken > 0) break;
    const size_t own = messages_of(*one.call);
    one.messages = messages + own <= kMostMessages;
    messages += one.messages ? own : 0;
  }
  calls.resize(taken);
  std::sort(calls.begin(), calls.end(), [](const PageCall& a, const PageCall& b) { return a.call < b.call; });
  return calls;
}

std::string left_out(const TracedJob& job, const std::vector<PageCall>& shown) {
  const auto bare = std::count_if(shown.begin(), shown.end(), [](const PageCall& one) { return !one.messages; });
  std::string text;
  if (shown.size() < job.calls.size())
    text += fmt::format(
        "The time line shows {} of {} calls, those whose ranks arrived furthest apart: a page has room for {} bars. "
        "Trace fewer calls (IBCOLL_TRACE_CALLS) to see each one. ",
        shown.size(), job.calls.size(), kMostBars);
  if (bare > 0)
    text += fmt::format("{} of its calls are without messages: a page has room for {}. ", bare, kMostMessages);
  if (!text.empty()) text.pop_back();
  return text;
}

void write_calls(const TracedJob& job, const std::vector<PageCall>& shown, double least_us, const Writer& write) {
  std::map<std::string, size_t> sites;
  Json texts = Json::array();
  for (const PageCall& one : shown)
    if (sites.emplace(one.call->site.text, sites.size()).second) texts.push_back(one.call->site.text);
  write(
      fmt::format("{{\"ranks\":{},\"least\":{:.3f},\"sites\":{},\"calls\":[", job.ranks, least_us, script_text(texts)));
  for (const PageCall& one : shown) {
    if (&one != &shown.front()) write(",");
    write(script_text(call_json(one, sites.at(one.call->site.text), job.begin_ns)));
  }
  write("]}");
}

}  // namespace ibcoll::tracing
