// SPDX-License-Identifier: BSD-3-Clause
// A job of forked processes that meet through callbacks, without a launcher that would end them when one dies.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/include/ibcoll.h"
#include "tests/multiprocess/machines.h"

namespace ibcoll::multiprocess {

// The data that a forked rank gets: how to join, and which rank it is.
struct ForkedRank {
  int rank = 0;
  int size = 0;
  ibcoll_bootstrap_t bootstrap{};
};

// How a rank of a ForkJob ended.
struct Ending {
  bool exited = false;  // false: by a signal, or it had to be killed because time was over
  int code = 0;         // exit code, or the signal
  bool overdue = false;
};

class ForkJob {
 public:
  // False when this machine does not let the test emulate nodes.
  static bool can_emulate_nodes();

  // Ranks are dealt to the nodes in blocks. `nodes` > 1: ranks of different nodes have host names of their own, so that
  // they do not share memory.
  ForkJob(int ranks, int nodes) : ranks_(ranks), nodes_(nodes) {}
  // The same on machines of their own, one for each node.
  ForkJob(int ranks, int nodes, const Machines& machines) : ranks_(ranks), nodes_(nodes), machines_(&machines) {}

  // Forks; each rank runs the body and ends with what it returns. This process serves their exchanges until all have
  // ended, or stopped for good: a dead rank makes every exchange from then on fail. What still runs after `seconds` is
  // killed.
  std::vector<Ending> run(const std::function<int(ForkedRank&)>& body, double seconds);

 private:
  struct Process {
    pid_t pid = -1;
    int socket = -1;
    std::vector<std::byte> request;  // read so far: length, then data
    bool reaped = false, stopped = false;
  };
  [[noreturn]] void become_rank(int rank, int socket, const std::function<int(ForkedRank&)>& body) const;
  int node_of(int rank) const { return rank * nodes_ / ranks_; }
  void enter_node(int rank) const;
  void serve();
  void read_from(Process& process);
  void answer();
  void close_socket(Process& process);
  void reap(std::vector<Ending>& endings);

  int ranks_;
  int nodes_;
  const Machines* machines_ = nullptr;
  std::vector<Process> processes_;
  bool broken_ = false;  // a rank is gone
};

}  // namespace ibcoll::multiprocess
