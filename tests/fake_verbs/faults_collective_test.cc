// SPDX-License-Identifier: BSD-3-Clause
// A fault of one rank's device while all ranks are in a collective: every rank's call ends with an error that names a
// rank, and nobody writes into the buffers of a call that has ended.
#include "tests/fake_verbs/faulty.h"
#include "tests/fake_verbs/job.h"

namespace ibcoll::fake_verbs {
namespace {

constexpr int kMembers = 4;

class CollectiveFault : public testing::TestWithParam<const char*> {
 protected:
  // The first call connects; during the second `fault` is there.
  static void expect_error(const std::function<void()>& fault, const std::string& text) {
    Job job(kMembers, conformance::test_seed(), {GetParam(), "IBCOLL_VERBS_TIMEOUT=10"});
    CallParams params;
    params.collective = IBCOLL_ALLTOALL;
    params.p = kMembers;
    params.bytes = 200'000;
    ASSERT_EQ(job.run(params, "pap_direct"), "");
    fault();
    const std::vector<Job::End> ends = job.run_to_its_end(params, "pap_direct");
    ASSERT_EQ(ends.size(), size_t{kMembers}) << "a rank waits for ever";
    bool named = false;
    for (const Job::End& end : ends) {
      EXPECT_EQ(end.status.code(), IBCOLL_ERR_PEER_FAILED) << end.status.text();
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
  expect_error([] { rank(2).traits.removed = true; }, "lost rank 2");
}

TEST_P(CollectiveFault, AnOverrunEndsTheCallOnAllRanks) {
  expect_error([] { ASSERT_TRUE(overrun(3)); }, "fake_0, this rank's own device, fails: ibv_poll_cq");
  forget_events();
}

INSTANTIATE_TEST_SUITE_P(Windows, CollectiveFault,
                         testing::Values("IBCOLL_VERBS_WINDOWS=off", "IBCOLL_VERBS_WINDOWS=on"),
                         [](const auto& info) { return std::string(info.param).ends_with("on") ? "on" : "off"; });

}  // namespace
}  // namespace ibcoll::fake_verbs
