// SPDX-License-Identifier: BSD-3-Clause
// Counts what the ranks of one run send, follows chains of messages that depend on each other, and writes a trace.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/sim/network.h"
#include "tools/options/output_file.h"

namespace ibcoll::simulator {

struct Traffic {
  uint64_t messages = 0;  // that carry data
  uint64_t bytes = 0;     // of these
};

class Ledger final : public sim::Observer {
 public:
  // `trace`: a file that is open, or nullptr.
  Ledger(const sim::Network& network, OutputFile* trace);

  const Traffic& between_nodes() const { return between_; }
  const Traffic& within_nodes() const { return within_; }
  // Messages without data: advertisements and credit.
  uint64_t control_messages() const { return control_; }
  // Data messages in the longest chain of which each was sent after the one before was taken.
  uint32_t rounds() const { return rounds_; }

  // A rank's part as a whole starts, or ends.
  void starts(int rank, Time at) { write(at, rank, "start"); }
  void ends(int rank, Time at) { write(at, rank, "end"); }

  void posts(sim::Message& message) override;
  void departs(const sim::Message& message, Time at, Time free) override;
  void arrives(const sim::Message& message, Time at) override;
  void taken(const sim::Message& message, Time at) override;
  void works(int rank, uint64_t bytes, Time at, Time end) override;
  void shows(int rank, Time at) override;
  void looks(int rank) override;

 private:
  void write(Time at, int rank, const char* event, int peer = -1, uint64_t bytes = 0, Time end = 0);

  const sim::Network& network_;
  OutputFile* trace_;
  Traffic between_, within_;
  uint64_t control_ = 0;
  uint32_t rounds_ = 0;
  std::vector<uint32_t> depths_;       // of the last message that a rank depends on
  std::vector<uint32_t> node_depths_;  // of what has been published in the memory of a node
};

}  // namespace ibcoll::simulator
