// SPDX-License-Identifier: BSD-3-Clause
// Tests that the predicted times are those of the limits and the scheme by which messages go.
#include "runtime/context/team_profile.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/context/selection.h"
#include "runtime/transport/cost_constants.h"

namespace ibcoll {
namespace {

TeamProfile profile_of(uint64_t eager_bytes, uint64_t spill_bytes) {
  EngineLimits limits;
  limits.eager_bytes = eager_bytes, limits.spill_bytes = spill_bytes;
  TeamProfile profile;
  profile.shape.p = profile.shape.nodes = 16;
  JoinedJob job;
  job.net_model = job.steady_net_model = cost::kUnknownLink;
  profile.fill_models(job, limits);
  return profile;
}

TEST(TeamProfile, ModelsHaveTheLimitsOfTheEngine) {
  const TeamProfile profile = profile_of(512, 64 << 10);
  for (const CostModel* const model : {&profile.model, &profile.steady_model}) {
    EXPECT_EQ(model->eager_bytes, 512);
    EXPECT_EQ(model->spill_bytes, 64 << 10);
  }
}

// A late rank has to ask for a message that could not go ahead of it.
TEST(TeamProfile, AMessageGoesAheadOfALateRankAsLimitsAndSchemeSay) {
  const char* const environment[] = {"IBCOLL_ARRIVAL=late", nullptr};
  Selection selection;
  ASSERT_TRUE(selection.read_settings(Config::load_from(environment).value(), false).ok());
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = 4096;
  const auto late_us = [&](uint64_t eager_bytes, ibcoll_scheme_t scheme) {
    const Result<Forced> forced = selection.forced(IBCOLL_BCAST, "binomial");
    const Result<std::string> text = selection.explain(profile_of(eager_bytes, 1 << 20), args, forced.value(), scheme);
    EXPECT_TRUE(text.ok()) << text.status().text();
    return nlohmann::json::parse(text.value()).at("candidates").at(0).at("late_us").get<double>();
  };
  const double ahead = late_us(8192, IBCOLL_SCHEME_AUTO), asked_for = late_us(2048, IBCOLL_SCHEME_AUTO);
  EXPECT_LT(ahead, asked_for);
  EXPECT_EQ(late_us(8192, IBCOLL_SCHEME_ZERO_COPY), asked_for);
}

}  // namespace
}  // namespace ibcoll
