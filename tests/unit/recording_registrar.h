// SPDX-License-Identifier: BSD-3-Clause
// A registrar that pins nothing and remembers all: what is pinned now, which contents each page had when it was pinned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/registration_cache/registration_cache.h"

namespace ibcoll {

inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kBase = uint64_t{1} << 40;  // addresses from here on stand for memory that is not accessed

class RecordingRegistrar : public Registrar {
 public:
  Result<void*> pin(std::span<std::byte> pages) override {
    const auto begin = reinterpret_cast<uint64_t>(pages.data());
    const Interval range{begin, begin + pages.size()};
    if (range.begin % kPage != 0 || range.end % kPage != 0 || range.begin >= range.end)
      return error(IBCOLL_ERR_INTERNAL, "not whole pages");
    if (pinned_bytes_ + pages.size() > room_) return error(IBCOLL_ERR_NO_MEMORY, "mock0: pin: Cannot allocate memory");
    if (range.begin < border_ && border_ < range.end) return error(IBCOLL_ERR_SYSTEM, "mock0: pin: Bad address");
    pinned_bytes_ += pages.size();
    Record& record = records_[++last_];
    record.range = range;
    for (uint64_t page = range.begin; page < range.end; page += kPage) record.versions.push_back(version(page));
    return reinterpret_cast<void*>(last_);
  }
  void unpin(void* handle) override {
    const auto found = records_.find(reinterpret_cast<uint64_t>(handle));
    if (found == records_.end()) std::abort();  // unpinned twice
    pinned_bytes_ -= found->second.range.size();
    records_.erase(found);
    if (const std::function<void()> call = at_unpin) call();
  }

  // The pages of `range` have other contents from now on.
  void remap(const Interval& range) {
    for (uint64_t page = range.begin / kPage * kPage; page < range.end; page += kPage) ++versions_[page];
  }
  // Is `handle` pinned, does it cover `range`, and are the pages of `range` those that were pinned?
  bool current(void* handle, const Interval& range) {
    const auto found = records_.find(reinterpret_cast<uint64_t>(handle));
    if (found == records_.end() || !found->second.range.covers(range)) return false;
    for (uint64_t page = range.begin / kPage * kPage; page < range.end; page += kPage)
      if (found->second.versions[(page - found->second.range.begin) / kPage] != version(page)) return false;
    return true;
  }
  // Handles of what is pinned of which a page has other contents by now.
  std::vector<void*> stale() {
    std::vector<void*> found;
    for (const auto& [number, record] : records_)
      if (void* const handle = reinterpret_cast<void*>(number); !current(handle, record.range)) found.push_back(handle);
    return found;
  }
  bool holds(void* handle) const { return records_.contains(reinterpret_cast<uint64_t>(handle)); }

  void set_room(uint64_t bytes) { room_ = bytes; }
  void refuse_across(uint64_t border) { border_ = border; }
  size_t pinned() const { return records_.size(); }
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t pins() const { return last_; }

  std::function<void()> at_unpin;

 private:
  struct Record {
    Interval range;
    std::vector<uint32_t> versions;  // of each page
  };
  uint32_t version(uint64_t page) const {
    const auto found = versions_.find(page);
    return found == versions_.end() ? 0 : found->second;
  }

  std::map<uint64_t, Record> records_;
  std::unordered_map<uint64_t, uint32_t> versions_;
  uint64_t last_ = 0;
  uint64_t pinned_bytes_ = 0;
  uint64_t room_ = std::numeric_limits<uint64_t>::max();
  uint64_t border_ = 0;
};

}  // namespace ibcoll
