// SPDX-License-Identifier: BSD-3-Clause
// The description of an algorithm. Each algorithm is in one file, COLLECTIVE/FILE.cc, whose namespace is
// COLLECTIVE::FILE and whose function rows() has a row for each collective that it serves. Algorithms that differ only in
// a parameter share a file. runtime/CMakeLists.txt lists the files.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "runtime/collectives/framework/args.h"
#include "runtime/collectives/framework/cost_model.h"
#include "runtime/collectives/framework/one_exchange.h"
#include "runtime/collectives/framework/one_step.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/task.h"

namespace ibcoll {

// The facts that selection knows about a call: only what is the same on all ranks of the team.
struct Shape {
  int p = 1;
  int nodes = 1;
  int fewest_local = 1;             // ranks on the emptiest node
  int most_local = 1;               // and on the fullest one
  bool nodes_in_rank_order = true;  // the ranks of each node are neighbours
  bool single_copy = false;         // every rank may read every other's memory
  bool crowded = false;             // ranks outnumber cores
  uint64_t area_bytes = 0;          // of the node windows; 0: no two ranks share a node
  uint64_t bytes = 0;       // one block, the largest (sizes known to all), or the vector (reductions of one block)
  uint64_t total = 0;       // sum of all p blocks, where there are p
  int empty_blocks = 0;     // of these
  bool sizes_known = true;  // false: not all ranks know them (gatherv, scatterv, alltoallv); bytes and total are 0
  bool commutative = true;
  uint64_t element_bytes = 1;
  uint64_t parameter = 0;  // of the algorithm (see Parameter)

  bool one_node() const noexcept { return nodes == 1 && area_bytes > 0; }
};

// A number that may follow an algorithm's name, as in knomial:4 or ring_pipelined:64K.
struct Parameter {
  enum class Unit { kNone, kCount, kBytes };
  Unit unit = Unit::kNone;
  const char* name = "";  // "radix"
  uint64_t least = 1;
  uint64_t most = 0;
};

// The order in which a reduction combines the operands of an element. Algorithms of one order give the same bits for
// the same ranks on the same nodes; neither parameters nor late ranks change these.
enum class Order : uint8_t {
  kOwn,       // no other algorithm has it, and it may depend on the parameter
  kRanks,     // x0 op (x1 op (x2 op ...))
  kDoubling,  // neighbours, then distances 2, 4, ... of the virtual ranks of PowerOfTwo
  kNodes      // kRanks within a node, kDoubling between nodes
};

inline const char* applies_always(const Shape&) { return nullptr; }

struct Algorithm {
  ibcoll_collective_t collective;
  const char* name;
  const char* about;  // source and cost in one line
  Parameter parameter = {};
  Task (*run)(Comm& c, Args a);
  // nullptr: it applies; else the reason why not.
  const char* (*why_not)(const Shape& shape) = applies_always;
  // The parameter where the name has none. nullptr: it has no parameter.
  uint64_t (*choose)(const Shape& shape, const CostModel& model) = nullptr;
  // Predicted time in microseconds, of ranks that arrive together.
  double (*cost_us)(const Shape& shape, const CostModel& model);
  // The same from the arrival of one rank that is late by more than the call takes: the mean over which one it is.
  // nullptr: as long as cost_us, because most of the work of all ranks waits for it, whichever it is.
  double (*late_us)(const Shape& shape, const CostModel& model) = nullptr;
  bool uses_window = false;
  Order order = Order::kOwn;
  FindOneStep one_step = nullptr;  // of calls on one node; nullptr: none is one
  AsExchange as_exchange = AsExchange::kNever;
};

// The rows of an algorithm that does the same for two collectives: `row`, and one for `second`.
constexpr std::array<Algorithm, 2> two_rows(Algorithm row, ibcoll_collective_t second) {
  Algorithm other = row;
  other.collective = second;
  return {row, other};
}

// Bytes of the node window that a rank touches where all publish blocks of shape.bytes, and read all of them.
inline double touched_areas(const Shape& shape) {
  return static_cast<double>(NodeWindow::kBanks) * shape.p *
         static_cast<double>(std::min(shape.bytes, shape.area_bytes));
}

// Bytes of a message that one rank writes into the node window at a time, while others read: few enough that writing
// and reading overlap, enough to pay for a step. Where ranks share cores nothing overlaps.
inline uint64_t window_piece(uint64_t bytes, uint64_t area_bytes, bool crowded) {
  return crowded ? area_bytes : std::min(area_bytes, std::max<uint64_t>(8192, bytes / 8));
}

inline const char* needs_commutative(const Shape& shape) {
  return shape.commutative ? nullptr : "the operation does not commute";
}

inline const char* applies_on_one_node(const Shape& shape) {
  return shape.one_node() ? nullptr : "the ranks of the team do not share one node's memory";
}

}  // namespace ibcoll
