// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/exposures.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/log.h"

namespace ibcoll::verbs {
namespace {

constexpr size_t kMostExposures = kExposureIndex + 1;
constexpr size_t kMostResting = 8;           // for one peer
constexpr size_t kLongestResting = 4 << 20;  // bytes, which stay pinned; binding is nothing beside moving more
constexpr uint64_t kLongestWindow = uint64_t{1} << 31;  // bytes; some devices (mlx5) bind no more

}  // namespace

Exposures::~Exposures() {
  for (Exposure& exposure : table_) {
    exposure.window.handle.reset();
    unpin(exposure);
  }
}

// From the cache where a window on it keeps the peer within the range; else a region of exactly the range.
Status Exposures::pin(Exposure& exposure) {
  const Adapter& adapter = local_.adapter;
  if (adapter.windows_on_cache()) {
    const Result<Registration*> pinned = adapter.registrations().acquire(exposure.memory);
    if (pinned.ok()) exposure.registration = pinned.value();
    return pinned.status();
  }
  const int remote = adapter.opens_windows() ? IBV_ACCESS_MW_BIND : IBV_ACCESS_REMOTE_WRITE;
  return adapter.registrations().with_room([&]() -> Status {
    exposure.exact.reset(ibv_reg_mr(adapter.domain(), exposure.memory.data(), exposure.memory.size(),
                                    static_cast<unsigned>(IBV_ACCESS_LOCAL_WRITE | remote)));
    if (exposure.exact) return {};
    return verbs_error(adapter.name(), registering(exposure.memory.size()), errno);
  });
}

void Exposures::unpin(Exposure& exposure) {
  if (exposure.registration) local_.adapter.registrations().release(exposure.registration);
  exposure.registration = nullptr;
  exposure.exact.reset();
}

// One that was not used for this window before.
bool Exposures::make_key(Exposure& exposure) {
  if (!local_.adapter.opens_windows()) {
    exposure.key = exposure.exact->rkey;
    return true;
  }
  if (!free_windows_.empty()) {
    exposure.window = std::move(free_windows_.back());
    free_windows_.pop_back();
  } else {
    exposure.window.handle.reset(ibv_alloc_mw(local_.adapter.domain(), IBV_MW_TYPE_2));
    if (!exposure.window.handle) return false;
    exposure.window.key = exposure.window.handle->rkey;
  }
  exposure.key = exposure.window.key = ibv_inc_rkey(exposure.window.key);
  return true;
}

RemoteRegion Exposures::expose(Peer& peer, std::span<std::byte> memory) {
  const Adapter& adapter = local_.adapter;
  peer.exposed.make_room(kMostResting);  // before what would have to be undone
  if (uint32_t index = 0; take_resting(peer, memory, index)) return region_of_new(peer, index);
  if (free_.empty()) {
    if (table_.size() == kMostExposures) return {};
    reserve_one(table_);
    free_.reserve(table_.capacity());  // no index is free before it is in the table
    free_windows_.reserve(table_.capacity());
    table_.emplace_back();
    free_.push_back(static_cast<uint32_t>(table_.size() - 1));
  }
  if (adapter.opens_windows() && memory.size() > kLongestWindow)
    return refuse(error(IBCOLL_ERR_UNSUPPORTED,
                        "{}: {} bytes are more than a memory window may cover; IBCOLL_VERBS_WINDOWS=off",
                        adapter.name(), memory.size()));
  const uint32_t index = free_.back();
  free_.pop_back();
  Exposure& exposure = table_[index];
  exposure.memory = memory;
  Status status = pin(exposure);
  if (!status.ok() && heed_shortage()) status = pin(exposure);
  if (status.ok() && !make_key(exposure)) {
    status = verbs_error(adapter.name(), "ibv_alloc_mw", errno);
    unpin(exposure);
  }
  if (!status.ok()) {
    free_.push_back(index);
    return refuse(status);
  }
  exposure.bound = false;
  const RemoteRegion region = region_of_new(peer, index);
  if (adapter.opens_windows()) peer.exposed.bind_later(exposure.number);
  return region;
}

// With another number than it had before.
RemoteRegion Exposures::region_of_new(Peer& peer, uint32_t index) {
  Exposure& exposure = table_[index];
  exposure.number = (exposure.number & ~kExposureIndex) + kExposureIndex + 1 + index;
  if (exposure.number <= kExposureIndex) exposure.number += kExposureIndex + 1;  // never 0 in the upper half
  exposure.peer = peer.rank;
  exposure.advertised = exposure.key;
  peer.exposed.add(exposure.number);
  return {reinterpret_cast<uint64_t>(exposure.memory.data()), exposure.memory.size(),
          static_cast<uint64_t>(exposure.number) << 32 | exposure.key};
}

// The caller receives through slots instead, which its peer learns from the advertisement.
RemoteRegion Exposures::refuse(const Status& why) {
  if (not_exposed_++ == 0)
    log(LogLevel::kWarning, "verbs: rank {} cannot expose its receive buffer and copies instead: {}", local_.rank,
        why.text());
  return {};
}

Exposure* Exposures::find(int rank, const RemoteRegion& region) {
  const auto number = static_cast<uint32_t>(region.key >> 32);
  const size_t index = number & kExposureIndex;
  return index < table_.size() && table_[index].number == number && table_[index].peer == rank ? &table_[index]
                                                                                               : nullptr;
}

void Exposures::conceal(Peer& peer, const RemoteRegion& region) {
  Exposure* const exposure = find(peer.rank, region);
  if (exposure == nullptr) return;
  if (exposure->bound) await_invalidation(peer, exposure->number, invalidate(peer, {&exposure->number, 1}));
  peer.exposed.remove(exposure->number);
  release(*exposure);
}

void Exposures::release(Exposure& exposure) {
  if (exposure.window.handle) free_windows_.push_back(std::move(exposure.window));
  unpin(exposure);
  exposure.peer = -1;
  free_.push_back(exposure.number & kExposureIndex);
}

// ---------------------------------------------------------------- rest

// What rests stays pinned: only where the memory would stay so anyway, and there is room for more.
void Exposures::rest(Peer& peer, const RemoteRegion& region) {
  Exposure* const exposure = find(peer.rank, region);
  if (exposure == nullptr) return;
  const WatchedCache& registrations = local_.adapter.registrations();
  std::vector<uint32_t>& resting = peer.exposed.resting();
  const bool stays_pinned = exposure->memory.size() <= kLongestResting && exposure->registration &&
                            registrations.has_ample_room() && registrations.keeps(exposure->memory) && pause_.over();
  if (stays_pinned && resting.size() == kMostResting) end_rest(peer, resting.front());
  if (!stays_pinned || !exposure->bound || !peer.connection.ready()) return conceal(peer, region);
  peer.exposed.remove(exposure->number);
  exposure->peer = -1;
  resting.push_back(exposure->number);
}

void Exposures::end_rest(Peer& peer, uint32_t number) {
  std::erase(peer.exposed.resting(), number);
  Exposure& exposure = at(number);
  exposure.peer = peer.rank;
  peer.exposed.add(number);
  conceal(peer, {0, 0, static_cast<uint64_t>(number) << 32});
}

// All are posted before the first one is awaited.
void Exposures::end_rests() {
  const auto for_each_with_rest = [this](auto visit) {
    for (const std::unique_ptr<Peer>& peer : local_.peers.all())
      if (peer && !peer->exposed.resting().empty()) visit(*peer);
  };
  for_each_with_rest([this](Peer& peer) {
    const std::vector<uint32_t>& resting = peer.exposed.resting();
    std::array<uint32_t, kMostResting> numbers{};  // a connection that breaks meanwhile ends them all
    std::copy(resting.begin(), resting.end(), numbers.begin());
    peer.exposed.end_of_rest = invalidate(peer, std::span(numbers).first(resting.size()));
  });
  for_each_with_rest([this](Peer& peer) {
    std::vector<uint32_t>& resting = peer.exposed.resting();
    await_invalidation(peer, resting.front(), peer.exposed.end_of_rest);
    for (const uint32_t number : resting) release(at(number));
    resting.clear();
  });
}

bool Exposures::heed_shortage() {
  const uint64_t shortages = local_.adapter.registrations().counters().shortages;
  if (shortages == shortages_) [[likely]]
    return false;
  shortages_ = shortages;
  make_room();
  return true;
}

// True: memory that rested has become free.
bool Exposures::make_room() {
  pause_.begin();
  const auto rests = [](const std::unique_ptr<Peer>& peer) { return peer && !peer->exposed.resting().empty(); };
  const bool any = std::any_of(local_.peers.all().begin(), local_.peers.all().end(), rests);
  end_rests();
  return any;
}

// True: a window on the same pages. Pages may have been unmapped and mapped again since, which the cache knows.
bool Exposures::take_resting(Peer& peer, std::span<std::byte> memory, uint32_t& index) {
  std::vector<uint32_t>& resting = peer.exposed.resting();
  const auto found = std::find_if(resting.begin(), resting.end(), [&](uint32_t number) {
    return at(number).memory.data() == memory.data() && at(number).memory.size() == memory.size();
  });
  if (found == resting.end()) return false;
  const uint32_t number = *found;
  WatchedCache& registrations = local_.adapter.registrations();
  const Result<Registration*> pinned = registrations.acquire(memory);
  const bool same = pinned.ok() && pinned.value() == at(number).registration;
  if (pinned.ok()) registrations.release(pinned.value());
  if (!same) {
    end_rest(peer, number);
    return false;
  }
  resting.erase(found);
  index = number & kExposureIndex;
  return true;
}

bool Exposures::write(const Peer& peer, const SlotHeader& header, const std::byte* payload) {
  const Exposure* const to = find(peer.rank, {0, 0, uint64_t{header.exposure} << 32});
  const uint64_t offset = to ? header.address - reinterpret_cast<uint64_t>(to->memory.data()) : 0;  // huge: before it
  if (!to || offset > to->memory.size() || header.bytes > to->memory.size() - offset) return false;
  if (header.bytes > 0) std::memcpy(to->memory.data() + offset, payload, header.bytes);
  return true;
}

}  // namespace ibcoll::verbs
