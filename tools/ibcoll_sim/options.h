// SPDX-License-Identifier: BSD-3-Clause
// The command line of ibcoll_sim.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/catalog.h"
#include "runtime/sim/params.h"
#include "tools/options/early_end.h"
#include "tools/options/sizes.h"
#include "tools/oracle/distributions.h"

namespace ibcoll::simulator {

constexpr int kMostRanks = 1 << 20;

// When ranks start.
struct Arrival {
  enum class Kind { kNone, kLate, kRandom };
  Kind kind = Kind::kNone;
  std::vector<int> late;  // ranks
  double us = 0;

  Time of(int rank) const;
};

// ibcoll_sim --replay
struct ReplayOptions {
  enum class Scaled { kFixed, kPerRank, kPerJob };

  std::string path;                   // of the traces; empty: no replay
  int nodes = 0, ranks_per_node = 0;  // 0: not given
  std::string algorithm = "auto", peer = "none";
  double speedup = 1;
  bool together = false, partial = false;
  Scaled scaled = Scaled::kFixed;
  uint64_t seed = 1;
  std::string html;                          // file; empty: none
  std::set<std::string, std::less<>> given;  // options of the model
};

struct Options {
  enum class Format { kTable, kCsv, kJson };

  const Collective* collective = nullptr;
  int ranks = 0;
  int nodes = 0;                        // ranks lie on them in blocks, as equal as can be
  std::vector<std::string> algorithms;  // with their parameters; or "auto" or "all" alone
  std::vector<uint64_t> sizes;          // bytes of a block, ascending
  oracle::Distribution distribution = oracle::Distribution::kRegular;
  int root = 0;
  ibcoll_scheme_t scheme = IBCOLL_SCHEME_AUTO;
  Arrival arrival;
  bool check = false;

  // Between two nodes; within one; and what ranks of a node do in its memory.
  double alpha_us = 2, bandwidth = 12.5, gap_us = 2;
  double node_alpha_us = 0.5, node_bandwidth = 10, node_gap_us = 0.5;
  double copy_bandwidth = 10, flag_us = 0.1;  // GB/s, 0: copies take no time
  uint64_t eager_bytes = 8192;
  uint64_t window_bytes = 262144;
  sim::Ports ports = sim::Ports::kRank;

  Format format = Format::kTable;
  std::string trace;  // file; empty: none
  ReplayOptions replay;
  std::vector<int> placement;  // the node of each rank; empty: in blocks

  int node_of(int rank) const {
    if (!placement.empty()) return placement[static_cast<size_t>(rank)];
    return static_cast<int>(static_cast<int64_t>(rank) * nodes / ranks);
  }
};

std::optional<EarlyEnd> parse_options(int argc, const char* const* argv, Options& options);

}  // namespace ibcoll::simulator
