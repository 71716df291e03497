// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_sim/ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/engine/channel.h"

namespace ibcoll::simulator {
namespace {

bool carries_data(const sim::Message& message) {
  const auto kind = static_cast<NoteKind>(message.note.kind);
  return kind == NoteKind::kEager || kind == NoteKind::kSpill || kind == NoteKind::kFragment ||
         kind == NoteKind::kLanded;
}

double us(Time time) { return static_cast<double>(time) / 1000; }

}  // namespace

Ledger::Ledger(const sim::Network& network, OutputFile* trace)
    : network_(network), trace_(trace), depths_(static_cast<size_t>(network.size()), 0) {
  int nodes = 0;
  for (int rank = 0; rank < network.size(); ++rank) nodes = std::max(nodes, network.node(rank) + 1);
  node_depths_.resize(static_cast<size_t>(nodes), 0);
}

void Ledger::posts(sim::Message& message) {
  const bool data = carries_data(message);
  message.depth = depths_[static_cast<size_t>(message.from)] + data;
  rounds_ = std::max(rounds_, message.depth);
  if (!data) {
    ++control_;
    return;
  }
  Traffic& traffic = network_.node(message.from) == network_.node(message.to) ? within_ : between_;
  ++traffic.messages;
  traffic.bytes += message.bytes;
}

void Ledger::departs(const sim::Message& message, Time at, Time free) {
  write(at, message.from, carries_data(message) ? "send" : "send_control", message.to, message.bytes, free);
}

void Ledger::arrives(const sim::Message& message, Time at) {
  write(at, message.to, carries_data(message) ? "receive" : "receive_control", message.from, message.bytes);
}

void Ledger::taken(const sim::Message& message, Time) {
  uint32_t& depth = depths_[static_cast<size_t>(message.to)];
  depth = std::max(depth, message.depth);
}

void Ledger::works(int rank, uint64_t bytes, Time at, Time end) { write(at, rank, "work", -1, bytes, end); }

void Ledger::shows(int rank, Time at) {
  uint32_t& depth = node_depths_[static_cast<size_t>(network_.node(rank))];
  depth = std::max(depth, depths_[static_cast<size_t>(rank)]);
  write(at, rank, "publish");
}

void Ledger::looks(int rank) {
  uint32_t& depth = depths_[static_cast<size_t>(rank)];
  depth = std::max(depth, node_depths_[static_cast<size_t>(network_.node(rank))]);
}

void Ledger::write(Time at, int rank, const char* event, int peer, uint64_t bytes, Time end) {
  if (!trace_) return;
  std::string line = fmt::format(R"({{"us": {}, "rank": {}, "event": "{}")", us(at), rank, event);
  if (peer >= 0) line += fmt::format(R"(, "peer": {})", peer);
  if (peer >= 0 || bytes > 0) line += fmt::format(R"(, "bytes": {})", bytes);
  if (end > 0) line += fmt::format(R"(, "until_us": {})", us(end));
  line += "}\n";
  trace_->write(line);
}

}  // namespace ibcoll::simulator
