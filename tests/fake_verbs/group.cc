// SPDX-License-Identifier: BSD-3-Clause
// The transport contract on verbs over the device within the process: a new fabric for each group, from its seed.
#include "tests/fake_verbs/group.h"

#include <gtest/gtest.h>

#include <cinttypes>
#include <cstdio>

#include "tests/conformance/world.h"
#include "tests/fake_verbs/fabric.h"

namespace ibcoll::fake_verbs {

namespace {

// The device moves when it is polled: to let time pass would only take time.
class Polled final : public conformance::Group {
 public:
  explicit Polled(std::unique_ptr<conformance::Group> ranks) : ranks_(std::move(ranks)) {}
  int size() const override { return ranks_->size(); }
  Transport& at(int rank) override { return ranks_->at(rank); }
  void idle() override {}
  bool leave(int rank) override { return ranks_->leave(rank); }
  std::unique_ptr<Transport> make_stranger() override { return ranks_->make_stranger(); }

 private:
  std::unique_ptr<conformance::Group> ranks_;
};

// A new fabric for each test, which leaves no objects and has done nothing that no program may do.
class EachTest final : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo&) override {
    forget_events();
    begin(conformance::test_seed());
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    for (const std::string& what : misuses()) ADD_FAILURE() << what;
    for (const auto& [rank, happened] : fabric().events)
      EXPECT_TRUE(happened.empty()) << "rank " << rank << ": " << ibv_event_type_str(happened.front());
    EXPECT_EQ(live_objects(), 0u) << "verbs objects that were not destroyed";
    if (test.result()->Failed()) printf("repeat with IBCOLL_TEST_SEED=%" PRIu64 "\n", conformance::test_seed());
  }
};
const bool watched = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new EachTest);  // GoogleTest deletes it
  return true;
}();

}  // namespace

std::unique_ptr<conformance::Group> make_group(int size, uint64_t seed, std::vector<const char*> settings) {
  auto ranks = conformance::NetworkGroup<verbs::Transport>::make(size, seed, std::move(settings));
  return ranks ? std::make_unique<Polled>(std::move(ranks)) : nullptr;
}

}  // namespace ibcoll::fake_verbs

namespace ibcoll::conformance {
namespace {

using fake_verbs::Landing;

struct Kind {
  const char* name;
  std::vector<const char*> settings;
  Landing landing;
  bool ethernet = true;
};

std::unique_ptr<Group> make(const Kind& kind, int size, uint64_t seed) {
  fake_verbs::begin(seed);
  fake_verbs::script().landing = kind.landing;
  fake_verbs::script().lost_permille = fake_verbs::script().repeated_permille = 50;
  fake_verbs::script().overtaking = 16;
  constexpr int kMostRanks = 16;
  for (int rank = 0; rank < kMostRanks; ++rank) fake_verbs::rank(rank).traits.ethernet = kind.ethernet;
  return fake_verbs::make_group(size, seed, kind.settings);
}

}  // namespace

bool machine_has_rdma() { return true; }
bool machine_has_rdmacm() { return false; }

const std::vector<Maker>& makers() {
  static const std::vector<Maker> all = [] {
    const Kind kinds[] = {
        {"verbs_imm", {"IBCOLL_VERBS_NOTIFY=imm", "IBCOLL_VERBS_WINDOWS=off"}, Landing::kShuffled},
        {"verbs_late", {"IBCOLL_VERBS_NOTIFY=auto"}, Landing::kLastFirst},
        {"verbs_memory", {"IBCOLL_VERBS_NOTIFY=memory", "IBCOLL_VERBS_WINDOWS=off"}, Landing::kInOrder},
        {"verbs_windows", {"IBCOLL_VERBS_WINDOWS=on"}, Landing::kInOrder, false}};
    std::vector<Maker> found;
    for (const Kind& kind : kinds)
      found.push_back({kind.name, [kind](int size, uint64_t seed) { return make(kind, size, seed); }});
    return found;
  }();
  return all;
}

}  // namespace ibcoll::conformance
