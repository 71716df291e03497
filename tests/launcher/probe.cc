// SPDX-License-Identifier: BSD-3-Clause
// A rank for the launcher's tests: takes part in exchanges of the bootstrap, and shows what it was given.
//   ibcoll_launcher_probe exchange [ROUNDS [BYTES]]   checks that many allgathers; prints "rank R of N: ok"
//   ibcoll_launcher_probe again                       two bootstraps one after the other, then two at a time
//   ibcoll_launcher_probe uneven                      rank 1 gives a byte more
//   ibcoll_launcher_probe die RANK                    that rank ends by SIGKILL before it joins
//   ibcoll_launcher_probe leave RANK                  that rank ends with status 0 before it joins
//   ibcoll_launcher_probe late RANK SECONDS           that rank joins so much later; IBCOLL_TIMEOUT applies
//   ibcoll_launcher_probe child                       a program started by a rank tries to join, then a fork of a rank
//   ibcoll_launcher_probe goodbye                     rank 1 parts, then rank 2 becomes another program: what rank 0
//                                                     hears; ends with status 7
//   ibcoll_launcher_probe part                          rank 0 accuses rank 1, which then parts and prints "parted"
//   ibcoll_launcher_probe verdict BYTES                 ballots with offers of this size, whose verdicts come within an
//                                                     exchange
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "bootstrap/bootstrap.h"

namespace {

using ibcoll::Bootstrap;

int argument(int argc, char** argv, int index, int fallback) {
  return index < argc ? std::atoi(argv[index]) : fallback;
}

int rank_in_environment() {
  const char* text = std::getenv("IBCOLL_RUN_RANK");
  return text == nullptr ? 0 : std::atoi(text);
}

[[noreturn]] void give_up(const ibcoll::Status& status) {
  std::fprintf(stderr, "error %d: %s\n", status.code(), status.text().c_str());
  std::exit(3);
}

std::unique_ptr<Bootstrap> join() {
  auto bootstrap = ibcoll::make_bootstrap(nullptr);
  if (!bootstrap.ok()) give_up(bootstrap.status());
  return std::move(bootstrap.value());
}

std::byte pattern(int rank, int round, size_t offset) {
  return static_cast<std::byte>(static_cast<size_t>(rank) * 31 + static_cast<size_t>(round) * 7 + offset);
}

void exchange(Bootstrap& bootstrap, int round, size_t bytes) {
  std::vector<std::byte> mine(bytes);
  std::vector<std::byte> all(bytes * static_cast<size_t>(bootstrap.size()));
  for (size_t i = 0; i < bytes; ++i) mine[i] = pattern(bootstrap.rank(), round, i);
  if (ibcoll::Status status = bootstrap.allgather(mine, all); !status.ok()) {
    std::fprintf(stderr, "the next exchange: %s\n", bootstrap.allgather(mine, all).text().c_str());
    give_up(status);
  }
  for (int rank = 0; rank < bootstrap.size(); ++rank) {
    for (size_t i = 0; i < bytes; ++i) {
      if (all[static_cast<size_t>(rank) * bytes + i] == pattern(rank, round, i)) continue;
      std::fprintf(stderr, "rank %d, round %d: wrong byte %zu of rank %d\n", bootstrap.rank(), round, i, rank);
      std::exit(4);
    }
  }
}

int run_exchanges(int rounds, size_t bytes) {
  const auto bootstrap = join();
  for (int round = 0; round < rounds; ++round) exchange(*bootstrap, round, bytes);
  std::printf("rank %d of %d node '%s' %s %s: ok\n", bootstrap->rank(), bootstrap->size(), bootstrap->node().c_str(),
              bootstrap->local_job() ? "local" : "spread", bootstrap->name().c_str());
  return 0;
}

int run_again() {
  for (int i = 0; i < 2; ++i) exchange(*join(), i, 64);
  const auto first = join();
  const auto second = join();
  exchange(*second, 1, 16);
  exchange(*first, 2, 32);
  std::puts("ok");
  return 0;
}

int run_child() {
  const auto bootstrap = join();
  pid_t children[2];
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    if (&child == children) ::execl("/proc/self/exe", "probe", "exchange", static_cast<char*>(nullptr));
    join();
    ::_exit(9);
  }
  int ends[2];
  for (int i = 0; i < 2; ++i) ::waitpid(children[i], &ends[i], 0);
  exchange(*bootstrap, 0, 8);
  std::printf("children %d %d\n", WEXITSTATUS(ends[0]), WEXITSTATUS(ends[1]));
  return 0;
}

int run_goodbye() {
  auto first = join();
  exchange(*first, 0, 8);
  const int rank = first->rank();
  if (rank == 1) first.reset();
  const auto second = join();
  exchange(*second, 1, 8);
  if (rank == 2) ::execlp("sleep", "sleep", "1000", static_cast<char*>(nullptr));
  if (rank != 0) ::pause();
  std::vector<Bootstrap::Ended> heard;
  for (int tries = 0; heard.empty() && tries < 6000; ++tries) {
    ::usleep(10'000);
    heard = first->ended();
  }
  for (const Bootstrap::Ended& one : heard) std::printf("rank %d: %s\n", one.rank, one.how.c_str());
  return 7;
}

int run_part() {
  auto bootstrap = join();
  exchange(*bootstrap, 0, 8);
  if (bootstrap->rank() == 0 && !bootstrap->arbiter()->accuse(1).ok()) return 5;
  if (bootstrap->rank() != 1) return 0;
  ::usleep(100'000);
  bootstrap.reset();
  ::usleep(600'000);
  std::puts("parted");
  return 0;
}

int run_verdict(size_t bytes) {
  using ibcoll::Arbiter;
  const auto bootstrap = join();
  std::vector<int> all(static_cast<size_t>(bootstrap->size()));
  std::iota(all.begin(), all.end(), 0);
  const std::string offer(bytes, static_cast<char>('a' + bootstrap->rank()));
  if (!bootstrap->arbiter()->vote({{1, 0}, Arbiter::Call::kForm, 0, all, offer}).ok()) return 5;
  exchange(*bootstrap, 0, 8);
  auto verdict = bootstrap->arbiter()->verdict();
  if (!verdict.ok() || !*verdict || (*verdict)->offers.size() != bytes * all.size()) return 6;
  for (size_t i = 0; i < (*verdict)->offers.size(); ++i)
    if ((*verdict)->offers[i] != static_cast<char>('a' + i / bytes)) return 7;
  exchange(*bootstrap, 1, 8);
  std::puts("ok");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "exchange";
  const bool chosen = rank_in_environment() == argument(argc, argv, 2, -1);
  if (what == "exchange")
    return run_exchanges(argument(argc, argv, 2, 1), static_cast<size_t>(argument(argc, argv, 3, 64)));
  if (what == "again") return run_again();
  if (what == "uneven") return run_exchanges(1, rank_in_environment() == 1 ? 65 : 64);
  if (what == "die" && chosen) ::raise(SIGKILL);
  if (what == "leave" && chosen) return 0;
  if (what == "late" && chosen) ::sleep(static_cast<unsigned>(argument(argc, argv, 3, 1)));
  if (what == "child") return run_child();
  if (what == "goodbye") return run_goodbye();
  if (what == "part") return run_part();
  if (what == "verdict") return run_verdict(static_cast<size_t>(argument(argc, argv, 2, 1)));
  return run_exchanges(1, 64);
}
