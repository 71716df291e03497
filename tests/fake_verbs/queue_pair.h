// SPDX-License-Identifier: BSD-3-Clause
// A queue pair: what was posted to it, and what is landing in it.
//   posted -> executed: the peer's device has it -> acknowledged -> its completion -> polled: its entry is free
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "tests/fake_verbs/completion_queue.h"
#include "tests/fake_verbs/memory.h"

namespace ibcoll::fake_verbs {

// A Write that the peer's device has let in. Sender and receiver both hold it.
struct Message {
  struct Fragment {
    size_t begin, bytes;
  };
  std::vector<std::byte> data;
  std::vector<Fragment> fragments;  // that have not landed
  uint64_t to = 0;
  const Region* region = nullptr;
  std::optional<uint64_t> receive;  // that it completes, as it carries an immediate
  uint32_t immediate = 0;
  uint64_t rest_after = 0;  // in polls: its last fragment comes much earlier
  bool acknowledged = false, lost = false;
};

struct WorkRequest {
  ibv_send_wr request{};
  std::vector<ibv_sge> sges;
  std::vector<std::byte> inlined;
  ibv_wc_status status = IBV_WC_SUCCESS;
  uint64_t not_before = 0;  // is it executed
  uint64_t done_at = 0;
  std::shared_ptr<Message> message;
};

struct Receive {
  uint64_t id = 0;
  std::vector<ibv_sge> sges;
  size_t room() const;
  // False: the memory is not the device's to write.
  bool scatter(const ibv_pd* domain, size_t offset, const std::vector<std::byte>& data) const;
};

struct QueuePair : ibv_qp {
  int rank() const { return context_of(context).rank; }
  Faults& faults() const { return rank_of(context).faults; }
  CompletionQueue& send_queue() const { return static_cast<CompletionQueue&>(*send_cq); }
  CompletionQueue& receive_queue() const { return static_cast<CompletionQueue&>(*recv_cq); }
  bool can_receive() const { return state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQE; }
  bool port_is_up() const { return !is_removed(context) && rank_of(context).traits.port == IBV_PORT_ACTIVE; }
  bool is_own_peer() const { return qp_type == IBV_QPT_RC && attributes.dest_qp_num == qp_num; }
  ibv_wc completion(uint64_t id, ibv_wc_status status) const;
  bool reads(const Region& region) const;
  bool will_bind(const Window& window) const;

  int modify(const ibv_qp_attr& wanted, int mask);
  void enter_error();
  // Forgets all that was posted, without completions.
  void clear();
  int post(const ibv_send_wr& request);
  int post(const ibv_recv_wr& request);
  // One of the things that it could do; false: there is none.
  bool move();
  void land_all_in(const Region& region);

  // Steps of modify().
  int to_init(const ibv_qp_attr& wanted, int mask);
  int to_ready_to_receive(const ibv_qp_attr& wanted, int mask);
  int to_ready_to_send(const ibv_qp_attr& wanted, int mask);

  // execution.cc
  bool execute(WorkRequest& request);
  bool write(WorkRequest& request);
  void send_datagram(WorkRequest& request);
  QueuePair* peer() const;
  bool must_wait(WorkRequest& request, uint8_t& left, ibv_wc_status when_over);
  bool complete_first();
  bool flush();
  void report(const WorkRequest& request, ibv_wc_status status);

  // landing.cc
  void let_in(const std::shared_ptr<Message>& message);
  bool land();
  bool end_landed();
  void land_fragment(Message& message, size_t index);
  void end_landing();

  ibv_qp_cap cap{};
  bool signal_all = false;
  int access = 0;
  uint32_t key = 0;  // of datagrams
  ibv_qp_attr attributes{};
  uint32_t life = 0;  // another one after each reset
  std::deque<WorkRequest> requests;
  size_t executed = 0;         // of them
  uint32_t unreported = 0;     // requests without a completion, before the next one
  uint32_t requests_held = 0;  // entries
  uint32_t receives_held = 0;
  std::deque<Receive> receives;
  std::deque<std::shared_ptr<Message>> landing;
  uint8_t retries_left = 0, receiver_retries_left = 0;
  uint64_t retry_at = 0;
};

}  // namespace ibcoll::fake_verbs
