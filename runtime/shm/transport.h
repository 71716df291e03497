// SPDX-License-Identifier: BSD-3-Clause
// The transport between ranks of one node: for each ordered pair a ring of records in shared memory (one writer, one
// reader, two counters), and puts into what the receiver exposes. Its parts: NodeRanks knows the ranks of the node,
// Sender has what leaves, and Receiver what comes.
#pragma once

#include <memory>
#include <vector>

#include "runtime/shm/receiver.h"
#include "runtime/shm/sender.h"
#include "runtime/transport/cost_constants.h"
#include "runtime/transport/transport.h"

namespace ibcoll::shm {

class Transport : public ibcoll::Transport {
 public:
  // See NodeRanks.
  Transport(std::shared_ptr<Segment> segment, std::vector<int> jobs, int rank, bool single_copy)
      : ranks_(std::move(segment), std::move(jobs), rank, single_copy) {}

  NodeRanks& node() noexcept { return ranks_; }

  const char* name() const override { return "shm"; }
  size_t slot_bytes() const override { return ranks_.segment().slot_bytes(); }
  bool send(int peer, const Note& note, std::span<const std::byte> payload) override {
    return sender_.send(ranks_.local(peer), note, payload);
  }
  RemoteRegion expose(int peer, std::span<std::byte> memory) override;
  bool conceal(int peer, const RemoteRegion& region) override;
  PutResult put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                uint64_t /*token*/) override {
    return sender_.put(ranks_.local(peer), to, from, note);
  }
  size_t poll(std::span<Event> events) override { return receiver_.poll(events); }
  void check_peers() override;
  Time now() const override;
  LinkModel model() const override { return cost::kShmLink; }
  bool moves_meanwhile() const override { return false; }
  Json describe() const override;

 private:
  NodeRanks ranks_;
  Failures failures_{static_cast<size_t>(ranks_.count())};
  Sender sender_{ranks_, failures_};
  Receiver receiver_{ranks_, failures_, sender_};
};

}  // namespace ibcoll::shm
