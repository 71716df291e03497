// SPDX-License-Identifier: BSD-3-Clause
// The C interface in a job of one rank. Jobs of several: tests/multiprocess.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/api/handles.h"
#include "runtime/comm/reduce/operation.h"
#include "runtime/include/ibcoll.h"
#include "tests/unit/arguments_of.h"
#ifdef IBCOLL_COUNTS_ALLOCATIONS
#include "perf/measures/count_allocations.h"
#include "runtime/base/catalog.h"
#endif

namespace {

class Api : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ibcoll_context_create(nullptr, &context_), IBCOLL_OK) << ibcoll_last_error();
    world_ = ibcoll_team_world(context_);
  }
  void TearDown() override { EXPECT_EQ(ibcoll_context_destroy(context_), IBCOLL_OK) << ibcoll_last_error(); }
  // Good arguments of any collective: 24 bytes from send_ to recv_.
  ibcoll_collective_args_t args(ibcoll_collective_t collective) {
    return ibcoll::arguments_of(collective, send_, recv_, sizeof send_, &bytes_, &zero_, std::size(send_),
                                IBCOLL_INT64);
  }

  ibcoll_context_t context_ = nullptr;
  ibcoll_team_t world_ = nullptr;
  int64_t send_[3] = {1, 2, 3}, recv_[3] = {};
  uint64_t bytes_ = sizeof send_, zero_ = 0;
};

// A job of one rank in a host whose own waits advance ibcoll.
struct HostOfOne {
  ibcoll_context_t context = nullptr;
  int gathered = 0;
  ibcoll_status_t progressed = IBCOLL_OK;

  static int allgather(void* self, const void* send, void* recv, size_t bytes) {
    auto& host = *static_cast<HostOfOne*>(self);
    std::memcpy(recv, send, bytes);
    ++host.gathered;
    if (host.context) host.progressed = ibcoll_progress(host.context);
    return 0;
  }
  ibcoll_status_t create(double timeout_seconds = 0) {
    const ibcoll_bootstrap_t bootstrap{sizeof bootstrap, 0, 1, &HostOfOne::allgather, this, [](void*) { return 0; },
                                       timeout_seconds};
    const ibcoll_context_params_t params{sizeof params, &bootstrap};
    return ibcoll_context_create(&params, &context);
  }
  nlohmann::json bootstrap_info() const {
    std::string text(ibcoll_info_json(context, nullptr, 0) + 1, '\0');
    (void)ibcoll_info_json(context, text.data(), text.size());
    return nlohmann::json::parse(text.c_str())["bootstrap"];
  }
};

TEST(HostMode, TheContextMayBeProgressedWhileItIsDestroyed) {
  HostOfOne host;
  ASSERT_EQ(host.create(), IBCOLL_OK) << ibcoll_last_error();
  const int gathered = host.gathered;
  EXPECT_EQ(ibcoll_context_destroy(host.context), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_GT(host.gathered, gathered);
  EXPECT_EQ(host.progressed, IBCOLL_OK);
}

TEST(HostMode, SignalsAreTheHosts) {
  const auto handler = [] {
    struct sigaction now {};
    ::sigaction(SIGUSR1, nullptr, &now);
    return now.sa_handler;
  };
  ASSERT_EQ(handler(), SIG_DFL);
  HostOfOne host;
  ASSERT_EQ(host.create(), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(handler(), SIG_DFL);
  EXPECT_EQ(ibcoll_context_destroy(host.context), IBCOLL_OK);
}

TEST(HostMode, DeadlinesAreTheHosts) {
  const char* const set = std::getenv("IBCOLL_TIMEOUT");
  const std::string before = set ? set : "";
  ::unsetenv("IBCOLL_TIMEOUT");
  for (const double seconds : {0.0, 1.5}) {
    HostOfOne host;
    ASSERT_EQ(host.create(seconds), IBCOLL_OK) << ibcoll_last_error();
    EXPECT_EQ(host.bootstrap_info()["timeout_seconds"], seconds);
    EXPECT_EQ(host.bootstrap_info()["host_mode"], true);
    EXPECT_EQ(ibcoll_context_destroy(host.context), IBCOLL_OK);
  }
  ::setenv("IBCOLL_TIMEOUT", "2.5", 1);
  HostOfOne host;
  ASSERT_EQ(host.create(1.5), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(host.bootstrap_info()["timeout_seconds"], 2.5) << "the user says so";
  EXPECT_EQ(ibcoll_context_destroy(host.context), IBCOLL_OK);
  set ? ::setenv("IBCOLL_TIMEOUT", before.c_str(), 1) : ::unsetenv("IBCOLL_TIMEOUT");
  for (const double seconds : {-1.0, std::nan("")}) {
    EXPECT_EQ(host.create(seconds), IBCOLL_ERR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(ibcoll_last_error()).find("timeout_seconds"), std::string::npos) << ibcoll_last_error();
  }
}

// A program that was compiled before there was host mode, at the end of a page after which nothing may be read.
TEST(HostMode, AShorterStructHasNoHost) {
  constexpr size_t kOlder = offsetof(ibcoll_bootstrap_t, progress);
  HostOfOne host;
  const ibcoll_bootstrap_t bootstrap{kOlder, 0, 1, &HostOfOne::allgather, &host, [](void*) { return 0; }, -1};
  const ibcoll_context_params_t params{sizeof params, &bootstrap};
  ASSERT_EQ(ibcoll_context_create(&params, &host.context), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(host.bootstrap_info()["host_mode"], false);
  host.gathered = 0;
  EXPECT_EQ(ibcoll_context_destroy(host.context), IBCOLL_OK);
}

TEST_F(Api, ProgressEventsWaitForNobody) {
  uint64_t events = 7;
  ibcoll_status_t status = IBCOLL_ERR_INTERNAL;
  {
    const std::lock_guard inside(context_->context->lock());  // as another thread that is inside of ibcoll
    std::thread([&] { status = ibcoll_progress_events(context_, &events); }).join();
  }
  EXPECT_EQ(status, IBCOLL_OK);
  EXPECT_EQ(events, 0u);
  EXPECT_EQ(ibcoll_progress_events(context_, nullptr), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ibcoll_progress_events(nullptr, &events), IBCOLL_ERR_INVALID_ARGUMENT);
}

TEST(ApiTexts, StatusesHaveTextsOfTheirOwn) {
  std::set<std::string> texts;
  for (int i = IBCOLL_ERR_REVOKED; i <= IBCOLL_IN_PROGRESS; ++i)
    EXPECT_TRUE(texts.insert(ibcoll_status_string(static_cast<ibcoll_status_t>(i))).second) << i;
  EXPECT_STREQ(ibcoll_status_string(static_cast<ibcoll_status_t>(99)), "unknown status");
  EXPECT_EQ(ibcoll_version_string(),
            fmt::format("{}.{}.{}", IBCOLL_VERSION_MAJOR, IBCOLL_VERSION_MINOR, IBCOLL_VERSION_PATCH));
}

TEST(ApiTexts, CollectivesAndAlgorithmsHaveNames) {
  EXPECT_STREQ(ibcoll_collective_name(IBCOLL_ALLTOALLV), "alltoallv");
  EXPECT_EQ(ibcoll_collective_name(static_cast<ibcoll_collective_t>(ibcoll::kCollectives)), nullptr);
  EXPECT_EQ(ibcoll_collective_name(static_cast<ibcoll_collective_t>(-1)), nullptr);
  for (int c = 0; c < ibcoll::kCollectives; ++c) {
    const auto collective = static_cast<ibcoll_collective_t>(c);
    ASSERT_NE(ibcoll_algorithm_name(collective, 0), nullptr);
    for (int i = 0; const char* const name = ibcoll_algorithm_name(collective, i); ++i)
      EXPECT_NE(ibcoll_algorithm_about(collective, name), nullptr) << name;
  }
  EXPECT_EQ(ibcoll_algorithm_name(IBCOLL_BARRIER, 1000), nullptr);
  EXPECT_EQ(ibcoll_algorithm_name(IBCOLL_BARRIER, -1), nullptr);
  EXPECT_EQ(ibcoll_algorithm_name(static_cast<ibcoll_collective_t>(ibcoll::kCollectives), 0), nullptr);
  EXPECT_EQ(ibcoll_algorithm_about(IBCOLL_BARRIER, "no such"), nullptr);
  EXPECT_EQ(ibcoll_algorithm_about(IBCOLL_BARRIER, nullptr), nullptr);
}

TEST(ApiTexts, WhatCanBeKnownWithoutAJobIsJson) {
  const size_t length = ibcoll_info_json(nullptr, nullptr, 0);
  std::string text(length + 1, '\0');
  EXPECT_EQ(ibcoll_info_json(nullptr, text.data(), text.size()), length);
  text.pop_back();
  EXPECT_TRUE(nlohmann::json::parse(text).contains("settings"));
}

// What does not fit is cut, and ends within the room.
TEST(ApiTexts, StayWithinTheirRoom) {
  char text[8];
  std::memset(text, 'x', sizeof text);
  EXPECT_GT(ibcoll_info_json(nullptr, text, 4), 4u);
  EXPECT_EQ(text[0], '{');
  EXPECT_EQ(std::strlen(text), 3u);
  EXPECT_EQ(text[4], 'x');
  EXPECT_GT(ibcoll_info_json(nullptr, text + 5, 0), 4u);
  EXPECT_EQ(text[5], 'x');
}

TEST_F(Api, OneRankIsAJob) {
  EXPECT_EQ(ibcoll_context_rank(context_), 0);
  EXPECT_EQ(ibcoll_context_size(context_), 1);
  EXPECT_EQ(ibcoll_team_size(world_), 1);
  EXPECT_EQ(ibcoll_context_describe(context_, nullptr, 0), 0u);
  EXPECT_EQ(ibcoll_progress(context_), IBCOLL_OK);
}

TEST_F(Api, EveryCollectiveGivesItsData) {
  for (int c = IBCOLL_BCAST; c < IBCOLL_EXSCAN; ++c) {  // exscan gives one rank nothing
    const auto collective = static_cast<ibcoll_collective_t>(c);
    for (int i = -1; i < 0 || ibcoll_algorithm_name(collective, i); ++i) {
      ibcoll_collective_args_t a = args(collective);
      a.algorithm = i < 0 ? nullptr : ibcoll_algorithm_name(collective, i);
      std::memcpy(recv_, collective == IBCOLL_BCAST ? send_ : recv_, sizeof recv_);
      ibcoll_request_t request = nullptr;
      const ibcoll_status_t status = ibcoll_collective_init(world_, &a, &request);
      if (status == IBCOLL_ERR_NOT_APPLICABLE) continue;
      ASSERT_EQ(status, IBCOLL_OK) << ibcoll_last_error();
      for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(ibcoll_start(request), IBCOLL_OK);
        EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
        EXPECT_EQ(std::memcmp(send_, recv_, sizeof recv_), 0) << ibcoll_collective_name(collective);
      }
      EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
      std::memset(recv_, 0, sizeof recv_);
    }
  }
}

TEST_F(Api, CountArraysAreCopied) {
  ibcoll_request_t request = nullptr;
  ibcoll_collective_args_t a = args(IBCOLL_ALLTOALLV);
  {
    std::vector<uint64_t> counts(1, bytes_), displacements(1, 0);
    a.send_counts = a.recv_counts = counts.data();
    a.send_displacements = a.recv_displacements = displacements.data();
    ASSERT_EQ(ibcoll_collective_init(world_, &a, &request), IBCOLL_OK);
    counts[0] = 1 << 30;
  }
  EXPECT_EQ(ibcoll_start(request), IBCOLL_OK);
  EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
  EXPECT_EQ(recv_[2], 3);
  EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
}

// A blocking call keeps its request for the next one like it: what the count arrays hold may have changed.
TEST_F(Api, BlockingCallsLookAtTheCountsAgain) {
  for (uint64_t bytes : {bytes_, bytes_ / 3, bytes_}) {
    const uint64_t counts[1] = {bytes};
    std::memset(recv_, 0, sizeof recv_);
    ASSERT_EQ(ibcoll_alltoallv(world_, send_, counts, &zero_, recv_, counts, &zero_), IBCOLL_OK) << ibcoll_last_error();
    EXPECT_EQ(recv_[0], 1);
    EXPECT_EQ(recv_[2], bytes == bytes_ ? 3 : 0);
  }
}

TEST_F(Api, WaitingTakesANumberOfSeconds) {
  ibcoll_request_t request = nullptr;
  const ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  ASSERT_EQ(ibcoll_collective_init(world_, &a, &request), IBCOLL_OK);
  EXPECT_EQ(ibcoll_start(request), IBCOLL_OK);
  EXPECT_EQ(ibcoll_wait_timeout(request, std::nan("")), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ibcoll_wait_timeout(request, -1), IBCOLL_OK) << "it is complete";
  EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
}

TEST_F(Api, ATeamHasARankOnce) {
  const int twice[] = {0, 0};
  ibcoll_team_t team = nullptr;
  EXPECT_EQ(ibcoll_team_create(world_, twice, 2, &team), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ibcoll_last_error()).find("rank 0 is listed twice"), std::string::npos) << ibcoll_last_error();
  ASSERT_EQ(ibcoll_team_create(world_, twice, 1, &team), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_team_free(team), IBCOLL_OK);
}

// Also where the program has not set it to NULL before.
TEST_F(Api, WhatIsNotMadeIsNull) {
  const int beyond[] = {1};
  ibcoll_team_t team = world_;
  EXPECT_EQ(ibcoll_team_create(world_, beyond, 1, &team), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(team, nullptr);
  ibcoll_collective_args_t wrong = args(IBCOLL_ALLGATHER);
  wrong.algorithm = "magic";
  auto request = reinterpret_cast<ibcoll_request_t>(this);
  EXPECT_EQ(ibcoll_collective_init(world_, &wrong, &request), IBCOLL_ERR_NOT_APPLICABLE);
  EXPECT_EQ(request, nullptr);
  ibcoll_context_t context = context_;
  const ibcoll_context_params_t params{};  // without its size
  EXPECT_EQ(ibcoll_context_create(&params, &context), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(context, nullptr);
}

TEST_F(Api, TheWorldBelongsToItsContext) { EXPECT_EQ(ibcoll_team_free(world_), IBCOLL_ERR_INVALID_ARGUMENT); }

TEST_F(Api, AForkedChildIsRefused) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(ibcoll_barrier(world_) == IBCOLL_ERR_UNSUPPORTED ? 0 : 1);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

sighandler_t handler_of(int signal) {
  struct sigaction now {};
  ::sigaction(signal, nullptr, &now);
  return now.sa_handler;
}

TEST(ApiSignals, AHandlerOfTheProgramStays) {
  const auto own = [](int) {};
  const sighandler_t before = std::signal(SIGUSR1, own);
  ibcoll_context_t context = nullptr;
  ASSERT_EQ(ibcoll_context_create(nullptr, &context), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(handler_of(SIGUSR1), static_cast<sighandler_t>(own));
  EXPECT_EQ(ibcoll_context_destroy(context), IBCOLL_OK);
  EXPECT_EQ(handler_of(SIGUSR1), static_cast<sighandler_t>(own));
  std::signal(SIGUSR1, before);
}

TEST(ApiSignals, TheReportIsThereAsLongAsTheContext) {
  const sighandler_t before = std::signal(SIGUSR1, SIG_DFL);
  for (int round = 0; round < 2; ++round) {
    ibcoll_context_t context = nullptr;
    ASSERT_EQ(ibcoll_context_create(nullptr, &context), IBCOLL_OK) << ibcoll_last_error();
    EXPECT_NE(handler_of(SIGUSR1), SIG_DFL);
    EXPECT_EQ(ibcoll_context_destroy(context), IBCOLL_OK);
    EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
  }
  std::signal(SIGUSR1, before);
}

// The second block of the memory that the displacement names; the first one stays as it is.
TEST_F(Api, ShorthandsHandDisplacementsOver) {
  const uint64_t bytes = sizeof send_[0], behind = sizeof send_[0];
  const auto expect_second = [&](ibcoll_status_t status, int64_t value, const char* what) {
    EXPECT_EQ(status, IBCOLL_OK) << what << ": " << ibcoll_last_error();
    EXPECT_TRUE(recv_[0] == 0 && recv_[1] == value) << what;
    std::memset(recv_, 0, sizeof recv_);
  };
  expect_second(ibcoll_allgatherv(world_, send_, recv_, &bytes, &behind), 1, "allgatherv");
  expect_second(ibcoll_gatherv(world_, send_, bytes, recv_, &bytes, &behind, 0), 1, "gatherv");
  expect_second(ibcoll_scatterv(world_, send_, &bytes, &behind, recv_ + 1, bytes, 0), 2, "scatterv");
  expect_second(ibcoll_alltoallv(world_, send_, &bytes, &behind, recv_, &bytes, &behind), 2, "alltoallv");
}

// The request that a blocking call keeps is for the next call like it only.
TEST_F(Api, BlockingCallsLookAtTheTypeAgain) {
  ASSERT_EQ(ibcoll_allreduce(world_, send_, recv_, 3, IBCOLL_INT64, IBCOLL_SUM), IBCOLL_OK) << ibcoll_last_error();
  std::memset(recv_, 0, sizeof recv_);
  ASSERT_EQ(ibcoll_allreduce(world_, send_, recv_, 3, IBCOLL_INT32, IBCOLL_SUM), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_TRUE(recv_[0] == 1 && recv_[2] == 0);
}

TEST_F(Api, AnyNumberButZeroIsCommutative) {
  const auto nothing = [](const void*, void*, uint64_t, ibcoll_type_t, void*) {};
  for (const int commutative : {0, 1, 2, -1}) {
    ibcoll_op_t op = nullptr;
    ASSERT_EQ(ibcoll_op_create(nothing, nullptr, commutative, &op), IBCOLL_OK);
    EXPECT_EQ(op->commutative, commutative != 0);
    EXPECT_EQ(ibcoll_op_free(op), IBCOLL_OK);
  }
}

TEST_F(Api, ErrorsBelongToTheThreadThatMadeThem) {
  EXPECT_EQ(ibcoll_barrier(nullptr), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ibcoll_last_error()), "");
  std::thread([] { EXPECT_STREQ(ibcoll_last_error(), ""); }).join();
}

TEST_F(Api, DestroyingWhatIsInUseIsRefused) {
  ibcoll_request_t request = nullptr;
  const ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  ASSERT_EQ(ibcoll_collective_init(world_, &a, &request), IBCOLL_OK);
  EXPECT_EQ(ibcoll_context_destroy(context_), IBCOLL_ERR_BUSY);
  EXPECT_NE(std::string(ibcoll_last_error()).find("1 requests"), std::string::npos);
  EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
  ibcoll_team_t team = nullptr;
  ASSERT_EQ(ibcoll_team_split(world_, 3, 0, &team), IBCOLL_OK);
  EXPECT_EQ(ibcoll_context_destroy(context_), IBCOLL_ERR_BUSY);
  EXPECT_EQ(ibcoll_team_free(team), IBCOLL_OK);
}

TEST_F(Api, AnOperationInUseIsNotFreed) {
  const auto add = [](const void* in, void* inout, uint64_t count, ibcoll_type_t, void*) {
    for (uint64_t i = 0; i < count; ++i) static_cast<int32_t*>(inout)[i] += static_cast<const int32_t*>(in)[i];
  };
  ibcoll_op_t op = nullptr;
  ASSERT_EQ(ibcoll_op_create(add, nullptr, 1, &op), IBCOLL_OK);
  ibcoll_collective_args_t a = args(IBCOLL_ALLREDUCE);
  a.op = op;
  ibcoll_request_t requests[2] = {};
  for (ibcoll_request_t& request : requests) ASSERT_EQ(ibcoll_collective_init(world_, &a, &request), IBCOLL_OK);
  EXPECT_EQ(ibcoll_op_free(op), IBCOLL_ERR_BUSY);
  EXPECT_NE(std::string(ibcoll_last_error()).find("2 requests use"), std::string::npos) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_start(requests[0]), IBCOLL_OK);
  EXPECT_EQ(ibcoll_wait(requests[0]), IBCOLL_OK);
  EXPECT_EQ(ibcoll_request_free(requests[0]), IBCOLL_OK);
  ASSERT_EQ(ibcoll_op_free(op), IBCOLL_ERR_BUSY) << "the last request uses it as well";
  EXPECT_EQ(ibcoll_request_free(requests[1]), IBCOLL_OK);
  // A call that runs once keeps nothing of it.
  EXPECT_EQ(ibcoll_allreduce(world_, a.send, a.recv, a.count, a.type, op), IBCOLL_OK);
  EXPECT_EQ(ibcoll_collective_start(world_, &a, &requests[0]), IBCOLL_OK);
  EXPECT_EQ(ibcoll_op_free(op), IBCOLL_ERR_BUSY);
  EXPECT_EQ(ibcoll_wait(requests[0]), IBCOLL_OK);
  EXPECT_EQ(ibcoll_op_free(op), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_op_free(nullptr), IBCOLL_OK);
}

// The arguments of a program that was compiled against an older header, at the end of a page after which nothing may be
// read; and one that was compiled against a newer one.
TEST_F(Api, StructsOfOtherVersionsAreTaken) {
  constexpr size_t kOlder = offsetof(ibcoll_collective_args_t, algorithm) + sizeof(const char*);
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  auto* const memory =
      static_cast<std::byte*>(::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(::mprotect(memory + page, page, PROT_NONE), 0);
  ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  a.struct_size = kOlder;
  std::memcpy(memory + page - kOlder, &a, kOlder);
  const auto* const older = reinterpret_cast<const ibcoll_collective_args_t*>(memory + page - kOlder);
  ibcoll_request_t request = nullptr;
  EXPECT_EQ(ibcoll_collective_init(world_, older, &request), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_start(request), IBCOLL_OK);
  EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
  EXPECT_EQ(std::memcmp(send_, recv_, sizeof recv_), 0);
  EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
  ::munmap(memory, 2 * page);

  struct Newer {
    ibcoll_collective_args_t known;
    uint64_t unknown = 0;
  } newer{args(IBCOLL_ALLGATHER)};
  newer.known.struct_size = sizeof newer;
  char text[4096];
  EXPECT_EQ(ibcoll_explain(world_, &newer.known, text, sizeof text), IBCOLL_OK) << ibcoll_last_error();
  newer.unknown = 1;
  EXPECT_EQ(ibcoll_explain(world_, &newer.known, text, sizeof text), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(ibcoll_last_error()).find("what is beyond is set"), std::string::npos) << ibcoll_last_error();
}

// Nothing is combined on a team of one rank: a truth value all the same. By every algorithm that there is, and in
// place.
TEST_F(Api, LogicalOperationsOnOneRankGiveZeroOrOne) {
  const int64_t truths[] = {256, 0, -1};
  for (int i = 0; const char* const name = ibcoll_algorithm_name(IBCOLL_ALLREDUCE, i); ++i)
    for (const ibcoll_op_t op : {IBCOLL_LAND, IBCOLL_LOR, IBCOLL_LXOR})
      for (const bool in_place : {false, true}) {
        std::copy(std::begin(truths), std::end(truths), in_place ? recv_ : send_);
        ibcoll_collective_args_t a = args(IBCOLL_ALLREDUCE);
        a.op = op, a.algorithm = name;
        if (in_place) a.send = IBCOLL_IN_PLACE;
        ibcoll_request_t request = nullptr;
        const ibcoll_status_t made = ibcoll_collective_init(world_, &a, &request);
        if (made == IBCOLL_ERR_NOT_APPLICABLE) continue;
        ASSERT_EQ(made, IBCOLL_OK) << ibcoll_last_error();
        EXPECT_EQ(ibcoll_start(request), IBCOLL_OK);
        EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
        EXPECT_TRUE(recv_[0] == 1 && recv_[1] == 0 && recv_[2] == 1) << name << (in_place ? " in place" : "");
        EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
      }
  const double half = 0.5;
  double result = 0;
  EXPECT_EQ(ibcoll_allreduce(world_, &half, &result, 1, IBCOLL_DOUBLE, IBCOLL_LOR), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(result, 1);
}

TEST_F(Api, ExplainsAndDescribesItself) {
  char text[8192];
  const ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  EXPECT_EQ(ibcoll_explain(world_, &a, text, sizeof text), IBCOLL_OK);
  EXPECT_NE(std::string(text).find("one rank"), std::string::npos) << text;
  ibcoll_collective_args_t wrong = a;
  wrong.algorithm = "magic";
  EXPECT_EQ(ibcoll_explain(world_, &wrong, text, sizeof text), IBCOLL_ERR_NOT_APPLICABLE);
  wrong = a;
  wrong.scheme = static_cast<ibcoll_scheme_t>(7);
  EXPECT_EQ(ibcoll_explain(world_, &wrong, text, sizeof text), IBCOLL_ERR_INVALID_ARGUMENT);
  std::string info(ibcoll_info_json(context_, nullptr, 0) + 1, '\0');
  ibcoll_info_json(context_, info.data(), info.size());
  info.pop_back();
  const auto json = nlohmann::json::parse(info);
  EXPECT_TRUE(json.contains("settings"));
  EXPECT_NE(info.find("single"), std::string::npos) << "the bootstrap is named";
}

// In place, an alltoall sends from a copy. What it takes for that is the program's again when the call is over.
TEST_F(Api, ABlockingCallKeepsLittleMemory) {
  constexpr size_t kBytes = 64 << 20;
  std::vector<char> data(kBytes);
  const auto held = [] {
    size_t mapped = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> mapped >> resident;
    return resident * 4096;
  };
  const size_t before = held();
  ASSERT_EQ(ibcoll_alltoall(world_, IBCOLL_IN_PLACE, data.data(), kBytes), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_LT(held(), before + (4 << 20));
}

// Scratch memory that is too short for the pool: the plans have it.
TEST_F(Api, CallsWithScratchOfManyShapesKeepLittleMemory) {
  const auto held = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  std::vector<char> data(50'000);
  const size_t before = held();
  for (uint64_t bytes = 49'000; bytes <= 49'060; ++bytes)
    ASSERT_EQ(ibcoll_alltoall(world_, IBCOLL_IN_PLACE, data.data(), bytes), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_LT(held(), before + (3 << 19));
}

// The last ones of many shapes are kept.
TEST_F(Api, CallsOfManyShapesKeepLittleMemory) {
  const auto held = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  std::vector<char> data(40'000), other(40'000);
  size_t before = 0;
  for (uint64_t bytes = 1; bytes <= 20'000; ++bytes) {
    if (bytes == 65) before = held();
    ASSERT_EQ(ibcoll_allgather(world_, data.data(), other.data(), bytes), IBCOLL_OK) << ibcoll_last_error();
  }
  EXPECT_LT(held(), before + (1 << 19));
}

// All sizes of a gatherv share one plan, which calls of many other shapes then drive out.
TEST_F(Api, ARepeatedCallMayHaveLostItsPlan) {
  std::vector<char> from(300, 'x'), to(300);
  const auto gather_all_sizes = [&] {
    for (uint64_t bytes = 1; bytes <= 200; ++bytes) {
      const uint64_t counts[1] = {bytes};
      std::fill(to.begin(), to.end(), '.');
      ASSERT_EQ(ibcoll_gatherv(world_, from.data(), bytes, to.data(), counts, &zero_, 0), IBCOLL_OK);
      ASSERT_EQ(std::count(to.begin(), to.end(), 'x'), static_cast<std::ptrdiff_t>(bytes));
    }
  };
  gather_all_sizes();
  for (uint64_t bytes = 1; bytes <= 200; ++bytes)
    ASSERT_EQ(ibcoll_allgather(world_, from.data(), to.data(), bytes), IBCOLL_OK) << ibcoll_last_error();
  gather_all_sizes();
}

TEST_F(Api, AWaitThatIsOkFreesACallThatRunsOnce) {
  ibcoll_team_t team = nullptr;
  ASSERT_EQ(ibcoll_team_split(world_, 0, 0, &team), IBCOLL_OK);
  ibcoll_collective_args_t a = args(IBCOLL_ALLGATHER);
  ibcoll_request_t requests[3] = {};
  for (ibcoll_request_t& request : requests)
    ASSERT_EQ(ibcoll_collective_start(team, &a, &request), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_NE(requests[0], requests[1]) << "each has a request of its own";
  EXPECT_STRNE(ibcoll_request_algorithm(requests[0]), "");
  EXPECT_EQ(ibcoll_start(requests[0]), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ibcoll_team_free(team), IBCOLL_ERR_BUSY);
  EXPECT_NE(std::string(ibcoll_last_error()).find("3 requests"), std::string::npos) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_wait(requests[0]), IBCOLL_OK);
  EXPECT_EQ(ibcoll_test(requests[1]), IBCOLL_OK);
  EXPECT_EQ(ibcoll_team_free(team), IBCOLL_ERR_BUSY);
  EXPECT_NE(std::string(ibcoll_last_error()).find("1 requests"), std::string::npos) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_request_free(requests[2]), IBCOLL_OK) << "it is complete";
  EXPECT_EQ(ibcoll_team_free(team), IBCOLL_OK) << ibcoll_last_error();
}

TEST_F(Api, ACallThatRunsOnceChecksItsArguments) {
  ibcoll_request_t request = nullptr;
  ibcoll_collective_args_t a = args(IBCOLL_ALLREDUCE);
  ASSERT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
  a.recv = nullptr;  // of a shape that is known
  request = reinterpret_cast<ibcoll_request_t>(&request);
  EXPECT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(request, nullptr);
  EXPECT_EQ(ibcoll_collective_start(nullptr, &a, &request), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ibcoll_collective_start(world_, nullptr, &request), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ibcoll_collective_start(world_, &a, nullptr), IBCOLL_ERR_INVALID_ARGUMENT);
  a = args(IBCOLL_ALLREDUCE);
  a.algorithm = "no such";
  EXPECT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_ERR_NOT_APPLICABLE);
  a.algorithm = ibcoll_algorithm_name(IBCOLL_ALLREDUCE, 1);
  ASSERT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_EQ(std::string(ibcoll_request_algorithm(request)).find(a.algorithm), 0u) << "the plan of before was taken";
  EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
  a.algorithm = nullptr;
  ASSERT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_OK) << ibcoll_last_error();
  EXPECT_NE(std::string(ibcoll_request_algorithm(request)).find(ibcoll_algorithm_name(IBCOLL_ALLREDUCE, 1)), 0u);
  EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
}

TEST_F(Api, ADemandedAlgorithmIsOfThatCallOnly) {
  const char* const demanded = ibcoll_algorithm_name(IBCOLL_REDUCE, 1);
  for (const char* const algorithm : {demanded, static_cast<const char*>(nullptr)}) {
    ibcoll_request_t request = nullptr;
    ibcoll_collective_args_t a = args(IBCOLL_REDUCE);
    a.algorithm = algorithm;
    ASSERT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_OK) << ibcoll_last_error();
    EXPECT_EQ(std::string(ibcoll_request_algorithm(request)).find(demanded) == 0, algorithm != nullptr);
    EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
  }
}

// More shapes than plans are kept of: those of the first ones are freed meanwhile.
TEST_F(Api, CallsOfManyShapesAreRepeated) {
  std::vector<std::byte> buffer(200);
  for (int round = 0; round < 2; ++round)
    for (uint64_t bytes = 1; bytes <= buffer.size(); ++bytes)
      EXPECT_EQ(ibcoll_bcast(world_, buffer.data(), bytes, 0), IBCOLL_OK) << ibcoll_last_error();
}

TEST_F(Api, ABlockingCallOfAnyCollective) {
  for (int c = 0; c < ibcoll::kCollectives; ++c) {
    ibcoll_collective_args_t a = args(static_cast<ibcoll_collective_t>(c));
    std::memset(recv_, 0, sizeof recv_);
    EXPECT_EQ(ibcoll_collective_run(world_, &a), IBCOLL_OK) << ibcoll_last_error();
    const bool gives = c != IBCOLL_BARRIER && c != IBCOLL_BCAST && c != IBCOLL_EXSCAN;
    EXPECT_EQ(std::memcmp(recv_, send_, bytes_) == 0, gives) << ibcoll_collective_name(a.collective);
  }
  ibcoll_collective_args_t a = args(IBCOLL_ALLREDUCE);
  EXPECT_EQ(ibcoll_collective_run(nullptr, &a), IBCOLL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(ibcoll_collective_run(world_, nullptr), IBCOLL_ERR_INVALID_ARGUMENT);
  a.algorithm = "no such";
  EXPECT_EQ(ibcoll_collective_run(world_, &a), IBCOLL_ERR_NOT_APPLICABLE);
  a.struct_size = 1;
  EXPECT_EQ(ibcoll_collective_run(world_, &a), IBCOLL_ERR_INVALID_ARGUMENT);
}

#ifdef IBCOLL_COUNTS_ALLOCATIONS
// Whatever its buffers, and wherever its counts lie.
TEST_F(Api, ACallOfAKnownShapeAllocatesNothing) {
  for (int c = 0; c < ibcoll::kCollectives; ++c) {
    const auto collective = static_cast<ibcoll_collective_t>(c);
    uint64_t before = 0;
    for (int round = 0; round < 100; ++round) {
      if (round == 1) before = ibcoll::perf::allocations();
      ibcoll_collective_args_t a = args(collective);
      int64_t recv[3] = {};
      const uint64_t counts[1] = {bytes_}, displacements[1] = {};
      a.recv = round % 2 == 0 ? recv : recv_;
      if (a.recv_counts) a.recv_counts = counts, a.recv_displacements = displacements;
      if (a.send_counts) a.send_counts = counts, a.send_displacements = displacements;
      ibcoll_request_t request = nullptr;
      EXPECT_EQ(ibcoll_collective_start(world_, &a, &request), IBCOLL_OK) << ibcoll_last_error();
      EXPECT_EQ(ibcoll_wait(request), IBCOLL_OK);
      const bool gives = collective != IBCOLL_BARRIER && collective != IBCOLL_BCAST && collective != IBCOLL_EXSCAN;
      EXPECT_TRUE(!gives || std::memcmp(a.recv, send_, bytes_) == 0) << ibcoll_collective_name(collective);
    }
    EXPECT_EQ(ibcoll::perf::allocations() - before, 0u) << ibcoll_collective_name(collective);
  }
}

TEST_F(Api, AStartAfterTheFirstAllocatesNothing) {
  for (int c = 0; c < ibcoll::kCollectives; ++c) {
    const auto collective = static_cast<ibcoll_collective_t>(c);
    ibcoll_request_t request = nullptr;
    const ibcoll_collective_args_t a = args(collective);
    ASSERT_EQ(ibcoll_collective_init(world_, &a, &request), IBCOLL_OK);
    uint64_t before = 0;
    for (int round = 0; round < 100; ++round) {
      if (round == 1) before = ibcoll::perf::allocations();
      ibcoll_start(request);
      ibcoll_wait(request);
    }
    EXPECT_EQ(ibcoll::perf::allocations() - before, 0u) << ibcoll_collective_name(collective);
    EXPECT_EQ(ibcoll_request_free(request), IBCOLL_OK);
  }
}
#endif

}  // namespace
