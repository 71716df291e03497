// SPDX-License-Identifier: BSD-3-Clause
// The registered memory of one peer: made for the first connection, kept for all later ones.
#pragma once

#include <memory>

#include "runtime/verbs/objects.h"
#include "runtime/verbs/wire.h"

namespace ibcoll::verbs {

constexpr uint64_t kBounceBytes = 65536;
constexpr size_t kBounces = 2;

// On pages of its own: before Linux 5.12 children do not get those that a device knows.
struct alignas(4096) Channel {
  Landing landing;                           // the peer writes
  alignas(64) uint64_t returned_credit;      // the device reads this and the following
  Rekeys rekeys;                             // for the peer
  Slot staging[kSlots];                      // as they are to be at the peer
  std::byte bounce[kBounces][kBounceBytes];  // of puts whose source cannot be pinned
};

// With its registrations: both regions are there, or there is no memory at all.
class PinnedChannel {
 public:
  // NO_MEMORY, SYSTEM: the device, the call and its error; it is as it was. No effect on one that is made.
  Status make(ibv_pd* domain);

  bool made() const { return memory_ != nullptr; }
  Channel* operator->() const { return memory_.get(); }
  Channel& operator*() const { return *memory_; }
  uint32_t staging_key() const { return staging_->lkey; }  // of all but the landing memory, for this rank
  uint32_t landing_key() const { return landing_->rkey; }  // for the peer

 private:
  std::unique_ptr<Channel> memory_;
  MemoryRegion landing_, staging_;
};

}  // namespace ibcoll::verbs
