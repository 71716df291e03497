// SPDX-License-Identifier: BSD-3-Clause
// A verbs device within the process. A test program that links these files calls them in place of libibverbs, as
// symbols of a program win over those of shared libraries. All ranks of the process share one fabric.
//
// What it promises, as the verbs specification does: protection domains, keys, bounds and access rights; the states of
// queue pairs; Write, Write with immediate, datagrams, memory windows of type 2B; retries and receiver-not-ready
// retries; the depth of send, receive and completion queues, whose entries are free again when a completion is polled;
// flushing in the error state; one order of execution and of completions per queue pair.
// What is left to chance, from the seed: which queue pair moves next, how many polls a packet takes, where a Write is
// cut, in which order its bytes land where the device promises no order, and how much of a Write has landed when its
// queue pair breaks. A datagram may be overtaken, and by the script lost or repeated.
// What it does not: it is no model of time. The fabric moves when a completion queue is polled; a connection of a queue
// pair with itself moves when something is posted. No reads, atomics, multicast or shared receive queues.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ibcoll::fake_verbs {

// The abilities of a device.
struct Traits {
  ibv_mtu mtu = IBV_MTU_4096;
  bool ethernet = true;       // else InfiniBand, addressed by LID
  bool windows = true;        // memory windows of type 2B
  bool resizes = true;        // completion queues
  bool flushes = true;        // what is posted to a queue pair in the error state; some drivers do not
  bool flushes_late = false;  // where it does not: when the queue pair is destroyed
  bool removed = false;       // nothing is executed, every call but those that destroy fails
  bool polls_fail = false;    // ibv_poll_cq fails
  ibv_port_state port = IBV_PORT_ACTIVE;
  uint32_t vendor = 0x2c9;
  uint32_t most_inline = 256;  // bytes
  int most_completions = 1 << 16;
  int most_queue_pairs = 1 << 10;
};

// The outcome of a work request that would have succeeded.
struct Outcome {
  ibv_wc_status status = IBV_WC_SUCCESS;
  bool lands = false;       // although it fails: the acknowledgement was lost
  bool waits = false;       // not now
  bool no_receive = false;  // as if the peer had none posted
};

// Faults to come. Called with the fabric's lock held: they call no verbs. Codes of errno; 0: no fault.
struct Faults {
  std::function<int(const ibv_send_wr&)> post_send;
  std::function<int()> post_receive;
  std::function<Outcome(const ibv_send_wr&)> execute;  // Writes of reliable connections
  std::function<ibv_wc_status()> datagram;             // what sending one completes with
  std::function<int(ibv_qp_type, ibv_qp_state)> modify;
  std::function<int(size_t bytes, int access)> reg_mr;
  std::function<int(ibv_qp_type)> create_qp;
  std::function<int()> create_ah;
  std::function<int()> alloc_mw;
};

// The requests of a rank to its device, on reliable connections, by opcode.
struct Counts {
  std::array<uint64_t, 16> requests{};
  uint64_t posts = 0;  // calls of ibv_post_send
  uint64_t inlined = 0, signaled = 0, receives = 0;
  uint64_t receive_posts = 0;       // calls of ibv_post_recv
  uint64_t sent = 0, received = 0;  // completions that it has polled
  uint64_t writes() const { return requests[IBV_WR_RDMA_WRITE] + requests[IBV_WR_RDMA_WRITE_WITH_IMM]; }
  uint64_t all() const;
};
Counts operator-(const Counts& after, const Counts& before);

// Ranks count in the order in which they open the device. What is set holds from the next call on.
struct Rank {
  Traits traits;
  Faults faults;
  Counts counts;
  ibv_qp_attr ready{};  // with which its last reliable connection became ready to send
};

// The order in which the bytes of Writes become visible.
enum class Landing : uint8_t {
  kInOrder,   // of their addresses; ibv_query_qp_data_in_order() says so
  kShuffled,  // any, also across the Writes of a connection
  kLastFirst  // the end of each Write at once, the rest much later
};

struct Script {
  Landing landing = Landing::kInOrder;
  uint32_t lost_permille = 0, repeated_permille = 0;  // of datagrams
  uint32_t overtaking = 0;                            // polls that a datagram may take longer than another
  // Windows are bound in the call that posts it, so that the peer may learn of it by another way than this queue pair,
  // as tests do. A device need not do that.
  bool binds_at_once = true;
  uint32_t bind_polls = 0;  // that a bind takes at least, where it is not done at once
  uint32_t slowest = 4;     // polls that an acknowledgement takes
};

// A new fabric. No device may be open. Misuses and events of the one before stay.
void begin(uint64_t seed);
Script& script();
Rank& rank(int number);
// Polls of all ranks so far.
uint64_t polls();
// The actions of the library that no program may do, as to destroy memory that a request still reads.
std::vector<std::string> misuses();
// Asynchronous events of the rank's device, as ibv_get_async_event() reports them.
std::vector<ibv_event_type> events(int number);
// One more.
void report(int number, ibv_event_type what);
// And misuses.
void forget_events();
// The rank's largest completion queue overruns. False: it has none.
bool overrun(int number);
// Objects that were made and not destroyed.
size_t live_objects();

}  // namespace ibcoll::fake_verbs
