// SPDX-License-Identifier: BSD-3-Clause
// Half-open address intervals [begin, end) with a value each. Intervals may overlap, but none contains another: before
// an insertion the caller removes the intervals that the new one contains, and it inserts none that is covered already.
// So in ascending order of begin the ends ascend as well, and of all intervals that begin at or before an address the
// last one reaches furthest: whether a range is covered is one binary search, without a tree and without a pointer to
// follow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ibcoll {

struct Interval {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t size() const { return end - begin; }
  bool covers(const Interval& other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(const Interval& other) const { return begin < other.end && other.begin < end; }
  bool operator==(const Interval&) const = default;
};

template <typename Value>
class IntervalMap {
 public:
  size_t size() const { return begins_.size(); }
  bool empty() const { return begins_.empty(); }

  // Room for one more, so that the next insert() does not allocate. Throws std::bad_alloc and leaves all as it was.
  void reserve_one() {
    if (size() < begins_.capacity() && size() < entries_.capacity()) return;
    const size_t more = std::max<size_t>(64, 2 * size());
    begins_.reserve(more);
    entries_.reserve(more);
  }

  // False, and nothing changes: `interval` is empty, contains another one or is contained in one.
  bool insert(const Interval& interval, Value value) {
    if (interval.begin >= interval.end) return false;
    const size_t at = position(interval.begin);  // the first that begins there or later
    if (at < size() && (begins_[at] == interval.begin || entries_[at].end <= interval.end)) return false;
    if (at > 0 && entries_[at - 1].end >= interval.end) return false;
    reserve_one();
    begins_.insert(begins_.begin() + at, interval.begin);
    entries_.insert(entries_.begin() + at, Entry{interval.end, value});
    return true;
  }

  // The value of an interval that covers `range`, which is not empty; nullptr: there is none.
  Value* find(const Interval& range) {
    if (empty() || begins_[0] > range.begin) return nullptr;
    // The last that begins at or before range.begin. Without branches: which way is as good as random.
    size_t at = 0;
    for (size_t left = size(); left > 1;) {
      const size_t half = left / 2;
      at += begins_[at + half] <= range.begin ? half : 0;
      left -= half;
    }
    return entries_[at].end >= range.end ? &entries_[at].value : nullptr;
  }

  // Calls visit(interval, value) for all that overlap `range`, in ascending order. `visit` must not change the map.
  template <typename Visit>
  void for_overlapping(const Interval& range, Visit visit) const {
    for (size_t at = first_ending_behind(range.begin); at < size() && begins_[at] < range.end; ++at)
      visit(Interval{begins_[at], entries_[at].end}, entries_[at].value);
  }

  // Takes out those that overlap `range` and for which choose(interval, value) holds. `choose` sees each once, in
  // ascending order, and must not change the map.
  template <typename Choose>
  void erase_overlapping(const Interval& range, Choose choose) {
    const size_t first = first_ending_behind(range.begin);
    size_t kept = first;
    size_t at = first;
    for (; at < size() && begins_[at] < range.end; ++at) {
      if (choose(Interval{begins_[at], entries_[at].end}, entries_[at].value)) continue;
      begins_[kept] = begins_[at];
      entries_[kept++] = entries_[at];
    }
    begins_.erase(begins_.begin() + kept, begins_.begin() + at);
    entries_.erase(entries_.begin() + kept, entries_.begin() + at);
  }

  // False: there is no such interval.
  bool erase(const Interval& interval) {
    const size_t at = position(interval.begin);
    if (at == size() || begins_[at] != interval.begin || entries_[at].end != interval.end) return false;
    begins_.erase(begins_.begin() + at);
    entries_.erase(entries_.begin() + at);
    return true;
  }

 private:
  struct Entry {
    uint64_t end;
    Value value;
  };

  size_t position(uint64_t begin) const {
    return static_cast<size_t>(std::lower_bound(begins_.begin(), begins_.end(), begin) - begins_.begin());
  }
  size_t first_ending_behind(uint64_t address) const {
    const auto ends_before = [](uint64_t place, const Entry& entry) { return place < entry.end; };
    return static_cast<size_t>(std::upper_bound(entries_.begin(), entries_.end(), address, ends_before) -
                               entries_.begin());
  }

  std::vector<uint64_t> begins_;  // apart from the rest: the search touches nothing else
  std::vector<Entry> entries_;
};

}  // namespace ibcoll
