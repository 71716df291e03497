// SPDX-License-Identifier: BSD-3-Clause
// The parts of --arrival that need no job: patterns, figures, and the clock of another machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

#include "perf/arrival/figures.h"
#include "perf/arrival/link.h"
#include "perf/arrival/loop.h"
#include "perf/arrival/pattern.h"

namespace ibcoll::perf {
namespace {

TEST(ArrivalPattern, RandomDelaysAreBoundedAndDifferFromCallToCall) {
  ArrivalPattern pattern;
  ASSERT_EQ(parse_arrival("random:32", pattern), "");
  std::set<double> seen;
  double sum = 0;
  for (uint64_t call = 0; call < 100; ++call) {
    for (int rank = 0; rank < 16; ++rank) {
      const double delay = arrival_delay(pattern, call, rank, 16, 2.0);
      EXPECT_GE(delay, 0);
      EXPECT_LT(delay, 64);
      EXPECT_EQ(delay, arrival_delay(pattern, call, rank, 16, 2.0));
      seen.insert(delay);
      sum += delay;
    }
  }
  EXPECT_EQ(seen.size(), 1600U);
  EXPECT_NEAR(sum / 1600, 32, 2);
}

TEST(ArrivalPattern, ShareOfLateRanksIsExact) {
  const auto late_ranks = [](const char* text, int ranks) {
    ArrivalPattern pattern;
    EXPECT_EQ(parse_arrival(text, pattern), "");
    std::set<int> counts;
    for (uint64_t call = 0; call < 50; ++call) {
      int late = 0;
      for (int rank = 0; rank < ranks; ++rank) late += arrival_delay(pattern, call, rank, ranks, 3.0) == 30 ? 1 : 0;
      counts.insert(late);
    }
    return counts;
  };
  EXPECT_EQ(late_ranks("late:25:10", 16), std::set<int>{4});
  EXPECT_EQ(late_ranks("late:75:10", 4), std::set<int>{3});
  EXPECT_EQ(late_ranks("late:0:10", 16), std::set<int>{1});
  EXPECT_EQ(late_ranks("late:100:10", 16), std::set<int>{15});
}

TEST(ArrivalPattern, FileIsTakenCallByCall) {
  ArrivalPattern pattern;
  ASSERT_EQ(parse_arrival("file:x", pattern), "");
  std::istringstream text("# ibcoll arrivals 1 ranks 2\n0 1.5\n7 0\n");
  ASSERT_EQ(read_arrivals(text, "x", 2, pattern), "");
  EXPECT_EQ(arrival_delay(pattern, 0, 1, 2, 100), 1.5);
  EXPECT_EQ(arrival_delay(pattern, 1, 0, 2, 100), 7);
  EXPECT_EQ(arrival_delay(pattern, 2, 1, 2, 100), 1.5);
}

// Two calls of three ranks; the definitions of Qian and Afsahi, equations 1 to 3.
TEST(ArrivalFigures, AreThoseOfThePaper) {
  const std::vector<double> stamps = {0, 20, 100, 130, 6, 18, 100, 131, 12, 19, 100, 132};
  std::vector<double> calls;
  const ArrivalFigures figures = arrival_figures(stamps, 3, 2, calls);
  EXPECT_EQ(calls, (std::vector<double>{20, 30, 12, 31, 7, 32}));
  EXPECT_DOUBLE_EQ(figures.last, 32);           // 8 and 32: the upper one of two
  EXPECT_DOUBLE_EQ(figures.average_factor, 1);  // (6 + 0 + 6) / 3 = 4 and 0
  EXPECT_DOUBLE_EQ(figures.worst_factor, 3);    // 12 and 0
}

TEST(ArrivalFigures, CountFromTheLastArrivalToTheLastExit) {
  std::vector<double> calls;
  EXPECT_DOUBLE_EQ(arrival_figures({0, 20, 6, 18, 12, 19}, 3, 2, calls).last, 8);
}

TEST(ArrivalFigures, LateRankMovesWhatCrossesItsLink) {
  ArrivalSetting setting;
  setting.ranks = 16;
  setting.nodes = 4;
  EXPECT_EQ(late_rank_bytes(kCatalog[IBCOLL_ALLTOALL], 10, setting), 120);
  EXPECT_EQ(late_rank_bytes(kCatalog[IBCOLL_ALLGATHER], 10, setting), 30);
  EXPECT_EQ(late_rank_bytes(kCatalog[IBCOLL_BARRIER], 0, setting), 0);
  setting.nodes = 1;
  EXPECT_EQ(late_rank_bytes(kCatalog[IBCOLL_ALLTOALL], 10, setting), 150);
}

// The peer of a rank 1 whose clock is 5 s behind that of rank 0.
class DistantClock {
 public:
  int rank() const { return 1; }
  int size() const { return 2; }
  bool largest(double&) { return true; }
  bool open(int, int, void* buffer, uint64_t bytes) {
    buffer_ = buffer;
    return bytes == sizeof(double);
  }
  bool message(bool forward) {
    const double theirs = now_us() + 5e6;
    if (forward) std::memcpy(buffer_, &theirs, sizeof theirs);
    return true;
  }
  bool close() { return true; }

 private:
  void* buffer_ = nullptr;
};

TEST(ArrivalClock, OffsetIsWithinItsError) {
  DistantClock peer;
  double offset = 0, error = 0;
  ASSERT_TRUE(clock_offset(peer, {false, true}, offset, error));
  EXPECT_NEAR(offset, 5e6, error + 0.01);  // microseconds as doubles
  EXPECT_LT(error, 1e4);
  ASSERT_TRUE(clock_offset(peer, {false, false}, offset, error));
  EXPECT_EQ(offset, 0);
  EXPECT_EQ(error, 0);
}

constexpr int kThreads = 4;
constexpr auto kLeaveApart = std::chrono::milliseconds(4);

struct Meeting {
  std::barrier<> all{kThreads};
  std::vector<double> values = std::vector<double>(kThreads);
};

// A library whose ranks are threads. Each leaves the agreement later than the rank before it.
struct UnevenLibrary {
  Meeting& meeting;
  int rank;
  bool largest(double& value) {
    meeting.values[static_cast<size_t>(rank)] = value;
    meeting.all.arrive_and_wait();
    value = *std::max_element(meeting.values.begin(), meeting.values.end());
    meeting.all.arrive_and_wait();
    std::this_thread::sleep_for(rank * kLeaveApart);
    return true;
  }
  bool progress() { return true; }
  bool call() { return true; }
};

// Arrivals of `calls` calls, by rank. Rank 2 begins each call late.
std::vector<std::vector<double>> arrivals_of(const ArrivalPattern& pattern, uint64_t calls,
                                             std::vector<double>& begun) {
  Meeting meeting;
  std::vector<std::vector<double>> stamps(kThreads);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kThreads; ++rank)
    threads.emplace_back([&, rank] {
      UnevenLibrary library{meeting, rank};
      const LoopPlan plan{calls, 3, 0};
      const auto before = [&](uint64_t) {
        if (rank != 2) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        begun.push_back(now_us());
      };
      EXPECT_TRUE(run_arrival_loop(
          library, plan, {pattern, 1, rank, kThreads, true, 0}, before, [](uint64_t) {},
          stamps[static_cast<size_t>(rank)]));
    });
  for (std::thread& thread : threads) thread.join();
  return stamps;
}

// The ranks agree on an instant: a rank that enters or leaves the agreement late still arrives on time.
TEST(ArrivalLoop, ArrivalsCountFromTheInstantThatTheRanksAgreeOn) {
  ArrivalPattern pattern;
  ASSERT_EQ(parse_arrival("file:x", pattern), "");
  std::istringstream text("# ibcoll arrivals 1 ranks 4\n0 0 0 0\n9000 3000 0 6000\n");
  ASSERT_EQ(read_arrivals(text, "x", kThreads, pattern), "");
  constexpr uint64_t kCalls = 20;
  std::vector<double> begun;
  const std::vector<std::vector<double>> stamps = arrivals_of(pattern, kCalls, begun);
  begun.erase(begun.begin(), begun.end() - kCalls);
  std::vector<double> errors;  // of each call, the largest of its ranks
  for (uint64_t call = 0; call < kCalls; ++call) {
    double error = 0;
    const auto instant = [&](int rank) {
      return stamps[static_cast<size_t>(rank)][2 * call] - arrival_delay(pattern, call, rank, kThreads, 1);
    };
    for (int rank = 0; rank < kThreads; ++rank) {
      EXPECT_GT(instant(rank), begun[call]) << "call " << call << " rank " << rank;
      error = std::max(error, std::abs(instant(rank) - instant(0)));
    }
    errors.push_back(error);
  }
  // Ranks leave the agreement 12 ms apart, in each call. Another program may have the cores in most calls, not in all.
  EXPECT_LT(*std::min_element(errors.begin(), errors.end()), 3000);
}

}  // namespace
}  // namespace ibcoll::perf
