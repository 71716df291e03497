// SPDX-License-Identifier: BSD-3-Clause
// Greetings by librdmacm, which finds the path between IP addresses (routes, partitions, service levels of the subnet
// manager). A connection request carries the first greeting, the response the answer, and "ready to use" the
// confirmation; the queue pairs stay the transport's own.
//
//   caller: kNone -send()-> kResolving -path found-> kAsked -response-> kAnswered -send()-> kDone
//   called: kNone -request-> kInvited -send()-> kReplied -ready to use-> kDone
//
// Two ranks may call each other at once: the call of the lower rank counts. A call that fails is begun again by the
// next send().
#pragma once

#include <rdma/rdma_cma.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/verbs/connection_manager.h"
#include "runtime/verbs/objects.h"

namespace ibcoll::verbs {

inline int destroy_channel(rdma_event_channel* channel) { return rdma_destroy_event_channel(channel), 0; }

class RdmaCm final : public ConnectionManager {
 public:
  // Listens on the IP address of the chosen port. CONFIG: it has none that may be used; SYSTEM: the call and its error.
  static Result<std::unique_ptr<ConnectionManager>> open(int rank, int size, uint64_t job, const PortChoice& choice,
                                                         const Config& config);

  const char* name() const override { return "rdmacm"; }
  Time delay_of_loss() const override { return 4'400'000'000; }  // 4.096 us times 2^20, after which Linux repeats
  void fill_in_address(Address& own) const override;
  void set_addresses(std::vector<Address> by_rank) override { addresses_ = std::move(by_rank); }
  Status send(int to, const Greeting& greeting) override;
  bool receive(Greeting& greeting) override;
  Status find_path(const Greeting& theirs, ibv_qp_attr& attributes) override;

 private:
  using Channel = std::unique_ptr<rdma_event_channel, Destroy<destroy_channel>>;
  using Id = std::unique_ptr<rdma_cm_id, Destroy<rdma_destroy_id>>;

  // With one peer; of the greatest epoch so far.
  struct Call {
    enum class State { kNone, kResolving, kAsked, kAnswered, kInvited, kReplied, kDone };
    State state = State::kNone;
    uint32_t epoch = 0;
    Id id;
    Greeting mine, theirs;
    Status last_error;  // why the last one found no way to the peer
    bool by_me() const { return state == State::kResolving || state == State::kAsked; }
  };

  RdmaCm(int rank, int size, uint64_t job, const PortChoice& choice)
      : rank_(rank),
        size_(size),
        job_(job),
        device_(choice.port.device),
        port_(choice.port.number),
        mtu_(choice.port.mtu) {}
  Status listen(const Config& config, const PortChoice& choice);
  Status listen_at(const Gid& ip);
  // Valid as long as the greeting.
  static rdma_conn_param parameters(const Greeting& greeting);
  Status begin(int to, Call& call);
  // Handles the result of a step of the handshake. An error: the call is over.
  Status done(int peer, Call& call, const char* step, int result);
  Status failed(int peer, Call& call, const char* step, int code);
  void end(int peer, Call& call, const char* why) const;

  // rdmacm_events.cc
  bool take_event();
  void on_event(int peer, Call& call, const rdma_cm_event& event);
  void on_request(const rdma_cm_event& event);

  const int rank_, size_;
  const uint64_t job_;
  const std::string device_;
  const int port_;
  const ibv_mtu mtu_;
  uint8_t traffic_class_ = 0;
  Gid ip_{};
  Channel channel_;
  Id listener_;
  std::vector<Address> addresses_;
  std::map<int, Call> calls_;  // by rank
  std::deque<Greeting> received_;
  uint64_t next_look_ = 0;  // nanoseconds of the steady clock
};

}  // namespace ibcoll::verbs
