// SPDX-License-Identifier: BSD-3-Clause
// The state that all devices of the process share: the lock, chance, objects by number and key, and what is under way.
#pragma once

#include <cerrno>
#include <deque>
#include <map>
#include <mutex>
#include <random>

#include "tests/fake_verbs/script.h"
#include "tests/multiprocess/refuse_memory.h"

namespace ibcoll::fake_verbs {

struct CompletionQueue;
struct QueuePair;
struct Region;
struct Window;

constexpr size_t kRouteHeader = 40;  // before every datagram

struct Datagram {
  uint32_t from = 0, to = 0, key = 0;
  ibv_ah_attr route{};
  std::vector<std::byte> payload;
  uint64_t due = 0;  // in polls
};

class Fabric {
 public:
  // With `mutex` held, as all of this.
  void poll();
  size_t pick(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random); }
  bool chance(uint32_t permille) { return permille > 0 && pick(1000) < permille; }
  QueuePair* queue_pair(uint32_t number) const;
  uint32_t new_number();
  Rank& rank(size_t number);
  void misuse(std::string what);
  void event(int rank, ibv_event_type what) { events[rank].push_back(what); }

  std::mutex mutex;
  std::mt19937_64 random{1};
  Script script;
  uint64_t now = 0;  // in polls
  int opened = 0;    // ranks that have opened the device for good
  size_t objects = 0;
  std::deque<Rank> ranks;  // references stay valid
  std::vector<QueuePair*> queue_pairs;
  std::vector<CompletionQueue*> completion_queues;
  std::map<uint32_t, Region*> regions;  // by key
  std::map<uint32_t, Window*> windows;  // by key without its last byte
  std::deque<Datagram> datagrams;
  std::vector<std::string> misuses;
  std::map<int, std::vector<ibv_event_type>> events;
  uint32_t next_number = 0x11, next_key = 0x1000;
  std::vector<uint32_t> free_numbers;

 private:
  void deliver(const Datagram& datagram);
};

Fabric& fabric();
// What the fabric itself allocates is not refused: a device takes it elsewhere.
class Lock {
 public:
  explicit Lock(std::mutex& mutex) : held_(mutex) {}

 private:
  std::lock_guard<std::mutex> held_;
  multiprocess::GivenMemory given_;
};

// A rank's way to the device.
struct Context {
  verbs_context verbs{};
  int rank = 0;
  size_t events = 0;  // that were reported
};
struct AddressHandle : ibv_ah {
  ibv_ah_attr route;
};
Context& context_of(ibv_context* context);
inline Rank& rank_of(ibv_context* context) { return fabric().rank(static_cast<size_t>(context_of(context).rank)); }
inline bool is_removed(ibv_context* context) { return rank_of(context).traits.removed; }

// Whether the port of this rank answers to the address.
bool is_address_of(int rank, const ibv_ah_attr& route);

// Sets errno, for calls that return a pointer.
template <typename T>
T* refuse(int code) {
  errno = code;
  return nullptr;
}

// In context->ops.
int post_send(ibv_qp* queue_pair, ibv_send_wr* first, ibv_send_wr** bad);
int post_receive(ibv_qp* queue_pair, ibv_recv_wr* first, ibv_recv_wr** bad);
int poll_cq(ibv_cq* queue, int most, ibv_wc* done);
ibv_mw* alloc_mw(ibv_pd* domain, ibv_mw_type type);
int dealloc_mw(ibv_mw* window);

}  // namespace ibcoll::fake_verbs
