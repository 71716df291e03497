// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/node_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/shm/memory_trial.h"
#include "runtime/shm/single_copy.h"

namespace ibcoll::shm {
namespace {

constexpr std::chrono::milliseconds kTrialLimit{50};  // a fraction of what a start takes; it needs two to five

}  // namespace

NodeRanks::NodeRanks(std::shared_ptr<Segment> segment, std::vector<int> jobs, int rank, bool single_copy)
    : segment_(std::move(segment)),
      jobs_(std::move(jobs)),
      pids_(jobs_.size(), ::getpid()),
      rank_(rank),
      single_copy_(single_copy) {
  locals_.assign(static_cast<size_t>(*std::max_element(jobs_.begin(), jobs_.end())) + 1, -1);
  for (size_t i = 0; i < jobs_.size(); ++i) locals_[static_cast<size_t>(jobs_[i])] = static_cast<int>(i);
  RankInfo& info = segment_->info(rank_);
  info.probe.store(reinterpret_cast<uint64_t>(probe_word()), std::memory_order_relaxed);
  info.start.store(processes_.own().start, std::memory_order_relaxed);
  info.pid.store(::getpid(), std::memory_order_release);
}

Status NodeRanks::probe() {
  for (int i = 0; i < count(); ++i) {
    if (i == rank_) continue;
    const RankInfo& peer = segment_->info(i);
    pids_[static_cast<size_t>(i)] = peer.pid.load(std::memory_order_acquire);
    if (Status status = processes_.add(i, pid(i), peer.start.load(std::memory_order_relaxed)); !status.ok())
      return error(status.code(), "shm: rank {}: {}", job(rank_), status.text());
    const bool may = single_copy_ && may_copy_process(pid(i), peer.probe.load(std::memory_order_relaxed));
    segment_->may_copy(rank_, i).store(may ? Segment::kMayCopy : Segment::kNever, std::memory_order_release);
  }
  return {};
}

MemoryModel NodeRanks::time_memory() {
  const int partner = trial_partner(rank_, count());
  if (partner < 0) return {};
  const bool reads = segment_->may_copy(rank_, partner).load(std::memory_order_acquire) != 0;
  return shm::time_memory(*segment_, rank_, partner, reads, kTrialLimit);
}

bool NodeRanks::all_may_copy(const std::vector<int>& jobs) const noexcept {
  for (const int i : jobs)
    for (const int j : jobs)
      if (i != j && segment_->may_copy(local(i), local(j)).load(std::memory_order_acquire) == Segment::kNever)
        return false;
  return true;
}

// A process that changes its user, or forbids that its memory is read, is not asked again.
void NodeRanks::refused(int local, const Status& why) noexcept {
  segment_->may_copy(rank_, local).store(Segment::kRefused, std::memory_order_release);
  log(LogLevel::kInfo, "shm: large blocks go to and from rank {} by two copies from now on: {}", job(local),
      why.text());
}

bool NodeRanks::any_refused() const noexcept {
  for (int i = 0; i < count(); ++i)
    if (segment_->may_copy(rank_, i).load(std::memory_order_relaxed) == Segment::kRefused) return true;
  return false;
}

NodeRanks::Pairs NodeRanks::pairs() const {
  Pairs found{count() * (count() - 1), 0, {}};
  std::string refused;
  for (int i = 0; i < count(); ++i)
    for (int j = 0; j < count(); ++j)
      if (i != j && segment_->may_copy(i, j).load() == Segment::kMayCopy)
        ++found.allowed;
      else if (i != j && refused.empty())
        refused = fmt::format("rank {} with rank {}", job(i), job(j));
  found.why = !single_copy_                ? "off (IBCOLL_SINGLE_COPY)"
              : found.allowed == found.all ? "process_vm_readv and process_vm_writev work between all ranks of the node"
                                           : fmt::format(
                                                 "the kernel refuses process_vm_readv or process_vm_writev (ptrace "
                                                 "scope, seccomp or user namespaces), first to {}",
                                                 refused);
  return found;
}

}  // namespace ibcoll::shm
