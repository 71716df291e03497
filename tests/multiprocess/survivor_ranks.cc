// SPDX-License-Identifier: BSD-3-Clause
// Ranks that ibcoll_run --keep-going starts, some of which die: the others agree, shrink and go on. test_survivors.py.
#include <dirent.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

int open_descriptors() {
  int count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (folder && ::readdir(folder)) ++count;
  if (folder) ::closedir(folder);
  return count;
}

// The ranks of a team, by their ranks in the job, as the team itself gathers them; empty: the call failed.
std::vector<int> gathered(ibcoll_team_t team, int own) {
  std::vector<int> all(static_cast<size_t>(ibcoll_team_size(team)), -1);
  if (ibcoll_allgather(team, &own, all.data(), sizeof own) != IBCOLL_OK) all.clear();
  return all;
}

// Connections are made when they are first used.
void connect_all(const Rank& self) {
  std::vector<double> operand(static_cast<size_t>(self.size)), result(operand.size());
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = IBCOLL_ALLTOALL;
  args.send = operand.data();
  args.recv = result.data();
  args.bytes = sizeof(double);
  args.algorithm = "direct";
  for (int i = 0; i < 3; ++i) expect_ok(ibcoll_collective_run(self.world, &args), "alltoall");
}

void agree_once(ibcoll_team_t team) {
  uint64_t nothing = 0;
  int none = 0;
  expect_ok(ibcoll_team_agree(team, &nothing, nullptr, &none), "ibcoll_team_agree");
}

// Some calls, whose results are verified. False: one failed, by a death or because another rank has revoked the team.
bool work(const Rank& self, ibcoll_team_t team, const std::vector<int>& members, int calls) {
  constexpr size_t kLong = 5'000;
  std::vector<double> operand(kLong), sum(kLong);
  for (int call = 0; call < calls; ++call) {
    const size_t count = call % 3 == 2 ? kLong : 1;
    std::fill(operand.begin(), operand.end(), self.rank + call);
    const ibcoll_status_t status = ibcoll_allreduce(team, operand.data(), sum.data(), count, IBCOLL_DOUBLE, IBCOLL_SUM);
    if (status != IBCOLL_OK) {
      expect(status == IBCOLL_ERR_PEER_FAILED || status == IBCOLL_ERR_REVOKED, "allreduce: {}", ibcoll_last_error());
      return false;
    }
    double wanted = 0;
    for (const int rank : members) wanted += rank + call;
    expect(std::all_of(sum.begin(), sum.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](double value) { return value == wanted; }),
           "wrong sum");
    const std::vector<int> ranks = gathered(team, self.rank);
    if (ranks.empty()) return false;
    expect(ranks == members, "wrong ranks");
  }
  return true;
}

std::string text_of(const std::vector<int>& ranks) { return fmt::format("{}", fmt::join(ranks, ",")); }

// Every rank knows from the seed who dies when: in calls, in agreements, while teams are made or while others leave.
void die_at_random(Rank& self, unsigned seed, int deaths) {
  std::mt19937 random(seed);
  std::vector<int> order(static_cast<size_t>(self.size));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::map<int, double> ends;
  for (int i = 0; i < deaths; ++i) ends[order[static_cast<size_t>(i)]] = 1e-6 * (random() % 300'000);
  if (const auto mine = ends.find(self.rank); mine != ends.end())
    std::thread([after = mine->second] { sleep_seconds(after), ::raise(SIGKILL); }).detach();
}

void random_deaths(Rank& self, unsigned seed, int deaths) {
  std::vector<int> members(static_cast<size_t>(self.size));
  std::iota(members.begin(), members.end(), 0);
  expect(work(self, self.world, members, 3), "before any death: {}", ibcoll_last_error());
  connect_all(self);
  agree_once(self.world);  // all are connected
  const int descriptors = open_descriptors();
  die_at_random(self, seed, deaths);
  ibcoll_team_t team = self.world;
  const double begin = seconds_now();
  for (int phase = 0; complaints() == 0; ++phase) {
    const bool worked = work(self, team, members, 5);
    if (!worked) expect_ok(ibcoll_team_revoke(team), "ibcoll_team_revoke");
    const bool enough = seconds_now() - begin > 0.4;
    uint64_t flags = (worked ? 1 : 0) | (enough ? 2 : 0);
    std::vector<int> failed(members.size());
    int count = self.size;
    if (!expect_ok(ibcoll_team_agree(team, &flags, failed.data(), &count), "ibcoll_team_agree")) break;
    failed.resize(static_cast<size_t>(count));
    // What a killed rank had printed may be cut: only lines with their last dot count.
    fmt::print("agreed {} of {}: {} {}.\n", phase, text_of(members), flags, text_of(failed));
    if (flags == 3 && count == 0) break;
    if ((flags & 1) != 0 && count == 0) continue;
    ibcoll_team_t shrunk = nullptr;
    if (!expect_ok(ibcoll_team_shrink(team, &shrunk), "ibcoll_team_shrink")) break;
    if (team != self.world) expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
    team = shrunk;
    // Who is in it: those before, without the dead and those that died since.
    std::vector<int> left;
    for (size_t i = 0; i < members.size(); ++i)
      if (std::find(failed.begin(), failed.end(), static_cast<int>(i)) == failed.end()) left.push_back(members[i]);
    const std::vector<int> now = gathered(team, self.rank);
    if (now.empty()) {  // one has died again: the next round finds it, and the members are not known
      members.assign(static_cast<size_t>(ibcoll_team_size(team)), -1);
      continue;
    }
    const bool known = members.front() >= 0;
    expect(!known || std::includes(left.begin(), left.end(), now.begin(), now.end()), "dead ranks in {}", text_of(now));
    expect(ibcoll_team_rank(team) == std::find(now.begin(), now.end(), self.rank) - now.begin(), "another order");
    members = now;
  }
  fmt::print("ended with {}.\n", text_of(members));
  std::fflush(stdout);
  if (team != self.world) expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
  expect(open_descriptors() <= descriptors, "{} descriptors, {} before", open_descriptors(), descriptors);
}

// ---------------------------------------------------------------- ballots that cannot be decided

// Two teams of the same ranks, each rank in the ballot of one. Those that come to the ballot later get its answer, too.
void same_ranks(Rank& self) {
  const TeamOwner one = split(self.world, 0, self.rank), other = split(self.world, 0, -self.rank);
  uint64_t flags = 1;
  int count = 0;
  const bool first = self.rank == 0;
  for (const ibcoll_team_t team : {first ? one.get() : other.get(), first ? other.get() : one.get()})
    expect_error(ibcoll_team_agree(team, &flags, nullptr, &count), IBCOLL_ERR_MISMATCH,
                 "waits for rank 0, which is in ibcoll_team_agree of ranks 0-2", "ballots of the same ranks");
  flags = self.rank == 1 ? 5 : 7;
  expect_ok(ibcoll_team_agree(one.get(), &flags, nullptr, &count), "ibcoll_team_agree after it");
  expect(flags == 5 && count == 0, "flags {}, {} dead", flags, count);
}

// The team of these ranks of the job, which all ranks make; empty on other ranks.
TeamOwner team_of(const Rank& self, const std::vector<int>& ranks) {
  ibcoll_team_t team = nullptr;
  expect_ok(ibcoll_team_create(self.world, ranks.data(), static_cast<int>(ranks.size()), &team), "ibcoll_team_create");
  return TeamOwner(team);
}

// Five ranks, of which the last one dies. The middle ones are in both teams, and begin with the ballot of one each.
void overlapping(Rank& self) {
  const TeamOwner lower = team_of(self, {0, 1, 2, 4}), upper = team_of(self, {1, 2, 3, 4});
  agree_once(self.world);  // all have the teams
  if (self.rank == 4) ::raise(SIGKILL);
  const ibcoll_team_t first = self.rank < 2 ? lower.get() : upper.get();
  const ibcoll_team_t second = self.rank < 2 ? upper.get() : lower.get();  // none on the outer ranks
  uint64_t flags = 1;
  ibcoll_team_t shrunk = nullptr;
  for (const bool shrinks : {false, true}) {
    for (const ibcoll_team_t team : {first, second}) {
      if (!team) continue;
      int count = 0;
      const ibcoll_status_t status =
          shrinks ? ibcoll_team_shrink(team, &shrunk) : ibcoll_team_agree(team, &flags, nullptr, &count);
      const char* const call = shrinks ? "ibcoll_team_shrink" : "ibcoll_team_agree";
      for (const auto& [waits, ranks, other] : {std::tuple("0-2, 4", 2, "1-4"), std::tuple("1-4", 1, "0-2, 4")})
        expect_error(
            status, IBCOLL_ERR_MISMATCH,
            fmt::format("{0} of ranks {1} waits for rank {2}, which is in {0} of ranks {3}", call, waits, ranks, other),
            "overlapping ballots");
      expect(shrunk == nullptr, "a team in spite of that");
    }
  }
  for (const bool is_lower : {true, false}) {
    const ibcoll_team_t team = is_lower ? lower.get() : upper.get();
    if (!team || !expect_ok(ibcoll_team_shrink(team, &shrunk), "ibcoll_team_shrink by the same order on all")) continue;
    const TeamOwner owner(shrunk);
    const int begin = is_lower ? 0 : 1;
    expect(work(self, shrunk, {begin, begin + 1, begin + 2}, 3), "{}", ibcoll_last_error());
    agree_once(shrunk);
  }
}

void other_calls(Rank& self) {
  uint64_t flags = 1;
  int count = 0;
  ibcoll_team_t team = nullptr;
  const ibcoll_status_t status =
      self.rank == 0 ? ibcoll_team_shrink(self.world, &team) : ibcoll_team_agree(self.world, &flags, nullptr, &count);
  expect_error(status, IBCOLL_ERR_MISMATCH, "ibcoll_team_shrink", "agree beside shrink");
  expect(team == nullptr, "a team in spite of that");
  expect_ok(ibcoll_team_shrink(self.world, &team), "ibcoll_team_shrink of a healthy team");
  expect(gathered(team, self.rank).size() == static_cast<size_t>(self.size), "not all of them");
  expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
}

// IBCOLL_TIMEOUT is some seconds here.
void late(Rank& self) {
  uint64_t flags = 1;
  int count = 0;
  if (self.rank == 1) {
    sleep_seconds(3);
    expect_error(ibcoll_team_agree(self.world, &flags, nullptr, &count), IBCOLL_ERR_TIMEOUT, "rank 1 ",
                 "the late rank");
  } else {
    expect_error(ibcoll_team_agree(self.world, &flags, nullptr, &count), IBCOLL_ERR_TIMEOUT, "rank 1 did not call",
                 "those that waited");
  }
  expect_ok(ibcoll_barrier(self.world), "barrier");  // those that have a deadline wait for the late one
  expect_ok(ibcoll_team_agree(self.world, &flags, nullptr, &count), "the next ballot");
}

// Its parent may not have taken its status yet.
bool runs(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string line;
  return std::getline(stat, line) && line.substr(line.rfind(')') + 2, 1) != "Z";
}

// Rank 1 becomes another program, which closes its connections. Those that vote with it count it as dead; so it ends first.
void deserted(Rank& self) {
  pid_t own = ::getpid();
  std::vector<pid_t> pids(static_cast<size_t>(self.size));
  expect_ok(ibcoll_allgather(self.world, &own, pids.data(), sizeof own), "allgather");
  if (self.rank == 1) ::execlp("sleep", "sleep", "1000", static_cast<char*>(nullptr));
  uint64_t flags = 1;
  int failed[4], count = 4;
  expect_ok(ibcoll_team_agree(self.world, &flags, failed, &count), "ibcoll_team_agree");
  expect(count == 1 && failed[0] == 1, "{} dead", count);
  expect(!runs(pids[1]), "it runs");
}

// The second half of the ranks is on a host whose cable is pulled.
void lost_host(Rank& self) {
  std::vector<int> members(static_cast<size_t>(self.size)), half;
  std::iota(members.begin(), members.end(), 0);
  for (int rank = self.size / 2; rank < self.size; ++rank) half.push_back(rank);
  connect_all(self);
  fmt::print("rank {} is pid {}\n", self.rank, ::getpid());
  std::fflush(stdout);
  while (work(self, self.world, members, 5)) sleep_seconds(0.01);
  expect_ok(ibcoll_team_revoke(self.world), "ibcoll_team_revoke");
  uint64_t flags = 0;
  std::vector<int> failed(members.size());
  int count = self.size;
  if (!expect_ok(ibcoll_team_agree(self.world, &flags, failed.data(), &count), "ibcoll_team_agree")) return;
  failed.resize(static_cast<size_t>(count));
  expect(failed == half, "{} are dead", text_of(failed));
  ibcoll_team_t shrunk = nullptr;
  if (!expect_ok(ibcoll_team_shrink(self.world, &shrunk), "ibcoll_team_shrink")) return;
  members.resize(members.size() - half.size());
  expect(work(self, shrunk, members, 5), "{}", ibcoll_last_error());
  expect_ok(ibcoll_team_free(shrunk), "ibcoll_team_free");
}

// Each rank is a node of its own, and has met some of the others. All learn of the death, and none connects for that.
void unconnected(Rank& self) {
  expect_ok(ibcoll_barrier(self.world), "barrier");
  agree_once(self.world);  // all have got this far
  const uint64_t before = counter(self.context, "connections");
  expect(before > 0 && before < static_cast<uint64_t>(self.size) - 1, "{} connections", before);
  if (self.rank == self.size - 1) ::raise(SIGKILL);
  ibcoll_status_t status = IBCOLL_OK;
  while (status == IBCOLL_OK) status = ibcoll_barrier(self.world);
  expect(status == IBCOLL_ERR_PEER_FAILED, "barrier: {}", ibcoll_last_error());
  agree_once(self.world);  // all have failed
  const uint64_t after = counter(self.context, "connections");
  expect(after <= before, "{} connections, {} before", after, before);
}

// What this process holds.
struct Levels {
  size_t heap = 0, mappings = 0;
  int descriptors = open_descriptors();
};
Levels levels() {
  Levels now;
  const struct mallinfo2 info = ::mallinfo2();
  now.heap = info.uordblks + info.hblkhd;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  return now;
}

// All but two ranks die, one after the other, the last one first. What a rank holds stays at its level.
void one_by_one(Rank& self) {
  connect_all(self);
  std::vector<int> members(static_cast<size_t>(self.size));
  std::iota(members.begin(), members.end(), 0);
  ibcoll_team_t team = self.world;
  Levels first, now;
  while (members.size() > 2) {
    agree_once(team);  // all have got this far
    if (self.rank == members.back()) ::raise(SIGKILL);
    members.pop_back();
    while (!gathered(team, self.rank).empty()) {  // until the death is seen
    }
    expect_ok(ibcoll_team_revoke(team), "ibcoll_team_revoke");
    ibcoll_team_t shrunk = nullptr;
    if (!expect_ok(ibcoll_team_shrink(team, &shrunk), "ibcoll_team_shrink")) return;
    if (team != self.world) expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
    team = shrunk;
    expect(work(self, team, members, 3), "{}", ibcoll_last_error());
    now = levels();
    if (first.heap == 0) first = now;
  }
  fmt::print("rank {}: heap {} to {}, mappings {} to {}, descriptors {} to {}\n", self.rank, first.heap, now.heap,
             first.mappings, now.mappings, first.descriptors, now.descriptors);
  std::fflush(stdout);
  constexpr size_t kSlack = 64 << 10;
  constexpr size_t kCuts = 6;  // of mappings, by what is registered; one for each later death would be 9
  expect(now.heap <= first.heap + kSlack, "heap {}, {} before", now.heap, first.heap);
  expect(now.mappings <= first.mappings + kCuts, "{} mappings, {} before", now.mappings, first.mappings);
  expect(now.descriptors <= first.descriptors, "{} descriptors, {} before", now.descriptors, first.descriptors);
  expect_ok(ibcoll_team_free(team), "ibcoll_team_free");
}

// The test stops rank 1 in a long transfer, kills rank 2, continues rank 1 after some seconds, and makes `gate`. Once the call
// has failed, no rank writes to the memory of another one.
void stopped(Rank& self, const std::string& gate) {
  CheckedCall call(self.world, {.collective = IBCOLL_ALLTOALL, .bytes = 1'000'000});
  expect(call.run(0), "before any death");
  fmt::print("rank {} is pid {}\n", self.rank, ::getpid());
  std::fflush(stdout);
  ibcoll_status_t status = IBCOLL_OK;
  for (uint64_t round = 1; status == IBCOLL_OK; ++round) {
    call.fill(round);
    status = call.call();
    if (status == IBCOLL_OK) call.verify(round);
  }
  expect(status == IBCOLL_ERR_PEER_FAILED || status == IBCOLL_ERR_REVOKED, "alltoall: {}", ibcoll_last_error());
  call.scribble();
  expect_ok(ibcoll_team_revoke(self.world), "ibcoll_team_revoke");
  uint64_t flags = 0;
  std::vector<int> failed(static_cast<size_t>(self.size)), members;
  int count = self.size;
  if (!expect_ok(ibcoll_team_agree(self.world, &flags, failed.data(), &count), "ibcoll_team_agree")) return;
  failed.resize(static_cast<size_t>(count));
  fmt::print("dead: {}.\n", text_of(failed));
  std::fflush(stdout);
  for (int rank = 0; rank < self.size; ++rank)
    if (std::find(failed.begin(), failed.end(), rank) == failed.end()) members.push_back(rank);
  ibcoll_team_t shrunk = nullptr;
  if (!expect_ok(ibcoll_team_shrink(self.world, &shrunk), "ibcoll_team_shrink")) return;
  expect(work(self, shrunk, members, 5), "{}", ibcoll_last_error());
  while (::access(gate.c_str(), F_OK) != 0) sleep_seconds(0.02);
  expect(call.scribbled(), "memory was written after the call had returned");
  expect(work(self, shrunk, members, 5), "{}", ibcoll_last_error());
  expect_ok(ibcoll_team_free(shrunk), "ibcoll_team_free");
}

void arguments(Rank& self) {
  uint64_t flags = 1;
  int count = 0, dead[1];
  ibcoll_team_t team = nullptr;
  const auto wrong = [&](ibcoll_status_t status, const char* part) {
    expect_error(status, IBCOLL_ERR_INVALID_ARGUMENT, part, "wrong arguments");
  };
  wrong(ibcoll_team_agree(nullptr, &flags, nullptr, &count), "NULL");
  wrong(ibcoll_team_agree(self.world, nullptr, nullptr, &count), "NULL");
  wrong(ibcoll_team_agree(self.world, &flags, dead, nullptr), "count is NULL");
  count = 1;
  wrong(ibcoll_team_agree(self.world, &flags, nullptr, &count), "room for 1 ranks");
  wrong(ibcoll_team_shrink(nullptr, &team), "NULL");
  wrong(ibcoll_team_shrink(self.world, nullptr), "NULL");
  count = 0;
  ibcoll_request_t request = nullptr;
  ibcoll_collective_args_t args{};
  args.struct_size = sizeof args;
  args.collective = IBCOLL_BARRIER;
  if (self.rank == 0) {
    expect_ok(ibcoll_collective_start(self.world, &args, &request), "barrier");
    expect_error(ibcoll_team_agree(self.world, &flags, nullptr, &count), IBCOLL_ERR_BUSY, "1 requests are in flight",
                 "with a request in flight");
    sleep_seconds(0.2);
  } else {
    sleep_seconds(0.1);
    expect_ok(ibcoll_collective_start(self.world, &args, &request), "barrier");
  }
  expect_ok(ibcoll_wait(request), "ibcoll_wait");
  ibcoll_team_t all = nullptr;
  expect_ok(ibcoll_team_split(self.world, 0, self.rank, &all), "ibcoll_team_split");
  std::thread other;
  if (self.rank == 0)
    other = std::thread([&] {
      uint64_t mine = 1;
      int none = 0;
      expect_ok(ibcoll_team_agree(all, &mine, nullptr, &none), "the first thread");
    });
  sleep_seconds(0.2);
  if (self.rank == 0) {
    expect_error(ibcoll_team_agree(all, &flags, nullptr, &count), IBCOLL_ERR_BUSY, "another thread", "two threads");
    expect_error(ibcoll_team_free(all), IBCOLL_ERR_BUSY, "waits in an agreement of the team", "a team that agrees");
    other.join();
  } else {
    sleep_seconds(0.4);
    expect_ok(ibcoll_team_agree(all, &flags, nullptr, &count), "ibcoll_team_agree");
  }
  expect_ok(ibcoll_team_free(all), "ibcoll_team_free");
}

// Started by hand: there is no launcher, and a lone rank needs none; not so with ranks that the program brings.
void alone(Rank& self) {
  uint64_t flags = 6;
  int count = 0;
  expect_ok(ibcoll_team_agree(self.world, &flags, nullptr, &count), "ibcoll_team_agree of one rank");
  expect(flags == 6 && count == 0, "flags {}, {} dead", flags, count);
  ibcoll_team_t first = nullptr, second = nullptr;
  expect_ok(ibcoll_team_shrink(self.world, &first), "ibcoll_team_shrink of one rank");
  expect_ok(ibcoll_team_shrink(first, &second), "ibcoll_team_shrink of that");
  expect_ok(ibcoll_barrier(second), "barrier");
  expect_ok(ibcoll_team_free(second), "ibcoll_team_free");
  expect_ok(ibcoll_team_free(first), "ibcoll_team_free");
}

int run(const std::vector<std::string>& words) {
  Rank self;
  if (!expect_ok(ibcoll_context_create(nullptr, &self.context), "ibcoll_context_create")) return 1;
  self.world = ibcoll_team_world(self.context);
  self.rank = ibcoll_context_rank(self.context);
  self.size = ibcoll_context_size(self.context);
  set_rank_of_lines(self.rank);
  const std::map<std::string, std::function<void(Rank&)>> scenarios = {
      {"same_ranks", same_ranks}, {"overlapping", overlapping}, {"other_calls", other_calls}, {"late", late},
      {"deserted", deserted},     {"one_by_one", one_by_one},   {"lost_host", lost_host},     {"arguments", arguments},
      {"alone", alone},           {"unconnected", unconnected}};
  if (words[0] == "random")
    random_deaths(self, static_cast<unsigned>(std::stoul(words.at(1))), std::stoi(words.at(2)));
  else if (words[0] == "stopped")
    stopped(self, words.at(1));
  else
    scenarios.at(words[0])(self);
  if (complaints() == 0) expect_ok(ibcoll_context_destroy(self.context), "ibcoll_context_destroy");
  return complaints() > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ibcoll::multiprocess

int main(int argc, char** argv) { return ibcoll::multiprocess::run({argv + 1, argv + argc}); }
