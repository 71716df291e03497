// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/trace/trace_text.h"

#include <fmt/format.h>

#include <vector>

#include "runtime/comm/reduce/operation.h"
#include "runtime/comm/reduce/types.h"
#include "runtime/machine/topology.h"

namespace ibcoll {
namespace {

std::string moment_text(int64_t ns) { return ns == TracedPeer::kNever ? "-" : std::to_string(ns); }

// "700/3/800/90000": published at 700, waited for rank 3 from 800 to 90000. "-": nothing passed through the window.
std::string node_text(const TracedCall& call) {
  if (call.published_ns == TracedCall::kNever && call.waited_for < 0) return "-";
  const std::string peer = call.waited_for < 0 ? "-" : std::to_string(call.waited_for);
  return fmt::format("{}/{}/{}/{}", moment_text(call.published_ns), peer, moment_text(call.waited_from_ns),
                     moment_text(call.waited_until_ns));
}

// "sum", and for operations of the program whether operands may be combined in any order.
const char* operation_text(const TracedCall& call) {
  if (call.operation >= 0) return operation_name(static_cast<OpIndex>(call.operation));
  return call.commutative ? "user" : "user_in_order";
}

// "0 double sum": the root, the type and the operation, each "-" where the collective has none.
std::string meaning_text(const TracedCall& call) {
  const Collective& row = kCatalog[call.algorithm->collective];
  std::string text = row.rooted ? std::to_string(call.root) : "-";
  if (!row.reduces()) return text + " - -";
  const auto type = static_cast<ibcoll_type_t>(call.type);
  text += type == IBCOLL_OPAQUE ? fmt::format(" opaque:{}", call.element_bytes) : fmt::format(" {}", type_name(type));
  return text + " " + operation_text(call);
}

const char* scheme_text(const TracedCall& call) {
  return call.scheme == IBCOLL_SCHEME_COPY ? "copy" : call.scheme == IBCOLL_SCHEME_ZERO_COPY ? "zero_copy" : "auto";
}

// "0-3,7": numbers in their order.
std::string ranks_text(const std::vector<int>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", ranks[i]);
    if (end - i > 1) text += fmt::format("-{}", ranks[end - 1]);
    i = end;
  }
  return text;
}

// "100*63,800": sizes in their order, equal neighbours together.
std::string sizes_text(const std::vector<uint64_t>& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size();) {
    size_t end = i + 1;
    while (end < sizes.size() && sizes[end] == sizes[i]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", sizes[i]);
    if (end - i > 1) text += fmt::format("*{}", end - i);
    i = end;
  }
  return text;
}

// CLOCK_MONOTONIC is one clock until this machine boots again.
std::string trace_clock() {
  const std::string boot = boot_id();
  return boot.empty() ? "?" : boot;
}

}  // namespace

std::string header_text(const TraceHeader& header) {
  return fmt::format(
      "# ibcoll trace 5 rank {} ranks {} job {:016x} clock {} node {} cores {} ranks_per_core {:.6g} alpha_us {:.6g} "
      "cpu_us {:.6g} beta_us_per_byte {:.6g} copy_us_per_byte {:.6g} flag_us {:.6g} ",
      header.rank, header.ranks, header.job, trace_clock(), header.node, header.cores, header.ranks_per_core,
      header.link.alpha_us, header.link.cpu_us, header.link.beta_us_per_byte, header.copy_us_per_byte, header.flag_us);
}

std::string teams_text(const TraceLists& lists) {
  std::string text;
  for (const auto& [epoch, ranks] : lists.teams()) text += fmt::format("team {:x} {}\n", epoch, ranks_text(ranks));
  return text;
}

std::string TraceSizes::number(uint32_t counts) {
  if (counts == TraceLists::kNone) return "-";
  const auto [known, is_new] = in_file_.emplace(counts, order_.size());
  if (is_new) order_.push_back(counts);
  return std::to_string(known->second);
}

std::string TraceSizes::lines() const {
  std::string text;
  for (const uint32_t counts : order_) text += "counts " + sizes_text(lists_.counts(counts)) + "\n";
  return text;
}

std::string call_text(const TracedCall& call, size_t site, const std::string& sizes, const std::string& peers) {
  const Algorithm& a = *call.algorithm;
  const std::string parameter = a.parameter.unit == Parameter::Unit::kNone ? "" : fmt::format(":{}", call.parameter);
  return fmt::format("{} {} {} {} {}{} {:x} {} {} {} {} {} {} {} {} {} {}\n", call.arrival_ns, call.exit_ns,
                     kCatalog[a.collective].name, call.bytes, a.name, parameter, call.team, call.op,
                     static_cast<uint32_t>(call.ranks), call.failed ? "failed" : "ok", site, peers, node_text(call),
                     meaning_text(call), scheme_text(call), sizes, moment_text(call.wait_ns));
}

std::string peers_text(const TraceBuffer& buffer, uint64_t first, uint64_t end) {
  std::string text;
  for (uint64_t i = first; i < end; ++i) {
    const TracedPeer& peer = buffer.peer(i);
    text += fmt::format("{}{}/{}/{}/{}", text.empty() ? "" : ",", peer.job_rank, moment_text(peer.begun_ns),
                        moment_text(peer.sent_ns), moment_text(peer.landed_ns));
  }
  return text.empty() ? "-" : text;
}

}  // namespace ibcoll
