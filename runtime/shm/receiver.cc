// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/receiver.h"

#include <algorithm>
#include <utility>

namespace ibcoll::shm {

Receiver::Receiver(NodeRanks& ranks, Failures& failures, Sender& sender)
    : ranks_(ranks),
      failures_(failures),
      sender_(sender),
      mask_(ranks.segment().ring_bytes() - 1),
      slot_bytes_(ranks.segment().slot_bytes()),
      open_count_(ranks.segment().info(ranks.self()).open_count) {
  incoming_.reserve(static_cast<size_t>(ranks.count()));
}

void Receiver::find_senders() {
  Segment& segment = ranks_.segment();
  const int self = ranks_.self();
  seen_open_count_ = open_count_.load(std::memory_order_acquire);
  for (int i = 0; i < ranks_.count(); ++i) {
    if (!segment.open(i, self).load(std::memory_order_acquire)) continue;
    if (std::any_of(incoming_.begin(), incoming_.end(), [&](const Incoming& in) { return in.local == i; })) continue;
    if (Status status = segment.map_pair(i, self); !status.ok()) {
      sender_.give_up(i, status, status.code());
      continue;
    }
    incoming_.push_back({i, ranks_.job(i), &segment.pair(i, self), segment.ring(i, self), 0, false, false});
  }
}

size_t Receiver::take(Incoming& in, std::span<Event> events) noexcept {
  const uint64_t tail = in.block->tail.load(std::memory_order_acquire);
  size_t count = 0;
  while (in.head != tail && count < events.size()) {
    const auto* const record = reinterpret_cast<const Record*>(in.ring + (in.head & mask_));
    const uint64_t length = record->length;  // read once: another process may change it at any time
    const uint64_t here = std::min(tail - in.head, mask_ + 1 - (in.head & mask_));
    const bool is_filler = length == Record::kFiller;
    if (tail - in.head > mask_ + 1 || (!is_filler && (length > slot_bytes_ || Record::bytes(length) > here)))
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
    event.peer = in.job;
    event.note = record->note;
    event.payload = {reinterpret_cast<const std::byte*>(record + 1), length};
    in.head += Record::bytes(length);
  }
  return count;
}

// Nothing that comes later could be found.
void Receiver::spoiled(Incoming& in) noexcept {
  sender_.give_up(
      in.local,
      error(IBCOLL_ERR_PEER_FAILED,
            "what it sent is spoiled: its process {} or another one has overwritten shared memory by a write that is "
            "not ibcoll's; run the program with a memory checker",
            ranks_.pid(in.local)));
  in.spoiled = true;
}

size_t Receiver::poll(std::span<Event> events) {
  size_t count = 0;
  if (open_count_.load(std::memory_order_relaxed) != seen_open_count_) [[unlikely]]
    find_senders();
  const size_t senders = incoming_.size();
  for (size_t i = 0; i < senders; ++i) {
    Incoming& in = incoming_[i];
    if (!in.taken) continue;
    in.block->head.store(in.head, std::memory_order_release);  // what the last poll returned may be overwritten now
    in.taken = false;
  }
  if (!failures_.unreported().empty()) [[unlikely]]
    count += report_failures(events, true);
  for (size_t i = 0; i < senders && count < events.size(); ++i) {
    if (next_incoming_ >= senders) next_incoming_ = 0;
    Incoming& in = incoming_[next_incoming_++];
    if (!in.spoiled) [[likely]]
      count += take(in, events.subspan(count));
  }
  if (!failures_.unreported().empty()) [[unlikely]]
    count += report_failures(events.subspan(count), false);
  return count;
}

// In the order in which they were noticed. The end of a peer comes after all that it has sent, because that may report
// the failure of another rank.
size_t Receiver::report_failures(std::span<Event> events, bool of_this_rank) {
  size_t count = 0;
  std::vector<Failures::Failure>& failures = failures_.unreported();
  for (auto at = failures.begin(); at != failures.end() && count < events.size();) {
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
                             : !ranks_.segment().open(local, ranks_.self()).load(std::memory_order_acquire);
    if (!drained) {
      if (in == incoming_.end()) find_senders();  // it opened its ring, and may have been killed before it counted that
      ++at;
      continue;
    }
    const std::string_view why = failures_.keep(std::move(at->why));
    Event& event = events[count++];
    event = {Event::Kind::kPeerFailed, ranks_.job(local), {}, std::as_bytes(std::span(why)), 0};
    event.token = lack_token(at->of_this_rank);
    at = failures.erase(at);
  }
  return count;
}

}  // namespace ibcoll::shm
