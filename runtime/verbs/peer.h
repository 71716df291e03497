// SPDX-License-Identifier: BSD-3-Clause
// All that a rank keeps of one peer that it talks to.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/verbs/objects.h"
#include "runtime/verbs/registration.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

constexpr uint32_t kSendDepth = 128;  // work requests
constexpr uint64_t kBounceBytes = 65536;
constexpr uint64_t kData = uint64_t{1} << 63;
constexpr uint32_t kReceiveDepth = kSlots + 1;  // one immediate per slot, and the mark of draining
// Every work request of every connection may complete with an error at once.
constexpr int completions_for(size_t connections) {
  return static_cast<int>(connections * (kSendDepth + 1 + kReceiveDepth));
}

// A message or put that was accepted and has not been consumed by the peer, as far as is known: what is posted again
// after a new connection.
struct Outgoing {
  uint64_t sequence = 0;
  SlotKind kind = SlotKind::kMessage;
  bool refused = false;  // a put that the peer's device did not let in
  bool unsent = false;   // a put whose kSent is still owed
  uint64_t posted = 0;   // bytes of the put
  uint64_t bytes = 0;    // of the put
  const std::byte* from = nullptr;
  RemoteRegion to;
  uint64_t token = 0;
  Registration* source = nullptr;  // null: the source could not be pinned, and goes through the bounce buffers
};

// Memory that the device knows, for one peer. On pages of its own: before Linux 5.12 children do not get those that a
// device knows.
struct alignas(4096) Channel {
  Landing landing;                     // the peer writes
  alignas(64) uint64_t told_consumed;  // the device reads this and the following
  Rekeys rekeys;                       // for the peer
  Slot staging[kSlots];                // as they are to be at the peer
  std::byte bounce[2][kBounceBytes];   // of puts whose source cannot be pinned
};

struct Peer {
  enum class State : uint8_t {
    kNew,       // no queue pair
    kGreeting,  // a queue pair that the peer may not know of yet
    kReady,     // messages may leave
    kDraining,  // the queue pair is in the error state; its last completions are awaited
    kFailed     // reported, or about to be reported, by kPeerFailed
  };

  int rank = -1;
  State state = State::kNew;
  bool left = false;        // said that it closes
  bool has_theirs = false;  // their greeting of this epoch
  bool keys_told = false;   // channel->rekeys has been sent
  uint16_t keys_due = 0;    // how many keys their greeting promises
  bool failing = false;     // draining ends in kFailed
  bool in_ready_list = false;
  std::string failure;  // the text of kPeerFailed
  bool failure_reported = false;

  uint32_t epoch = 0;
  Notify they_want = Notify::kImmediate;
  QueuePair queue_pair;
  uint32_t inline_bytes = 0;
  Greeting mine;
  Time next_greeting = 0;
  Time greeting_pause = 0;
  Time ready_since = 0;         // the connection
  Time out_of_reach_since = 0;  // greetings cannot leave; 0: they can
  Time no_way_since = 0;  // the queue pair cannot be made ready for the peer's address; 0: it can, or was not tried
  bool heard = false;     // an answer of their device, since the last look at peers
  Time last_heard = 0;    // when that look was
  Time first_asked = 0;   // when it was first asked for one since; 0: it was not
  Time last_asked = 0;
  Time answer_by = 0;     // to a greeting, or the peer is lost; 0: no such time
  uint32_t attempts = 0;  // to connect anew, after so many messages in both directions; 0 again when a connection holds
  uint64_t attempted_after = 0;

  std::unique_ptr<Channel> channel;
  MemoryRegion landing_region, staging_region;
  uint64_t remote_landing = 0;
  uint32_t remote_key = 0;
  uint64_t their_delivered = 0;  // messages of this rank that had landed there when the queue pair was made
  std::vector<Rekey> rekeyed;    // exposures of the peer whose keys have changed since they were told

  // sending: sequence numbers count from 1
  uint64_t accepted = 0;  // the last one
  uint64_t posted_up_to = 0;
  uint64_t consumed = 0;  // by the peer, as its messages tell; landing.consumed may know more
  std::array<Outgoing, kSlots> outgoing;
  std::array<uint64_t, kSendDepth> sequence_of{};  // work request -> message; kData: of its data; 0: none
  uint64_t posted = 0;                             // work requests
  uint64_t completed = 0;
  uint64_t signaled = 0;  // the last request that asked for a completion

  std::array<uint64_t, 2> bounced{};  // work requests up to which the bounce buffers are in use

  // receiving
  uint64_t handed_out = 0;
  uint64_t immediates = 0;  // received and not handed out
  uint64_t told_consumed = 0;
  uint64_t consumed_here = 0;  // slots that may be overwritten

  bool send_drained = false, receive_drained = false;
  Time drain_deadline = 0;
  uint32_t wanted_epoch = 0;  // of the next queue pair, at least

  std::vector<uint32_t> exposures;  // numbers, of regions that this peer may write
  std::vector<uint32_t> unbound;    // of these, the ones whose windows still have to be bound on this queue pair

  Slot& staged(uint64_t sequence) const { return channel->staging[(sequence - 1) % kSlots]; }
  const Slot& landed(uint64_t sequence) const { return channel->landing.slots[(sequence - 1) % kSlots]; }
  Outgoing& out(uint64_t sequence) { return outgoing[(sequence - 1) % kSlots]; }
  uint64_t known_consumed() const {
    const uint64_t told = std::atomic_ref(channel->landing.consumed).load(std::memory_order_acquire);
    return told > consumed && told <= accepted ? told : consumed;  // the peer may write anything there
  }
  // The peer may have consumed a put of which this rank's device does not know yet that it arrived, and may send again.
  bool has_slot() const { return accepted - known_consumed() < kSlots && !outgoing[accepted % kSlots].unsent; }
  uint32_t send_room() const { return kSendDepth - static_cast<uint32_t>(posted - completed); }
};

}  // namespace ibcoll::verbs
