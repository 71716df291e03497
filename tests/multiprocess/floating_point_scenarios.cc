// SPDX-License-Identifier: BSD-3-Clause
// Ranks whose programs have set their processors to compute in different ways: another rounding, no subnormal numbers,
// traps. They agree on algorithms all the same, and find their setting as it was.
#include <cfenv>
#include <cstdlib>
#include <vector>

#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "tests/multiprocess/scenario.h"
#include "tools/own_calls.h"

namespace ibcoll::multiprocess {
namespace {

constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
constexpr int kTraps = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

// Subnormal operands and results count as 0, as in a program of which an object was compiled with -ffast-math.
void flush_to_zero() {
#ifdef __SSE2__
  _mm_setcsr(_mm_getcsr() | _MM_FLUSH_ZERO_ON | 0x40);
#endif
}

unsigned control_word() {
#ifdef __SSE2__
  return _mm_getcsr() & ~static_cast<unsigned>(FE_ALL_EXCEPT);
#else
  return static_cast<unsigned>(std::fegetround());
#endif
}

// Calls have many sizes, so that predicted costs are equal for some.
void reduce_and_gather(ibcoll_team_t team) {
  const auto p = static_cast<size_t>(ibcoll_team_size(team));
  for (size_t count = 1000; count <= 48'000; count += 1000) {
    std::vector<int64_t> mine(count, 1), sum(count);
    expect_ok(ibcoll_allreduce(team, mine.data(), sum.data(), count, IBCOLL_INT64, IBCOLL_SUM), "allreduce");
    expect(sum == std::vector<int64_t>(count, static_cast<int64_t>(p)), "allreduce of {} elements: wrong sums", count);
  }
  for (size_t bytes = 100; bytes <= 6000; bytes += 590) {
    std::vector<char> mine(p * bytes, 'x'), all(p * bytes);
    expect_ok(ibcoll_allgather(team, mine.data(), all.data(), bytes), "allgather");
    expect_ok(ibcoll_alltoall(team, mine.data(), all.data(), bytes), "alltoall");
    expect(all == mine, "alltoall of {} bytes: wrong bytes", bytes);
  }
}

void modes_differ(Rank&) {
  std::fenv_t usual{};  // for the scenarios that come later
  std::fegetenv(&usual);
  const char* const launched = std::getenv("IBCOLL_RUN_RANK");
  const int rank = launched ? std::atoi(launched) : 0;
  set_rank_of_lines(rank);
  std::fesetround(kModes[rank % 4]);
  if (rank % 3 == 2) flush_to_zero();
  if (rank == 4) ::feenableexcept(kTraps);
  const unsigned before = control_word();
  ibcoll_context_t context = nullptr;
  if (!expect_ok(ibcoll_context_create(nullptr, &context), "ibcoll_context_create")) return;
  const ibcoll_team_t world = ibcoll_team_world(context);
  reduce_and_gather(world);
  {
    const TeamOwner half = split(world, rank % 2, rank);
    reduce_and_gather(half.get());
  }
  expect(control_word() == before && std::fegetround() == kModes[rank % 4], "the program's mode is {:#x}, it was {:#x}",
         control_word(), before);
  expect(::fegetexcept() == (rank == 4 ? kTraps : 0), "other exceptions trap");
  expect_ok(ibcoll_context_destroy(context), "ibcoll_context_destroy");
  std::fesetenv(&usual);
}

constexpr Scenario kFloatingPointScenarios[] = {{"modes_differ", modes_differ, false}};

}  // namespace

std::span<const Scenario> floating_point_scenarios() { return kFloatingPointScenarios; }

}  // namespace ibcoll::multiprocess
