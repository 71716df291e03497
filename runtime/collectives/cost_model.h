// SPDX-License-Identifier: BSD-3-Clause
// Predicted times, in the alpha-beta terms of the papers, with one addition: when a node has more ranks than cores, a
// rank that waits for another costs a pass over all ranks of its core.
#pragma once

#include <bit>
#include <cstdint>

namespace ibcoll {

struct CostModel {
  double alpha_us = 1.0;        // start-up of a message on the slowest link of the team
  double beta_us = 1e-3;        // per byte there
  double copy_us = 4e-5;        // per byte of a copy through memory
  double single_copy_us = 0.6;  // start-up of a single-copy read
  double flag_us = 0.1;         // until a flag set in shared memory is seen by another core
  double cpu_us = 0.1;          // handling of one message by its sender or receiver
  double turn_us = 0.0;         // until all other ranks of the core had their turn; 0 with a core per rank
  double sharing = 1.0;         // ranks per core, at least 1: copies of a node's ranks take turns

  // One message of m bytes that its receiver waits for.
  double message_us(double m) const { return alpha_us + turn_us + beta_us * m + 2 * cpu_us * sharing; }
  // One more message in a stream to other ranks, nobody waiting in between.
  double stream_us(double m) const { return 2 * cpu_us * sharing + beta_us * m; }
  // All ranks of the node copy m bytes each.
  double copies_us(double m) const { return sharing * copy_us * m; }
  // All ranks publish a step of the node window and see each other's.
  double step_us(int p) const { return flag_us + turn_us + sharing * 0.01 * p; }
};

inline int ceil_log2(int p) { return p <= 1 ? 0 : std::bit_width(static_cast<unsigned>(p - 1)); }

}  // namespace ibcoll
