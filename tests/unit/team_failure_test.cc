// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/team_failure.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ibcoll {
namespace {

constexpr int kTeller = 1, kTeamSize = 4, kDead = 2;
constexpr Time kMilliseconds = 1'000'000;
constexpr Time kPastSuspicion = 1'000 * kMilliseconds;  // no suspicion lasts as long

Status system_error(const char* text) { return error(IBCOLL_ERR_SYSTEM, "{}", text); }
bool takes_it(int) { return true; }
bool has_no_room(int) { return false; }

TeamFailure failure_in(TeamFailure::State state) {
  TeamFailure one(kTeller, kTeamSize);
  switch (state) {
    case TeamFailure::State::kHealthy:
      break;
    case TeamFailure::State::kSuspected:
      EXPECT_TRUE(one.suspect(system_error("first"), 10));
      break;
    case TeamFailure::State::kDeathSeen:
      EXPECT_TRUE(one.see_death(kDead, system_error("first"), 10));
      break;
    case TeamFailure::State::kNotifying:
      EXPECT_TRUE(one.fail(system_error("first"), 10));
      break;
    case TeamFailure::State::kNotified:
      EXPECT_TRUE(one.learn(system_error("first"), 10));
      break;
  }
  EXPECT_EQ(one.state(), state);
  return one;
}

std::vector<int> asked_of(TeamFailure& one, const std::function<bool(int)>& answer) {
  std::vector<int> asked;
  one.notify([&](int rank) {
    asked.push_back(rank);
    return answer(rank);
  });
  return asked;
}

constexpr TeamFailure::State kStatesOfFailure[] = {TeamFailure::State::kHealthy, TeamFailure::State::kSuspected,
                                                   TeamFailure::State::kDeathSeen, TeamFailure::State::kNotifying,
                                                   TeamFailure::State::kNotified};

// The table of the header: where a transition leads; it changes nothing in a state that is not listed.
struct TransitionRow {
  const char* name;
  std::function<void(TeamFailure&)> act;
  std::map<TeamFailure::State, TeamFailure::State> leads;
};

const TransitionRow kTransitions[] = {
    {"fail",
     [](TeamFailure& f) { (void)f.fail(system_error("second"), 20); },
     {{TeamFailure::State::kHealthy, TeamFailure::State::kNotifying},
      {TeamFailure::State::kDeathSeen, TeamFailure::State::kNotifying}}},
    {"suspect",
     [](TeamFailure& f) { (void)f.suspect(system_error("second"), 20); },
     {{TeamFailure::State::kHealthy, TeamFailure::State::kSuspected}}},
    {"explain",
     [](TeamFailure& f) { (void)f.explain(system_error("second")); },
     {{TeamFailure::State::kSuspected, TeamFailure::State::kSuspected}}},
    {"see_death",
     [](TeamFailure& f) { (void)f.see_death(kDead, system_error("second"), 20); },
     {{TeamFailure::State::kHealthy, TeamFailure::State::kDeathSeen},
      {TeamFailure::State::kSuspected, TeamFailure::State::kDeathSeen}}},
    {"explain_death",
     [](TeamFailure& f) { f.explain_death(kDead, system_error("second")); },
     {{TeamFailure::State::kDeathSeen, TeamFailure::State::kDeathSeen}}},
    {"explain_death of another rank", [](TeamFailure& f) { f.explain_death(kDead + 1, system_error("second")); }, {}},
    {"learn",
     [](TeamFailure& f) { (void)f.learn(system_error("second"), 20); },
     {{TeamFailure::State::kHealthy, TeamFailure::State::kNotified},
      {TeamFailure::State::kSuspected, TeamFailure::State::kNotified},
      {TeamFailure::State::kDeathSeen, TeamFailure::State::kNotified}}},
    {"learn, to pass it on",
     [](TeamFailure& f) { (void)f.learn(system_error("second"), 20, true); },
     {{TeamFailure::State::kHealthy, TeamFailure::State::kNotifying},
      {TeamFailure::State::kSuspected, TeamFailure::State::kNotifying},
      {TeamFailure::State::kDeathSeen, TeamFailure::State::kNotifying}}},
    {"end_suspicion",
     [](TeamFailure& f) { (void)f.end_suspicion(kPastSuspicion); },
     {{TeamFailure::State::kSuspected, TeamFailure::State::kNotifying},
      {TeamFailure::State::kDeathSeen, TeamFailure::State::kNotifying}}},
    {"cut_suspicion",
     [](TeamFailure& f) { f.cut_suspicion(); },
     {{TeamFailure::State::kSuspected, TeamFailure::State::kNotifying},
      {TeamFailure::State::kDeathSeen, TeamFailure::State::kNotifying}}},
    {"notify",
     [](TeamFailure& f) { f.notify(takes_it); },
     {{TeamFailure::State::kNotifying, TeamFailure::State::kNotified}}},
};

TEST(TeamFailure, EachTransitionLeadsWhereTheTableSays) {
  for (const TransitionRow& transition : kTransitions)
    for (const TeamFailure::State from : kStatesOfFailure) {
      SCOPED_TRACE(std::string(transition.name) + " from state " + std::to_string(static_cast<int>(from)));
      TeamFailure one = failure_in(from);
      const Time since = one.since();
      const Status before = one.status();
      transition.act(one);
      const auto leads = transition.leads.find(from);
      EXPECT_EQ(one.state(), leads == transition.leads.end() ? from : leads->second);
      EXPECT_EQ(one.healthy(), one.status().ok());
      EXPECT_EQ(one.healthy() + one.uncertain() + one.certain(), 1);
      if (leads == transition.leads.end()) {
        EXPECT_EQ(one.since(), since);
        EXPECT_EQ(one.status().text(), before.text());
      }
    }
}

TEST(TeamFailure, KeepsTheFirstExplanation) {
  TeamFailure one = failure_in(TeamFailure::State::kSuspected);
  EXPECT_TRUE(one.explain(system_error("second")));
  EXPECT_FALSE(one.explain(system_error("third")));
  EXPECT_EQ(one.status().text(), system_error("second").text());
  EXPECT_TRUE(one.end_suspicion(kPastSuspicion));
  EXPECT_EQ(one.status().text(), system_error("second").text());
}

TEST(TeamFailure, BeginsHealthy) {
  TeamFailure one(kTeller, kTeamSize);
  EXPECT_TRUE(one.healthy());
  EXPECT_TRUE(one.all_notified());
  EXPECT_TRUE(one.report().ok());
  EXPECT_FALSE(one.reported());
}

TEST(TeamFailure, IsReportedOnceTheProgramHasSeenIt) {
  TeamFailure one = failure_in(TeamFailure::State::kNotifying);
  EXPECT_FALSE(one.reported());
  EXPECT_EQ(one.report().text(), "first");
  EXPECT_TRUE(one.reported());
}

TEST(TeamFailure, NoErrorIsNoFailure) {
  TeamFailure one(kTeller, kTeamSize);
  EXPECT_FALSE(one.fail(Status(), 1));
  EXPECT_FALSE(one.suspect(Status(), 1));
  EXPECT_FALSE(one.see_death(kDead, Status(), 1));
  EXPECT_FALSE(one.learn(Status(), 1));
  EXPECT_TRUE(one.healthy());
  EXPECT_TRUE(one.all_notified());
}

TEST(TeamFailure, ABetterCauseReplacesADoubtfulOne) {
  TeamFailure one = failure_in(TeamFailure::State::kSuspected);
  EXPECT_FALSE(one.fail(system_error("certain, but later"), 20)) << "it may be an effect as well";
  EXPECT_EQ(one.status().text(), "first");
  EXPECT_TRUE(one.see_death(kDead, system_error("a death"), 20));
  EXPECT_EQ(one.status().text(), "a death");
  EXPECT_EQ(one.since(), 20u);
  EXPECT_FALSE(one.see_death(kDead, system_error("another death"), 30));
  EXPECT_EQ(one.dead_peer(), kDead);
  EXPECT_TRUE(one.learn(system_error("notified"), 40, false, 3));
  EXPECT_EQ(one.dead_peer(), 3);
  EXPECT_EQ(one.status().text(), "notified");
  EXPECT_EQ(one.since(), 40u);
  EXPECT_FALSE(one.learn(system_error("notified again"), 50));
  EXPECT_EQ(one.status().text(), "notified");
}

TEST(TeamFailure, ItsOwnReasonEndsTheDoubtAboutADeath) {
  TeamFailure one = failure_in(TeamFailure::State::kDeathSeen);
  EXPECT_TRUE(one.fail(system_error("its own"), 20));
  EXPECT_FALSE(one.learn(system_error("told"), 30));
  EXPECT_EQ(one.status().text(), "its own");
  EXPECT_EQ(one.dead_peer(), -1) << "notices to other ranks do not name the death as the cause";
  EXPECT_EQ(asked_of(one, takes_it), (std::vector<int>{0, 2, 3})) << "each once";
}

// The suspicion of a death begins with the death, whatever was suspected before.
TEST(TeamFailure, ADoubtLastsTillTheRanksTurn) {
  constexpr Time kStart = 5 * kMilliseconds;
  constexpr Time kLengths[] = {100, 137, 174, 111};
  for (int rank = 0; rank < kTeamSize; ++rank) {
    SCOPED_TRACE(rank);
    TeamFailure one(rank, kTeamSize);
    EXPECT_TRUE(one.suspect(system_error("suspicion"), 0));
    EXPECT_TRUE(one.see_death(kDead, system_error("death"), kStart));
    const Time end = kStart + kLengths[rank] * kMilliseconds;
    EXPECT_FALSE(one.end_suspicion(end - 1));
    EXPECT_TRUE(one.uncertain());
    EXPECT_EQ(one.since(), kStart);
    EXPECT_TRUE(one.end_suspicion(end));
    EXPECT_EQ(one.since(), end) << "the program waits for its buffers from now on";
    EXPECT_FALSE(one.end_suspicion(end + 1));
    EXPECT_EQ(one.since(), end);
  }
}

TEST(TeamFailure, ADoubtThatIsCutKeepsItsTime) {
  TeamFailure one = failure_in(TeamFailure::State::kDeathSeen);
  one.cut_suspicion();
  EXPECT_EQ(one.since(), 10u);
}

TEST(TeamFailure, TellsEachOtherRankOnce) {
  TeamFailure one = failure_in(TeamFailure::State::kNotifying);
  EXPECT_EQ(asked_of(one, [](int rank) { return rank != 2; }), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(one.state(), TeamFailure::State::kNotifying);
  EXPECT_FALSE(one.all_notified());
  EXPECT_EQ(asked_of(one, takes_it), (std::vector<int>{2}));
  EXPECT_EQ(one.state(), TeamFailure::State::kNotified);
  EXPECT_TRUE(one.all_notified());
  EXPECT_TRUE(asked_of(one, takes_it).empty());
}

TEST(TeamFailure, ADeathThatExplainsDoesNotListTheRanksAgain) {
  TeamFailure one = failure_in(TeamFailure::State::kSuspected);
  EXPECT_TRUE(one.see_death(kDead, system_error("death"), 20));
  EXPECT_TRUE(one.end_suspicion(kPastSuspicion));
  EXPECT_EQ(asked_of(one, takes_it), (std::vector<int>{0, 2, 3}));
}

TEST(TeamFailure, TellsNobodyInDoubt) {
  for (const TeamFailure::State state :
       {TeamFailure::State::kHealthy, TeamFailure::State::kSuspected, TeamFailure::State::kDeathSeen}) {
    TeamFailure one = failure_in(state);
    EXPECT_TRUE(asked_of(one, takes_it).empty());
    EXPECT_EQ(one.state(), state);
  }
}

TEST(TeamFailure, TellsNobodyWhatItLearned) {
  for (const TeamFailure::State state :
       {TeamFailure::State::kHealthy, TeamFailure::State::kSuspected, TeamFailure::State::kDeathSeen}) {
    TeamFailure one = failure_in(state);
    EXPECT_TRUE(one.learn(system_error("told"), 20));
    EXPECT_TRUE(one.all_notified());
    EXPECT_TRUE(asked_of(one, takes_it).empty());
  }
}

// Requests end then, though a rank has no room for the news. It is still notified if it has some later.
TEST(TeamFailure, WhoIsTriedOftenEnoughHoldsNobodyUp) {
  TeamFailure one = failure_in(TeamFailure::State::kNotifying);
  for (int tries = 1; tries < TeamFailure::kMostTries; ++tries) one.notify(has_no_room);
  EXPECT_EQ(one.state(), TeamFailure::State::kNotifying);
  one.notify(has_no_room);
  EXPECT_EQ(one.state(), TeamFailure::State::kNotified);
  EXPECT_FALSE(one.all_notified());
  EXPECT_EQ(asked_of(one, takes_it), (std::vector<int>{0, 2, 3}));
  EXPECT_TRUE(one.all_notified());
}

TEST(TeamFailure, ATeamOfOneTellsNobody) {
  TeamFailure one(0, 1);
  EXPECT_TRUE(one.fail(system_error("it broke"), 1));
  EXPECT_TRUE(one.all_notified());
  EXPECT_TRUE(asked_of(one, takes_it).empty());
  EXPECT_EQ(one.state(), TeamFailure::State::kNotified);
}

}  // namespace
}  // namespace ibcoll
