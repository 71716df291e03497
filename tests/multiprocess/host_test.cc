// SPDX-License-Identifier: BSD-3-Clause
// Ranks inside of a host that has messages of its own: it advances while ibcoll waits, advances ibcoll while it waits,
// decides how long collectives may take, and keeps what belongs to the process.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/fork_job.h"
#include "tests/multiprocess/scenario.h"
#include "tests/multiprocess/shared_state.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kHostRanks = 3;

// How far rank 0 has come, for the rank that is later.
struct FirstRank {
  std::atomic<int> exchanges{0};  // that it has entered
  std::atomic<bool> had_a_turn{false};
};

// A host with the exchange of the job, and messages that leave only while it is advanced.
class HostOfRank {
 public:
  HostOfRank(ForkedRank& self, double timeout_seconds = 0) : bootstrap_(self.bootstrap) {
    given_ = {sizeof given_,          self.rank,      self.size, &HostOfRank::allgather, this,
              &HostOfRank::take_turn, timeout_seconds};
  }
  HostOfRank(const HostOfRank&) = delete;
  HostOfRank& operator=(const HostOfRank&) = delete;

  bool create() {
    const ibcoll_context_params_t params{sizeof params, &given_};
    return expect_ok(ibcoll_context_create(&params, &context), "ibcoll_context_create");
  }
  // Its next turn sets the flag.
  void send(std::atomic<bool>& message) { message_ = &message; }
  // Waits for the flag of another rank, as a receive does.
  void receive(const std::atomic<bool>& message) {
    expect(await([&] { return message.load(); }, [this] { advance(this); }), "a message never came");
  }
  int turns() const { return turns_; }  // that ibcoll gave it
  // Until it is done with that, rank 0 says how far it has come. Nothing: it is done.
  void be_first(FirstRank* first) {
    if (first_) first_->exchanges = std::numeric_limits<int>::max();
    first_ = first;
  }
  // Each exchange returns when rank 0 has had a turn after it, or needed none.
  void be_late(FirstRank* first) { later_than_ = first; }

  ibcoll_context_t context = nullptr;

 private:
  static int allgather(void* self, const void* send, void* recv, size_t bytes) {
    auto& host = *static_cast<HostOfRank*>(self);
    advance(self);
    ++host.exchanges_;
    if (host.first_) host.first_->exchanges = host.exchanges_;
    const int reason = host.bootstrap_.allgather(host.bootstrap_.user, send, recv, bytes);
    advance(self);
    if (const FirstRank* const first = host.later_than_)
      expect(await([&] { return first->had_a_turn || first->exchanges > host.exchanges_; }, [] { ::usleep(100); }),
             "rank 0 stays in exchange {}", host.exchanges_);
    return reason;
  }
  static int take_turn(void* self) {
    auto& host = *static_cast<HostOfRank*>(self);
    ++host.turns_;
    if (host.first_) host.first_->had_a_turn = true;
    return advance(self);
  }
  static int advance(void* self) {
    auto& host = *static_cast<HostOfRank*>(self);
    if (host.context) expect_ok(ibcoll_progress(host.context), "ibcoll_progress in the host's progress");
    if (!host.message_) return 0;
    std::exchange(host.message_, nullptr)->store(true);
    return 1;
  }

  ibcoll_bootstrap_t bootstrap_;
  ibcoll_bootstrap_t given_{};
  std::atomic<bool>* message_ = nullptr;
  int turns_ = 0;
  int exchanges_ = 0;
  FirstRank* first_ = nullptr;
  const FirstRank* later_than_ = nullptr;
};

void settings_of_ranks() {
  ::setenv("UCX_TLS", "tcp", 1);
  ::setenv("UCX_NET_DEVICES", "lo", 1);
  ::setenv("IBCOLL_LOG", "error", 1);
  ::unsetenv("IBCOLL_TIMEOUT");
}

// On one node and on a node for each rank.
class HostJob : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() > 1 && !ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
    settings_of_ranks();
  }
  static void run(const std::function<void(ForkedRank&)>& body) {
    const auto counted = [&](ForkedRank& self) {
      body(self);
      return complaints() > 0 ? 1 : 0;
    };
    for (const Ending& ending : ForkJob(kHostRanks, GetParam()).run(counted, 100)) {
      EXPECT_TRUE(ending.exited) << (ending.overdue ? "hangs" : "signal") << ending.code;
      EXPECT_EQ(ending.code, 0);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Nodes, HostJob, testing::Values(1, kHostRanks));

struct Messages {
  std::atomic<bool> before_barrier{false}, before_team{false}, before_leaving{false};
  FirstRank first;
};

// Rank 0 sends a message and enters a call; the last rank receives it, and enters then. So the message has to leave
// while rank 0 waits.
TEST_P(HostJob, MessagesOfTheHostLeaveInEveryWait) {
  const SharedState<Messages> messages;
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    const int last = self.size - 1;
    const auto message = [&](std::atomic<bool>& flag) {
      if (self.rank == 0) host.send(flag);
      if (self.rank == last) host.receive(flag);
    };
    if (self.rank == 0) host.be_first(&messages->first);
    if (self.rank == last) host.be_late(&messages->first);
    if (!host.create()) return;
    if (self.rank == 0) host.be_first(nullptr);
    host.be_late(nullptr);
    if (self.rank == 0) expect(host.turns() > 0, "no turn while the context is made");
    const ibcoll_team_t world = ibcoll_team_world(host.context);
    message(messages->before_barrier);
    expect_ok(ibcoll_barrier(world), "barrier");
    message(messages->before_team);
    { const TeamOwner team = split(world, 0, -self.rank); }
    CheckedCall(world, {.collective = IBCOLL_ALLTOALL, .bytes = 20'000}).run(1);
    message(messages->before_leaving);
    expect_ok(ibcoll_context_destroy(host.context), "ibcoll_context_destroy");
  });
}

// ... whereas a wait that is over at once, or has no time, costs the host nothing.
TEST_P(HostJob, AWaitWithoutTimeGivesNoTurn) {
  const SharedState<Messages> messages;
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    if (!host.create()) return;
    ibcoll_request_t request = nullptr;
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args, args.collective = IBCOLL_BARRIER;
    expect_ok(ibcoll_collective_init(ibcoll_team_world(host.context), &args, &request), "ibcoll_collective_init");
    if (self.rank == 0) {
      const int turns = host.turns();
      expect_ok(ibcoll_start(request), "ibcoll_start");
      for (int i = 0; i < 100; ++i)
        expect_status(ibcoll_wait_timeout(request, 0), IBCOLL_ERR_TIMEOUT, "ibcoll_wait_timeout");
      expect(host.turns() == turns, "the host had {} turns", host.turns() - turns);
      messages->before_barrier = true;
    } else {
      host.receive(messages->before_barrier);
      expect_ok(ibcoll_start(request), "ibcoll_start");
    }
    expect_ok(ibcoll_wait(request), "ibcoll_wait");
    expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
    expect_ok(ibcoll_context_destroy(host.context), "ibcoll_context_destroy");
  });
}

TEST_P(HostJob, ACollectiveEndsAtTheHostsDeadline) {
  const SharedState<Messages> messages;
  run([&](ForkedRank& self) {
    HostOfRank host(self, 0.5);
    if (!host.create()) return;
    if (self.rank == self.size - 1)
      host.receive(messages->before_barrier);
    else
      expect_error(ibcoll_barrier(ibcoll_team_world(host.context)), IBCOLL_ERR_TIMEOUT, "timeout_seconds of the host",
                   "barrier");
    messages->before_barrier = true;
    (void)ibcoll_context_destroy(host.context);  // its ranks part at once
  });
}

// The loop of a host sees that something has come, and what it drives by itself is complete in the end.
// The last rank sends nothing, is complete, and then calls nothing: it says so all the same when the root, which expects
// 8 bytes, asks.
TEST_P(HostJob, AQuestionIsAnsweredOutsideOfCalls) {
  const SharedState<std::atomic<bool>> root_has_ended;
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    if (!host.create()) return;
    uint64_t counts[kHostRanks] = {8, 8, 8}, displacements[kHostRanks] = {0, 8, 16}, send = 0, recv[kHostRanks] = {};
    const ibcoll_team_t world = ibcoll_team_world(host.context);
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args, args.collective = IBCOLL_GATHERV, args.send = &send, args.recv = recv;
    args.bytes = self.rank == self.size - 1 ? 0 : 8;
    args.recv_counts = counts;
    args.recv_displacements = displacements;
    args.algorithm = "linear";
    const ibcoll_status_t status = ibcoll_collective_run(world, &args);
    if (self.rank == 0) {
      expect_error(status, IBCOLL_ERR_MISMATCH, "rank 2", "a gatherv whose last rank sends nothing");
      *root_has_ended = true;
    }
    expect(await([&] { return root_has_ended->load(); }, [] { ::usleep(100); }), "the root waits");
    ibcoll_context_destroy(host.context);
  });
}

// A host refuses the last rank's second call. The others' calls end, and each rank knows of its next one that it is not
// to blame.
TEST_P(HostJob, ACallThatOneRankRefusesEndsOnTheOthers) {
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    if (!host.create()) return;
    const ibcoll_team_t world = ibcoll_team_world(host.context);
    expect_ok(ibcoll_barrier(world), "the first barrier");
    expect_error(ibcoll_team_abort(world, nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "why is NULL", "abort");
    if (self.rank == self.size - 1)
      expect_ok(ibcoll_team_abort(world, "no second barrier"), "ibcoll_team_abort");
    else
      expect_error(ibcoll_barrier(world), IBCOLL_ERR_MISMATCH, "no second barrier", "the second barrier");
    expect(ibcoll_team_last_ended(world) == 0, "the second barrier is not the one that failed");
    ibcoll_context_destroy(host.context);
  });
}

// The root returns from a gatherv that does not match; the others have completed it.
TEST_P(HostJob, ALaterCallIsToldFromTheOneThatDidNotMatch) {
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    if (!host.create()) return;
    const ibcoll_team_t world = ibcoll_team_world(host.context);
    uint64_t counts[kHostRanks] = {8, 8, 16}, displacements[kHostRanks] = {0, 8, 16}, send = 0, recv[4] = {};
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args, args.collective = IBCOLL_GATHERV, args.send = &send, args.recv = recv;
    args.bytes = 8, args.recv_counts = counts, args.recv_displacements = displacements;
    args.algorithm = "linear";
    const ibcoll_status_t first = ibcoll_collective_run(world, &args);
    if (self.rank == 0) {
      expect_error(first, IBCOLL_ERR_MISMATCH, "rank 2", "a gatherv whose last rank sends less");
      expect(ibcoll_team_last_ended(world) == 0, "the gatherv is not the one that failed");
    }
    expect_error(ibcoll_barrier(world), IBCOLL_ERR_MISMATCH, "rank 2", "a barrier");
    expect(first != IBCOLL_OK || ibcoll_team_last_ended(world) > 0, "the barrier is taken for the one that failed");
    ibcoll_context_destroy(host.context);
  });
}

TEST_P(HostJob, EventsAreCounted) {
  const SharedState<Messages> messages;
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    if (!host.create()) return;
    const ibcoll_team_t world = ibcoll_team_world(host.context);
    std::vector<uint64_t> mine(8, 1), all(8 * static_cast<size_t>(self.size));
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args, args.collective = IBCOLL_ALLGATHER, args.send = mine.data(), args.recv = all.data();
    args.bytes = mine.size() * sizeof(uint64_t);
    ibcoll_request_t request = nullptr;
    expect_ok(ibcoll_collective_init(world, &args, &request), "ibcoll_collective_init");
    uint64_t events = 0, none = 0;
    while (ibcoll_progress_events(host.context, &none) == IBCOLL_OK && none > 0) {
    }
    if (self.rank != 0) host.receive(messages->before_barrier);
    expect_ok(ibcoll_start(request), "ibcoll_start");
    if (self.rank == 0) messages->before_barrier = true;
    const auto handled = [&] {
      uint64_t now = 0;
      expect_ok(ibcoll_progress_events(host.context, &now), "ibcoll_progress_events");
      events += now;
      return all.back() == 1 && all[8 * static_cast<size_t>(self.size) / 2] == 1 && all[0] == 1;
    };
    expect(await(handled), "nothing came");
    if (self.rank == 0) expect(events > 0, "data came without an event");
    expect_ok(ibcoll_wait(request), "ibcoll_wait");
    expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
    expect_ok(ibcoll_context_destroy(host.context), "ibcoll_context_destroy");
  });
}

// The others' data is there, and no look at the request takes it in: one round of progress serves all requests.
TEST_P(HostJob, ALookAtARequestAdvancesNothing) {
  const SharedState<Messages> messages;
  run([&](ForkedRank& self) {
    HostOfRank host(self);
    if (!host.create()) return;
    std::vector<uint64_t> mine(8, 1), all(8 * static_cast<size_t>(self.size));
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args, args.collective = IBCOLL_ALLGATHER, args.send = mine.data(), args.recv = all.data();
    args.bytes = mine.size() * sizeof(uint64_t);
    ibcoll_request_t request = nullptr;
    if (self.rank != 0) host.receive(messages->before_barrier);
    expect_ok(ibcoll_collective_start(ibcoll_team_world(host.context), &args, &request), "ibcoll_collective_start");
    if (self.rank == 0) {
      messages->before_barrier = true;
    } else {
      ibcoll_wait_timeout(request, 0);
    }
    expect_ok(self.bootstrap.allgather(self.bootstrap.user, mine.data(), all.data(), 8) == 0 ? IBCOLL_OK
                                                                                             : IBCOLL_ERR_BOOTSTRAP,
              "an exchange of the host");
    if (self.rank == 0) {
      for (int look = 0; look < 10'000; ++look)
        if (!expect_status(ibcoll_request_status(request), IBCOLL_IN_PROGRESS, "ibcoll_request_status")) break;
    }
    const auto complete = [&] {
      expect_ok(ibcoll_progress(host.context), "ibcoll_progress");
      return ibcoll_request_status(request) == IBCOLL_OK;  // which frees it
    };
    expect(await(complete), "the collective never ends");
    expect(all.front() == 1 && all.back() == 1, "wrong data");
    expect_ok(ibcoll_context_destroy(host.context), "ibcoll_context_destroy");
  });
}

// ---------------------------------------------------------------- what belongs to the process

// The functions of others that a loaded library calls, as far as they are bound.
std::vector<const void*> calls_of(std::string_view library) {
  struct Search {
    std::string_view library;
    std::vector<const void*> functions;
  } search{library, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto& wanted = *static_cast<Search*>(argument);
        if (std::string_view(info->dlpi_name).find(wanted.library) == std::string_view::npos) return 0;
        const ElfW(Rela)* slots = nullptr;
        size_t bytes = 0;
        for (const ElfW(Phdr) & part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
          if (part.p_type != PT_DYNAMIC) continue;
          for (const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + part.p_vaddr);
               entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_JMPREL) slots = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
            if (entry->d_tag == DT_PLTRELSZ) bytes = entry->d_un.d_val;
          }
        }
        for (const ElfW(Rela) & slot : std::span(slots, bytes / sizeof *slots))
          wanted.functions.push_back(*reinterpret_cast<const void**>(info->dlpi_addr + slot.r_offset));
        return 1;
      },
      &search);
  return search.functions;
}

size_t calls_into(std::string_view library, std::string_view target) {
  size_t count = 0;
  for (const void* const function : calls_of(library)) {
    Dl_info owner{};
    if (::dladdr(function, &owner) != 0 && owner.dli_fname)
      count += std::string_view(owner.dli_fname).find(target) != std::string_view::npos;
  }
  return count;
}

std::string ucx_log_level() {
  void* const ucs = ::dlopen("libucs.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (!ucs) return "UCX is not loaded";
  using Get = int (*)(const char* name, char* value, size_t bytes);
  const auto get = reinterpret_cast<Get>(::dlsym(ucs, "ucs_global_opts_get_value"));
  char value[64] = "";
  if (get) (void)get("LOG_LEVEL", value, sizeof value);
  ::dlclose(ucs);
  return value;
}

// What ibcoll changes in a process that is its own, it leaves alone in a host.
TEST(HostMode, UcxAndSignalsStayAsTheyAre) {
  if (!ForkJob::can_emulate_nodes()) GTEST_SKIP() << "no host names of our own here";
  settings_of_ranks();
  ::unsetenv("UCX_LOG_LEVEL");
  for (const bool in_host : {true, false}) {
    const auto body = [=](ForkedRank& self) {
      HostOfRank host(self);
      if (in_host) {
        if (!host.create()) return 1;
      } else {
        const ibcoll_context_params_t params{sizeof params, &self.bootstrap};
        if (!expect_ok(ibcoll_context_create(&params, &host.context), "ibcoll_context_create")) return 1;
      }
      CheckedCall(ibcoll_team_world(host.context), {.collective = IBCOLL_ALLTOALL, .bytes = 100}).run(0);
      struct sigaction now {};
      ::sigaction(SIGUSR1, nullptr, &now);
      expect((now.sa_handler == SIG_DFL) == in_host, "SIGUSR1, {} host", in_host ? "with a" : "no");
      const std::string level = ucx_log_level();
      expect((level == "WARN") == in_host, "UCX's log level is {}, {} host", level, in_host ? "with a" : "no");
      const size_t replaced = calls_into("libucs.so", "libibcoll_ucx");
      expect((replaced == 0) == in_host, "{} calls of libucs are replaced, {} host", replaced,
             in_host ? "with a" : "no");
      expect_ok(ibcoll_context_destroy(host.context), "ibcoll_context_destroy");
      return complaints() > 0 ? 1 : 0;
    };
    for (const Ending& ending : ForkJob(2, 2).run(body, 60)) {
      EXPECT_TRUE(ending.exited) << "signal " << ending.code;
      EXPECT_EQ(ending.code, 0) << in_host;
    }
  }
}

}  // namespace
}  // namespace ibcoll::multiprocess
