// SPDX-License-Identifier: BSD-3-Clause
// Contexts: made and destroyed again, settings that are wrong or differ, and jobs for the test of the launcher's part.
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

int launched_rank() {
  const char* const rank = std::getenv("IBCOLL_RUN_RANK");
  return rank ? std::atoi(rank) : 0;
}

// A context that must come up; it works, and goes.
void use_once(uint64_t round) {
  ibcoll_context_t context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
  const ibcoll_team_t world = ibcoll_team_world(context);
  for (const CallParams& params : every_collective(5000, ibcoll_team_size(world)))
    CheckedCall(world, params).run(round);
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
}

void contexts_again(Rank&) {
  set_rank_of_lines(launched_rank());
  for (uint64_t round = 0; round < 3; ++round) use_once(round);
}

// All calls in a thread that has as little stack as the guide asks for.
void small_stack(Rank&) {
  set_rank_of_lines(launched_rank());
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr size_t kStack = size_t{1} << 20;
#else
  constexpr size_t kStack = size_t{64} << 10;
#endif
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread{};
  const auto body = [](void*) -> void* {
    use_once(1);
    return nullptr;
  };
  const int failure = ::pthread_create(&thread, &attributes, body, nullptr);
  if (expect(failure == 0, "pthread_create: {}", std::strerror(failure))) ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

// A program whose terminal was closed, with a signal stack of its own, that moves memory to an address of its choice.
void the_program_stays_as_it_was(Rank&) {
  set_rank_of_lines(launched_rank());
  std::vector<std::byte> stack(size_t{64} << 10);
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  stack_t before{};
  expect(::sigaltstack(&own, &before) == 0, "sigaltstack: {}", std::strerror(errno));
  ::signal(SIGHUP, SIG_IGN);
  constexpr std::array kSignals{SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGHUP};
  std::array<struct sigaction, kSignals.size()> actions{};
  for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], nullptr, &actions[i]);

  ibcoll_context_t context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
  const ibcoll_team_t world = ibcoll_team_world(context);
  for (const CallParams& params : every_collective(100'000, ibcoll_team_size(world))) CheckedCall(world, params).run(1);
  expect(ibcoll_info_json(context, nullptr, 0) > 0, "no state");  // it loads the libraries of all networks

  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    ::sigaction(kSignals[i], nullptr, &now);
    expect(now.sa_handler == actions[i].sa_handler, "signal {} is handled by another function", kSignals[i]);
  }
  stack_t now{};
  expect(::sigaltstack(nullptr, &now) == 0 && now.ss_sp == own.ss_sp, "the signal stack is another one");
  constexpr size_t kBytes = size_t{1} << 20;
  const auto map = [&] { return ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); };
  void* const from = map();
  void* const to = map();
  *static_cast<char*>(from) = 7;
  void* const moved = ::mremap(from, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  expect(moved == to && *static_cast<char*>(to) == 7, "mremap() moved memory to {}, not to {}", moved, to);
  ::munmap(to, kBytes);
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  ::sigaltstack(&before, nullptr);
}

// Sets a variable while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

void expect_refused(std::initializer_list<std::string_view> parts) {
  ibcoll_context_t context = nullptr;
  expect_status(ibcoll_context_create(nullptr, &context), IBCOLL_ERR_CONFIG, "ibcoll_context_create");
  expect(context == nullptr, "a refused call gave a context");
  for (const std::string_view part : parts)
    expect(std::string_view(ibcoll_last_error()).find(part) != std::string_view::npos,
           "the error does not say '{}': {}", part, ibcoll_last_error());
}

// The error names variable and value and says what is allowed; once that is corrected, the same process joins.
void malformed_settings(Rank&) {
  set_rank_of_lines(launched_rank());
  struct Malformed {
    const char* name;
    const char* value;
    const char* allowed;
  };
  for (const Malformed& m :
       {Malformed{"IBCOLL_TIMEOUT", "banana", "seconds"}, Malformed{"IBCOLL_TIMEOUT", "-1", "0.1"},
        Malformed{"IBCOLL_WAIT", "sometimes", "spin"}, Malformed{"IBCOLL_EAGER_BYTES", "8X", "suffix"},
        Malformed{"IBCOLL_SHM_RING_BYTES", "1", "16K"}, Malformed{"IBCOLL_SCHEME", "zero", "zero_copy"},
        Malformed{"IBCOLL_ALLTOALL", "magic", "pap_direct"}, Malformed{"IBCOLL_LOG", "loud", "debug"}}) {
    const Variable variable(m.name, m.value);
    expect_refused({m.name, m.value, m.allowed});
  }
  {
    const Variable variable("IBCOLL_EAGER_BYTES", "1M");
    expect_refused({"IBCOLL_EAGER_BYTES", "1048576", "landing slot of shm holds; set it to 16384 or less"});
  }
  use_once(1);
}

// One rank has another value: the error on all ranks names the variable and the rank.
void settings_differ(Rank&) {
  set_rank_of_lines(launched_rank());
  for (const char* const name : {"IBCOLL_EAGER_BYTES", "IBCOLL_SHM_SLOT_BYTES"}) {
    const Variable variable(name, launched_rank() == 1 ? "5000" : "6000");
    expect_refused({name, "rank 1"});
  }
  const bool other = launched_rank() == 1;  // writes the same in another way
  const Variable bytes("IBCOLL_EAGER_BYTES", other ? "4096" : "4K"), yes("IBCOLL_ALLOW_PUBLIC", other ? "off" : "no");
  use_once(2);
}

// Settings that only some ranks could notice, as others are alone on their node, are refused on all.
void rings_too_small(Rank&) {
  set_rank_of_lines(launched_rank());
  {
    const Variable rings("IBCOLL_SHM_RING_BYTES", "16K");
    expect_refused({"IBCOLL_EAGER_BYTES=8192", "landing slot of shm holds; set it to 4096 or less"});
  }
  {
    const Variable rings("IBCOLL_SHM_RING_BYTES", "32K");  // as much as a slot holds
    use_once(2);
  }
  use_once(3);
}

// Rank 1's variable is malformed: it says so and goes, with it the job.
void one_malformed(Rank&) {
  set_rank_of_lines(launched_rank());
  const Variable variable("IBCOLL_WAIT", launched_rank() == 1 ? "sometimes" : "auto");
  ibcoll_context_t context = nullptr;
  const ibcoll_status_t status = ibcoll_context_create(nullptr, &context);
  fmt::print(stderr, "rank {}: {}\n", launched_rank(), ibcoll_last_error());
  std::exit(launched_rank() == 1 && status == IBCOLL_ERR_CONFIG ? 9 : 1);
}

// What was found by relative paths when the program began is found after it has changed its directory.
void from_another_folder(Rank&) {
  expect(::chdir("/") == 0, "chdir");
  ibcoll_context_t context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
  expect_ok(ibcoll_barrier(ibcoll_team_world(context)), "barrier");
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
}

void bad_parameters(Rank&) {
  ibcoll_context_t context = nullptr;
  ibcoll_bootstrap_t bootstrap{sizeof bootstrap, 0,       1, [](void*, const void*, void*, size_t) { return 0; },
                               nullptr,          nullptr, 0};
  ibcoll_context_params_t params{sizeof params, &bootstrap};
  const auto refused = [&](const char* why) {
    expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_INVALID_ARGUMENT, why, "ibcoll_context_create");
  };
  expect_error(ibcoll_context_create(nullptr, nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "ibcoll_context_create");
  params.struct_size = 1;
  refused("struct_size is 1");
  params.struct_size = sizeof params;
  bootstrap.struct_size = 0;
  refused("struct_size is 0");
  bootstrap.struct_size = sizeof bootstrap;
  for (const auto& [rank, size] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, -5}}) {
    bootstrap.rank = rank;
    bootstrap.size = size;
    refused("ibcoll_bootstrap_t: rank");
  }
  bootstrap = {sizeof bootstrap, 0, 2, nullptr, nullptr, nullptr, 0};
  refused("allgather is NULL");
  bootstrap.allgather = [](void*, const void*, void*, size_t) { return 77; };
  expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_BOOTSTRAP, "returned 77", "a bootstrap that fails");
  bootstrap.allgather = [](void*, const void*, void*, size_t) -> int { throw std::runtime_error("no such job"); };
  expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_BOOTSTRAP, "no such job",
               "a bootstrap that throws");
  bootstrap.allgather = [](void*, const void*, void*, size_t) -> int { throw 7; };
  expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_BOOTSTRAP, "threw", "a bootstrap that throws");
  bootstrap.allgather = [](void*, const void*, void*, size_t) { return 0; };
  expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_BOOTSTRAP, "own bytes",
               "a bootstrap that does nothing");
  // Rank 1 answers as this one does, but from a later version.
  bootstrap.allgather = [](void*, const void* send, void* recv, size_t bytes) {
    for (size_t rank = 0; rank < 2; ++rank) std::memcpy(static_cast<char*>(recv) + rank * bytes, send, bytes);
    constexpr uint64_t kVersion = uint64_t{IBCOLL_VERSION_MAJOR} << 32 | IBCOLL_VERSION_MINOR << 16;
    if (uint64_t first = 0; std::memcpy(&first, send, sizeof first), first == kVersion)
      ++static_cast<char*>(recv)[bytes];
    return 0;
  };
  expect_error(ibcoll_context_create(&params, &context), IBCOLL_ERR_BOOTSTRAP,
               fmt::format("rank 0 has version {0}.{1}.0 of ibcoll, rank 1 has {0}.{1}.1", IBCOLL_VERSION_MAJOR,
                           IBCOLL_VERSION_MINOR),
               "ranks of different versions");
  expect_ok(ibcoll_context_destroy(nullptr), "destroy of NULL");
  expect(ibcoll_context_rank(nullptr) == -1 && ibcoll_context_size(nullptr) == 0, "NULL is no context");
  expect_error(ibcoll_progress(nullptr), IBCOLL_ERR_INVALID_ARGUMENT, "NULL", "progress of NULL");
  expect(ibcoll_team_world(nullptr) == nullptr, "NULL has no world");
}

// Where a child inherits a context, its calls are refused, and the parent's work as before.
void forked_child(Rank& self) {
  CheckedCall call(self.world, {.collective = IBCOLL_ALLGATHER, .bytes = 5000});
  call.run(1);
  ibcoll_request_t request = nullptr;
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = IBCOLL_BARRIER;
  expect_ok(ibcoll_collective_init(self.world, &args, &request), "ibcoll_collective_init");
  void* const memory = ibcoll_mem_alloc(self.context, 100);
  const pid_t child = ::fork();
  if (child == 0) {
    const int before = complaints();
    const auto refused = [](ibcoll_status_t status, const char* name) {
      expect_error(status, IBCOLL_ERR_UNSUPPORTED, "forked", name);
    };
    ibcoll_context_t context = nullptr;
    ibcoll_team_t team = nullptr;
    const int list[] = {0};
    refused(ibcoll_barrier(self.world), "ibcoll_barrier");
    refused(ibcoll_start(request), "ibcoll_start");
    refused(ibcoll_test(request), "ibcoll_test");
    refused(ibcoll_wait(request), "ibcoll_wait");
    refused(ibcoll_request_free(request), "ibcoll_request_free");
    refused(ibcoll_progress(self.context), "ibcoll_progress");
    refused(ibcoll_team_create(self.world, list, 1, &team), "ibcoll_team_create");
    refused(ibcoll_mem_free(self.context, memory), "ibcoll_mem_free");
    expect(ibcoll_mem_alloc(self.context, 100) == nullptr, "ibcoll_mem_alloc gave memory to a child");
    expect(ibcoll_context_describe(self.context, nullptr, 0) == 0,
           "ibcoll_context_describe returned something to a child");
    expect(ibcoll_info_json(self.context, nullptr, 0) == 0, "ibcoll_info_json returned something to a child");
    refused(ibcoll_context_destroy(self.context), "ibcoll_context_destroy");
    refused(ibcoll_context_create(nullptr, &context), "ibcoll_context_create");
    ::_exit(complaints() > before ? 1 : 0);
  }
  int status = -1;
  expect(child > 0 && ::waitpid(child, &status, 0) == child && status == 0, "the child ended with status {}", status);
  expect_ok(ibcoll_start(request), "ibcoll_start");
  expect_ok(ibcoll_wait(request), "ibcoll_wait");
  expect_ok(ibcoll_request_free(request), "ibcoll_request_free");
  expect_ok(ibcoll_mem_free(self.context, memory), "ibcoll_mem_free");
  call.run(2);
}

// ---------------------------------------------------------------- jobs that the test program kills or asks

// Rank 1 dies somewhere inside of a collective, once all ranks are connected.
template <ibcoll_collective_t kCollective>
void die_in(Rank& self) {
  std::atomic<int> rounds{0};
  std::thread killer;
  if (self.rank == 1)
    killer = std::thread([&] {
      while (rounds < 5) sleep_seconds(0.001);
      std::raise(SIGKILL);
    });
  CheckedCall call(self.world, {.collective = kCollective, .bytes = kCollective == IBCOLL_BARRIER ? 0u : 30'000u});
  for (const double end = seconds_now() + 60; seconds_now() < end;) {
    call.fill(0);
    ++rounds;
    if (call.call() == IBCOLL_OK) continue;
    if (self.rank == 1) sleep_seconds(5);
    fmt::print("rank {}: {}\n", self.rank, ibcoll_last_error());
    std::exit(3);
  }
  complain("the job outlived its rank 1");
}

// Notifies the test that this rank is about to do what the scenario is for, which rank 0 does later by this time.
void begin(int rank, double late) {
  fmt::print("rank {} ready\n", rank);
  std::fflush(stdout);
  if (rank == 0) sleep_seconds(late);
}

// Rank 0 stays away from an alltoall until the job is ended.
void stuck(Rank& self) {
  expect_ok(ibcoll_barrier(self.world), "barrier");
  begin(self.rank, 60);
  CheckedCall(self.world, {.collective = IBCOLL_ALLTOALL, .bytes = 20'000}).run(1);
}

// Four ranks on two nodes. Ranks 1 and 3 lead none, so they are not connected yet. In the first call data passes
// between these two only (IBCOLL_ALLTOALLV=direct). Each rank stays away until it is continued (SIGCONT).
void first_call_is_late(Rank&) {
  ibcoll_context_t context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
  const int rank = ibcoll_context_rank(context);
  ::raise(SIGSTOP);
  const std::vector<char> sent(20'000, static_cast<char>(rank));
  std::vector<char> received(sent.size());
  uint64_t counts[4] = {}, displacements[4] = {};
  if (rank % 2 == 1) counts[4 - rank] = sent.size();
  expect_ok(ibcoll_alltoallv(ibcoll_team_world(context), sent.data(), counts, displacements, received.data(), counts,
                             displacements),
            "alltoallv");
  const std::vector<char> expected(sent.size(), static_cast<char>(rank % 2 == 1 ? 4 - rank : 0));
  expect(received == expected, "what rank {} received", rank);
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
}

// Rank 0 is late at the end of the context, where the others wait for it.
void stuck_at_the_end(Rank&) {
  ibcoll_context_t context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
  begin(ibcoll_context_rank(context), 60);
  ibcoll_context_destroy(context);
}

constexpr Scenario kContextScenarios[] = {
    {"contexts_again", contexts_again, false},
    {"small_stack", small_stack, false},
    {"the_program_stays_as_it_was", the_program_stays_as_it_was, false},
    {"malformed_settings", malformed_settings, false},
    {"settings_differ", settings_differ, false},
    {"rings_too_small", rings_too_small, false},
    {"one_malformed", one_malformed, false},
    {"bad_parameters", bad_parameters, false},
    {"from_another_folder", from_another_folder, false},
    {"forked_child", forked_child},
    {"die_in_barrier", die_in<IBCOLL_BARRIER>},
    {"die_in_bcast", die_in<IBCOLL_BCAST>},
    {"die_in_allgather", die_in<IBCOLL_ALLGATHER>},
    {"die_in_alltoall", die_in<IBCOLL_ALLTOALL>},
    {"die_in_allreduce", die_in<IBCOLL_ALLREDUCE>},
    {"first_call_is_late", first_call_is_late, false},
    {"stuck", stuck},
    {"stuck_at_the_end", stuck_at_the_end, false},
};

}  // namespace

std::span<const Scenario> context_scenarios() { return kContextScenarios; }

}  // namespace ibcoll::multiprocess
