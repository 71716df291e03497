// SPDX-License-Identifier: BSD-3-Clause
// The events that a network transport keeps for its caller, and the order in which poll() hands them out: sources that
// are reusable, peers that this rank cannot reach, messages, peers that failed [C9].
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/intrusive_queue.h"
#include "runtime/transport/transport.h"

namespace ibcoll {

// The state that an outbox keeps of a peer: a base of the transport's own type, which has a function has_message().
class OutboxPeer {
 public:
  int rank = -1;

 private:
  template <typename Peer, typename Lent>
  friend class EventOutbox;
  OutboxPeer* next_ready_ = nullptr;
  bool is_ready_ = false;
};

template <typename Peer, typename Lent>
class EventOutbox {
 public:
  // ---- kSent
  void sent(int peer, uint64_t token) { sent_.push_back({peer, token}); }
  // The next `more` calls of sent() allocate nothing.
  void reserve_sent(size_t more) { reserve(sent_, sent_.size() + more); }

  // ---- kPeerFailed, once per peer. `why` is valid as long as the peer. `lack`: lack_of() the event.
  void failed(Peer& peer, std::string_view why, ibcoll_status_t lack) { failures_.push_back({&peer, why, lack}); }
  void reserve_failures(size_t peers) { reserve(failures_, peers); }

  // ---- kMessage
  bool is_ready(const Peer& peer) const { return peer.is_ready_; }
  // The peer has messages to hand out. Allocates nothing. No effect if it is ready already.
  void ready(Peer& peer) {
    if (std::exchange(peer.is_ready_, true)) return;
    ready_.push(&peer);
  }
  // The next events may point into `memory`, until take_back() passes it to `release`.
  void lend(Lent memory) { lent_.push_back(memory); }
  bool has_lent() const { return !lent_.empty(); }
  void reserve_lent(size_t count) { reserve(lent_, count); }
  template <typename Release>
  void take_back(Release&& release) {
    for (const Lent memory : lent_) release(memory);
    lent_.clear();
  }

  bool is_empty() const { return ready_.empty() && sent_.empty() && failures_.empty(); }
  // `take(peer, event)` consumes the next message of a peer that is ready; false: it is no event. Peers with several
  // messages take turns.
  template <typename Take>
  size_t hand_out(std::span<Event> events, Take&& take) {
    size_t count = 0;
    for (; first_sent_ < sent_.size() && count < events.size(); ++first_sent_)
      events[count++] = {Event::Kind::kSent, sent_[first_sent_].peer, {}, {}, sent_[first_sent_].token};
    if (first_sent_ == sent_.size()) sent_.clear(), first_sent_ = 0;
    if (!failures_.empty()) [[unlikely]]
      count += hand_out_failures(events.subspan(count), true);
    while (count < events.size() && !ready_.empty()) {
      Peer& peer = static_cast<Peer&>(*ready_.pop());
      peer.is_ready_ = false;
      if (take(peer, events[count])) ++count;
      if (peer.has_message()) ready(peer);
    }
    if (!failures_.empty()) [[unlikely]]
      count += hand_out_failures(events.subspan(count), false);
    return count;
  }

 private:
  struct Sent {
    int peer;
    uint64_t token;
  };
  struct Failure {
    Peer* peer;
    std::string_view why;
    ibcoll_status_t lack;
  };

  template <typename T>
  static void reserve(std::vector<T>& list, size_t count) {
    if (list.capacity() <= count) list.reserve(2 * count + 8);
  }

  // The failure of a peer comes after all messages that have arrived from it.
  size_t hand_out_failures(std::span<Event> events, bool of_this_rank) {
    size_t count = 0;
    for (size_t i = 0; i < failures_.size() && count < events.size();) {
      const Failure& failure = failures_[i];
      const bool lacks = failure.lack != IBCOLL_OK;
      if (of_this_rank != lacks || (!lacks && failure.peer->has_message())) {
        ++i;
        continue;
      }
      const auto why = std::as_bytes(std::span(failure.why));
      events[count++] = {Event::Kind::kPeerFailed, failure.peer->rank, {}, why, lack_token(failure.lack)};
      failures_.erase(failures_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return count;
  }

  std::vector<Sent> sent_;  // to hand out from first_sent_ on
  size_t first_sent_ = 0;
  std::vector<Failure> failures_;
  IntrusiveQueue<OutboxPeer, &OutboxPeer::next_ready_> ready_;  // in order of arrival
  std::vector<Lent> lent_;                                      // to the events of the last poll()
};

}  // namespace ibcoll
