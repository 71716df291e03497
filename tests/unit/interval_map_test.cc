// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/registration_cache/interval_map.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace ibcoll {
namespace {

TEST(IntervalMap, FindsWhatCoversARange) {
  IntervalMap<int> map;
  EXPECT_EQ(map.find({0, 1}), nullptr);
  ASSERT_TRUE(map.insert({10, 20}, 1));
  ASSERT_TRUE(map.insert({30, 40}, 3));
  ASSERT_TRUE(map.insert({20, 30}, 2));
  for (const auto& [range, value] : std::vector<std::pair<Interval, int>>{
           {{10, 20}, 1}, {{10, 11}, 1}, {{19, 20}, 1}, {{20, 30}, 2}, {{29, 30}, 2}, {{30, 31}, 3}, {{39, 40}, 3}}) {
    ASSERT_NE(map.find(range), nullptr) << range.begin;
    EXPECT_EQ(*map.find(range), value) << range.begin;
  }
  for (const Interval& range : {Interval{9, 10}, {9, 11}, {19, 21}, {10, 30}, {39, 41}, {40, 41}, {0, 100}})
    EXPECT_EQ(map.find(range), nullptr) << range.begin;
}

TEST(IntervalMap, OverlappingIntervalsLieSideBySide) {
  IntervalMap<int> map;
  ASSERT_TRUE(map.insert({10, 20}, 1));
  ASSERT_TRUE(map.insert({15, 25}, 2));
  ASSERT_TRUE(map.insert({5, 12}, 0));
  EXPECT_EQ(*map.find({10, 12}), 1);
  EXPECT_EQ(*map.find({9, 12}), 0);
  EXPECT_EQ(*map.find({16, 20}), 2);
  EXPECT_EQ(*map.find({14, 20}), 1);
  EXPECT_EQ(map.find({14, 21}), nullptr);
}

TEST(IntervalMap, RefusesWhatWouldContainOrBeContained) {
  IntervalMap<int> map;
  ASSERT_TRUE(map.insert({10, 20}, 1));
  for (const Interval& range : {Interval{10, 20}, {10, 15}, {15, 20}, {12, 18}, {10, 25}, {5, 20}, {0, 100}, {7, 7}})
    EXPECT_FALSE(map.insert(range, 2)) << range.begin << " " << range.end;
  EXPECT_EQ(map.size(), 1U);
  EXPECT_TRUE(map.insert({20, 21}, 2));
  EXPECT_TRUE(map.insert({9, 10}, 3));
}

TEST(IntervalMap, ErasesWhatIsChosen) {
  IntervalMap<int> map;
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(map.insert({i * 10, i * 10 + 10}, static_cast<int>(i)));
  std::vector<int> seen;
  map.erase_overlapping({25, 61}, [&](const Interval&, int value) {
    seen.push_back(value);
    return value % 2 == 0;
  });
  EXPECT_EQ(seen, (std::vector<int>{2, 3, 4, 5, 6}));
  EXPECT_EQ(map.size(), 7U);
  EXPECT_EQ(map.find({20, 30}), nullptr);
  EXPECT_EQ(*map.find({30, 40}), 3);
  EXPECT_FALSE(map.erase({30, 39}));
  EXPECT_TRUE(map.erase({30, 40}));
  EXPECT_FALSE(map.erase({30, 40}));
}

// The same calls on a list that is searched from end to end.
class NaiveMap {
 public:
  bool insert(const Interval& interval, int value) {
    if (interval.begin >= interval.end) return false;
    for (const auto& [other, unused] : entries_)
      if (interval.covers(other) || other.covers(interval)) return false;
    entries_.emplace_back(interval, value);
    return true;
  }
  bool covered(const Interval& range) const {
    for (const auto& [other, unused] : entries_)
      if (other.covers(range)) return true;
    return false;
  }
  std::vector<std::pair<Interval, int>> overlapping(const Interval& range) const {
    auto found = entries_;
    std::erase_if(found, [&](const auto& entry) { return !entry.first.overlaps(range); });
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
    return found;
  }
  bool has(const Interval& interval, int value) const {
    return std::find(entries_.begin(), entries_.end(), std::pair(interval, value)) != entries_.end();
  }
  bool erase(const Interval& interval) {
    return std::erase_if(entries_, [&](const auto& entry) { return entry.first == interval; }) > 0;
  }
  template <typename Choose>
  void erase_overlapping(const Interval& range, Choose choose) {
    std::erase_if(entries_, [&](const auto& e) { return e.first.overlaps(range) && choose(e.second); });
  }
  size_t size() const { return entries_.size(); }

 private:
  std::vector<std::pair<Interval, int>> entries_;
};

void compare_overlapping(const IntervalMap<int>& map, const NaiveMap& naive, const Interval& range) {
  std::vector<std::pair<Interval, int>> found;
  map.for_overlapping(range, [&](const Interval& interval, int value) { found.emplace_back(interval, value); });
  ASSERT_EQ(found, naive.overlapping(range));
}

void run_random(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t end) { return std::uniform_int_distribution<uint32_t>(0, end - 1)(random); };
  const uint32_t space = 20 + below(400);
  const uint32_t longest = 1 + below(40);
  IntervalMap<int> map;
  NaiveMap naive;
  for (int step = 0; step < 2000; ++step) {
    const uint64_t begin = below(space);
    const Interval range{begin, begin + 1 + below(longest)};
    switch (below(8)) {
      case 0:
        ASSERT_EQ(map.erase(range), naive.erase(range));
        break;
      case 1: {
        const int rest = static_cast<int>(below(3));
        map.erase_overlapping(range, [&](const Interval& at, int value) {
          EXPECT_TRUE(naive.has(at, value));
          return value % 3 == rest;
        });
        naive.erase_overlapping(range, [&](int value) { return value % 3 == rest; });
        break;
      }
      case 2:
        ASSERT_NO_FATAL_FAILURE(compare_overlapping(map, naive, range));
        break;
      case 3:
      case 4:
      case 5: {
        int* const found = map.find(range);
        ASSERT_EQ(found != nullptr, naive.covered(range));
        break;
      }
      default:
        ASSERT_EQ(map.insert(range, step), naive.insert(range, step));
    }
    ASSERT_EQ(map.size(), naive.size());
  }
  ASSERT_NO_FATAL_FAILURE(compare_overlapping(map, naive, {0, 1000}));
}

TEST(IntervalMap, RandomCallsAsOnANaiveMap) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(run_random(seed));
  }
}

}  // namespace
}  // namespace ibcoll
