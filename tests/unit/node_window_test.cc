// SPDX-License-Identifier: BSD-3-Clause
// The node window's promise, tried in many random orders: what a rank wrote in a step stays until every rank has left
// it.
#include "runtime/comm/node_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

namespace ibcoll {
namespace {

constexpr uint64_t kAreaBytes = 131072;
constexpr uint64_t kLooked = 16;  // bytes at the start of each area, for each part; no step uses a part of one only

// The window only hands it on.
class NoNode : public NodeMemory {
 public:
  Result<uint64_t> allocate(uint64_t) override { return error(IBCOLL_ERR_INTERNAL, "not asked"); }
  void release(uint64_t, uint64_t) override {}
  Result<std::byte*> at(uint64_t, uint64_t) override { return error(IBCOLL_ERR_INTERNAL, "not asked"); }
  Status back(uint64_t, uint64_t) override { return {}; }
  bool back_all(uint64_t, uint64_t) override { return false; }
  bool alive(int) const override { return true; }
  bool can_read(int) const override { return false; }
  Status read(int, uint64_t, std::span<std::byte>) override { return error(IBCOLL_ERR_INTERNAL, "not asked"); }
  Status confirm() override { return error(IBCOLL_ERR_INTERNAL, "not asked"); }
};

constexpr int kEveryone = -1, kEachItsOwn = -2;
constexpr uint64_t kSizes[] = {0, 8, 496, 497, 2048, 8192, 40000, kAreaBytes};  // in lines, short areas, areas

// One step of the script that all ranks follow.
struct Step {
  int writer;  // alone; or kEveryone; or kEachItsOwn: the same, of a number of bytes of its own
  uint64_t bytes;
  int parts = 1;              // in which they publish
  bool as_in_a_scan = false;  // ranks read what lower ranks have written, not what all have
};

std::vector<Step> random_script(std::mt19937& random, int ranks, int steps) {
  std::vector<Step> script;
  while (static_cast<int>(script.size()) < steps) {
    Step step = {static_cast<int>(random() % static_cast<unsigned>(3 * ranks)), kSizes[random() % 8]};
    if (step.writer >= ranks) step.writer = step.writer < 2 * ranks ? kEveryone : kEachItsOwn;
    if (step.bytes >= 4 * kLooked && step.writer != kEachItsOwn) step.parts = 1 + static_cast<int>(random() % 4);
    step.as_in_a_scan = step.writer == kEachItsOwn && random() % 2 == 0;
    script.insert(script.end(), 1 + random() % 100, step);  // long enough for runs of one writer to come round
  }
  return script;
}

class Rank {
 public:
  Rank(std::byte* memory, std::vector<int> jobs, int rank)
      : window_(&none_, memory, kAreaBytes, std::move(jobs), rank, NodeWindow::Limits{}, false) {}

  bool done(const std::vector<Step>& script) const { return at_ == script.size(); }

  // Continues the script until it waits for another rank, or succeeded `most` times. False: read bytes that no rank
  // wrote.
  bool advance(const std::vector<Step>& script, int most) {
    for (; most > 0 && !done(script); --most) {
      const Step& step = script[at_];
      if (!begun_) {
        begun_ = begin(step);
        if (!begun_) return true;
      }
      if (written_ < step.parts) {
        if (step.writer < 0 || step.writer == window_.rank())
          std::memset(place(step, window_.rank(), written_), mark(window_.rank(), written_),
                      std::min(bytes_of(step, window_.rank()), kLooked));
        if (++written_ < step.parts)
          window_.publish_part(1, false);
        else
          window_.publish(1);
        continue;
      }
      for (; from_ < window_.size(); ++from_, part_ = 0) {
        if (step.writer >= 0 && step.writer != from_) continue;
        if (step.as_in_a_scan && from_ >= window_.rank()) continue;  // low ranks run ahead
        for (; part_ < step.parts; ++part_) {
          if (!window_.published(from_, part_ + 1 < step.parts ? static_cast<uint64_t>(part_) + 1 : NodeWindow::kWhole))
            return true;
          if (window_.steps().digest(from_) != window_.steps().digest(window_.rank())) return false;
          const std::byte* const data = place(step, from_, part_);
          if (std::any_of(data, data + std::min(bytes_of(step, from_), kLooked),
                          [&](std::byte b) { return b != std::byte(mark(from_, part_)); }))
            return false;
        }
      }
      begun_ = false;
      from_ = written_ = 0;
      ++at_;
    }
    return true;
  }
  size_t at() const { return at_; }

 private:
  bool begin(const Step& step) {
    if (step.writer == kEachItsOwn) return window_.steps().try_next_own(bytes_of(step, window_.rank()));
    return step.writer == kEveryone ? window_.steps().try_next(step.bytes) : window_.steps().try_next_sole(step.bytes);
  }
  // Runs of steps in which ranks write to lines, short areas or areas.
  uint64_t bytes_of(const Step& step, int rank) const {
    return step.writer == kEachItsOwn ? kSizes[(at_ / 50 * 5 + static_cast<size_t>(rank)) % 8] : step.bytes;
  }
  std::byte* place(const Step& step, int writer, int part) {
    const uint64_t at = kLooked * static_cast<uint64_t>(part);
    if (step.writer == kEachItsOwn) return window_.own_area(writer, bytes_of(step, writer)) + at;
    return (step.writer < 0 ? window_.area(writer, step.bytes) : window_.sole_area(writer, step.bytes)) + at;
  }
  int mark(int rank, int part) const {
    return static_cast<int>((window_.steps().step() * 31 + static_cast<uint64_t>(rank + 7 * part)) % 251);
  }

  NoNode none_;
  NodeWindow window_;
  size_t at_ = 0;
  bool begun_ = false;
  int written_ = 0;  // parts
  int from_ = 0;
  int part_ = 0;
};

TEST(NodeWindow, KeepsWhatWasWrittenUntilAllHaveReadIt) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 6);
    const std::vector<Step> script = random_script(random, ranks, 1500);
    const auto memory = std::make_unique<std::byte[]>(WindowMemory::footprint(ranks, kAreaBytes) + 64);
    std::byte* const base = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
    std::vector<int> jobs(static_cast<size_t>(ranks));
    std::vector<std::unique_ptr<Rank>> all;
    for (int i = 0; i < ranks; ++i) all.push_back(std::make_unique<Rank>(base, jobs, i));
    int idle = 0;  // passes in a row without progress
    while (idle < 1000 * ranks &&
           !std::all_of(all.begin(), all.end(), [&](const auto& r) { return r->done(script); })) {
      Rank& rank = *all[random() % all.size()];
      const size_t before = rank.at();
      ASSERT_TRUE(rank.advance(script, 1 + static_cast<int>(random() % 80))) << "seed " << seed << ", step " << before;
      idle = rank.at() == before ? idle + 1 : 0;
    }
    for (const auto& rank : all)
      ASSERT_TRUE(rank->done(script)) << "seed " << seed << ": stands at step " << rank->at();
  }
}

// A rank that has used all lines prefers to wait for half of them, but a reader that comes with one continues with one.
TEST(NodeWindow, OneFreeLineIsEnoughInTheEnd) {
  constexpr int kEnough = 4 * NodeWindow::kLines;
  const std::vector<Step> script(kEnough, Step{0, 8});
  const auto memory = std::make_unique<std::byte[]>(WindowMemory::footprint(2, kAreaBytes) + 64);
  std::byte* const base = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  Rank root(base, {0, 1}, 0), reader(base, {0, 1}, 1);
  ASSERT_TRUE(root.advance(script, kEnough));
  const size_t ahead = root.at();
  ASSERT_GE(ahead, static_cast<size_t>(NodeWindow::kLines - 4));
  ASSERT_LE(ahead, static_cast<size_t>(NodeWindow::kLines));
  ASSERT_TRUE(reader.advance(script, 1));
  ASSERT_TRUE(root.advance(script, kEnough));
  EXPECT_EQ(root.at(), ahead) << "did not wait for more";
  for (int look = 0; look < 300; ++look) ASSERT_TRUE(root.advance(script, kEnough));
  EXPECT_EQ(root.at(), ahead + 1);
  // Looks may be rare: where the reader comes no further, all that it has left is used at once.
  ASSERT_TRUE(reader.advance(script, 40));
  for (int look = 0; look < 300; ++look) ASSERT_TRUE(root.advance(script, kEnough));
  EXPECT_GE(root.at(), ahead + reader.at());
}

// The rank that publishes a part says whether ringing is worth it.
TEST(NodeWindow, WakesWhoSleepsForTheRankThatPublishes) {
  const auto memory = std::make_unique<std::byte[]>(WindowMemory::footprint(2, kAreaBytes) + 64);
  std::byte* const base = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  Bell bells[3] = {};  // of the node; the window's ranks are the last two, in the other order
  Doorbell doorbells[] = {Doorbell({&bells[0], &bells[1], &bells[2]}, 2, /*one_cpu=*/true),
                          Doorbell({&bells[0], &bells[1], &bells[2]}, 1)};
  NoNode none;
  NodeWindow writer(&none, base, kAreaBytes, {0, 1}, 0, NodeWindow::Limits{}, true);
  NodeWindow reader(&none, base, kAreaBytes, {0, 1}, 1, NodeWindow::Limits{}, true);
  EXPECT_LT(writer.bells().of(1), 0) << "no rank rings";
  writer.bells().use(doorbells[0], {2, 1});
  reader.bells().use(doorbells[1], {2, 1});
  ASSERT_EQ(reader.bells().of(0), 2);
  ASSERT_TRUE(writer.steps().try_next(8));
  writer.publish_part(1, /*worth_waking=*/true);
  EXPECT_EQ(bells[2].wakeups.load(), 0u);
  doorbells[1].subscribe(reader.bells().of(0));
  writer.publish_part(1, /*worth_waking=*/false);
  EXPECT_EQ(bells[2].wakeups.load(), 0u);
  writer.publish_part(1, /*worth_waking=*/true);
  EXPECT_EQ(bells[2].wakeups.load(), 1u);
  doorbells[1].subscribe(reader.bells().of(0));
  writer.publish(1);
  EXPECT_EQ(bells[2].wakeups.load(), 2u);
  while (writer.steps().try_next(8)) writer.publish(1);
  EXPECT_EQ(writer.steps().lagging(), 1);
  doorbells[0].subscribe(writer.bells().of(writer.steps().lagging()));
  ASSERT_TRUE(reader.steps().try_next(8));
  reader.publish(1);
  EXPECT_EQ(bells[1].wakeups.load(), 1u);
  ASSERT_TRUE(reader.steps().try_next(8));
  doorbells[0].subscribe(writer.bells().of(1));
  reader.publish_part(1, /*worth_waking=*/false);
  EXPECT_EQ(bells[1].wakeups.load(), 2u) << "a sleeping rank may run on another processor";
  reader.publish(1);
  EXPECT_TRUE(writer.steps().try_next(8));
}

// A node's memory that remembers what was asked for, and refuses to give more than `most` bytes.
class CountedMemory : public NoNode {
 public:
  explicit CountedMemory(uint64_t bytes) : memory_(std::make_unique<std::byte[]>(bytes + 4096)) {
    base_ = memory_.get() + (4096 - reinterpret_cast<uintptr_t>(memory_.get()) % 4096) % 4096;
    std::memset(base_, 0xa5, bytes);  // as the last user left it
  }
  void release(uint64_t, uint64_t) override { ++released; }
  Result<std::byte*> at(uint64_t offset, uint64_t) override { return base_ + offset; }
  Status back(uint64_t, uint64_t bytes) override {
    backed += bytes;
    return backed <= most ? Status() : error(IBCOLL_ERR_NO_MEMORY, "no {} bytes", bytes);
  }
  bool back_all(uint64_t, uint64_t bytes) override {
    if (gives_all) backed += bytes;
    return gives_all;
  }
  bool alive(int peer) const override { return peer != dead; }

  uint64_t backed = 0, most = UINT64_MAX;
  bool gives_all = false;
  int dead = -1;
  int released = 0;

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::byte* base_;
};

class NodeWindowMemory : public testing::Test {
 protected:
  static constexpr uint64_t kTag = 77;
  NodeWindowMemory() { EXPECT_TRUE(WindowMemory::prepare(memory_, 0, kTag, 2, kAreaBytes).ok()); }
  NodeWindow window(int rank) { return {&memory_, *memory_.at(0, 1), kAreaBytes, jobs_, rank, {}, true, 0}; }
  WindowLocation place(int rank, uint64_t tag = kTag) const { return {0, tag, jobs_, rank, kAreaBytes}; }
  bool enter(int rank) { return WindowPresence::enter(memory_, place(rank)).ok(); }
  bool leave(int rank, uint64_t tag = kTag, bool failed = false) {
    return WindowPresence::leave(memory_, place(rank, tag), failed);
  }
  const std::vector<int> jobs_{4, 6};
  CountedMemory memory_{WindowMemory::footprint(2, kAreaBytes)};
};

TEST_F(NodeWindowMemory, ComesWithTheFirstStepsThatNeedIt) {
  NodeWindow one = window(0), other = window(1);
  const uint64_t at_first = memory_.backed;
  EXPECT_LE(at_first, 4096u);
  EXPECT_EQ(one.presence().failure_of(1), 0);
  ASSERT_TRUE(one.steps().try_next(8));
  const uint64_t lines = memory_.backed - at_first;
  EXPECT_EQ(lines, 2u * NodeWindow::kLines * 512);
  one.publish(1);
  ASSERT_TRUE(other.steps().try_next(8));
  EXPECT_TRUE(other.published(0, NodeWindow::kWhole));
  EXPECT_FALSE(one.published(1, NodeWindow::kWhole)) << "what the last user left is no step";
  other.publish(1);
  EXPECT_EQ(memory_.backed, at_first + lines) << "it is there once";
  ASSERT_TRUE(one.steps().try_next(5000));
  EXPECT_EQ(memory_.backed, at_first + lines + 2 * NodeWindow::kBanks * 8192);
  one.publish(1);
  ASSERT_TRUE(other.steps().try_next(5000));
  other.publish(1);
  ASSERT_TRUE(other.steps().try_next_sole(8192));
  EXPECT_EQ(memory_.backed, at_first + lines + 2 * NodeWindow::kBanks * 8192);
}

// The root of a scatterv may have long blocks and short ones in one step.
TEST_F(NodeWindowMemory, OfShortAreasComesWithALongOwnStep) {
  NodeWindow one = window(0);
  ASSERT_TRUE(one.steps().try_next_own(8));
  one.publish(1);
  const uint64_t before = memory_.backed;
  ASSERT_TRUE(one.steps().try_next_own(40000));
  EXPECT_EQ(memory_.backed,
            before + 2 * NodeWindow::kBanks * 65536 + 2 * WindowMemory::kShortAreas * WindowMemory::kShortStride);
}

TEST_F(NodeWindowMemory, OfShortAreasComesWithTheFirstOwnStepOfThatSize) {
  NodeWindow one = window(0);
  ASSERT_TRUE(one.steps().try_next_own(8));
  one.publish(1);
  memory_.most = memory_.backed + 1000;
  EXPECT_FALSE(one.steps().try_next_own(1000));
  EXPECT_EQ(one.memory().trouble().code(), IBCOLL_ERR_NO_MEMORY);
  memory_.most = ~uint64_t{0};
  const uint64_t before = memory_.backed;
  ASSERT_TRUE(one.steps().try_next_own(1000));
  EXPECT_EQ(memory_.backed, before + 2 * WindowMemory::kShortAreas * WindowMemory::kShortStride);
}

TEST_F(NodeWindowMemory, ComesAllAtOnceWhereThereIsEnough) {
  memory_.gives_all = true;
  NodeWindow one = window(0);
  ASSERT_TRUE(one.steps().try_next(8));
  const uint64_t backed = memory_.backed;
  one.publish(1);
  ASSERT_TRUE(one.steps().try_next(kAreaBytes));
  EXPECT_EQ(memory_.backed, backed);
}

TEST_F(NodeWindowMemory, OfAreasEndsWhereTheyEnd) {
  constexpr uint64_t kOdd = 5 * 4096;  // no power of two
  CountedMemory memory(WindowMemory::footprint(2, kOdd));
  ASSERT_TRUE(WindowMemory::prepare(memory, 0, kTag, 2, kOdd).ok());
  NodeWindow one(&memory, *memory.at(0, 1), kOdd, jobs_, 0, {}, true, 0);
  ASSERT_TRUE(one.steps().try_next(8));
  one.publish(1);
  const uint64_t before = memory.backed;
  ASSERT_TRUE(one.steps().try_next(kOdd));
  EXPECT_EQ(memory.backed, before + 2 * NodeWindow::kBanks * kOdd);
}

TEST_F(NodeWindowMemory, IsAskedForBeforeItIsTouched) {
  memory_.most = memory_.backed;
  NodeWindow one = window(0), other = window(1);
  EXPECT_FALSE(one.steps().try_next(8));
  EXPECT_EQ(one.memory().trouble().code(), IBCOLL_ERR_NO_MEMORY);
  memory_.most += 2u * NodeWindow::kLines * 512 + memory_.backed;
  const uint64_t before = memory_.backed;
  EXPECT_TRUE(other.steps().try_next(8));
  EXPECT_TRUE(other.memory().trouble().ok());
  EXPECT_EQ(memory_.backed, before + 2u * NodeWindow::kLines * 512) << "what was refused is asked for again";
  other.publish(1);
  EXPECT_FALSE(other.steps().try_next(kAreaBytes));
  EXPECT_EQ(other.memory().trouble().code(), IBCOLL_ERR_NO_MEMORY);
}

TEST_F(NodeWindowMemory, IsGivenBackByTheLastRank) {
  EXPECT_FALSE(leave(1));
  EXPECT_EQ(memory_.released, 0);
  EXPECT_TRUE(leave(0));
  EXPECT_EQ(memory_.released, 1);
  EXPECT_TRUE(leave(1)) << "asks again";
  EXPECT_EQ(memory_.released, 1);
}

TEST_F(NodeWindowMemory, IsGivenBackWithoutTheDead) {
  EXPECT_FALSE(leave(1));
  memory_.dead = 4;
  EXPECT_TRUE(leave(1));
  EXPECT_EQ(memory_.released, 1);
  ASSERT_TRUE(WindowMemory::prepare(memory_, 0, kTag + 1, 2, kAreaBytes).ok());
  EXPECT_TRUE(leave(1)) << "it is another team's now";
  EXPECT_TRUE(leave(0));
  EXPECT_EQ(memory_.released, 1);
}

TEST_F(NodeWindowMemory, IsGivenBackWithoutThoseThatNeverCame) {
  EXPECT_TRUE(enter(0));
  EXPECT_FALSE(leave(0)) << "the other may come yet";
  EXPECT_TRUE(leave(0, kTag, true)) << "the team has failed";
  EXPECT_EQ(memory_.released, 1);
  EXPECT_FALSE(enter(1));
  EXPECT_TRUE(leave(1, kTag, true));
  EXPECT_EQ(memory_.released, 1);
}

TEST_F(NodeWindowMemory, IsKeptForThoseThatHaveCome) {
  EXPECT_TRUE(enter(1));
  EXPECT_FALSE(leave(0, kTag, true));
  EXPECT_FALSE(leave(0, kTag, true));
  EXPECT_EQ(memory_.released, 0);
  EXPECT_TRUE(leave(1));
  EXPECT_EQ(memory_.released, 1);
}

TEST_F(NodeWindowMemory, OfAnotherTeamIsLeftAlone) {
  EXPECT_TRUE(leave(0, kTag + 1, true));
  EXPECT_EQ(memory_.released, 0);
  EXPECT_EQ(WindowPresence::enter(memory_, place(0, kTag + 1)).code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_TRUE(enter(0)) << "nothing was changed";
  EXPECT_TRUE(enter(1));
  EXPECT_FALSE(leave(0));
  EXPECT_TRUE(leave(1));
}

// A rank that has not tried to begin a step waits for no other.
TEST(NodeWindow, HeldBackOnlyByWhatATryHasLookedFor) {
  const auto memory = std::make_unique<std::byte[]>(WindowMemory::footprint(2, kAreaBytes) + 64);
  auto* const base = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  NoNode none;
  NodeWindow ahead(&none, base, kAreaBytes, {0, 1}, 0, NodeWindow::Limits{}, true);
  NodeWindow behind(&none, base, kAreaBytes, {0, 1}, 1, NodeWindow::Limits{}, true);
  EXPECT_FALSE(ahead.steps().holds_back(1));
  int steps = 0;
  for (; ahead.steps().try_next(kAreaBytes); ++steps) ahead.publish(7);
  EXPECT_EQ(steps, NodeWindow::kBanks - 1);
  EXPECT_TRUE(ahead.steps().holds_back(1));
  ASSERT_TRUE(behind.steps().try_next(kAreaBytes));
  behind.publish(7);
  EXPECT_FALSE(ahead.steps().holds_back(1));
}

}  // namespace
}  // namespace ibcoll
