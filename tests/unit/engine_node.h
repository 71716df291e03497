// SPDX-License-Identifier: BSD-3-Clause
// Engines whose ranks share a node, with a window in memory of the test.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/engine_wire.h"

namespace ibcoll {

// Memory of one process in the place of a node's.
class OwnMemory : public NodeMemory {
 public:
  Result<uint64_t> allocate(uint64_t) override { return uint64_t{0}; }
  void release(uint64_t, uint64_t) override {}
  Result<std::byte*> at(uint64_t, uint64_t) override { return error(IBCOLL_ERR_INTERNAL, "not asked"); }
  Status back(uint64_t, uint64_t) override { return {}; }
  bool back_all(uint64_t, uint64_t) override { return false; }
  bool alive(int) const override { return true; }
  bool can_read(int) const override { return false; }
  Status read(int, uint64_t, std::span<std::byte>) override {
    if (while_read) while_read();
    return refuses ? error(IBCOLL_ERR_UNSUPPORTED, "the kernel refuses it") : Status();
  }
  Status confirm() override { return std::exchange(confirmed, Status()); }

  std::function<void()> while_read;
  bool refuses = false;
  Status confirmed;
};

struct alignas(64) Cacheline {
  std::byte bytes[64]{};
};

// All ranks on one node, with a window that they share.
class EngineOfANodeTest : public EngineTest {
 protected:
  std::unique_ptr<NodeWindow> make_window(int rank) {
    return std::make_unique<NodeWindow>(&node_, memory_.front().bytes, kArea, std::vector<int>{0, 1, 2}, rank,
                                        NodeWindow::Limits{}, false);
  }
  std::vector<std::unique_ptr<Team>> make_teams() {
    std::vector<std::unique_ptr<Team>> made;
    for (int rank = 0; rank < kRanks; ++rank) {
      std::unique_ptr<NodeWindow> window = make_window(rank);
      window->bells().use(doorbells_[rank], {0, 1, 2});
      made.push_back(make_team(rank, 9, std::move(window)));
    }
    return made;
  }
  // All ranks but the root read its memory.
  std::unique_ptr<Request> start_bcast(Team& team, std::vector<std::byte>& buffer) {
    Args args;
    args.collective = IBCOLL_BCAST;
    args.bytes = args.recv.bytes = buffer.size();
    args.recv.base = buffer.data();
    auto call = std::make_unique<Request>(team, args, Choice{find_algorithm(IBCOLL_BCAST, "single_copy")},
                                          IBCOLL_SCHEME_AUTO, 1);
    EXPECT_TRUE(call->start().ok());
    return call;
  }
  std::unique_ptr<Request> start_barrier(Team& team) {
    Args args;
    args.collective = IBCOLL_BARRIER;
    auto barrier =
        std::make_unique<Request>(team, args, Choice{find_algorithm(IBCOLL_BARRIER, "shm")}, IBCOLL_SCHEME_AUTO, 1);
    EXPECT_TRUE(barrier->start().ok());
    return barrier;
  }

  // Writes over all lines, as a stray writer does.
  void spoil(std::byte junk) {
    constexpr size_t kControl = 4096 / sizeof(Cacheline);
    std::memset(static_cast<void*>(memory_.data() + kControl), static_cast<int>(junk),
                kRanks * NodeWindow::kLines * 512);
  }

  OwnMemory node_;
  Bell bells_[kRanks] = {};
  Doorbell doorbells_[kRanks] = {{all_bells(), 0}, {all_bells(), 1}, {all_bells(), 2}};

 private:
  static constexpr uint64_t kArea = 64;
  std::vector<Cacheline> memory_{WindowMemory::footprint(kRanks, kArea) / sizeof(Cacheline) + 1};
  std::vector<Bell*> all_bells() { return {&bells_[0], &bells_[1], &bells_[2]}; }
};

}  // namespace ibcoll
