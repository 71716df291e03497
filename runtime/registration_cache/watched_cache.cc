// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/watched_cache.h"

#include <dlfcn.h>
#include <link.h>

#include <utility>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/machine/user_memory.h"
#include "runtime/registration_cache/memlock.h"

namespace ibcoll {
namespace {

// The other half is for what is in use beyond the cache, and for other libraries of the process.
uint64_t half_of_memlock() {
  const uint64_t limit = memlock_limit();
  return limit == kNoMemlock ? limit : limit / 2;
}

void on_free(void* cache, const void* address, size_t bytes) {
  static_cast<RegistrationCache*>(cache)->invalidate(address, bytes);
}

// Static memory of a library goes with dlclose(), by system calls of the dynamic linker that no one sees.
bool of_a_library(std::span<const std::byte> memory) {
  dl_find_object object{};
  const bool found = ::_dl_find_object(const_cast<std::byte*>(memory.data()), &object) == 0;
  return found && object.dlfo_link_map != nullptr && object.dlfo_link_map->l_name[0] != '\0';
}

const char* name(WatchedCache::Scope scope) {
  switch (scope) {
    case WatchedCache::Scope::kAll:
      return "all memory";
    case WatchedCache::Scope::kAllocated:
      return "memory of ibcoll_mem_alloc";
    case WatchedCache::Scope::kNothing:
      break;
  }
  return "nothing";
}

}  // namespace

WatchedCache::Settings WatchedCache::Settings::from(const Config& config, bool in_host) {
  return {config.text("IBCOLL_REGISTRATION_CACHE") != "off", config.bytes("IBCOLL_REGISTRATION_BYTES"),
          static_cast<size_t>(config.integer("IBCOLL_REGISTRATION_REGIONS")), in_host};
}

WatchedCache::WatchedCache(Registrar& registrar, const Settings& settings)
    : scope_(settings.enabled ? Scope::kAllocated : Scope::kNothing),
      cache_(registrar, {settings.limit_bytes != 0 ? settings.limit_bytes : half_of_memlock(), settings.limit_regions,
                         [this](std::span<const std::byte> memory) { return keeps(memory); }, 0}) {
  if (!settings.enabled) {
    reason_ = "IBCOLL_REGISTRATION_CACHE is off";
    return;
  }
  frees_.watch();
  Result<std::unique_ptr<MemoryEvents>> events = MemoryEvents::start(cache_.unmapped(), settings.in_host);
  if (events.ok()) {
    scope_ = Scope::kAll;
    events_ = std::move(*events);
  } else {
    reason_ = events.status().text();
    log(LogLevel::kInfo, "registration cache: keeps only {} pinned: {}", name(scope_), reason_);
  }
}

void WatchedCache::Frees::watch() { watch_frees(&on_free, &cache_); }

WatchedCache::Frees::~Frees() { unwatch_frees(&on_free, &cache_); }

bool WatchedCache::keeps(std::span<const std::byte> memory) const {
  return (scope_ == Scope::kAll && !of_a_library(memory)) || (scope_ == Scope::kAllocated && is_allocated(memory));
}

// Some unmappings may not have been reported: no kept registration may be used any more.
void WatchedCache::distrust() {
  scope_ = Scope::kAllocated;
  reason_ = "another library has hooked munmap() after the start";
  events_.reset();
  cache_.invalidate_all();
  log(LogLevel::kWarning, "registration cache: {}: from now on only {} stays pinned between uses", reason_,
      name(scope_));
}

Json WatchedCache::describe() const {
  const RegistrationCache::Counters& count = cache_.counters();
  const uint64_t lookups = count.hits + count.misses;
  Json out = {
      {"keeps", name(scope_)},
      {"limit_regions", cache_.options().limit_regions},
      {"regions", count.regions},
      {"pinned_bytes", count.pinned_bytes},
      {"most_pinned_bytes", count.most_pinned_bytes},
      {"hits", count.hits},
      {"misses", count.misses},
      {"hit_rate", lookups == 0 ? 0.0 : static_cast<double>(count.hits) / static_cast<double>(lookups)},
      {"evictions", count.evictions},
      {"invalidations", count.invalidations},
      {"merges", count.merges},
      {"failures", count.failures},
      {"shortages", count.shortages},
  };
  if (!reason_.empty()) out.set("why_no_more", reason_);
  if (cache_.options().limit_bytes != kNoMemlock) out.set("limit_bytes", cache_.options().limit_bytes);
  return out;
}

}  // namespace ibcoll
