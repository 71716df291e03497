// SPDX-License-Identifier: BSD-3-Clause
// A fault of one rank's device while all ranks are in a collective: every rank's call ends with an error that names a
// rank, and nothing is written into the buffers of a call that has ended.
#include <fmt/format.h>

#include <algorithm>

#include "tests/fake_verbs/faulty.h"
#include "tests/fake_verbs/job.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr int kMembers = 4;

class CollectiveFault : public testing::TestWithParam<const char*> {
 protected:
  // The first call connects; during the second `fault` is there.
  static void expect_error(const std::function<void()>& fault, const std::string& text,
                           ibcoll_status_t lack = IBCOLL_ERR_TRANSPORT) {
    EngineJob job(kMembers, conformance::test_seed(), {GetParam(), "IBCOLL_VERBS_TIMEOUT=10"});
    CallParams params;
    params.collective = IBCOLL_ALLTOALL;
    params.p = kMembers;
    params.bytes = 200'000;
    ASSERT_EQ(job.run(params, "pap_direct"), "");
    fault();
    const std::vector<EngineJob::End> ends = job.run_to_its_end(params, "pap_direct");
    ASSERT_EQ(ends.size(), size_t{kMembers}) << "a rank waits for ever";
    bool named = false;
    for (const EngineJob::End& end : ends) {
      const bool lacks = end.status.text().find(" cannot reach rank ") != std::string::npos;
      EXPECT_EQ(end.status.code(), lacks ? lack : IBCOLL_ERR_PEER_FAILED) << end.status.text();
      EXPECT_EQ(end.written_late, "");
      named = named || end.status.text().find(text) != std::string::npos;
    }
    EXPECT_TRUE(named) << "no rank says '" << text << "' but: " << ends[0].status.text();
  }
};

TEST_P(CollectiveFault, AWriteThatFailsEndsTheCallOnAllRanks) {
  script().landing = Landing::kLastFirst;
  const auto fault = [] {
    rank(1).faults.execute = [n = 0](const ibv_send_wr&) mutable {
      return ++n >= 3 ? Outcome{IBV_WC_GENERAL_ERR} : Outcome();
    };
  };
  expect_error(fault, "general error (vendor error 81)");
}

TEST_P(CollectiveFault, ARemovedDeviceEndsTheCallOnAllRanks) {
  expect_error_lines();
  expect_error([] { rank(2).traits.removed = true; }, "lost rank 2", IBCOLL_ERR_SYSTEM);
}

TEST_P(CollectiveFault, AnOverrunEndsTheCallOnAllRanks) {
  expect_error([] { ASSERT_TRUE(overrun(3)); }, "fake_0, this rank's own device, fails: ibv_poll_cq");
  forget_events();
}

// What a rank lacks to connect, it reports at once: a launcher ends the job after the first report of a rank.
class LackTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;
  static constexpr const char* kLack = "it would take queue pair number 2; IBCOLL_VERBS_QUEUE_PAIRS or the device";

  // Each rank needs both others.
  static std::vector<EngineJob::End> allgather(uint64_t seed, std::vector<const char*> settings = {}) {
    EngineJob job(kRanks, seed, std::move(settings));
    CallParams params;
    params.collective = IBCOLL_ALLGATHER;
    params.p = kRanks;
    params.bytes = 100;
    std::vector<EngineJob::End> ends = job.run_to_its_end(params, "ring");
    EXPECT_EQ(ends.size(), size_t{kRanks}) << "a rank waits for ever";
    return ends;
  }
  static bool says(const EngineJob::End& end, const std::string& part) {
    return end.status.text().find(part) != std::string::npos;
  }
  // It failed, and no rank did so before.
  static bool failed_first(const std::vector<EngineJob::End>& ends, const EngineJob::End& end) {
    return !end.status.ok() && std::none_of(ends.begin(), ends.end(), [&](const EngineJob::End& other) {
      return !other.status.ok() && other.order < end.order;
    });
  }
};

// One rank may have a single connection. A rank that it refuses may report that; all others report the reason.
TEST_F(LackTest, TheRankThatRefusesAPeerReportsItsOwnReason) {
  for (uint64_t i = 0; i < 9; ++i) {
    const uint64_t seed = conformance::test_seed() + i;
    const int lacking = static_cast<int>(i % kRanks);
    begin(seed);
    rank(lacking).traits.most_completions = verbs::completions_for(1);
    const std::vector<EngineJob::End> ends = allgather(seed);
    for (size_t number = 0; number < ends.size(); ++number) {
      const EngineJob::End& end = ends[number];
      SCOPED_TRACE(fmt::format("seed {}, rank {} lacks: rank {}: {}", seed, lacking, number, end.status.text()));
      const bool itself = static_cast<int>(number) == lacking;
      EXPECT_FALSE(failed_first(ends, end) && !says(end, kLack)) << "no reason comes first";
      EXPECT_EQ(says(end, fmt::format("rank {} cannot reach rank ", lacking)), says(end, kLack));
      EXPECT_EQ(end.status.code() == IBCOLL_ERR_TRANSPORT, says(end, kLack));
      EXPECT_FALSE(itself && (!says(end, kLack) || says(end, "reported by"))) << "not its own reason";
    }
  }
}

TEST_F(LackTest, WhereAllRanksLackItTheFirstReportIsTheReason) {
  for (uint64_t i = 0; i < 30; ++i) {
    const uint64_t seed = conformance::test_seed() + i;
    begin(seed);
    const std::vector<EngineJob::End> ends = allgather(seed, {"IBCOLL_VERBS_QUEUE_PAIRS=1"});
    for (const EngineJob::End& end : ends) {
      SCOPED_TRACE(fmt::format("seed {}: {}", seed, end.status.text()));
      EXPECT_FALSE(failed_first(ends, end) && !says(end, kLack)) << "no reason comes first";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, CollectiveFault,
                         testing::Values("IBCOLL_VERBS_WINDOWS=off", "IBCOLL_VERBS_WINDOWS=on"),
                         [](const auto& info) { return std::string(info.param).ends_with("on") ? "on" : "off"; });

}  // namespace
}  // namespace ibcoll::fake_verbs
