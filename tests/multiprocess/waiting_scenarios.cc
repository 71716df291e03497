// SPDX-License-Identifier: BSD-3-Clause
// Ranks that come late, waits that give up, progress made by the host program, several threads.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/outside.h"
#include "tests/multiprocess/persistent_call.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

// Every collective, one rank after the other late.
void late(Rank& self) {
  int number = 0;
  for (const uint64_t bytes : {uint64_t{64}, uint64_t{30'000}}) {
    for (const CallParams& params : every_collective(bytes, self.size)) {
      CheckedCall call(self.world, params);
      if (number++ % self.size == self.rank) sleep_seconds(0.12);
      if (!call.run(static_cast<uint64_t>(number))) return;
    }
  }
}

// The collectives that no rank can leave before all have come.
constexpr ibcoll_collective_t kSynchronising[] = {IBCOLL_BARRIER, IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLREDUCE};

// Long enough for what comes 0.1 s late, also where the seconds are more than clocks count.
constexpr double kLong[] = {30, 3e10, 1e300, INFINITY};

void wait_timeout(Rank& self) {
  const double* timeout = kLong;
  for (const ibcoll_collective_t collective : kSynchronising) {
    const TeamOwner team = split(self.world, 0, self.rank);
    CheckedCall call(team.get(), {.collective = collective, .bytes = collective == IBCOLL_BARRIER ? 0u : 20'000u});
    const ibcoll_collective_args_t args = call.args();
    ibcoll_request_t request = nullptr;
    expect_ok(ibcoll_collective_init(team.get(), &args, &request), "init");
    call.fill(3);
    if (self.rank != 0) {
      ibcoll_start(request);
      expect_error(ibcoll_wait_timeout(request, 0), IBCOLL_ERR_TIMEOUT, ibcoll_collective_name(collective), "no time");
      expect_error(ibcoll_wait_timeout(request, 0.05), IBCOLL_ERR_TIMEOUT, "waits for", "50 ms");
      expect_status(ibcoll_wait_timeout(request, -1), IBCOLL_ERR_TIMEOUT, "negative time");
    }
    expect_ok(ibcoll_barrier(self.world), "barrier beside a collective in flight");
    if (self.rank == 0) {
      sleep_seconds(0.1);
      ibcoll_start(request);
    }
    const double seconds = *timeout++;
    expect_ok(ibcoll_wait_timeout(request, seconds), fmt::format("wait_timeout of {} s", seconds));
    call.verify(3);
    expect_ok(ibcoll_request_free(request), "free");
  }
}

// What a request in flight waits for can be asked for.
void describe(Rank& self) {
  const TeamOwner team = split(self.world, 0, self.rank);
  CheckedCall call(team.get(), {.collective = IBCOLL_ALLTOALL, .bytes = 20'000});
  const ibcoll_collective_args_t args = call.args();
  ibcoll_request_t request = nullptr;
  expect_ok(ibcoll_collective_init(team.get(), &args, &request), "init");
  expect_ok(ibcoll_barrier(self.world), "barrier");
  expect(ibcoll_context_describe(self.context, nullptr, 0) == 0, "nothing is in flight, but there is a text");
  call.fill(1);
  if (self.rank != 0) {
    ibcoll_start(request);
    for (int i = 0; i < 1000; ++i) expect_ok(ibcoll_progress(self.context), "ibcoll_progress");
    char text[512], little[10];
    const size_t length = ibcoll_context_describe(self.context, text, sizeof text);
    const std::string whole = text;
    expect(length == whole.size(), "the text has {} bytes, not {}", whole.size(), length);
    for (const std::string& part : {fmt::format("rank {}", self.rank), std::string("alltoall"), std::string("waits"),
                                    fmt::format("[call of team 2 ({} ranks, the first is 0) #", self.size)})
      expect(whole.find(part) != std::string::npos, "'{}' is not in '{}'", part, whole);
    expect(ibcoll_context_describe(self.context, little, sizeof little) == length, "the length depends on the space");
    expect(whole.substr(0, 9) == little, "'{}' is not the start of '{}'", little, whole);
  }
  expect_ok(ibcoll_barrier(self.world), "barrier");
  if (self.rank == 0) ibcoll_start(request);
  expect_ok(ibcoll_wait(request), "wait");
  call.verify(1);
  expect_ok(ibcoll_request_free(request), "free");
}

// A host program with a loop of its own: ibcoll_progress alone completes what is in flight.
void progress(Rank& self) {
  for (const CallParams& params : every_collective(20'000, self.size)) {
    CheckedCall call(self.world, params);
    const ibcoll_collective_args_t args = call.args();
    ibcoll_request_t request = nullptr;
    expect_ok(ibcoll_collective_init(self.world, &args, &request), "init");
    call.fill(2);
    ibcoll_start(request);
    const double end = seconds_now() + 60;
    while (ibcoll_context_describe(self.context, nullptr, 0) > 0 && seconds_now() < end) ibcoll_progress(self.context);
    expect_ok(ibcoll_test(request), params.describe());
    call.verify(2);
    expect_ok(ibcoll_request_free(request), "free");
  }
}

// Broadcasts that are complete as soon as they are started, so that rank 1 never waits: what else is in flight moves
// on.
void never_waiting(Rank& self) {
  const Outside outside(self.world);
  const TeamOwner team = split(self.world, 0, self.rank);
  CheckedCall call(team.get(), {.collective = IBCOLL_ALLTOALL, .bytes = 20'000, .algorithm = "pairwise"});
  const ibcoll_collective_args_t args = call.args();
  ibcoll_request_t request = nullptr;
  expect_ok(ibcoll_collective_init(team.get(), &args, &request), "init");
  call.fill(1);
  expect_ok(ibcoll_barrier(self.world), "barrier");
  if (self.rank == 0) {
    outside.await("rank_1_has_started");
    ibcoll_start(request);
  } else {
    ibcoll_start(request);
    outside.tell("rank_1_has_started");
    outside.await("all_broadcasts_are_sent");
  }
  for (int i = 0; i < 50; ++i) {
    int word = i * (self.rank == 0);
    expect_ok(ibcoll_bcast(self.world, &word, sizeof word, 0), "bcast");
    expect(word == i, "broadcast {} brought {}", i, word);
  }
  if (self.rank == 0) outside.tell("all_broadcasts_are_sent");
  if (self.rank == 1) outside.await("rank_0_is_through");  // while rank 1 called nothing but broadcasts
  expect_ok(ibcoll_wait(request), "wait");
  if (self.rank == 0) outside.tell("rank_0_is_through");
  call.verify(1);
  expect_ok(ibcoll_request_free(request), "free");
}

// A barrier is left only after the last rank has entered; also on a new team, whose members come at different times.
void barrier_waits_for_all(Rank& self) {
  const TeamOwner teams[] = {split(self.world, 0, self.rank), split(self.world, 0, -self.rank)};
  for (int round = 0; round < 12; ++round) {
    const ibcoll_team_t team = teams[round % 2].get();
    if (round % self.size == self.rank) sleep_seconds(0.02);
    const double entered = seconds_now();
    expect_ok(ibcoll_barrier(team), "barrier");
    const double left = seconds_now();
    std::vector<double> all(static_cast<size_t>(self.size));
    expect_ok(ibcoll_allgather(team, &entered, all.data(), sizeof entered), "allgather");
    for (const double other : all)
      expect(other <= left, "the barrier was left {:.6f} s before the last rank entered", other - left);
  }
}

// Each thread has a team; all work at once.
void threads(Rank& self) {
  constexpr int kThreads = 4;
  std::vector<TeamOwner> teams;
  for (int i = 0; i < kThreads; ++i) teams.push_back(split(self.world, 0, i % 2 == 0 ? self.rank : -self.rank));
  std::vector<std::thread> running;
  for (int i = 0; i < kThreads; ++i)
    running.emplace_back([team = teams[static_cast<size_t>(i)].get(), i, size = self.size] {
      for (uint64_t round = 0; round < 6 && complaints() == 0; ++round)
        for (CallParams params : every_collective(round % 4 == 3 ? 20'000 : 300, size)) {
          params.salt += 100 * static_cast<uint64_t>(i);
          CheckedCall(team, params).run(round);
        }
    });
  for (std::thread& thread : running) thread.join();
}

// A thread that waits for what comes last must not keep another one out, on which all depends. With a core for each
// rank a wait polls most of the time.
void another_thread_waits(Rank& self) {
  constexpr int kCalls = 100;
  // Seconds of each call. It takes some 3 ms, and 0.4 s where the other thread has to be tired first.
  constexpr double kShare = 0.15;
  const TeamOwner first = split(self.world, 0, self.rank), last = split(self.world, 0, self.rank);
  const double begin = seconds_now();
  std::thread waits;
  if (self.rank == 0) {
    cpu_set_t all;  // on one core the two would alternate in any case
    std::memset(&all, 0xff, sizeof all);
    ::sched_setaffinity(0, sizeof all, &all);
    waits = std::thread([&] { expect_ok(ibcoll_barrier(last.get()), "the last barrier"); });
    sleep_seconds(0.01);
  }
  for (int i = 0; i < kCalls && complaints() == 0; ++i) {
    if (self.rank != 0) sleep_seconds(0.002);  // and leaves its core to the threads of the other
    expect_ok(ibcoll_barrier(first.get()), "barrier");
  }
  if (self.rank != 0) expect_ok(ibcoll_barrier(last.get()), "the last barrier");
  if (waits.joinable()) waits.join();
  const double took = seconds_now() - begin;
  expect(took < kCalls * kShare, "{} barriers beside a thread that waits took {:.2f} s", kCalls, took);
}

// Two threads are inside of the same blocking shorthand, with the same buffers or others: each has a call of its own.
// All calls give and take the same, so that their order does not matter.
void same_shorthand(Rank& self) {
  const auto p = static_cast<size_t>(self.size);
  std::vector<int> first(p), second(p);
  for (int round = 0; round < 20 && complaints() == 0; ++round) {
    const auto gather = [&](std::vector<int>& into) {
      expect_ok(ibcoll_allgather(self.world, &self.rank, into.data(), sizeof(int)), "allgather of two threads");
    };
    if (self.rank == 0) {
      sleep_seconds(0.02);
      gather(first);
      gather(second);
    } else {
      std::thread other([&] { gather(first); });
      sleep_seconds(0.01);
      gather(round % 2 == 0 ? first : second);
      other.join();
    }
    for (int i = 0; i < self.size; ++i) expect(first[static_cast<size_t>(i)] == i, "block {} of round {}", i, round);
    std::fill(first.begin(), first.end(), -1);
  }
}

// The first collectives go over connections that have only just begun. A rank that is through, and computes from then
// on, keeps no rank in them: here it computes until all are through.
void computes_afterwards(Rank&) {
  ibcoll_context_t first = nullptr, context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &first), "ibcoll_context_create")) return;
  set_rank_of_lines(ibcoll_context_rank(first));
  {
    const Outside outside(ibcoll_team_world(first));
    if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
    const ibcoll_team_t world = ibcoll_team_world(context);
    expect_ok(ibcoll_barrier(world), "the first barrier");
    outside.meet("barrier");
    for (const int root : {0, ibcoll_context_size(context) - 1}) {
      int value = ibcoll_context_rank(context);
      expect_ok(ibcoll_bcast(world, &value, sizeof value, root), "bcast");
      expect(value == root, "root {} sent {}", root, value);
      outside.meet(fmt::format("bcast_of_{}", root));
    }
    expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  }
  expect_ok(ibcoll_context_destroy(first), "ibcoll_context_destroy");
}

// Binds this rank, before it has a context, to a core that it shares with all others.
void share_one_core() {
  cpu_set_t cores, one;
  CPU_ZERO(&one);
  expect(::sched_getaffinity(0, sizeof cores, &cores) == 0, "sched_getaffinity");
  for (int core = 0; CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &cores)) CPU_SET(core, &one);
  expect(::sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
}

// Calls with a late rank, and the fewest that wake one. Others may just be awake, and all of them on a busy machine.
constexpr int kLateCalls = 20, kFewestWoken = 5;

// Two threads of rank 1 wait for rank 0, which comes late. Neither sleeps: the other one might complete what it waits
// for, and wakes no rank.
void threads_stay_awake(ibcoll_context_t context) {
  const ibcoll_team_t world = ibcoll_team_world(context);
  const int rank = ibcoll_context_rank(context);
  const Outside outside(world);
  const TeamOwner teams[] = {split(world, 0, rank), split(world, 0, rank)};
  if (rank == 0) outside.await("rank_1_has_looked");
  std::thread waiting[2];
  for (int i = 0; i < 2; ++i)
    waiting[i] = std::thread([team = teams[i].get()] { expect_ok(ibcoll_barrier(team), "barrier of a thread"); });
  if (rank == 1) {
    const auto calls_in_flight = [&] {
      char text[2048] = "";
      ibcoll_context_describe(context, text, sizeof text);
      return std::count(text, text + std::strlen(text), '\n');
    };
    expect(await([&] { return calls_in_flight() == 2; }), "two threads do not wait");
    const uint64_t before = counter(context, "sleeps_until_woken");
    sleep_seconds(0.02);  // a sleep takes 4 ms at most
    expect(counter(context, "sleeps_until_woken") == before, "one of two threads that wait has slept");
    outside.tell("rank_1_has_looked");
  }
  for (std::thread& one : waiting) one.join();
  expect_ok(ibcoll_barrier(world), "barrier");
}

// All ranks share one core, and wait for rank 0 so long that they sleep: it wakes them.
void sleepers_are_woken(Rank& self) {
  share_one_core();
  ::setenv("IBCOLL_BARRIER", "shm", 1);  // nobody sleeps in a barrier of messages
  if (!expect_ok(ibcoll_context_create(nullptr, &self.context), "context_create")) return;
  const ibcoll_team_t world = ibcoll_team_world(self.context);
  const int rank = ibcoll_context_rank(self.context);
  const char* const name = rank == 0 ? "times_others_woken" : "times_woken";
  const double end = seconds_now() + 30;
  int64_t fewest = 0;
  int over = 0;
  while (fewest < kFewestWoken && over == 0) {
    const uint64_t before = counter(self.context, name);
    for (int round = 0; round < kLateCalls; ++round) {
      if (rank == 0) sleep_seconds(0.01);
      expect_ok(ibcoll_barrier(world), "barrier");
    }
    const auto times = static_cast<int64_t>(counter(self.context, name) - before);
    expect_ok(ibcoll_allreduce(world, &times, &fewest, 1, IBCOLL_INT64, IBCOLL_MIN), "allreduce");
    over = seconds_now() > end;
    expect_ok(ibcoll_bcast(world, &over, sizeof over, 0), "bcast");
  }
  expect(fewest >= kFewestWoken, "of {} barriers for which rank 0 was late a rank was woken, or woke others, in {}",
         kLateCalls, fewest);
  expect(counter(self.context, "sleeps_until_woken") >= counter(self.context, "times_woken"), "woken without sleep");
  threads_stay_awake(self.context);
  expect_ok(ibcoll_context_destroy(self.context), "context_destroy");
}

// Three nodes of two ranks on one core. Leaders wait for one that is late, and wake their ranks when rows are there:
// short ones when all are, long ones each.
void a_leader_wakes_its_node(Rank& self) {
  share_one_core();
  if (!expect_ok(ibcoll_context_create(nullptr, &self.context), "context_create")) return;
  const ibcoll_team_t world = ibcoll_team_world(self.context);
  const int rank = ibcoll_context_rank(self.context);
  for (const uint64_t bytes : {uint64_t{8}, uint64_t{50'000}}) {
    PersistentCall call(world, {.collective = IBCOLL_ALLGATHER, .bytes = bytes, .algorithm = "pap_shm_direct"});
    const double end = seconds_now() + 30;
    int32_t fewest = 0, over = 0;
    while (fewest < kFewestWoken && over == 0) {
      const uint64_t before = counter(self.context, "times_woken");
      for (int round = 0; round < kLateCalls; ++round) {
        if (rank == 2 * (round % 3)) sleep_seconds(0.01);
        const auto number = static_cast<uint64_t>(round);
        if (!call.start(number) || !call.wait(number)) return;
      }
      const int32_t times =
          rank % 2 == 0 ? kLateCalls : static_cast<int32_t>(counter(self.context, "times_woken") - before);
      expect_ok(ibcoll_allreduce(world, &times, &fewest, 1, IBCOLL_INT32, IBCOLL_MIN), "allreduce");
      over = seconds_now() > end;
      expect_ok(ibcoll_bcast(world, &over, sizeof over, 0), "bcast");
    }
    expect(fewest >= kFewestWoken, "of {} calls of {} bytes with a late leader a rank was woken in {}", kLateCalls,
           bytes, fewest);
  }
  expect_ok(ibcoll_context_destroy(self.context), "context_destroy");
}

constexpr Scenario kWaitingScenarios[] = {
    {"late", late},
    {"wait_timeout", wait_timeout},
    {"describe", describe},
    {"progress", progress},
    {"never_waiting", never_waiting},
    {"barrier_waits_for_all", barrier_waits_for_all},
    {"threads", threads},
    {"another_thread_waits", another_thread_waits},
    {"same_shorthand", same_shorthand},
    {"computes_afterwards", computes_afterwards, false},
    {"sleepers_are_woken", sleepers_are_woken, false},
    {"a_leader_wakes_its_node", a_leader_wakes_its_node, false},
};

}  // namespace

std::span<const Scenario> waiting_scenarios() { return kWaitingScenarios; }

}  // namespace ibcoll::multiprocess
