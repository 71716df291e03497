// SPDX-License-Identifier: BSD-3-Clause
// A rank stops in the middle of a transfer, the other one gives up, and it continues: what that one got back with the
// error is its own, and no rank writes to it any more. Each test makes the moment in which the rank stops.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/held_page.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

// The place where rank 1 stops.
enum class StopsAt {
  kBeforeItsCall,  // it is late
  kInACopy,        // the kernel copies for it into the other's memory, and lacks a page of what it copies
  kInAStream,      // the first bytes have come; what sockets hold of the others is less than 48 MB
};

struct Stop {
  const char* name;
  StopsAt moment;
  int nodes;
  uint64_t bytes;
  const char* algorithm;
  ibcoll_scheme_t scheme;
};

struct StopFlags {
  std::atomic<pid_t> pid{0};  // of rank 1
  // Ranks that have a context and have filled their buffers, which may take longer than IBCOLL_TIMEOUT.
  std::atomic<int> ready{0};
  std::atomic<bool> stopped{false};    // rank 1 is, where the moment wants it
  std::atomic<bool> too_late{false};   // IBCOLL_TIMEOUT was over before that
  std::atomic<bool> continues{false};  // rank 1 may
  std::atomic<bool> returned{false};   // its call
};

class StoppedJob {
 public:
  StoppedJob(const Stop& stop, StopFlags& shared) : stop_(stop), shared_(shared) {}

  int run(ForkedRank& self) {
    if (self.rank == 1) shared_.pid = ::getpid();
    const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
    if (const ibcoll_status_t status = ibcoll_context_create(&params, &context_); status != IBCOLL_OK) {
      if (status == IBCOLL_ERR_TIMEOUT) shared_.too_late = true;
      return expect(shared_.too_late, "ibcoll_context_create: {}", ibcoll_last_error()) ? 0 : 1;
    }
    CheckedCall call(
        ibcoll_team_world(context_),
        {.collective = IBCOLL_ALLTOALL, .bytes = stop_.bytes, .scheme = stop_.scheme, .algorithm = stop_.algorithm});
    const ibcoll_collective_args_t args = call.args();
    if (!expect_ok(ibcoll_collective_init(ibcoll_team_world(context_), &args, &request_), "init")) return 1;
    call.fill(0);
    ++shared_.ready;
    if (!await([&] { return shared_.ready == 2 || shared_.too_late; }) || shared_.too_late) return 0;
    self.rank == 1 ? stop(args) : give_up(call, args);
    return complaints() > 0 ? 1 : 0;
  }

 private:
  // Rank 1.
  void stop(const ibcoll_collective_args_t& args) {
    std::unique_ptr<HeldPage> page;
    std::thread keeper;
    if (stop_.moment == StopsAt::kBeforeItsCall) {
      shared_.stopped = true;
      await([&] { return shared_.continues.load(); });
    } else if (stop_.moment == StopsAt::kInACopy) {  // of the block for rank 0
      page = std::make_unique<HeldPage>(static_cast<std::byte*>(const_cast<void*>(args.send)) + stop_.bytes / 2);
      if (!expect(page->held(), "no page can be held")) return;
      keeper = std::thread([&] {
        shared_.stopped = page->is_touched(kMomentSeconds);
        await([&] { return shared_.continues.load(); });
        page->give_back();
      });
    }
    if (ibcoll_start(request_) == IBCOLL_OK) (void)ibcoll_wait(request_);  // may be through with its part
    shared_.returned = true;
    if (keeper.joinable()) keeper.join();
    (void)ibcoll_context_destroy(context_);
  }

  // Rank 0, whose own call must not be over by then.
  bool stop_other(const ibcoll_collective_args_t& args) {
    const std::byte* const first = static_cast<std::byte*>(args.recv) + stop_.bytes;
    const std::vector<std::byte> before(first, first + 64);
    const auto begun = [&] { return !std::equal(before.begin(), before.end(), first); };
    while (ibcoll_test(request_) == IBCOLL_IN_PROGRESS) {
      if (stop_.moment == StopsAt::kInAStream && begun()) {
        ::kill(shared_.pid, SIGSTOP);
        shared_.stopped = true;
      }
      if (shared_.stopped) return true;
    }
    shared_.too_late = ibcoll_test(request_) == IBCOLL_ERR_TIMEOUT;
    expect(shared_.too_late, "the call is over, and rank 1 did not stop: {}", ibcoll_last_error());
    return false;
  }

  void let_other_continue() {
    shared_.continues = true;
    ::kill(shared_.pid, SIGCONT);
  }

  void give_up(CheckedCall& call, const ibcoll_collective_args_t& args) {
    expect_ok(ibcoll_start(request_), "start");
    if (!stop_other(args)) return let_other_continue();
    ibcoll_status_t status = ibcoll_wait(request_);
    if (stop_.moment == StopsAt::kInACopy) {
      expect_status(status, IBCOLL_ERR_BUFFERS_HELD, "the wait for a rank in the middle of a write");
      expect_status(ibcoll_test(request_), IBCOLL_ERR_BUFFERS_HELD, "a test of the same request");
      expect(ibcoll_request_free(request_) == IBCOLL_ERR_BUSY, "a request whose buffers are held was freed");
      shared_.continues = true;
      await([&] { return (status = ibcoll_wait(request_)) != IBCOLL_ERR_BUFFERS_HELD; });
    }
    expect_error(status, IBCOLL_ERR_TIMEOUT, "IBCOLL_TIMEOUT", "the wait for a stopped rank");
    expect_ok(ibcoll_request_free(request_), "ibcoll_request_free");
    call.scribble();
    let_other_continue();
    expect(await([&] { return shared_.returned.load(); }, [&] { ibcoll_progress(context_); }),
           "rank 1 does not return");
    for (int i = 0; i < 1000; ++i) ibcoll_progress(context_);  // what sockets still hold
    expect(call.scribbled(), "memory was written after the wait had returned");
    const ibcoll_status_t left = ibcoll_context_destroy(context_);
    expect(left != IBCOLL_ERR_BUSY, "ibcoll_context_destroy: {}", ibcoll_last_error());
    expect(call.scribbled(), "memory was written while the context ended");
  }

  const Stop& stop_;
  StopFlags& shared_;
  ibcoll_context_t context_ = nullptr;
  ibcoll_request_t request_ = nullptr;
};

class StoppedInATransfer : public testing::TestWithParam<Stop> {};

// IBCOLL_TIMEOUT is short. Where ranks need longer to come to the moment, a longer one is tried.
TEST_P(StoppedInATransfer, MemoryIsTheCallersAfterTheError) {
  const Stop& stop = GetParam();
  if (stop.nodes > 1 && !ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  if (const std::string why = HeldPage::missing(); stop.moment == StopsAt::kInACopy && !why.empty())
    GTEST_SKIP() << why;
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  SharedState<StopFlags> shared;
  double timeout = 0.3;
  do {
    shared.clear();
    timeout *= 2;
    ASSERT_LT(timeout, 40) << "rank 1 does not come to where it stops";
    ::setenv("IBCOLL_TIMEOUT", fmt::format("{}", timeout).c_str(), 1);
    const std::vector<Ending> endings =
        ForkJob(2, stop.nodes).run([&](ForkedRank& self) { return StoppedJob(stop, *shared).run(self); }, 100);
    EXPECT_FALSE(endings[0].overdue);
    EXPECT_TRUE(endings[0].exited);
    EXPECT_EQ(endings[0].code, 0);
  } while (shared->too_late && !HasFailure());
  EXPECT_TRUE(shared->stopped);
}

constexpr Stop kStops[] = {
    {"BeforeItsCall_1node", StopsAt::kBeforeItsCall, 1, 3'000'000, nullptr, IBCOLL_SCHEME_AUTO},
    {"BeforeItsCall_2nodes", StopsAt::kBeforeItsCall, 2, 3'000'000, nullptr, IBCOLL_SCHEME_AUTO},
    {"InACopy_1node", StopsAt::kInACopy, 1, 3'000'000, "direct", IBCOLL_SCHEME_ZERO_COPY},
    {"InAStream_2nodes", StopsAt::kInAStream, 2, 48'000'000, nullptr, IBCOLL_SCHEME_AUTO},
};

INSTANTIATE_TEST_SUITE_P(Of, StoppedInATransfer, testing::ValuesIn(kStops),
                         [](const testing::TestParamInfo<Stop>& info) { return info.param.name; });

}  // namespace
}  // namespace ibcoll::multiprocess
