// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/ballots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "bootstrap/ballot_messages.h"

namespace ibcoll::run {
namespace {

using Call = Arbiter::Call;
using Verdict = Arbiter::Verdict;
constexpr Arbiter::Key kKey{7, 0};

std::string members(size_t size, std::vector<int> ranks) {
  std::vector<bool> all(size);
  for (const int rank : ranks) all[static_cast<size_t>(rank)] = true;
  return rendezvous::pack_ranks(all);
}

Ballot::Vote vote_of(size_t size, int rank, Call call = Call::kAgree) {
  return {call, ~(uint64_t{1} << rank % 64), rendezvous::pack_ranks(std::vector<bool>(size, true)),
          std::string(1, static_cast<char>('a' + rank % 26))};
}

// ---------------------------------------------------------------- all orders of events

// What may happen to a rank, in this order. Ranks vote, die, or are accused by the next rank, or close their connection,
// and are killed for it.
enum class Event { kVote, kDie, kAccused, kDesert, kWithdraw };
using Story = std::vector<Event>;
const std::array<Story, 7> kStories = {Story{Event::kVote},
                                       Story{Event::kDie},
                                       Story{Event::kVote, Event::kDie},
                                       Story{Event::kAccused, Event::kDie},
                                       Story{Event::kVote, Event::kAccused, Event::kDie},
                                       Story{Event::kVote, Event::kDesert, Event::kDie},
                                       Story{Event::kVote, Event::kWithdraw}};

// One ballot, and what is known from outside.
class Play {
 public:
  Play(const std::vector<const Story*>& stories) : stories_(stories), size_(stories.size()), ballots_(size_) {}

  void happen(int rank, Event event) {
    const auto i = static_cast<size_t>(rank);
    const std::vector<bool> dead_before = dead_, fenced_before = fenced_;
    Ballots::Decisions decisions;
    switch (event) {
      case Event::kVote:
        decisions = ballots_.vote(rank, kKey, vote_of(size_, rank));
        voted_[i] = true;
        break;
      case Event::kDie:
        decisions = ballots_.leave(rank);
        dead_[i] = true;
        break;
      case Event::kAccused: {
        const int accuser = (rank + 1) % static_cast<int>(size_);
        if (ballots_.accuse(accuser, rank)) fenced_[i] = true;
        ASSERT_EQ(ballots_.is_accused(rank), fenced_[i]);
        break;
      }
      case Event::kDesert:
        ballots_.desert(rank);
        fenced_[i] = true;
        break;
      case Event::kWithdraw:
        decisions = ballots_.withdraw(rank, kKey);
        break;
    }
    for (const Ballots::Decision& decision : decisions) check(decision, event);
  }

  // All that may happen has: no living rank waits.
  void end() {
    for (size_t i = 0; i < size_; ++i) {
      const bool lives = !dead_[i] && !fenced_[i];
      EXPECT_TRUE(told_[i] || !voted_[i] || !lives) << "rank " << i << " waits for ever";
    }
  }

 private:
  void check(const Ballots::Decision& decision, Event event) {
    const Verdict& verdict = decision.verdict;
    EXPECT_EQ(verdict.key, kKey);
    if (!first_) {
      first_ = verdict;
      EXPECT_EQ(verdict.status.ok(), event != Event::kWithdraw);
      if (verdict.status.ok()) check_first(verdict);
    }
    EXPECT_EQ(verdict.status.code(), first_->status.code()) << "not the same on all";
    EXPECT_EQ(verdict.dead, first_->dead);
    EXPECT_EQ(verdict.flags, first_->flags);
    for (const int rank : decision.receivers) {
      const auto i = static_cast<size_t>(rank);
      EXPECT_TRUE(voted_[i] && !dead_[i] && !told_[i]) << rank;
      told_[i] = true;
    }
  }

  // It lists each rank that was dead, and no rank that lives.
  void check_first(const Verdict& verdict) {
    EXPECT_EQ(verdict.dead, std::vector<bool>(dead_.begin(), dead_.begin() + static_cast<std::ptrdiff_t>(size_)));
    uint64_t flags = ~uint64_t{0};
    std::string offers;
    for (size_t i = 0; i < size_; ++i) {
      if (dead_[i]) continue;
      EXPECT_TRUE(voted_[i]);
      flags &= ~(uint64_t{1} << i);
      offers += static_cast<char>('a' + i);
    }
    EXPECT_EQ(verdict.flags, flags);
    EXPECT_EQ(verdict.offers, offers);
  }

  const std::vector<const Story*> stories_;
  const size_t size_;
  Ballots ballots_;
  std::vector<bool> voted_ = std::vector<bool>(8), dead_ = voted_, fenced_ = voted_, told_ = voted_;
  std::optional<Verdict> first_;
};

// All interleavings of the stories. Returns their number.
size_t play_all_orders(const std::vector<const Story*>& stories) {
  std::vector<int> order;  // a rank for each of its events
  for (size_t rank = 0; rank < stories.size(); ++rank)
    order.insert(order.end(), stories[rank]->size(), static_cast<int>(rank));
  size_t count = 0;
  do {
    Play play(stories);
    std::vector<size_t> next(stories.size());
    for (const int rank : order)
      play.happen(rank, (*stories[static_cast<size_t>(rank)])[next[static_cast<size_t>(rank)]++]);
    play.end();
    ++count;
  } while (!testing::Test::HasFailure() && std::next_permutation(order.begin(), order.end()));
  return count;
}

// Ranks are alike but for who accuses whom: in larger jobs stories in ascending order suffice.
TEST(Ballots, EveryOrderOfEventsEndsWithOneAnswer) {
  size_t orders = 0;
  for (size_t size = 1; size <= 5; ++size) {
    std::vector<size_t> choice(size, 0);
    for (bool more = true; more && !HasFailure();) {
      std::vector<const Story*> stories;
      size_t events = 0;
      for (const size_t one : choice) stories.push_back(&kStories[one]), events += kStories[one].size();
      const bool alike = std::is_sorted(choice.begin(), choice.end());
      if (size <= 2 || (events <= 7 && (alike || size == 3))) orders += play_all_orders(stories);
      size_t at = 0;
      while (at < size && ++choice[at] == kStories.size()) choice[at++] = 0;
      more = at < size;
    }
  }
  EXPECT_GT(orders, 20'000u);
}

// ---------------------------------------------------------------- each rule

TEST(Ballots, TheAccusedHasNoVoteAndNoVoice) {
  Ballots ballots(3);
  EXPECT_TRUE(ballots.vote(1, kKey, vote_of(3, 1)).empty());
  EXPECT_TRUE(ballots.accuse(0, 1));
  EXPECT_FALSE(ballots.accuse(2, 1)) << "once is enough";
  EXPECT_FALSE(ballots.accuse(1, 0)) << "what it says is ignored";
  EXPECT_FALSE(ballots.is_accused(0));
  EXPECT_TRUE(ballots.vote(0, kKey, vote_of(3, 0)).empty());
  EXPECT_TRUE(ballots.vote(2, kKey, vote_of(3, 2)).empty()) << "the accused has not ended";
  const Ballots::Decisions decisions = ballots.leave(1);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].receivers, (std::vector{0, 2}));
  EXPECT_EQ(decisions[0].verdict.dead, (std::vector{false, true, false}));
  EXPECT_EQ(decisions[0].verdict.flags, ~uint64_t{5}) << "its flags do not count";
  EXPECT_EQ(decisions[0].verdict.offers, "ac");
}

// It counts as dead for those that vote with it, so its process has to end first.
TEST(Ballots, WhoClosesItsConnectionIsAwaitedUntilItsProcessHasEnded) {
  Ballots ballots(3);
  ballots.desert(1);
  EXPECT_FALSE(ballots.awaits(1)) << "nobody votes: it may run on";
  Ballot::Vote other = vote_of(3, 0);
  other.members = members(3, {0, 2});
  EXPECT_TRUE(ballots.vote(0, {8, 0}, other).empty());
  EXPECT_FALSE(ballots.awaits(1)) << "a ballot of others";
  EXPECT_EQ(ballots.vote(2, {8, 0}, other).size(), 1u);
  EXPECT_TRUE(ballots.vote(0, kKey, vote_of(3, 0)).empty());
  EXPECT_TRUE(ballots.vote(2, kKey, vote_of(3, 2)).empty());
  EXPECT_TRUE(ballots.awaits(1));
  const Ballots::Decisions decisions = ballots.leave(1);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].verdict.dead, (std::vector{false, true, false}));
  EXPECT_FALSE(ballots.awaits(1));
}

TEST(Ballots, TheVoteOfOneThatClosesItsConnectionDoesNotCount) {
  Ballots ballots(2);
  EXPECT_TRUE(ballots.vote(1, kKey, vote_of(2, 1)).empty());
  ballots.desert(1);
  EXPECT_TRUE(ballots.vote(0, kKey, vote_of(2, 0)).empty());
  EXPECT_EQ(ballots.leave(1).size(), 1u);
}

TEST(Ballots, WhoHasLeftIsNotAccused) {
  Ballots ballots(2);
  EXPECT_TRUE(ballots.leave(1).empty());
  EXPECT_FALSE(ballots.accuse(0, 1));
  EXPECT_FALSE(ballots.is_accused(1));
}

TEST(Ballots, ManyRanks) {
  constexpr size_t kSize = 4096;
  Ballots ballots(kSize);
  const auto death = [&](int rank) { return rank % 1000 == 7; };
  Ballots::Decisions decisions;
  for (int rank = 0; rank < static_cast<int>(kSize); ++rank) {
    EXPECT_TRUE(decisions.empty()) << rank;
    decisions = death(rank) ? ballots.leave(rank) : ballots.vote(rank, kKey, vote_of(kSize, rank));
  }
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].receivers.size(), kSize - 5);
  EXPECT_EQ(decisions[0].verdict.offers.size(), kSize - 5);
  EXPECT_EQ(decisions[0].verdict.flags, uint64_t{0});
  for (int rank = 0; rank < static_cast<int>(kSize); ++rank)
    EXPECT_EQ(decisions[0].verdict.dead[static_cast<size_t>(rank)], death(rank)) << rank;
}

TEST(Ballots, ADeadlineEndsTheBallotForThoseThatComeLater) {
  Ballots ballots(3);
  EXPECT_TRUE(ballots.vote(0, kKey, vote_of(3, 0)).empty());
  EXPECT_TRUE(ballots.withdraw(1, kKey).empty()) << "it has not voted";
  Ballots::Decisions decisions = ballots.withdraw(0, kKey);
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].verdict.status.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_NE(decisions[0].verdict.status.text().find("ranks 1-2 did not call"), std::string::npos);
  for (const int rank : {1, 2}) {
    decisions = ballots.vote(rank, kKey, vote_of(3, rank));
    ASSERT_EQ(decisions.size(), 1u);
    EXPECT_EQ(decisions[0].receivers, std::vector{rank});
    EXPECT_EQ(decisions[0].verdict.status.code(), IBCOLL_ERR_TIMEOUT);
  }
  for (const int rank : {0, 1}) EXPECT_TRUE(ballots.vote(rank, {7, 1}, vote_of(3, rank)).empty());
  decisions = ballots.vote(2, {7, 1}, vote_of(3, 2));
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_TRUE(decisions[0].verdict.status.ok()) << "the next round";
}

// Those that were refused have left. The others leave by a ballot of their own.
TEST(Ballots, ARefusedLeaveEndsForItsVotersOnly) {
  constexpr size_t kSize = 3;
  Ballots ballots(kSize);
  EXPECT_TRUE(ballots.vote(0, kKey, vote_of(kSize, 0, Call::kLeave)).empty());
  const Ballots::Decisions refused = ballots.withdraw(0, kKey);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].receivers, std::vector<int>{0});
  EXPECT_EQ(refused[0].verdict.status.code(), IBCOLL_ERR_TIMEOUT);
  EXPECT_TRUE(ballots.leave(0).empty());
  EXPECT_TRUE(ballots.vote(1, kKey, vote_of(kSize, 1, Call::kLeave)).empty()) << "it waits for rank 2";
  const Ballots::Decisions parted = ballots.vote(2, kKey, vote_of(kSize, 2, Call::kLeave));
  ASSERT_EQ(parted.size(), 1u);
  EXPECT_EQ(parted[0].receivers, (std::vector<int>{1, 2}));
  EXPECT_TRUE(parted[0].verdict.status.ok());
}

TEST(Ballots, OtherCallsAndOtherMembersAreRefused) {
  for (const bool other_call : {true, false}) {
    Ballots ballots(3);
    EXPECT_TRUE(ballots.vote(0, kKey, vote_of(3, 0)).empty());
    Ballot::Vote other = vote_of(3, 1, other_call ? Call::kShrink : Call::kAgree);
    if (!other_call) other.members = members(3, {1, 2});
    const Ballots::Decisions decisions = ballots.vote(1, kKey, other);
    ASSERT_EQ(decisions.size(), 1u);
    EXPECT_EQ(decisions[0].receivers, (std::vector{0, 1}));
    EXPECT_EQ(decisions[0].verdict.status.code(), IBCOLL_ERR_MISMATCH);
    EXPECT_NE(decisions[0].verdict.status.text().find("rank 1 calls"), std::string::npos);
  }
}

// Three ballots, each of which waits for a rank in the next one.
TEST(Ballots, ACircleEndsAndNamesItsRanks) {
  Ballots ballots(4);
  const auto vote = [&](int rank, uint64_t epoch, std::vector<int> ranks) {
    Ballot::Vote one = vote_of(4, rank);
    one.members = members(4, std::move(ranks));
    return ballots.vote(rank, {epoch, 0}, one);
  };
  EXPECT_TRUE(vote(0, 1, {0, 1}).empty());
  EXPECT_TRUE(vote(1, 2, {1, 2}).empty());
  EXPECT_TRUE(vote(3, 4, {2, 3}).empty()) << "it waits for one of the circle, and is in none itself";
  const Ballots::Decisions decisions = vote(2, 3, {0, 2});
  ASSERT_EQ(decisions.size(), 3u);
  for (const Ballots::Decision& decision : decisions) {
    EXPECT_EQ(decision.verdict.status.code(), IBCOLL_ERR_MISMATCH);
    for (const char* const part : {"waits for rank 0", "waits for rank 1", "waits for rank 2"})
      EXPECT_NE(decision.verdict.status.text().find(part), std::string::npos) << decision.verdict.status.text();
    EXPECT_EQ(decision.receivers.size(), 1u);
    EXPECT_NE(decision.receivers[0], 3);
  }
  EXPECT_EQ(vote(2, 4, {2, 3}).size(), 1u);
}

TEST(Ballots, VerdictsHaveNumbersOfTheirOwn) {
  Ballots ballots(1);
  const uint64_t first = ballots.vote(0, {1, 0}, vote_of(1, 0)).at(0).verdict.number;
  EXPECT_NE(ballots.vote(0, {2, 0}, vote_of(1, 0)).at(0).verdict.number, first);
}

}  // namespace
}  // namespace ibcoll::run
