// SPDX-License-Identifier: BSD-3-Clause
// The ranks of one machine, without a launcher.
#include "tools/ibcoll_run/agent.h"

#include <gtest/gtest.h>

#include <functional>

namespace ibcoll::run {
namespace {

using namespace std::chrono_literals;

// The reports of an agent, in short.
class Reports : public HostEvents {
 public:
  void rank_started(int, pid_t) override {}
  void rank_exited(int rank, RankExit exit) override { exits.push_back({rank, exit.code}); }
  void rank_output(int, int stream, std::string_view bytes) override {
    (stream == 1 ? output : error_output) += bytes;
    if (bytes.empty()) ended.push_back(stream);
  }
  void input_taken(size_t) override {}
  void host_says(Host&, std::string) override {}
  void host_failed(Host&, int, std::string text) override { failures.push_back(std::move(text)); }
  void host_finished(Host&) override { finished = true; }

  std::vector<std::pair<int, int>> exits;
  std::vector<int> ended;  // streams
  std::string output, error_output;
  std::vector<std::string> failures;
  bool finished = false;
};

class AgentTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(loop_.open().ok()); }
  // One rank, which gets what send_input() brings.
  void start(const std::string& script, Terminal::Use terminal) {
    HostJob job;
    job.host = "here";
    job.ranks = {0};
    job.size = 1;
    job.program_of = {0};
    job.programs = {{{"/bin/sh", "-c", script}, {}, ""}};
    job.local = true;
    job.terminal.use = terminal;
    defaults_.emplace(ProcessDefaults::take_over());
    agent_.emplace(loop_, std::move(job), reported_, *defaults_, Agent::Input::kForward);
    agent_->start();
  }
  void TearDown() override {
    agent_.reset();
    if (defaults_) defaults_->restore();
  }
  // False: it was not so in time.
  bool runs_until(const std::function<bool()>& condition) {
    bool late = false;
    const EventLoop::TimerId timer = loop_.after(20s, [&] { late = true; });
    while (!condition() && !late && loop_.run_once().ok()) {
    }
    loop_.cancel(timer);
    return condition();
  }

  EventLoop loop_;
  Reports reported_;
  std::optional<ProcessDefaults> defaults_;
  std::optional<Agent> agent_;
};

// The rank lives on: so it is the stream's end that counts, and not that of the rank.
TEST_F(AgentTest, AnOutputThatARankClosesEnds) {
  for (const Terminal::Use terminal : {Terminal::Use::kNo, Terminal::Use::kYes}) {
    start("echo x; exec >&-; read word; echo \"$word\" >&2; exit 3", terminal);
    EXPECT_TRUE(runs_until([&] { return !reported_.ended.empty(); }));
    EXPECT_EQ(reported_.ended, std::vector<int>{1});
    EXPECT_TRUE(reported_.exits.empty());
    agent_->send_input("go\n");
    EXPECT_TRUE(runs_until([&] { return reported_.finished; }));
    EXPECT_EQ(reported_.output, "x\n");
    EXPECT_EQ(reported_.error_output, "go\n");
    EXPECT_EQ(reported_.exits, (std::vector<std::pair<int, int>>{{0, 3}}));
    EXPECT_EQ(reported_.failures, std::vector<std::string>());
    TearDown();
    reported_ = Reports();
  }
}

}  // namespace
}  // namespace ibcoll::run
