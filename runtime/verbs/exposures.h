// SPDX-License-Identifier: BSD-3-Clause
// The right to write: a memory window of type 2B, bound to exactly the exposed range on the queue pair of the peer, so
// that the device itself refuses everybody else, and every byte outside. Binding travels in the send queue before the
// advertisement; conceal() invalidates and waits until that is done. A window that rests stays bound, for the same range
// to be exposed to the same peer again. Without windows, a memory region of exactly the range.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "runtime/verbs/work_requests.h"

namespace ibcoll::verbs {

class Completions;

// After a shortage of memory no window rests for a while: 32 times, after the next one 64 times, and so on. One that
// comes during a pause begins the same pause anew. What a shortage costs, a failed registration and the windows to bind
// again, is spread over so many messages.
class RestPause {
 public:
  void begin() {
    if (left_ == 0) length_ = length_ == 0 ? kFirst : std::min(2 * length_, kLongest);
    left_ = length_;
  }
  // Asked each time.
  bool over() {
    if (left_ == 0) return true;
    --left_;
    return false;
  }

 private:
  static constexpr uint32_t kFirst = 32, kLongest = 1 << 15;
  uint32_t left_ = 0, length_ = 0;
};

class Exposures {
 public:
  Exposures(const Local& local, WorkRequests& requests, Completions& completions, Recovery& recovery)
      : local_(local), requests_(requests), completions_(completions), recovery_(recovery) {}
  ~Exposures();
  Exposures(const Exposures&) = delete;
  Exposures& operator=(const Exposures&) = delete;

  // Key 0: not possible.
  RemoteRegion expose(Peer& peer, std::span<std::byte> memory);
  // No write begins or continues after it. May wait for the device.
  void conceal(Peer& peer, const RemoteRegion& region);
  // As conceal(), or the window stays bound.
  void rest(Peer& peer, const RemoteRegion& region);
  // Of all peers.
  void end_rests();
  // The same where memory to pin was short since the last time. True: it was.
  bool heed_shortage();
  // Returns the result of `make`. If that is a shortage of memory: the result when nothing is pinned beyond its use.
  template <typename Make>
  Status with_room(Make make) {
    Status status = local_.adapter.registrations().with_room(make);
    if (status.code() != IBCOLL_ERR_NO_MEMORY || !make_room()) return status;
    return local_.adapter.registrations().with_room(make);
  }
  // A small put, under the same rights that the device enforces on a large one. False: the peer has none.
  bool write(const Peer& peer, const SlotHeader& header, const std::byte* payload);

  // Binds the windows of the peer's exposures that are not bound on its queue pair; `signaled`: there is a completion
  // when the last one is. False: the send queue has no room for all of them.
  bool bind(Peer& peer, bool signaled = false);
  // The same, and waits for it: before the peer learns that this side is ready, as it may know keys already.
  void bind_now(Peer& peer);
  // Its queue pair is gone, and the windows with it.
  void unbind(Peer& peer);
  // For a new queue pair: the exposures of this peer get new windows, whose keys will be sent. An error: not all do.
  Status renew(Peer& peer);

  uint64_t not_exposed() const { return not_exposed_; }

 private:
  Exposure* find(int rank, const RemoteRegion& region);
  bool take_resting(Peer& peer, std::span<std::byte> memory, uint32_t& index);
  void end_rest(Peer& peer, uint32_t number);
  RemoteRegion region_of_new(Peer& peer, uint32_t index);
  void release(Exposure& exposure);
  Exposure& at(uint32_t number) { return table_[number & kExposureIndex]; }
  Status pin(Exposure& exposure);
  void unpin(Exposure& exposure);
  bool make_key(Exposure& exposure);
  bool make_room();
  RemoteRegion refuse(const Status& why);
  class Bound;
  uint64_t invalidate(Peer& peer, std::span<const uint32_t> numbers);
  void await_invalidation(Peer& peer, uint32_t number, uint64_t requests);

  const Local& local_;
  WorkRequests& requests_;
  Completions& completions_;
  Recovery& recovery_;
  std::vector<Exposure> table_;
  std::vector<uint32_t> free_;  // indices
  std::vector<Window> free_windows_;
  uint64_t not_exposed_ = 0;
  uint64_t shortages_ = 0;  // that were heeded
  RestPause pause_;
};

}  // namespace ibcoll::verbs
