// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/registration_cache.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace ibcoll {

RegistrationCache::RegistrationCache(Registrar& registrar, Options options)
    : registrar_(registrar), options_(std::move(options)) {
  if (options_.page_bytes == 0) options_.page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  unused_.older_ = unused_.newer_ = &unused_;
}

RegistrationCache::~RegistrationCache() { clear(); }

void RegistrationCache::release(Registration* registration) noexcept {
  if (--registration->references_ > 0) return;
  if (!registration->kept_) return unpin(registration);
  registration->older_ = unused_.older_;
  registration->newer_ = &unused_;
  unused_.older_->newer_ = registration;
  unused_.older_ = registration;
  make_room(0, 0);
}

void RegistrationCache::clear() noexcept {
  while (has_unused()) evict_oldest();
}

Interval RegistrationCache::pages(const Interval& range) const noexcept {
  const uint64_t mask = options_.page_bytes - 1;
  return {range.begin & ~mask, (range.end + mask) & ~mask};
}

// `wanted` and those overlapping registrations that make it at most half as large again. A stricter rule would let a
// buffer that is used by a sliding window be pinned many times over; a laxer one would pin the blocks of an array,
// which share the pages at their ends, again and again in an ever larger registration.
Interval RegistrationCache::with_neighbours(const Interval& wanted) const {
  Interval all = wanted;
  map_.for_overlapping(wanted, [&](const Interval& other, const Registration*) {
    const Interval both{std::min(wanted.begin, other.begin), std::max(wanted.end, other.end)};
    if (both.size() > wanted.size() + wanted.size() / 2) return;
    all = {std::min(all.begin, both.begin), std::max(all.end, both.end)};
  });
  return all.size() <= options_.limit_bytes ? all : wanted;
}

Result<Registration*> RegistrationCache::pin_new(std::span<std::byte> memory) {
  const Interval range = interval(memory);
  const Interval wanted = pages(range);
  if (wanted.begin >= wanted.end || range.end <= range.begin)
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "registration cache: {} bytes at {} are no memory", memory.size(),
                 static_cast<const void*>(memory.data()));
  ++counters_.misses;
  try {
    auto registration = std::make_unique<Registration>();
    map_.reserve_one();
    const bool keep = wanted.size() <= options_.limit_bytes && options_.limit_regions > 0 &&
                      (!options_.keep || options_.keep(memory));
    const Interval with_others = keep ? with_neighbours(wanted) : wanted;
    if (keep) {
      replace_contained(with_others);
      make_room(with_others.size(), 1);
    }
    if (Status status = pin_or_make_room(*registration, with_others, wanted); !status.ok()) {
      ++counters_.failures;
      return refused(status, wanted);
    }
    registration->references_ = 1;
    registration->kept_ = keep && map_.insert(registration->pages_, registration.get());
    return registration.release();
  } catch (const std::bad_alloc&) {
    ++counters_.failures;
    return error(IBCOLL_ERR_NO_MEMORY, "registration cache: no memory for its own tables");
  }
}

Status RegistrationCache::pin(Registration& registration, const Interval& pages) {
  Result<void*> handle = registrar_.pin({reinterpret_cast<std::byte*>(pages.begin), static_cast<size_t>(pages.size())});
  if (!handle.ok()) return handle.status();
  registration.pages_ = pages;
  registration.handle_ = *handle;
  ++counters_.regions;
  counters_.pinned_bytes += pages.size();
  counters_.most_pinned_bytes = std::max(counters_.most_pinned_bytes, counters_.pinned_bytes);
  return {};
}

// A neighbour may be of another kind, read-only say: what was asked for alone may still do, and then nothing is short.
Status RegistrationCache::pin_or_make_room(Registration& registration, const Interval& pages, const Interval& wanted) {
  Status status = pin(registration, pages);
  if (!status.ok() && pages != wanted) status = pin(registration, wanted);
  if (status.code() != IBCOLL_ERR_NO_MEMORY) return status;
  ++counters_.shortages;
  if (!has_unused()) return status;
  clear();
  return pin(registration, wanted);
}

Status RegistrationCache::refused(const Status& why, const Interval& wanted) const {
  return error(why.code(),
               "{}; registration cache: {} bytes at {:#x} were asked for, {} bytes in {} regions are pinned",
               why.text(), wanted.size(), wanted.begin, counters_.pinned_bytes, counters_.regions);
}

void RegistrationCache::drain() {
  unmapped_.drain([this](const Interval& lost) {
    Registration* unused = nullptr;
    map_.erase_overlapping(lost, [&](const Interval&, Registration* registration) {
      ++counters_.invalidations;
      leave_map(*registration, unused);
      return true;
    });
    unpin_all(unused);
  });
}

void RegistrationCache::replace_contained(const Interval& pages) {
  Registration* unused = nullptr;
  map_.erase_overlapping(pages, [&](const Interval& other, Registration* registration) {
    if (!pages.covers(other)) return false;
    ++counters_.merges;
    leave_map(*registration, unused);
    return true;
  });
  unpin_all(unused);
}

// A registration that is in use ends with its last release(); another one goes into a list, to be unpinned when the map
// is whole again.
void RegistrationCache::leave_map(Registration& registration, Registration*& unused) noexcept {
  registration.kept_ = false;
  if (registration.references_ > 0) return;
  unlink(registration);
  registration.newer_ = std::exchange(unused, &registration);
}

void RegistrationCache::unpin_all(Registration* list) noexcept {
  while (list) unpin(std::exchange(list, list->newer_));
}

// Evicts until `bytes` and `regions` more are within the limits, or nothing unused is left.
void RegistrationCache::make_room(uint64_t bytes, size_t regions) noexcept {
  const auto fits = [&] {
    return counters_.regions + regions <= options_.limit_regions && bytes <= options_.limit_bytes &&
           counters_.pinned_bytes <= options_.limit_bytes - bytes;
  };
  while (has_unused() && !fits()) evict_oldest();
}

void RegistrationCache::evict_oldest() noexcept {
  Registration* const oldest = unused_.newer_;
  unlink(*oldest);
  map_.erase(oldest->pages_);
  ++counters_.evictions;
  unpin(oldest);
}

void RegistrationCache::unpin(Registration* registration) noexcept {
  registrar_.unpin(registration->handle_);
  --counters_.regions;
  counters_.pinned_bytes -= registration->pages_.size();
  delete registration;
}

}  // namespace ibcoll
