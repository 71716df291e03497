// SPDX-License-Identifier: BSD-3-Clause
// Makes and frees the teams of a process: the members, their nodes, and the window that the members on one node share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/context/calls.h"
#include "runtime/context/context_lock.h"
#include "runtime/context/node_windows.h"
#include "runtime/context/progress.h"
#include "runtime/context/team_handle.h"

namespace ibcoll {

class Teams {
 public:
  // An allgather of equally many bytes from each rank of the parent.
  using Gather = std::function<Status(ConstBytes mine, Bytes all)>;
  static constexpr size_t kOfferBytes = 32;  // that a rank contributes to it for a new team

  // The members of a new team: ranks of its parent, in the new order.
  struct Members {
    std::vector<int> ranks;
    bool same_everywhere = true;  // every rank of the parent gives the same; false: those that it lists do
    Status refusal = {};          // why this rank's list is invalid; the other ranks get it
  };
  // The ranks of the job that make a team together, and this rank among them.
  struct Parent {
    const std::vector<int>& jobs;
    int self;
  };

  // All outlive it.
  Teams(Context& context, JoinedJob& job, Progress& progress, Calls& calls, NodeWindows& windows) noexcept
      : context_(context), job_(job), progress_(progress), calls_(calls), windows_(windows) {}
  // `doorbell`: as for Waiting::open().
  void open(Doorbell* doorbell) noexcept { doorbell_ = doorbell; }

  // The first team, of all ranks, which the context keeps. `shares`: of rank 0, a number of bytes that it will send.
  Result<std::unique_ptr<TeamHandle>> make_world(const Members& all, int rank, const Gather& gather, uint64_t& shares);
  // Collective over the parent; nullptr where this rank is not a member. `guard` holds the lock, as for wait().
  Result<TeamHandle*> make(TeamHandle& parent, const Members& members, uint64_t epoch, ContextLock::Guard& guard);
  // Collective over the members alone, whose job ranks are `jobs`: they are the parent. `self`: this rank's index there.
  Result<TeamHandle*> make_by_members(const std::vector<int>& jobs, int self, Status refusal, uint64_t epoch,
                                      const Gather& gather);
  void free(TeamHandle& team);
  // But for the first one.
  int count() const noexcept { return static_cast<int>(teams_.size()); }

 private:
  // `shares`: in, of this rank; out, of rank 0 of the parent. nullptr: not a member.
  Result<std::unique_ptr<TeamHandle>> form(uint64_t epoch, const Members& members, const Parent& parent,
                                           const Gather& gather, uint64_t& shares);
  Result<TeamHandle*> keep(Result<std::unique_ptr<TeamHandle>> made);
  // All of a team but its window in the node's memory. Throws std::bad_alloc.
  std::unique_ptr<TeamHandle> draft(uint64_t epoch, std::vector<int> jobs, int team_rank);
  // This rank's part of a window: it makes one where it leads the node.
  Status make_window(TeamHandle& team, uint64_t epoch, uint64_t& offset);
  // Takes no memory but for errors. `offset`: of the window, kNoWindow: none.
  Status complete(TeamHandle& team, uint64_t offset, bool may_copy);

  Context& context_;
  JoinedJob& job_;
  Progress& progress_;
  Calls& calls_;
  NodeWindows& windows_;
  Doorbell* doorbell_ = nullptr;
  std::vector<std::unique_ptr<TeamHandle>> teams_;
  uint32_t last_number_ = 0;  // of a team, here or on a rank that has formed one with this rank
};

}  // namespace ibcoll
