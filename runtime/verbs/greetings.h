// SPDX-License-Identifier: BSD-3-Clause
// Greetings between ranks that are not connected yet: one unreliable datagram queue pair per rank, whatever the number of
// peers. Datagrams may be lost, repeated or overtaken; whoever sends greetings repeats them.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/verbs/objects.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

// How packets of this rank leave: the port, the GID and what IBCOLL_VERBS_SERVICE_LEVEL and _TRAFFIC_CLASS say.
struct Route {
  uint8_t port = 1;
  uint8_t gid_index = 0;
  uint8_t service_level = 0;
  uint8_t traffic_class = 0;
  ibv_ah_attr to(const Address& address) const;
};

class Greetings {
 public:
  // NO_MEMORY, SYSTEM: the device, the call and its error.
  static Result<std::unique_ptr<Greetings>> open(ibv_pd* domain, const Route& route);

  uint32_t queue_pair() const { return queue_pair_->qp_num; }
  // Where rank `to` can be reached. Nothing is sent yet.
  void set_addresses(std::vector<Address> by_rank);
  // Best effort: false when no send is free just now.
  bool send(int to, const Greeting& greeting);
  // The next one that has come; false: none.
  bool receive(Greeting& greeting);

 private:
  static constexpr int kReceives = 128;
  static constexpr int kSends = 32;
  static constexpr size_t kRouteHeader = 40;  // the device puts it before every datagram
  static constexpr uint32_t kKey = 0x11ac011;

  struct Memory {
    struct {
      std::byte route[kRouteHeader];
      Greeting greeting;
    } received[kReceives];
    Greeting sent[kSends];
  };

  Greetings() = default;
  Status prepare(ibv_pd* domain);
  bool post_receive(int i);

  Route route_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  std::vector<Address> addresses_;
  std::vector<AddressHandle> handles_;  // by rank, on first use
  std::array<uint8_t, kSends> free_sends_{};
  int free_count_ = 0;
  ibv_pd* domain_ = nullptr;
  CompletionQueue completions_;
  MemoryRegion region_;
  QueuePair queue_pair_;
};

}  // namespace ibcoll::verbs
