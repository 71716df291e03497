// SPDX-License-Identifier: BSD-3-Clause
// The transport contract over a simulated network: one per rank. Made by Network.
#pragma once

#include <unordered_map>
#include <vector>

#include "runtime/sim/message.h"
#include "runtime/transport/transport.h"

namespace ibcoll::sim {

class Network;

class Transport final : public ibcoll::Transport {
 public:
  Transport(Network& network, int rank) : network_(network), rank_(rank) {}

  const char* name() const override { return "sim"; }
  size_t slot_bytes() const override;
  bool send(int peer, const Note& note, std::span<const std::byte> payload) override;
  bool would_connect(int peer) const override { return !knows(peer); }
  RemoteRegion expose(int peer, std::span<std::byte> memory) override;
  bool conceal(int peer, const RemoteRegion& region) override;
  PutResult put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                uint64_t token) override;
  size_t poll(std::span<Event> events) override;
  void check_peers() override;
  Time now() const override;
  LinkModel model() const override;
  Json describe() const override;

  // Regions that are exposed at this moment: none is left after a collective.
  size_t exposed_regions() const { return regions_.size() - free_regions_.size(); }

 private:
  friend class Network;
  struct Ready {
    Event::Kind kind;
    int peer;
    MessageId message;
    uint64_t token;
  };
  struct Region {
    int peer = -1;  // -1: not in use
    uint32_t generation = 0;
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
  };
  struct Peer {
    uint32_t pair = UINT32_MAX;  // of the direction to the peer
    bool failed = false;         // reported to the user of this transport
    bool detecting = false;      // its death is or will be known
  };

  // The memory where a peer may write now; nullptr: none.
  std::byte* writable(int peer, const RemoteRegion& region, uint64_t bytes);
  // How and when the bytes of a put travel.
  void choose_landing(Message& message);
  void report_failure(int dead);
  bool knows(int peer) const { return peers_.contains(peer); }

  Network& network_;
  const int rank_;
  std::vector<Ready> ready_;  // from next_ready_ on
  size_t next_ready_ = 0;
  std::vector<MessageId> held_;  // whose payload the last poll gave out
  std::vector<Region> regions_;
  std::vector<uint32_t> free_regions_;
  std::unordered_map<int, Peer> peers_;  // peers talked to
  std::vector<int> detected_;            // dead peers to be reported by check_peers()
};

}  // namespace ibcoll::sim
