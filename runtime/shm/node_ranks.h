// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a node: which ranks of the job they are, their processes, and which of them may use each other's memory.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/machine/process_watch.h"
#include "runtime/shm/segment.h"
#include "runtime/transport/transport.h"

namespace ibcoll::shm {

class NodeRanks {
 public:
  // `jobs[i]`: job rank of local rank i; `rank`: this one's local index. Collective over the node in two steps, with a
  // synchronisation of all its ranks after each: the constructor publishes pid and probe word; then probe().
  NodeRanks(std::shared_ptr<Segment> segment, std::vector<int> jobs, int rank, bool single_copy);

  // Watches the other processes, and tries which ranks' memory this rank may read and write; the results of the other
  // ranks are known after the next synchronisation. SYSTEM: the end of a process would not be noticed.
  Status probe();
  // How long two ranks of the node take to move bytes to each other; collective like probe(), after its
  // synchronisation. All 0 on other ranks, and where it took too long.
  MemoryModel time_memory();

  Segment& segment() const noexcept { return *segment_; }
  int self() const noexcept { return rank_; }
  int count() const noexcept { return static_cast<int>(jobs_.size()); }
  int local(int job_rank) const noexcept { return locals_[static_cast<size_t>(job_rank)]; }
  std::vector<int> locals(const std::vector<int>& job_ranks) const {
    std::vector<int> all;
    all.reserve(job_ranks.size());
    for (const int job_rank : job_ranks) all.push_back(local(job_rank));
    return all;
  }
  int job(int local) const noexcept { return jobs_[static_cast<size_t>(local)]; }
  pid_t pid(int local) const noexcept { return pids_[static_cast<size_t>(local)]; }
  // False once the process has ended.
  bool alive(int local) const { return processes_.alive(local); }
  // The first of these ranks whose process has ended, or -1: one system call.
  int first_ended(const std::vector<int>& locals) { return processes_.first_ended(locals); }
  ProcessWatch& processes() noexcept { return processes_; }
  const ProcessWatch& processes() const noexcept { return processes_; }

  // ---- single copies

  // This rank may use the memory of `local`; false for good once the kernel has refused it.
  bool may_use(int local) const noexcept {
    return segment_->may_copy(rank_, local).load(std::memory_order_acquire) == Segment::kMayCopy;
  }
  void refused(int local, const Status& why) noexcept;
  bool any_refused() const noexcept;
  // True when all of these ranks of the job may read and write each other's memory.
  bool all_may_copy(const std::vector<int>& jobs) const noexcept;
  // How many pairs of ranks may, and why others may not: all ranks, as collectives depend on what all may do.
  struct Pairs {
    int all = 0, allowed = 0;
    std::string why;
  };
  Pairs pairs() const;

 private:
  std::shared_ptr<Segment> segment_;
  std::vector<int> jobs_;
  std::vector<int> locals_;  // job rank -> local rank, -1: on another node
  std::vector<pid_t> pids_;  // by local rank
  int rank_;
  bool single_copy_;
  ProcessWatch processes_{ProcessWatch::Until::kEnded};  // by local rank
};

}  // namespace ibcoll::shm
