// SPDX-License-Identifier: BSD-3-Clause
// Greetings between ranks that are not connected yet: one unreliable datagram queue pair per rank, whatever the number
// of peers. Datagrams may be lost, repeated or reordered; the sender repeats a greeting until it is answered.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/verbs/connection_manager.h"
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

class Greetings final : public ConnectionManager {
 public:
  // NO_MEMORY, SYSTEM: the device, the call and its error.
  static Result<std::unique_ptr<ConnectionManager>> open(ibv_pd* domain, const Route& route, ibv_mtu mtu);

  const char* name() const override { return "datagrams"; }
  Time delay_of_loss() const override { return 160'000'000; }  // the longest pause between two greetings
  void fill_in_address(Address& own) const override { own.queue_pair = queue_pair_->qp_num; }
  void set_addresses(std::vector<Address> by_rank) override;
  Status send(int to, const Greeting& greeting) override;
  bool has_room() const override { return free_count_ > 0 || stopped_; }
  bool receive(Greeting& greeting) override;
  Status find_path(const Greeting& theirs, ibv_qp_attr& attributes) override;

 private:
  static constexpr int kReceives = 128;
  static constexpr int kSends = 32;
  static constexpr size_t kRouteHeader = 40;  // the device puts it before every datagram
  static constexpr uint32_t kKey = 0x11ac011;

  struct alignas(4096) Memory {  // on pages of its own, as Channel
    struct {
      std::byte route[kRouteHeader];
      Greeting greeting;
    } received[kReceives];
    Greeting sent[kSends];
  };

  Greetings() = default;
  Status prepare(ibv_pd* domain);
  Status make_ready();
  void recover();
  bool post_receive(int i);
  const char* device() const { return ibv_get_device_name(domain_->context->device); }

  Route route_;
  ibv_mtu mtu_ = IBV_MTU_1024;  // of the port
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  std::vector<Address> addresses_;
  std::vector<AddressHandle> handles_;  // by rank, on first use
  std::array<uint8_t, kSends> free_sends_{};
  int free_count_ = 0;
  bool stopped_ = false;  // the queue pair is in the error state
  Status recovery_;       // of the last time that it was
  ibv_pd* domain_ = nullptr;
  CompletionQueue completions_;
  MemoryRegion region_;
  QueuePair queue_pair_;
};

}  // namespace ibcoll::verbs
