// SPDX-License-Identifier: BSD-3-Clause
// One rank calls something else than the others. No rank hangs, no memory outside of its own blocks is written, and
// every rank of the team learns of it, soon, in this call or in a later one on the team.
#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include "tests/multiprocess/checked_call.h"
#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

constexpr double kSeconds = 30;  // until all know, mostly none; a rank that never learns it waits 40 (IBCOLL_TIMEOUT)

// The calls of this rank on the team.
using Body = std::function<ibcoll_status_t(ibcoll_team_t team)>;

ibcoll_status_t start_and_wait(ibcoll_team_t team, const ibcoll_collective_args_t& args) {
  ibcoll_request_t request = nullptr;
  ibcoll_status_t status = ibcoll_collective_init(team, &args, &request);
  if (status == IBCOLL_OK) status = ibcoll_start(request);
  if (status == IBCOLL_OK) status = ibcoll_wait(request);
  expect_ok(ibcoll_request_free(request), "ibcoll_request_free after a failure");
  return status;
}

using Names = std::vector<std::string>;  // what an error has in it
void expect_named(ibcoll_status_t status, const Names& named, const std::string& what) {
  for (const std::string& name : named) expect_error(status, IBCOLL_ERR_MISMATCH, name, what);
}

// Runs the body on a team of its own, then barriers, until they fail on every rank. The world stays as it was.
void expect_mismatch(Rank& self, const std::string& what, const Body& body, const Names& named = {"rank "}) {
  if (complaints() > 0) return;
  const TeamOwner team = split(self.world, 0, self.rank);
  const double begin = seconds_now();
  const ibcoll_status_t status = body(team.get());
  if (status != IBCOLL_OK) expect_named(status, named, what);
  // A rank whose own part was complete learns it later; it may pass barriers until then.
  ibcoll_status_t next = IBCOLL_OK;
  while (next == IBCOLL_OK && seconds_now() - begin < kSeconds) next = ibcoll_barrier(team.get());
  expect_named(next, named, what + ", then barriers");
  const double took = seconds_now() - begin;
  expect(took < kSeconds, "{}: {:.1f} s until this rank knew", what, took);
  expect_ok(ibcoll_barrier(self.world), "barrier of the world");
}

// The last rank calls `its`, all others `theirs`.
void differ(Rank& self, const CallParams& theirs, const CallParams& its) {
  const CallParams& own = self.rank == self.size - 1 ? its : theirs;
  std::optional<CheckedCall> call;
  const std::string what = fmt::format("{} and {}", theirs.describe(), its.describe());
  expect_mismatch(self, what, [&](ibcoll_team_t team) {
    call.emplace(team, own);
    call->fill(1);
    const ibcoll_status_t status = start_and_wait(team, call->args());
    expect(call->verify_guards(), "{}: memory outside of the blocks was written", what);
    call->scribble();
    return status;
  });
  expect(!call || call->scribbled(), "{}: memory was written after the call had returned", what);
}

bool applies(Rank& self, const CallParams& params) {
  std::string text(300, '\0');
  const CheckedCall call(self.world, params);
  const ibcoll_collective_args_t args = call.args();
  return ibcoll_explain(self.world, &args, text.data(), text.size()) == IBCOLL_OK;
}

// Sizes within one slot, beyond it, and one of each; every algorithm.
void sizes_differ(Rank& self) {
  constexpr std::pair<uint64_t, uint64_t> kSizes[] = {
      {104, 96}, {96, 104}, {20'000, 24'000}, {24'000, 100}, {100, 24'000}};
  size_t call = 0;
  for (int c = IBCOLL_BCAST; c < kCollectives; ++c) {
    const auto collective = static_cast<ibcoll_collective_t>(c);
    for (int i = 0; const char* const algorithm = ibcoll_algorithm_name(collective, i); ++i) {
      CallParams theirs{.collective = collective, .algorithm = algorithm}, its = theirs;
      std::tie(theirs.bytes, its.bytes) = kSizes[call++ % std::size(kSizes)];
      if (!applies(self, theirs)) continue;
      differ(self, theirs, its);
    }
  }
}

void calls_differ(Rank& self) {
  const CallParams bcast{.collective = IBCOLL_BCAST, .bytes = 3000},
      allreduce{.collective = IBCOLL_ALLREDUCE, .bytes = 3000};
  const CallParams barrier{.collective = IBCOLL_BARRIER}, alltoall{.collective = IBCOLL_ALLTOALL, .bytes = 30'000};
  const CallParams allgather{.collective = IBCOLL_ALLGATHER, .bytes = 30'000};
  differ(self, bcast, allreduce);
  differ(self, allreduce, bcast);
  differ(self, barrier, allgather);
  differ(self, allgather, barrier);
  differ(self, alltoall, allgather);
  differ(self, alltoall, barrier);
  CallParams copy = alltoall, pairwise = alltoall;
  copy.scheme = IBCOLL_SCHEME_COPY;
  pairwise.algorithm = "pairwise";
  differ(self, alltoall, copy);
  CallParams direct = alltoall;
  direct.algorithm = "direct";
  differ(self, direct, pairwise);
}

// The last rank has another type of the same size, another operation, or one element less. Every rank learns which
// ranks differ, and the call of one of them with its type and operation.
void reductions_differ(Rank& self) {
  oracle::CallParams sums;
  sums.p = self.size, sums.count = 3000, sums.type = IBCOLL_INT64, sums.op = IBCOLL_SUM;
  for (const auto collective : {IBCOLL_ALLREDUCE, IBCOLL_REDUCE, IBCOLL_REDUCE_SCATTER_BLOCK, IBCOLL_SCAN})
    for (const char* const odd : {"type", "operation", "count"}) {
      oracle::CallParams exact = sums;
      exact.collective = collective;
      const oracle::CallParams right = exact;
      if (self.rank == self.size - 1) {
        if (odd == std::string("type")) exact.type = IBCOLL_UINT64;
        if (odd == std::string("operation")) exact.op = IBCOLL_BXOR;
        if (odd == std::string("count")) exact.count -= 1;
      }
      std::optional<CheckedCall> call;
      const std::string what = fmt::format("{}: another {} on one rank", ibcoll_collective_name(collective), odd);
      const auto body = [&](ibcoll_team_t team) {
        // The team knows the shape of a call that almost fits.
        if (!CheckedCall(team, CallParams{.collective = collective}, right).run(1)) return IBCOLL_ERR_INTERNAL;
        call.emplace(team, CallParams{.collective = collective}, exact);
        call->fill(1);
        const ibcoll_status_t status = call->call();
        expect(call->verify_guards(), "{}: memory outside of the blocks was written", what);
        call->scribble();
        return status;
      };
      expect_mismatch(self, what, body, {"rank ", ibcoll_collective_name(collective), "int64, operation "});
      expect(!call || call->scribbled(), "{}: memory was written after the call had returned", what);
    }
}

void roots_differ(Rank& self) {
  for (const uint64_t bytes : {uint64_t{16}, uint64_t{30'000}}) {
    for (int i = 0; const char* const algorithm = ibcoll_algorithm_name(IBCOLL_BCAST, i); ++i) {
      CallParams theirs{.collective = IBCOLL_BCAST, .bytes = bytes, .algorithm = algorithm};
      if (!applies(self, theirs)) continue;
      CallParams its = theirs;
      its.root = self.size - 1;
      differ(self, theirs, its);
    }
  }
}

// Rank 0 sends rank 1 something else than that expects; all other blocks agree. One algorithm meets all sizes, the
// others every third.
void blocks_differ(Rank& self) {
  const auto p = static_cast<size_t>(self.size);
  constexpr std::pair<uint64_t, uint64_t> kSizes[] = {{50, 0},       {0, 50},       {50, 60},          {30'000, 0},
                                                      {0, 30'000},   {30'000, 50},  {50, 30'000},      {30'000, 30'001},
                                                      {400'000, 50}, {50, 400'000}, {400'000, 400'001}};
  constexpr size_t kStride = 400'008;
  for (size_t number = 0; number < std::size(kSizes); ++number) {
    const auto [sent, expected] = kSizes[number];
    for (size_t i = 0; const char* const algorithm = ibcoll_algorithm_name(IBCOLL_ALLTOALLV, static_cast<int>(i));
         ++i) {
      if (i > 0 && number % 3 != i % 3) continue;
      std::vector<uint64_t> send_counts(p, 10), recv_counts(p, 10), displacements(p);
      if (self.rank == 0) send_counts[1] = sent;
      if (self.rank == 1) recv_counts[0] = expected;
      for (size_t k = 0; k < p; ++k) displacements[k] = k * kStride;
      std::vector<std::byte> send(p * kStride, std::byte{1}), recv(p * kStride, std::byte{2});
      ibcoll_collective_args_t args{};
      args.struct_size = sizeof args;
      args.collective = IBCOLL_ALLTOALLV;
      args.send = send.data();
      args.recv = recv.data();
      args.send_counts = send_counts.data();
      args.recv_counts = recv_counts.data();
      args.send_displacements = args.recv_displacements = displacements.data();
      args.algorithm = algorithm;
      if (ibcoll_request_t probe = nullptr; ibcoll_collective_init(self.world, &args, &probe) != IBCOLL_OK)
        continue;
      else
        ibcoll_request_free(probe);
      expect_mismatch(self, fmt::format("alltoallv ({}): {} bytes sent, {} expected", algorithm, sent, expected),
                      [&](ibcoll_team_t team) { return start_and_wait(team, args); });
      for (size_t k = 0; k < p; ++k) {
        const auto end = recv.begin() + static_cast<std::ptrdiff_t>((k + 1) * kStride);
        const auto written = std::find_if(end - static_cast<std::ptrdiff_t>(kStride - recv_counts[k]), end,
                                          [](std::byte byte) { return byte != std::byte{2}; });
        if (!expect(written == end,
                    "{}: {} bytes sent, {} expected: the byte {} before the end of the gap after block "
                    "{} was written",
                    algorithm, sent, expected, end - written, k))
          return;
      }
    }
  }
}

// The root's list says something else of rank 1's block than rank 1 does. Both are named, on every rank. One algorithm
// meets all sizes, the others one each.
void root_counts_differ(Rank& self) {
  constexpr std::pair<uint64_t, uint64_t> kSizes[] = {{50, 0}, {0, 50}, {50, 60}, {30'000, 50}, {50, 30'000}};
  for (const ibcoll_collective_t collective : {IBCOLL_GATHERV, IBCOLL_SCATTERV})
    for (int i = 0; const char* const algorithm = ibcoll_algorithm_name(collective, i); ++i)
      for (const auto& [roots, its] :
           i == 0 ? std::span(kSizes) : std::span(kSizes).subspan(static_cast<size_t>(i) % 5, 1)) {
        CallParams params{.collective = collective, .bytes = 10, .gap = 13, .algorithm = algorithm};
        if (!applies(self, params)) continue;
        oracle::CallParams exact = params.on(self.size);
        exact.sizes = nullptr;
        exact.counts.assign(static_cast<size_t>(self.size), 10);
        exact.counts[1] = self.rank == 1 ? its : roots;
        std::optional<CheckedCall> call;
        const std::string what = fmt::format("{}: {} bytes at the root, {} at rank 1", params.describe(), roots, its);
        const auto body = [&](ibcoll_team_t team) {
          call.emplace(team, params, exact);
          call->fill(1);
          const ibcoll_status_t status = start_and_wait(team, call->args());
          call->verify_guards();
          call->scribble();
          return status;
        };
        expect_mismatch(self, what, body, {"rank 0", "rank 1"});
        expect(!call || call->scribbled(), "{}: memory was written after the call had returned", what);
      }
}

// Two collectives, started in one order here and in the other there.
void order_differs(Rank& self) {
  const CallParams first{.collective = IBCOLL_ALLGATHER, .bytes = 300},
      second{.collective = IBCOLL_ALLTOALL, .bytes = 300};
  const bool turned = self.rank == 0;
  expect_mismatch(self, "two collectives in another order", [&](ibcoll_team_t team) {
    CheckedCall a(team, turned ? second : first), b(team, turned ? first : second);
    const ibcoll_collective_args_t a_args = a.args(), b_args = b.args();
    ibcoll_request_t requests[2] = {};
    expect_ok(ibcoll_collective_init(team, &a_args, &requests[0]), "init");
    expect_ok(ibcoll_collective_init(team, &b_args, &requests[1]), "init");
    ibcoll_status_t status = ibcoll_barrier(team);
    for (ibcoll_request_t request : requests)
      if (status == IBCOLL_OK) status = ibcoll_start(request);
    for (ibcoll_request_t request : requests) {
      const ibcoll_status_t ended = ibcoll_wait(request);
      if (status == IBCOLL_OK) status = ended;
      expect_ok(ibcoll_request_free(request), "free");
    }
    return status;
  });
}

// All ranks must give the same list: each gets an error when another does not, also where the lists have no rank in
// common, and when one of them is none.
void lists_differ(Rank& self) {
  const std::vector<int> both{0, 1}, turned{1, 0}, others{2, 3}, twice{1, 1};
  const uint64_t before = counter(self.context, "heap_reserved_bytes");
  expect_ok(ibcoll_barrier(self.world), "barrier before lists that differ");
  const auto refused = [&](const std::vector<int>& list, ibcoll_status_t wanted, const char* why) {
    ibcoll_team_t team = nullptr;
    const double begin = seconds_now();
    const ibcoll_status_t status = ibcoll_team_create(self.world, list.data(), static_cast<int>(list.size()), &team);
    expect_error(status, wanted, why, "ibcoll_team_create with lists that differ");
    expect(team == nullptr, "a team was made");
    expect(seconds_now() - begin < kSeconds, "{:.1f} s until it was known", seconds_now() - begin);
  };
  refused(self.rank == 1 ? turned : both, IBCOLL_ERR_MISMATCH, "another list of ranks");
  refused(self.rank < 2 ? both : others, IBCOLL_ERR_MISMATCH, "another list of ranks");
  refused(self.rank == self.size - 1 ? others : both, IBCOLL_ERR_MISMATCH, "another list of ranks");
  if (self.rank == 2)
    refused(twice, IBCOLL_ERR_INVALID_ARGUMENT, "rank 1 is listed twice");
  else
    refused(both, IBCOLL_ERR_MISMATCH, "rank 2 of the parent was given a list of ranks that cannot be a team");
  expect_ok(ibcoll_barrier(self.world), "barrier after lists that differ");
  const uint64_t after = counter(self.context, "heap_reserved_bytes");
  expect(after == before, "the node's windows had {} bytes, and have {}", before, after);
  expect_ok(ibcoll_barrier(self.world), "barrier before the team");
  ibcoll_team_t team = nullptr;
  expect_ok(ibcoll_team_create(self.world, both.data(), 2, &team), "ibcoll_team_create with the same lists");
  expect((team != nullptr) == (self.rank < 2), "the wrong ranks are in the team");
  const TeamOwner owner(team);
  if (team) expect_ok(ibcoll_barrier(team), "barrier");
}

// A rank that gets the error frees the team, or has freed it before, as its own call was complete: the others still
// learn why they wait.
void freed_at_once(Rank& self) {
  std::vector<std::byte> buffer(16);
  for (const bool root_sends : {true, false, true}) {
    TeamOwner team = split(self.world, 0, self.rank);
    const bool sends = (self.rank == 0) == root_sends;
    const double begin = seconds_now();
    while (root_sends && self.rank != 0 && seconds_now() - begin < 0.05) ibcoll_progress(self.context);
    ibcoll_status_t status = ibcoll_bcast(team.get(), buffer.data(), sends ? buffer.size() : 0, 0);
    const bool learns = status != IBCOLL_OK || root_sends || self.rank != 0;
    while (learns && status == IBCOLL_OK && seconds_now() - begin < kSeconds) status = ibcoll_barrier(team.get());
    if (learns) expect_error(status, IBCOLL_ERR_MISMATCH, "rank ", "bcast of 16 bytes and of none");
    expect(seconds_now() - begin < kSeconds, "{:.1f} s until this rank knew", seconds_now() - begin);
    team = TeamOwner();
    expect_ok(ibcoll_barrier(self.world), "barrier of the world");
  }
}

// A root runs ahead of the others as far as there is memory. Should they have freed the team by then, it learns why it
// waits.
void one_call_fewer(Rank& self) {
  std::vector<std::byte> buffer(8192);
  for (const size_t bytes : {size_t{8}, buffer.size()}) {
    TeamOwner team = split(self.world, 0, self.rank);
    const double begin = seconds_now();
    ibcoll_status_t status = ibcoll_bcast(team.get(), buffer.data(), bytes, 0);
    if (self.rank == 0)
      for (int call = 0; call < 500 && status == IBCOLL_OK; ++call)
        status = ibcoll_bcast(team.get(), buffer.data(), bytes, 0);
    if (self.rank == 0)
      expect_error(status, IBCOLL_ERR_MISMATCH, "rank ", "another call");
    else
      expect_ok(status, "the one bcast");
    expect(seconds_now() - begin < kSeconds, "{:.1f} s until this rank knew", seconds_now() - begin);
    team = TeamOwner();
    expect_ok(ibcoll_barrier(self.world), "barrier of the world");
  }
}

// What the library gathers for itself is no allgather of the program.
void split_differs(Rank& self) {
  std::vector<std::byte> mine(16), all(16 * static_cast<size_t>(self.size));
  expect_mismatch(self, "a split and two allgathers", [&](ibcoll_team_t team) {
    ibcoll_team_t made = nullptr;
    if (self.rank == self.size - 1) return ibcoll_team_split(team, 0, 0, &made);
    const ibcoll_status_t status = ibcoll_allgather(team, mine.data(), all.data(), 8);
    return status != IBCOLL_OK ? status : ibcoll_allgather(team, mine.data(), all.data(), 16);
  });
  const std::vector<int> list{0, 1};
  expect_mismatch(self, "a new team and an allgather", [&](ibcoll_team_t team) {
    ibcoll_team_t made = nullptr;
    if (self.rank == self.size - 1) return ibcoll_team_create(team, list.data(), 2, &made);
    return ibcoll_allgather(team, mine.data(), all.data(), 16);
  });
}

// In the last call before the end no rank may have looked at the odd one: leaving the job finds it. Nor is that taken
// for a barrier of one rank alone.
void last_calls_differ(Rank&) {
  for (const bool barrier : {false, true}) {
    ibcoll_context_t context = nullptr;
    if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
    const int rank = ibcoll_context_rank(context);
    const double begin = seconds_now();
    std::vector<std::byte> buffer(100'000);
    ibcoll_status_t status = IBCOLL_OK;
    if (!barrier)
      status = ibcoll_bcast(ibcoll_team_world(context), buffer.data(), buffer.size(), rank == 1 ? 1 : 0);
    else if (rank == 1)
      status = ibcoll_barrier(ibcoll_team_world(context));
    if (status != IBCOLL_OK) expect_error(status, IBCOLL_ERR_MISMATCH, "rank ", "the last call");
    const ibcoll_status_t left = ibcoll_context_destroy(context);
    if (status == IBCOLL_OK) expect_error(left, IBCOLL_ERR_MISMATCH, "rank ", "leaving after calls that differ");
    if (status != IBCOLL_OK) expect_ok(left, "leaving after a failure that was reported");
    expect(seconds_now() - begin < kSeconds, "{:.1f} s until it was known", seconds_now() - begin);
  }
}

// A team that has failed makes no others, and takes nothing for them.
void teams_of_a_failed_team(Rank& self) {
  const TeamOwner failed = split(self.world, 0, self.rank);
  const double end = seconds_now() + kSeconds;
  std::vector<std::byte> buffer(16);
  (void)ibcoll_bcast(failed.get(), buffer.data(), self.rank == 0 ? 8 : 16, 0);
  ibcoll_status_t status = IBCOLL_OK;
  while (status == IBCOLL_OK && seconds_now() < end) status = ibcoll_barrier(failed.get());
  expect_error(status, IBCOLL_ERR_MISMATCH, "rank ", "bcast of 8 and of 16 bytes");
  std::vector<int> all(static_cast<size_t>(self.size));
  std::iota(all.begin(), all.end(), 0);
  for (int i = 0; i < 1500; ++i) {
    ibcoll_team_t team = nullptr;
    expect_error(ibcoll_team_create(failed.get(), all.data(), self.size, &team), IBCOLL_ERR_MISMATCH, "rank ",
                 "a team of a failed team");
    expect_error(ibcoll_team_split(failed.get(), 0, 0, &team), IBCOLL_ERR_MISMATCH, "rank ",
                 "a split of a failed team");
    if (complaints() > 0) return;
  }
  const TeamOwner sound = split(self.world, 0, self.rank);
  expect_ok(ibcoll_barrier(sound.get()), "barrier of a sound team");
}

constexpr Scenario kMismatchScenarios[] = {
    {"teams_of_a_failed_team", teams_of_a_failed_team},
    {"sizes_differ", sizes_differ},
    {"calls_differ", calls_differ},
    {"reductions_differ", reductions_differ},
    {"roots_differ", roots_differ},
    {"blocks_differ", blocks_differ},
    {"root_counts_differ", root_counts_differ},
    {"order_differs", order_differs},
    {"lists_differ", lists_differ},
    {"freed_at_once", freed_at_once},
    {"one_call_fewer", one_call_fewer},
    {"split_differs", split_differs},
    {"last_calls_differ", last_calls_differ, false},
};

}  // namespace

std::span<const Scenario> mismatch_scenarios() { return kMismatchScenarios; }

}  // namespace ibcoll::multiprocess
