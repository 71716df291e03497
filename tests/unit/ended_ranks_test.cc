// SPDX-License-Identifier: BSD-3-Clause
// Tests what a rank makes of the launcher's report that another one has ended.
#include "runtime/context/ended_ranks.h"

#include <optional>
#include <utility>

#include "tests/unit/engine_wire.h"

namespace ibcoll {
namespace {

class ReportingBootstrap : public Bootstrap {
 public:
  std::string name() const override { return "reporting"; }
  int rank() const override { return 0; }
  int size() const override { return 3; }
  Status allgather(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  std::vector<Ended> ended() override { return std::exchange(news, {}); }

  std::vector<Ended> news;
};

class EndedRanksTest : public EngineTest {
 protected:
  void look_after_ms(int milliseconds) {
    wire_.now += static_cast<Time>(milliseconds) * 1'000'000;
    EndedRanks& ended = ended_ ? *ended_ : ended_.emplace(bootstrap_, *engines_[0]);
    ended.poll();
    progress();
  }
  const std::string& text() { return team(0).failure().text(); }

  ReportingBootstrap bootstrap_;
  std::optional<EndedRanks> ended_;
};

TEST_F(EndedRanksTest, AReportEndsTheTeam) {
  auto call = make_call(team(0), 20'000);
  EXPECT_TRUE(call->request->start().ok());
  bootstrap_.news = {{1, "its process was killed"}};
  look_after_ms(1);
  EXPECT_TRUE(team(0).failure().ok());
  look_after_ms(60);
  EXPECT_EQ(team(0).failure().code(), IBCOLL_ERR_PEER_FAILED);
  EXPECT_NE(text().find("rank 1 of the job (rank 1 of the team) failed: its process was killed"), std::string::npos)
      << text();
  look_after_ms(300);
  EXPECT_EQ(call->request->status().code(), IBCOLL_ERR_PEER_FAILED);
}

TEST_F(EndedRanksTest, WhatTheRankHasSentCountsAlthoughTheReportOvertakesIt) {
  std::vector<std::unique_ptr<Call>> calls;
  for (const int rank : {1, 2}) {
    calls.push_back(make_call(team(rank), 10));
    EXPECT_TRUE(calls.back()->request->start().ok());
  }
  for (int i = 0; i < 50; ++i)
    for (const size_t rank : {1, 2}) engines_[rank]->progress();
  bootstrap_.news = {{2, "its process has exited"}};
  EndedRanks& ended = ended_.emplace(bootstrap_, *engines_[0]);
  ended.poll();
  EXPECT_TRUE(team(0).failure().ok());
  calls.push_back(make_call(team(0), 10));
  EXPECT_TRUE(calls.back()->request->start().ok());
  progress();
  look_after_ms(60);
  EXPECT_TRUE(calls.back()->request->status().ok()) << calls.back()->request->status().text();
  EXPECT_TRUE(calls.back()->right(1));
  EXPECT_FALSE(team(0).failure().ok()) << "of later calls";
}

TEST_F(EndedRanksTest, AReportSaysMoreThanTheTransportWhateverComesFirst) {
  for (const bool report_first : {false, true}) {
    if (!report_first) lose(1), progress();
    bootstrap_.news = {{1, "its process was killed"}};
    look_after_ms(1);
    if (report_first) look_after_ms(60), lose(1), progress();
    wait_seconds(1);
    EXPECT_NE(text().find("failed: its process was killed"), std::string::npos) << text();
    ended_.reset();
    teams_.clear(), engines_.clear(), transports_.clear();
    wire_ = Wire(kRanks);
    SetUp();
  }
}

TEST_F(EndedRanksTest, AReportOfOneRankDoesNotExplainTheDeathOfAnother) {
  lose(1);
  progress();
  bootstrap_.news = {{2, "its process has exited"}};
  look_after_ms(60);
  wait_seconds(1);
  EXPECT_NE(text().find("rank 1"), std::string::npos) << text();
  EXPECT_NE(text().find("it fell"), std::string::npos) << text();
}

}  // namespace
}  // namespace ibcoll
