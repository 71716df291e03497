// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a job come together: over the bootstrap they compare settings, find their nodes, share a segment per
// node and exchange network addresses. Every step ends with the same answer on all ranks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"
#include "runtime/base/config.h"
#include "runtime/context/host.h"
#include "runtime/shm/node_memory.h"
#include "runtime/shm/transport.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// The state of a job of ranks once it has come together.
struct JoinedJob {
  std::vector<int> nodes;  // job rank -> node
  int node_count = 1;
  double ranks_per_core = 1.0;          // on the fullest machine or node
  bool one_cpu = false;                 // all ranks of this node share one processor
  uint64_t id = 0;                      // random, the same on all ranks
  std::unique_ptr<shm::Transport> shm;  // nullptr: alone on the node
  std::unique_ptr<shm::NodeMemory> memory;
  std::unique_ptr<Transport> net;  // nullptr: one node
  LinkModel net_model;             // of the slowest link of the job, or of the one in the middle where links were timed
  LinkModel steady_net_model;      // from nothing that was timed: the same in every run
  MemoryModel memory_model;        // of the ranks in the middle
  double combine_us_per_byte = 0;  // of the slowest rank
  double cache_bytes = 0;          // of the smallest last-level cache
  double own_cache_bytes = 0;      // of the largest second-level cache
  std::string net_reason;          // why there is none, or why this one
  Status lack;                     // no memory here for the results of the last exchange; the next one reports it
};

// Collective over the job, before anything else: the error of the first rank that has one, on all ranks.
Status agree(Bootstrap& bootstrap, const Status& mine);

// Collective over the job. BOOTSTRAP, CONFIG, TRANSPORT, TIMEOUT,...: names the rank where it failed.
// A host progresses while ranks wait for others of their node.
Result<JoinedJob> join_job(Bootstrap& bootstrap, const Config& config, const HostProgram& host = {});

}  // namespace ibcoll
