// SPDX-License-Identifier: BSD-3-Clause
// The regions that one peer may write to here, and the keys to those that this rank may write to there.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "runtime/base/reserve.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

// Exposures to the peer, by their numbers.
class Exposed {
 public:
  const std::vector<uint32_t>& all() const { return all_; }
  // Makes room for one more exposure, and one whose rest ends: the functions below then allocate nothing. So to conceal
  // needs no memory. `rests`: windows that may rest.
  void make_room(size_t rests) {
    reserve_more(all_, 2);
    unbound_.reserve(all_.capacity());  // a new connection binds all
    resting_.reserve(rests);
  }
  void add(uint32_t number) { all_.push_back(number); }
  void remove(uint32_t number) {
    std::erase(all_, number);
    std::erase(unbound_, number);
  }

  // Windows that are bound, and not exposed.
  std::vector<uint32_t>& resting() { return resting_; }
  uint64_t end_of_rest = 0;  // how many requests have to complete until those are invalid that are to end

  // The exposures whose windows still have to be bound on the present queue pair, in order.
  const std::vector<uint32_t>& unbound() const { return unbound_; }
  void bind_later(uint32_t number) { unbound_.push_back(number); }
  void bound_first() { unbound_.erase(unbound_.begin()); }
  void bind_none() { unbound_.clear(); }

 private:
  std::vector<uint32_t> all_, unbound_, resting_;
};

// Exposures of the peer whose keys have changed since it announced them. On a new connection new keys follow the
// greetings, in both directions.
class NewKeys {
 public:
  // For its region.
  uint32_t key_at(const RemoteRegion& to) const {
    for (const Rekey& rekey : known_)
      if (rekey.is_of(to)) return rekey.key;
    return static_cast<uint32_t>(to.key);
  }
  // A later region may get the same number, with another key.
  void forget(const RemoteRegion& to) {
    std::erase_if(known_, [&](const Rekey& rekey) { return rekey.is_of(to); });
  }

  // For a new epoch.
  void start() { sent_ = false; }
  // This rank's have been sent.
  bool sent() const { return sent_; }
  void mark_sent() { sent_ = true; }
  // expect() and take() of that many allocate nothing.
  void reserve(uint16_t count) { known_.reserve(count); }
  // As their greeting promises.
  void expect(uint16_t count) {
    expected_ = count;
    known_.clear();
  }
  // Whether all of theirs are here; takes them over from where they land.
  bool take(const Rekeys& landing, uint32_t epoch) {
    if (known_.size() == expected_) return true;
    std::atomic_thread_fence(std::memory_order_acquire);
    const Rekeys keys = landing;
    if (keys.epoch != epoch || !keys.fits() || keys.count != expected_ || keys.digest != keys.digest_now())
      return false;
    known_.assign(keys.keys, keys.keys + keys.count);
    return true;
  }

 private:
  std::vector<Rekey> known_;
  uint16_t expected_ = 0;
  bool sent_ = false;
};

}  // namespace ibcoll::verbs
