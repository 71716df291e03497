// SPDX-License-Identifier: BSD-3-Clause
// One rank calls something else than the others: no rank hangs, no memory is written outside of a rank's blocks, and
// every rank of the team learns of it unless its own part was complete.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>

#include "runtime/collectives/framework/registry.h"
#include "tests/simulated/replay.h"
#include "tests/simulated/scenario.h"

namespace ibcoll {
namespace {

enum class Odd { kBytes, kRoot, kCollective, kCounts, kAbsent, kRootsList };

// All ranks but one call `theirs`, that one calls `its`.
class Mismatch {
 public:
  Mismatch(uint64_t seed, Odd odd);
  void run();

 private:
  CallParams other_call(const CallParams& call);
  void list_of_root(std::vector<uint64_t>& counts);
  void differ_with(std::vector<uint64_t>& counts, const std::vector<uint64_t>& others, int rank);
  const Algorithm& choose(CollectiveCase& call);
  void add(int rank, CollectiveCase& call, const Algorithm& algorithm);
  std::string where() const;

  static constexpr uint64_t kLeastCount = 8;  // of kRootsList

  sim::Random random_;
  Odd odd_;
  int p_;
  SimJobParams params_;
  SimJob job_;
  int team_ = 0;
  int odd_rank_;
  int named_ = -1;  // the one rank with which the odd one disagrees
  std::unique_ptr<CollectiveCase> theirs_, its_;
  std::vector<std::unique_ptr<Request>> requests_;
  int errors_ = 0;
  std::string story_;
};

bool names(const std::string& text, int rank) {
  return text.find(fmt::format("rank {} ", rank)) != text.npos || text.find(fmt::format("rank {}:", rank)) != text.npos;
}

SimJobParams with_short_deadlines(SimJobParams params) {
  params.limits.stall_ns = 50'000'000;
  params.limits.timeout_ns = 1'000'000'000;
  params.deadline_ns = 20'000'000'000;
  return params;
}

// As in a host, where no deadline ends a call. A rank that does not call at all is late, for all that others know.
SimJobParams parameters(sim::Random& random, int p, Odd odd) {
  SimJobParams params = with_short_deadlines(random_job(random, p));
  if (odd != Odd::kAbsent) params.limits.timeout_ns = 0;
  return params;
}

Mismatch::Mismatch(uint64_t seed, Odd odd)
    : random_(seed),
      odd_(odd),
      p_(2 + static_cast<int>(random_.below(9))),
      params_(parameters(random_, p_, odd)),
      job_(params_),
      odd_rank_(static_cast<int>(random_.below(static_cast<uint64_t>(p_)))) {
  team_ = job_.make_world();
  constexpr ibcoll_collective_t sized[] = {
      IBCOLL_BCAST,   IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_GATHER,
      IBCOLL_SCATTER, IBCOLL_ALLREDUCE, IBCOLL_REDUCE,   IBCOLL_REDUCE_SCATTER_BLOCK,
      IBCOLL_SCAN};
  constexpr ibcoll_collective_t counted[] = {IBCOLL_ALLGATHERV, IBCOLL_ALLTOALLV};
  constexpr ibcoll_collective_t known_to_root[] = {IBCOLL_GATHERV, IBCOLL_SCATTERV};
  const ibcoll_collective_t collective = odd == Odd::kRoot     ? IBCOLL_BCAST
                                         : odd == Odd::kCounts ? counted[random_.below(2)]
                                         : odd == Odd::kRootsList
                                             ? known_to_root[random_.below(2)]
                                             : sized[random_.below(odd == Odd::kBytes ? std::size(sized) : 3)];
  CallParams call = random_case(random_, collective, p_, 3000, {params_.limits.eager_bytes});
  if (odd != Odd::kCounts) call.bytes = 1 + call.bytes, call.count = 1 + call.count;
  if (odd == Odd::kRootsList) {
    call.root = odd_rank_;
    for (uint64_t& count : call.counts) count += kLeastCount;
  }
  const CallParams other = other_call(call);
  const uint64_t buffers_seed = random_.next();
  theirs_ = std::make_unique<CollectiveCase>(call, buffers_seed);
  its_ = std::make_unique<CollectiveCase>(other, buffers_seed);
  const Algorithm& algorithm = choose(*theirs_);
  const Algorithm& other_algorithm = call.collective == other.collective ? algorithm : choose(*its_);
  for (int rank = 0; rank < p_; ++rank) {
    if (rank != odd_rank_) add(rank, *theirs_, algorithm);
    if (rank == odd_rank_ && odd != Odd::kAbsent) add(rank, *its_, other_algorithm);
  }
  story_ = fmt::format("rank {} calls {} ({}), the others {} ({})", odd_rank_, other.describe(), other_algorithm.name,
                       call.describe(), algorithm.name);
}

CallParams Mismatch::other_call(const CallParams& call) {
  CallParams other = call;
  switch (odd_) {
    case Odd::kBytes:
      if (random_.one_in(2))
        other.bytes += 1 + random_.below(2 * call.bytes), other.count += 1 + random_.below(2 * call.count);
      else
        other.bytes = random_.below(call.bytes), other.count = random_.below(call.count);
      break;
    case Odd::kRoot:
      other.root = (call.root + 1) % p_;
      break;
    case Odd::kCollective:
      other = random_case(random_, IBCOLL_ALLREDUCE, p_, 3000, {});
      ++other.count;
      break;
    case Odd::kCounts:
      for (uint64_t& count : other.counts) count = random_.below(2 * count + 5);
      differ_with(other.counts, call.counts, (odd_rank_ + 1) % p_);
      break;
    case Odd::kRootsList:
      list_of_root(other.counts);
      break;
    case Odd::kAbsent:
      break;
  }
  return other;
}

// What goes between the odd rank and this one differs.
void Mismatch::differ_with(std::vector<uint64_t>& counts, const std::vector<uint64_t>& others, int rank) {
  const size_t p = static_cast<size_t>(p_), odd = static_cast<size_t>(odd_rank_), other = static_cast<size_t>(rank);
  const uint64_t more = 1 + random_.below(20);
  if (counts.size() == p) {
    counts[other] = others[other] + more;
    return;
  }
  for (const size_t at : {odd * p + other, other * p + odd}) {
    counts[at] = others[at] > more && random_.one_in(2) ? others[at] - more : others[at] + more;
  }
}

// The root, which is the odd rank, is wrong about one rank, or about three whose sum is right.
void Mismatch::list_of_root(std::vector<uint64_t>& counts) {
  const auto count = [&](int i) -> uint64_t& { return counts[static_cast<size_t>((odd_rank_ + i) % p_)]; };
  if (p_ >= 4 && random_.one_in(2)) {
    const uint64_t by = 1 + random_.below(kLeastCount / 2);
    count(1) += by;
    count(2) -= 2 * by;
    count(3) += by;
    return;
  }
  const int i = 1 + static_cast<int>(random_.below(static_cast<uint64_t>(p_ - 1)));
  named_ = (odd_rank_ + i) % p_;
  count(i) = random_.one_in(2) ? random_.below(count(i)) : count(i) + 1 + random_.below(500);
}

const Algorithm& Mismatch::choose(CollectiveCase& call) {
  const Shape shape = shape_of(job_, team_, call, params_.reads, params_.window_area_bytes);
  std::vector<const Algorithm*> applicable;
  for (const Algorithm* const a : algorithms()) {
    if (a->collective == call.params().collective && !a->why_not(shape)) applicable.push_back(a);
  }
  return *applicable[random_.below(applicable.size())];
}

void Mismatch::add(int rank, CollectiveCase& call, const Algorithm& algorithm) {
  requests_.push_back(make_request(job_.team(team_, rank), call, algorithm));
  SimStep step;
  step.request = requests_.back().get();
  step.delay_ns = random_.below(5000);
  step.before_start = [&call, rank] { call.at(rank).fill(0); };
  step.completed = [this, &call, rank](const Status& status) {
    errors_ += !status.ok();
    EXPECT_EQ(call.at(rank).check_guards(0), "") << story_;
    call.at(rank).scribble();
  };
  job_.add_step(rank, std::move(step));
}

void Mismatch::run() {
  const Status status = job_.run();
  ASSERT_TRUE(status.ok()) << status.text() << story_;
  job_.drain();
  // A rank that only sends is done before; where all others only send, no rank can know. What comes too late for a call
  // fails the team.
  // Nor may a rank for which others need not wait, and which has nothing to move.
  const CallParams& its = its_->params();
  const uint64_t amount = kCatalog[its.collective].reduces() ? its.count : its.bytes;
  const bool may_pass = odd_ == Odd::kRoot || odd_ == Odd::kAbsent || (odd_ == Odd::kBytes && amount == 0);
  bool noticed = errors_ > 0;
  for (int rank = 0; rank < p_; ++rank) noticed |= !job_.team(team_, rank).failure().ok();
  ASSERT_TRUE(noticed || may_pass) << story_;
  for (int rank = 0; rank < p_; ++rank) {
    const Status& failure = job_.team(team_, rank).failure();
    const bool known = failure.code() == IBCOLL_ERR_MISMATCH || failure.code() == IBCOLL_ERR_TIMEOUT;
    EXPECT_TRUE(known || !noticed) << "rank " << rank << ": '" << failure.text() << "'; " << story_;
    const bool digests_differ = odd_ == Odd::kBytes || odd_ == Odd::kRoot || odd_ == Odd::kCollective;
    if (digests_differ && failure.code() == IBCOLL_ERR_MISMATCH) {
      for (const CollectiveCase* const call : {theirs_.get(), its_.get()}) {
        const std::string name = ibcoll_collective_name(call->params().collective);
        EXPECT_NE(failure.text().find(name + " ("), std::string::npos) << failure.text() << "; " << story_;
      }
      EXPECT_NE(failure.text().find(", but rank "), std::string::npos) << failure.text() << "; " << story_;
    }
    if (odd_ == Odd::kRootsList) {
      EXPECT_EQ(failure.code(), IBCOLL_ERR_MISMATCH) << "rank " << rank << ": '" << failure.text() << "'; " << story_;
      for (const int name : {odd_rank_, named_})
        EXPECT_TRUE(name < 0 || names(failure.text(), name))
            << "rank " << rank << ": '" << failure.text() << "'; " << story_;
    }
    if (rank == odd_rank_ && odd_ == Odd::kAbsent) continue;
    EXPECT_EQ((rank == odd_rank_ ? *its_ : *theirs_).at(rank).check_scribbled(), "") << story_;
  }
}

// Rank `odd` calls `its`, the others `theirs`: all learn of it.
void expect_mismatch(SimJobParams params, const CallParams& theirs, const CallParams& its, int odd,
                     const char* algorithm, uint64_t parameter) {
  params.network.ranks = theirs.p;
  SimJob job(with_short_deadlines(params));
  const int team = job.make_world();
  CollectiveCase even_case(theirs, 1), odd_case(its, 1);
  std::vector<std::unique_ptr<Request>> requests;
  for (int rank = 0; rank < theirs.p; ++rank) {
    requests.push_back(make_request(job.team(team, rank), rank == odd ? odd_case : even_case,
                                    *find_algorithm(theirs.collective, algorithm), parameter));
    SimStep step;
    step.request = requests.back().get();
    job.add_step(rank, std::move(step));
  }
  const Status status = job.run();
  ASSERT_TRUE(status.ok()) << status.text();
  job.drain();
  for (int rank = 0; rank < theirs.p; ++rank)
    EXPECT_EQ(job.team(team, rank).failure().code(), IBCOLL_ERR_MISMATCH) << rank;
}

// Sizes that a rank expects count for the agreement on the longest block. Otherwise nothing at all would be sent here.
TEST(TwoPhaseBruck, AShortBlockThatNobodySendsIsMissed) {
  constexpr int p = 4, kExpects = 2, kFrom = 1;
  CallParams nothing;
  nothing.collective = IBCOLL_ALLTOALLV;
  nothing.p = p;
  nothing.counts.assign(p * p, 0);
  CallParams something = nothing;
  something.counts[kFrom * p + kExpects] = 8;
  expect_mismatch({}, nothing, something, kExpects, "two_phase_bruck", 2);
}

// The root knows both sizes, the other rank reads as much as it expects.
TEST(Pair, ABlockOfAnotherSize) {
  constexpr uint64_t kThreshold = 4096, kBlock = 10'000;
  SimJobParams job;
  job.network.node_of = {0, 0};
  CallParams call;
  call.collective = IBCOLL_SCATTERV;
  call.p = 2;
  call.counts = {8, kBlock};
  for (const uint64_t block : {kBlock - 8, kBlock + 8}) {
    CallParams other = call;
    other.counts[1] = block;
    expect_mismatch(job, call, other, 0, "pair", kThreshold);
  }
}

class Mismatches : public ::testing::TestWithParam<Odd> {};

TEST_P(Mismatches, EndInErrorsEverywhereAndWriteNothingWrong) {
  const Seeds seeds(900, 5000);
  for (uint64_t seed = seeds.first; seed <= seeds.last && !HasFailure(); ++seed) {
    SCOPED_TRACE(replay_command(seed));
    Mismatch(seed, GetParam()).run();
  }
}

std::string name_of(const ::testing::TestParamInfo<Odd>& info) {
  constexpr const char* names[] = {"Bytes", "Root", "Collective", "Counts", "Absent", "RootsList"};
  return names[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Odd, Mismatches,
                         ::testing::Values(Odd::kBytes, Odd::kRoot, Odd::kCollective, Odd::kCounts, Odd::kAbsent,
                                           Odd::kRootsList),
                         name_of);

}  // namespace
}  // namespace ibcoll
