// SPDX-License-Identifier: BSD-3-Clause
// The transport over UCX's active messages. One UCP worker; an endpoint for each peer on first use.
//
//   send -> one eager active message: header (with the note) and payload
//   put  -> one or several eager active messages, copied into the region by the receiver's handler; or, where UCX has
//           RDMA, a rendezvous active message that UCX receives straight into the region
//
// Order [C3] is made here, not taken from UCX: every message and put carries a number, and what overtakes waits in the
// receiver's window (windows.h). Not safe for threads: the context's lock is held around every call.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "runtime/machine/process_watch.h"
#include "runtime/ucx/memory.h"
#include "runtime/ucx/module.h"
#include "runtime/ucx/peer.h"
#include "runtime/ucx/wire.h"
#include "runtime/ucx/workarounds/socket_watch.h"
#include "runtime/ucx/worker.h"

namespace ibcoll::ucx {

class Transport final : public NetworkTransport {
 public:
  // How large puts travel; kAuto: what suits the transports (put.cc). The other one is for tests.
  enum class LargePuts { kAuto, kRendezvous };
  static Result<std::unique_ptr<Transport>> open(const NetworkParams& params, LargePuts large = LargePuts::kAuto);
  ~Transport() override;

  std::vector<std::byte> address() const override;
  Status set_addresses(std::vector<std::vector<std::byte>> by_rank) override;

  const char* name() const override { return "ucx"; }
  size_t slot_bytes() const override { return kSlotBytes; }
  bool send(int rank, const Note& note, std::span<const std::byte> payload) override;
  bool would_connect(int rank) const override { return !peers_[static_cast<size_t>(rank)]; }
  RemoteRegion expose(int rank, std::span<std::byte> memory) override;
  bool conceal(int rank, const RemoteRegion& region) override;
  bool needs_polling() const noexcept override;
  bool unsent() const noexcept override { return unsent_messages_.load(std::memory_order_relaxed) > 0; }
  void push() override;
  // UCX cannot destroy a worker to which a peer is just connecting: it aborts the process (ucp_request_send_state_ff).
  void expect_disorder() noexcept override { worker_->abandon(); }
  PutResult put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                uint64_t token) override;
  void want_back(int rank) override;
  size_t poll(std::span<Event> events) override;
  void check_peers() override;
  Time now() const override;
  LinkModel model() const override;
  Json describe() const override;

  // With its header one fragment of UCX over TCP.
  static constexpr size_t kHeaderRoom = 256;
  static constexpr size_t kSlotBytes = kSegment - kHeaderRoom;

 private:
  using Peer = ucx::Peer;
  using Buffer = ucx::Buffer;
  enum class Posted { kDone, kPending, kRefused };
  struct Outgoing {  // one active message as ucp_am_send_nbx takes it
    unsigned id;
    const void* header;
    size_t header_bytes;
    std::span<const std::byte> payload;
    unsigned flags;
  };
  struct Counters {
    uint64_t messages_sent = 0, puts_sent = 0, bytes_sent = 0;
    uint64_t messages_received = 0, puts_received = 0, bytes_received = 0;
    uint64_t failed_pins = 0, dropped = 0, no_credit = 0, credits_returned = 0, connections = 0, failed_peers = 0;
  };

  static constexpr size_t kImmediateBytes = 2048;  // up to here UCX is asked to take it at once, without a copy of ours

  Transport(const NetworkParams& params, ucx::DevicePlan plan, LargePuts large, std::unique_ptr<ucx::Worker> worker,
            std::unique_ptr<ucx::SocketWatch> sockets);
  Status register_handlers();
  Registration* pin(std::span<const std::byte> memory);
  void unpin(Registration* pinned);

  // send.cc
  Peer* ready_to_send(int rank, size_t bytes);
  ucx::MessageHeader next_header(const Peer& peer, const Note& note) const;
  bool post_now(Peer& peer, const Outgoing& out);
  Posted post(Peer& peer, const Outgoing& out, Buffer* buffer);
  void give_back(Buffer* buffer);
  void accepted(Peer& peer, size_t window_bytes);
  bool send_control(Peer& peer, ucx::ControlHeader::Kind kind);
  void return_credit();
  void sent(ucx::Buffer& buffer);
  void leave_to_ucx(Peer& peer);
  static void on_sent(void* request, ucs_status_t status, void* buffer);

  // put.cc
  PutResult put_eager(Peer& peer, const ucx::PutHeader& header, std::span<const std::byte> from, uint64_t token);
  PutResult put_whole(Peer& peer, const ucx::PutHeader& header, std::span<const std::byte> from, uint64_t token,
                      unsigned flags, Registration* source = nullptr);
  PutResult put_by_rendezvous(Peer& peer, const ucx::PutHeader& header, std::span<const std::byte> from,
                              uint64_t token);
  PutResult put_in_fragments(Peer& peer, const ucx::PutHeader& header, std::span<const std::byte> from, uint64_t token);
  void post_fragments(Peer& peer);
  void post_fragments();
  void fragment_sent(Peer& peer, Buffer* whole);
  void finish_large(Buffer* whole);
  void drop_fragments(Peer& peer);
  void put_sent(Peer& peer, uint64_t token);

  // receive.cc
  static ucs_status_t on_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param);
  static ucs_status_t on_put(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                             const ucp_am_recv_param_t* param);
  static ucs_status_t on_control(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                 const ucp_am_recv_param_t* param);
  static void on_landed(void* request, ucs_status_t status, size_t bytes, void* buffer);
  Peer* sender_of(const void* header, size_t header_bytes, size_t expected_bytes);
  ucx::ReceiveWindow::Entry* find_entry(Peer& peer, const ucx::MessageHeader& header);
  ucx::Exposures::Exposure* writable(const Peer& peer, const ucx::PutHeader& header, size_t bytes);
  void refuse(Peer& peer, ucx::ReceiveWindow::Entry& entry);
  void fragment_landed(Peer& peer, uint32_t sequence, ucx::ReceiveWindow::Entry& entry, size_t bytes);
  bool land(Peer& peer, const ucx::PutHeader& header, ucx::Exposures::Exposure& exposure, void* descriptor,
            size_t bytes);
  void landed(Buffer* record, ucs_status_t status);
  void set_state(Peer& peer, uint32_t sequence, ucx::ReceiveWindow::Entry::State state);
  bool hand_out_message(Peer& peer, Event& event);

  // connection.cc
  Peer* find_or_make(int rank);
  bool connect(Peer& peer);
  ucs_status_t create_endpoint(Peer& peer, ucp_err_handling_mode_t mode);
  static void on_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);
  void broken(Peer& peer, ucs_status_t status);
  // The same, of what UCX or the heap answered a call of this rank.
  void refused(Peer& peer, ucs_status_t status);
  void cut(Peer& peer, ucs_status_t why);
  void serve_connections();
  void adopt_sockets();
  void check_sockets();
  void fail(Peer& peer);
  void end_connections(const Peer& peer) noexcept;
  // What the kernel knows of the peer's silence, or of a connection that it refused. Empty: nothing.
  std::string silence_of(const Peer& peer) const noexcept;
  void report_failure(Peer& peer, const std::string& silence);
  void announce_leaving();
  bool everything_left() const;
  void close_endpoints();

  const int rank_;
  const int size_;
  const uint64_t job_;
  const ucx::DevicePlan plan_;
  const LinkModel model_;
  const bool rendezvous_;        // for large puts
  const size_t fragment_bytes_;  // larger puts are a rendezvous, or cut
  std::vector<std::vector<std::byte>> addresses_;

  ProcessWatch processes_{ProcessWatch::Until::kEnding};
  std::unique_ptr<ucx::SocketWatch> sockets_;  // nullptr: no TCP
  Time next_socket_check_ = 0;                 // at what the sockets hear
  Time next_adoption_ = 0;                     // of new sockets, while has_new_sockets_
  bool has_new_sockets_ = false;
  std::unique_ptr<ucx::Worker> worker_;
  std::unique_ptr<ucx::Memory> memory_;
  ucx::BufferPool& pool_ = memory_->pool;
  ucx::Exposures& exposures_ = memory_->exposures;
  std::vector<std::unique_ptr<Peer>> peers_;  // by rank; NULL: never talked to
  size_t made_peers_ = 0;
  int unmade_ = -1;                 // a rank for whose first message there was no memory; to be reported
  std::vector<Peer*> unconnected_;  // have sent something; an endpoint shows when they die
  std::vector<Peer*> broken_;
  std::vector<Peer*> cut_;             // their sockets are shut down, which UCX has not noticed yet
  std::vector<Peer*> pending_credit_;  // to which credit is to be returned, each once
  std::vector<Peer*> with_fragments_;  // of large puts to post
  std::vector<Peer*> leaving_;         // wait for our kAllReceived
  EventOutbox<Peer, Buffer*> outbox_;
  size_t puts_pending_ = 0;               // of all peers
  bool error_mode_none_ = false;          // UCX's transports cannot report failures
  Time next_pin_ = 0;                     // not before, after one that failed
  std::atomic<int> unsent_messages_ = 0;  // accepted, and still with UCX
  std::atomic<Time> connected_at_ = 0;    // the last time
  Counters counters_;
};

}  // namespace ibcoll::ucx
