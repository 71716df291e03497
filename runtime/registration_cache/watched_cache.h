// SPDX-License-Identifier: BSD-3-Clause
// The registration cache as a transport uses it: with the settings, and with what reports unmapped memory. All
// user memory is kept pinned where UCX's memory events work; otherwise only memory of ibcoll_mem_alloc, whose end this
// library knows by itself, and everything else is pinned for the time of its use. ibcoll_info -d shows which, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/config.h"
#include "runtime/registration_cache/memlock.h"
#include "runtime/registration_cache/memory_events.h"
#include "runtime/registration_cache/registration_cache.h"

namespace ibcoll {

class WatchedCache {
 public:
  enum class Scope { kAll, kAllocated, kNothing };

  struct Settings {
    bool enabled = true;
    uint64_t limit_bytes = 0;  // 0: half of the memlock limit, where it binds this process
    size_t limit_regions = 65536;
    bool in_host = false;  // host mode: memory events are used only where the host has them on
    // IBCOLL_REGISTRATION_CACHE, IBCOLL_REGISTRATION_BYTES, IBCOLL_REGISTRATION_REGIONS
    static Settings from(const Config& config, bool in_host = false);
  };

  // Loads UCX, unless the settings say off. `registrar` outlives this.
  WatchedCache(Registrar& registrar, const Settings& settings);
  WatchedCache(const WatchedCache&) = delete;
  WatchedCache& operator=(const WatchedCache&) = delete;

  // As in RegistrationCache. An error means that the message has to be copied.
  Result<Registration*> acquire(std::span<std::byte> memory) {
    if (events_ && !events_->intact()) [[unlikely]]
      distrust();
    return cache_.acquire(memory);
  }
  void release(Registration* registration) noexcept { cache_.release(registration); }
  void collect() { cache_.collect(); }
  void clear() noexcept { cache_.clear(); }
  // Returns the result of `make`. If that is a shortage of memory: the result when nothing stays pinned beyond its use.
  template <typename Make>
  Status with_room(Make make) {
    Status status = make();
    if (status.code() != IBCOLL_ERR_NO_MEMORY || cache_.counters().regions == 0) return status;
    clear();
    return make();
  }

  // Does this memory stay pinned between uses? Where it does not, every acquire() costs a pin.
  bool keeps(std::span<const std::byte> memory) const;

  // Memory may be held that would otherwise stay pinned until the cache needs its room: at most half of what the limits
  // permit is pinned.
  bool has_ample_room() const noexcept {
    const RegistrationCache::Options& limits = cache_.options();
    const RegistrationCache::Counters& now = cache_.counters();
    return now.pinned_bytes <= limits.limit_bytes / 2 && now.regions <= limits.limit_regions / 2;
  }

  Scope scope() const noexcept { return scope_; }
  // Why no more than that: empty for kAll.
  const std::string& reason() const noexcept { return reason_; }
  const RegistrationCache::Counters& counters() const noexcept { return cache_.counters(); }
  // State, reason, limits and counters, for ibcoll_info -d.
  Json describe() const;

 private:
  void distrust();

  // Reports to the cache what ibcoll_mem_free frees, from watch() on.
  class Frees {
   public:
    explicit Frees(RegistrationCache& cache) : cache_(cache) {}
    ~Frees();
    Frees(const Frees&) = delete;
    Frees& operator=(const Frees&) = delete;
    void watch();

   private:
    RegistrationCache& cache_;
  };

  Scope scope_;
  std::string reason_;
  RegistrationCache cache_;
  Frees frees_{cache_};
  std::unique_ptr<MemoryEvents> events_;
};

}  // namespace ibcoll
