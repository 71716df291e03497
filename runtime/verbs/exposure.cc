// SPDX-License-Identifier: BSD-3-Clause
// The right to write: a memory window of type 2B, bound to exactly the exposed range on the queue pair of the peer, so
// that the device itself refuses everybody else, and every byte outside. Binding travels in the send queue before the
// advertisement; conceal() invalidates and waits until that is done.
#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/verbs/transport.h"

namespace ibcoll::verbs {
namespace {

constexpr size_t kMostExposures = kExposureIndex + 1;
constexpr uint64_t kLongestWindow = uint64_t{1} << 31;  // bytes; some devices (mlx5) bind no more

}  // namespace

// From the cache where a window on it keeps the peer within the range; else a region of exactly the range.
Status Transport::pin(Exposure& exposure) {
  if (choice_.opens_windows && choice_.port.good_windows) {
    const Result<Registration*> pinned = registrations_->acquire(exposure.memory);
    if (pinned.ok()) exposure.registration = pinned.value();
    return pinned.status();
  }
  const int remote = choice_.opens_windows ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_WRITE;
  return registrations_->with_room([&]() -> Status {
    exposure.exact.reset(ibv_reg_mr(domain_.get(), exposure.memory.data(), exposure.memory.size(),
                                    static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE | remote)));
    if (exposure.exact) return {};
    return verbs_error(device(), fmt::format("ibv_reg_mr of {} bytes", exposure.memory.size()), errno);
  });
}

void Transport::unpin(Exposure& exposure) {
  if (exposure.registration) registrations_->release(exposure.registration);
  exposure.registration = nullptr;
  exposure.exact.reset();
}

// One that was not used for this window before.
bool Transport::make_key(Exposure& exposure) {
  if (!choice_.opens_windows) {
    exposure.key = exposure.exact->rkey;
    return true;
  }
  if (!free_windows_.empty()) {
    exposure.window = std::move(free_windows_.back());
    free_windows_.pop_back();
  } else {
    exposure.window.handle.reset(ibv_alloc_mw(domain_.get(), IBV_MW_TYPE_2));
    if (!exposure.window.handle) return false;
    exposure.window.key = exposure.window.handle->rkey;
  }
  exposure.key = exposure.window.key = ibv_inc_rkey(exposure.window.key);
  return true;
}

RemoteRegion Transport::expose(int rank, std::span<std::byte> memory) {
  Peer* const peer = find_or_make(rank);
  if (peer == nullptr || peer->connection.is(State::kFailed) || memory.empty()) return {};
  if (free_exposures_.empty()) {
    if (exposures_.size() == kMostExposures) return {};
    free_exposures_.push_back(static_cast<uint32_t>(exposures_.size()));
    exposures_.emplace_back();
  }
  if (choice_.opens_windows && memory.size() > kLongestWindow)
    return not_exposed(error(IBCOLL_ERR_UNSUPPORTED,
                             "{}: {} bytes are more than a memory window may cover; IBCOLL_VERBS_WINDOWS=off", device(),
                             memory.size()));
  const uint32_t index = free_exposures_.back();
  Exposure& exposure = exposures_[index];
  exposure.memory = memory;
  if (Status status = pin(exposure); !status.ok()) return not_exposed(status);
  if (!make_key(exposure)) {
    const int code = errno;
    unpin(exposure);
    return not_exposed(verbs_error(device(), "ibv_alloc_mw", code));
  }
  free_exposures_.pop_back();
  exposure.number = (exposure.number & ~kExposureIndex) + kExposureIndex + 1 + index;
  if (exposure.number <= kExposureIndex) exposure.number += kExposureIndex + 1;  // never 0 in the upper half
  exposure.peer = rank;
  exposure.bound = false;
  exposure.advertised = exposure.key;
  peer->exposed.add(exposure.number);
  if (choice_.opens_windows) peer->exposed.bind_later(exposure.number);
  if (peer->connection.ready()) pump(*peer);  // not behind what the caller sends next
  return {reinterpret_cast<uint64_t>(memory.data()), memory.size(),
          static_cast<uint64_t>(exposure.number) << 32 | exposure.key};
}

// The caller receives through slots instead, which its peer learns from the advertisement.
RemoteRegion Transport::not_exposed(const Status& why) {
  if (counters_.not_exposed++ == 0)
    log(LogLevel::kWarning, "verbs: rank {} cannot expose its receive buffer and copies instead: {}", rank_,
        why.text());
  return {};
}

Exposure* Transport::exposure_of(int rank, const RemoteRegion& region) {
  const auto number = static_cast<uint32_t>(region.key >> 32);
  const size_t index = number & kExposureIndex;
  if (index >= exposures_.size() || exposures_[index].number != number || exposures_[index].peer != rank)
    return nullptr;
  return &exposures_[index];
}

bool Transport::conceal(int rank, const RemoteRegion& region) {
  Exposure* const found = exposure_of(rank, region);
  if (found == nullptr) return true;
  Peer& peer = *peers_[static_cast<size_t>(rank)];
  if (found->bound) invalidate(peer, *found);
  forget(*found);
  return true;
}

void Transport::forget(Exposure& exposure) {
  peers_[static_cast<size_t>(exposure.peer)]->exposed.remove(exposure.number);
  if (exposure.window.handle) free_windows_.push_back(std::move(exposure.window));
  unpin(exposure);
  exposure.peer = -1;
  free_exposures_.push_back(exposure.number & kExposureIndex);
}

}  // namespace ibcoll::verbs
