// SPDX-License-Identifier: BSD-3-Clause
// The transport over InfiniBand verbs: one reliable connection per peer in use, made on first use.
//
//   send -> one RDMA Write into the peer's next landing slot: payload, note, sequence number
//   put  -> RDMA Writes into the exposed region, then a Write with immediate of the note into the next slot
//
// The notice of a message is the completion of the immediate (Notify::kImmediate), or the slot's last word
// (Notify::kMemory). The k-th message of a peer lies in slot k modulo kSlots, and is overwritten after it was consumed
// here and the peer was notified of that: credit. What was not consumed yet can be sent again over a new connection, so
// an error completion costs a connection, not messages. Not safe for threads: the context's lock is held around every
// call.
//
// The parts, each with its own state: Adapter is the open device; WorkRequests go to it and Completions come from it;
// Sender has what leaves, Receiver what comes, Exposures what a peer may write to; Connector makes connections, Recovery breaks and drains
// them and gives peers up, LivenessMonitor finds those that are dead. The rest is the transport interface itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/verbs/liveness_monitor.h"
#include "runtime/verbs/module.h"
#include "runtime/verbs/receiver.h"

namespace ibcoll::verbs {

class Transport final : public NetworkTransport {
 public:
  static Result<std::unique_ptr<Transport>> open(const NetworkParams& params);
  ~Transport() override;

  std::vector<std::byte> address() const override;
  Status set_addresses(std::vector<std::vector<std::byte>> by_rank) override;

  const char* name() const override { return "verbs"; }
  size_t slot_bytes() const override { return kSlotPayload; }
  bool send(int rank, const Note& note, std::span<const std::byte> payload) override;
  bool would_connect(int rank) const override { return !local_.peers.find(static_cast<size_t>(rank)); }
  size_t least_worth_exposing() const override;
  RemoteRegion expose(int rank, std::span<std::byte> memory) override;
  RemoteRegion expose_with_next(int rank, std::span<std::byte> memory) override;
  bool conceal(int rank, const RemoteRegion& region) override;
  bool rest(int rank, const RemoteRegion& region) override;
  void end_rests() override;
  bool needs_polling() const noexcept override { return connector_.is_connecting(); }
  bool unsent() const noexcept override { return connector_.has_unsent(); }
  void push() override;
  PutResult put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                uint64_t token) override;
  size_t poll(std::span<Event> events) override { return poll_often(events, 1); }
  size_t poll_often(std::span<Event> events, uint32_t looks) override;
  void check_peers() override;
  Time now() const override { return verbs::now(); }
  LinkModel model() const override { return local_.adapter.model(); }
  LinkModel steady_model() const override {
    return local_.adapter.port().software ? cost::kSteadySoftwareLink : cost::kSteadyVerbsLink;
  }
  Json describe() const override;

 private:
  Transport(const NetworkParams& params, PortChoice choice);
  Status prepare(const NetworkParams& params);
  void gate_notify(const Config& config, bool in_order);
  Peer* ready_to_send(int rank);
  Peer* get_ready_to_send(int rank);
  // Connections that have drained are made anew, and what found no room is sent.
  void resume_sending();
  void say_goodbye() noexcept;

  bool slots_are_enough() const;

  Local local_;
  std::string notify_reason_;
  WorkRequests requests_{local_, recovery_};
  Exposures exposures_{local_, requests_, completions_, recovery_};
  Sender sender_{local_, requests_, exposures_};
  Connector connector_{local_, requests_, exposures_, sender_, recovery_};
  Recovery recovery_{local_, requests_, exposures_, sender_, connector_};
  Completions completions_{local_, requests_, sender_, connector_, recovery_};
  Receiver receiver_{local_, exposures_, sender_, connector_, recovery_, completions_};
  LivenessMonitor monitor_{local_, requests_, connector_, recovery_};
  uint32_t polls_ = 0;
  uint64_t no_credit_ = 0;
};

}  // namespace ibcoll::verbs
