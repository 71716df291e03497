// SPDX-License-Identifier: BSD-3-Clause
// Takes messages from the rings of the other ranks, and notices which ranks are gone.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/shm/transport.h"

namespace ibcoll::shm {

void Transport::find_senders() {
  seen_open_count_ = segment_->info(rank_).open_count.load(std::memory_order_acquire);
  for (int i = 0; i < segment_->ranks(); ++i) {
    if (!segment_->open(i, rank_).load(std::memory_order_acquire)) continue;
    if (std::any_of(incoming_.begin(), incoming_.end(), [&](const Incoming& in) { return in.local == i; })) continue;
    if (Status status = segment_->map_pair(i, rank_); !status.ok()) {
      failed(i, status, status.code());
      continue;
    }
    incoming_.push_back({i, &segment_->pair(i, rank_), segment_->ring(i, rank_), 0, false, false});
  }
}

size_t Transport::take(Incoming& in, std::span<Event> events) noexcept {
  const uint64_t tail = in.block->tail.load(std::memory_order_acquire);
  size_t count = 0;
  while (in.head != tail && count < events.size()) {
    const auto* const record = reinterpret_cast<const Record*>(in.ring + (in.head & mask_));
    const uint64_t length = record->length;  // read once: another process may change it at any time
    const uint64_t here = std::min(tail - in.head, mask_ + 1 - (in.head & mask_));
    const bool is_filler = length == Record::kFiller;
    if (tail - in.head > mask_ + 1 || (!is_filler && (length > slot_bytes() || Record::bytes(length) > here)))
        [[unlikely]] {
      spoiled(in);
      return count;
    }
    in.taken = true;
    if (is_filler) {
      in.head += here;
      continue;
    }
    Event& event = events[count++];
    event.kind = Event::Kind::kMessage;
    event.peer = jobs_[static_cast<size_t>(in.local)];
    event.note = record->note;
    event.payload = {reinterpret_cast<const std::byte*>(record + 1), length};
    in.head += Record::bytes(length);
  }
  return count;
}

// Nothing that comes later could be found.
void Transport::spoiled(Incoming& in) noexcept {
  failed(
      in.local,
      error(IBCOLL_ERR_PEER_FAILED,
            "what it sent is spoiled: its process {} or another one has overwritten shared memory by a write that is "
            "not ibcoll's; run the program with a memory checker",
            pid(in.local)));
  in.spoiled = true;
}

size_t Transport::poll(std::span<Event> events) {
  size_t count = 0;
  if (segment_->info(rank_).open_count.load(std::memory_order_relaxed) != seen_open_count_) [[unlikely]]
    find_senders();
  const size_t senders = incoming_.size();
  for (size_t i = 0; i < senders; ++i) {
    Incoming& in = incoming_[i];
    if (!in.taken) continue;
    in.block->head.store(in.head, std::memory_order_release);  // what the last poll returned may be overwritten now
    in.taken = false;
  }
  if (!failures_.empty()) [[unlikely]]
    count += report_failures(events, true);
  for (size_t i = 0; i < senders && count < events.size(); ++i) {
    if (next_incoming_ >= senders) next_incoming_ = 0;
    Incoming& in = incoming_[next_incoming_++];
    if (!in.spoiled) [[likely]]
      count += take(in, events.subspan(count));
  }
  if (!failures_.empty()) [[unlikely]]
    count += report_failures(events.subspan(count), false);
  return count;
}

// In the order in which they were noticed. The end of a peer comes after all that it has sent, because that may report
// the failure of another rank.
size_t Transport::report_failures(std::span<Event> events, bool of_this_rank) {
  size_t count = 0;
  for (auto at = failures_.begin(); at != failures_.end() && count < events.size();) {
    if (of_this_rank != (at->of_this_rank != IBCOLL_OK)) {
      ++at;
      continue;
    }
    const int local = at->local;
    const auto in =
        std::find_if(incoming_.begin(), incoming_.end(), [local](const Incoming& i) { return i.local == local; });
    const bool drained = of_this_rank ? true
                         : in != incoming_.end()
                             ? in->spoiled || in->head == in->block->tail.load(std::memory_order_acquire)
                             : !segment_->open(local, rank_).load(std::memory_order_acquire);
    if (!drained) {
      if (in == incoming_.end()) find_senders();  // it opened its ring, and may have been killed before it counted that
      ++at;
      continue;
    }
    reported_.push_back(std::move(at->why));
    Event& event = events[count++];
    event = {Event::Kind::kPeerFailed,
             jobs_[static_cast<size_t>(local)],
             {},
             std::as_bytes(std::span(reported_.back().text())),
             0};
    event.token = lack_token(at->of_this_rank);
    at = failures_.erase(at);
  }
  return count;
}

}  // namespace ibcoll::shm
