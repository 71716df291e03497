// SPDX-License-Identifier: BSD-3-Clause
// The parameters of a simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/transport/transport.h"

namespace ibcoll::sim {

// A message takes alpha + jitter + bytes x beta, where jitter is uniform in [0, jitter_ns) and once in 64 messages
// sixteen times that. It occupies the sender's port and the receiver's for its bytes and the gap. A gap of alpha is the
// linear model of the papers: k messages in a row through one port take k (alpha + beta m).
struct Link {
  Time alpha_ns = 1000;
  Time jitter_ns = 500;
  uint64_t beta_ps_per_byte = 100;  // 10 GB/s
  Time gap_ns = 0;

  Time transfer_ns(uint64_t bytes) const noexcept { return bytes * beta_ps_per_byte / 1000; }
};

// The ports that a message between two nodes goes through. Inside a node each rank has its own.
enum class Ports { kRank, kNode };

enum class Detection {
  kByItself,    // a transport reports a dead peer without being asked
  kWhenChecked  // it reports a dead peer from check_peers() only
};

struct Params {
  int ranks = 2;
  uint64_t seed = 1;
  std::vector<int> node_of;  // node of each rank; empty: one rank per node
  Link between_nodes;
  Link within_node{200, 100, 50, 0};
  size_t slot_bytes = 4096;
  uint32_t slots_per_pair = 8;  // messages that may be under way or unread from one rank to another
  uint32_t puts_per_pair = 8;
  uint32_t unread_puts_per_pair = 256;  // puts whose notes the receiver has not read: no queue grows without bound
  uint32_t refuse_permille = 0;         // how often send() and put() say "not now" without need
  uint32_t hide_permille = 0;           // how often expose() gives key 0
  Detection detection = Detection::kByItself;
  Time detection_ns = 1'000'000;  // a death is known to a peer after at most this
  // False: a dead rank is reported only to ranks that had sent to it or heard from it, or try to.
  bool report_to_all = true;
  bool poison = true;  // overwrite a slot when it is returned, so that a rank that reads it too late reads nonsense
  Ports ports = Ports::kRank;
  // False: nothing is left to chance. Ranks run in the order in which something has happened to them, and a put reads
  // its source and writes its target when it is delivered, of which its sender is notified at once.
  bool random = true;
  // Without chance, work of ranks takes time as well: copies, operations of reductions, and flags in a node's memory.
  uint64_t work_ps_per_byte = 0;
  Time flag_ns = 0;
  // Memory that stands for the buffers of all ranks: what comes from there or goes there takes time, but no byte moves.
  std::span<std::byte> nothing;
};

struct Counters {
  uint64_t events = 0;
  uint64_t messages = 0;
  uint64_t puts = 0;
  uint64_t bytes = 0;
  uint64_t between_nodes = 0;  // messages and puts with payload from one node to another
  uint64_t no_credit = 0;      // refused because slots or puts were used up
  uint64_t refused = 0;        // refused at random
  uint64_t dropped_puts = 0;   // to memory that was not exposed to the sender
  uint64_t lost_messages = 0;  // to or from a dead rank
};

}  // namespace ibcoll::sim
