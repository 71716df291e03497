// SPDX-License-Identifier: BSD-3-Clause
// What an algorithm says of itself. Each lives in one file of this folder; registry.cc lists them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/cost_model.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/task.h"

namespace ibcoll {

// What selection knows of a call: only what is the same on all ranks of the team.
struct Shape {
  int p = 1;
  int nodes = 1;
  int fewest_local = 1;      // ranks on the emptiest node
  int most_local = 1;        // and on the fullest one
  bool single_copy = false;  // every rank may read every other's memory
  bool crowded = false;      // ranks outnumber cores
  uint64_t area_bytes = 0;   // of the node windows; 0: no two ranks share a node
  uint64_t bytes = 0;        // one block (allgather, alltoall), the largest (allgatherv), or the buffer
  uint64_t total = 0;        // sum of all blocks (allgatherv)
  bool sizes_known = true;   // false: alltoallv, whose sizes are known to sender and receiver only
  bool commutative = true;
  uint64_t element_bytes = 1;

  bool one_node() const noexcept { return nodes == 1 && area_bytes > 0; }
};

struct Algorithm {
  ibcoll_collective_t collective;
  const char* name;
  const char* about;  // source and cost in one line
  Task (*run)(Comm& c, Args a);
  // nullptr: it applies; else why not.
  const char* (*why_not)(const Shape& shape);
  // Predicted time in microseconds.
  double (*cost_us)(const Shape& shape, const CostModel& model);
  bool uses_window;
};

// Bytes of the node window that a rank goes through where all publish blocks of shape.bytes, and read all of them.
inline double touched_areas(const Shape& shape) {
  return static_cast<double>(NodeWindow::kBanks) * shape.p *
         static_cast<double>(std::min(shape.bytes, shape.area_bytes));
}

// why_not of what applies everywhere, and of what needs one node.
inline const char* applies_always(const Shape&) { return nullptr; }
inline const char* applies_on_one_node(const Shape& shape) {
  return shape.one_node() ? nullptr : "the ranks of the team do not share one node's memory";
}

}  // namespace ibcoll
