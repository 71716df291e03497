// SPDX-License-Identifier: BSD-3-Clause
// The transport over InfiniBand verbs: one reliable connection per peer in use, made on first use.
//
//   send -> one RDMA Write into the peer's next landing slot: payload, note, sequence number
//   put  -> RDMA Writes into the exposed region, then a Write with immediate of the note into the next slot
//
// The notice of a message is the completion of the immediate (Notify::kImmediate), or the slot's last word
// (Notify::kMemory). The k-th message of a peer lies in slot k modulo kSlots, and is overwritten after it was consumed
// here and the peer was told: credit. What was not consumed yet can be sent again over a new connection, so an error
// completion costs a connection, not messages. Not safe for threads: the context's lock is held around every call.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/machine/process_watch.h"
#include "runtime/verbs/connection_manager.h"
#include "runtime/verbs/devices.h"
#include "runtime/verbs/greetings.h"
#include "runtime/verbs/module.h"
#include "runtime/verbs/peer.h"
#include "runtime/verbs/rdmacm.h"
#include "runtime/verbs/registration.h"

namespace ibcoll::verbs {

constexpr Time kMillisecond = 1'000'000;
constexpr Time kDrainPatience = 1'000 * kMillisecond;  // for the last completions of a queue pair in the error state

class Transport final : public NetworkTransport {
 public:
  static Result<std::unique_ptr<Transport>> open(const NetworkParams& params);
  ~Transport() override;

  std::vector<std::byte> address() const override;
  Status set_addresses(std::vector<std::vector<std::byte>> by_rank) override;

  const char* name() const override { return "verbs"; }
  size_t slot_bytes() const override { return kSlotPayload; }
  bool send(int rank, const Note& note, std::span<const std::byte> payload) override;
  bool would_connect(int rank) const override { return !peers_[static_cast<size_t>(rank)]; }
  size_t least_worth_exposing() const override;
  RemoteRegion expose(int rank, std::span<std::byte> memory) override;
  bool conceal(int rank, const RemoteRegion& region) override;
  bool settling() const noexcept override;
  PutResult put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                uint64_t token) override;
  size_t poll(std::span<Event> events) override;
  void check_peers() override;
  Time now() const override;
  LinkModel model() const override;
  bool times_its_model() const override { return true; }
  Json describe() const override;

 private:
  using State = Connection::State;
  struct Settings {
    Notify notify = Notify::kImmediate;
    uint8_t timeout = 16;
    uint8_t retries = 6;
    uint32_t most_queue_pairs = 0;
  };
  struct Counters {
    uint64_t messages_sent = 0, puts_sent = 0, bytes_sent = 0;
    uint64_t messages_received = 0, puts_received = 0, bytes_received = 0;
    uint64_t no_credit = 0, credits_told = 0, connections = 0, reconnections = 0, failed_peers = 0;
    uint64_t puts_refused = 0, puts_dropped = 0, puts_copied = 0, not_exposed = 0;
  };
  // A work request on its way to the device, with the memory it names.
  struct Linked {
    ibv_send_wr request;
    ibv_sge piece;
  };
  // What a work request was, in the upper bits of its number.
  enum class Work : uint64_t { kSend, kReceive, kLocal, kSendMark, kReceiveMark };
  // The number of a work request as verbs hands it back: kind, epoch, peer and position in the send queue.
  struct WorkId {
    explicit WorkId(uint64_t id)
        : work(static_cast<Work>(id >> 60)),
          epoch(id >> 52 & 0xff),
          rank(id >> 32 & 0xfffff),
          request(static_cast<uint32_t>(id)) {}
    Work work;
    uint32_t epoch;
    size_t rank;
    uint32_t request;
  };
  static uint64_t work_id(Work work, const Peer& peer, uint64_t request) {
    return static_cast<uint64_t>(work) << 60 | static_cast<uint64_t>(peer.connection.epoch() & 0xff) << 52 |
           static_cast<uint64_t>(peer.rank) << 32 | (request & 0xffffffff);
  }

  Transport(const NetworkParams& params, PortChoice choice);
  Status prepare(const Config& config);
  Status make_completion_queue();
  Status try_memory(const Config& config);
  size_t most_connections() const noexcept;
  void gate_notify(const Config& config, bool in_order);
  bool measure_link();
  const char* device() const { return choice_.port.device.c_str(); }

  // send.cc
  bool acceptable(int rank, Peer*& peer);
  Slot& stage(Peer& peer, SlotKind kind, const Note& note, std::span<const std::byte> payload);
  void pump(Peer& peer);
  void pump_later(Peer& peer);
  void retry_pumps();
  bool post_slot(Peer& peer, uint64_t sequence, bool immediate, bool signaled);
  void tell_consumed(Peer& peer);
  void give_sent(Peer& peer, Outgoing& out);

  // work_requests.cc
  static ibv_send_wr empty_write(const Peer& peer);
  static ibv_send_wr write_to(const Peer& peer, uint64_t landing_offset);
  bool link(Peer& peer, const ibv_send_wr& request, ibv_sge piece, Work work, uint64_t sequence, bool signaled);
  void ring(Peer& peer);
  bool post(Peer& peer, const ibv_send_wr& request, Work work, uint64_t sequence, bool signaled);

  // put.cc
  bool post_put(Peer& peer, Outgoing& out);
  bool take_small_put(Peer& peer, const SlotHeader& header, const std::byte* payload);
  void report_copies(const Status& why);
  void report_refused(const Peer& peer, uint64_t bytes, uint64_t address, const char* why);
  void report_dropped(const Peer& peer);

  // completions.cc
  size_t take_completions();
  void lose_device();
  void on_completion(const ibv_wc& done);
  void on_error(Peer& peer, const ibv_wc& done, Work work, uint32_t request);
  void complete(Peer& peer, uint32_t request);
  Status post_receives(Peer& peer, Work work, uint32_t count);

  // receive.cc
  void look_at_slots();
  bool hand_out_message(Peer& peer, Event& event);

  // connection.cc
  Peer* find_or_make(int rank);
  bool start(Peer& peer);
  Status make_queue_pair(Peer& peer);
  Greeting my_greeting(const Peer& peer) const;
  Status grow_completion_queue(size_t queue_pairs);
  Status get_ready(Peer& peer, const Greeting& theirs);

  // greeting.cc
  void greet(Peer& peer);
  void cannot_reach(Peer& peer, Time& since, const Status& why);
  void rest_after(Time begin);
  void refuse(const Peer& peer, uint32_t epoch);
  void serve_greetings();
  void on_greeting(const Greeting& theirs);
  void answer(Peer& peer, const Greeting& theirs);
  void connected(Peer& peer);
  void send_again(Peer& peer);
  void count_unsent() noexcept;
  bool tell_keys(Peer& peer);
  static bool keys_have_come(Peer& peer);

  // ending.cc
  void break_connection(Peer& peer, uint32_t next_epoch);
  void drained(Peer& peer);
  static bool may_reconnect(Peer& peer);
  void connect_anew(Peer& peer);
  bool try_again(Peer& peer);
  void fail(Peer& peer, std::string_view why);
  void lack(Peer& peer, const Status& what);
  void lose(Peer& peer);
  void give_up(Peer& peer);
  void report_failure(Peer& peer);
  void end_late_drains();
  void wait_until_drained(Peer& peer);

  // liveness.cc
  // How long a device tries before it gives a packet up.
  Time patience() const { return (settings_.retries + 1) * (Time{4096} << settings_.timeout); }
  // How long a peer whose connection broke may take to answer the greeting of the next one.
  Time time_to_answer() const;
  void check_greeted(Time time);
  void check_silence(Peer& peer, Time time);
  void look_at_port(Time time);
  bool port_stays_down() const;
  std::string port_failure() const;

  // leaving.cc
  void say_goodbye();

  // windows.cc
  bool bind_windows(Peer& peer);
  void bind_windows_now(Peer& peer);
  void invalidate(Peer& peer, Exposure& exposure);
  void refresh_exposures(Peer& peer);

  // exposure.cc
  Exposure* exposure_of(int rank, const RemoteRegion& region);
  Exposure& exposure(uint32_t number) { return exposures_[number & kExposureIndex]; }
  Status pin(Exposure& exposure);
  void unpin(Exposure& exposure);
  bool make_key(Exposure& exposure);
  RemoteRegion not_exposed(const Status& why);
  void forget(Exposure& exposure);

  const int rank_;
  const int size_;
  const int near_;  // other ranks that it reaches without the network
  const bool in_host_;
  const uint64_t job_;
  PortChoice choice_;
  Route route_;
  Settings settings_;
  std::string notify_reason_;
  LinkModel model_{2, 1e-3, 0.2};  // where the trial fails: a small message of an adapter, and 8 Gbit/s
  std::string model_reason_ = "tried at start; of the slowest rank";
  Device device_;
  ProtectionDomain domain_;
  CompletionQueue completions_;
  std::unique_ptr<ConnectionManager> connections_;
  std::unique_ptr<Registrar> registrar_;
  std::unique_ptr<WatchedCache> registrations_;
  std::vector<Address> addresses_;
  ProcessWatch processes_{ProcessWatch::Until::kEnding};
  size_t queue_pairs_ = 0;
  size_t draining_ = 0;                          // peers in that state
  ibv_port_state port_state_ = IBV_PORT_ACTIVE;  // when it was last looked at; NOP: it did not say, for
  int port_error_ = 0;                           // this reason
  Time port_looked_at_ = 0;
  Time port_down_for_ = 0;  // at every look

  std::vector<Exposure> exposures_;
  std::vector<uint32_t> free_exposures_;  // indices
  std::vector<Window> free_windows_;

  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; null: never talked to
  std::vector<Peer*> active_;                 // those that have a queue pair
  std::vector<Peer*> greeted_;                // whose greeting is awaited
  Time no_greeting_before_ = 0;               // but as an answer
  std::vector<Peer*> pumped_;                 // with something that is still to be posted
  std::vector<Peer*> pumping_;                // the same while retry_pumps() is at it
  EventOutbox<Peer, Peer*> outbox_;           // lends landing slots: a peer for each of its slots
  std::array<Linked, 16> linked_;             // of the peer that pump() is at
  size_t linked_count_ = 0;
  uint32_t polls_ = 0;
  bool leaving_ = false;
  std::atomic<bool> unsent_ = false;  // messages were accepted for a connection that is not there yet
  std::atomic<Time> started_at_ = 0;  // the last connection
  Counters counters_;
};

}  // namespace ibcoll::verbs
